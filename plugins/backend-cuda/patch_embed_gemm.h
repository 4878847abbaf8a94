/* Convolutions whose windows are contiguous and cover the image (the embedding of a vision transformer's patches, a
 * stem, a step between stages): products of patches, which are pixels in another order, and weights. */
#ifndef GC_PATCH_EMBED_GEMM_H
#define GC_PATCH_EMBED_GEMM_H

#include "kit/lowering/conv_call.h"

/* t: by GC_CONV_*, as a convolution's; one more than one pixel large. */
int gc_is_patches(const lw_conv_t *call, const lw_tensor_t *t);
/* kind: GC_DNN_CONV_*. bias: of a forward; NULL: none. */
aot_status_t gc_lower_patches(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t,
                              const lw_tensor_t *bias);

#endif
