#ifndef AOTH_CLOCK_H
#define AOTH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t aoth_now_ns(void) { /* monotonic */
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
