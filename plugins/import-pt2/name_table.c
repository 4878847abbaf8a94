/* name_table.c - see name_table.h. */
#include "name_table.h"

#include "kit/base/splitmix.h"
#include <aot/inline.h>

static uint64_t hash(aot_str_t s) { return kit_mix_bytes(s.size, s.data, (size_t)s.size); }

static int is_name(const void *rows, uint32_t row, const void *name) {
  return aot_str_eq(((const p2_name_t *)rows)[row].name, *(const aot_str_t *)name);
}

static uint32_t find(const p2_names_t *t, aot_str_t name) {
  return kit_map_find(&t->map, hash(name), is_name, t->rows, &name);
}

static void *scratch(void *env, uint64_t nbytes) {
  void *out = NULL;
  return p2_alloc(env, P2_SCRATCH, (uint32_t) _Alignof(kit_map_cell_t), nbytes, 1, &out) == AOT_OK ? out : NULL;
}

static aot_status_t grow(p2_env_t *e, p2_names_t *t) {
  void *rows = t->rows;
  AOT_TRY(p2_grow(e, &rows, t->map.n, &t->capacity, sizeof *t->rows));
  t->rows = rows;
  t->map.alloc = scratch;
  t->map.pool = e;
  return kit_map_reserve(&t->map, t->map.n + 1) ? AOT_OK : AOT_E_EXHAUSTED; /* p2_alloc has reported it */
}

aot_status_t p2_names_add(p2_env_t *e, p2_names_t *t, aot_str_t name, uint32_t value, uint32_t *out_old) {
  const uint32_t row = find(t, name);
  if (row != KIT_MAP_NONE) {
    if (out_old) *out_old = t->rows[row].value;
    return AOT_E_EXISTS;
  }
  AOT_TRY(grow(e, t));
  t->rows[t->map.n] = (p2_name_t){name, value};
  kit_map_add(&t->map, hash(name), t->map.n);
  return AOT_OK;
}

uint32_t p2_names_find(const p2_names_t *t, aot_str_t name) {
  const uint32_t row = find(t, name);
  return row == KIT_MAP_NONE ? P2_NO_ENTRY : t->rows[row].value;
}
