#include "product_timing.h"

#include "gpu_clock.h"
#include <aot/inline.h>
#include <stdlib.h>

enum { MOST_ROUNDS = 10, MOST_RUNS = 1000 /* after each other, between two looks at the clock */ };
#define ONE_MS 20.0           /* for the rounds of a burst */
#define BURST_GAIN 0.97       /* of the first algorithm's time: less is noise */
#define LOAD_GAIN 0.99        /* the same of means of many runs */
#define WARM_UP_MS 1000.0     /* from rest until the clock is that of a chip at its limit of power */
#define REST_MS 1000.0        /* after so much it counts as rested */
#define SETTLE_MS 60.0        /* from one algorithm to the next */
#define COUNTED_MS 100.0      /* of one, then */
#define RUNS_MS 10.0          /* of runs between two looks at the clock */
#define SHORTEST_LOAD_MS 0.01 /* of a product: a launch takes about as long */

/* Memory like the product's, in one block, and two events for each candidate. */
typedef struct bench {
  gc_address_t block, at[GC_N_OPERANDS];
  gc_event_t begin[GC_MOST_CANDIDATES], end[GC_MOST_CANDIDATES];
  double ms[GC_MOST_CANDIDATES]; /* of a burst the least, under load the mean; 0: it does not run */
} bench_t;

/* ---- memory ---- */

static uint64_t extent(const gc_product_t *p, int i) {
  const gc_matrix_t *x = &p->matrices[i];
  const int64_t rows = i == GC_B ? p->k : p->m, columns = i == GC_A ? p->k : p->n;
  const int64_t lines = x->transposed ? columns : rows, line = x->transposed ? rows : columns;
  return (uint64_t)((lines - 1) * x->leading + line + (p->n_batch - 1) * x->batch_stride) *
         aot_dtype_size(i < GC_C ? p->dtype : p->result);
}

static void bench_close(const gc_timing_t *t, bench_t *b) {
  for (int k = 0; k < GC_MOST_CANDIDATES; k++) {
    if (b->begin[k]) t->driver->event_destroy(b->begin[k]);
    if (b->end[k]) t->driver->event_destroy(b->end[k]);
  }
  if (b->block) t->driver->mem_free(b->block);
}

/* Numbers of both signs and many values, none above 2, in any format: equal ones would draw less power than a run does.
 * A pattern that is repeated. 0: no memory. */
static int fill_drawn(const gc_timing_t *t, gc_address_t at, uint64_t nbytes) {
  enum { PATTERN = 1 << 20, EXPONENT = 0x3800, OTHERS = 0x87ff };
  uint64_t have = nbytes < PATTERN ? nbytes : PATTERN, x = 1;
  uint16_t *pattern = malloc(PATTERN);
  if (!pattern) return 0;
  for (size_t k = 0; k < PATTERN / sizeof *pattern; k++) {
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth, MMIX */
    pattern[k] = (uint16_t)(EXPONENT | (x >> 40 & OTHERS));
  }
  int failed = t->driver->memcpy_to_device(at, pattern, have, t->stream) != GC_SUCCESS ||
               t->driver->stream_synchronize(t->stream) != GC_SUCCESS;
  for (; have < nbytes && !failed; have *= 2)
    failed = t->driver->memcpy_on_device(at + have, at, have < nbytes - have ? have : nbytes - have, t->stream) !=
             GC_SUCCESS;
  free(pattern);
  return !failed;
}

static int bench_open(const gc_timing_t *t, const gc_product_t *p, int n, int is_drawn, bench_t *b) {
  uint64_t nbytes[GC_N_OPERANDS] =
      {[GC_BIAS] = (uint64_t)p->n * aot_dtype_size(p->result), [GC_WORKSPACE] = p->workspace_nbytes},
           all = 0;
  *b = (bench_t){0};
  for (int i = 0; i < GC_N_MATRICES; i++)
    if (i != GC_C || p->beta != 0) nbytes[i] = extent(p, i);
  for (int i = 0; i < GC_N_OPERANDS; i++) {
    b->at[i] = all;
    all += (nbytes[i] + 255) / 256 * 256;
  }
  if (t->driver->mem_alloc(&b->block, all) != GC_SUCCESS) {
    b->block = 0;
    return 0;
  }
  for (int i = 0; i < GC_N_OPERANDS; i++) b->at[i] += b->block;
  int failed = is_drawn ? !fill_drawn(t, b->block, all)
                        : t->driver->memset_bytes(b->block, 0x3c, all, t->stream) != GC_SUCCESS; /* small, not 0 */
  for (int k = 0; k < n && !failed; k++)
    failed =
        t->driver->event_create(&b->begin[k], 0) != GC_SUCCESS || t->driver->event_create(&b->end[k], 0) != GC_SUCCESS;
  return !failed;
}

/* ---- in a burst ---- */

/* Every candidate once, side by side. The time of all, in ms. */
static double run_round(const gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidates, int n,
                        int counts, bench_t *b) {
  int has_run[GC_MOST_CANDIDATES];
  double all = 0;
  gc_product_t one = *p;
  one.algo = &candidates[0].algo;
  gc_product_run(t->cublaslt, &one, b->at, t->stream); /* else the first that counts would wait for its launch */
  for (int k = 0; k < n; k++) {
    one.algo = &candidates[k].algo;
    has_run[k] = t->driver->event_record(b->begin[k], t->stream) == GC_SUCCESS &&
                 gc_product_run(t->cublaslt, &one, b->at, t->stream) == 0 &&
                 t->driver->event_record(b->end[k], t->stream) == GC_SUCCESS;
  }
  if (t->driver->stream_synchronize(t->stream) != GC_SUCCESS) return ONE_MS;
  for (int k = 0; k < n; k++) {
    float ms = 0;
    if (!has_run[k] || t->driver->event_elapsed(&ms, b->begin[k], b->end[k]) != GC_SUCCESS) continue;
    if (ms <= 0) ms = 1e-6f; /* the clock of events has steps */
    if (counts && (b->ms[k] == 0 || (double)ms < b->ms[k])) b->ms[k] = (double)ms;
    all += (double)ms;
  }
  return all;
}

static void run_burst(gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidates, int n, bench_t *b) {
  double ms = run_round(t, p, candidates, n, 0, b); /* the first call of a kernel loads it */
  for (int round = 0; round < MOST_ROUNDS && (round == 0 || ms < ONE_MS); round++)
    ms += run_round(t, p, candidates, n, 1, b);
  t->burst_ms += ms;
}

/* ---- under load ---- */

/* So many runs after each other, in ms; 0: it does not run. */
static double run_many(const gc_timing_t *t, const gc_product_t *p, int n, bench_t *b) {
  float ms = 0;
  int failed = t->driver->event_record(b->begin[0], t->stream) != GC_SUCCESS;
  for (int k = 0; k < n && !failed; k++) failed = gc_product_run(t->cublaslt, p, b->at, t->stream) != 0;
  if (failed || t->driver->event_record(b->end[0], t->stream) != GC_SUCCESS ||
      t->driver->stream_synchronize(t->stream) != GC_SUCCESS ||
      t->driver->event_elapsed(&ms, b->begin[0], b->end[0]) != GC_SUCCESS)
    return 0;
  return ms > 0 ? (double)ms : 1e-6;
}

/* The mean of a run, in ms, after settle_ms of them. one_ms: of a run, about. 0: it does not run. */
static double run_alone(const gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidate, double one_ms,
                        double settle_ms, bench_t *b) {
  gc_product_t one = *p;
  one.algo = &candidate->algo;
  const double begin = gc_now_ms();
  const int n = one_ms * MOST_RUNS < RUNS_MS ? MOST_RUNS : 1 + (int)(RUNS_MS / one_ms);
  double counted_ms = 0, n_counted = 0;
  for (double at = 0; at < settle_ms + COUNTED_MS || n_counted == 0; at = gc_now_ms() - begin) {
    const double ms = run_many(t, &one, n, b);
    if (ms == 0) return 0;
    if (at < settle_ms) continue;
    counted_ms += ms;
    n_counted += n;
  }
  return counted_ms / n_counted;
}

/* b->ms: of a burst; from here on under load. */
static void run_under_load(gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidates, int n, bench_t *b) {
  const double begin = gc_now_ms();
  const int is_rested = begin - t->loaded_until_ms > REST_MS;
  for (int k = 0, is_first = 1; k < n; k++) {
    if (b->ms[k] == 0) continue;
    b->ms[k] = run_alone(t, p, &candidates[k], b->ms[k], is_first && is_rested ? WARM_UP_MS : SETTLE_MS, b);
    is_first = 0;
  }
  t->loaded_until_ms = gc_now_ms();
  t->load_ms += t->loaded_until_ms - begin;
}

double gc_timing_load_ms(void) { return GC_MOST_CANDIDATES * (SETTLE_MS + COUNTED_MS); }

/* ---- the fastest ---- */

static int least(const bench_t *b, int n, double gain) {
  int best = -1;
  for (int k = 0; k < n; k++)
    if (b->ms[k] > 0 && (best < 0 || b->ms[k] < b->ms[best])) best = k;
  return best > 0 && b->ms[0] > 0 && b->ms[best] > gain * b->ms[0] ? 0 : best;
}

int gc_timing_fastest(gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidates, int n,
                      int is_under_load) {
  bench_t b;
  int best = -1;
  if (bench_open(t, p, n, is_under_load, &b)) {
    run_burst(t, p, candidates, n, &b);
    best = least(&b, n, BURST_GAIN);
    if (best >= 0 && n > 1 && is_under_load && b.ms[best] >= SHORTEST_LOAD_MS) {
      run_under_load(t, p, candidates, n, &b);
      best = least(&b, n, LOAD_GAIN);
    }
  }
  bench_close(t, &b);
  return best;
}
