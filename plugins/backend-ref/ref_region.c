/* Which graph a region operator runs. All of them name their graphs as GRAPH arguments and pass the operands after
 * them. */
#include "ref_region.h"
#include <aot/graph.h>
#include <aot/inline.h>

static const struct {
  const char *name;
  int kind;
} kinds[] = {
    {"higher_order.cond", RF_COND},
    {"higher_order.scan", RF_SCAN},
    {"higher_order.while_loop", RF_WHILE},
    {"higher_order.invoke_subgraph", RF_CALL},
    {"higher_order.wrap_with_set_grad_enabled", RF_CALL},
    {"higher_order.wrap_with_autocast", RF_CALL},
    {"higher_order.tag_activation_checkpoint", RF_CALL},
    {"higher_order.wrap", RF_CALL},
};

uint32_t rf_n_regions(void) { return (uint32_t)(sizeof kinds / sizeof kinds[0]); }
const char *rf_region_name(uint32_t i) { return kinds[i].name; }

int rf_region_kind(aot_str_t name) {
  for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    if (aot_str_eq(name, aot_str(kinds[k].name))) return kinds[k].kind;
  return RF_NO_REGION;
}

uint32_t rf_region_graphs(const aot_snapshot_t *s, const aot_snap_node_t *n, uint32_t *out, uint32_t capacity,
                          uint32_t *out_after) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  uint32_t count = 0;
  *out_after = n->n_args;
  for (uint32_t a = 0; a < n->n_args; a++) {
    if (args[a].kind != AOT_ARG_GRAPH) continue;
    if (count < capacity) out[count] = (uint32_t)args[a].i;
    count++;
    *out_after = a + 1;
  }
  return count;
}

uint32_t rf_region_length(const aot_snap_arg_t *a) {
  return a->kind == AOT_ARG_VALUES || a->kind == AOT_ARG_INTS ? a->n
                                                              : a->kind == AOT_ARG_VALUE || a->kind == AOT_ARG_INT;
}

uint32_t rf_region_operands(const aot_snapshot_t *s, const aot_snap_node_t *n, uint32_t after, uint32_t *out,
                            int64_t *out_number) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  uint32_t count = 0;
  for (uint32_t a = after; a < n->n_args; a++) {
    const int is_list = args[a].kind == AOT_ARG_VALUES || args[a].kind == AOT_ARG_INTS;
    for (uint32_t k = 0; k < rf_region_length(&args[a]); k++, count++) {
      if (!out) continue;
      const int64_t at = is_list ? args[a].i + (int64_t)k : 0;
      out[count] = args[a].kind == AOT_ARG_VALUES  ? operands[at]
                   : args[a].kind == AOT_ARG_VALUE ? (uint32_t)args[a].i
                                                   : AOT_NO_ID;
      out_number[count] = args[a].kind == AOT_ARG_INTS ? ints[at] : args[a].kind == AOT_ARG_INT ? args[a].i : 0;
    }
  }
  return count;
}
