/* aothost inspect --memory: what memory a step takes, as a backend plans it or a partitioner simulates it. */
#ifndef AOTH_INSPECT_MEMORY_H
#define AOTH_INSPECT_MEMORY_H

#include <cli/base/cli.h>

typedef struct aoth_memory_flags {
  int on, simulated;
  aoth_texts_t uses; /* "--use", ID, "--with", K=V, .. as given */
  const char *import_id, *model, *unit, *top, *budget, *plot;
} aoth_memory_flags_t;

/* Exit status: 1 when a budget given is exceeded by the first plan. The session is there. */
int aoth_inspect_memory(aoth_cli_t *cli, const aoth_memory_flags_t *flags);
/* A complaint when flags that belong to --memory stand without it; 1: fine. */
int aoth_inspect_flags_fit(const aoth_cli_t *cli, const aoth_memory_flags_t *flags);

#endif
