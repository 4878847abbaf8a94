/* Connectionist temporal classification: log probabilities [steps, batch, classes] or [steps, classes]. */
#include "shape_rules.h"

/* Checks the call; the batch, 0 for none. */
static aot_type_t log_probs(at_infer_t *c, int64_t *out_batch) {
  aot_type_t y = at_tensor(c, "log_probs"), t = at_tensor(c, "targets");
  if (y.rank != 2 && y.rank != 3)
    at_fail(c, "%s of log_probs of rank %d; they are [steps, batch, classes]", c->row->name, (int)y.rank);
  else if (t.rank > 2 || !at_is_integral(t.dtype))
    at_fail(c, "%s: targets are one or two dimensions of class numbers", c->row->name);
  *out_batch = y.rank == 3 ? y.sizes[1] : 1;
  return y;
}

/* Twice the longest target and one. Lengths in a tensor are not known: then what targets have room for. */
static int64_t alpha_width(at_infer_t *c) {
  const aot_arg_t *lengths = at_arg(c, "target_lengths");
  aot_type_t t = at_tensor(c, "targets");
  const int64_t *list;
  uint32_t n, i;
  int64_t longest = 0;
  if (lengths->kind == AOT_ARG_VALUE) {
    longest = t.rank == 2 ? t.sizes[1] : at_numel(c, t.sizes, t.rank);
  } else {
    n = at_ints(c, "target_lengths", &list);
    for (i = 0; i < n; i++) longest = list[i] > longest ? list[i] : longest;
  }
  return at_add(c, at_mul(c, longest, 2), 1);
}

void at_shape_ctc_forward(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 3);
  aot_type_t y = log_probs(c, &sizes[0]);
  if (c->status != AOT_OK) return;
  sizes[1] = y.sizes[0];
  sizes[2] = alpha_width(c);
  at_put(c, y.dtype, sizes, y.rank == 3 ? 1 : 0);
  at_put(c, y.dtype, sizes, 3);
}

void at_shape_ctc_backward(at_infer_t *c) {
  int64_t batch;
  aot_type_t y = log_probs(c, &batch);
  if (c->status == AOT_OK) at_put(c, y.dtype, y.sizes, y.rank);
}

void at_shape_ctc_loss(at_infer_t *c) {
  int64_t *batch = at_dims(c, 1);
  aot_type_t y = log_probs(c, batch);
  if (c->status == AOT_OK) at_put(c, y.dtype, batch, at_int(c, "reduction") == 0 && y.rank == 3 ? 1 : 0);
}
