/* Attention with dropout. The operator set writes it out as products, scale, mask, softmax and native_dropout, which the walk
 * meets next; without dropout the operator stays whole. */
#include "random_rules.h"

void rg_attention(rg_emit_t *e, aot_value_t *out) {
  if (rg_in_float(e, "dropout_p", 0) == 0) {
    e->is_left = 1;
    return;
  }
  if (e->status == AOT_OK) e->status = e->host->edit->decompose(e->prog, e->node, out);
}
