/* Views with parts: slices, splits, strides. */
#include "rules.h"

/* slice and narrow: g put back into zeros. */
void ag_rule_slice(ag_t *a) {
  ag_val_t x = ag_arg(a, "self"), dim = ag_arg(a, "dim"), start = ag_arg(a, "start"), end, step = ag_i(1);
  uint32_t at = ag_at(a, "end");
  if (at != AG_NO_ARG) {
    end = a->info.args[at];
    step = ag_arg(a, "step");
  } else end = ag_i(ag_dim_op(a, AOT_EXPR_ADD, ag_int(a, start, 0), ag_int(a, ag_arg(a, "length"), 0)));
  if (start.kind == AOT_ARG_NONE) start = ag_i(0);
  if (end.kind == AOT_ARG_NONE) end = ag_i(INT64_MAX);
  ag_set(a, "self", AG_OP(a, "slice_backward", ag_g(a, 0), ag_sizes(a, x), dim, start, end, step));
}

/* The cotangents of all results in order, zeros for absent ones. */
static ag_val_t all_cotangents(ag_t *a) {
  uint32_t i, n = a->info.n_results;
  uint32_t *ids = a->host->alloc(a->ctx, AOT_ARENA_SCRATCH, 4, (n ? n : 1) * sizeof *ids);
  if (!ids) {
    a->status = AOT_E_EXHAUSTED;
    return ag_none();
  }
  for (i = 0; i < n && a->status == AOT_OK; i++) {
    ag_val_t g = ag_g(a, i);
    if (g.kind == AOT_ARG_NONE) g = ag_zeros_like(a, ag_y(a, i));
    ids[i] = (uint32_t)g.u.i;
  }
  return aot_arg_values(ids, n);
}

static uint32_t only_cotangent(ag_t *a) {
  uint32_t i, n = 0, at = AG_NO_ARG;
  for (i = 0; i < a->info.n_results; i++)
    if (ag_g(a, i).kind != AOT_ARG_NONE) {
      n++;
      at = i;
    }
  return n == 1 ? at : AG_NO_ARG;
}

void ag_rule_split(ag_t *a) {
  ag_val_t dim = ag_arg(a, "dim");
  if (a->info.n_results == 1) ag_set(a, "self", ag_g(a, 0));
  else ag_set(a, "self", AG_OP(a, "cat", all_cotangents(a), dim));
}

void ag_rule_unbind(ag_t *a) {
  ag_val_t x = ag_arg(a, "self"), dim = ag_arg(a, "dim");
  uint32_t only = only_cotangent(a);
  if (only != AG_NO_ARG) ag_set(a, "self", AG_OP(a, "select_backward", ag_g(a, only), ag_sizes(a, x), dim, ag_i(only)));
  else ag_set(a, "self", AG_OP(a, "stack", all_cotangents(a), dim));
}

/* Where the elements of an as_strided result stand in the storage of a contiguous operand: offset + sum i_d stride_d. */
static ag_val_t positions(ag_t *a, ag_val_t sizes, ag_val_t strides, int64_t offset, const ag_type_t *t) {
  ag_type_t zero = *t;
  ag_val_t p;
  uint32_t d, k;
  zero.dtype = AOT_I64;
  zero.rank = 0;
  p = ag_add(a, ag_zeros(a, &zero), ag_i(offset));
  for (d = 0; d < sizes.n; d++) {
    int64_t shape[AOT_MAX_RANK];
    ag_val_t step = AG_OP(a, "arange", ag_i(sizes.u.ints[d]), aot_arg_dtype(AOT_I64), ag_none(), ag_device(t));
    for (k = 0; k < sizes.n; k++) shape[k] = k == d ? sizes.u.ints[d] : 1;
    step = ag_reshape(a, step, shape, (int32_t)sizes.n);
    p = ag_add(a, p, strides.u.ints[d] == 1 ? step : AG_OP(a, "mul.Scalar", step, ag_i(strides.u.ints[d])));
  }
  return p;
}

/* The only view whose result depends on the operand's strides: supported over contiguous operands, through a scatter-add
 * into flat storage, which sums where the view overlaps itself. */
void ag_rule_as_strided(ag_t *a) {
  ag_val_t x = ag_arg(a, "self"), g = ag_g(a, 0), where, flat;
  ag_type_t t = ag_type(a, x);
  aot_type_t exact;
  aot_value_t v;
  int64_t stride = 1, n = ag_product(a, t.sizes, (uint32_t)t.rank), offset;
  uint32_t id;
  int32_t d, plain = 1;
  memset(&exact, 0, sizeof exact);
  v.id = (uint32_t)x.u.i;
  if (a->status == AOT_OK) a->status = a->host->graph->value_type(a->prog, v, &exact);
  for (d = t.rank; d-- > 0 && a->status == AOT_OK; stride = ag_dim_op(a, AOT_EXPR_MUL, stride, t.sizes[d]))
    plain = plain && (t.sizes[d] == 1 || !exact.strides || exact.strides[d] == stride);
  if (!plain || exact.offset != 0) {
    ag_fail(a, "make the operand contiguous first, or use slices",
            "the derivative of as_strided over an operand that is not contiguous is not supported");
    return;
  }
  offset = ag_int(a, ag_arg(a, "storage_offset"), 0);
  where = positions(a, ag_arg(a, "size"), ag_arg(a, "stride"), offset, &t);
  t.sizes[0] = n;
  t.rank = 1;
  flat = ag_zeros(a, &t);
  if (a->status != AOT_OK) return;
  id = (uint32_t)where.u.i;
  flat = AG_OP(a, "index_put", flat, aot_arg_values(&id, 1), g, ag_b(1));
  ag_set(a, "self", ag_reshape_like(a, flat, x));
}
