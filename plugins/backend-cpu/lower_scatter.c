/* Writing and adding by index, where no loop does: scatter, scatter_add, index_add, index_copy, index_put, one_hot,
 * the gradient of an embedding. Indices are int64 or int32; sums are of float32, float64, int64 or int32. Masks,
 * reductions other than sums: the reference kernel. */
#include "scatter_kernels.h"
#include "target.h"

#include <string.h>

typedef struct scatter_step {
  bc_scatter_t scatter;
  lw_ref_t to, from, index[BC_SCATTER_INDICES];
  uint64_t number; /* in place of `from`, as the dtype has it */
} scatter_step_t;

typedef struct scatter_job {
  bc_scatter_t scatter;
  const void *from;
  void *to;
  bc_bad_index_t wrong; /* every part meets the same one */
} scatter_job_t;

static void run_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  scatter_job_t *j = arg;
  bc_bad_index_t wrong = {0, 0};
  if (!bc_scatter(&j->scatter, j->from, j->to, begin, end, &wrong) && part == 0) j->wrong = wrong;
}

static aot_status_t run_scatter(const lw_frame_t *f, void *payload) {
  const scatter_step_t *p = payload;
  scatter_job_t j = {.scatter = p->scatter, .to = lw_at(f, p->to)};
  j.from = p->from.storage == LW_NONE ? (const void *)&p->number : lw_at(f, p->from);
  for (int32_t k = 0; k < p->scatter.n_indices; k++) j.scatter.index[k].data = lw_at(f, p->index[k]);
  bc_parallel(f->workers, bc_scatter_slice(&p->scatter), 64, run_part, &j);
  if (j.wrong.size == 0) return AOT_OK;
  return lw_fail(f->error, AOT_E_RANGE, "bad-index", "index %lld is out of range for a dimension of size %lld",
                 (long long)j.wrong.index, (long long)j.wrong.size);
}

static int can_add(int32_t dtype) {
  return dtype == AOT_F32 || dtype == AOT_F64 || dtype == AOT_I64 || dtype == AOT_I32;
}

/* Where PyTorch rounds halves after each sum; elsewhere they are added as floats. */
static int can_add_rounded(int32_t dtype) { return can_add(dtype) || dtype == AOT_BF16 || dtype == AOT_F16; }

static int can_set(int32_t dtype) { return aot_dtype_size(dtype) <= 8; }

static int is_index(const lw_tensor_t *t) { return t && (t->dtype == AOT_I64 || t->dtype == AOT_I32); }

/* from NULL: p->number */
static aot_status_t add_step(lw_build_t *b, const bc_scatter_t *s, uint64_t number, const lw_tensor_t *to,
                             const lw_tensor_t *from, const lw_tensor_t *const *indices) {
  scatter_step_t *p;
  for (int32_t d = 0; d < s->rank; d++)
    if (s->sizes[d] == 0) return AOT_OK;
  for (int32_t k = 0; k < s->n_indices; k++)
    if (s->index[k].size == 0) /* the space is not empty, so there are indices, all out of range */
      return lw_fail(b->error, AOT_E_RANGE, "bad-index", "indices into a dimension of size 0");
  LW_STEP(b, run_scatter, p);
  p->scatter = *s;
  p->number = number;
  p->to = lw_use_update(b, to);
  p->from = lw_use_read(b, from);
  for (int32_t k = 0; k < s->n_indices; k++) p->index[k] = lw_use_read(b, indices[k]);
  bc_scatter_arrange(&p->scatter);
  return AOT_OK;
}

/* The result, with the elements of self. */
static aot_status_t copy_self(lw_build_t *b, lw_tensor_t *out) {
  AOT_TRY(lw_result(b, 0, out));
  return lw_copy(b, out, lw_arg_tensor(b, 0));
}

static int is_like_self(const lw_build_t *b) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0);
  return self && lw_type(b, 0)->dtype == self->dtype && lw_same_sizes(lw_type(b, 0), self);
}

static int32_t dim_arg(const lw_build_t *b, uint32_t k, int32_t rank) {
  const int64_t d = lw_arg_int(b, k, 0);
  return d >= -rank && d < rank ? (int32_t)(d < 0 ? d + rank : d) : -1;
}

/* Argument k as an element of the dtype; 0: it cannot be one. */
static int number_arg(const lw_build_t *b, uint32_t k, int32_t dtype, uint64_t *out) {
  const int32_t kind = lw_arg(b, k)->kind;
  const float f = (float)lw_arg_float(b, k, 0);
  const double d = lw_arg_float(b, k, 0);
  const int64_t i = lw_arg_int(b, k, 0);
  *out = 0;
  if (kind != AOT_ARG_INT && kind != AOT_ARG_FLOAT && kind != AOT_ARG_BOOL) return 0;
  if (dtype == AOT_F32) memcpy(out, &f, sizeof f);
  else if (dtype == AOT_F64) memcpy(out, &d, sizeof d);
  else if (kind == AOT_ARG_FLOAT || dtype != AOT_I64) return 0;
  else memcpy(out, &i, sizeof i);
  return 1;
}

/* ---- scatter(self, dim, index, src or value) ---- */

static aot_status_t scatter(lw_build_t *b, int adds) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0), *index = lw_arg_tensor(b, 2), *src = lw_arg_tensor(b, 3);
  const int32_t dim = self ? dim_arg(b, 1, self->rank) : -1;
  lw_tensor_t out;
  uint64_t number = 0;
  if (dim < 0 || !is_like_self(b) || !is_index(index) || index->rank != self->rank ||
      lw_arg(b, 4)->kind != AOT_ARG_NONE)
    return LW_DECLINED;
  if (!(adds ? can_add(self->dtype) : can_set(self->dtype))) return LW_DECLINED;
  if (src ? src->dtype != self->dtype || src->rank != self->rank : !number_arg(b, 3, self->dtype, &number))
    return LW_DECLINED;
  for (int32_t d = 0; d < self->rank; d++)
    if ((d != dim && index->sizes[d] > self->sizes[d]) || (src && index->sizes[d] > src->sizes[d])) return LW_DECLINED;
  AOT_TRY(copy_self(b, &out));
  bc_scatter_t s = {.dtype = self->dtype, .adds = adds, .rank = self->rank, .n_indices = 1};
  s.index[0] = (bc_scatter_index_t){.dtype = index->dtype, .size = self->sizes[dim], .step = out.strides[dim]};
  for (int32_t d = 0; d < self->rank; d++) {
    s.sizes[d] = index->sizes[d];
    s.to_strides[d] = d == dim ? 0 : out.strides[d];
    s.from_strides[d] = src ? src->strides[d] : 0;
    s.index[0].strides[d] = index->strides[d];
  }
  return add_step(b, &s, number, &out, src, &index);
}

static aot_status_t lower_scatter(lw_build_t *b) { return scatter(b, 0); }
static aot_status_t lower_scatter_add(lw_build_t *b) { return scatter(b, 1); }

/* ---- index_add(self, dim, index, source, alpha), index_copy(self, dim, index, source) ---- */

static aot_status_t slices(lw_build_t *b, int adds) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0), *index = lw_arg_tensor(b, 2), *source = lw_arg_tensor(b, 3);
  const int32_t dim = self ? dim_arg(b, 1, self->rank) : -1;
  lw_tensor_t out;
  if (dim < 0 || !is_like_self(b) || !is_index(index) || index->rank > 1 || !source || source->rank != self->rank ||
      source->dtype != self->dtype || source->sizes[dim] != lw_numel(index))
    return LW_DECLINED;
  if (!adds ? !can_set(self->dtype) : self->rank == 1 ? !can_add_rounded(self->dtype) : !can_add(self->dtype))
    return LW_DECLINED;
  if (adds && lw_arg(b, 4)->kind != AOT_ARG_NONE && lw_arg_float(b, 4, 0) != 1) return LW_DECLINED;
  for (int32_t d = 0; d < self->rank; d++)
    if (d != dim && source->sizes[d] != self->sizes[d]) return LW_DECLINED;
  AOT_TRY(copy_self(b, &out));
  bc_scatter_t s = {.dtype = self->dtype, .adds = adds, .rank = self->rank, .n_indices = 1};
  s.index[0] = (bc_scatter_index_t){.dtype = index->dtype, .size = self->sizes[dim], .step = out.strides[dim]};
  for (int32_t d = 0; d < self->rank; d++) {
    s.sizes[d] = source->sizes[d];
    s.to_strides[d] = d == dim ? 0 : out.strides[d];
    s.from_strides[d] = source->strides[d];
  }
  s.index[0].strides[dim] = index->rank ? index->strides[0] : 0;
  return add_step(b, &s, 0, &out, source, &index);
}

static aot_status_t lower_index_add(lw_build_t *b) { return slices(b, 1); }
static aot_status_t lower_index_copy(lw_build_t *b) { return slices(b, 0); }

/* ---- index_put(self, indices, values, accumulate) ---- */

/* Strides of t in a space whose last dimensions it has; 0: it does not fit. */
static int expand(const lw_tensor_t *t, const bc_scatter_t *s, int32_t first, int32_t rank, int64_t *strides) {
  if (t->rank > rank) return 0;
  for (int32_t e = 0; e < t->rank; e++) {
    const int32_t d = first + rank - t->rank + e;
    if (t->sizes[e] != 1 && t->sizes[e] != s->sizes[d]) return 0;
    strides[d] = t->sizes[e] == 1 ? 0 : t->strides[e];
  }
  return 1;
}

/* Sizes of indices against each other, from dimension `first` on. */
static int join_sizes(const lw_tensor_t *t, int32_t first, int32_t rank, int64_t *sizes) {
  for (int32_t e = 0; e < t->rank; e++) {
    int64_t *size = &sizes[first + rank - t->rank + e];
    if (t->sizes[e] == 1) continue;
    if (*size != 1 && *size != t->sizes[e]) return 0;
    *size = t->sizes[e];
  }
  return 1;
}

/* The space is that of self[indices]: dimensions of the indices are where the first one does, or in front when others
 * are between them. */
static aot_status_t lower_index_put(lw_build_t *b) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0), *values = lw_arg_tensor(b, 2), *indices[BC_SCATTER_INDICES];
  const aot_snap_arg_t *list = lw_arg(b, 1);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + list->i;
  const int adds = lw_arg_int(b, 3, 0) != 0;
  int32_t dims[BC_SCATTER_INDICES] = {0}, n = 0, wide = 0;
  lw_tensor_t out;
  if (!is_like_self(b) || !values || values->dtype != self->dtype || list->kind != AOT_ARG_VALUES ||
      list->n > (uint32_t)self->rank || !(adds ? can_add_rounded(self->dtype) : can_set(self->dtype)))
    return LW_DECLINED;
  for (int32_t d = 0; d < (int32_t)list->n; d++) {
    if (rows[d] == AOT_NO_ID) continue;
    const lw_value_t *v = lw_value(b, rows[d]);
    if (v->kind != AOT_TYPE_TENSOR || !is_index(&v->t) || n == BC_SCATTER_INDICES) return LW_DECLINED;
    if (v->t.rank > wide) wide = v->t.rank;
    indices[n] = &v->t;
    dims[n++] = d;
  }
  if (n == 0 || self->rank - n + wide > AOT_MAX_RANK) return LW_DECLINED;
  bc_scatter_t s = {.dtype = self->dtype, .adds = adds, .wraps = 1, .rank = self->rank - n + wide, .n_indices = n};
  const int32_t place = dims[n - 1] - dims[0] + 1 == n ? dims[0] : 0;
  lw_tensor_t result = *lw_type(b, 0);
  lw_result_geometry(&result); /* as lw_result will have it */
  for (int32_t e = 0; e < wide; e++) s.sizes[place + e] = 1;
  for (int32_t d = 0, at = 0, k = 0; d < self->rank; d++) {
    if (at == place) at += wide;
    if (k < n && dims[k] == d) {
      if (!join_sizes(indices[k], place, wide, s.sizes)) return LW_DECLINED;
      s.index[k] = (bc_scatter_index_t){.dtype = indices[k]->dtype, .size = self->sizes[d], .step = result.strides[d]};
      k++;
      continue;
    }
    s.sizes[at] = self->sizes[d];
    s.to_strides[at++] = result.strides[d];
  }
  for (int32_t k = 0; k < n; k++)
    if (!expand(indices[k], &s, place, wide, s.index[k].strides)) return LW_DECLINED;
  if (!expand(values, &s, 0, s.rank, s.from_strides)) return LW_DECLINED;
  AOT_TRY(copy_self(b, &out));
  return add_step(b, &s, 0, &out, values, indices);
}

/* ---- one_hot(self, num_classes) ---- */

static aot_status_t lower_one_hot(lw_build_t *b) {
  const lw_tensor_t *index = lw_arg_tensor(b, 0), *type = lw_type(b, 0);
  lw_tensor_t out;
  if (!index || index->dtype != AOT_I64 || type->dtype != AOT_I64 || type->rank != index->rank + 1) return LW_DECLINED;
  for (int32_t d = 0; d < index->rank; d++)
    if (type->sizes[d] != index->sizes[d]) return LW_DECLINED;
  AOT_TRY(lw_result_dense(b, 0, &out));
  if (lw_numel(&out) == 0) return AOT_OK;
  AOT_TRY(lw_fill_zero(b, &out));
  bc_scatter_t s = {.dtype = AOT_I64, .rank = index->rank, .n_indices = 1};
  s.index[0] = (bc_scatter_index_t){.dtype = AOT_I64, .size = type->sizes[index->rank], .step = 1};
  for (int32_t d = 0; d < index->rank; d++) {
    s.sizes[d] = index->sizes[d];
    s.to_strides[d] = out.strides[d];
    s.index[0].strides[d] = index->strides[d];
  }
  return add_step(b, &s, 1, &out, NULL, &index);
}

/* ---- embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) ---- */

aot_status_t bc_lower_rows_added(lw_build_t *b) {
  const lw_tensor_t *g = lw_arg_tensor(b, 0), *index = lw_arg_tensor(b, 1), *type = lw_type(b, 0);
  const int64_t padding = lw_arg_int(b, 3, -1);
  lw_tensor_t out;
  if (!g || !is_index(index) || g->rank != index->rank + 1 || type->rank != 2 || g->dtype != type->dtype ||
      !can_add(g->dtype) || lw_arg_int(b, 4, 0) || g->sizes[index->rank] != type->sizes[1])
    return LW_DECLINED;
  for (int32_t d = 0; d < index->rank; d++)
    if (g->sizes[d] != index->sizes[d]) return LW_DECLINED;
  AOT_TRY(lw_result_dense(b, 0, &out));
  if (lw_numel(&out) == 0) return AOT_OK;
  AOT_TRY(lw_fill_zero(b, &out));
  bc_scatter_t s = {.dtype = g->dtype, .adds = 1, .rank = g->rank, .n_indices = 1};
  s.skipped = padding < 0 ? 0 : padding + 1;
  s.index[0] = (bc_scatter_index_t){.dtype = index->dtype, .size = type->sizes[0], .step = type->sizes[1]};
  for (int32_t d = 0; d < g->rank; d++) {
    s.sizes[d] = g->sizes[d];
    s.from_strides[d] = g->strides[d];
    s.to_strides[d] = d == index->rank ? 1 : 0;
    s.index[0].strides[d] = d == index->rank ? 0 : index->strides[d];
  }
  return add_step(b, &s, 0, &out, g, &index);
}

static const lw_lowering_t rows[] = {
    {"aten.scatter.src", lower_scatter},
    {"aten.scatter.value", lower_scatter},
    {"aten.scatter_add.default", lower_scatter_add},
    {"aten.index_add.default", lower_index_add},
    {"aten.index_copy.default", lower_index_copy},
    {"aten.index_put.default", lower_index_put},
    {"aten._unsafe_index_put.default", lower_index_put},
    {"aten.one_hot.default", lower_one_hot},
};
const lw_lowering_table_t bc_lowerings_scatter = LW_TABLE(rows);
