/* Sums and means over any dimensions, where no C compiler makes them loops. */
#include "sum_kernels.h"
#include "target.h"

typedef struct sum_step {
  lw_ref_t x, y;
  bc_sum_t sum;
} sum_step_t;

typedef struct sum_job {
  const bc_sum_t *sum;
  const void *x;
  void *y;
} sum_job_t;

static void run_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const sum_job_t *j = arg;
  (void)part;
  bc_sum(j->sum, j->x, j->y, begin, end);
}

static aot_status_t run_sum(const lw_frame_t *f, void *payload) {
  const sum_step_t *p = payload;
  sum_job_t j = {&p->sum, lw_at(f, p->x), lw_at(f, p->y)};
  int64_t each = 1;
  for (int32_t d = 0; d < p->sum.n_added; d++) each *= p->sum.added[d];
  bc_parallel(f->workers, bc_sum_results(&p->sum), 1 + 65536 / (each + 1), run_part, &j);
  return AOT_OK;
}

/* After those that step further; one that continues where the last one steps is one with it. */
static void add_dimension(bc_sum_t *s, int64_t size, int64_t step) {
  int32_t at = s->n_added;
  if (size == 1) return;
  for (; at > 0 && s->step[at - 1] < step; at--) {
    s->added[at] = s->added[at - 1];
    s->step[at] = s->step[at - 1];
  }
  s->added[at] = size;
  s->step[at] = step;
  s->n_added++;
}

static void join_dimensions(bc_sum_t *s) {
  int32_t n = 0;
  for (int32_t d = 0; d < s->n_added; d++)
    if (n > 0 && s->step[n - 1] == s->step[d] * s->added[d]) {
      s->added[n - 1] *= s->added[d];
      s->step[n - 1] = s->step[d];
    } else {
      s->added[n] = s->added[d];
      s->step[n++] = s->step[d];
    }
  s->n_added = n;
}

/* (self, dim, keepdim, *, dtype) */
static aot_status_t lower(lw_build_t *b, int is_mean) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0);
  int64_t list[AOT_MAX_RANK], count = 1;
  const uint32_t n = lw_arg_ints(b, 1, list, AOT_MAX_RANK);
  const int keeps = lw_arg_int(b, 2, 0) != 0;
  uint32_t added = 0;
  lw_tensor_t y;
  sum_step_t *p;
  if (!x || (x->dtype != AOT_F32 && x->dtype != AOT_F64) || lw_type(b, 0)->dtype != x->dtype || lw_numel(x) == 0)
    return LW_DECLINED;
  for (uint32_t k = 0; k < n; k++) {
    const int64_t d = list[k] < 0 ? list[k] + x->rank : list[k];
    if (d < 0 || d >= x->rank || added >> d & 1u) return LW_DECLINED;
    added |= 1u << d;
  }
  if (n == 0) added = (1u << x->rank) - 1;
  bc_sum_t s = {.dtype = x->dtype, .divisor = 1};
  const lw_tensor_t *type = lw_type(b, 0);
  for (int32_t d = 0, at = 0; d < x->rank; d++) {
    const int is_added = (int)(added >> d & 1u);
    if (is_added) add_dimension(&s, x->sizes[d], x->strides[d]);
    if (is_added) count *= x->sizes[d];
    if (is_added && !keeps) continue;
    if (at >= type->rank || type->sizes[at++] != (is_added ? 1 : x->sizes[d])) return LW_DECLINED;
  }
  join_dimensions(&s);
  if (is_mean) s.divisor = (double)count;
  AOT_TRY(lw_result(b, 0, &y));
  for (int32_t d = 0, at = 0; d < x->rank; d++) {
    const int is_added = (int)(added >> d & 1u);
    if (!is_added) {
      s.kept[s.n_kept] = x->sizes[d];
      s.from[s.n_kept] = x->strides[d];
      s.to[s.n_kept++] = y.strides[at];
    }
    at += !is_added || keeps;
  }
  LW_STEP(b, run_sum, p);
  *p = (sum_step_t){.x = lw_use_read(b, x), .y = lw_use(b, &y), .sum = s};
  return AOT_OK;
}

static aot_status_t lower_sum(lw_build_t *b) { return lower(b, 0); }
static aot_status_t lower_mean(lw_build_t *b) { return lower(b, 1); }

static const lw_lowering_t rows[] = {
    {"aten.sum.dim_IntList", lower_sum},
    {"aten.mean.dim", lower_mean},
};
const lw_lowering_table_t bc_lowerings_sum = LW_TABLE(rows);
