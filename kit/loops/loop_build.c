#include "loop_print.h"

#include <aot/assert.h>
#include <string.h>

static uint32_t n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }

static void swap(int64_t *a, int64_t *b) {
  const int64_t kept = *a;
  *a = *b;
  *b = kept;
}

void lp_swap_dims(lp_loop_t *l, int32_t a, int32_t b) {
  AOT_ASSERT(a >= 0 && a < l->rank && b >= 0 && b < l->rank);
  swap(&l->sizes[a], &l->sizes[b]);
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    lp_access_t *x = &l->accesses[k];
    const uint32_t differ = (x->bounded >> a ^ x->bounded >> b) & 1u;
    swap(&x->strides[a], &x->strides[b]);
    swap(&x->begin[a], &x->begin[b]);
    swap(&x->end[a], &x->end[b]);
    x->bounded ^= differ << a | differ << b;
  }
}

static void drop_dim(lp_loop_t *l, int32_t d) {
  AOT_ASSERT(d >= 0 && d < l->rank);
  for (int32_t e = d; e + 1 < l->rank; e++) lp_swap_dims(l, e, e + 1);
  l->rank--;
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    lp_access_t *x = &l->accesses[k];
    x->bounded &= ~(1u << l->rank);
    x->strides[l->rank] = x->begin[l->rank] = x->end[l->rank] = 0;
  }
}

/* Of size 1, and no load's bounds say more about it. */
static int is_idle(const lp_loop_t *l, int32_t d) {
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (l->accesses[k].bounded >> d & 1u) return 0;
  return l->sizes[d] == 1;
}

/* Should dimension a stand outside b? By the first store's strides; by the loads' where a store is of rows, of which
 * there are fewer. */
static int goes_outside(const lp_loop_t *l, int32_t a, int32_t b) {
  const lp_access_t *store = &l->accesses[l->n_loads];
  for (uint32_t k = 0; store->of_row && k < l->n_loads; k++) {
    const int64_t *strides = l->accesses[k].strides;
    if (strides[a] != strides[b]) return strides[a] > strides[b];
  }
  return store->strides[a] > store->strides[b];
}

/* Insertion sort: ranks are small, and dimensions mostly are right already. */
static void sort_dims(lp_loop_t *l, int32_t begin, int32_t end) {
  for (int32_t d = begin + 1; d < end; d++)
    for (int32_t e = d; e > begin && goes_outside(l, e, e - 1); e--) lp_swap_dims(l, e, e - 1);
}

/* Do reductions not care which element of a row is which? */
static int is_row_a_set(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].scan || l->insts[k].reduce == LP_ACROSS || lp_reads(l->insts[k].text, LP_TK_PLACE, 0)) return 0;
  for (uint32_t k = l->n_loads; k < n_accesses(l); k++)
    if (l->accesses[k].n_indices) return 0;
  return 1;
}

/* Has a row of several dimensions what goes along one only? */
static int needs_one_dimension(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].scan) return 1;
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (l->accesses[k].draws || l->accesses[k].bounded & l->reduced) return 1;
  return 0;
}

/* Bounds of the outer one become those of both. */
static int merges(const lp_loop_t *l, int32_t outer) {
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    const lp_access_t *x = &l->accesses[k];
    if (x->strides[outer] != x->strides[outer + 1] * l->sizes[outer + 1] || x->bounded >> (outer + 1) & 1u) return 0;
  }
  return 1;
}

static void merge_dims(lp_loop_t *l, int32_t outer) {
  AOT_ASSERT(outer + 1 < l->rank && (l->sizes[outer] <= 1 || l->sizes[outer + 1] <= INT64_MAX / l->sizes[outer]));
  for (uint32_t k = 0; k < l->n_loads; k++) {
    lp_access_t *x = &l->accesses[k];
    if (!(x->bounded >> outer & 1u)) continue;
    x->bounded |= 1u << (outer + 1);
    x->begin[outer + 1] = x->begin[outer] * l->sizes[outer + 1];
    x->end[outer + 1] = x->end[outer] * l->sizes[outer + 1];
  }
  l->sizes[outer + 1] *= l->sizes[outer];
  drop_dim(l, outer);
}

/* Reduced dimensions become the last ones, in their order; their number. */
static int32_t reduced_last(lp_loop_t *l) {
  int32_t n = 0, kept = 0;
  for (int32_t d = 0; d < l->rank; d++) n += (int32_t)(l->reduced >> d & 1u);
  for (int32_t d = 0; d < l->rank; d++) {
    if (l->reduced >> d & 1u) continue;
    for (int32_t e = d; e > kept; e--) lp_swap_dims(l, e, e - 1);
    kept++;
  }
  return n;
}

static void insert_one(lp_loop_t *l, int32_t at, int64_t store_stride) {
  AOT_ASSERT(l->rank < AOT_MAX_RANK && at <= l->rank);
  l->sizes[l->rank] = 1;
  for (uint32_t k = 0; k < n_accesses(l); k++)
    l->accesses[k].strides[l->rank] = k < l->n_loads || l->accesses[k].of_row ? 0 : store_stride;
  for (int32_t d = l->rank++; d > at; d--) lp_swap_dims(l, d, d - 1);
}

/* Neighbours from dimension `begin` to before `end` that all accesses step through evenly become one; how many less. */
static int32_t merge(lp_loop_t *l, int32_t begin, int32_t end) {
  const int32_t rank = l->rank;
  for (int32_t d = end - 2; d >= begin; d--)
    if (merges(l, d)) merge_dims(l, d);
  return rank - l->rank;
}

int lp_simplify(lp_loop_t *l) {
  int32_t n_row = reduced_last(l);
  const int has_row = l->reduced != 0;
  for (int32_t d = l->rank - 1; d >= 0; d--) {
    if (!is_idle(l, d)) continue;
    n_row -= d >= l->rank - n_row;
    drop_dim(l, d);
  }
  sort_dims(l, 0, l->rank - n_row);
  if (is_row_a_set(l)) sort_dims(l, l->rank - n_row, l->rank);
  merge(l, 0, l->rank - n_row);
  n_row -= merge(l, l->rank - n_row, l->rank);
  if (has_row && n_row == 0) insert_one(l, l->rank, 1), n_row = 1;
  if (n_row == AOT_MAX_RANK) return 0; /* none fits around it */
  if (l->rank <= n_row) insert_one(l, 0, has_row ? 0 : 1);
  AOT_ASSERT(n_row >= 0 && l->rank > n_row && l->rank <= AOT_MAX_RANK); /* a dimension stays around the row */
  AOT_ASSERT(has_row == (n_row > 0));
  l->reduced = ((1u << n_row) - 1) << (l->rank - n_row);
  return n_row <= 1 || !needs_one_dimension(l);
}

int32_t lp_row(const lp_loop_t *l) { return l->rank - (l->reduced ? __builtin_popcount(l->reduced) : 1); }

int32_t lp_inner(const lp_loop_t *l) { return l->columns ? lp_row(l) - 1 : l->rank - 1; }

int64_t lp_length(const lp_loop_t *l) {
  int64_t n = 1;
  for (int32_t d = lp_row(l); d < l->rank; d++) n *= l->sizes[d];
  return n;
}

uint32_t lp_n_numbers(const lp_loop_t *l) {
  uint32_t n = n_accesses(l) * (uint32_t)l->rank;
  for (uint32_t k = 0; k < n_accesses(l); k++)
    n += 2 * (l->accesses[k].n_indices + (uint32_t)__builtin_popcount(l->accesses[k].bounded));
  return n;
}

void lp_numbers(const lp_loop_t *l, int64_t *out) {
  const int64_t *const begin = out;
  for (uint32_t k = 0; k < n_accesses(l); k++)
    for (int32_t d = 0; d < l->rank; d++) *out++ = l->accesses[k].strides[d];
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    const lp_access_t *x = &l->accesses[k];
    for (uint32_t i = 0; i < x->n_indices; i++) {
      *out++ = x->indices[i].stride;
      *out++ = x->indices[i].size;
    }
    for (int32_t d = 0; d < l->rank; d++) {
      if (!(x->bounded >> d & 1u)) continue;
      *out++ = x->begin[d];
      *out++ = x->end[d];
    }
  }
  AOT_ASSERT((uint64_t)(out - begin) == lp_n_numbers(l));
}

int lp_has_indices(const lp_loop_t *l) {
  for (uint32_t k = 0; k < n_accesses(l); k++)
    if (l->accesses[k].n_indices) return 1;
  return 0;
}
