/* Losses: a number, or one value an element when the reduction is none (0). */
#include "shape_rules.h"

#include <aot/inline.h>

static void put_loss(at_infer_t *c, const aot_type_t *t, int32_t dtype) {
  if (at_int(c, "reduction") == 0) {
    at_put_pointwise(c, dtype, t, 2);
  } else {
    int64_t *sizes = at_dims(c, AOT_MAX_RANK);
    at_broadcast(c, t, 2, sizes);
    at_put(c, dtype, NULL, 0);
  }
}

/* Elementwise losses of (self, target). */
void at_shape_loss(at_infer_t *c) {
  const aot_type_t t[2] = {at_tensor(c, "self"), at_tensor(c, "target")};
  put_loss(c, t, at_promote(c, t, 2));
}

/* The target only chooses. */
void at_shape_chosen_loss(at_infer_t *c) {
  const aot_type_t t[2] = {at_tensor(c, "self"), at_tensor(c, "target")};
  put_loss(c, t, t[0].dtype);
}

void at_shape_loss_backward(at_infer_t *c) { /* the shape of the elementwise loss */
  aot_type_t t[2];
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "target");
  at_put_pointwise(c, at_promote(c, t, 2), t, 2);
}

/* Classes are in dim 1, or in dim 0 of an input without batch. */
static int32_t class_dim(const aot_type_t *x) { return x->rank > 1 ? 1 : 0; }

static void check_targets(at_infer_t *c, const aot_type_t *x, const aot_type_t *target) {
  int32_t d, k = 0, dim = class_dim(x);
  int fits = x->rank > 0 && target->rank == x->rank - 1;
  for (d = 0; fits && d < x->rank; d++)
    if (d != dim) fits = !at_differs(c, x->sizes[d], target->sizes[k++]);
  if (!fits) {
    char text[2][90];
    at_fail(c, "%s of scores [%s] with targets [%s]", c->row->name, at_dims_text(c, x->sizes, x->rank, text[0], 90),
            at_dims_text(c, target->sizes, target->rank, text[1], 90));
  }
}

static void put_class_loss(at_infer_t *c, const aot_type_t *x, int32_t dtype) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t d, rank = 0;
  if (at_int(c, "reduction") == 0)
    for (d = 0; d < x->rank; d++)
      if (d != class_dim(x)) sizes[rank++] = x->sizes[d];
  at_put(c, dtype, sizes, rank);
}

/* Class indices, or class probabilities when the target is floating: these and the weights are multiplied with the
 * logarithms, whose dtype theirs may raise. */
void at_shape_cross_entropy(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), target = at_tensor(c, "target"), w = at_operand(c, "weight");
  int32_t dtype = x.dtype;
  if (aot_dtype_is_float(target.dtype)) {
    dtype = at_promote_pair(c, dtype, target.dtype);
    if (w.kind == AOT_TYPE_TENSOR) dtype = at_promote_pair(c, dtype, w.dtype);
    if (target.rank != x.rank)
      at_fail(c, "probabilities of rank %d for scores of rank %d", (int)target.rank, (int)x.rank);
  } else {
    check_targets(c, &x, &target);
  }
  put_class_loss(c, &x, dtype);
}

void at_shape_nll_loss(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), target = at_tensor(c, "target");
  check_targets(c, &x, &target);
  put_class_loss(c, &x, x.dtype);
}

void at_shape_nll_loss_forward(at_infer_t *c) {
  at_shape_nll_loss(c);
  at_put(c, at_tensor(c, "self").dtype, NULL, 0);
}

/* Gradients of the scores. */
void at_shape_scores(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  at_put(c, x.dtype, x.sizes, x.rank);
}

/* multi_margin_loss: one value a row */
void at_shape_class_margin(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  if (at_int(c, "reduction") == 0 && x.rank == 2) at_put(c, x.dtype, x.sizes, 1);
  else at_put(c, x.dtype, NULL, 0);
}

static void put_loss_of(at_infer_t *c, const aot_type_t *t, uint32_t n) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  at_broadcast(c, t, n, sizes);
  if (at_int(c, "reduction") == 0) at_put_pointwise(c, at_promote(c, t, n), t, n);
  else at_put(c, at_promote(c, t, n), NULL, 0);
}

void at_shape_ranking_loss(at_infer_t *c) {
  aot_type_t t[3];
  t[0] = at_tensor(c, "input1");
  t[1] = at_tensor(c, "input2");
  t[2] = at_tensor(c, "target");
  put_loss_of(c, t, 3);
}

void at_shape_poisson_loss(at_infer_t *c) {
  aot_type_t t[2];
  t[0] = at_tensor(c, "input");
  t[1] = at_tensor(c, "target");
  put_loss_of(c, t, 2);
}

void at_shape_cosine_similarity(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank, dim, d, kept = 0;
  t[0] = at_tensor(c, "x1");
  t[1] = at_tensor(c, "x2");
  rank = at_broadcast(c, t, 2, sizes);
  dim = at_wrap(c, at_int(c, "dim"), rank);
  for (d = 0; d < rank; d++)
    if (d != dim) sizes[kept++] = sizes[d];
  at_put(c, at_promote(c, t, 2), sizes, kept);
}

/* multilabel_margin_loss: one value a row; the form with marks says which classes are targets */
void at_shape_multilabel_margin(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), target = at_tensor(c, "target");
  int32_t d, fits = x.rank == target.rank && x.rank <= 2;
  for (d = 0; fits && d < x.rank; d++) fits = !at_differs(c, x.sizes[d], target.sizes[d]);
  if (!fits) at_fail(c, "%s: scores and targets must have one shape, of rank 2 at most", c->row->name);
  at_shape_class_margin(c);
  if (c->desc->n_results == 2) at_put(c, x.dtype, target.sizes, target.rank);
}
