#include <trainer/lr_schedule.h>

#include <math.h>
#include <config/pipeline.h>

double aoth_schedule_at(const aoth_schedule_t *s, int64_t step) {
  const double pi = 3.14159265358979323846;
  if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
  if (s->kind == AOTH_SCHEDULE_CONSTANT) return s->lr;
  int64_t span = s->steps - s->warmup - 1; /* from the first step after warm-up to the last */
  double done = span > 0 ? (double)(step - s->warmup) / (double)span : 1;
  if (done >= 1) return s->min_lr;
  double left = s->kind == AOTH_SCHEDULE_COSINE ? 0.5 * (1 + cos(pi * done)) : 1 - done;
  return s->min_lr + (s->lr - s->min_lr) * left;
}
