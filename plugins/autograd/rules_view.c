/* Views of parts: slices, splits, strides. */
#include "rules.h"

/* slice and narrow: g put back into zeros. */
void ag_rule_slice(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dim = ag_arg(a, "dim"), start = ag_arg(a, "start"), end, step = em_i(1);
  uint32_t at = ag_at(a, "end");
  if (at != AG_NO_ARG) {
    end = a->info.args[at];
    step = ag_arg(a, "step");
  } else end = em_i(ag_dim_op(a, AOT_EXPR_ADD, ag_int(a, start, 0), ag_int(a, ag_arg(a, "length"), 0)));
  if (start.kind == AOT_ARG_NONE) start = em_i(0);
  if (end.kind == AOT_ARG_NONE) end = em_i(INT64_MAX);
  ag_set(a, "self", AG_OP(a, "slice_backward", ag_g(a, 0), ag_sizes(a, x), dim, start, end, step));
}

/* The cotangents of all results in order, zeros for absent ones. */
static em_x_t all_cotangents(em_t *a) {
  uint32_t i, n = a->info.n_results;
  uint32_t *ids = a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 4, (n ? n : 1) * sizeof *ids);
  if (!ids) {
    a->status = AOT_E_EXHAUSTED;
    return em_none();
  }
  for (i = 0; i < n && a->status == AOT_OK; i++) {
    em_x_t g = ag_g(a, i);
    if (g.kind == AOT_ARG_NONE) g = ag_zeros_like(a, ag_y(a, i));
    ids[i] = (uint32_t)g.u.i;
  }
  return aot_arg_values(ids, n);
}

static uint32_t only_cotangent(em_t *a) {
  uint32_t i, n = 0, at = AG_NO_ARG;
  for (i = 0; i < a->info.n_results; i++)
    if (ag_g(a, i).kind != AOT_ARG_NONE) {
      n++;
      at = i;
    }
  return n == 1 ? at : AG_NO_ARG;
}

void ag_rule_split(em_t *a) {
  em_x_t dim = ag_arg(a, "dim");
  if (a->info.n_results == 1) ag_set(a, "self", ag_g(a, 0));
  else ag_set(a, "self", AG_OP(a, "cat", all_cotangents(a), dim));
}

void ag_rule_unbind(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dim = ag_arg(a, "dim");
  uint32_t only = only_cotangent(a);
  if (only != AG_NO_ARG) ag_set(a, "self", AG_OP(a, "select_backward", ag_g(a, only), ag_sizes(a, x), dim, em_i(only)));
  else ag_set(a, "self", AG_OP(a, "stack", all_cotangents(a), dim));
}

/* ---- windows on the storage ---- */

/* The dimensions of a tensor from the slowest in memory to the fastest, and the offset made one from its first element.
 * 0: it has gaps. */
static int order_in_storage(em_t *a, em_x_t x, int64_t *order, em_x_t *offset) {
  aot_type_t t;
  int64_t stride = 1;
  memset(&t, 0, sizeof t);
  if (a->status == AOT_OK) a->status = a->host->graph->value_type(a->prog, (aot_value_t){(uint32_t)x.u.i}, &t);
  for (int32_t d = 0; d < t.rank; d++) order[d] = d;
  if (a->status != AOT_OK || !t.strides) return 1;
  for (int32_t d = 1; d < t.rank; d++)
    for (int32_t k = d; k > 0; k--) {
      int64_t slower = t.strides[order[k - 1]], faster = t.strides[order[k]], moved = order[k];
      if (AOT_DIM_IS_SYM(slower) || AOT_DIM_IS_SYM(faster) || slower >= faster) break;
      order[k] = order[k - 1];
      order[k - 1] = moved;
    }
  for (int32_t k = t.rank; k-- > 0; stride = ag_dim_op(a, AOT_EXPR_MUL, stride, t.sizes[order[k]]))
    if (t.sizes[order[k]] != 1 && t.strides[order[k]] != stride) return 0;
  *offset = offset->kind == AOT_ARG_NONE ? em_i(0) : em_i(ag_dim_op(a, AOT_EXPR_SUB, ag_int(a, *offset, 0), t.offset));
  return 1;
}

static int is_in_order(const int64_t *order, int32_t rank) {
  for (int32_t d = 0; d < rank; d++)
    if (order[d] != d) return 0;
  return 1;
}

/* x, shaped like a tensor of this order, as the storage of that tensor would have it. */
static em_x_t as_stored(em_t *a, em_x_t x, const int64_t *order, int32_t rank) {
  if (!is_in_order(order, rank)) x = AG_OP(a, "permute", x, em_list(a, order, (uint32_t)rank));
  return ag_contiguous(a, x);
}

static em_x_t as_seen(em_t *a, em_x_t stored, const int64_t *order, const ag_type_t *t) {
  int64_t sizes[AOT_MAX_RANK], back[AOT_MAX_RANK];
  for (int32_t k = 0; k < t->rank; k++) {
    sizes[k] = t->sizes[order[k]];
    back[order[k]] = k;
  }
  stored = ag_reshape(a, stored, sizes, t->rank);
  return is_in_order(order, t->rank) ? stored : AG_OP(a, "permute", stored, em_list(a, back, (uint32_t)t->rank));
}

/* Where the elements of an as_strided result are in the storage of a dense operand: offset + sum i_d stride_d. */
static em_x_t positions(em_t *a, em_x_t sizes, em_x_t strides, int64_t offset, const ag_type_t *t) {
  ag_type_t zero = *t;
  em_x_t p;
  uint32_t d, k;
  zero.dtype = AOT_I64;
  zero.rank = 0;
  p = ag_add(a, ag_zeros(a, &zero), em_i(offset));
  for (d = 0; d < sizes.n; d++) {
    int64_t shape[AOT_MAX_RANK];
    em_x_t step = AG_OP(a, "arange", em_i(sizes.u.ints[d]), aot_arg_dtype(AOT_I64), em_none(), ag_device(t));
    for (k = 0; k < sizes.n; k++) shape[k] = k == d ? sizes.u.ints[d] : 1;
    step = ag_reshape(a, step, shape, (int32_t)sizes.n);
    p = ag_add(a, p, strides.u.ints[d] == 1 ? step : AG_OP(a, "mul.Scalar", step, em_i(strides.u.ints[d])));
  }
  return p;
}

/* The only view whose result depends on the operand's strides: supported over operands without gaps, through a
 * scatter-add into flat storage, which sums where the view overlaps itself. */
void ag_rule_as_strided(em_t *a) {
  em_x_t x = ag_arg(a, "self"), g = ag_g(a, 0), offset = ag_arg(a, "storage_offset"), where, flat;
  ag_type_t t = ag_type(a, x), storage = t;
  int64_t order[AOT_MAX_RANK];
  uint32_t id;
  if (!order_in_storage(a, x, order, &offset)) {
    em_fail(a, AOT_E_INVALID, "make the operand contiguous first, or use slices",
            "the derivative of as_strided over an operand with gaps in memory is not supported");
    return;
  }
  where = positions(a, ag_arg(a, "size"), ag_arg(a, "stride"), ag_int(a, offset, 0), &t);
  storage.sizes[0] = ag_product(a, t.sizes, (uint32_t)t.rank);
  storage.rank = 1;
  flat = ag_zeros(a, &storage);
  if (a->status != AOT_OK) return;
  id = (uint32_t)where.u.i;
  flat = AG_OP(a, "index_put", flat, aot_arg_values(&id, 1), g, em_b(1));
  ag_set(a, "self", as_seen(a, flat, order, &t));
}

void ag_rule_as_strided_scatter(em_t *a) {
  em_x_t x = ag_arg(a, "self"), src = ag_arg(a, "src"), size = ag_arg(a, "size"), stride = ag_arg(a, "stride"), g;
  em_x_t offset = ag_arg(a, "storage_offset");
  ag_type_t t = ag_type(a, x);
  int64_t order[AOT_MAX_RANK];
  if (!order_in_storage(a, x, order, &offset)) {
    em_fail(a, AOT_E_INVALID, "make self contiguous first",
            "the derivative of as_strided_scatter into a tensor with gaps in memory is not supported");
    return;
  }
  g = as_stored(a, ag_g(a, 0), order, t.rank);
  if (ag_needs(a, "src")) ag_set(a, "src", AG_OP(a, "as_strided", g, size, stride, offset));
  if (ag_needs(a, "self"))
    ag_set(a, "self",
           as_seen(a, AG_OP(a, "as_strided_scatter", g, ag_zeros_like(a, src), size, stride, offset), order, &t));
}
