/* Normalizations: layer, group, batch, rms; forward and backward. */
#include "shape_rules.h"

#include <aot/inline.h>

static int wanted(at_infer_t *c, uint32_t i) {
  const int64_t *mask;
  return i < at_ints(c, "output_mask", &mask) && mask[i] != 0;
}

/* The normalized dimensions are the last ones, and they must match. */
static int32_t outer_rank(at_infer_t *c, const aot_type_t *x) {
  const int64_t *shape;
  int32_t n = (int32_t)at_ints(c, "normalized_shape", &shape), d;
  int match = n >= 1 && n <= x->rank;
  for (d = 0; match && d < n; d++) match = !at_differs(c, x->sizes[x->rank - n + d], shape[d]);
  if (!match) {
    char text[2][90];
    at_fail(c, "normalized_shape [%s] does not end the input's shape [%s]", at_dims_text(c, shape, n, text[0], 90),
            at_dims_text(c, x->sizes, x->rank, text[1], 90));
    return 0;
  }
  return x->rank - n;
}

void at_shape_layer_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input");
  outer_rank(c, &x);
  at_put(c, x.dtype, x.sizes, x.rank);
}

/* instance_norm: the input's shape */
void at_shape_layer_norm_like(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input");
  if (x.rank < 2) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)x.rank);
  at_put(c, x.dtype, x.sizes, x.rank);
}

/* Statistics keep the outer dimensions, the normalized ones become 1. Mixed dtypes (bfloat16 input, float32 weight)
 * keep them in the weight's. */
static void put_row_statistics(at_infer_t *c, const aot_type_t *x, int32_t dtype) {
  int32_t outer = outer_rank(c, x), d;
  int64_t *sizes = at_dims_copy(c, x->sizes, x->rank);
  for (d = outer; d < x->rank; d++) sizes[d] = 1;
  at_put(c, dtype, sizes, x->rank);
}

void at_shape_native_layer_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  int32_t dtype =
      x.device == AOT_DEVICE_CPU ? (w.kind == AOT_TYPE_TENSOR ? w.dtype : x.dtype) : at_accumulate_dtype(x.dtype);
  outer_rank(c, &x);
  at_put(c, x.dtype, x.sizes, x.rank);
  put_row_statistics(c, &x, dtype);
  put_row_statistics(c, &x, dtype);
}

void at_shape_fused_rms_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input");
  outer_rank(c, &x);
  at_put(c, x.dtype, x.sizes, x.rank);
  put_row_statistics(c, &x, at_accumulate_dtype(x.dtype));
}

static void put_if(at_infer_t *c, int on, const aot_type_t *t) {
  if (on && t->kind == AOT_TYPE_TENSOR) at_put(c, t->dtype, t->sizes, t->rank);
  else at_put_none(c);
}

void at_shape_native_layer_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight"), b = at_operand(c, "bias");
  put_if(c, wanted(c, 0), &x);
  put_if(c, wanted(c, 1), &w);
  put_if(c, wanted(c, 2), &b);
}

/* The private fused forms: every gradient that has an input. */
void at_shape_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight"), b = at_operand(c, "bias");
  put_if(c, 1, &x);
  put_if(c, 1, &w);
  if (c->desc->n_results > 2) put_if(c, 1, &b);
}

void at_shape_fused_rms_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  put_if(c, wanted(c, 0), &x);
  put_if(c, wanted(c, 1), &w);
}

/* ---- group norm ---- */

/* Channels last are stored on the CPU alone. */
static void put_grouped(at_infer_t *c, const aot_type_t *x) {
  if (x->device == AOT_DEVICE_CPU) at_put_in_format_of(c, x, x->sizes, x->dtype);
  else at_put(c, x->dtype, x->sizes, x->rank);
}

void at_shape_group_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input");
  int64_t groups = at_int(c, "num_groups");
  if (x.rank < 2 || groups <= 0 || at_differs(c, at_mod(c, x.sizes[1], groups), 0))
    at_fail(c, "group_norm of %lld channels in %lld groups", x.rank > 1 ? (long long)at_hint(c, x.sizes[1]) : 0LL,
            (long long)groups);
  put_grouped(c, &x);
}

void at_shape_native_group_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  int64_t *sizes = at_dims(c, 2);
  int32_t dtype = w.kind == AOT_TYPE_TENSOR && w.dtype != x.dtype ? w.dtype : x.dtype;
  sizes[0] = at_int(c, "N");
  sizes[1] = at_int(c, "group");
  put_grouped(c, &x);
  at_put(c, dtype, sizes, 2);
  at_put(c, dtype, sizes, 2);
}

void at_shape_native_group_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  int64_t *sizes = at_dims(c, 1);
  int32_t dtype = w.kind == AOT_TYPE_TENSOR ? w.dtype : x.dtype;
  uint32_t i;
  sizes[0] = at_int(c, "C");
  if (wanted(c, 0)) put_grouped(c, &x);
  else at_put_none(c);
  for (i = 1; i < 3; i++) {
    if (wanted(c, i)) at_put(c, dtype, sizes, 1);
    else at_put_none(c);
  }
}

/* ---- batch norm ---- */

static void put_normalized(at_infer_t *c, const aot_type_t *x) { at_put_in_format_of(c, x, x->sizes, x->dtype); }

static int64_t *channels(at_infer_t *c, const aot_type_t *x) {
  int64_t *sizes = at_dims(c, 1);
  if (x->rank < 2) at_fail(c, "batch norm of a tensor of rank %d", (int)x->rank);
  else sizes[0] = x->sizes[1];
  return sizes;
}

void at_shape_batch_norm(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input");
  channels(c, &x);
  put_normalized(c, &x);
}

/* (y, mean, invstd), and with running statistics that are not written in place (.., new mean, new variance). Without
 * training nothing is saved: two empty tensors. */
void at_shape_native_batch_norm(at_infer_t *c) {
  static const int64_t empty[1] = {0};
  aot_type_t x = at_tensor(c, "input"), mean = at_operand(c, "running_mean"), var = at_operand(c, "running_var");
  aot_type_t w = at_operand(c, "weight");
  int64_t *sizes = channels(c, &x);
  int32_t dtype = w.kind == AOT_TYPE_TENSOR && w.dtype != x.dtype ? w.dtype : x.dtype;
  int training = at_bool(c, "training");
  if (mean.kind == AOT_TYPE_TENSOR && mean.dtype != x.dtype) dtype = mean.dtype;
  if (c->status != AOT_OK) return;
  put_normalized(c, &x);
  at_put(c, dtype, training ? sizes : empty, 1);
  at_put(c, dtype, training ? sizes : empty, 1);
  if (c->desc->n_results == 5) {
    put_if(c, 1, &mean);
    put_if(c, 1, &var);
  }
}

void at_shape_native_batch_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  int64_t *sizes = channels(c, &x);
  int32_t dtype = w.kind == AOT_TYPE_TENSOR ? w.dtype : x.dtype;
  uint32_t i;
  if (wanted(c, 0)) put_normalized(c, &x);
  else at_put_none(c);
  for (i = 1; i < 3; i++) {
    if (wanted(c, i)) at_put(c, dtype, sizes, 1);
    else at_put_none(c);
  }
}

/* cuDNN's form: as the native one, and notes for its backward, of which there are none here. */
void at_shape_cudnn_batch_norm(at_infer_t *c) {
  static const int64_t empty[1] = {0};
  at_shape_native_batch_norm(c);
  at_put(c, AOT_U8, empty, 1);
}

void at_shape_cudnn_batch_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_tensor(c, "weight");
  int64_t *sizes = channels(c, &x);
  put_normalized(c, &x);
  at_put(c, w.dtype, sizes, 1);
  at_put(c, w.dtype, sizes, 1);
}

/* The weight's gradient only with a weight; the bias's always, as the call does not say whether there is one. */
void at_shape_batch_norm_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_operand(c, "weight");
  int64_t *sizes = channels(c, &x);
  int32_t dtype = w.kind == AOT_TYPE_TENSOR ? w.dtype : x.dtype;
  put_normalized(c, &x);
  if (w.kind == AOT_TYPE_TENSOR) at_put(c, dtype, sizes, 1);
  else at_put_none(c);
  at_put(c, dtype, sizes, 1);
}

/* ---- weight norm ---- */

/* dim -1 represents one slice, the whole tensor, as weight_norm(dim=None) calls it. */
static void check_lengths(at_infer_t *c, const aot_type_t *v, const aot_type_t *g, int64_t dim) {
  if (dim == -1) {
    if (at_differs(c, at_numel(c, g->sizes, g->rank), 1))
      at_fail(c, "%s: %lld lengths for the norm of the whole tensor (dim -1)", c->row->name,
              (long long)at_hint(c, at_numel(c, g->sizes, g->rank)));
    return;
  }
  const int32_t at = at_wrap(c, dim, v->rank);
  if (c->status == AOT_OK && v->rank && at_differs(c, at_numel(c, g->sizes, g->rank), v->sizes[at]))
    at_fail(c, "%s: %lld lengths for the %lld slices of dim %d", c->row->name,
            (long long)at_hint(c, at_numel(c, g->sizes, g->rank)), (long long)at_hint(c, v->sizes[at]), (int)at);
}

/* Norms of f16 or bf16 are float32 on the CPU, as PyTorch keeps them. */
void at_shape_weight_norm(at_infer_t *c) {
  aot_type_t v = at_tensor(c, "v"), g = at_tensor(c, "g");
  check_lengths(c, &v, &g, at_int(c, "dim"));
  at_put(c, v.dtype, v.sizes, v.rank);
  if (c->desc->n_results == 2) at_put(c, at_accumulate_dtype(v.dtype) != v.dtype ? AOT_F32 : g.dtype, g.sizes, g.rank);
}

void at_shape_weight_norm_backward(at_infer_t *c) {
  aot_type_t v = at_tensor(c, "saved_v"), g = at_tensor(c, "saved_g");
  check_lengths(c, &v, &g, at_int(c, "dim"));
  at_put(c, v.dtype, v.sizes, v.rank);
  at_put(c, g.dtype, g.sizes, g.rank);
}
