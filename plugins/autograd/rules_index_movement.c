/* Operators that move elements: concatenation, repetition, scattering. Their derivatives gather elements. */
#include "rules.h"

int ag_when_dense(em_t *a) { return !ag_is_set(a, "sparse", 0); }

/* The rows of an embedding's gradient were added up by index, those of padding_idx left out; by frequency: each divided
 * by how often its index occurs (PyTorch forgets this division in the second derivative). */
void ag_rule_embedding_backward(em_t *a) {
  em_x_t index = ag_arg(a, "indices"), g = ag_g(a, 0), d = AG_OP(a, "embedding", g, index), n, ones;
  ag_type_t tn = ag_type(a, g), ti = ag_type(a, index);
  uint32_t id = (uint32_t)index.u.i;
  d = AG_OP(a, "masked_fill.Scalar", d,
            AG_OP(a, "unsqueeze", ag_compare(a, "eq", index, ag_arg(a, "padding_idx")), em_i(-1)), em_i(0));
  if (ag_is_set(a, "scale_grad_by_freq", 0)) {
    tn.rank = 1;
    ti.dtype = tn.dtype;
    ones = ag_add(a, ag_zeros(a, &ti), em_i(1));
    n = AG_OP(a, "index_put", ag_zeros(a, &tn), aot_arg_values(&id, 1), ones, em_b(1));
    d = ag_div(a, d, AG_OP(a, "unsqueeze", AG_OP(a, "index.Tensor", n, aot_arg_values(&id, 1)), em_i(-1)));
  }
  ag_set(a, "grad_output", d);
}

/* Result i is operand i, broadcast. */
void ag_rule_each(em_t *a) {
  uint32_t i, n = ag_count(a, "tensors"), at = ag_at(a, "tensors");
  for (i = 0; i < n; i++)
    if (ag_needs_at(a, at, i)) ag_set_at(a, at, i, ag_g(a, i));
}

/* Each operand gets its stretch of g. Operands of shape [0] next to tensors of another rank count as absent. */
void ag_rule_cat(em_t *a) {
  em_x_t list = ag_arg(a, "tensors"), g = ag_g(a, 0);
  ag_type_t tg = ag_type(a, g);
  uint32_t i, at = ag_at(a, "tensors");
  uint32_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), 0), tg.rank);
  int64_t from = 0, to;
  for (i = 0; i < list.n && a->status == AOT_OK; i++) {
    ag_type_t t = ag_type(a, ag_v(list.u.ids[i]));
    if (t.rank == 1 && t.sizes[0] == 0 && tg.rank != 1) continue;
    to = ag_dim_op(a, AOT_EXPR_ADD, from, t.sizes[d]);
    if (ag_needs_at(a, at, i)) ag_set_at(a, at, i, AG_OP(a, "slice.Tensor", g, em_i(d), em_i(from), em_i(to), em_i(1)));
    from = to;
  }
}

void ag_rule_stack(em_t *a) {
  em_x_t g = ag_g(a, 0);
  uint32_t i, n = ag_count(a, "tensors"), at = ag_at(a, "tensors");
  int64_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), 0), ag_type(a, g).rank);
  for (i = 0; i < n; i++)
    if (ag_needs_at(a, at, i)) ag_set_at(a, at, i, AG_OP(a, "select.int", g, em_i(d), em_i(i)));
}

/* [r0 s0, r1 s1, ..] is [r0, s0, r1, s1, ..] summed over the r. */
void ag_rule_repeat(em_t *a) {
  em_x_t repeats = ag_arg(a, "repeats"), g = ag_g(a, 0);
  ag_type_t t = ag_type(a, ag_arg(a, "self"));
  int64_t sizes[AOT_MAX_RANK], dims[AOT_MAX_RANK];
  uint32_t i, n = 0, n_dims = 0, lead = repeats.n - (uint32_t)t.rank;
  for (i = 0; i < repeats.n; i++) {
    int64_t r = repeats.u.ints[i];
    if (i >= lead && r == 1) {
      sizes[n++] = t.sizes[i - lead];
      continue;
    }
    if (n + 2 > AOT_MAX_RANK) {
      em_fail(a, AOT_E_INVALID, "", "the derivative of repeat needs more than %d dimensions", AOT_MAX_RANK);
      return;
    }
    dims[n_dims++] = n;
    sizes[n++] = r;
    if (i >= lead) sizes[n++] = t.sizes[i - lead];
  }
  if (n_dims == 0) {
    ag_set(a, "self", g);
    return;
  }
  g = ag_reshape(a, g, sizes, (int32_t)n);
  ag_set(a, "self", AG_OP(a, "sum.dim_IntList", g, em_list(a, dims, n_dims), em_b(0)));
}

/* scatter.src overwrites self at index, scatter_add adds there. */
void ag_rule_scatter(em_t *a) {
  em_x_t dim = ag_arg(a, "dim"), index = ag_arg(a, "index"), g = ag_g(a, 0);
  int overwrites = !aot_str_eq(a->desc->name, aot_str("aten.scatter_add.default"));
  if (ag_needs(a, "self")) ag_set(a, "self", overwrites ? AG_OP(a, "scatter.value", g, dim, index, em_i(0)) : g);
  if (ag_needs(a, "src")) {
    ag_type_t want = ag_type(a, ag_arg(a, "src"));
    /* beyond the index nothing was used */
    ag_set(a, "src", ag_pad_to(a, AG_OP(a, "gather", g, dim, index), want.sizes));
  }
}

/* What masks take has a size that the run reports. Values of a constant size have as many, or they could not be
 * written. */
static em_x_t as_many(em_t *a, em_x_t taken, em_x_t values) {
  const ag_type_t t = ag_type(a, taken), want = ag_type(a, values);
  for (int32_t d = 0; d < want.rank; d++) {
    const int32_t at = t.rank - want.rank + d;
    if (at < 0 || want.sizes[d] == 1 || want.sizes[d] == t.sizes[at] || AOT_DIM_IS_SYM(want.sizes[d])) continue;
    taken = AG_OP(a, "index_select", taken, em_i(at),
                  AG_OP(a, "arange", em_i(want.sizes[d]), em_none(), em_none(), ag_device(&t)));
  }
  return taken;
}

/* x[indices] = values, or += values. A bool mask against one value stays of fixed size. */
void ag_rule_index_put(em_t *a) {
  em_x_t indices = ag_arg(a, "indices"), values = ag_arg(a, "values"), g = ag_g(a, 0);
  int accumulate = ag_is_set(a, "accumulate", 0);
  if (ag_needs(a, "self")) {
    ag_type_t scalar = ag_type(a, values);
    scalar.rank = 0;
    ag_set(a, "self", accumulate ? g : AG_OP(a, "index_put", g, indices, ag_zeros(a, &scalar), em_b(0)));
  }
  if (ag_needs(a, "values")) {
    ag_type_t mask = indices.n == 1 ? ag_type(a, ag_v(indices.u.ids[0])) : ag_type(a, g);
    ag_type_t tg = ag_type(a, g);
    if (mask.dtype == AOT_BOOL && ag_type(a, values).rank == 0) {
      int64_t sizes[AOT_MAX_RANK];
      int32_t d;
      for (d = 0; d < tg.rank; d++) sizes[d] = d < mask.rank ? mask.sizes[d] : 1;
      ag_set(a, "values", ag_where(a, ag_reshape(a, ag_v(indices.u.ids[0]), sizes, tg.rank), g, em_none()));
    } else ag_set(a, "values", as_many(a, AG_OP(a, "index.Tensor", g, indices), values));
  }
}

/* Elements of the flattened operand. */
void ag_rule_take(em_t *a) {
  em_x_t x = ag_arg(a, "self"), index = ag_arg(a, "index");
  ag_type_t t = ag_type(a, x);
  uint32_t id = (uint32_t)index.u.i;
  t.sizes[0] = ag_product(a, t.sizes, (uint32_t)t.rank);
  t.rank = 1;
  ag_set(a, "self",
         ag_reshape_like(a, AG_OP(a, "index_put", ag_zeros(a, &t), aot_arg_values(&id, 1), ag_g(a, 0), em_b(1)), x));
}

/* x.flat[index] = source, or += source */
void ag_rule_put(em_t *a) {
  em_x_t index = ag_arg(a, "index"), source = ag_arg(a, "source"), g = ag_g(a, 0);
  int accumulate = ag_is_set(a, "accumulate", 0);
  if (ag_needs(a, "self"))
    ag_set(a, "self", accumulate ? g : AG_OP(a, "put", g, index, ag_zeros_like(a, source), em_b(0)));
  if (ag_needs(a, "source")) ag_set(a, "source", ag_reshape_like(a, AG_OP(a, "take", g, index), source));
}

/* The k-th true place takes the k-th element of source: a running count of true places says which. What is false goes
 * to one more place before all, so that a source may have no elements. */
void ag_rule_masked_scatter(em_t *a) {
  em_x_t mask = ag_arg(a, "mask"), source = ag_arg(a, "source"), g = ag_g(a, 0), at, flat;
  ag_type_t tg = ag_type(a, g), ts = ag_type(a, source);
  int64_t n = ag_product(a, tg.sizes, (uint32_t)tg.rank), whole, end;
  uint32_t id;
  if (ag_needs(a, "self")) ag_set(a, "self", AG_OP(a, "masked_fill.Scalar", g, mask, em_i(0)));
  if (!ag_needs(a, "source")) return;
  flat = ag_where(a, mask, g, em_none());
  mask = ag_reshape(a, ag_expand(a, mask, tg.sizes, tg.rank), &n, 1);
  at = ag_where(a, mask, AG_OP(a, "cumsum", mask, em_i(0)), em_none());
  if (a->status != AOT_OK) return;
  id = (uint32_t)at.u.i;
  whole = ag_product(a, ts.sizes, (uint32_t)ts.rank);
  ts.sizes[0] = end = ag_dim_op(a, AOT_EXPR_ADD, whole, 1);
  ts.rank = 1;
  flat = AG_OP(a, "index_put", ag_zeros(a, &ts), aot_arg_values(&id, 1), ag_reshape(a, flat, &n, 1), em_b(1));
  flat = AG_OP(a, "slice.Tensor", flat, em_i(0), em_i(1), em_i(end));
  ag_set(a, "source", ag_reshape_like(a, flat, source));
}

/* The selected elements go back to the places they came from, in the shape that self and mask broadcast to. */
void ag_rule_masked_select(em_t *a) {
  em_x_t mask = ag_arg(a, "mask"), zeros = ag_zeros_like(a, ag_arg(a, "self"));
  ag_set(a, "self", AG_OP(a, "masked_scatter", ag_where(a, mask, zeros, em_none()), mask, ag_g(a, 0)));
}

/* Each tensor is padded along dim to n equal chunks, and what a chunk holds becomes a row: [.., n, its elements]. The
 * rows of all tensors stand side by side. */
void ag_rule_chunk_cat(em_t *a) {
  em_x_t list = ag_arg(a, "tensors"), g = ag_g(a, 0);
  int64_t n = ag_int(a, ag_arg(a, "num_chunks"), 1), from = 0, to;
  uint32_t i, at = ag_at(a, "tensors");
  for (i = 0; i < list.n && a->status == AOT_OK; i++, from = to) {
    ag_type_t t = ag_type(a, ag_v(list.u.ids[i]));
    uint32_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), 0), t.rank);
    int64_t rows = t.sizes[d], chunk = ag_dim_op(a, AOT_EXPR_FLOORDIV, ag_dim_op(a, AOT_EXPR_ADD, rows, n - 1), n);
    em_x_t part;
    t.sizes[d] = ag_dim_op(a, AOT_EXPR_MUL, chunk, n);
    to = ag_dim_op(a, AOT_EXPR_MUL, chunk, ag_product(a, t.sizes + d + 1, (uint32_t)t.rank - d - 1));
    to = ag_dim_op(a, AOT_EXPR_ADD, from, to);
    if (!ag_needs_at(a, at, i)) continue;
    part = AG_OP(a, "slice.Tensor", g, em_i(-1), em_i(from), em_i(to), em_i(1));
    part = ag_reshape(a, part, t.sizes, t.rank);
    ag_set_at(a, at, i, AG_OP(a, "slice.Tensor", part, em_i(d), em_i(0), em_i(rows), em_i(1)));
  }
}

/* [groups, c/groups] transposed; back: [c/groups, groups]. */
void ag_rule_channel_shuffle(em_t *a) {
  ag_type_t t = ag_type(a, ag_arg(a, "self"));
  int64_t groups = ag_dim_op(a, AOT_EXPR_FLOORDIV, t.sizes[1], ag_int(a, ag_arg(a, "groups"), 1));
  ag_set(a, "self", AG_OP(a, "channel_shuffle", ag_g(a, 0), em_i(groups)));
}

/* Blocks down the diagonal; vectors and numbers are blocks of one row. */
void ag_rule_block_diag(em_t *a) {
  em_x_t list = ag_arg(a, "tensors"), g = ag_g(a, 0);
  int64_t row = 0, column = 0;
  uint32_t i, at = ag_at(a, "tensors");
  for (i = 0; i < list.n && a->status == AOT_OK; i++) {
    em_x_t x = ag_v(list.u.ids[i]);
    ag_type_t t = ag_type(a, x);
    int64_t to_row = ag_dim_op(a, AOT_EXPR_ADD, row, t.rank == 2 ? t.sizes[0] : 1);
    int64_t to_column = ag_dim_op(a, AOT_EXPR_ADD, column, t.rank > 0 ? t.sizes[t.rank - 1] : 1);
    if (ag_needs_at(a, at, i)) {
      em_x_t block = AG_OP(a, "slice.Tensor", g, em_i(0), em_i(row), em_i(to_row), em_i(1));
      block = AG_OP(a, "slice.Tensor", block, em_i(1), em_i(column), em_i(to_column), em_i(1));
      ag_set_at(a, at, i, ag_reshape_like(a, block, x));
    }
    row = to_row;
    column = to_column;
  }
}

/* A collective whose reduction is its own adjoint. */
int ag_when_sum(em_t *a) {
  em_x_t op = ag_arg(a, "reduce_op");
  return op.kind == AOT_ARG_STR && op.n == 3 && memcmp(op.u.chars, "sum", 3) == 0;
}
