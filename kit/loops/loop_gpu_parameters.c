/* What a scheduled loop's kernels are given: scratch memory for parts of reductions, second kernels that join them, and
 * the pointers of one tensor or of a table of them. */
#include "gpu_schedule.h"

#include <aot/assert.h>
#include <aot/inline.h>

uint64_t lp_gpu_results(const lp_loop_t *l) { return gs_size_of_first(l, lp_row(l)); }

static uint64_t n_partial(const lp_loop_t *l, const lp_inst_t *inst) {
  AOT_ASSERT(inst >= l->insts && inst < l->insts + l->n_insts);
  if (inst->reduce == LP_ACROSS) return (inst->of_row ? 1 : (uint64_t)lp_length(l)) * l->gpu.parts;
  if (l->gpu.kind == LP_GPU_PLACES) /* the sums of a part's first and last run */
    return inst == &l->insts[l->accesses[l->n_loads].inst] && lp_gpu_has_end(l) ? 2 * l->gpu.splits * lp_gpu_results(l)
                                                                                : 0;
  return lp_reduces_row(inst) && l->gpu.splits > 1 ? l->gpu.splits * lp_gpu_results(l) : 0;
}

uint64_t lp_gpu_sorted(const lp_loop_t *l) { return ((uint64_t)lp_length(l) * sizeof(uint32_t) + 15) / 16 * 16; }

uint64_t lp_gpu_partial(const lp_loop_t *l, uint32_t inst) {
  uint64_t at = lp_gpu_has_begin(l) ? 4 * lp_gpu_sorted(l) : 0;
  AOT_ASSERT(inst <= l->n_insts);
  for (uint32_t k = 0; k < inst; k++)
    at += (n_partial(l, &l->insts[k]) * aot_dtype_size(lp_gpu_lane(&l->insts[k])) + 15) / 16 * 16;
  return at;
}

int32_t lp_gpu_lane(const lp_inst_t *inst) {
  AOT_ASSERT(!inst->reduce || !inst->scan);
  if (!lp_is_float(inst->compute)) return AOT_I64;
  if (inst->scan == LP_LOG_ADD) return AOT_F64;
  return inst->reduce + inst->scan == LP_SUM && inst->dtype == AOT_F64 ? AOT_F64 : lp_value_dtype(inst->compute);
}

int lp_gpu_has_begin(const lp_loop_t *l) { return l->gpu.kind == LP_GPU_PLACES && l->gpu.chunks; }

/* Every number looks into every piece: worth it up to some hundreds of them. */
int lp_gpu_has_pieces(const lp_loop_t *l) {
  enum { MOST = 512 * LP_GPU_PIECE };
  return lp_length(l) <= MOST;
}

int lp_gpu_has_merge(const lp_loop_t *l) {
  return lp_gpu_has_begin(l) && lp_gpu_has_pieces(l) && lp_length(l) > LP_GPU_PIECE;
}

uint32_t lp_gpu_begin_blocks(const lp_loop_t *l) {
  return lp_gpu_has_pieces(l) ? (uint32_t)gs_divide_up((uint64_t)lp_length(l), LP_GPU_PIECE) : 1;
}

uint32_t lp_gpu_merge_blocks(const lp_loop_t *l) {
  return (uint32_t)gs_divide_up((uint64_t)lp_length(l), LP_GPU_BEGIN_THREADS / 4);
}

int lp_gpu_has_end(const lp_loop_t *l) {
  return l->gpu.parts || (l->gpu.splits > 1 && (l->gpu.kind != LP_GPU_PLACES || l->accesses[l->n_loads].adds));
}

uint32_t lp_gpu_n_pointers(const lp_loop_t *l) {
  if (l->gpu.tensors) return lp_gpu_shared_words(l) + l->gpu.tensors * lp_gpu_row_words(l);
  return gs_n_accesses(l) + (uint32_t)lp_has_indices(l) + (lp_gpu_scratch(l) != 0);
}

uint64_t lp_gpu_scratch(const lp_loop_t *l) {
  return lp_gpu_has_begin(l) || lp_gpu_has_end(l) ? gs_at_least_one(lp_gpu_partial(l, l->n_insts)) : 0;
}

/* Of sums across rows: the blocks of those that have an element for each of a row; one each of others. */
static uint64_t across_blocks(const lp_loop_t *l) {
  uint64_t n = 0;
  for (uint32_t s = l->n_loads; s < gs_n_accesses(l); s++) {
    const lp_inst_t *inst = &l->insts[l->accesses[s].inst];
    if (inst->reduce == LP_ACROSS) n += inst->of_row ? 1 : gs_divide_up((uint64_t)lp_length(l), WARP);
  }
  return n;
}

uint32_t lp_gpu_end_blocks(const lp_loop_t *l) {
  if (l->gpu.kind == LP_GPU_PLACES)
    return (uint32_t)gs_divide_up((uint64_t)l->gpu.splits * lp_gpu_results(l), LP_GPU_END_THREADS);
  const uint64_t n = lp_gpu_results(l);
  return (uint32_t)(l->gpu.parts ? across_blocks(l) : l->columns ? gs_divide_up(n, WARP) : n);
}

/* ---- tables of tensors ---- */

static int is_shared(const lp_loop_t *l, uint32_t k) {
  return k < l->n_loads && !l->accesses[k].draws && l->accesses[k].strides[0] == 0;
}

/* Of the accesses before this one. */
static uint32_t n_shared(const lp_loop_t *l, uint32_t access) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < access; k++) n += (uint32_t)is_shared(l, k);
  return n;
}

uint32_t lp_gpu_shared_words(const lp_loop_t *l) { return n_shared(l, gs_n_accesses(l)); }

uint32_t lp_gpu_row_words(const lp_loop_t *l) { return LP_GPU_NUMBERS + gs_n_accesses(l) - lp_gpu_shared_words(l); }

uint32_t lp_gpu_most_tensors(const lp_loop_t *l) {
  AOT_ASSERT(l->gpu.tensors && lp_gpu_shared_words(l) <= LP_GPU_MOST_POINTERS); /* flat points */
  return (LP_GPU_MOST_POINTERS - lp_gpu_shared_words(l)) / lp_gpu_row_words(l);
}

uint32_t lp_gpu_word(const lp_loop_t *l, uint32_t access) {
  AOT_ASSERT(access < gs_n_accesses(l));
  if (!l->gpu.tensors) return access;
  if (is_shared(l, access)) return n_shared(l, access);
  return lp_gpu_shared_words(l) + LP_GPU_NUMBERS + access - n_shared(l, access);
}
