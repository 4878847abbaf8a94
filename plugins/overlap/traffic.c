#include "traffic.h"

#include "link_cost.h"
#include <aot/ext/ranks.h>
#include <stdio.h>
#include <string.h>

ov_among_t ov_among_of(const aot_arg_t *name, uint32_t n_all) {
  char text[32] = "";
  unsigned n = 0;
  if (name->kind == AOT_ARG_STR && name->n < sizeof text) memcpy(text, name->u.chars, name->n);
  if (sscanf(text, AOT_RANKS_ROWS "%u", &n) == 1 && n) return (ov_among_t){OV_ROW, n, n};
  if (sscanf(text, AOT_RANKS_COLUMNS "%u", &n) == 1 && n) return (ov_among_t){OV_COLUMN, n_all / n, n_all};
  return (ov_among_t){OV_ALL_RANKS, n_all, n_all};
}

void ov_traffic_add(ov_traffic_t *t, int kind, const ov_among_t *among, uint64_t whole_nbytes, uint64_t element) {
  const uint64_t n = among->n_ranks, n_elements = element ? whole_nbytes / element : 0;
  if (!n) return;
  const uint64_t share = (n_elements + n - 1) / n * element;
  t->n[kind][among->dimension]++;
  t->nbytes[kind][among->dimension] +=
      kind == OV_REDUCE ? (n - 1) * share + whole_nbytes - share : (n - 1) * (whole_nbytes / n);
}
