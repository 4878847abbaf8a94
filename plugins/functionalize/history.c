/* Inserts aot.with_history and detach; tracks which storages can carry a gradient (history.h). */
#include "history.h"

#include "places.h"
#include <aot/inline.h>

int fz_step_stops_gradient(const fz_rewrite_t *w, aot_node_t view) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (w->host->graph->node_info(w->prog, view, &info) != AOT_OK) return 0;
  return (info.flags & AOT_NODE_NO_GRAD) || (w->host->graph->op_desc(w->prog, info.op)->flags & AOT_OP_NO_GRAD);
}

int fz_history_is_apart(const fz_rewrite_t *w, uint32_t place) {
  const fz_place_t *p = &w->alias.places[place];
  return p->own_history || fz_step_stops_gradient(w, (aot_node_t){p->view_node});
}

int fz_is_differentiable(const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR && (aot_dtype_is_float(t->dtype) || aot_dtype_is_complex(t->dtype));
}

aot_status_t fz_with_history(fz_rewrite_t *w, aot_value_t history, aot_value_t value, aot_node_t before,
                             aot_value_t *out) {
  aot_arg_t args[2] = {aot_arg_value(value)};
  aot_value_t detached;
  AOT_TRY(fz_call(w, "aten.detach.default", args, 1, before, &detached));
  args[0] = aot_arg_value(history);
  args[1] = aot_arg_value(detached);
  return fz_call(w, "aot.with_history.default", args, 2, before, out);
}

/* copy_ under no_grad: the functional form is the source itself. */
aot_status_t fz_without_history(fz_rewrite_t *w, aot_value_t *value, aot_node_t before) {
  aot_node_t def = w->host->graph->value_def(w->prog, *value);
  aot_arg_t arg = aot_arg_value(*value);
  aot_type_t type;
  AOT_TRY(w->host->graph->value_type(w->prog, *value, &type));
  if (!fz_is_differentiable(&type) || (def.id != AOT_NO_ID && fz_step_stops_gradient(w, def))) return AOT_OK;
  return fz_call(w, "aten.detach.default", &arg, 1, before, value);
}

aot_status_t fz_mark_leaf(fz_rewrite_t *w, const aot_port_t *port, uint32_t place) {
  aot_leaf_info_t info = {.struct_size = sizeof info};
  aot_type_t type;
  if (port->role == AOT_ROLE_REGION) { /* an operand: who knows */
    AOT_TRY(w->host->graph->value_type(w->prog, port->value, &type));
    w->alias.storages[w->alias.places[place].storage].carries = (uint32_t)fz_is_differentiable(&type);
  }
  if (port->role > AOT_ROLE_STATE) return AOT_OK;
  AOT_TRY(w->host->graph->leaf_info(w->prog, (aot_leaf_t){port->index}, &info));
  if (info.flags & AOT_LEAF_REQUIRES_GRAD) w->alias.storages[w->alias.places[place].storage].carries = 1;
  return AOT_OK;
}

int fz_node_carries(const fz_rewrite_t *w, const aot_node_info_t *n, const uint32_t *operands, uint32_t n_operands) {
  if ((n->flags & AOT_NODE_NO_GRAD) || (w->host->graph->op_desc(w->prog, n->op)->flags & AOT_OP_NO_GRAD)) return 0;
  for (uint32_t i = 0; i < n_operands; i++) {
    uint32_t place = operands[i] == AOT_NO_ID ? FZ_NONE : fz_place_of(&w->alias, operands[i]);
    if (place != FZ_NONE && w->alias.storages[w->alias.places[place].storage].carries) return 1;
  }
  return 0;
}
