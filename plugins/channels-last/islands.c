#include "islands.h"

uint32_t nhwc_island_new(nhwc_islands_t *s) {
  const uint32_t id = ++s->n;
  s->at[id] = (nhwc_island_t){.parent = id};
  return id;
}

static uint32_t root_of(nhwc_islands_t *s, uint32_t id) {
  while (s->at[id].parent != id) id = s->at[id].parent = s->at[s->at[id].parent].parent;
  return id;
}

nhwc_island_t *nhwc_island_of(nhwc_islands_t *s, uint32_t island) { return &s->at[root_of(s, island)]; }

uint32_t nhwc_island_join(nhwc_islands_t *s, uint32_t a, uint32_t b) {
  if (a == NHWC_NO_ISLAND || b == NHWC_NO_ISLAND) return a + b;
  const uint32_t into = root_of(s, a), from = root_of(s, b);
  nhwc_island_t *to = &s->at[into], *of = &s->at[from];
  if (into == from) return into;
  of->parent = into;
  to->n_convolutions += of->n_convolutions;
  to->n_patches += of->n_patches;
  to->n_copies += of->n_copies;
  to->copied_nbytes += of->copied_nbytes;
  to->saved_nbytes += of->saved_nbytes;
  to->is_barred |= of->is_barred;
  return into;
}

int nhwc_island_pays(const nhwc_island_t *island) {
  return !island->is_barred && island->saved_nbytes > island->copied_nbytes;
}
