/* What the files that find a loop's schedule on a GPU share (loop_gpu.c, loop_gpu_rows.c, loop_gpu_vectors.c,
 * loop_gpu_parameters.c); each calls only those after it. */
#ifndef LP_GPU_SCHEDULE_H
#define LP_GPU_SCHEDULE_H

#include "loop_print.h"

#include <aot/assert.h>

enum {
  WARP = 32,
  ACCESS = 16,    /* bytes of the widest access */
  MOST_TEAMS = 15 /* of a block: each has a barrier */
};

static inline uint64_t gs_at_least_one(uint64_t n) { return n ? n : 1; }
static inline uint64_t gs_divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
static inline uint32_t gs_n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }
/* Of the first dimensions. */
static inline uint64_t gs_size_of_first(const lp_loop_t *l, int32_t n_dims) {
  uint64_t n = 1;
  AOT_ASSERT(n_dims >= 0 && n_dims <= l->rank);
  for (int32_t d = 0; d < n_dims; d++) n *= (uint64_t)l->sizes[d];
  return n;
}

/* ---- vectors (loop_gpu_vectors.c) ---- */

/* A load whose elements have places, or bounds, of their own: not those of a vector. */
int gs_is_single(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector);
int gs_is_aligned(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector);
/* What a thread has to do before its first word takes as long as four words: points with words take twice as many
 * elements a thread. */
int gs_draws_words(const lp_loop_t *l);
/* The most neighbours that a thread takes. by_smallest: 16 bytes of the smallest dtype, not of the largest. */
uint32_t gs_vector(const lp_loop_t *l, int32_t dim, int by_smallest);

/* ---- rows (loop_gpu_rows.c) ---- */

int gs_has_across(const lp_loop_t *l);
/* A team scans as many elements as it has threads, one after another: along rows, also where they lie across memory. */
int gs_has_scan(const lp_loop_t *l);
void gs_choose_rows(lp_loop_t *l, const lp_gpu_machine_t *m);
/* What registers hold, of rows whose team is chosen. */
void gs_hold(lp_loop_t *l);
/* Of rows that teams continue with: shared memory, and blocks; as they are given, where they are not too many. 0: too
 * much. */
int gs_fit_blocks(lp_loop_t *l, uint64_t rows, const lp_gpu_machine_t *m);

#endif
