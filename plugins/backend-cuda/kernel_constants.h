/* What the printer of a kernel writes before a text of kernels/ (README.md there): sizes by name, and conversions of
 * elements. */
#ifndef GC_KERNEL_CONSTANTS_H
#define GC_KERNEL_CONSTANTS_H

#include "kit/loops/loop.h"
#include <stddef.h>

typedef struct gc_constant {
  const char *name;
  int64_t value; /* of type int */
} gc_constant_t;

/* "  enum { NAME = value, .. };" */
void gc_print_constants(lp_text_t *out, const gc_constant_t *constants, size_t n);
/* Macros LP_VALUE(element), a float, and LP_ELEMENT(float), rounded to the dtype; to be undefined after the kernel. */
void gc_print_conversions(lp_text_t *out, int32_t dtype);

#endif
