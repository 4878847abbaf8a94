/* The stage: every hidden draw of a functional program becomes an explicit one.
 *
 * Offsets are counted in program order. The graph takes inputs `seed` and `offset` and gives the next `offset`, which
 * is the one it took plus a constant of the program, times the number of ranks. */
#ifndef RG_RNG_STAGE_H
#define RG_RNG_STAGE_H

#include <aot/host.h>

typedef struct rg_counts {
  uint32_t nodes; /* that drew hidden numbers */
  int64_t draws;  /* that a step takes; at most, where branches are */
} rg_counts_t;

/* n_ranks: of the run, which take their draws one after the other, so that the next offset is after those of all.
 * Diagnoses; operators that draw and have no rule are all reported at once. O(program). */
aot_status_t rg_make_explicit(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t n_ranks,
                              rg_counts_t *out);

#endif
