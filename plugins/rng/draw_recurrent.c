/* Recurrent networks with dropout between their layers: the operator set unrolls them, with dropout, which the walk
 * meets next. Without dropout the operator stays whole. */
#include "random_rules.h"

void rg_recurrent(em_t *e, aot_value_t *out) {
  const em_x_t layers = em_in(e, "num_layers");
  if (!em_in_bool(e, "train", 0) || em_in_float(e, "dropout", 0) == 0 ||
      (layers.kind == AOT_ARG_INT && layers.u.i < 2)) {
    rg_of(e)->is_left = 1;
    return;
  }
  if (e->status == AOT_OK) e->status = e->host->edit->decompose(e->prog, e->node, out);
}
