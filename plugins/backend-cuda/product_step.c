#include "product_step.h"

#include "gpu_target.h"
#include "kit/base/geometry.h"
#include <string.h>

enum { WORKSPACE = 32 << 20, SMALL_WORKSPACE = 1 << 16, NOT_TRIED = -1 };
#define LARGE_PRODUCT 1e8 /* terms */
/* Contiguous dimensions that kernels for tensor cores take are multiples of 16 bytes, not only their rows' distances
 * (cuBLAS' manual, "Tensor Core Usage"): 30,522 classes run at 230 TFLOP/s on an H200, 50,304 at 800. */
enum { VECTOR = 16, LEAST_EVEN = 512 /* elements of a dimension that is cut: what is left over stays small */ };
#define CUT_TERMS 2e7 /* of one processor: fewer take no longer than the steps that a cut adds */

typedef struct product_step {
  const gc_cublaslt_t *cublaslt;
  gc_product_t product; /* its batch is the last dimension of those below that is not run one by one */
  int is_ready;         /* gc_product_init: when it is first run */
  lw_ref_t operands[GC_N_OPERANDS];
  int32_t rank; /* dimensions of the batch that are run one by one */
  int64_t sizes[AOT_MAX_RANK], strides[GC_N_MATRICES][AOT_MAX_RANK]; /* bytes */
} product_step_t;

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }

static void forget(void *self) {
  product_step_t *p = self;
  if (p->is_ready) gc_product_deinit(p->cublaslt, &p->product);
}

static int run_all(product_step_t *p, const gc_address_t *at, gc_stream_t stream) {
  const int64_t *strides[GC_N_MATRICES];
  int64_t index[AOT_MAX_RANK] = {0}, place[GC_N_MATRICES] = {0};
  gc_address_t matrices[GC_N_OPERANDS];
  memcpy(matrices, at, sizeof matrices);
  for (int i = 0; i < GC_N_MATRICES; i++) strides[i] = p->strides[i];
  do {
    for (int i = 0; i < GC_N_MATRICES; i++) matrices[i] = at[i] + (uint64_t)place[i];
    const int failed = gc_product_run(p->cublaslt, &p->product, matrices, stream);
    if (failed) return failed;
  } while (tn_next(p->rank, p->sizes, index, GC_N_MATRICES, strides, place));
  return 0;
}

static aot_status_t run_product(const lw_frame_t *f, void *payload) {
  product_step_t *p = payload;
  const gc_run_t *run = f->self;
  gc_address_t at[GC_N_OPERANDS] = {0};
  for (int i = 0; i < GC_N_OPERANDS; i++)
    if (p->operands[i].storage != LW_NONE) at[i] = (gc_address_t)(uintptr_t)lw_at(f, p->operands[i]);
  at[GC_WORKSPACE] = gc_workspace_at(at[GC_WORKSPACE]);
  *run->cublas = p->is_ready ? 0 : gc_product_init(p->cublaslt, &p->product);
  p->is_ready = *run->cublas == 0;
  if (p->is_ready) *run->cublas = run_all(p, at, run->stream);
  return *run->cublas ? AOT_E_INTERNAL : AOT_OK;
}

/* ---- how operands is laid out ---- */

/* The last two dimensions as rows, or as columns. 0: they are neither. */
static int as_matrix(const lw_tensor_t *t, gc_matrix_t *out) {
  const int64_t rows = t->sizes[t->rank - 2], columns = t->sizes[t->rank - 1];
  const int64_t down = t->strides[t->rank - 2], right = t->strides[t->rank - 1];
  *out = (gc_matrix_t){0};
  if ((right == 1 || columns == 1) && (down >= columns || rows == 1)) out->leading = rows == 1 ? columns : down;
  else if ((down == 1 || rows == 1) && (right >= rows || columns == 1)) {
    out->leading = columns == 1 ? rows : right;
    out->transposed = 1;
  }
  return out->leading > 0;
}

static aot_status_t readable(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out, gc_matrix_t *matrix) {
  *out = *t;
  if (as_matrix(t, matrix)) return AOT_OK;
  AOT_TRY(lw_contiguous(b, t, out));
  as_matrix(out, matrix);
  return AOT_OK;
}

/* A row that is added to every row. */
static int is_bias(const lw_tensor_t *t) {
  if (t->sizes[t->rank - 1] != 1 && t->strides[t->rank - 1] != 1) return 0;
  for (int32_t d = 0; d < t->rank - 1; d++)
    if (t->sizes[d] != 1 && t->strides[d] != 0) return 0;
  return 1;
}

/* Rows of its own for each of the result's. */
static int is_matrix(const lw_tensor_t *t, gc_matrix_t *out) {
  for (int32_t d = 0; d < t->rank - 2; d++)
    if (t->sizes[d] != 1 && t->strides[d] == 0) return 0;
  return as_matrix(t, out) && !out->transposed;
}

/* One dimension of the batch is cuBLASLt's: the innermost that has more than one index, with those outside of it that
 * all matrices step through evenly. The others are run one by one. */
static void find_batch(product_step_t *p, const lw_tensor_t *const *tensors) {
  const lw_tensor_t *out = tensors[GC_D];
  gc_product_t *q = &p->product;
  int32_t d = out->rank - 3;
  q->n_batch = 1;
  for (; d >= 0; d--) {
    int is_even = 1;
    if (out->sizes[d] == 1) continue;
    for (int i = 0; i < GC_N_MATRICES; i++)
      is_even &= tensors[i]->strides[d] == q->matrices[i].batch_stride * q->n_batch;
    if (q->n_batch > 1 && !is_even) break;
    for (int i = 0; i < GC_N_MATRICES && q->n_batch == 1; i++) q->matrices[i].batch_stride = tensors[i]->strides[d];
    q->n_batch *= out->sizes[d];
  }
  for (int32_t outer = 0; outer <= d; outer++) {
    if (out->sizes[outer] == 1) continue;
    for (int i = 0; i < GC_N_MATRICES; i++)
      p->strides[i][p->rank] = tensors[i]->strides[outer] * (int64_t)aot_dtype_size(tensors[i]->dtype);
    p->sizes[p->rank++] = out->sizes[outer];
  }
}

static uint32_t alignment(const lw_build_t *b, const product_step_t *p, int i, const lw_tensor_t *t) {
  uint32_t align = gc_alignment_of(b, t);
  for (int32_t d = 0; d < p->rank; d++)
    while (p->strides[i][d] % (int64_t)align) align /= 2;
  return align;
}

/* ---- lowering ---- */

/* tensors: by matrix; without an addend in place, c is the result. */
static void describe(const lw_build_t *b, const lw_tensor_t *const *tensors, product_step_t *step) {
  gc_product_t *q = &step->product;
  const lw_tensor_t *out = tensors[GC_D];
  q->dtype = tensors[GC_A]->dtype;
  q->result = out->dtype;
  q->m = out->sizes[out->rank - 2];
  q->n = out->sizes[out->rank - 1];
  q->k = tensors[GC_A]->sizes[out->rank - 1];
  step->rank = 0;
  find_batch(step, tensors);
  const int is_large = (double)q->m * (double)q->n * (double)q->k * (double)q->n_batch > LARGE_PRODUCT;
  q->workspace_nbytes = is_large ? WORKSPACE : SMALL_WORKSPACE;
  for (int i = 0; i < GC_N_MATRICES; i++) q->align[i] = alignment(b, step, i, tensors[i]);
}

/* cuBLASLt's status. A program that is not to run, only planned, has no library, which is taken to have all forms. */
static int choose(const lw_build_t *b, gc_product_t *q) {
  return lowering(b)->algorithms ? gc_algorithms_choose(lowering(b)->algorithms, q) : 0;
}

/* cuBLASLt reads c where it writes d: they may be one, if they lie alike. */
static lw_ref_t use_addend(lw_build_t *b, const lw_tensor_t *c, const lw_tensor_t *d, int is_read) {
  if (c->storage == d->storage) return is_read ? lw_use_update(b, c) : lw_use(b, c);
  return lw_same_geometry(c, d) ? lw_use_inplace_of(b, c, 1, d->storage) : lw_use_read(b, c);
}

static aot_status_t add_step(lw_build_t *b, const product_step_t *step, const lw_tensor_t *const *tensors,
                             const lw_tensor_t *bias) {
  lw_tensor_t workspace;
  product_step_t *p;
  AOT_TRY(gc_workspace(b, step->product.workspace_nbytes, &workspace));
  LW_STEP(b, run_product, p);
  *p = *step;
  p->operands[GC_A] = lw_use_read(b, tensors[GC_A]);
  p->operands[GC_B] = lw_use_read(b, tensors[GC_B]);
  p->operands[GC_C] = use_addend(b, tensors[GC_C], tensors[GC_D], step->product.beta != 0);
  p->operands[GC_D] = lw_use(b, tensors[GC_D]);
  p->operands[GC_BIAS] = lw_use_read(b, bias);
  p->operands[GC_WORKSPACE] = lw_use_scratch(b, &workspace);
  lw_count_flops(b, 2 * (double)lw_numel(tensors[GC_D]) * (double)step->product.k, step->product.dtype);
  lowering(b)->n_products++;
  return lw_own(b, p, forget);
}

/* alpha * x @ y + beta * added + bias; with both, beta is 1. What is added has c's sizes, a bias steps by 0 from row to
 * row. */
typedef struct operands {
  lw_tensor_t x, y, c, added, bias;
  int is_added, has_bias;
  double alpha, beta;
} operands_t;

/* The result begins as what is added. */
static aot_status_t begin_sum(lw_build_t *b, const operands_t *o) {
  AOT_TRY(lw_copy(b, &o->c, o->is_added ? &o->added : &o->bias));
  return o->is_added && o->has_bias ? b->machine->target->add(b, &o->c, &o->bias) : AOT_OK;
}

static aot_status_t multiply(lw_build_t *b, operands_t o) {
  lw_tensor_t left, right;
  const lw_tensor_t *c = &o.c, *tensors[GC_N_MATRICES] = {&left, &right, c, c};
  product_step_t step = {.cublaslt = lowering(b)->cublaslt, .product = {.alpha = o.alpha}};
  gc_product_t *q = &step.product;
  const int has_sum = o.is_added || o.has_bias;
  if (lw_numel(c) == 0) return AOT_OK;
  if (o.x.sizes[o.x.rank - 1] == 0 && !has_sum) return lw_fill_zero(b, c);
  if (o.x.sizes[o.x.rank - 1] == 0) return o.beta == 1 ? begin_sum(b, &o) : LW_DECLINED;
  AOT_TRY(readable(b, &o.x, &left, &q->matrices[GC_A]));
  AOT_TRY(readable(b, &o.y, &right, &q->matrices[GC_B]));
  as_matrix(c, &q->matrices[GC_D]);
  q->matrices[GC_C] = q->matrices[GC_D];
  q->has_bias = o.has_bias;
  if (o.is_added && is_matrix(&o.added, &q->matrices[GC_C])) tensors[GC_C] = &o.added;
  const int is_in_place = o.is_added && tensors[GC_C] == c;
  q->beta = o.is_added ? o.beta : 0;
  describe(b, tensors, &step);
  int failed = is_in_place ? NOT_TRIED : choose(b, q);
  if (failed && has_sum) {
    AOT_TRY(begin_sum(b, &o));
    tensors[GC_C] = c;
    q->matrices[GC_C] = q->matrices[GC_D];
    q->has_bias = 0;
    q->beta = o.beta;
    describe(b, tensors, &step);
    failed = choose(b, q);
  }
  if (failed)
    return lw_fail(b->error, AOT_E_INTERNAL, "cublas", "cuBLASLt has no algorithm for a matrix product: status %d",
                   failed);
  return add_step(b, &step, tensors, q->has_bias ? &o.bias : NULL);
}

/* ---- in parts, of which the first is even ---- */

static int is_even(const lw_tensor_t *t, int64_t elements) {
  return elements * (int64_t)aot_dtype_size(t->dtype) % VECTOR == 0;
}

/* Do all lines of the matrix begin at multiples of 16 bytes? */
static int begins_even(const lw_tensor_t *t) {
  gc_matrix_t matrix;
  int even = as_matrix(t, &matrix) && is_even(t, t->offset) && is_even(t, matrix.leading);
  for (int32_t d = 0; d < t->rank - 2; d++) even &= t->sizes[d] == 1 || is_even(t, t->strides[d]);
  return even;
}

/* Elements of a dimension that come first and are even; all of them, where it is even, or too short. */
static int64_t even_part(const lw_tensor_t *t, int64_t size) {
  const int64_t vector = VECTOR / (int64_t)aot_dtype_size(t->dtype);
  return size < LEAST_EVEN ? size : size / vector * vector;
}

static int is_cut(const lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *c) {
  const double terms = (double)lw_numel(c) * (double)x->sizes[x->rank - 1];
  return aot_dtype_size(x->dtype) == 2 && terms >= CUT_TERMS * lowering(b)->machine.n_processors && begins_even(x) &&
         begins_even(y) && begins_even(c);
}

enum { COLUMN, ROW }; /* dimensions, counted from the last */

static void keep(lw_tensor_t *t, int from_last, int64_t begin, int64_t end) {
  const int32_t d = t->rank - 1 - from_last;
  t->offset += begin * t->strides[d];
  t->sizes[d] = end - begin;
}
static operands_t columns(operands_t o, int64_t begin, int64_t end) {
  keep(&o.y, COLUMN, begin, end), keep(&o.c, COLUMN, begin, end);
  if (o.is_added) keep(&o.added, COLUMN, begin, end);
  if (o.has_bias) keep(&o.bias, COLUMN, begin, end);
  return o;
}
static operands_t rows(operands_t o, int64_t begin, int64_t end) {
  keep(&o.x, ROW, begin, end), keep(&o.c, ROW, begin, end);
  if (o.is_added) keep(&o.added, ROW, begin, end);
  if (o.has_bias) keep(&o.bias, ROW, begin, end);
  return o;
}
static operands_t terms(operands_t o, int64_t begin, int64_t end) {
  keep(&o.x, COLUMN, begin, end), keep(&o.y, ROW, begin, end);
  return o;
}

/* What is left over of columns, of rows and of terms, then what is even, which is added to the sum of those few terms:
 * so the sum of many is rounded once. */
static aot_status_t multiply_in_parts(lw_build_t *b, operands_t o) {
  const int64_t m = o.c.sizes[o.c.rank - 2], n = o.c.sizes[o.c.rank - 1], k = o.x.sizes[o.x.rank - 1];
  gc_matrix_t x, y;
  as_matrix(&o.x, &x);
  as_matrix(&o.y, &y);
  const int64_t m_even = x.transposed ? even_part(&o.x, m) : m, n_even = even_part(&o.x, n);
  const int64_t k_even = !x.transposed || y.transposed ? even_part(&o.x, k) : k;
  if (n_even < n) AOT_TRY(multiply(b, columns(o, n_even, n)));
  o = columns(o, 0, n_even);
  if (m_even < m) AOT_TRY(multiply(b, rows(o, m_even, m)));
  o = rows(o, 0, m_even);
  if (k_even == k) return multiply(b, o);
  AOT_TRY(multiply(b, terms(o, k_even, k)));
  o.added = o.c;
  o.is_added = 1;
  o.has_bias = 0;
  o.beta = 1;
  return multiply(b, terms(o, 0, k_even));
}

static aot_status_t multiply_all(lw_build_t *b, const operands_t *o) {
  return is_cut(b, &o->x, &o->y, &o->c) ? multiply_in_parts(b, *o) : multiply(b, *o);
}

aot_status_t gc_lower_product(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                              const lw_tensor_t *c, double alpha, double beta) {
  operands_t o = {.x = *x, .y = *y, .c = *c, .alpha = alpha, .beta = beta};
  lw_tensor_t spread;
  if (addend && lw_expanded(addend, c->rank, c->sizes, &spread)) {
    o.has_bias = beta == 1 && is_bias(&spread);
    o.is_added = !o.has_bias;
    if (o.has_bias) o.bias = spread;
    else o.added = spread;
  }
  return multiply_all(b, &o);
}

aot_status_t gc_lower_product_onto(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *bias,
                                   const lw_tensor_t *addend, const lw_tensor_t *c) {
  operands_t o = {.x = *x, .y = *y, .c = *c, .added = *addend, .is_added = 1, .alpha = 1, .beta = 1};
  o.has_bias = bias && lw_expanded(bias, c->rank, c->sizes, &o.bias);
  return multiply_all(b, &o);
}
