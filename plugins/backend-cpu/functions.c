#include "functions.h"

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { UNIT_NBYTES = 20000 };

static uint64_t hash_of(const char *name) { return XXH3_64bits(name, strlen(name)); }

static int is_named(const void *functions, uint32_t k, const void *name) {
  return strcmp(((bc_function_t *const *)functions)[k]->name, name) == 0;
}

/* For one more. */
static int make_room(bc_functions_t *f) {
  bc_function_t **grown = kit_grow(f->at, &f->capacity, (uint64_t)f->n + 1, sizeof *grown);
  if (!grown) return 0;
  f->at = grown;
  return kit_map_reserve(&f->by_name, f->n + 1);
}

static void forget_units(bc_functions_t *f) {
  for (uint32_t k = 0; k < f->n_units; k++) lp_text_deinit(&f->units[k]);
  free(f->units);
  f->units = NULL;
  f->n_units = f->unit_capacity = f->n_missing = 0;
}

void bc_functions_deinit(bc_functions_t *f) {
  forget_units(f);
  for (uint32_t m = 0; m < f->n_modules; m++) bc_code_close(f->modules[m]);
  for (uint32_t k = 0; k < f->n; k++) free(f->at[k]);
  kit_map_deinit(&f->by_name);
  free(f->modules);
  free(f->at);
  memset(f, 0, sizeof *f);
}

const lw_loop_fn *bc_functions_find(const bc_functions_t *f, const char *name) {
  const uint32_t k = kit_map_find(&f->by_name, hash_of(name), is_named, f->at, name);
  return k == KIT_MAP_NONE ? NULL : &f->at[k]->address;
}

static aot_status_t add_source(bc_functions_t *f, const char *text, uint64_t nbytes) {
  lp_text_t *unit = f->n_units ? &f->units[f->n_units - 1] : NULL;
  if (!unit || unit->size > UNIT_NBYTES) {
    lp_text_t *more = kit_grow(f->units, &f->unit_capacity, (uint64_t)f->n_units + 1, sizeof *more);
    if (!more) return AOT_E_EXHAUSTED;
    f->units = more;
    unit = &more[f->n_units++];
    *unit = (lp_text_t){0};
    lp_prelude_add(unit);
  }
  lp_text_add(unit, text, nbytes);
  return unit->failed ? AOT_E_EXHAUSTED : AOT_OK;
}

aot_status_t bc_functions_add(bc_functions_t *f, const char *name, const char *text, uint64_t nbytes,
                              const lw_loop_fn **out) {
  *out = NULL;
  if (f->cannot_compile) return AOT_OK;
  bc_function_t *added = calloc(1, sizeof *added);
  if (!added || !make_room(f) || add_source(f, text, nbytes) != AOT_OK) {
    free(added);
    return AOT_E_EXHAUSTED;
  }
  strncpy(added->name, name, sizeof added->name - 1);
  kit_map_add(&f->by_name, hash_of(added->name), f->n);
  f->at[f->n++] = added;
  f->n_missing++;
  *out = &added->address;
  return AOT_OK;
}

/* Those with addresses stay. */
static void forget_missing(bc_functions_t *f) {
  const uint32_t n = f->n;
  f->n = 0;
  kit_map_clear(&f->by_name);
  for (uint32_t k = 0; k < n; k++) {
    if (!f->at[k]->address) {
      free(f->at[k]);
      continue;
    }
    kit_map_add(&f->by_name, hash_of(f->at[k]->name), f->n);
    f->at[f->n++] = f->at[k];
  }
}

/* Of all that was added? */
static int find_addresses(bc_functions_t *f, uint32_t first_module) {
  uint32_t n_lacking = 0;
  for (uint32_t k = 0; k < f->n; k++) {
    for (uint32_t m = first_module; !f->at[k]->address && m < f->n_modules; m++)
      f->at[k]->address = bc_code_find(f->modules[m], f->at[k]->name);
    n_lacking += !f->at[k]->address;
  }
  return n_lacking == 0;
}

aot_status_t bc_functions_compile(bc_functions_t *f, bc_cache_t *cache, bc_workers_t *workers, bc_code_stats_t *stats,
                                  lw_error_t *out_warning, lw_error_t *error) {
  if (!f->n_missing) return AOT_OK;
  void **grown = kit_grow(f->modules, &f->module_capacity, (uint64_t)f->n_modules + f->n_units, sizeof *grown);
  bc_code_unit_t *units = calloc((size_t)f->n_units + 1, sizeof *units);
  const uint32_t first = f->n_modules;
  if (grown) f->modules = grown;
  aot_status_t status = grown && units ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t k = 0; k < f->n_units && status == AOT_OK; k++)
    units[k] = (bc_code_unit_t){.source = f->units[k].data, .nbytes = f->units[k].size};
  if (status == AOT_OK)
    f->cannot_compile = bc_code_open_all(cache, workers, units, f->n_units, stats, out_warning) != AOT_OK;
  for (uint32_t k = 0; k < f->n_units && status == AOT_OK && !f->cannot_compile; k++)
    f->modules[f->n_modules++] = units[k].handle;
  if (status == AOT_OK && !find_addresses(f, first)) f->cannot_compile = 1;
  if (status == AOT_OK && f->cannot_compile) forget_missing(f);
  free(units);
  forget_units(f);
  return status == AOT_OK ? AOT_OK : lw_no_memory(error, "for generated code");
}
