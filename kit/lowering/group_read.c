#include "group_read.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

/* What the operators below fill in: dimensions of the result, from the first to the last. */
typedef struct reader {
  const lw_build_t *b;
  const lw_tensor_t *from, *result;
  lw_read_t *out;
  int wraps; /* negative indices count from the end, whatever the operator that reads says */
} reader_t;

static uint32_t value_row(const lw_build_t *b, uint32_t k) {
  return lw_arg(b, k)->kind == AOT_ARG_VALUE ? (uint32_t)lw_arg(b, k)->i : LW_NONE;
}

/* Argument k as a dimension of a tensor of that rank; -1: it is none. */
static int32_t dim_arg(const lw_build_t *b, uint32_t k, int32_t rank) {
  const int64_t d = lw_arg_int(b, k, 0);
  return d >= -rank && d < rank ? (int32_t)(d < 0 ? d + rank : d) : -1;
}

/* Dimension d of what is read lies along dimension `at` of the result. */
static int keep(const reader_t *r, int32_t d, int32_t at) {
  AOT_ASSERT(d >= 0 && d < r->from->rank && at >= 0 && at < AOT_MAX_RANK);
  r->out->access.strides[at] = r->from->strides[d];
  return at < r->result->rank && r->from->sizes[d] == r->result->sizes[at];
}

/* Dimension d is counted by an index tensor, whose own dimensions lie along those of the result from `at` on, the last
 * ones along the last of `rank`. Nothing can be read of no rows: the reference kernel reports. */
static int count(const reader_t *r, int32_t d, uint32_t row, int32_t at, int32_t rank, int wraps) {
  AOT_ASSERT(d >= 0 && d < r->from->rank && r->out->access.n_indices <= LP_INDICES);
  if (row == LW_NONE || lw_value(r->b, row)->kind != AOT_TYPE_TENSOR || r->out->access.n_indices == LP_INDICES)
    return 0;
  const uint32_t k = r->out->access.n_indices++;
  const lw_tensor_t *index = &lw_value(r->b, row)->t;
  if ((index->dtype != AOT_I64 && index->dtype != AOT_I32) || r->from->sizes[d] < 1 || index->rank > rank) return 0;
  r->out->access.indices[k] =
      (lp_index_t){.stride = r->from->strides[d], .size = r->from->sizes[d], .wraps = wraps || r->wraps};
  r->out->indices[k] = row;
  for (int32_t e = 0; e < index->rank; e++) {
    const int32_t to = at + rank - index->rank + e;
    if (to >= r->result->rank || (index->sizes[e] != 1 && index->sizes[e] != r->result->sizes[to])) return 0;
    r->out->index_strides[k][to] = index->sizes[e] == 1 ? 0 : index->strides[e];
  }
  return 1;
}

/* ---- by index tensors ---- */

/* embedding(weight, indices, ..) */
static int embedding(const reader_t *r) {
  const lw_tensor_t *index = lw_arg_tensor(r->b, 1);
  return index && r->from->rank == 2 && r->result->rank == index->rank + 1 &&
         count(r, 0, value_row(r->b, 1), 0, index->rank, 0) && keep(r, 1, index->rank);
}

/* index_select(self, dim, index) */
static int index_select(const reader_t *r) {
  const int32_t dim = dim_arg(r->b, 1, r->from->rank);
  const lw_tensor_t *index = lw_arg_tensor(r->b, 2);
  if (dim < 0 || !index || index->rank > 1 || lw_numel(index) != r->result->sizes[dim] ||
      r->result->rank != r->from->rank)
    return 0;
  for (int32_t d = 0; d < r->from->rank; d++)
    if (!(d == dim ? count(r, d, value_row(r->b, 2), d, 1, 0) : keep(r, d, d))) return 0;
  return 1;
}

/* gather(self, dim, index): other dimensions may be cut short */
static int gather(const reader_t *r) {
  const int32_t rank = r->from->rank, dim = dim_arg(r->b, 1, rank);
  const lw_tensor_t *index = lw_arg_tensor(r->b, 2);
  if (dim < 0 || !index || index->rank != rank || !lw_same_sizes(index, r->result)) return 0;
  for (int32_t d = 0; d < rank; d++) {
    if (d != dim && r->result->sizes[d] > r->from->sizes[d]) return 0;
    r->out->access.strides[d] = d == dim ? 0 : r->from->strides[d];
  }
  return count(r, dim, value_row(r->b, 2), 0, rank, 0);
}

/* index.Tensor(self, indices): indices are broadcast against each other; their dimensions are where the first one
 * does, or in front when others are between them */
static int index_tensor(const reader_t *r) {
  const aot_snap_arg_t *list = lw_arg(r->b, 1);
  const uint32_t *rows = AOT_SNAP_ROWS(r->b->s, uint32_t, operands) + list->i;
  int32_t first = -1, last = -1, n = 0, wide = 0;
  if (list->kind != AOT_ARG_VALUES || list->n > (uint32_t)r->from->rank) return 0;
  for (int32_t d = 0; d < (int32_t)list->n; d++) {
    if (rows[d] == AOT_NO_ID) continue;
    const lw_value_t *v = lw_value(r->b, rows[d]);
    if (v->kind != AOT_TYPE_TENSOR) return 0;
    if (v->t.rank > wide) wide = v->t.rank;
    if (first < 0) first = d;
    last = d;
    n++;
  }
  if (n == 0 || r->result->rank != r->from->rank - n + wide) return 0;
  const int32_t place = last - first + 1 == n ? first : 0;
  int32_t at = 0;
  for (int32_t d = 0; d < r->from->rank; d++) {
    const int is_indexed = d < (int32_t)list->n && rows[d] != AOT_NO_ID;
    if (at == place) at += wide; /* their own dimensions */
    if (!(is_indexed ? count(r, d, rows[d], place, wide, 1) : keep(r, d, at++))) return 0;
  }
  return 1;
}

/* ---- by bounds ---- */

/* Dimension d of the result is dimension `from` of what is read, -1: none, from place `begin` on; outside there is
 * something else. */
static void bound(const reader_t *r, int32_t d, int32_t from, int64_t begin) {
  AOT_ASSERT(d >= 0 && d < r->result->rank && from < r->from->rank);
  const int64_t size = from < 0 ? 1 : r->from->sizes[from];
  lp_access_t *a = &r->out->access;
  a->strides[d] = from < 0 ? 0 : r->from->strides[from];
  if (begin == 0 && size == r->result->sizes[d]) return;
  a->bounded |= 1u << d;
  a->begin[d] = begin;
  a->end[d] = begin + size;
}

/* constant_pad_nd(self, pad, value): two numbers a dimension, from the last one on; negative ones cut */
static int constant_pad(const reader_t *r) {
  const aot_snap_arg_t *value = lw_arg(r->b, 2);
  lp_arg_t *outside = &r->out->access.outside;
  int64_t pad[2 * AOT_MAX_RANK];
  const int32_t rank = r->result->rank, n = (int32_t)lw_arg_ints(r->b, 1, pad, 2 * AOT_MAX_RANK);
  if (r->from->rank != rank || n % 2 != 0 || n / 2 > rank) return 0;
  for (int32_t d = 0; d < rank; d++) {
    const int32_t at = 2 * (rank - 1 - d);
    const int64_t before = at < n ? pad[at] : 0, after = at < n ? pad[at + 1] : 0;
    if (r->from->sizes[d] + before + after != r->result->sizes[d]) return 0;
    bound(r, d, d, before);
  }
  outside->kind = value->kind == AOT_ARG_FLOAT ? LP_FLOAT : LP_INT;
  outside->f = lw_arg_float(r->b, 2, 0);
  if (outside->kind == LP_INT) outside->i = lw_arg_int(r->b, 2, 0);
  return value->kind == AOT_ARG_NONE || value->kind == AOT_ARG_FLOAT || value->kind == AOT_ARG_INT ||
         value->kind == AOT_ARG_BOOL;
}

/* A part of the result, from `start` along `dim`: what is read has all of it, or is without that dimension. */
static int part(const reader_t *r, int64_t dim, int64_t start, int is_one) {
  const int32_t rank = r->result->rank;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank || r->from->rank != rank - is_one) return 0;
  const int64_t size = r->result->sizes[dim];
  if (start < 0) start += size;
  if (is_one && (start < 0 || start >= size)) return 0;
  if (start < 0) start = 0;
  if (start > size) start = size;
  for (int32_t d = 0; d < rank; d++) {
    const int32_t from = d < dim ? d : d > dim ? d - is_one : is_one ? -1 : d;
    if (d != dim && r->from->sizes[from] != r->result->sizes[d]) return 0;
    if (d == dim && from >= 0 && r->from->sizes[from] > size - start) return 0;
    bound(r, d, from, d == dim ? start : 0);
  }
  r->out->access.outside.kind = LP_INT; /* 0 */
  return 1;
}

/* slice_backward(grad, sizes, dim, start, end, step) */
static int slice_backward(const reader_t *r) {
  return lw_arg_int(r->b, 5, 1) == 1 && part(r, lw_arg_int(r->b, 2, 0), lw_arg_int(r->b, 3, 0), 0);
}
/* select_backward(grad, sizes, dim, index) */
static int select_backward(const reader_t *r) { return part(r, lw_arg_int(r->b, 2, 0), lw_arg_int(r->b, 3, 0), 1); }

/* Outside of the part it is the first argument. */
static int scatter(const reader_t *r, int is_one) {
  const lw_tensor_t *whole = lw_arg_tensor(r->b, 0);
  if (!whole || whole->dtype != r->result->dtype || !lw_same_sizes(whole, r->result)) return 0;
  r->out->outside = value_row(r->b, 0);
  return part(r, lw_arg_int(r->b, 2, 0), lw_arg_int(r->b, 3, 0), is_one);
}
/* slice_scatter(self, src, dim, start, end, step) */
static int slice_scatter(const reader_t *r) { return lw_arg_int(r->b, 5, 1) == 1 && scatter(r, 0); }
/* select_scatter(self, src, dim, index) */
static int select_scatter(const reader_t *r) { return scatter(r, 1); }

/* flip(self, dims): from the last one on, with a stride below 0 */
static int flip(const reader_t *r) {
  int64_t dims[AOT_MAX_RANK];
  const int32_t rank = r->from->rank;
  const uint32_t n = lw_arg_ints(r->b, 1, dims, AOT_MAX_RANK);
  uint32_t flipped = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (dims[k] < -rank || dims[k] >= rank) return 0;
    flipped |= 1u << (dims[k] < 0 ? dims[k] + rank : dims[k]);
  }
  if (!lw_same_sizes(r->from, r->result)) return 0;
  for (int32_t d = 0; d < rank; d++) {
    const int is_flipped = flipped >> d & 1u && r->from->sizes[d] > 0;
    r->out->access.strides[d] = is_flipped ? -r->from->strides[d] : r->from->strides[d];
    r->out->flipped |= (uint32_t)is_flipped << d;
  }
  return 1;
}

/* ---- writing by index tensors ---- */

static int values_like_space(const lw_build_t *b, uint32_t k, lw_write_t *out) {
  const lw_tensor_t *t = lw_arg_tensor(b, k);
  if (!t) return 0;
  out->value = value_row(b, k);
  out->space = *t;
  memcpy(out->strides, t->strides, sizeof out->strides);
  return 1;
}

/* embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) */
static int embedding_backward(const lw_build_t *b, const reader_t *r, lw_write_t *out) {
  const int64_t padding = lw_arg_int(b, 3, -1);
  out->skipped = padding < 0 ? -1 : padding;
  return !lw_arg_int(b, 4, 0) && values_like_space(b, 0, out) && embedding(r);
}

/* index_add(self, dim, index, source, alpha), index_copy(self, dim, index, source) */
static int index_add(const lw_build_t *b, const reader_t *r, lw_write_t *out) {
  const aot_snap_arg_t *alpha = lw_arg(b, 4);
  out->init = value_row(b, 0);
  if (alpha->kind == AOT_ARG_FLOAT) out->times = (lp_arg_t){.kind = LP_FLOAT, .f = lw_arg_float(b, 4, 1)};
  else if (alpha->kind == AOT_ARG_INT && lw_arg_int(b, 4, 1) != 1)
    out->times = (lp_arg_t){.kind = LP_INT, .i = lw_arg_int(b, 4, 1)};
  else if (alpha->kind != AOT_ARG_NONE && alpha->kind != AOT_ARG_INT) return 0;
  return values_like_space(b, 3, out) && index_select(r);
}

/* scatter_add(self, dim, index, src), scatter(self, dim, index, src or value): src may be larger than index */
static int scatter_by(const lw_build_t *b, const reader_t *r, lw_write_t *out) {
  const lw_tensor_t *index = lw_arg_tensor(b, 2), *src = lw_arg_tensor(b, 3);
  const aot_snap_arg_t *number = lw_arg(b, 3);
  if (!index) return 0;
  out->init = value_row(b, 0);
  out->space = *index;
  if (src) {
    if (src->rank != index->rank) return 0;
    for (int32_t d = 0; d < src->rank; d++)
      if (src->sizes[d] < index->sizes[d]) return 0;
    out->value = value_row(b, 3);
    memcpy(out->strides, src->strides, sizeof out->strides);
  } else if (number->kind == AOT_ARG_FLOAT) {
    out->number = (lp_arg_t){.kind = LP_FLOAT, .f = lw_arg_float(b, 3, 0)};
  } else if (number->kind == AOT_ARG_INT || number->kind == AOT_ARG_BOOL) {
    out->number = (lp_arg_t){.kind = LP_INT, .i = lw_arg_int(b, 3, 0)};
  } else {
    return 0;
  }
  return gather(r);
}

/* index_put(self, indices, values, accumulate): the space is that of self at the indices, to which values broadcast */
static int index_put(const lw_build_t *b, const reader_t *r, lw_write_t *out) {
  const aot_snap_arg_t *list = lw_arg(b, 1);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + list->i;
  const lw_tensor_t *self = lw_arg_tensor(b, 0), *values = lw_arg_tensor(b, 2);
  int32_t first = -1, last = -1, n = 0, wide = 0;
  int64_t joint[AOT_MAX_RANK];
  if (!self || !values || list->kind != AOT_ARG_VALUES || list->n > (uint32_t)self->rank) return 0;
  for (int32_t d = 0; d < AOT_MAX_RANK; d++) joint[d] = 1;
  for (int32_t d = 0; d < (int32_t)list->n; d++) {
    if (rows[d] == AOT_NO_ID) continue;
    const lw_value_t *v = lw_value(b, rows[d]);
    if (v->kind != AOT_TYPE_TENSOR) return 0;
    if (v->t.rank > wide) wide = v->t.rank;
    if (first < 0) first = d;
    last = d;
    n++;
    for (int32_t e = 1; e <= v->t.rank; e++)
      if (v->t.sizes[v->t.rank - e] != 1) joint[AOT_MAX_RANK - e] = v->t.sizes[v->t.rank - e];
  }
  if (n == 0 || self->rank - n + wide > AOT_MAX_RANK) return 0;
  const int32_t place = last - first + 1 == n ? first : 0;
  out->init = value_row(b, 0);
  out->space = *self;
  out->space.rank = 0;
  for (int32_t d = 0; d < self->rank; d++) {
    if (out->space.rank == place)
      for (int32_t e = 0; e < wide; e++) out->space.sizes[out->space.rank++] = joint[AOT_MAX_RANK - wide + e];
    if (d >= (int32_t)list->n || rows[d] == AOT_NO_ID) out->space.sizes[out->space.rank++] = self->sizes[d];
  }
  AOT_ASSERT(out->space.rank == self->rank - n + wide); /* the indices' dimensions came once */
  const int32_t lead = out->space.rank - values->rank;
  if (lead < 0) return 0;
  out->value = value_row(b, 2);
  for (int32_t d = 0; d < values->rank; d++) {
    if (values->sizes[d] != 1 && values->sizes[d] != out->space.sizes[lead + d]) return 0;
    out->strides[lead + d] = values->sizes[d] == 1 ? 0 : values->strides[d];
  }
  out->to.access.adds = lw_arg_int(b, 3, 0) != 0;
  return index_tensor(r);
}

static const struct {
  const char *name;
  int (*write)(const lw_build_t *b, const reader_t *r, lw_write_t *out);
  int adds, wraps;
} writers[] = {
    {"aten._unsafe_index_put.default", index_put, 0, 0},
    {"aten.embedding_dense_backward.default", embedding_backward, 1, 0},
    {"aten.index_add.default", index_add, 1, 1},
    {"aten.index_copy.default", index_add, 0, 1},
    {"aten.index_put.default", index_put, 0, 0},
    {"aten.scatter.src", scatter_by, 0, 0},
    {"aten.scatter.value", scatter_by, 0, 0},
    {"aten.scatter_add.default", scatter_by, 1, 0},
};

int lw_write_find(aot_str_t name) {
  for (size_t k = 0; k < sizeof writers / sizeof writers[0]; k++)
    if (aot_str_eq(aot_str(writers[k].name), name)) return (int)k + 1;
  return 0;
}

/* Halves are not added one by one, which would round every sum: a target's own lowering adds them as floats. */
int lw_write(const lw_build_t *b, lw_write_t *out) {
  const int row = lw_op(b)->write;
  if (!row || b->node->n_results != 1) return 0;
  AOT_ASSERT((size_t)row <= sizeof writers / sizeof writers[0]);
  lw_tensor_t whole = *lw_type(b, 0);
  memset(out, 0, sizeof *out);
  out->to.outside = out->value = out->init = LW_NONE;
  out->skipped = -1;
  out->to.access.dtype = whole.dtype;
  out->to.access.adds = writers[row - 1].adds;
  lw_result_geometry(&whole);
  const reader_t r = {b, &whole, &out->space, &out->to, writers[row - 1].wraps};
  if (!lp_dtype_supported(whole.dtype) || !writers[row - 1].write(b, &r, out)) return 0;
  if (out->value != LW_NONE && lw_value(b, out->value)->t.dtype != whole.dtype) return 0;
  if (out->init != LW_NONE) {
    const lw_tensor_t *init = &lw_value(b, out->init)->t;
    if (init->dtype != whole.dtype || !lw_same_sizes(init, &whole)) return 0;
  }
  if (out->to.access.adds && (lp_value_dtype(whole.dtype) != whole.dtype || whole.dtype == AOT_BOOL)) return 0;
  for (int32_t d = 0; d < out->space.rank; d++)
    if (out->to.access.strides[d] == 0) out->serial |= 1u << d;
  return 1;
}

static const struct {
  const char *name;
  int (*read)(const reader_t *r);
  uint32_t from; /* argument that it reads */
} rows[] = {
    {"aten._unsafe_index.Tensor", index_tensor, 0},
    {"aten.constant_pad_nd.default", constant_pad, 0},
    {"aten.embedding.default", embedding, 0},
    {"aten.flip.default", flip, 0},
    {"aten.gather.default", gather, 0},
    {"aten.index.Tensor", index_tensor, 0},
    {"aten.index_select.default", index_select, 0},
    {"aten.select_backward.default", select_backward, 0},
    {"aten.select_scatter.default", select_scatter, 1},
    {"aten.slice_backward.default", slice_backward, 0},
    {"aten.slice_scatter.default", slice_scatter, 1},
};

int lw_read_find(aot_str_t name) {
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
    if (aot_str_eq(aot_str(rows[k].name), name)) return (int)k + 1;
  return 0;
}

int lw_read(const lw_build_t *b, lw_read_t *out) {
  const int row = lw_op(b)->read;
  if (!row || b->node->n_results != 1) return 0;
  AOT_ASSERT((size_t)row <= sizeof rows / sizeof rows[0]);
  const uint32_t from = rows[row - 1].from;
  const reader_t r = {b, lw_arg_tensor(b, from), lw_type(b, 0), out, 0};
  memset(out, 0, sizeof *out);
  out->outside = LW_NONE;
  if (!r.from || r.from->dtype != r.result->dtype || !lp_dtype_supported(r.from->dtype)) return 0;
  out->value = value_row(b, from);
  out->access.dtype = r.from->dtype;
  return rows[row - 1].read(&r);
}
