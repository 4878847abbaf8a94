/* The hooks that are built in. */
#ifndef CODECS_H
#define CODECS_H

#include "hook.h"

/* cast, scaled (a code of 8 bits an element and an f32 scale a tensor or a row), offload. */
#define HK_N_CODECS 7
extern const aot_str_t hk_codec_names[HK_N_CODECS + 1]; /* none, then by number */
hk_hook_t hk_codec(uint32_t number);

#endif
