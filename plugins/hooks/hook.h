/* A hook: what becomes of a saved value (pack, in the forward) and how it is read again (unpack, in the backward).
 * Either built in (codecs.c) or a program in text form (hook_file.c). */
#ifndef HOOK_H
#define HOOK_H

#include "hook_fail.h"

#define HK_MAX_PARTS 16

/* Why a value is left as it is, or that it is not. */
#define HK_TAKEN 0
#define HK_DTYPE 1  /* not for values of this dtype (integers, masks) or kind */
#define HK_SIZE 2   /* packed, it would not be smaller, or it has no elements */
#define HK_NO_FIT 3 /* no program of the file fits its rank and sizes */
#define HK_HELD 4   /* the filter leaves it to its holder */
#define HK_SMALL 5  /* below min-bytes */
#define HK_LAYOUT 6 /* its elements do not lie densely, each once: it could not be read back in its strides */
#define HK_N_REASONS 7

typedef struct hk_hook hk_hook_t;
struct hk_hook {
  /* HK_TAKEN, HK_DTYPE, HK_SIZE or HK_NO_FIT for a value of this type. Emits nothing. */
  int (*fits)(const hk_hook_t *h, em_t *e, const aot_type_t *t);
  /* out_parts[*out_n], at most HK_MAX_PARTS: what is saved instead of v, tensors. */
  void (*pack)(const hk_hook_t *h, em_t *e, aot_value_t v, aot_value_t *out_parts, uint32_t *out_n);
  /* The value again, of dtype and sizes of `like`; strides may differ. */
  aot_value_t (*unpack)(const hk_hook_t *h, em_t *e, const aot_value_t *parts, uint32_t n, const aot_type_t *like);
  const void *self;
};

#endif
