/* Vectors: the neighbours that a thread takes at once, and which accesses are made by them. Their number is one for the
 * whole loop: as many as make 16 bytes, the widest access, of its smallest or its largest dtype, halved until all that
 * step by one are on multiples of their vectors. These are no vectors, and leave the number to the others:
 *
 *     single    elements that have places of their own, or bounds within a vector: one after another
 *     apart     a store of one value a row, or of a sum across rows: it does not go along with the elements
 *     draws, counts, and what does not step by one */
#include "gpu_schedule.h"

#include <aot/assert.h>
#include <aot/inline.h>

/* A store that does not go along with the elements. */
static int is_apart(const lp_loop_t *l, uint32_t k) {
  return k >= l->n_loads && (l->accesses[k].of_row || l->insts[l->accesses[k].inst].reduce == LP_ACROSS);
}

int gs_is_single(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  AOT_ASSERT(vector > 0 && dim >= 0 && dim < l->rank);
  if (k >= l->n_loads && a->n_indices) return 1;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (l->columns || l->accesses[a->indices[i].load].moves) return 1;
  if (!a->bounded) return 0;
  return a->strides[dim] != 1 || a->begin[dim] % (int64_t)vector || a->end[dim] % (int64_t)vector;
}

int gs_is_aligned(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  const uint64_t bytes = vector * aot_dtype_size(a->dtype);
  if (!a->align || a->align % (bytes < ACCESS ? bytes : ACCESS)) return 0;
  for (int32_t d = 0; d < l->rank; d++)
    if (d != dim && a->strides[d] % vector) return 0;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (a->indices[i].stride % vector) return 0;
  return 1;
}

/* Can access k be made `vector` neighbours of dimension `dim` at a time? What does not step by one is read singly. */
static int takes_vectors(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  return a->draws || a->counts || is_apart(l, k) || a->strides[dim] != 1 || gs_is_single(l, k, dim, vector) ||
         gs_is_aligned(l, k, dim, vector);
}

/* May the last vector of the innermost dimension have fewer elements? That of all points, or of a row. */
static int may_end_within(const lp_loop_t *l) {
  return l->gpu.kind == LP_GPU_POINTS ? l->rank == 1 : l->gpu.kind == LP_GPU_ROWS && lp_row(l) + 1 == l->rank;
}

int gs_draws_words(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (l->accesses[k].draws && l->accesses[k].dtype == AOT_U32) return 1;
  return 0;
}

uint32_t gs_vector(const lp_loop_t *l, int32_t dim, int by_smallest) {
  uint64_t smallest = ACCESS, largest = 0;
  int is_store = 0;
  for (uint32_t k = 0; k < gs_n_accesses(l); k++) {
    const lp_access_t *a = &l->accesses[k];
    const uint64_t size = aot_dtype_size(a->dtype);
    if (a->draws || a->counts || is_apart(l, k) || a->strides[dim] != 1) continue;
    smallest = size < smallest ? size : smallest;
    largest = size > largest ? size : largest;
    is_store |= k >= l->n_loads;
  }
  if (!largest || (l->gpu.kind == LP_GPU_POINTS && !is_store)) return 1;
  const int doubles = by_smallest && l->gpu.kind == LP_GPU_POINTS && gs_draws_words(l);
  uint64_t vector = doubles ? 2 * ACCESS / largest : by_smallest ? ACCESS / smallest : ACCESS / largest;
  if (vector > 2 * ACCESS / largest) vector = 2 * ACCESS / largest;
  for (; vector > 1; vector /= 2) {
    int fits = l->sizes[dim] % (int64_t)vector == 0 || may_end_within(l);
    for (uint32_t k = 0; k < gs_n_accesses(l) && fits; k++) fits = takes_vectors(l, k, dim, (uint32_t)vector);
    if (fits) break;
  }
  AOT_ASSERT((vector & (vector - 1)) == 0 && vector >= 1 && vector <= 2 * ACCESS);
  return (uint32_t)vector;
}

int lp_gpu_is_vector(const lp_loop_t *l, uint32_t k) {
  const int32_t dim = lp_inner(l);
  const lp_access_t *a = &l->accesses[k];
  return l->gpu.vector > 1 && !a->draws && !a->counts && !is_apart(l, k) && a->strides[dim] == 1 &&
         !gs_is_single(l, k, dim, l->gpu.vector);
}

int lp_gpu_adds_vectors(const lp_loop_t *l) {
  AOT_ASSERT(lp_row(l) > 0 && l->n_stores > 0);
  return l->gpu.vector > 1 && l->accesses[l->n_loads].strides[lp_row(l) - 1] == 1 &&
         gs_is_aligned(l, l->n_loads, lp_row(l) - 1, l->gpu.vector);
}

int lp_gpu_moves(const lp_loop_t *l, uint32_t load) {
  const lp_access_t *a = &l->accesses[load];
  if (lp_moves(l, load) || !l->columns) return lp_moves(l, load);
  if (a->strides[lp_row(l) - 1] != 0 || a->bounded >> (lp_row(l) - 1) & 1u) return 1;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (a->indices[i].load < load && lp_gpu_moves(l, a->indices[i].load)) return 1;
  return a->bounded && a->outside.kind == LP_LOAD && a->outside.index < load && lp_gpu_moves(l, a->outside.index);
}
