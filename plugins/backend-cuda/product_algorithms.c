#include "product_algorithms.h"

#include "kit/base/vector.h"
#include "gpu_clock.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { ALLOC_FAILED = 3 /* cublasStatus_t */ };
/* For all products of a program; then the first algorithms are used, or, under load, those of bursts. */
#define ALL_BURSTS_MS 3000.0
#define ALL_LOAD_MS 120000.0
#define TELL_MS 10000.0 /* from one word about it to the next */

/* The form of a product, without padding: what its algorithm depends on. */
typedef struct form {
  int64_t sizes[4], leading[GC_N_MATRICES], batch_strides[GC_N_MATRICES];
  uint64_t workspace_nbytes;
  uint32_t align[GC_N_MATRICES];
  int32_t dtype, flags; /* 1, 2: transposed; 4: it reads c; 8: a bias; 16: the result is of another dtype */
} form_t;

void gc_algorithms_init(gc_algorithms_t *a, const gc_driver_t *driver, const gc_cublaslt_t *cublaslt,
                        gc_stream_t stream, const char *folder, const char *device, int how) {
  const uint64_t version = cublaslt->version();
  *a = (gc_algorithms_t){.cublaslt = cublaslt, .folder = folder, .how = how};
  a->timing = (gc_timing_t){.driver = driver, .cublaslt = cublaslt, .stream = stream};
  a->identity = XXH3_64bits_withSeed(device, strlen(device), version);
}

void gc_algorithms_deinit(gc_algorithms_t *a) {
  for (uint32_t k = 0; k < a->n; k++) free(a->choices[k]);
  free(a->choices);
  free(a->waiting);
  kit_map_deinit(&a->by_form);
  a->choices = a->waiting = NULL;
  a->n = a->capacity = a->n_waiting = a->waiting_capacity = 0;
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
  return kf_key(&f, sizeof f, a->identity);
}

/* ---- what was chosen before ---- */

static int is_of_form(const void *choices, uint32_t k, const void *key) {
  return kf_key_compare(&((gc_choice_t *const *)choices)[k]->key, key) == 0;
}

/* Of this form, known or added. NULL: no memory. */
static gc_choice_t *choice_of(gc_algorithms_t *a, kf_key_t key) {
  gc_choice_t **choices = kit_grow(a->choices, &a->capacity, (uint64_t)a->n + 1, sizeof *choices);
  if (!choices) return NULL;
  a->choices = choices;
  const uint32_t known = kit_map_find(&a->by_form, key.low64, is_of_form, choices, &key);
  if (known != KIT_MAP_NONE) return choices[known];
  gc_choice_t *added = calloc(1, sizeof *added);
  if (!added || !kit_map_add(&a->by_form, key.low64, a->n)) {
    free(added);
    return NULL;
  }
  added->key = key;
  return choices[a->n++] = added;
}

static const char *const kinds[] = {[GC_ALGORITHMS_TIME] = "algorithm", [GC_ALGORITHMS_LOAD] = "algorithm-under-load"};

static int kept_path(const gc_algorithms_t *a, kf_key_t key, int kind, char *out, size_t size) {
  if (!a->folder) return 0;
  const int n = snprintf(out, size, "%s/cuda-%016llx%016llx.%s", a->folder, (unsigned long long)key.high64,
                         (unsigned long long)key.low64, kinds[kind]);
  return n > 0 && (size_t)n < size;
}

/* One that the library does not take any more is as good as none. */
static int read_kind(const gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p, int kind) {
  char path[4096];
  size_t nbytes = 0;
  char *bytes = kept_path(a, choice->key, kind, path, sizeof path) ? kf_read(path, choice->key, &nbytes) : NULL;
  const int is_whole = bytes && nbytes == sizeof choice->algo;
  if (is_whole) memcpy(&choice->algo, bytes, sizeof choice->algo);
  free(bytes);
  return is_whole && gc_product_check(a->cublaslt, p) == 0;
}

static int read_kept(const gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p) {
  if (a->how == GC_ALGORITHMS_FIRST) return 0;
  return read_kind(a, choice, p, GC_ALGORITHMS_LOAD) ||
         (a->how == GC_ALGORITHMS_TIME && read_kind(a, choice, p, GC_ALGORITHMS_TIME));
}

/* ---- choosing ---- */

static int choose_anew(gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p) {
  gc_candidate_t candidates[GC_MOST_CANDIDATES];
  char path[4096];
  int n = 0, best = -1;
  const int kind =
      a->how == GC_ALGORITHMS_LOAD && a->timing.load_ms < ALL_LOAD_MS ? GC_ALGORITHMS_LOAD : GC_ALGORITHMS_TIME;
  const int is_timed = a->how != GC_ALGORITHMS_FIRST && !a->is_stopped &&
                       (kind == GC_ALGORITHMS_LOAD || a->timing.burst_ms < ALL_BURSTS_MS);
  const int failed = gc_product_candidates(a->cublaslt, p, candidates, is_timed ? GC_MOST_CANDIDATES : 1, &n);
  if (failed) return failed;
  if (is_timed) best = gc_timing_fastest(&a->timing, p, candidates, n, kind == GC_ALGORITHMS_LOAD);
  a->n_timed += best >= 0;
  choice->algo = candidates[best > 0 ? best : 0].algo;
  if (best >= 0 && kept_path(a, choice->key, kind, path, sizeof path))
    kf_write(a->folder, path, choice->key, &choice->algo, sizeof choice->algo);
  return 0;
}

/* What was stored; else, unless it may wait, again. */
static void find(gc_algorithms_t *a, gc_choice_t *choice, gc_product_t *p, int may_wait) {
  const double begin = gc_now_ms();
  p->algo = &choice->algo;
  choice->state = GC_ALGORITHM_CHOSEN;
  choice->status = gc_product_init(a->cublaslt, p);
  if (!choice->status && read_kept(a, choice, p)) a->n_found++;
  else if (!choice->status && may_wait) choice->state = GC_ALGORITHM_WAITS;
  else if (!choice->status) choice->status = choose_anew(a, choice, p);
  gc_product_deinit(a->cublaslt, p);
  a->ms += gc_now_ms() - begin;
}

static int let_wait(gc_algorithms_t *a, gc_choice_t *choice, const gc_product_t *p) {
  gc_choice_t **waiting = kit_grow(a->waiting, &a->waiting_capacity, (uint64_t)a->n_waiting + 1, sizeof *waiting);
  if (!waiting) {
    choice->state = GC_ALGORITHM_UNKNOWN;
    return ALLOC_FAILED;
  }
  choice->product = *p;
  a->waiting = waiting;
  a->waiting[a->n_waiting++] = choice;
  return 0;
}

int gc_algorithms_choose(gc_algorithms_t *a, gc_product_t *p) {
  gc_choice_t *choice = choice_of(a, key_of(a, p));
  if (!choice) return ALLOC_FAILED;
  p->algo = &choice->algo;
  if (choice->state == GC_ALGORITHM_CHOSEN || (choice->state == GC_ALGORITHM_WAITS && a->is_gathering))
    return choice->status;
  find(a, choice, p, a->is_gathering);
  return choice->state == GC_ALGORITHM_CHOSEN ? choice->status : let_wait(a, choice, p);
}

/* ---- those that wait ---- */

static double work_of(const gc_product_t *p) { return (double)p->m * (double)p->n * (double)p->k * (double)p->n_batch; }

/* The most work first: it is what must not be left, and it keeps a chip at work. */
static int compare(const void *pa, const void *pb) {
  const gc_choice_t *a = *(gc_choice_t *const *)pa, *b = *(gc_choice_t *const *)pb;
  const double x = work_of(&a->product), y = work_of(&b->product);
  if (x != y) return x < y ? 1 : -1;
  return kf_key_compare(&a->key, &b->key);
}

static void tell(gc_algorithms_t *a, const char *text, int is_for_all) {
  if (a->go_on && !a->go_on(a->listener, text, is_for_all)) a->is_stopped = 1;
}

static void tell_begin(gc_algorithms_t *a) {
  const double seconds = a->n_waiting * gc_timing_load_ms() / 1e3, most = ALL_LOAD_MS / 1e3;
  char text[200];
  snprintf(text, sizeof text, "algorithms of %u forms of products are timed under load, for up to %.0f seconds",
           a->n_waiting, seconds < most ? 1 + seconds : most);
  tell(a, text, 1);
}

static void tell_on(gc_algorithms_t *a, uint32_t n_done, double *told_ms) {
  char text[100];
  const int is_time = gc_now_ms() - *told_ms > TELL_MS;
  snprintf(text, sizeof text, "algorithms of %u of %u forms of products have been timed", n_done, a->n_waiting);
  tell(a, is_time ? text : NULL, 0);
  if (is_time) *told_ms = gc_now_ms();
}

static void tell_end(gc_algorithms_t *a, uint32_t n_left, double ms) {
  char text[200];
  int at = snprintf(text, sizeof text, "algorithms of %u forms of products were timed under load in %.1f seconds",
                    a->n_waiting - n_left, ms / 1e3);
  if (n_left) snprintf(text + at, sizeof text - (size_t)at, "; %u with less work are left to the next start", n_left);
  tell(a, text, n_left > 0);
}

uint32_t gc_algorithms_choose_waiting(gc_algorithms_t *a) {
  const int is_long = a->how == GC_ALGORITHMS_LOAD && a->n_waiting > 0;
  const double begin = gc_now_ms();
  double told = begin;
  uint32_t n_failed = 0, n_left = 0;
  if (a->n_waiting) qsort(a->waiting, a->n_waiting, sizeof(gc_choice_t *), compare);
  if (is_long) tell_begin(a);
  for (uint32_t k = 0; k < a->n_waiting; k++) {
    gc_choice_t *choice = a->waiting[k];
    n_left += a->is_stopped || a->timing.load_ms >= ALL_LOAD_MS;
    if (choice->state == GC_ALGORITHM_WAITS) find(a, choice, &choice->product, 0);
    n_failed += choice->status != 0;
    if (is_long) tell_on(a, k + 1, &told);
  }
  if (is_long) tell_end(a, n_left, gc_now_ms() - begin);
  a->n_waiting = 0;
  return n_failed;
}
