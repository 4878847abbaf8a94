/* Learning rate by step: linear warm-up to lr, then constant, a line or half a cosine down to min_lr at the last
 * step. */
#ifndef AOTH_SCHEDULE_H
#define AOTH_SCHEDULE_H

#include <stdint.h>

typedef struct aoth_schedule {
  int32_t kind; /* AOTH_SCHEDULE_* of config/pipeline.h */
  int32_t reserved;
  double lr, min_lr;
  int64_t warmup, steps;
} aoth_schedule_t;

/* step counts from 0. Steps 0..warmup-1 use lr*(step+1)/warmup; step steps-1 uses min_lr (not with CONSTANT). Defined
 * for every step, also past the end. */
double aoth_schedule_at(const aoth_schedule_t *s, int64_t step);

#endif
