#include "common/loops/loop.h"

#include <string.h>

static uint32_t n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }

static void swap_dims(lp_loop_t *l, int32_t a, int32_t b) {
  int64_t size = l->sizes[a];
  l->sizes[a] = l->sizes[b];
  l->sizes[b] = size;
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    int64_t stride = l->accesses[k].strides[a];
    l->accesses[k].strides[a] = l->accesses[k].strides[b];
    l->accesses[k].strides[b] = stride;
  }
}

static void drop_dim(lp_loop_t *l, int32_t d) {
  for (int32_t e = d; e + 1 < l->rank; e++) swap_dims(l, e, e + 1);
  l->rank--;
}

/* Should dimension a stand outside b? By the first store's strides, then by the loads'. */
static int goes_outside(const lp_loop_t *l, int32_t a, int32_t b) {
  const lp_access_t *store = &l->accesses[l->n_loads];
  if (store->strides[a] != store->strides[b]) return store->strides[a] > store->strides[b];
  return 0;
}

/* Insertion sort: ranks are small, and dimensions mostly stand right already. */
static void sort_dims(lp_loop_t *l) {
  for (int32_t d = 1; d < l->rank; d++)
    for (int32_t e = d; e > 0 && goes_outside(l, e, e - 1); e--) swap_dims(l, e, e - 1);
}

static int merges(const lp_loop_t *l, int32_t outer) {
  for (uint32_t k = 0; k < n_accesses(l); k++)
    if (l->accesses[k].strides[outer] != l->accesses[k].strides[outer + 1] * l->sizes[outer + 1]) return 0;
  return 1;
}

void lp_simplify(lp_loop_t *l) {
  for (int32_t d = l->rank - 1; d >= 0; d--)
    if (l->sizes[d] == 1) drop_dim(l, d);
  sort_dims(l);
  for (int32_t d = l->rank - 2; d >= 0; d--)
    if (merges(l, d)) {
      l->sizes[d + 1] *= l->sizes[d];
      drop_dim(l, d);
    }
  if (l->rank > 0) return;
  l->rank = 1;
  l->sizes[0] = 1;
  for (uint32_t k = 0; k < n_accesses(l); k++) l->accesses[k].strides[0] = 0;
  for (uint32_t k = l->n_loads; k < n_accesses(l); k++) l->accesses[k].strides[0] = 1;
}
