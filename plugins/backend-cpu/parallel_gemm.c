#include "parallel_gemm.h"

#include "onednn_kernels.h"
#include "sparse_product.h"
#include <stdatomic.h>

/* Floating-point operations that are worth waking a thread for: some microseconds. */
static const int64_t least_work = 2000000;
enum { BLOCK = 32, SPARSE_ROWS = 64 };

struct bc_division {
  bc_product_t product;
  int64_t n_batches, n_chunks, chunk; /* rows, or columns, of a chunk; the last may have fewer */
  int by_columns;
  int64_t grain;                 /* units that one thread takes at least */
  bc_product_t part, last_part;  /* without batches */
  const bc_dnn_t *kernel, *last; /* of the two; NULL: the BLAS */
  uint64_t work;                 /* bytes a lane */
  uint64_t sparse; /* bytes for the elements of an operand that turns out to be nearly all zeros; 0: nothing looks */
  int32_t n_lanes;
};

typedef struct division_step {
  lw_ref_t a, b, c, bias, work, sparse;
  const bc_division_t *division;
} division_step_t;

typedef struct job {
  const bc_division_t *division;
  char *a, *b, *c, *bias, *work, *sparse;
  atomic_int failed;
} job_t;

/* ---- running ---- */

static int64_t row_step(const bc_matrix_t *m) { return m->transposed ? 1 : m->ld; }

static int64_t column_step(const bc_matrix_t *m) { return m->transposed ? m->ld : 1; }

static void run_units(void *arg, int32_t part, int64_t begin, int64_t end) {
  job_t *job = arg;
  const bc_division_t *d = job->division;
  const bc_product_t *p = &d->product;
  const int64_t width = (int64_t)aot_dtype_size(p->dtype);
  for (int64_t unit = begin; unit < end; unit++) {
    const int is_last = unit % d->n_chunks == d->n_chunks - 1;
    const int64_t first = unit % d->n_chunks * d->chunk;
    int64_t batch = unit / d->n_chunks, a = 0, b = 0, c = 0, bias = 0;
    if (d->by_columns) {
      b = first * column_step(&p->b);
      c = first * column_step(&p->c);
      bias = first;
    } else {
      a = first * row_step(&p->a);
      c = first * row_step(&p->c);
    }
    for (int32_t k = p->rank - 1; k >= 0; k--) {
      const int64_t at = batch % p->sizes[k];
      batch /= p->sizes[k];
      a += at * p->a_strides[k];
      b += at * p->b_strides[k];
      c += at * p->c_strides[k];
    }
    void *const operands[] = {job->a + a * width, job->b + b * width, job->c + c * width,
                              p->has_bias ? job->bias + bias * width : NULL};
    char *const work = d->work ? job->work + (uint64_t)part * d->work : NULL;
    const bc_dnn_t *kernel = is_last ? d->last : d->kernel;
    if (!kernel) bc_product(is_last ? &d->last_part : &d->part, operands[0], operands[1], operands[2]);
    else if (bc_dnn_run(kernel, part, operands, work)) atomic_store(&job->failed, 1);
  }
}

static void run_sparse_rows(void *arg, int32_t part, int64_t begin, int64_t end) {
  const job_t *job = arg;
  (void)part;
  bc_sparse_rows(&job->division->product, job->sparse, job->b, job->c, begin, end);
}

static aot_status_t run_divided(const lw_frame_t *f, const division_step_t *p) {
  const bc_division_t *d = p->division;
  job_t job = {.division = d, .a = lw_at(f, p->a), .b = lw_at(f, p->b), .c = lw_at(f, p->c)};
  job.bias = d->product.has_bias ? lw_at(f, p->bias) : NULL;
  job.work = d->work ? lw_at(f, p->work) : NULL;
  job.sparse = d->sparse ? lw_at(f, p->sparse) : NULL;
  if (job.sparse && bc_sparse_find(&d->product, job.a, job.b, job.sparse)) {
    bc_parallel(f->workers, d->product.c.rows, SPARSE_ROWS, run_sparse_rows, &job);
    return AOT_OK;
  }
  bc_parallel(f->workers, d->n_batches * d->n_chunks, d->grain, run_units, &job);
  if (atomic_load(&job.failed)) return lw_fail(f->error, AOT_E_EXHAUSTED, "no-memory", "oneDNN cannot run a product");
  return AOT_OK;
}

/* Of two names, which a profile reports. */
static aot_status_t run_onednn_product(const lw_frame_t *f, void *payload) { return run_divided(f, payload); }
static aot_status_t run_product(const lw_frame_t *f, void *payload) { return run_divided(f, payload); }

/* ---- dividing ---- */

/* n rows, or columns, of the product. */
static bc_product_t part_of(const bc_division_t *d, int64_t n) {
  bc_product_t part = d->product;
  part.rank = 0;
  if (d->by_columns) part.b.columns = part.c.columns = n;
  else part.a.rows = part.c.rows = n;
  return part;
}

/* Batches where they give every thread the same; rows else, or columns where there are too few rows. */
static void divide(bc_division_t *d, int32_t n_threads) {
  const bc_product_t *p = &d->product;
  const int64_t work = 2 * p->c.rows * p->c.columns * p->a.columns;
  int64_t parts = work / least_work;
  d->n_batches = 1;
  for (int32_t k = 0; k < p->rank; k++) d->n_batches *= p->sizes[k];
  if (parts > n_threads) parts = n_threads;
  if (parts < 1 || d->n_batches % n_threads == 0 || d->n_batches > 4 * n_threads) parts = 1;
  d->by_columns = p->c.rows < parts * BLOCK && p->c.columns > p->c.rows;
  const int64_t size = d->by_columns ? p->c.columns : p->c.rows;
  d->chunk = size;
  if (parts > 1) d->chunk = ((size + parts - 1) / parts + BLOCK - 1) / BLOCK * BLOCK;
  if (d->chunk > size) d->chunk = size;
  d->n_chunks = (size + d->chunk - 1) / d->chunk;
  d->part = part_of(d, d->chunk);
  d->last_part = part_of(d, size - (d->n_chunks - 1) * d->chunk);
  const int64_t unit = 2 * d->part.c.rows * d->part.c.columns * p->a.columns + 1;
  d->grain = unit < least_work ? least_work / unit : 1;
  d->n_lanes = n_threads;
}

static aot_status_t kernel_of(lw_build_t *b, bc_division_t *d, const bc_product_t *part, const bc_dnn_t **out) {
  bc_dnn_t *k = bc_dnn_product(part, d->n_lanes);
  *out = k;
  if (!k) return AOT_OK;
  if (d->work < bc_dnn_work(k)) d->work = bc_dnn_work(k);
  return lw_own(b, k, bc_dnn_destroy);
}

/* A kernel for each of the two sizes; none where oneDNN has not both. */
static aot_status_t find_kernels(lw_build_t *b, bc_division_t *d) {
  const int are_same = d->last_part.c.rows == d->part.c.rows && d->last_part.c.columns == d->part.c.columns;
  AOT_TRY(kernel_of(b, d, &d->part, &d->kernel));
  d->last = d->kernel;
  if (d->kernel && !are_same) AOT_TRY(kernel_of(b, d, &d->last_part, &d->last));
  if (d->last) return AOT_OK;
  d->kernel = NULL;
  d->work = 0;
  return AOT_OK;
}

aot_status_t bc_divide_product(lw_build_t *b, const bc_product_t *p, int with_onednn, const bc_division_t **out) {
  bc_division_t *d = lw_pool_alloc(b->pool, sizeof *d);
  const int is_sum_of_nothing = p->a.columns == 0, is_half = p->dtype == AOT_BF16 || p->dtype == AOT_F16;
  *out = NULL;
  if (!d) return lw_no_memory(b->error, "for the schedule");
  d->product = *p;
  divide(d, b->machine->n_threads);
  if (with_onednn && !is_sum_of_nothing) AOT_TRY(find_kernels(b, d));
  if (!d->kernel && (is_half || p->has_bias)) return AOT_OK;
  d->sparse = p->has_bias ? 0 : bc_sparse_work(p);
  *out = d;
  return AOT_OK;
}

aot_status_t bc_add_divided_product(lw_build_t *b, const bc_division_t *d, const lw_tensor_t *x, const lw_tensor_t *y,
                                    const lw_tensor_t *c, const lw_tensor_t *bias) {
  lw_tensor_t work = {.storage = LW_NONE}, sparse = {.storage = LW_NONE};
  division_step_t *p;
  if (d->work) AOT_TRY(lw_scratch(b, d->work * (uint64_t)d->n_lanes, &work));
  if (d->sparse) AOT_TRY(lw_scratch(b, d->sparse, &sparse));
  if (d->kernel) LW_STEP(b, run_onednn_product, p);
  else LW_STEP(b, run_product, p);
  *p = (division_step_t){.a = lw_use_read(b, x), .b = lw_use_read(b, y), .division = d};
  p->c = d->product.beta != 0 ? lw_use_update(b, c) : lw_use(b, c);
  p->bias = lw_use_read(b, d->product.has_bias ? bias : NULL);
  p->work = lw_use(b, &work);
  p->sparse = lw_use(b, &sparse);
  return AOT_OK;
}
