/* Masks of attention as steps around cuDNN's (mask_kernels.h). */
#ifndef GC_GPU_MASKS_H
#define GC_GPU_MASKS_H

#include "kit/lowering/attention_call.h"
#include "gpu_target.h"
#include "forward_stash.h"

/* A mask that has been made into what is added: [batch, head, query, key] and a float for each of its rows. Masks of a
 * graph are made once, and serve all its attentions. */
typedef struct gc_mask {
  gc_kept_t kept;
  lw_tensor_t of; /* the program's */
  lw_tensor_t bias, weights;
} gc_mask_t;

/* The type of the bias that gc_make_mask gives, without memory. */
lw_tensor_t gc_bias_type(const lw_attention_t *a);
aot_status_t gc_make_mask(lw_build_t *b, const lw_attention_t *a, const gc_mask_t **out);
/* Rows that see nothing: the output's become zeros, their log sums so high that no probability is left. */
aot_status_t gc_hide_rows(lw_build_t *b, const gc_mask_t *m, const lw_tensor_t *o, const lw_tensor_t *stats);
/* Rows may have weights other than 0 and 1, by which the gradient that enters is to be multiplied; dense. */
static inline int gc_weighs_rows(const lw_attention_t *a) { return a->mask && a->mask->dtype != AOT_BOOL; }
aot_status_t gc_weigh_rows(lw_build_t *b, const gc_mask_t *m, const lw_tensor_t *go, lw_tensor_t *out);

#endif
