#include "gpu_code.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* NVRTC takes 45 ms for a unit and some 10 ms a kernel; four threads are what it makes use of. */
enum { KERNELS_A_UNIT = 8, MOST_THREADS = 4, FIRST_SLOTS = 64 };

void gc_code_init(gc_code_t *c, const gc_driver_t *driver, const nv_nvrtc_t *nvrtc, int arch) {
  *c = (gc_code_t){.driver = driver, .nvrtc = nvrtc, .arch = arch};
}

static void forget_units(gc_code_t *c) {
  for (uint32_t k = 0; k < c->n_units; k++) lp_text_deinit(&c->units[k]);
  free(c->units);
  c->units = NULL;
  c->n_units = c->n_in_unit = 0;
}

void gc_code_deinit(gc_code_t *c) {
  forget_units(c);
  for (uint32_t m = 0; m < c->n_modules; m++) c->driver->module_unload(c->modules[m]);
  for (uint32_t k = 0; k < c->n_slots; k++) free(c->slots[k]);
  free(c->modules);
  free(c->slots);
  memset(c, 0, sizeof *c);
}

/* Where the name is, or would be. */
static gc_kernel_t **slot_of(gc_kernel_t **slots, uint32_t n_slots, const char *name) {
  uint32_t k = (uint32_t)XXH3_64bits(name, strlen(name)) & (n_slots - 1);
  while (slots[k] && strcmp(slots[k]->name, name) != 0) k = (k + 1) & (n_slots - 1);
  return &slots[k];
}

static int make_room(gc_code_t *c) {
  if (2 * (c->n + 1) <= c->n_slots) return 1;
  const uint32_t n_slots = c->n_slots ? 2 * c->n_slots : FIRST_SLOTS;
  gc_kernel_t **slots = calloc(n_slots, sizeof *slots);
  if (!slots) return 0;
  for (uint32_t k = 0; k < c->n_slots; k++)
    if (c->slots[k]) *slot_of(slots, n_slots, c->slots[k]->name) = c->slots[k];
  free(c->slots);
  c->slots = slots;
  c->n_slots = n_slots;
  return 1;
}

static lp_text_t *open_unit(gc_code_t *c) {
  if (c->n_units && c->n_in_unit < KERNELS_A_UNIT) return &c->units[c->n_units - 1];
  lp_text_t *more = realloc(c->units, (c->n_units + 1) * sizeof *more);
  if (!more) return NULL;
  c->units = more;
  c->units[c->n_units] = (lp_text_t){0};
  c->n_in_unit = 0;
  lp_prelude_cuda_add(&c->units[c->n_units]);
  return &c->units[c->n_units++];
}

gc_kernel_t *gc_code_kernel(gc_code_t *c, const lp_loop_t *loop) {
  lp_text_t body = {0};
  char name[32];
  lp_gen_cuda(loop, "F", &body);
  if (body.failed || !make_room(c)) {
    lp_text_deinit(&body);
    return NULL;
  }
  snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)XXH3_64bits(body.data, (size_t)body.size));
  lp_text_deinit(&body);
  gc_kernel_t **slot = slot_of(c->slots, c->n_slots, name);
  if (*slot) return *slot;
  lp_text_t *unit = open_unit(c);
  gc_kernel_t *added = calloc(1, sizeof *added);
  if (!unit || !added) {
    free(added);
    return NULL;
  }
  lp_gen_cuda(loop, name, unit);
  memcpy(added->name, name, sizeof name);
  added->has_end = lp_gpu_scratch(loop) != 0;
  c->n++;
  c->n_in_unit++;
  return *slot = added;
}

/* ---- compiling ---- */

typedef struct job {
  const gc_code_t *code;
  char **images; /* by unit: machine code, or what is wrong; NULL: no memory */
  int *is_done;
  _Atomic uint32_t next;
} job_t;

static void *compile_units(void *self) {
  job_t *j = self;
  for (uint32_t k; (k = atomic_fetch_add(&j->next, 1)) < j->code->n_units;) {
    const lp_text_t *unit = &j->code->units[k];
    size_t nbytes;
    if (unit->failed) continue;
    j->is_done[k] = nv_nvrtc_compile(j->code->nvrtc, unit->data, "loops.cu", j->code->arch, &j->images[k], &nbytes);
  }
  return NULL;
}

static void compile_on_threads(job_t *j) {
  pthread_t threads[MOST_THREADS];
  uint32_t n = 0;
  while (n + 1 < MOST_THREADS && n + 1 < j->code->n_units && pthread_create(&threads[n], NULL, compile_units, j) == 0)
    n++;
  compile_units(j);
  while (n) pthread_join(threads[--n], NULL);
}

static int load_unit(gc_code_t *c, const char *image, char *why, size_t size) {
  char buffer[192];
  gc_module_t *grown = realloc(c->modules, (c->n_modules + 1) * sizeof *grown);
  if (grown) c->modules = grown;
  const gc_result_t result = grown ? c->driver->module_load_data(&c->modules[c->n_modules], image) : 2;
  if (result == GC_SUCCESS) c->n_modules++;
  else snprintf(why, size, "%s", gc_driver_error(c->driver, result, buffer, sizeof buffer));
  return result == GC_SUCCESS ? 0 : -1;
}

static int find_kernels(const gc_code_t *c, uint32_t first_module, char *why, size_t size) {
  for (uint32_t k = 0; k < c->n_slots; k++) {
    gc_kernel_t *kernel = c->slots[k];
    char end[48];
    if (!kernel || kernel->main) continue;
    snprintf(end, sizeof end, "%s_end", kernel->name);
    for (uint32_t m = first_module; m < c->n_modules && !kernel->main; m++)
      if (c->driver->module_get_function(&kernel->main, c->modules[m], kernel->name) == GC_SUCCESS && kernel->has_end)
        c->driver->module_get_function(&kernel->end, c->modules[m], end);
    if (kernel->main && (kernel->end || !kernel->has_end)) continue;
    snprintf(why, size, "the compiled code has no kernel %s", kernel->name);
    return -1;
  }
  return 0;
}

int gc_code_compile(gc_code_t *c, char *why, size_t size) {
  const uint32_t first = c->n_modules;
  job_t j = {.code = c, .images = calloc((size_t)c->n_units + 1, sizeof *j.images)};
  j.is_done = calloc((size_t)c->n_units + 1, sizeof *j.is_done);
  int failed = !j.images || !j.is_done;
  if (failed) snprintf(why, size, "no memory for generated code");
  if (!failed) compile_on_threads(&j);
  for (uint32_t k = 0; k < c->n_units && !failed; k++) {
    failed = !j.is_done[k];
    if (failed) snprintf(why, size, "NVRTC: %s", j.images[k] ? j.images[k] : "no memory");
    else failed = load_unit(c, j.images[k], why, size);
  }
  if (!failed) failed = find_kernels(c, first, why, size);
  for (uint32_t k = 0; j.images && k < c->n_units; k++) free(j.images[k]);
  free(j.images);
  free(j.is_done);
  forget_units(c);
  return failed ? -1 : 0;
}
