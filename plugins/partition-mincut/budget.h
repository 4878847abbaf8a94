/* A budget as text: bytes ("64MiB", "1.5 GB", "4096") or a fraction of a peak ("0.5", "1"). */
#ifndef MC_BUDGET_H
#define MC_BUDGET_H

#include <aot/base.h>

typedef struct mc_budget {
  uint64_t nbytes; /* 0: a fraction */
  double fraction; /* above 0, at most 1 */
} mc_budget_t;

/* 1, or 0 with a sentence in *out_why (static). A number of at most 1 without a unit is a fraction; units are B, kB,
 * MB, GB, TB and KiB, MiB, GiB, TiB, in any case. */
int mc_budget_parse(aot_str_t text, mc_budget_t *out, const char **out_why);
uint64_t mc_budget_nbytes(const mc_budget_t *b, uint64_t whole);

#define MC_BUDGET_TEXT 48
/* "12.3 MiB" for people. Returns out. */
const char *mc_budget_print(uint64_t nbytes, char out[MC_BUDGET_TEXT]);

#endif
