/* The verifier's state and its complaints, shared by its files; included by host/ir only. */
#ifndef AOTH_VERIFIER_H
#define AOTH_VERIFIER_H

#include <ir/program_store.h>

#define VERIFY_MAX_REPORTS 20u

typedef struct verifier {
  aot_prog_t *p;
  uint32_t n_bad;
  uint32_t properties;    /* being checked */
  unsigned char *state;   /* by value: defined yet? */
  uint32_t *n_uses;       /* by value: places found that read it */
  uint32_t *refs, *ready; /* by graph */
  uint32_t n_region_args;
  unsigned char *leaf_seen; /* by leaf, for property checkers */
  char text[160];
} aoth_verifier_t;

void aoth_verify_report(aoth_verifier_t *v, uint32_t node, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int aoth_verify_full(const aoth_verifier_t *v);
const char *aoth_verify_graph_text(aoth_verifier_t *v, uint32_t graph);
void aoth_verify_encodings(aoth_verifier_t *v);
void aoth_verify_properties(aoth_verifier_t *v, uint32_t properties);

#endif
