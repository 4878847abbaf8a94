/* What steps of attention have in common, code that runs them: how tensors of a call lie, and what a forward keeps for
 * the gradients of the same graph. */
#ifndef GC_ATTENTION_STEPS_H
#define GC_ATTENTION_STEPS_H

#include "cudnn/attention_graphs.h"
#include "kit/lowering/attention_call.h"
#include "gpu_target.h"
#include "forward_stash.h"

/* ---- tensors: [batch, head, position, element], elements side by side, everything else at multiples of vectors
 * ---- */

/* t's type where it lies so, or the type of a contiguous copy; and the tensor, copied where it must be. */
lw_tensor_t gc_plain_type(const lw_build_t *b, const lw_tensor_t *t);
aot_status_t gc_make_plain(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out);
/* The same of the node's result r, which is bound: where a join wants it, if it may be there. */
lw_tensor_t gc_plain_result_type(const lw_build_t *b, uint32_t r);
aot_status_t gc_make_plain_result(lw_build_t *b, uint32_t r, lw_tensor_t *out);
lw_tensor_t gc_rows_type(const lw_attention_t *a); /* float32 [batch, head, query] */
/* tensors: types by GC_ATT_*, the first n of them. */
gc_attention_t gc_describe_attention(const lw_attention_t *a, const lw_tensor_t *tensors, uint32_t n);

/* ---- what a forward keeps ---- */

typedef struct gc_kept_attention {
  gc_kept_t kept;
  lw_tensor_t q, k, v, mask, o, stats; /* mask: dtype 0: none */
  lw_tensor_t bits;                    /* of own attention (flash_kernels.h); dtype 0: cuDNN's */
  uint32_t keep;                       /* value; LW_NONE: nothing is dropped */
  double scale;
  int is_causal;
} gc_kept_attention_t;

/* bits: NULL: none. */
aot_status_t gc_keep_attention(lw_build_t *b, const lw_attention_places_t *at, const lw_attention_t *a,
                               const lw_tensor_t *o, const lw_tensor_t *stats, const lw_tensor_t *bits);
/* The forward of these operands in the same graph; NULL: there is none. Plugins' kernels may write into results that
 * nothing seems to read any more. */
const gc_kept_attention_t *gc_find_kept_attention(const lw_build_t *b, const lw_attention_places_t *at,
                                                  const lw_attention_t *a);

#endif
