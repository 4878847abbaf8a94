/* sort, argsort and topk along any dimension, of any dtype but complex ones. Lines divide among threads. */
#include "order_kernels.h"
#include "target.h"

#include <string.h>

typedef struct order_step {
  lw_ref_t x, values, positions, work; /* values, positions: LW_NONE where they are not wanted */
  int32_t rank, dtype, descending;     /* dimensions besides the line's */
  int64_t width;                       /* bytes an element */
  int64_t sizes[AOT_MAX_RANK], x_strides[AOT_MAX_RANK], value_strides[AOT_MAX_RANK], position_strides[AOT_MAX_RANK];
  int64_t n, k; /* of a line: elements, and how many are wanted */
  int64_t x_step, value_step, position_step;
  const lw_frame_t *frame; /* of the run */
} order_step_t;

/* Offset of line number `line`. */
static int64_t line_at(const order_step_t *p, const int64_t *strides, int64_t line) {
  int64_t at = 0;
  for (int32_t d = p->rank - 1; d >= 0; line /= p->sizes[d], d--) at += line % p->sizes[d] * strides[d];
  return at;
}

static void write_line(const order_step_t *p, int64_t line, const bc_ranked_t *order) {
  const lw_frame_t *f = p->frame;
  const char *x = lw_at(f, p->x) + line_at(p, p->x_strides, line) * p->width;
  if (p->values.storage != LW_NONE) {
    char *to = lw_at(f, p->values) + line_at(p, p->value_strides, line) * p->width;
    for (int64_t i = 0; i < p->k; i++)
      memcpy(to + i * p->value_step * p->width, x + order[i].position * p->x_step * p->width, (size_t)p->width);
  }
  if (p->positions.storage == LW_NONE) return;
  int64_t *to = (int64_t *)(void *)lw_at(f, p->positions) + line_at(p, p->position_strides, line);
  for (int64_t i = 0; i < p->k; i++) to[i * p->position_step] = order[i].position;
}

enum { FEW = 32 }; /* so many are found by one look at each element */

static void run_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const order_step_t *p = payload;
  bc_ranked_t *line = (bc_ranked_t *)(void *)lw_at(p->frame, p->work) + part * 2 * p->n;
  for (int64_t i = begin; i < end; i++) {
    const char *x = lw_at(p->frame, p->x) + line_at(p, p->x_strides, i) * p->width;
    bc_rank_line(p->dtype, x, p->x_step, p->n, p->descending, line);
    if (p->k <= FEW) bc_first_of_line(line, p->n, p->k);
    else bc_sort_line(line, p->n, line + p->n);
    write_line(p, i, line);
  }
}

static aot_status_t run_order(const lw_frame_t *f, void *payload) {
  order_step_t *p = payload;
  int64_t n_lines = 1;
  for (int32_t d = 0; d < p->rank; d++) n_lines *= p->sizes[d];
  p->frame = f;
  bc_parallel(f->workers, n_lines, 1 + 4096 / (p->n + 1), run_part, p);
  return AOT_OK;
}

/* Strides of t besides dimension `dim`, whose own is returned. */
static int64_t split(const lw_tensor_t *t, int32_t dim, int64_t *strides) {
  for (int32_t d = 0, at = 0; d < t->rank; d++)
    if (d != dim) strides[at++] = t->strides[d];
  return t->strides[dim];
}

static int is_part_of(const lw_tensor_t *t, const lw_tensor_t *x, int32_t dim, int64_t k) {
  if (t->rank != x->rank) return 0;
  for (int32_t d = 0; d < x->rank; d++)
    if (t->sizes[d] != (d == dim ? k : x->sizes[d])) return 0;
  return 1;
}

static const order_step_t no_step = {.values = {.storage = LW_NONE}, .positions = {.storage = LW_NONE}};

/* The first k along dimension argument `at`; the last result holds positions, the one before it values. k < 0: all */
static aot_status_t order(lw_build_t *b, uint32_t at, int64_t preset, int descending, int64_t k) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0);
  const int64_t given = lw_arg_int(b, at, preset);
  const uint32_t n_results = b->node->n_results;
  const int64_t dim = x && given < 0 ? given + x->rank : given;
  lw_tensor_t values = {.storage = LW_NONE}, positions = {.storage = LW_NONE}, work;
  bc_ranked_t ranked;
  order_step_t *p;
  if (!x || x->rank < 1 || dim < 0 || dim >= x->rank || !bc_rank_line(x->dtype, NULL, 0, 0, 0, &ranked))
    return LW_DECLINED;
  const int64_t n = x->sizes[dim];
  if (k < 0) k = n;
  if (k > n || n_results < 1 || n_results > 2) return LW_DECLINED;
  for (uint32_t r = 0; r < n_results; r++) {
    const lw_tensor_t *t = lw_type(b, r);
    if (!t->dtype) continue;
    if (t->dtype != (r + 1 == n_results ? AOT_I64 : x->dtype) || !is_part_of(t, x, (int32_t)dim, k)) return LW_DECLINED;
  }
  for (uint32_t r = 0; r < n_results; r++) AOT_TRY(lw_result(b, r, r + 1 == n_results ? &positions : &values));
  if (lw_numel(x) == 0 || k == 0) return AOT_OK;
  AOT_TRY(lw_scratch(b, 2 * (uint64_t)n * sizeof(bc_ranked_t) * (uint64_t)b->machine->n_threads, &work));
  LW_STEP(b, run_order, p);
  *p = no_step;
  p->x = lw_use_read(b, x);
  p->work = lw_use(b, &work);
  p->rank = x->rank - 1;
  p->dtype = x->dtype;
  p->descending = descending;
  p->width = (int64_t)aot_dtype_size(x->dtype);
  p->n = n;
  p->k = k;
  for (int32_t d = 0, to = 0; d < x->rank; d++)
    if (d != dim) p->sizes[to++] = x->sizes[d];
  p->x_step = split(x, (int32_t)dim, p->x_strides);
  if (n_results == 2 && values.dtype) {
    p->values = lw_use(b, &values);
    p->value_step = split(&values, (int32_t)dim, p->value_strides);
  }
  if (positions.dtype) {
    p->positions = lw_use(b, &positions);
    p->position_step = split(&positions, (int32_t)dim, p->position_strides);
  }
  return AOT_OK;
}

/* sort, argsort(self, dim, descending); .stable(self, *, stable, dim, descending) */
static aot_status_t lower_sort(lw_build_t *b) { return order(b, 1, -1, lw_arg_int(b, 2, 0) != 0, -1); }
static aot_status_t lower_stable(lw_build_t *b) { return order(b, 2, -1, lw_arg_int(b, 3, 0) != 0, -1); }
/* topk(self, k, dim, largest, sorted) */
static aot_status_t lower_topk(lw_build_t *b) {
  const int64_t k = lw_arg_int(b, 1, 0);
  return k < 0 ? LW_DECLINED : order(b, 2, -1, lw_arg_int(b, 3, 1) != 0, k);
}

static const lw_lowering_t rows[] = {
    {"aten.sort.default", lower_sort},     {"aten.sort.stable", lower_stable}, {"aten.argsort.default", lower_sort},
    {"aten.argsort.stable", lower_stable}, {"aten.topk.default", lower_topk},
};
const lw_lowering_table_t bc_lowerings_order = LW_TABLE(rows);
