/* Nodes that several groups compute, each for itself (kit/loops/recompute.h): what is written to memory, and by whom,
 * follows from b->n_uses. */
#include "lower.h"

#include "kit/loops/group.h"
#include "kit/loops/recompute.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t *copies_of(const fu_values_t *v, const uint32_t *begin, const uint32_t *copies, uint32_t node,
                                 uint32_t *out_n) {
  const uint32_t group = v->group[node];
  *out_n = group == FU_NONE ? 0 : begin[group + 1] - begin[group];
  return group == FU_NONE ? NULL : copies + begin[group];
}

static int holds(const uint32_t *sorted, uint32_t n, uint32_t node) {
  uint32_t low = 0, high = n;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (sorted[middle] < node) low = middle + 1;
    else high = middle;
  }
  return low < n && sorted[low] == node;
}

/* A node of a group reads a copy of its group in place of memory. */
static void drop_uses(lw_build_t *b, const fu_values_t *v, const uint32_t *begin, const uint32_t *copies) {
  for (uint32_t i = 0; i < v->n_nodes; i++) {
    uint32_t n;
    const uint32_t *own = copies_of(v, begin, copies, i, &n);
    for (uint32_t k = v->operand_begin[i]; n && k < v->operand_begin[i + 1]; k++) {
      const uint32_t value = v->operands[k];
      if (value == FU_NONE || v->apart[k] || v->maker[value] == FU_NONE) continue;
      AOT_ASSERT(!holds(own, n, v->maker[value]) || b->n_uses[value] > 0);
      b->n_uses[value] -= (uint32_t)holds(own, n, v->maker[value]);
    }
  }
}

/* And a copy reads what its group does not make. */
static void add_uses(lw_build_t *b, const fu_values_t *v, const fu_copy_t *copies, uint32_t n_copies,
                     const uint32_t *begin, const uint32_t *nodes) {
  for (uint32_t c = 0; c < n_copies; c++) {
    const uint32_t node = copies[c].node, group = copies[c].group;
    for (uint32_t k = v->operand_begin[node]; k < v->operand_begin[node + 1]; k++) {
      const uint32_t value = v->operands[k], maker = value == FU_NONE ? FU_NONE : v->maker[value];
      if (value == FU_NONE) continue;
      if (maker != FU_NONE &&
          (v->group[maker] == group || holds(nodes + begin[group], begin[group + 1] - begin[group], maker)))
        continue;
      b->n_uses[value]++;
    }
  }
}

aot_status_t lw_find_copies(lw_build_t *b, const fu_values_t *v) {
  fu_copy_t *copies;
  uint32_t n;
  if (fu_recompute(v, &copies, &n) != 0) return lw_no_memory(b->error, "for groups");
  uint32_t *begin = lw_pool_alloc(b->pool, ((uint64_t)v->n_nodes + 2) * sizeof *begin);
  uint32_t *nodes = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *nodes);
  if (!begin || !nodes) {
    free(copies);
    return lw_no_memory(b->error, "for groups");
  }
  for (uint32_t c = 0; c < n; c++) {
    AOT_ASSERT(copies[c].group < v->n_nodes && copies[c].node < copies[c].group);
    AOT_ASSERT(c == 0 || copies[c - 1].group <= copies[c].group); /* sorted, as `nodes` is by group */
    begin[copies[c].group + 1]++;
    nodes[c] = copies[c].node;
  }
  for (uint32_t i = 0; i <= v->n_nodes; i++) begin[i + 1] += begin[i];
  AOT_ASSERT(begin[v->n_nodes] == n);
  drop_uses(b, v, begin, nodes);
  add_uses(b, v, copies, n, begin, nodes);
  b->copies_begin = begin;
  b->copies = nodes;
  free(copies);
  return AOT_OK;
}
