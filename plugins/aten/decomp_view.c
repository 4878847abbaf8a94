/* Views and movement in terms of view, permute, expand, slice, select, cat, where. */
#include "at_formula.h"

#include <string.h>

static aot_type_t self_type(em_t *e) { return at_type(e, em_in(e, "self")); }

/* ---- reshapes: the result's sizes are known; a copy first where there is no view ---- */

aot_status_t at_dc_reshape(em_t *e, aot_value_t *out) {
  aot_type_t to = at_result_type(e, 0);
  return at_give(e, at_reshaped(e, IN("self"), to.sizes, to.rank), out);
}

aot_status_t at_dc_contiguous(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x);
  int64_t format = at_in_int(e, "memory_format", AOT_MEMORY_CONTIGUOUS);
  int already =
      format == AOT_MEMORY_CONTIGUOUS ? at_is_contiguous(at_infer(e), &t) : at_is_channels_last(at_infer(e), &t);
  if (already || format == AOT_MEMORY_PRESERVE) return at_give(e, x, out);
  return at_give(e, EM(e, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, format)), out);
}

aot_status_t at_dc_identity(em_t *e, aot_value_t *out) { return at_give(e, IN("self"), out); }

static int has_gradients(const em_t *e) {
  const aot_graph_api_t *api = e->host->graph;
  for (uint32_t g = 1; g < api->n_graphs(e->prog); g++) {
    int32_t kind = 0;
    if (api->graph_info(e->prog, (aot_graph_t){g}, &kind, NULL) != AOT_OK) continue;
    if (kind == AOT_GRAPH_JOINT || kind == AOT_GRAPH_BACKWARD || kind == AOT_GRAPH_STEP) return 1;
  }
  return 0;
}

/* Nothing is left of the history once gradients are derived. Before, as in a program that is exported, it is what is
 * added to the value: 0 where it is finite, with its gradient. */
aot_status_t at_dc_with_history(em_t *e, aot_value_t *out) {
  const em_x_t history = IN("history");
  if (has_gradients(e) || !(at_result_type(e, 0).flags & AOT_TYPE_REQUIRES_GRAD)) return at_give(e, IN("value"), out);
  return at_give(e, ADD(EM(e, "detach", IN("value")), SUB(history, EM(e, "detach", history))), out);
}

/* ---- permutations ---- */

/* adjoint, mH, matrix_H */
static int is_adjoint(const em_t *e) { return strstr(at_name(e), "adjoint") || strstr(at_name(e), "H."); }

aot_status_t at_dc_transpose(em_t *e, aot_value_t *out) {
  em_x_t a = em_i(-2), b = em_i(-1);
  if (self_type(e).rank < 2) return at_give(e, EM(e, is_adjoint(e) ? "conj" : "alias", IN("self")), out);
  if (at_in_has(e, "axis0")) a = IN("axis0"), b = IN("axis1");
  em_x_t x = EM(e, "transpose.int", IN("self"), a, b);
  return at_give(e, is_adjoint(e) ? EM(e, "conj", x) : x, out);
}

aot_status_t at_dc_numpy_T(em_t *e, aot_value_t *out) {
  int64_t order[AOT_MAX_RANK];
  int32_t d, rank = self_type(e).rank;
  for (d = 0; d < rank; d++) order[d] = rank - 1 - d;
  return at_give(e, EM(e, "permute", IN("self"), em_list(e, order, (uint32_t)rank)), out);
}

aot_status_t at_dc_movedim(em_t *e, aot_value_t *out) {
  const int64_t *from, *to;
  uint32_t n = at_in_ints(e, "source", &from), m = at_in_ints(e, "destination", &to), i, taken, filled;
  int64_t order[AOT_MAX_RANK];
  int32_t rank = self_type(e).rank, d, next = 0;
  if (n != m || e->status != AOT_OK) return AOT_E_INVALID;
  taken = at_dim_mask(at_infer(e), from, n, rank);
  filled = at_dim_mask(at_infer(e), to, n, rank);
  for (i = 0; i < n; i++) order[at_wrap(at_infer(e), to[i], rank)] = at_wrap(at_infer(e), from[i], rank);
  for (d = 0; d < rank; d++) {
    if (filled >> d & 1) continue;
    while (taken >> next & 1) next++;
    order[d] = next++;
  }
  return at_give(e, EM(e, "permute", IN("self"), em_list(e, order, (uint32_t)rank)), out);
}

/* ---- expands ---- */

aot_status_t at_dc_expand(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, EM(e, "expand", IN("self"), em_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_broadcast_tensors(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  uint32_t i;
  for (i = 0; i < e->info.n_results && i < list.n && e->status == AOT_OK; i++) {
    aot_type_t t = at_result_type(e, i);
    aot_value_t v;
    uint32_t mark = at_infer(e)->n_pool;
    v.id = list.u.ids[i];
    out[i] = VAL(at_expanded(e, em_v(v), t.sizes, t.rank));
    at_infer(e)->n_pool = mark;
  }
  return e->status;
}

/* ---- parts ---- */

aot_status_t at_dc_narrow(em_t *e, aot_value_t *out) {
  aot_type_t t = self_type(e);
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank);
  int64_t start = at_in_int(e, "start", 0);
  start = at_wrapped(at_infer(e), start, t.sizes[dim]);
  return at_give(e,
                 EM(e, "slice.Tensor", IN("self"), em_i(dim), em_i(start),
                    em_i(at_add(at_infer(e), start, at_in_int(e, "length", 0)))),
                 out);
}

/* split, split_with_sizes, chunk: a slice each */
aot_status_t at_dc_split(em_t *e, aot_value_t *out) {
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), self_type(e).rank);
  int64_t start = 0;
  uint32_t i;
  for (i = 0; i < e->info.n_results && e->status == AOT_OK; i++) {
    int64_t end = at_add(at_infer(e), start, at_result_type(e, i).sizes[dim]);
    out[i] = VAL(EM(e, "slice.Tensor", IN("self"), em_i(dim), em_i(start), em_i(end)));
    start = end;
  }
  return e->status;
}

aot_status_t at_dc_unsafe_chunk(em_t *e, aot_value_t *out) {
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), self_type(e).rank);
  int64_t *sizes = at_dims(at_infer(e), (int32_t)e->info.n_results);
  uint32_t i;
  em_x_t pieces;
  for (i = 0; i < e->info.n_results; i++) sizes[i] = at_result_type(e, i).sizes[dim];
  pieces = EM(e, "unsafe_split_with_sizes", IN("self"), em_list(e, sizes, e->info.n_results), em_i(dim));
  for (i = 0; i < e->info.n_results; i++) out[i] = VAL(em_nth(pieces, i));
  return e->status;
}

aot_status_t at_dc_unbind(em_t *e, aot_value_t *out) {
  uint32_t i;
  for (i = 0; i < e->info.n_results && e->status == AOT_OK; i++)
    out[i] = VAL(EM(e, "select.int", IN("self"), IN("dim"), em_i(i)));
  return e->status;
}

/* ---- movement ---- */

aot_status_t at_dc_stack(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), at_result_type(e, 0).rank);
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, list.n * sizeof *ids), i;
  if (ids == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < list.n; i++) {
    aot_value_t v;
    v.id = list.u.ids[i];
    ids[i] = VAL(at_unsqueeze(e, em_v(v), dim)).id;
  }
  return at_give(e, EM(e, "cat", aot_arg_values(ids, list.n), em_i(dim)), out);
}

/* repeat: [a, b] times (r, s) is [1, a, 1, b] expanded to [r, a, s, b], merged */
aot_status_t at_dc_repeat(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t from = TYPE(x), to = at_result_type(e, 0);
  int64_t split[2 * AOT_MAX_RANK], grown[2 * AOT_MAX_RANK];
  int32_t d, lead = to.rank - from.rank, k = 0;
  if (2 * to.rank > AOT_MAX_RANK) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s of a tensor of rank %d is not rewritten", at_name(e), (int)to.rank);
    return e->status;
  }
  for (d = 0; d < to.rank; d++) {
    int64_t size = d < lead ? 1 : from.sizes[d - lead];
    int64_t times = at_hint(at_infer(e), size) == 0 ? 1 : at_floordiv(at_infer(e), to.sizes[d], size);
    split[k] = 1;
    grown[k++] = times;
    split[k] = grown[k] = size;
    k++;
  }
  x = at_reshaped(e, x, split, k);
  x = EM(e, "clone", at_expanded(e, x, grown, k), aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
  return at_give(e, at_reshaped(e, x, to.sizes, to.rank), out);
}

/* repeat_interleave: [a] is [a, 1] expanded to [a, r], merged */
aot_status_t at_dc_repeat_interleave(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t sizes[AOT_MAX_RANK + 1], flat;
  int32_t dim, d;
  if (!at_in_has(e, "dim")) {
    flat = at_numel(at_infer(e), t.sizes, t.rank);
    x = at_reshaped(e, x, &flat, 1);
    t = TYPE(x);
  }
  dim = at_in_has(e, "dim") ? at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank) : 0;
  for (d = 0; d <= t.rank; d++)
    sizes[d] = d <= dim ? t.sizes[d] : d == dim + 1 ? at_in_int(e, "repeats", 1) : t.sizes[d - 1];
  x = at_expanded(e, at_unsqueeze(e, x, dim + 1), sizes, t.rank + 1);
  x = EM(e, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
  return at_give(e, at_reshaped(e, x, to.sizes, to.rank), out);
}

/* repeat_interleave.self_Tensor: rows by number. How many there are is what the node declares: the symbol is the
 * same one. */
aot_status_t at_dc_repeat_interleave_counts(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), counts = IN("repeats"), rows;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0), r;
  int64_t flat = at_numel(at_infer(e), t.sizes, t.rank);
  int32_t dim = at_in_has(e, "dim") ? at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank) : 0;
  if (!at_in_has(e, "dim") || t.rank == 0) x = at_reshaped(e, x, &flat, 1);
  t = TYPE(x);
  r = TYPE(counts);
  if (r.rank == 0 || (r.rank == 1 && r.sizes[0] == 1))
    counts = at_expanded(e, at_reshaped(e, counts, (int64_t[]){1}, 1), &t.sizes[dim], 1);
  rows = EM(e, "repeat_interleave.Tensor", counts, IN("output_size"));
  if (e->status != AOT_OK) return e->status;
  r = TYPE(rows);
  r.sizes = &to.sizes[dim];
  e->status = e->host->edit->type_set(e->prog, em_value(e, rows), &r);
  return at_give(e, EM(e, "index_select", x, em_i(dim), rows), out);
}

/* where, nonzero_numpy: columns of nonzero, as many rows as the results have elements */
aot_status_t at_dc_coordinates(em_t *e, aot_value_t *out) {
  em_x_t x = IN(at_in_has(e, "condition") ? "condition" : "self"), places;
  int64_t n = at_result_type(e, 0).sizes[0], one[1] = {1};
  aot_type_t t;
  uint32_t k;
  if (TYPE(x).rank == 0) x = at_reshaped(e, x, one, 1);
  places = EM(e, "nonzero", x);
  if (e->status != AOT_OK) return e->status;
  t = TYPE(places);
  t.sizes = (int64_t[]){n, e->info.n_results};
  t.strides = (int64_t[]){1, n};
  e->status = e->host->edit->type_set(e->prog, em_value(e, places), &t);
  for (k = 0; k < e->info.n_results; k++) out[k] = em_value(e, EM(e, "select.int", places, em_i(1), em_i(k)));
  return e->status;
}

aot_status_t at_dc_one_hot(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = at_result_type(e, 0);
  em_x_t classes = at_range(e, t.sizes[t.rank - 1], x);
  return at_give(e, em_cast(e, EQ(at_unsqueeze(e, x, t.rank - 1), classes), AOT_I64), out);
}

/* tril keeps column <= row + diagonal, triu column >= row + diagonal */
aot_status_t at_dc_tri(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x);
  int lower = strcmp(at_name(e), "aten.tril.default") == 0;
  em_x_t rows = at_unsqueeze(e, at_range(e, t.sizes[t.rank - 2], x), 1), columns = at_range(e, t.sizes[t.rank - 1], x);
  em_x_t border = at_in_int(e, "diagonal", 0) ? ADD(rows, IN("diagonal")) : rows;
  em_x_t keep = lower ? LE(columns, border) : GE(columns, border);
  return at_give_cast(e, WHERE(keep, x, em_i(0)), out);
}

aot_status_t at_dc_roll(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x);
  const int64_t *shifts, *dims;
  uint32_t n = at_in_ints(e, "shifts", &shifts), m = at_in_ints(e, "dims", &dims), i;
  int64_t flat = at_numel(at_infer(e), t.sizes, t.rank);
  if (m == 0 && n == 1) x = at_reshaped(e, x, &flat, 1);
  for (i = 0; i < n && e->status == AOT_OK; i++) {
    int32_t dim = m == 0 ? 0 : at_wrap(at_infer(e), dims[i], t.rank);
    int64_t size = m == 0 ? flat : t.sizes[dim], cut;
    uint32_t ids[2];
    if (AOT_DIM_IS_SYM(size) || size == 0) {
      if (size == 0) continue;
      em_fail(e, AOT_E_UNIMPLEMENTED, "", "roll along a symbolic dimension is not rewritten");
      return e->status;
    }
    cut = size - ((shifts[i] % size) + size) % size;
    ids[0] = VAL(EM(e, "slice.Tensor", x, em_i(dim), em_i(cut), em_i(size))).id;
    ids[1] = VAL(EM(e, "slice.Tensor", x, em_i(dim), em_i(0), em_i(cut))).id;
    if (e->status == AOT_OK) x = EM(e, "cat", aot_arg_values(ids, 2), em_i(dim));
  }
  return at_give(e, at_reshaped(e, x, t.sizes, t.rank), out);
}

/* constant_pad_nd: dimension by dimension, what is cut first, then borders */
aot_status_t at_dc_constant_pad(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), value = at_in_has(e, "value") ? IN("value") : em_i(0);
  const int64_t *pad;
  uint32_t n = at_in_ints(e, "pad", &pad), i, side;
  for (i = 0; i < n / 2 && e->status == AOT_OK; i++) {
    int32_t dim = TYPE(x).rank - 1 - (int32_t)i;
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    aot_type_t t = TYPE(x);
    uint32_t ids[3], n_ids = 0;
    if (before < 0 || after < 0) {
      int64_t end = after < 0 ? at_add(at_infer(e), t.sizes[dim], after) : t.sizes[dim];
      x = EM(e, "slice.Tensor", x, em_i(dim), em_i(before < 0 ? -before : 0), em_i(end));
    }
    for (side = 0; side < 3; side++) {
      int64_t sizes[AOT_MAX_RANK], width = side == 0 ? before : after;
      if (side == 1) {
        ids[n_ids++] = VAL(x).id;
      } else if (width > 0) {
        memcpy(sizes, TYPE(x).sizes, (size_t)t.rank * sizeof *sizes);
        sizes[dim] = width;
        ids[n_ids++] = VAL(at_filled(e, sizes, t.rank, value, t.dtype, x)).id;
      }
    }
    if (n_ids > 1 && e->status == AOT_OK) x = EM(e, "cat", aot_arg_values(ids, n_ids), em_i(dim));
  }
  return at_give(e, x, out);
}

/* ---- scatters and gathers ---- */

aot_status_t at_dc_select_scatter(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x);
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank);
  int64_t index = at_in_int(e, "index", 0);
  index = at_wrapped(at_infer(e), index, t.sizes[dim]);
  return at_give(e,
                 EM(e, "slice_scatter", x, at_unsqueeze(e, IN("src"), dim), em_i(dim), em_i(index),
                    em_i(at_add(at_infer(e), index, 1))),
                 out);
}

static em_x_t zeros_of_result(em_t *e, em_x_t like) {
  aot_type_t t = at_result_type(e, 0);
  return at_filled(e, t.sizes, t.rank, em_i(0), t.dtype, like);
}

aot_status_t at_dc_slice_backward(em_t *e, aot_value_t *out) {
  em_x_t g = IN("grad_output");
  return at_give(e, EM(e, "slice_scatter", zeros_of_result(e, g), g, IN("dim"), IN("start"), IN("end"), IN("step")),
                 out);
}

aot_status_t at_dc_select_backward(em_t *e, aot_value_t *out) {
  em_x_t g = IN("grad_output");
  return at_give(e, EM(e, "select_scatter", zeros_of_result(e, g), g, IN("dim"), IN("index")), out);
}

aot_status_t at_dc_diagonal_backward(em_t *e, aot_value_t *out) {
  em_x_t g = IN("grad_output");
  return at_give(e, EM(e, "diagonal_scatter", zeros_of_result(e, g), g, IN("offset"), IN("dim1"), IN("dim2")), out);
}

/* x as it is, or a 0-dim tensor with one dimension. */
static em_x_t at_least_1d(em_t *e, em_x_t x) {
  static const int64_t one = 1;
  return x.kind == AOT_ARG_VALUE && TYPE(x).rank == 0 ? at_reshaped(e, x, &one, 1) : x;
}

/* index along one dimension as advanced indexing: [None, .., index] */
static em_x_t dim_index(em_t *e, uint32_t ids[AOT_MAX_RANK], int32_t rank) {
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), rank), d;
  for (d = 0; d < dim; d++) ids[d] = AOT_NO_ID;
  ids[dim] = VAL(at_least_1d(e, IN("index"))).id;
  return aot_arg_values(ids, (uint32_t)dim + 1);
}

static aot_status_t give_reshaped(em_t *e, em_x_t x, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, at_reshaped(e, x, t.sizes, t.rank), out);
}

aot_status_t at_dc_index_select(em_t *e, aot_value_t *out) {
  uint32_t ids[AOT_MAX_RANK];
  em_x_t x = at_least_1d(e, IN("self"));
  return give_reshaped(e, EM(e, "index.Tensor", x, dim_index(e, ids, TYPE(x).rank)), out);
}

/* index_add, index_copy, index_fill: values put or added at the index */
aot_status_t at_dc_index_dim(em_t *e, aot_value_t *out) {
  uint32_t ids[AOT_MAX_RANK];
  em_x_t x = at_least_1d(e, IN("self")), values = at_in_has(e, "source") ? at_least_1d(e, IN("source")) : IN("value");
  aot_type_t t = TYPE(x);
  int add = strstr(at_name(e), "index_add") != NULL;
  if (values.kind != AOT_ARG_VALUE) values = at_filled(e, NULL, 0, values, t.dtype, x);
  if (at_in_has(e, "alpha") && em_in_float(e, "alpha", 1.0) != 1.0)
    values = em_cast(e, MUL(values, IN("alpha")), t.dtype);
  return give_reshaped(e, EM(e, "index_put", x, dim_index(e, ids, t.rank), values, em_b(add)), out);
}

aot_status_t at_dc_embedding(em_t *e, aot_value_t *out) {
  uint32_t id = VAL(IN("indices")).id;
  return at_give(e, EM(e, "index.Tensor", IN("weight"), aot_arg_values(&id, 1)), out);
}

/* Rows of the gradient added up by index; those at padding_idx count for nothing. */
aot_status_t at_dc_embedding_backward(em_t *e, aot_value_t *out) {
  em_x_t g = at_math(e, IN("grad_output")), index = IN("indices"), sum;
  aot_type_t t = at_result_type(e, 0), ti = TYPE(index);
  int64_t padding = at_in_int(e, "padding_idx", -1);
  uint32_t id;
  if (at_in_int(e, "scale_grad_by_freq", 0))
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "embedding_dense_backward with scale_grad_by_freq is not rewritten");
  if (padding >= 0) g = WHERE(at_unsqueeze(e, EQ(index, em_i(padding)), ti.rank), em_f(0.0), g);
  id = VAL(index).id;
  sum = EM(e, "index_put", at_filled(e, t.sizes, t.rank, em_f(0.0), TYPE(g).dtype, g), aot_arg_values(&id, 1), g,
           em_b(1));
  return at_give_cast(e, sum, out);
}
