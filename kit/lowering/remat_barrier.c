/* Nodes of the backward that compute again what a node of the forward has computed: a partition has them do so to keep
 * less in memory, which a common loop of both would undo.
 *
 *     %y = gelu %x     ...  loss, gradients  ...     %y' = gelu %x
 *
 * Values are numbered (J. Cocke, J. T. Schwartz, 1970): nodes of one operator whose operands have equal numbers are
 * looked up in a table by a hash of both, and compared. O(nodes + operands). */
#include "lower.h"

#include "kit/base/map.h"
#include "kit/loops/merge.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL /* who links the kit links no library for it */
#include <xxhash.h>

typedef struct value_numbering {
  const lw_build_t *b;
  uint32_t *first; /* by value, less value_begin: the first value that holds the same */
  kit_map_t nodes; /* of the forward */
} value_numbering_t;

static const aot_snap_node_t *node_at(const lw_build_t *b, uint32_t i) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + i;
}

static uint64_t hash_arg(const value_numbering_t *n, const aot_snap_arg_t *a, uint64_t h) {
  const aot_snapshot_t *s = n->b->s;
  const uint32_t of = a->kind == AOT_ARG_VALUE ? n->first[a->i - n->b->value_begin] : 0;
  switch (a->kind) {
    case AOT_ARG_VALUE: return XXH3_64bits_withSeed(&of, sizeof of, h);
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: return XXH3_64bits_withSeed(AOT_SNAP_ROWS(s, int64_t, ints) + a->i, a->n * sizeof a->i, h);
    case AOT_ARG_STR: return XXH3_64bits_withSeed((const char *)s + s->chars.at + a->i, a->n, h);
    default: return XXH3_64bits_withSeed(&a->i, sizeof a->i, h);
  }
}

static uint64_t hash_of(const value_numbering_t *n, const aot_snap_node_t *node) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(n->b->s, aot_snap_arg_t, args) + node->arg_begin;
  uint64_t h = node->op;
  for (uint32_t k = 0; k < node->n_args; k++) h = hash_arg(n, &args[k], h);
  return h;
}

static int is_alike(const void *numbering, uint32_t i, const void *node) {
  const value_numbering_t *n = numbering;
  const uint32_t begin = n->b->value_begin;
  uint32_t of = node_at(n->b, i)->result_begin, same = ((const aot_snap_node_t *)node)->result_begin;
  return lw_are_alike(n->b, &of, &same) && n->first[of - begin] == n->first[same - begin];
}

static uint8_t number(value_numbering_t *n, uint32_t i) {
  const aot_snap_node_t *node = node_at(n->b, i);
  const int is_late = (node->flags & AOT_NODE_BACKWARD) != 0;
  if (node->flags & AOT_NODE_UPDATE) return 0;
  if (!node->n_results) return is_late ? 0 : FU_FIRST;
  const uint64_t hash = hash_of(n, node);
  const uint32_t of = is_late ? kit_map_find(&n->nodes, hash, is_alike, n, node)
                              : kit_map_find_or_add(&n->nodes, hash, is_alike, n, node, i);
  AOT_ASSERT(is_late || of != KIT_MAP_NONE); /* there is room for all */
  if (of == KIT_MAP_NONE) return 0;
  if (of == i) return FU_FIRST;
  for (uint32_t r = 0; r < node->n_results; r++)
    n->first[node->result_begin + r - n->b->value_begin] =
        n->first[node_at(n->b, of)->result_begin + r - n->b->value_begin];
  if (!is_late) return FU_FIRST;
  return node->n_operands ? FU_REMAT : 0; /* numbers alone take nothing to hold */
}

aot_status_t lw_find_again(const lw_build_t *b, uint8_t *out) {
  const uint32_t n_nodes = b->graph->n_nodes;
  value_numbering_t n = {.b = b, .first = malloc(((size_t)b->n_values + 1) * 4)};
  const int is_there = n.first && kit_map_reserve(&n.nodes, n_nodes);
  for (uint32_t v = 0; is_there && v < b->n_values; v++) n.first[v] = v;
  for (uint32_t i = 0; is_there && i < n_nodes; i++) out[i] = number(&n, i);
  free(n.first);
  kit_map_deinit(&n.nodes);
  return is_there ? AOT_OK : lw_no_memory(b->error, "for groups");
}
