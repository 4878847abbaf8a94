#include "gpu_code.h"

#include "kit/base/sealed_file.h"
#include "kit/base/vector.h"
#include "gpu_clock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* NVRTC takes 45 ms for a unit and some 30 ms for each kilobyte of kernels: 50 ms for most, 250 for the largest. Four
 * threads are what it makes use of; they begin with the longest, so as not to end with one of them alone. */
enum { KERNELS_A_UNIT = 8, TEXT_A_UNIT = 6000 /* bytes */, MOST_THREADS = 4 };

void gc_code_init(gc_code_t *c, const gc_driver_t *driver, const nv_nvrtc_t *nvrtc, int arch, const char *folder) {
  *c = (gc_code_t){.driver = driver, .nvrtc = nvrtc, .folder = folder, .arch = arch};
}

void gc_code_deinit(gc_code_t *c) {
  for (uint32_t k = 0; k < c->n; k++) {
    lp_text_deinit(&c->kernels[k]->text);
    free(c->kernels[k]);
  }
  for (uint32_t m = 0; m < c->n_modules; m++) c->driver->module_unload(c->modules[m]);
  free(c->modules);
  free(c->fresh);
  free(c->kernels);
  kit_map_deinit(&c->by_name);
  memset(c, 0, sizeof *c);
}

static int is_named(const void *kernels, uint32_t k, const void *name) {
  return strcmp(((gc_kernel_t *const *)kernels)[k]->name, name) == 0;
}

/* For one more kernel. */
static int make_room(gc_code_t *c) {
  gc_kernel_t **kernels = kit_grow(c->kernels, &c->capacity, (uint64_t)c->n + 1, sizeof *kernels);
  if (kernels) c->kernels = kernels;
  gc_kernel_t **fresh = kit_grow(c->fresh, &c->fresh_capacity, (uint64_t)c->n_fresh + 1, sizeof *fresh);
  if (fresh) c->fresh = fresh;
  return kernels && fresh && kit_map_reserve(&c->by_name, c->n + 1);
}

static uint64_t hash_of(gc_print_fn print, const void *self) {
  lp_text_t body = {0};
  print(self, "F", &body);
  const uint64_t hash = body.failed ? 0 : XXH3_64bits(body.data, (size_t)body.size);
  lp_text_deinit(&body);
  return hash;
}

gc_kernel_t *gc_code_printed(gc_code_t *c, gc_print_fn print, const void *self) {
  const uint64_t hash = hash_of(print, self);
  char name[32];
  if (!hash || !make_room(c)) return NULL;
  snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)hash);
  const uint64_t hash_of_name = XXH3_64bits(name, strlen(name));
  const uint32_t known = kit_map_find(&c->by_name, hash_of_name, is_named, c->kernels, name);
  if (known != KIT_MAP_NONE) return c->kernels[known];
  gc_kernel_t *added = calloc(1, sizeof *added);
  if (!added) return NULL;
  added->hash = hash;
  memcpy(added->name, name, sizeof name);
  print(self, name, &added->text);
  kit_map_add(&c->by_name, hash_of_name, c->n);
  c->kernels[c->n++] = added;
  return c->fresh[c->n_fresh++] = added;
}

static void print_loop(const void *self, const char *name, lp_text_t *out) { lp_gen_cuda(self, name, out); }

uint64_t gc_code_hash(const lp_loop_t *loop) { return hash_of(print_loop, loop); }

gc_kernel_t *gc_code_kernel(gc_code_t *c, const lp_loop_t *loop) {
  gc_kernel_t *kernel = gc_code_printed(c, print_loop, loop);
  if (!kernel) return NULL;
  kernel->shared = loop->gpu.shared;
  kernel->has_begin = lp_gpu_has_begin(loop);
  kernel->has_merge = lp_gpu_has_merge(loop);
  kernel->has_end = lp_gpu_has_end(loop);
  return kernel;
}

/* ---- units ---- */

typedef struct gpu_code_unit {
  uint32_t begin, end; /* of the fresh kernels */
  lp_text_t text;
  char *image; /* machine code, or what is wrong with the text; NULL: no memory */
  int is_image, is_kept;
} gpu_code_unit_t;

static int by_hash(const void *pa, const void *pb) {
  const gc_kernel_t *a = *(gc_kernel_t *const *)pa, *b = *(gc_kernel_t *const *)pb;
  return (a->hash > b->hash) - (a->hash < b->hash);
}

/* Of the fresh kernels those that are wanted come first; how many they are. */
static uint32_t wanted_first(gc_code_t *c) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n_fresh; k++) {
    gc_kernel_t *kernel = c->fresh[k];
    if (!kernel->is_wanted) continue;
    c->fresh[k] = c->fresh[n];
    c->fresh[n++] = kernel;
  }
  return n;
}

/* The first fresh kernels in the order of their hashes; every fourth of them, by its hash, ends a unit, and so does one
 * after which the next would be too much. */
static uint32_t divide(const gc_code_t *c, uint32_t n_kernels, gpu_code_unit_t *units) {
  uint64_t nbytes = 0; /* of the last unit's kernels */
  uint32_t n = 0;
  qsort(c->fresh, n_kernels, sizeof(gc_kernel_t *), by_hash);
  for (uint32_t k = 0; k < n_kernels; k++) {
    if (k == 0 || c->fresh[k - 1]->hash % 4 == 0 || k - units[n - 1].begin == KERNELS_A_UNIT ||
        nbytes + c->fresh[k]->text.size > TEXT_A_UNIT) {
      nbytes = 0;
      units[n++].begin = k;
      lp_prelude_cuda_add(&units[n - 1].text);
    }
    gpu_code_unit_t *u = &units[n - 1];
    u->end = k + 1;
    nbytes += c->fresh[k]->text.size;
    u->text.failed |= c->fresh[k]->text.failed;
    if (!u->text.failed) lp_text_add(&u->text, c->fresh[k]->text.data, c->fresh[k]->text.size);
  }
  return n;
}

static int longest_first(const void *pa, const void *pb) {
  const gpu_code_unit_t *a = pa, *b = pb;
  if (a->text.size != b->text.size) return a->text.size < b->text.size ? 1 : -1;
  return (a->begin > b->begin) - (a->begin < b->begin);
}

typedef struct worker {
  gc_compiling_t *all;
  pthread_t thread;
  double end_ms; /* when it had nothing more to do */
} worker_t;

struct gc_compiling {
  const gc_code_t *code;
  uint64_t identity; /* of the compiler */
  double begin_ms;
  gpu_code_unit_t *units;
  uint32_t n;
  _Atomic uint32_t next;
  worker_t workers[MOST_THREADS];
  uint32_t n_workers;
};

/* Where it is stored. 0: nowhere. */
static int kept_path(const gc_code_t *c, kf_key_t key, char *out, size_t size) {
  if (!c->folder) return 0;
  const int n = snprintf(out, size, "%s/cuda-%016llx%016llx.cubin", c->folder, (unsigned long long)key.high64,
                         (unsigned long long)key.low64);
  return n > 0 && (size_t)n < size;
}

static void make(const gc_compiling_t *j, gpu_code_unit_t *u, int may_be_kept) {
  const gc_code_t *c = j->code;
  char path[4096];
  size_t nbytes;
  if (u->text.failed) return;
  const kf_key_t key = kf_key(u->text.data, (size_t)u->text.size, j->identity);
  const int has_path = kept_path(c, key, path, sizeof path);
  u->image = has_path && may_be_kept ? kf_read(path, key, &nbytes) : NULL;
  u->is_kept = u->is_image = u->image != NULL;
  if (u->is_kept) return;
  u->is_image = nv_nvrtc_compile(c->nvrtc, u->text.data, "loops.cu", c->arch, &u->image, &nbytes);
  if (u->is_image && has_path) kf_write(c->folder, path, key, u->image, nbytes); /* a full disk costs time only */
}

static void *make_some(void *self) {
  worker_t *w = self;
  gc_compiling_t *j = w->all;
  for (uint32_t k; (k = atomic_fetch_add(&j->next, 1)) < j->n;) make(j, &j->units[k], 1);
  w->end_ms = gc_now_ms();
  return NULL;
}

/* ---- functions ---- */

/* `main` last: a kernel that has it is complete. */
static int find_functions(const gc_code_t *c, gc_kernel_t *kernel, gc_module_t module, char *why, size_t size) {
  char begin[48], merge[48], end[48];
  snprintf(begin, sizeof begin, "%s_begin", kernel->name);
  snprintf(merge, sizeof merge, "%s_merge", kernel->name);
  snprintf(end, sizeof end, "%s_end", kernel->name);
  if ((!kernel->has_begin || c->driver->module_get_function(&kernel->begin, module, begin) == GC_SUCCESS) &&
      (!kernel->has_merge || c->driver->module_get_function(&kernel->merge, module, merge) == GC_SUCCESS) &&
      (!kernel->has_end || c->driver->module_get_function(&kernel->end, module, end) == GC_SUCCESS) &&
      c->driver->module_get_function(&kernel->main, module, kernel->name) == GC_SUCCESS &&
      /* always requested: what a launch may have without that is 48 KB less the kernel's own */
      (!kernel->shared || c->driver->func_set_attribute(kernel->main, GC_FUNCTION_MAX_DYNAMIC_SHARED,
                                                        (int)kernel->shared) == GC_SUCCESS)) {
    lp_text_deinit(&kernel->text);
    return 0;
  }
  kernel->main = NULL;
  snprintf(why, size, "the compiled code has no kernel %s", kernel->name);
  return -1;
}

/* What was kept and the driver does not take is compiled again. */
static int load(gc_code_t *c, const gc_compiling_t *j, gpu_code_unit_t *u, char *why, size_t size) {
  char buffer[192];
  gc_result_t result = GC_SUCCESS;
  gc_module_t *modules = kit_grow(c->modules, &c->module_capacity, (uint64_t)c->n_modules + 1, sizeof *modules);
  if (modules) c->modules = modules;
  gc_module_t *module = modules ? &modules[c->n_modules] : NULL;
  if (module && u->is_image) result = c->driver->module_load_data(module, u->image);
  if (module && u->is_kept && result != GC_SUCCESS) {
    free(u->image);
    make(j, u, 0);
    if (u->is_image) result = c->driver->module_load_data(module, u->image);
  }
  if (!module || !u->is_image) snprintf(why, size, "NVRTC: %s", module && u->image ? u->image : "no memory");
  else if (result != GC_SUCCESS) snprintf(why, size, "%s", gc_driver_error(c->driver, result, buffer, sizeof buffer));
  if (!module || !u->is_image || result != GC_SUCCESS) return -1;
  c->n_modules++;
  *(u->is_kept ? &c->n_found : &c->n_compiled) += u->end - u->begin;
  for (uint32_t k = u->begin; k < u->end; k++)
    if (find_functions(c, c->fresh[k], *module, why, size)) return -1;
  return 0;
}

/* ---- all that is wanted ---- */

gc_compiling_t *gc_code_begin(gc_code_t *c) {
  gc_compiling_t *j = calloc(1, sizeof *j);
  const uint32_t n_kernels = j ? wanted_first(c) : 0;
  if (j && n_kernels) j->units = calloc(n_kernels, sizeof *j->units);
  if (!j || (n_kernels && !j->units)) {
    free(j);
    return NULL;
  }
  j->code = c;
  j->begin_ms = gc_now_ms();
  if (!n_kernels) return j;
  j->identity = nv_nvrtc_identity(c->nvrtc, c->arch);
  j->n = divide(c, n_kernels, j->units);
  qsort(j->units, j->n, sizeof *j->units, longest_first);
  while (j->n_workers < MOST_THREADS && j->n_workers < j->n) {
    worker_t *w = &j->workers[j->n_workers];
    w->all = j;
    if (pthread_create(&w->thread, NULL, make_some, w) != 0) break;
    j->n_workers++;
  }
  return j;
}

/* When the last unit was made. */
static double wait_for_units(gc_compiling_t *j) {
  worker_t own = {.all = j, .end_ms = j->begin_ms};
  if (!j->n_workers) make_some(&own);
  double end_ms = own.end_ms;
  for (uint32_t k = 0; k < j->n_workers; k++) {
    pthread_join(j->workers[k].thread, NULL);
    if (j->workers[k].end_ms > end_ms) end_ms = j->workers[k].end_ms;
  }
  return end_ms;
}

int gc_code_end(gc_code_t *c, gc_compiling_t *j, char *why, size_t size) {
  int failed = 0;
  if (!j) return snprintf(why, size, "no memory for generated code"), -1;
  c->compile_ms += wait_for_units(j) - j->begin_ms;
  const double begin = gc_now_ms();
  for (uint32_t k = 0; k < j->n && !failed; k++) failed = load(c, j, &j->units[k], why, size);
  for (uint32_t k = 0; k < j->n; k++) {
    free(j->units[k].image);
    lp_text_deinit(&j->units[k].text);
  }
  uint32_t n_left = 0; /* the caller for one that failed is reported again; others may be wanted later */
  for (uint32_t k = 0; k < c->n_fresh; k++)
    if (!c->fresh[k]->main) c->fresh[n_left++] = c->fresh[k];
  c->n_fresh = n_left;
  c->compile_ms += gc_now_ms() - begin;
  free(j->units);
  free(j);
  return failed ? -1 : 0;
}
