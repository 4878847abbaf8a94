#include "fuse_rng.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

enum { NO_LINK, CAST, BELOW, UNIFORM };
enum { IS_READ = 1, IS_DRAWN = 2 }; /* how a value is used */

static const aot_snap_node_t *node_of(const lw_build_t *b, uint32_t row) {
  const uint32_t node = lw_node_of(b, row);
  return node == LW_NONE ? NULL : AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + node;
}

static int link_of(const lw_build_t *b, const aot_snap_node_t *node) {
  static const struct {
    const char *op;
    int link;
  } links[] = {{"aten._to_copy.default", CAST}, {"aten.lt.Scalar", BELOW}, {"aot.philox_uniform.default", UNIFORM}};
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[node->op].name);
  for (size_t i = 0; i < sizeof links / sizeof *links && node->n_results == 1; i++)
    if (aot_str_eq(name, aot_str(links[i].op))) return links[i].link;
  return NO_LINK;
}

static const aot_snap_arg_t *args_of(const lw_build_t *b, const aot_snap_node_t *node) {
  return AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + node->arg_begin;
}

static int is_number(const lw_build_t *b, const aot_snap_arg_t *a, uint32_t *out) {
  *out = (uint32_t)a->i;
  return a->kind == AOT_ARG_VALUE && lw_value(b, *out)->t.dtype == AOT_I64 && lw_value(b, *out)->t.rank == 0;
}

int lw_read_draw(const lw_build_t *b, uint32_t row, lw_draw_t *out) {
  int last = NO_LINK;
  for (const aot_snap_node_t *node; (node = node_of(b, row)) != NULL;) {
    const aot_snap_arg_t *args = args_of(b, node);
    const int link = link_of(b, node);
    if (link == UNIFORM)
      return last == BELOW && node->n_args >= 4 && lw_value(b, row)->t.dtype == AOT_F32 &&
             is_number(b, &args[0], &out->seed) && is_number(b, &args[1], &out->offset) &&
             args[2].kind == AOT_ARG_INT && (out->number = lw_dim(b, args[2].i)) >= 0;
    if (link <= last || args[0].kind != AOT_ARG_VALUE) return 0;
    if (link == BELOW) {
      double below;
      if (args[1].kind != AOT_ARG_FLOAT || lw_value(b, row)->t.dtype != AOT_BOOL) return 0;
      memcpy(&below, &args[1].i, sizeof below);
      out->below = (float)below; /* a comparison with float32 is one of float32 */
    }
    row = (uint32_t)args[0].i;
    last = link;
  }
  return 0;
}

/* A plugin's kernel may write into what nothing seems to read. */
aot_status_t lw_find_drawn(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  if (!b->machine->target->draws || b->has_inplace_custom_kernels) return AOT_OK;
  AOT_ASSERT(b->elided); /* lw_find_spared comes before */
  uint8_t *use = lw_pool_alloc(b->pool, (uint64_t)b->n_values + 1);
  if (!use) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) use[outputs[i].value - b->value_begin] |= IS_READ;
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) {
    b->node = &nodes[i];
    const int link = link_of(b, &nodes[i]);
    const int is_spared = link && use[nodes[i].result_begin - b->value_begin] == IS_DRAWN;
    const uint32_t drawn = is_spared && link != UNIFORM ? (uint32_t)args_of(b, &nodes[i])->i
                           : is_spared                  ? LW_NONE
                                                        : b->machine->target->draws(b);
    if (is_spared) b->elided[i] = LW_SPARED_DRAW;
    for (uint32_t k = 0; k < nodes[i].n_operands; k++) {
      const uint32_t row = operands[nodes[i].operand_begin + k];
      if (row == AOT_NO_ID) continue;
      use[row - b->value_begin] |= row == drawn ? IS_DRAWN : IS_READ;
      AOT_ASSERT(b->n_uses[row - b->value_begin] > 0 || !is_spared || row != drawn);
      b->n_uses[row - b->value_begin] -= (uint32_t)(is_spared && row == drawn);
    }
  }
  return AOT_OK;
}

int lw_is_drawn_by_readers(const lw_build_t *b, uint32_t row) {
  const uint32_t node = lw_node_of(b, row);
  return node != LW_NONE && b->elided && b->elided[node] == LW_SPARED_DRAW;
}
