/* The alias sets of alias_sets.h: arrays of places, storages and names; names of one tensor form a union-find set. */
#include "alias_sets.h"

#include "kit/base/vector.h"
#include <stdlib.h>
#include <string.h>

int fz_alias_init(fz_alias_t *a, uint32_t n_values) {
  memset(a, 0, sizeof *a);
  a->place_of = malloc(((size_t)n_values + 1) * sizeof *a->place_of);
  a->joined = malloc(((size_t)n_values + 1) * sizeof *a->joined);
  if (!a->place_of || !a->joined) {
    fz_alias_deinit(a);
    return 1;
  }
  for (uint32_t i = 0; i < n_values; i++) a->joined[i] = i;
  memset(a->place_of, 0xff, ((size_t)n_values + 1) * sizeof *a->place_of); /* FZ_NONE */
  a->n_values = n_values;
  return 0;
}

void fz_alias_deinit(fz_alias_t *a) {
  free(a->places);
  free(a->storages);
  free(a->place_of);
  free(a->joined);
  memset(a, 0, sizeof *a);
}

/* Room for one more element; 0 and a->failed without memory. */
static int room(fz_alias_t *a, void **array, uint32_t n, uint32_t *capacity, size_t size) {
  void *grown = kit_grow(*array, capacity, (uint64_t)n + 1, size);
  if (grown) *array = grown;
  else a->failed = 1;
  return grown != NULL;
}

static uint32_t new_place(fz_alias_t *a, fz_place_t place) {
  if (!room(a, (void **)&a->places, a->n_places, &a->place_capacity, sizeof *a->places)) return FZ_NONE;
  place.version = a->storages[place.storage].version;
  place.materialized = 1;
  a->places[a->n_places] = place;
  fz_alias_name(a, place.declared, a->n_places);
  return a->n_places++;
}

uint32_t fz_alias_base(fz_alias_t *a, uint32_t declared, uint32_t value) {
  if (!room(a, (void **)&a->storages, a->n_storages, &a->storage_capacity, sizeof *a->storages)) return FZ_NONE;
  a->storages[a->n_storages] = (fz_storage_t){.base = a->n_places};
  return new_place(a, (fz_place_t){
                          .storage = a->n_storages++,
                          .parent = FZ_NONE,
                          .value = value,
                          .declared = declared,
                      });
}

uint32_t fz_alias_view(fz_alias_t *a, uint32_t parent, uint32_t view_node, uint32_t view_index, uint32_t declared,
                       uint32_t value) {
  return new_place(a, (fz_place_t){
                          .storage = a->places[parent].storage,
                          .parent = parent,
                          .view_node = view_node,
                          .view_index = view_index,
                          .value = value,
                          .declared = declared,
                      });
}

static uint32_t root_of(const fz_alias_t *a, uint32_t name) {
  while (a->joined[name] != name) name = a->joined[name];
  return name;
}

void fz_alias_name(fz_alias_t *a, uint32_t name, uint32_t place) {
  if (name < a->n_values) a->place_of[root_of(a, name)] = place;
}

void fz_alias_join(fz_alias_t *a, uint32_t name, uint32_t other) {
  if (name < a->n_values && other < a->n_values) a->joined[root_of(a, name)] = root_of(a, other);
}

uint32_t fz_place_of(const fz_alias_t *a, uint32_t name) {
  return name < a->n_values ? a->place_of[root_of(a, name)] : FZ_NONE;
}

int fz_is_stale(const fz_alias_t *a, uint32_t place) {
  return a->places[place].version != a->storages[a->places[place].storage].version;
}

uint32_t fz_stale_chain(const fz_alias_t *a, uint32_t place, int materialized, uint32_t *out) {
  uint32_t n = 0;
  for (; a->places[place].parent != FZ_NONE; place = a->places[place].parent) {
    if (!fz_is_stale(a, place) && (a->places[place].materialized || (n == 0 && !materialized))) break;
    out[n++] = place;
  }
  return n;
}

uint32_t fz_depth(const fz_alias_t *a, uint32_t place) {
  uint32_t n = 0;
  for (; place != FZ_NONE; place = a->places[place].parent) n++;
  return n;
}

void fz_refresh(fz_alias_t *a, uint32_t place, uint32_t value, int materialized) {
  a->places[place].value = value;
  a->places[place].narrowed = 0;
  a->places[place].materialized = (uint8_t)(materialized || a->places[place].parent == FZ_NONE);
  a->places[place].version = a->storages[a->places[place].storage].version;
}

void fz_new_version(fz_alias_t *a, uint32_t place) { a->storages[a->places[place].storage].version++; }
