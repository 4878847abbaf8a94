/* name_table.c - see name_table.h. The table is kept at most half full; growing copies it. */
#include "name_table.h"
#include <string.h>

static uint64_t hash(aot_str_t s) {
  uint64_t h = UINT64_C(14695981039346656037), i;
  for (i = 0; i < s.size; i++) h = (h ^ (unsigned char)s.data[i]) * UINT64_C(1099511628211);
  return h ^ (h >> 32);
}

static p2_name_slot_t *slot(const p2_names_t *t, aot_str_t name) {
  uint32_t i = (uint32_t)hash(name) & (t->capacity - 1);
  while (t->slots[i].used && !(t->slots[i].name.size == name.size &&
                               (name.size == 0 || memcmp(t->slots[i].name.data, name.data, (size_t)name.size) == 0)))
    i = (i + 1) & (t->capacity - 1);
  return &t->slots[i];
}

static aot_status_t rehash(p2_env_t *e, p2_names_t *t) {
  p2_names_t bigger = {NULL, t->capacity ? 2 * t->capacity : 16, t->n};
  uint32_t i;
  AOT_TRY(P2_NEW(e, P2_SCRATCH, bigger.capacity, &bigger.slots));
  for (i = 0; i < t->capacity; i++)
    if (t->slots[i].used) *slot(&bigger, t->slots[i].name) = t->slots[i];
  *t = bigger;
  return AOT_OK;
}

aot_status_t p2_names_add(p2_env_t *e, p2_names_t *t, aot_str_t name, uint32_t value, uint32_t *out_old) {
  p2_name_slot_t *s;
  if (2 * (t->n + 1) > t->capacity) AOT_TRY(rehash(e, t));
  s = slot(t, name);
  if (s->used) {
    if (out_old) *out_old = s->value;
    return AOT_E_EXISTS;
  }
  s->name = name;
  s->value = value;
  s->used = 1;
  t->n++;
  return AOT_OK;
}

uint32_t p2_names_find(const p2_names_t *t, aot_str_t name) {
  const p2_name_slot_t *s;
  if (!t->capacity) return P2_NO_ENTRY;
  s = slot(t, name);
  return s->used ? s->value : P2_NO_ENTRY;
}
