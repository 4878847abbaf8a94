/* Skipped steps and loss scaling, as torch.amp.GradScaler: a gradient that is infinite or NaN changes nothing but the
 * scale. All of it is nodes and leaves of the step.
 *
 *     tangent = scale / micro steps        gradients = gradients / scale
 *     is_finite = all of them are          new leaf  = is_finite ? new leaf : old leaf
 *     scale     = is_finite ? (interval steps in a row were ? scale * growth : scale) : scale * backoff */
#ifndef ST_FINITE_H
#define ST_FINITE_H

#include "kit/emit/emit.h"

typedef struct st_scaling {
  double first;           /* scale at first; 0: the loss is not scaled */
  double growth, backoff; /* factors */
  int64_t interval;       /* finite steps in a row for a growth */
} st_scaling_t;

/* What a step keeps about it, as leaves of role STATE, and as values of the graph that is being made. */
typedef struct st_finite {
  st_scaling_t scaling;
  aot_leaf_t scale, in_a_row, skipped; /* with a scale */
  aot_leaf_t culprit;                  /* without: the id of the first leaf whose gradient is not finite, 0: none yet */
  em_x_t scale_now, is_finite;         /* is_finite none: all steps are taken */
} st_finite_t;

/* Makes the leaves: those of a scale, or the culprit. */
void st_finite_create(st_finite_t *f, em_t *e, const st_scaling_t *scaling);
/* The scale as an input of the graph. */
void st_scale_take(st_finite_t *f, em_t *e);
/* gradients: by leaf, n_leaves of them, AOT_NO_ID for none. With a scale they are divided by it. Says is_finite.
 * is_sharded: some are one rank's parts; all ranks take the step, or none. */
void st_finite_check(st_finite_t *f, em_t *e, uint32_t *gradients, uint32_t n_leaves, int is_sharded);
/* The new values of the leaves. */
void st_finite_update(st_finite_t *f, em_t *e);

#endif
