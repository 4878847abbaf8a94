#include <ir/properties.h>

#include <aot/inline.h>
#include "kit/base/text.h"

uint32_t aoth_property_find(aot_str_t name) {
#define FIND_ROW(row, number, text, meaning)                                                                           \
  if (aot_str_eq(name, aot_str(text))) return 1u << number;
  AOT_PROPERTY_MAP(FIND_ROW)
#undef FIND_ROW
  return 0;
}

const char *aoth_property_nearest(aot_str_t name) {
#define NAME_ROW(row, number, text, meaning) AOT_STR_INIT(text),
  static const aot_str_t names[] = {AOT_PROPERTY_MAP(NAME_ROW)};
#undef NAME_ROW
  const int near = kit_nearest(name, names, sizeof names / sizeof *names);
  return near < 0 ? NULL : names[near].data;
}

/* ---- sets ---- */

aoth_properties_t aoth_properties_known(uint32_t known) { return (aoth_properties_t){.known = known}; }

aoth_properties_t aoth_properties_one(const aot_str_t *name) {
  const uint32_t known = aoth_property_find(*name);
  return known ? aoth_properties_known(known) : (aoth_properties_t){.n_named = 1, .named = name};
}

int aoth_properties_are_none(aoth_properties_t set) { return set.known == 0 && set.n_named == 0; }

static int is_named(aoth_properties_t set, aot_str_t name) {
  for (uint32_t i = 0; i < set.n_named; i++)
    if (aot_str_eq(set.named[i], name)) return 1;
  return 0;
}

int aoth_properties_have(aoth_properties_t set, aot_str_t name) {
  return (set.known & aoth_property_find(name)) != 0 || is_named(set, name);
}

/* The names of a that are in b (is_in 1) or are not (0), after those that `out` has already. */
static void take(aoth_properties_t a, aoth_properties_t b, int is_in, aot_str_t *names, uint32_t *n) {
  for (uint32_t i = 0; i < a.n_named; i++)
    if (is_named(b, a.named[i]) == is_in) names[(*n)++] = a.named[i];
}

int aoth_properties_union(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out) {
  aot_str_t *names = kit_arena_alloc(arena, 8, ((size_t)a.n_named + b.n_named + 1) * sizeof *names);
  aoth_properties_t set = {.known = a.known | b.known, .named = names};
  if (!names) return 0;
  take(a, a, 1, names, &set.n_named);
  take(b, a, 0, names, &set.n_named);
  *out = set;
  return 1;
}

int aoth_properties_minus(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out) {
  aot_str_t *names = kit_arena_alloc(arena, 8, ((size_t)a.n_named + 1) * sizeof *names);
  aoth_properties_t set = {.known = a.known & ~b.known, .named = names};
  if (!names) return 0;
  take(a, b, 0, names, &set.n_named);
  *out = set;
  return 1;
}

int aoth_properties_common(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out) {
  aot_str_t *names = kit_arena_alloc(arena, 8, ((size_t)a.n_named + 1) * sizeof *names);
  aoth_properties_t set = {.known = a.known & b.known, .named = names};
  if (!names) return 0;
  take(a, b, 1, names, &set.n_named);
  *out = set;
  return 1;
}
