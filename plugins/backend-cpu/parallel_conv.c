#include "parallel_conv.h"

#include <stdatomic.h>

/* Floating-point operations that are worth waking a thread for: some microseconds. */
static const int64_t least_work = 2000000;
enum { CHANNEL_BLOCK = 16, N_OPERANDS = 4 };

struct bc_conv_division {
  bc_dnn_conv_t whole;
  int what;
  int by_images; /* else by channels of the result, or groups */
  int64_t n_units, chunk, n_parts;
  const bc_dnn_t *kernel, *last;
  uint64_t work; /* bytes a lane */
  int32_t n_lanes;
};

typedef struct division_step {
  lw_ref_t operands[N_OPERANDS], work;
  const bc_conv_division_t *division;
} division_step_t;

typedef struct job {
  const bc_conv_division_t *division;
  char *operands[N_OPERANDS], *work;
  atomic_int failed;
} job_t;

/* ---- parts ---- */

/* `n` units as a convolution of their own. */
static bc_dnn_conv_t part_of(const bc_conv_division_t *d, int64_t n) {
  bc_dnn_conv_t part = d->whole;
  bc_conv_t *c = &part.conv;
  if (d->by_images) {
    c->n_batch = n;
  } else if (c->groups > 1) {
    c->c_in = c->c_in / c->groups * n;
    c->c_out = c->c_out / c->groups * n;
    c->groups = n;
  } else if (d->what == BC_CONV_DATA) {
    c->c_in = n;
  } else {
    c->c_out = n;
  }
  return part;
}

/* Where its operands begin, in elements. */
static void begin_of(const bc_conv_division_t *d, int64_t unit, int64_t at[N_OPERANDS]) {
  const bc_dnn_conv_t *w = &d->whole;
  const bc_conv_t *c = &w->conv;
  const int64_t in = unit * (c->groups > 1 ? c->c_in / c->groups : d->what == BC_CONV_DATA);
  const int64_t out = unit * (c->groups > 1 ? c->c_out / c->groups : d->what != BC_CONV_DATA);
  at[0] = d->by_images ? unit * w->x_strides[0] : in * w->x_strides[1];
  at[1] = d->by_images ? 0 : out * w->w_strides[0] + (c->groups > 1 ? 0 : in * w->w_strides[1]);
  at[2] = d->by_images ? 0 : out;
  at[3] = d->by_images ? unit * w->y_strides[0] : out * w->y_strides[1];
}

/* ---- running ---- */

static void run_parts(void *arg, int32_t lane, int64_t begin, int64_t end) {
  job_t *job = arg;
  const bc_conv_division_t *d = job->division;
  const int64_t width = (int64_t)aot_dtype_size(d->whole.dtype);
  for (int64_t part = begin; part < end; part++) {
    const bc_dnn_t *kernel = part == d->n_parts - 1 ? d->last : d->kernel;
    int64_t at[N_OPERANDS];
    void *operands[N_OPERANDS];
    begin_of(d, part * d->chunk, at);
    for (int o = 0; o < N_OPERANDS; o++) operands[o] = job->operands[o] ? job->operands[o] + at[o] * width : NULL;
    if (bc_dnn_run(kernel, lane, operands, job->work + (uint64_t)lane * d->work)) atomic_store(&job->failed, 1);
  }
}

static aot_status_t run_onednn_convolution(const lw_frame_t *f, void *payload) {
  const division_step_t *p = payload;
  const bc_conv_division_t *d = p->division;
  job_t job = {.division = d};
  for (int o = 0; o < N_OPERANDS; o++)
    job.operands[o] = p->operands[o].storage == LW_NONE ? NULL : lw_at(f, p->operands[o]);
  job.work = d->work ? lw_at(f, p->work) : NULL;
  bc_parallel(f->workers, d->n_parts, 1, run_parts, &job);
  if (atomic_load(&job.failed))
    return lw_fail(f->error, AOT_E_EXHAUSTED, "no-memory", "oneDNN cannot run a convolution");
  return AOT_OK;
}

/* ---- dividing ---- */

/* By images every thread packs all weights, by channels it packs all inputs: the fewer. */
static void divide(bc_conv_division_t *d, int64_t n_threads) {
  const bc_conv_t *c = &d->whole.conv;
  const int64_t window = c->c_in / c->groups * bc_conv_window(c);
  const int64_t work = 2 * c->n_batch * c->c_out * bc_conv_positions(c) * window;
  const int64_t n_channels = c->groups > 1 ? c->groups : d->what == BC_CONV_DATA ? c->c_in : c->c_out;
  const int64_t in_group = c->c_out / c->groups;
  const int64_t block = c->groups == 1 ? CHANNEL_BLOCK : in_group < CHANNEL_BLOCK ? CHANNEL_BLOCK / in_group : 1;
  const int64_t parts = work / least_work < n_threads ? work / least_work : n_threads;
  const int images_are_even = c->n_batch % n_threads == 0 || c->n_batch >= 4 * n_threads;
  const int has_channels = n_channels >= parts * block;
  const int has_few_weights = c->c_out * window <= c->n_batch * c->c_in * bc_conv_inputs(c);
  int64_t step = 1;
  d->by_images = d->what != BC_CONV_WEIGHTS && (!has_channels || (images_are_even && has_few_weights));
  d->n_units = d->by_images ? c->n_batch : n_channels;
  if (!d->by_images) step = block;
  d->chunk = parts > 1 ? ((d->n_units + parts - 1) / parts + step - 1) / step * step : d->n_units;
  if (d->chunk > d->n_units) d->chunk = d->n_units;
  d->n_parts = (d->n_units + d->chunk - 1) / d->chunk;
}

static aot_status_t kernel_of(lw_build_t *b, bc_conv_division_t *d, int64_t n, const bc_dnn_t **out) {
  const bc_dnn_conv_t part = part_of(d, n);
  bc_dnn_t *k = bc_dnn_conv(&part, d->what, d->n_lanes);
  *out = k;
  if (!k) return AOT_OK;
  if (d->work < bc_dnn_work(k)) d->work = bc_dnn_work(k);
  return lw_own(b, k, bc_dnn_destroy);
}

aot_status_t bc_divide_conv(lw_build_t *b, const bc_dnn_conv_t *c, int what, const bc_conv_division_t **out) {
  bc_conv_division_t *d = lw_pool_alloc(b->pool, sizeof *d);
  *out = NULL;
  if (!d) return lw_no_memory(b->error, "for the schedule");
  *d = (bc_conv_division_t){.whole = *c, .what = what, .n_lanes = b->machine->n_threads};
  divide(d, b->machine->n_threads);
  AOT_TRY(kernel_of(b, d, d->chunk, &d->kernel));
  if (!d->kernel) return AOT_OK;
  const int64_t rest = d->n_units - (d->n_parts - 1) * d->chunk;
  d->last = d->kernel;
  if (rest != d->chunk) AOT_TRY(kernel_of(b, d, rest, &d->last));
  if (d->last) *out = d;
  return AOT_OK;
}

aot_status_t bc_add_divided_conv(lw_build_t *b, const bc_conv_division_t *d, const lw_tensor_t operands[4],
                                 int result) {
  lw_tensor_t work = {.storage = LW_NONE};
  division_step_t *p;
  if (d->work) AOT_TRY(lw_scratch(b, d->work * (uint64_t)d->n_lanes, &work));
  LW_STEP(b, run_onednn_convolution, p);
  p->division = d;
  for (int o = 0; o < N_OPERANDS; o++)
    p->operands[o] = o == result ? lw_use(b, &operands[o]) : lw_use_read(b, &operands[o]);
  p->work = lw_use(b, &work);
  return AOT_OK;
}
