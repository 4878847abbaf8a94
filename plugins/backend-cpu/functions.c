#include "functions.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { UNIT_NBYTES = 20000, FIRST_SLOTS = 64 };

/* Where the name is, or would be. */
static bc_function_t **slot_of(bc_function_t **at, uint32_t n_slots, const char *name) {
  uint32_t k = (uint32_t)XXH3_64bits(name, strlen(name)) & (n_slots - 1);
  while (at[k] && strcmp(at[k]->name, name) != 0) k = (k + 1) & (n_slots - 1);
  return &at[k];
}

static int make_room(bc_functions_t *f) {
  if (2 * (f->n + 1) <= f->n_slots) return 1;
  const uint32_t n_slots = f->n_slots ? 2 * f->n_slots : FIRST_SLOTS;
  bc_function_t **at = calloc(n_slots, sizeof *at);
  if (!at) return 0;
  for (uint32_t k = 0; k < f->n_slots; k++)
    if (f->at[k]) *slot_of(at, n_slots, f->at[k]->name) = f->at[k];
  free(f->at);
  f->at = at;
  f->n_slots = n_slots;
  return 1;
}

static void forget_units(bc_functions_t *f) {
  for (uint32_t k = 0; k < f->n_units; k++) lp_text_deinit(&f->units[k]);
  free(f->units);
  f->units = NULL;
  f->n_units = f->n_missing = 0;
}

void bc_functions_deinit(bc_functions_t *f) {
  forget_units(f);
  for (uint32_t m = 0; m < f->n_modules; m++) bc_code_close(f->modules[m]);
  for (uint32_t k = 0; k < f->n_slots; k++) free(f->at[k]);
  free(f->modules);
  free(f->at);
  memset(f, 0, sizeof *f);
}

const lw_loop_fn *bc_functions_find(const bc_functions_t *f, const char *name) {
  const bc_function_t *found = f->n_slots ? *slot_of(f->at, f->n_slots, name) : NULL;
  return found ? &found->address : NULL;
}

static aot_status_t add_source(bc_functions_t *f, const char *text, uint64_t nbytes) {
  lp_text_t *unit = f->n_units ? &f->units[f->n_units - 1] : NULL;
  if (!unit || unit->size > UNIT_NBYTES) {
    lp_text_t *more = realloc(f->units, (f->n_units + 1) * sizeof *more);
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
  *slot_of(f->at, f->n_slots, name) = added;
  f->n++;
  f->n_missing++;
  *out = &added->address;
  return AOT_OK;
}

/* Open addressing has no holes: a new table is made of those that have addresses. */
static aot_status_t forget_missing(bc_functions_t *f) {
  bc_function_t **at = calloc((size_t)f->n_slots + 1, sizeof *at);
  if (!at) return AOT_E_EXHAUSTED;
  for (uint32_t k = 0; k < f->n_slots; k++) {
    if (!f->at[k]) continue;
    if (f->at[k]->address) *slot_of(at, f->n_slots, f->at[k]->name) = f->at[k];
    else free(f->at[k]), f->n--;
  }
  free(f->at);
  f->at = at;
  return AOT_OK;
}

/* Of all that was added? */
static int find_addresses(bc_functions_t *f, uint32_t first_module) {
  uint32_t n_lacking = 0;
  for (uint32_t k = 0; k < f->n_slots; k++) {
    for (uint32_t m = first_module; f->at[k] && !f->at[k]->address && m < f->n_modules; m++)
      f->at[k]->address = bc_code_find(f->modules[m], f->at[k]->name);
    n_lacking += f->at[k] && !f->at[k]->address;
  }
  return n_lacking == 0;
}

aot_status_t bc_functions_compile(bc_functions_t *f, bc_cache_t *cache, bc_workers_t *workers, bc_code_stats_t *stats,
                                  lw_error_t *out_warning, lw_error_t *error) {
  if (!f->n_missing) return AOT_OK;
  void **grown = realloc(f->modules, (f->n_modules + f->n_units) * sizeof *grown);
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
  if (status == AOT_OK && f->cannot_compile) status = forget_missing(f);
  free(units);
  forget_units(f);
  return status == AOT_OK ? AOT_OK : lw_fail(error, status, "no-memory", "no memory for generated code");
}
