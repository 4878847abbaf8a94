/* Sorts places by storage and range, then compares those whose ranges cross (written_overlap.h). */
#include "written_overlap.h"

#include <aot/base.h>
#include <stdlib.h>

/* A place in its storage, in elements. */
typedef struct extent {
  uint32_t place, storage;
  int64_t first, last;
  aot_type_t type;
} extent_t;

static int has_symbols(const aot_type_t *t) {
  int any = AOT_DIM_IS_SYM(t->offset);
  for (int32_t d = 0; d < t->rank; d++) any |= AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d]);
  return any;
}

static int is_empty(const aot_type_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] == 0) return 1;
  return 0;
}

/* Symbolic sizes: anything may be touched. */
static void measure(extent_t *e) {
  e->first = e->last = 0;
  if (has_symbols(&e->type)) {
    e->last = INT64_MAX;
    return;
  }
  e->first = e->last = e->type.offset;
  for (int32_t d = 0; d < e->type.rank; d++) e->last += (e->type.sizes[d] - 1) * e->type.strides[d];
}

static int by_storage(const void *a, const void *b) {
  const extent_t *x = a, *y = b;
  if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

/* Coordinates of an offset in a grid of these strides (each a multiple-reach of the next): largest stride first. */
static void split_offset(int64_t offset, const aot_type_t *t, const int32_t *order, int64_t *out) {
  for (int32_t k = 0; k < t->rank; k++) {
    const int64_t stride = t->strides[order[k]];
    out[order[k]] = stride > 0 ? offset / stride : 0;
    if (stride > 0) offset %= stride;
  }
}

static void order_strides(const aot_type_t *t, int32_t *order) {
  for (int32_t d = 0; d < t->rank; d++) { /* rank is at most 16 */
    int32_t at = d;
    while (at > 0 && t->strides[order[at - 1]] < t->strides[d]) order[at] = order[at - 1], at--;
    order[at] = d;
  }
}

/* Two boxes in one grid touch unless they are apart along some dimension. Neither may wrap around: along each dimension
 * a box must end before the next larger stride begins. */
static int boxes_are_apart(const aot_type_t *a, const aot_type_t *b) {
  int32_t order[AOT_MAX_RANK];
  int64_t x[AOT_MAX_RANK], y[AOT_MAX_RANK];
  int apart = 0;
  if (a->rank != b->rank || a->rank == 0) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->strides[d] != b->strides[d] || a->strides[d] <= 0) return 0;
  order_strides(a, order);
  split_offset(a->offset, a, order, x);
  split_offset(b->offset, b, order, y);
  for (int32_t k = 0; k < a->rank; k++) {
    const int32_t d = order[k];
    const int64_t room = k == 0 ? INT64_MAX : a->strides[order[k - 1]] / a->strides[d];
    if (k > 0 &&
        (a->strides[order[k - 1]] % a->strides[d] != 0 || x[d] + a->sizes[d] > room || y[d] + b->sizes[d] > room))
      return 0;
    apart |= x[d] + a->sizes[d] <= y[d] || y[d] + b->sizes[d] <= x[d];
  }
  return apart;
}

static int overlap(const extent_t *a, const extent_t *b) {
  if (a->place == b->place) return 0;
  if (has_symbols(&a->type) || has_symbols(&b->type)) return 1;
  if (is_empty(&a->type) || is_empty(&b->type) || a->last < b->first || b->last < a->first) return 0;
  return !boxes_are_apart(&a->type, &b->type);
}

int fz_any_overlap(const fz_rewrite_t *w, uint32_t *places, uint32_t n) {
  extent_t *e = calloc((size_t)n + 1, sizeof *e);
  int any = !e;
  for (uint32_t i = 0; e && i < n; i++) {
    const fz_place_t *p = &w->alias.places[places[i]];
    e[i].place = places[i];
    e[i].storage = p->storage;
    any |= w->host->graph->value_type(w->prog, (aot_value_t){p->declared}, &e[i].type) != AOT_OK;
    measure(&e[i]);
  }
  if (e) qsort(e, n, sizeof *e, by_storage);
  for (uint32_t i = 0; !any && i < n; i++)
    for (uint32_t k = i + 1; !any && k < n && e[k].storage == e[i].storage && e[k].first <= e[i].last; k++)
      any = overlap(&e[i], &e[k]);
  free(e);
  return any;
}
