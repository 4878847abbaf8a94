/* aothost reduce: the smallest program with which a bundle still fails in the same way: same exit status, same first
 * error but for its numbers.
 *
 *     reduce_bundle.c  outputs, then nodes, in ever smaller groups; edits of the program, each tried and kept or undone
 *     reduce_text.c    what no edit does: unused leaves, sizes, dtypes; on the program's text
 *     reduce_ask.c     does it still fail so? `aothost replay` in a child (child.h)
 *
 * Groups are halved as in Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002); what is
 * large goes first, as in Misherghi and Su, "HDD: hierarchical delta debugging" (2006). O(k log n) questions where k of
 * n nodes are needed. */
#ifndef AOTH_REDUCE_BUNDLE_H
#define AOTH_REDUCE_BUNDLE_H

#include <cli/base/cli.h>

typedef struct aoth_reduce {
  aoth_cli_t *cli;
  const char *bundle;
  char folder[448];  /* the bundle with the program that is queried about; "": none */
  int status;        /* that the bundle ends with */
  char message[512]; /* its first error, numbers left out */
  char said[512];    /* as it was said */
  double timeout;    /* seconds a question */
  uint32_t n_asked;
  uint64_t nodes_before, nodes_after;
  kit_text_t text; /* the smallest program so far */
} aoth_reduce_t;

/* AOT_OK: text, and status; status 0: nothing fails, and text is empty. Else reported. */
aot_status_t aoth_reduce_run(aoth_reduce_t *r, aoth_cli_t *cli, const char *bundle);
/* The bundle with the smaller program, in a folder that is made. Reported. */
aot_status_t aoth_reduce_write(const aoth_reduce_t *r, const char *folder, aoth_sink_t *sink);
void aoth_reduce_deinit(aoth_reduce_t *r);

/* ---- inside ---- */

/* How the bundle ends with this program: the first time. */
aot_status_t aoth_reduce_first(aoth_reduce_t *r, const char *text, size_t size);
/* Does it end so with another one? */
int aoth_reduce_still_fails(aoth_reduce_t *r, const char *text, size_t size);
/* Makes r->text smaller. */
void aoth_reduce_leaves(aoth_reduce_t *r);
void aoth_reduce_sizes(aoth_reduce_t *r);
void aoth_reduce_dtypes(aoth_reduce_t *r);

#endif
