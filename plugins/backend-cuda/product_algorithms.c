#include "product_algorithms.h"

#include "gpu_clock.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 8, MOST_ROUNDS = 10, FIRST_SLOTS = 64, ALLOC_FAILED = 3 /* cublasStatus_t */ };
#define ALL_MS 3000.0 /* for all products of a program */
#define ONE_MS 20.0   /* for the rounds of one */
#define GAIN 0.97     /* of the first algorithm's time: less is noise */

/* The form of a product, without padding: what its algorithm depends on. */
typedef struct form {
  int64_t sizes[4], leading[GC_N_MATRICES], batch_strides[GC_N_MATRICES];
  uint64_t workspace_nbytes;
  uint32_t align[GC_N_MATRICES];
  int32_t dtype, flags; /* 1, 2: transposed; 4: it reads c; 8: a bias; 16: the result is of another dtype */
} form_t;

void gc_algorithms_init(gc_algorithms_t *a, const gc_driver_t *driver, const gc_cublaslt_t *cublaslt,
                        gc_stream_t stream, const char *folder, const char *device, int are_timed) {
  const uint64_t version = cublaslt->version();
  *a = (gc_algorithms_t){.driver = driver, .cublaslt = cublaslt, .stream = stream, .folder = folder};
  a->identity = XXH3_64bits_withSeed(device, strlen(device), version);
  a->are_timed = are_timed;
  a->left_ms = ALL_MS;
}

void gc_algorithms_deinit(gc_algorithms_t *a) {
  for (uint32_t k = 0; k < a->n_slots; k++) free(a->slots[k]);
  free(a->slots);
  a->slots = NULL;
  a->n = a->n_slots = 0;
}

static kf_key_t key_of(const gc_algorithms_t *a, const gc_product_t *p) {
  form_t f = {.sizes = {p->m, p->n, p->k, p->n_batch}, .workspace_nbytes = p->workspace_nbytes, .dtype = p->dtype};
  for (int i = 0; i < GC_N_MATRICES; i++) {
    if (i == GC_C && p->beta == 0) continue;
    f.leading[i] = p->matrices[i].leading;
    f.batch_strides[i] = p->matrices[i].batch_stride;
    f.align[i] = p->align[i];
  }
  f.flags = p->matrices[GC_A].transposed | p->matrices[GC_B].transposed << 1 | (p->beta != 0) << 2 | p->has_bias << 3;
  f.flags |= (p->result != p->dtype) << 4;
  return XXH3_128bits_withSeed(&f, sizeof f, a->identity);
}

/* ---- what was chosen before ---- */

static gc_choice_t **slot_of(gc_choice_t **slots, uint32_t n_slots, kf_key_t key) {
  uint32_t k = (uint32_t)key.low64 & (n_slots - 1);
  while (slots[k] && !XXH128_isEqual(slots[k]->key, key)) k = (k + 1) & (n_slots - 1);
  return &slots[k];
}

static int make_room(gc_algorithms_t *a) {
  if (2 * (a->n + 1) <= a->n_slots) return 1;
  const uint32_t n_slots = a->n_slots ? 2 * a->n_slots : FIRST_SLOTS;
  gc_choice_t **slots = calloc(n_slots, sizeof *slots);
  if (!slots) return 0;
  for (uint32_t k = 0; k < a->n_slots; k++)
    if (a->slots[k]) *slot_of(slots, n_slots, a->slots[k]->key) = a->slots[k];
  free(a->slots);
  a->slots = slots;
  a->n_slots = n_slots;
  return 1;
}

/* Of this form, known or added. NULL: no memory. */
static gc_choice_t *choice_of(gc_algorithms_t *a, kf_key_t key) {
  if (!make_room(a)) return NULL;
  gc_choice_t **slot = slot_of(a->slots, a->n_slots, key);
  if (!*slot && (*slot = calloc(1, sizeof **slot)) != NULL) {
    (*slot)->key = key;
    a->n++;
  }
  return *slot;
}

static int kept_path(const gc_algorithms_t *a, kf_key_t key, char *out, size_t size) {
  if (!a->folder) return 0;
  const int n = snprintf(out, size, "%s/cuda-%016llx%016llx.algorithm", a->folder, (unsigned long long)key.high64,
                         (unsigned long long)key.low64);
  return n > 0 && (size_t)n < size;
}

/* One that the library does not take any more is as good as none. */
static int read_kept(const gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p) {
  char path[4096];
  size_t nbytes = 0;
  char *bytes = kept_path(a, choice->key, path, sizeof path) ? kf_read(path, choice->key, &nbytes) : NULL;
  const int is_whole = bytes && nbytes == sizeof choice->algo;
  if (is_whole) memcpy(&choice->algo, bytes, sizeof choice->algo);
  free(bytes);
  return is_whole && gc_product_check(a->cublaslt, p) == 0;
}

/* ---- measuring ---- */

/* Memory like the product's, in one block, and two events for each candidate. */
typedef struct bench {
  gc_address_t block, at[GC_N_OPERANDS];
  gc_event_t begin[MOST_CANDIDATES], end[MOST_CANDIDATES];
  float ms[MOST_CANDIDATES]; /* the least; 0: it does not run */
} bench_t;

static uint64_t extent(const gc_product_t *p, int i) {
  const gc_matrix_t *x = &p->matrices[i];
  const int64_t rows = i == GC_B ? p->k : p->m, columns = i == GC_A ? p->k : p->n;
  const int64_t lines = x->transposed ? columns : rows, line = x->transposed ? rows : columns;
  return (uint64_t)((lines - 1) * x->leading + line + (p->n_batch - 1) * x->batch_stride) *
         aot_dtype_size(i < GC_C ? p->dtype : p->result);
}

static void bench_close(const gc_algorithms_t *a, bench_t *b) {
  for (int k = 0; k < MOST_CANDIDATES; k++) {
    if (b->begin[k]) a->driver->event_destroy(b->begin[k]);
    if (b->end[k]) a->driver->event_destroy(b->end[k]);
  }
  if (b->block) a->driver->mem_free(b->block);
}

/* Small numbers, in any format: zeros would draw less power than a run does. */
static int bench_open(const gc_algorithms_t *a, const gc_product_t *p, int n, bench_t *b) {
  uint64_t nbytes[GC_N_OPERANDS] =
      {[GC_BIAS] = (uint64_t)p->n * aot_dtype_size(p->dtype), [GC_WORKSPACE] = p->workspace_nbytes},
           all = 0;
  *b = (bench_t){0};
  for (int i = 0; i < GC_N_MATRICES; i++)
    if (i != GC_C || p->beta != 0) nbytes[i] = extent(p, i);
  for (int i = 0; i < GC_N_OPERANDS; i++) {
    b->at[i] = all;
    all += (nbytes[i] + 255) / 256 * 256;
  }
  if (a->driver->mem_alloc(&b->block, all) != GC_SUCCESS) {
    b->block = 0;
    return 0;
  }
  for (int i = 0; i < GC_N_OPERANDS; i++) b->at[i] += b->block;
  int failed = a->driver->memset_bytes(b->block, 0x3c, all, a->stream) != GC_SUCCESS;
  for (int k = 0; k < n && !failed; k++)
    failed =
        a->driver->event_create(&b->begin[k], 0) != GC_SUCCESS || a->driver->event_create(&b->end[k], 0) != GC_SUCCESS;
  return !failed;
}

/* Every candidate once, side by side: a chip that slows down slows all of them. The time of all, in ms. */
static double run_round(const gc_algorithms_t *a, const gc_product_t *p, const gc_candidate_t *candidates, int n,
                        int counts, bench_t *b) {
  int has_run[MOST_CANDIDATES];
  double all = 0;
  for (int k = 0; k < n; k++) {
    gc_product_t one = *p;
    one.algo = &candidates[k].algo;
    has_run[k] = a->driver->event_record(b->begin[k], a->stream) == GC_SUCCESS &&
                 gc_product_run(a->cublaslt, &one, b->at, a->stream) == 0 &&
                 a->driver->event_record(b->end[k], a->stream) == GC_SUCCESS;
  }
  if (a->driver->stream_synchronize(a->stream) != GC_SUCCESS) return ONE_MS;
  for (int k = 0; k < n; k++) {
    float ms = 0;
    if (!has_run[k] || a->driver->event_elapsed(&ms, b->begin[k], b->end[k]) != GC_SUCCESS) continue;
    if (ms <= 0) ms = 1e-6f; /* the clock of events has steps */
    if (counts && (b->ms[k] == 0 || ms < b->ms[k])) b->ms[k] = ms;
    all += (double)ms;
  }
  return all;
}

/* The fastest candidate; the first, unless another gains something. -1: there is no memory to measure in. */
static int measure(gc_algorithms_t *a, const gc_product_t *p, gc_candidate_t *candidates, int n) {
  bench_t b;
  int best = -1;
  if (bench_open(a, p, n, &b)) {
    double ms = run_round(a, p, candidates, n, 0, &b); /* the first call of a kernel loads it */
    for (int round = 0; round < MOST_ROUNDS && (round == 0 || ms < ONE_MS); round++)
      ms += run_round(a, p, candidates, n, 1, &b);
    a->left_ms -= ms;
    a->n_timed++;
    for (int k = 0; k < n; k++)
      if (b.ms[k] > 0 && (best < 0 || b.ms[k] < b.ms[best])) best = k;
    if (best > 0 && b.ms[0] > 0 && (double)b.ms[best] > GAIN * (double)b.ms[0]) best = 0;
  }
  bench_close(a, &b);
  return best;
}

/* ---- choosing ---- */

static int choose_anew(gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p) {
  gc_candidate_t candidates[MOST_CANDIDATES];
  char path[4096];
  int n = 0;
  const int is_timed = a->are_timed && a->left_ms > 0;
  const int failed = gc_product_candidates(a->cublaslt, p, candidates, is_timed ? MOST_CANDIDATES : 1, &n);
  if (failed) return failed;
  const int best = is_timed ? measure(a, p, candidates, n) : -1;
  choice->algo = candidates[best > 0 ? best : 0].algo;
  if (best >= 0 && kept_path(a, choice->key, path, sizeof path))
    kf_write(a->folder, path, choice->key, &choice->algo, sizeof choice->algo);
  return 0;
}

/* What was kept; else, unless it may wait, anew. */
static void find(gc_algorithms_t *a, gc_choice_t *choice, gc_product_t *p, int may_wait) {
  const double begin = gc_now_ms();
  p->algo = &choice->algo;
  choice->state = GC_ALGORITHM_CHOSEN;
  choice->status = gc_product_init(a->cublaslt, p);
  if (!choice->status && a->are_timed && read_kept(a, choice, p)) a->n_found++;
  else if (!choice->status && may_wait) choice->state = GC_ALGORITHM_WAITS;
  else if (!choice->status) choice->status = choose_anew(a, choice, p);
  gc_product_deinit(a->cublaslt, p);
  a->ms += gc_now_ms() - begin;
}

int gc_algorithms_choose(gc_algorithms_t *a, gc_product_t *p) {
  gc_choice_t *choice = choice_of(a, key_of(a, p));
  if (!choice) return ALLOC_FAILED;
  p->algo = &choice->algo;
  if (choice->state == GC_ALGORITHM_CHOSEN || (choice->state == GC_ALGORITHM_WAITS && a->is_gathering))
    return choice->status;
  find(a, choice, p, a->is_gathering);
  if (choice->state == GC_ALGORITHM_CHOSEN) return choice->status;
  choice->product = *p;
  choice->next_waiting = a->waiting;
  a->waiting = choice;
  return 0;
}

uint32_t gc_algorithms_choose_waiting(gc_algorithms_t *a) {
  uint32_t n_failed = 0;
  while (a->waiting) {
    gc_choice_t *choice = a->waiting;
    a->waiting = choice->next_waiting;
    if (choice->state == GC_ALGORITHM_WAITS) find(a, choice, &choice->product, 0);
    n_failed += choice->status != 0;
  }
  return n_failed;
}
