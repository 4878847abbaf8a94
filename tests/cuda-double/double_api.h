/* What a library of CUDA shows: its functions, of which the prototypes are in CUDA's headers. */
#ifndef DOUBLE_API_H
#define DOUBLE_API_H

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#include <stdint.h>

/* Device memory that a call reads, or writes. */
typedef struct double_range {
  uint64_t address, nbytes;
  int is_written;
} double_range_t;

#endif
