#include "divided_product.h"

#include "onednn_kernels.h"
#include "sparse_product.h"
#include <stdatomic.h>

/* Floating-point operations that are worth waking a thread for: some microseconds. */
static const int64_t least_work = 2000000;
enum { ROW_BLOCK = 32, SPARSE_ROWS = 64 };

struct bc_division {
  bc_product_t product;
  int64_t n_batches, n_chunks, chunk; /* rows of a chunk; the last may have fewer */
  int64_t grain;                      /* units that one thread takes at least */
  const bc_dnn_t *kernel, *last;      /* NULL: the BLAS */
  uint64_t work;                      /* bytes a lane */
  uint64_t sparse; /* bytes for the elements of an operand that turns out to be nearly all zeros; 0: nobody looks */
  int32_t n_lanes;
};

typedef struct division_step {
  lw_ref_t a, b, c, work, sparse;
  const bc_division_t *division;
} division_step_t;

typedef struct job {
  const bc_division_t *division;
  char *a, *b, *c, *work, *sparse;
  atomic_int failed;
} job_t;

/* ---- running ---- */

static int64_t row_step(const bc_matrix_t *m) { return m->transposed ? 1 : m->ld; }

static void multiply_rows(const bc_product_t *p, int64_t n, void *const operands[3]) {
  bc_product_t part = *p;
  part.rank = 0;
  part.a.rows = part.c.rows = n;
  bc_product(&part, operands[0], operands[1], operands[2]);
}

static void run_units(void *arg, int32_t part, int64_t begin, int64_t end) {
  job_t *job = arg;
  const bc_division_t *d = job->division;
  const bc_product_t *p = &d->product;
  const int64_t width = (int64_t)aot_dtype_size(p->dtype);
  for (int64_t unit = begin; unit < end; unit++) {
    const int64_t chunk = unit % d->n_chunks, row = chunk * d->chunk;
    int64_t batch = unit / d->n_chunks, a = row * row_step(&p->a), b = 0, c = row * row_step(&p->c);
    for (int32_t k = p->rank - 1; k >= 0; k--) {
      const int64_t at = batch % p->sizes[k];
      batch /= p->sizes[k];
      a += at * p->a_strides[k];
      b += at * p->b_strides[k];
      c += at * p->c_strides[k];
    }
    void *const operands[] = {job->a + a * width, job->b + b * width, job->c + c * width};
    const bc_dnn_t *kernel = chunk == d->n_chunks - 1 ? d->last : d->kernel;
    if (!kernel) multiply_rows(p, p->c.rows - row < d->chunk ? p->c.rows - row : d->chunk, operands);
    else if (bc_dnn_run(kernel, part, operands, job->work + (uint64_t)part * d->work)) atomic_store(&job->failed, 1);
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

/* Of two names, which a profile tells. */
static aot_status_t run_onednn_product(const lw_frame_t *f, void *payload) { return run_divided(f, payload); }
static aot_status_t run_product(const lw_frame_t *f, void *payload) { return run_divided(f, payload); }

/* ---- dividing ---- */

/* Batches where they give every thread the same; rows else. */
static void divide(bc_division_t *d, int32_t n_threads) {
  const bc_product_t *p = &d->product;
  const int64_t work = 2 * p->c.rows * p->c.columns * p->a.columns;
  int64_t parts = work / least_work;
  d->n_batches = 1;
  for (int32_t k = 0; k < p->rank; k++) d->n_batches *= p->sizes[k];
  if (parts > n_threads) parts = n_threads;
  if (parts < 1 || d->n_batches % n_threads == 0 || d->n_batches > 4 * n_threads) parts = 1;
  d->chunk = p->c.rows;
  if (parts > 1) d->chunk = ((p->c.rows + parts - 1) / parts + ROW_BLOCK - 1) / ROW_BLOCK * ROW_BLOCK;
  if (d->chunk > p->c.rows) d->chunk = p->c.rows;
  d->n_chunks = (p->c.rows + d->chunk - 1) / d->chunk;
  const int64_t unit = 2 * d->chunk * p->c.columns * p->a.columns + 1;
  d->grain = unit < least_work ? least_work / unit : 1;
  d->n_lanes = n_threads;
}

static aot_status_t kernel_of(lw_build_t *b, bc_division_t *d, int64_t rows, const bc_dnn_t **out) {
  bc_product_t p = d->product;
  p.a.rows = p.c.rows = rows;
  bc_dnn_t *k = bc_dnn_product(&p, d->n_lanes);
  *out = k;
  if (!k) return AOT_OK;
  if (d->work < bc_dnn_work(k)) d->work = bc_dnn_work(k);
  return lw_own(b, k, bc_dnn_destroy);
}

/* A kernel for each of the two numbers of rows; none where oneDNN has not both. */
static aot_status_t find_kernels(lw_build_t *b, bc_division_t *d) {
  const int64_t rest = d->product.c.rows - (d->n_chunks - 1) * d->chunk;
  AOT_TRY(kernel_of(b, d, d->chunk, &d->kernel));
  d->last = d->kernel;
  if (d->kernel && rest != d->chunk) AOT_TRY(kernel_of(b, d, rest, &d->last));
  if (d->last) return AOT_OK;
  d->kernel = NULL;
  d->work = 0;
  return AOT_OK;
}

aot_status_t bc_divide_product(lw_build_t *b, const bc_product_t *p, int with_onednn, const bc_division_t **out) {
  bc_division_t *d = lw_pool_alloc(b->pool, sizeof *d);
  const int is_sum_of_nothing = p->a.columns == 0, is_half = p->dtype == AOT_BF16 || p->dtype == AOT_F16;
  *out = NULL;
  if (!d) return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the schedule");
  d->product = *p;
  divide(d, b->machine->n_threads);
  if (with_onednn && !is_sum_of_nothing) AOT_TRY(find_kernels(b, d));
  if (d->kernel) d->sparse = bc_sparse_work(p);
  if (d->kernel || !is_half) *out = d;
  return AOT_OK;
}

aot_status_t bc_add_divided_product(lw_build_t *b, const bc_division_t *d, const lw_tensor_t *x, const lw_tensor_t *y,
                                    const lw_tensor_t *c) {
  lw_tensor_t work = {.storage = LW_NONE}, sparse = {.storage = LW_NONE};
  division_step_t *p;
  if (d->work) AOT_TRY(lw_scratch(b, d->work * (uint64_t)d->n_lanes, &work));
  if (d->sparse) AOT_TRY(lw_scratch(b, d->sparse, &sparse));
  if (d->kernel) LW_STEP(b, run_onednn_product, p);
  else LW_STEP(b, run_product, p);
  *p = (division_step_t){.a = lw_use(b, x), .b = lw_use(b, y), .c = lw_use(b, c), .division = d};
  p->work = lw_use(b, &work);
  p->sparse = lw_use(b, &sparse);
  return AOT_OK;
}
