/* What the CPU does with the steps that every target has: copies, zeros, sums in place; and its lowerings. */
#include "target.h"

#include "kit/base/geometry.h"
#include "kit/lowering/region_steps.h"
#include "half_kernels.h"

#include <string.h>

/* ---- copies ---- */

enum { WORTH_A_THREAD = 32768, ZEROS_WORTH_A_THREAD = 1 << 18 }; /* elements, bytes */

typedef struct copy_step {
  lw_ref_t dst, src;
  rk_tensor_t to, from; /* geometry; data is set when run */
  int32_t rank;         /* merged dimensions of a copy without conversion */
  int64_t width;        /* bytes an element; 0: converts */
  int64_t grain;        /* places of the outermost dimension that are worth a thread */
  int64_t sizes[AOT_MAX_RANK], dst_strides[AOT_MAX_RANK], src_strides[AOT_MAX_RANK]; /* elements */
  const int64_t *rounds;                                                             /* NULL: none */
  int64_t dst_move, src_move;                                                        /* bytes a round */
} copy_step_t;

#define COPY_INNER(type)                                                                                               \
  for (int64_t i = 0; i < n; i++) ((type *)(void *)d)[i * ds] = ((const type *)(const void *)s)[i * ss]

static void copy_row(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, int64_t width) {
  if (ds == 1 && ss == 1) memcpy(d, s, (size_t)(n * width));
  else if (width == 4) COPY_INNER(uint32_t);
  else if (width == 8) COPY_INNER(uint64_t);
  else if (width == 1) COPY_INNER(uint8_t);
  else if (width == 2) COPY_INNER(uint16_t);
  else
    for (int64_t i = 0; i < n; i++) memcpy(d + i * ds * width, s + i * ss * width, (size_t)width);
}

typedef struct copy_job {
  const copy_step_t *step;
  char *to;
  const char *from;
} copy_job_t;

/* The places [begin, end) of the outermost dimension. */
static void copy_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const copy_job_t *job = arg;
  const copy_step_t *p = job->step;
  const int64_t *const strides[] = {p->dst_strides, p->src_strides};
  const int32_t inner = p->rank - 1;
  int64_t index[AOT_MAX_RANK] = {0}, at[2] = {begin * p->dst_strides[0], begin * p->src_strides[0]};
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, p->sizes, sizeof sizes);
  sizes[0] = end - begin;
  (void)part;
  do
    copy_row(job->to + at[0] * p->width, p->dst_strides[inner], job->from + at[1] * p->width, p->src_strides[inner],
             sizes[inner], p->width);
  while (tn_next(inner, sizes, index, 2, strides, at));
}

static aot_status_t run_copy(const lw_frame_t *f, void *payload) {
  copy_step_t *p = payload;
  const int64_t round = p->rounds ? *p->rounds : 0;
  copy_job_t job = {p, lw_at(f, p->dst) + round * p->dst_move, lw_at(f, p->src) + round * p->src_move};
  if (!p->width) {
    p->to.data = f->base[p->dst.storage] + round * p->dst_move;
    p->from.data = f->base[p->src.storage] + round * p->src_move;
    rk_copy(&p->to, &p->from);
    return AOT_OK;
  }
  bc_parallel(f->workers, p->sizes[0], p->grain, copy_part, &job);
  return AOT_OK;
}

/* Dimensions of size 1 go; neighbours that both tensors step through evenly become one. */
static void merge_copy(copy_step_t *p, const lw_tensor_t *dst, const lw_tensor_t *src) {
  int32_t r = 0;
  for (int32_t d = 0; d < dst->rank; d++) {
    int64_t size = dst->sizes[d], ds = dst->strides[d], ss = src->strides[d];
    if (size == 1) continue;
    if (r && p->dst_strides[r - 1] == ds * size && p->src_strides[r - 1] == ss * size) {
      p->sizes[r - 1] *= size;
      p->dst_strides[r - 1] = ds;
      p->src_strides[r - 1] = ss;
      continue;
    }
    p->sizes[r] = size;
    p->dst_strides[r] = ds;
    p->src_strides[r++] = ss;
  }
  if (!r) p->sizes[r] = p->dst_strides[r] = p->src_strides[r] = 1, r = 1;
  p->rank = r;
}

static aot_status_t copy(lw_build_t *b, const lw_tensor_t *dst, int64_t dst_step, const lw_tensor_t *src,
                         int64_t src_step, const int64_t *rounds) {
  copy_step_t *p;
  if (lw_numel(dst) == 0) return AOT_OK;
  LW_STEP(b, run_copy, p);
  p->dst = lw_use(b, dst);
  p->src = lw_use_read(b, src);
  p->rounds = rounds;
  p->dst_move = dst_step * (int64_t)aot_dtype_size(dst->dtype);
  p->src_move = src_step * (int64_t)aot_dtype_size(src->dtype);
  p->to = lw_rk_tensor(b, dst);
  p->from = lw_rk_tensor(b, src);
  if (dst->dtype == src->dtype) p->width = (int64_t)aot_dtype_size(dst->dtype);
  merge_copy(p, dst, src);
  p->grain = 1 + WORTH_A_THREAD * p->sizes[0] / lw_numel(dst);
  return AOT_OK;
}

typedef struct zero_step {
  lw_ref_t dst;
  uint64_t nbytes;
} zero_step_t;

static void zero_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  (void)part;
  memset((char *)arg + begin, 0, (size_t)(end - begin));
}

static aot_status_t run_zero(const lw_frame_t *f, void *payload) {
  const zero_step_t *p = payload;
  bc_parallel(f->workers, (int64_t)p->nbytes, ZEROS_WORTH_A_THREAD, zero_part, lw_at(f, p->dst));
  return AOT_OK;
}

static aot_status_t zero(lw_build_t *b, const lw_tensor_t *dst) {
  zero_step_t *p;
  LW_STEP(b, run_zero, p);
  p->dst = lw_use(b, dst);
  p->nbytes = (uint64_t)lw_numel(dst) * aot_dtype_size(dst->dtype);
  return AOT_OK;
}

/* ---- sums in place: dst += src ---- */

typedef struct add_step {
  lw_ref_t dst, src;
  int32_t rank, dtype;
  int64_t sizes[AOT_MAX_RANK], dst_strides[AOT_MAX_RANK], src_strides[AOT_MAX_RANK];
} add_step_t;

enum { LANES = 16 };

/* Pieces of a fixed length are what a compiler makes vectors of. */
#define ADD_ROW(name, type)                                                                                            \
  static void name(type *restrict to, int64_t ds, const type *restrict from, int64_t ss, int64_t n) {                  \
    int64_t i = 0;                                                                                                     \
    for (; ds == 1 && ss == 1 && i + LANES <= n; i += LANES)                                                           \
      for (int k = 0; k < LANES; k++) to[i + k] += from[i + k];                                                        \
    for (; i < n; i++) to[i * ds] += from[i * ss];                                                                     \
  }
ADD_ROW(add_floats, float)
ADD_ROW(add_doubles, double)

/* Halves are added as floats, and rounded. */
static void add_halves(int32_t dtype, uint16_t *restrict to, int64_t ds, const uint16_t *restrict from, int64_t ss,
                       int64_t n) {
  enum { TILE = 256 };
  uint16_t x[TILE], y[TILE];
  float sum[TILE], more[TILE];
  for (int64_t at = 0; at < n; at += TILE, to += TILE * ds, from += TILE * ss) {
    const int64_t part = n - at < TILE ? n - at : TILE;
    for (int64_t i = 0; i < part; i++) x[i] = to[i * ds];
    for (int64_t i = 0; i < part; i++) y[i] = from[i * ss];
    bc_convert_to_f32(dtype, x, part, sum);
    bc_convert_to_f32(dtype, y, part, more);
    add_floats(sum, 1, more, 1, part);
    bc_narrow(dtype, sum, part, x);
    for (int64_t i = 0; i < part; i++) to[i * ds] = x[i];
  }
}

static void add_row(int32_t dtype, char *d, int64_t ds, const char *s, int64_t ss, int64_t n) {
  if (dtype == AOT_F32) add_floats((float *)(void *)d, ds, (const float *)(const void *)s, ss, n);
  else if (dtype == AOT_F64) add_doubles((double *)(void *)d, ds, (const double *)(const void *)s, ss, n);
  else add_halves(dtype, (uint16_t *)(void *)d, ds, (const uint16_t *)(const void *)s, ss, n);
}

static aot_status_t run_add_region(const lw_frame_t *f, void *payload) {
  const add_step_t *p = payload;
  const int64_t width = (int64_t)aot_dtype_size(p->dtype);
  const int64_t *const strides[] = {p->dst_strides, p->src_strides};
  const int32_t inner = p->rank - 1;
  int64_t index[AOT_MAX_RANK] = {0}, at[2] = {0};
  do
    add_row(p->dtype, lw_at(f, p->dst) + at[0] * width, p->dst_strides[inner], lw_at(f, p->src) + at[1] * width,
            p->src_strides[inner], p->sizes[inner]);
  while (tn_next(inner, p->sizes, index, 2, strides, at));
  return AOT_OK;
}

static aot_status_t add(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src) {
  add_step_t *p;
  if (lw_numel(dst) == 0) return AOT_OK;
  LW_STEP(b, run_add_region, p);
  p->dst = lw_use_update(b, dst);
  p->src = lw_use_read(b, src);
  p->dtype = dst->dtype;
  p->rank = dst->rank ? dst->rank : 1;
  p->sizes[0] = p->dst_strides[0] = p->src_strides[0] = 1;
  for (int32_t d = 0; d < dst->rank; d++) {
    p->sizes[d] = dst->sizes[d];
    p->dst_strides[d] = dst->strides[d];
    p->src_strides[d] = src->strides[d];
  }
  return AOT_OK;
}

/* ---- jumps ---- */

static aot_status_t run_jump(const lw_frame_t *f, void *payload) {
  lw_jump_t *p = payload;
  if (p->pred.storage != LW_NONE) p->value.data = f->base[p->pred.storage];
  return lw_take_jump(f, p);
}

/* ---- the target ---- */

static const lw_lowering_table_t *const tables[] = {
    &bc_lowerings_bags,   &bc_lowerings_resample,  &lw_lowerings_products, &bc_lowerings_attention,
    &bc_lowerings_conv,   &bc_lowerings_embedding, &bc_lowerings_pool,     &bc_lowerings_batch_norm,
    &lw_lowerings_joins,  &lw_lowerings_branches,  &lw_lowerings_loops,    &lw_lowerings_regions,
    &lw_lowerings_spared, &bc_lowerings_scatter,   &bc_lowerings_order,    &bc_lowerings_sum,
};
const lw_target_t bc_cpu = {
    .tables = tables,
    .n_tables = sizeof tables / sizeof tables[0],
    /* a core's copies, calls of generated functions, docs/BENCH.md (rows), and its second cache */
    .costs = {.bytes_a_ns = 10,
              .step_ns = 200,
              .row_ns = 12.8,
              .ops_a_ns = 12,
              .row_elements = 65536,
              .thread_elements = 32768},
    .product = bc_add_product,
    .loop = bc_lower_loop_step,
    .kernel = bc_lower_kernel,
    .copy = copy,
    .zero = zero,
    .add = add,
    .jump = run_jump,
    .classes = bc_count_classes,
    .has_across = 1,
    .join = bc_join_loops,
};

/* ---- planning ---- */

static void no_loop(char *const *pointers, const int64_t *sizes, const int64_t *strides, int64_t begin, int64_t end) {
  (void)pointers, (void)sizes, (void)strides, (void)begin, (void)end;
}

static const lw_loop_fn *find_any(void *self, const char *name) {
  static const lw_loop_fn any = no_loop;
  (void)self, (void)name;
  return &any;
}

static const lw_loop_fn *find_none(void *self, const char *name) {
  (void)self, (void)name;
  return NULL;
}

static aot_status_t add_nothing(void *self, const char *name, const char *text, uint64_t nbytes,
                                const lw_loop_fn **out) {
  (void)self, (void)name, (void)text, (void)nbytes;
  *out = NULL;
  return AOT_OK;
}

lw_machine_t bc_planning_machine(int32_t n_threads, const custom_program_t *custom, int compiles) {
  return (lw_machine_t){.target = &bc_cpu,
                        .n_threads = n_threads,
                        .custom = custom,
                        .find = compiles ? find_any : find_none,
                        .add = add_nothing};
}
