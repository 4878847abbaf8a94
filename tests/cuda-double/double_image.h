/* What the doubles of NVRTC and of the driver have for machine code: this head, and after it a library for the CPU. */
#ifndef DOUBLE_IMAGE_H
#define DOUBLE_IMAGE_H

#include <stddef.h>

#define DOUBLE_IMAGE_MAGIC "AOT double cubin"
typedef struct double_image {
  char magic[16];
  size_t nbytes;
} double_image_t;

#endif
