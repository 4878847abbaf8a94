/* Attention whose dropout is a draw, by kernels of our own (flash_kernels.h): the mask is not made. On an H200 they
 * take
 * 0.18 ms forward and 0.34 ms backward for bert_base's layer (32 x 12 x 512 x 512 x 64, bfloat16), where cuDNN takes
 * 0.35 and
 * 0.87, and masks 0.12 to draw. */
#ifndef GC_FLASH_ATTENTION_H
#define GC_FLASH_ATTENTION_H

#include "kit/lowering/attention_call.h"

/* lw_target_t.draws: what such a call is reported to keep. */
uint32_t gc_own_attention_draws(lw_build_t *b);
/* The node at hand, forward or backward: its mask is not made, so it is lowered here or not at all. */
int gc_is_own_attention(const lw_build_t *b);
aot_status_t gc_lower_own_attention(lw_build_t *b, const lw_attention_places_t *at);

#endif
