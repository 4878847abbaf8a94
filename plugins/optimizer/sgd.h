/* Stochastic gradient descent with momentum, as torch.optim.SGD (_single_tensor_sgd, PyTorch 2.11):
 *
 *     g <- g + wd*p
 *     b <- momentum*b + (1 - dampening)*g      (the first step: b <- g)
 *     g <- nesterov ? g + momentum*b : b
 *     p <- p - lr*g
 *
 * Sutskever, Martens, Dahl, Hinton: On the importance of initialization and momentum in deep learning, 2013. */
#ifndef OPT_SGD_H
#define OPT_SGD_H

#include "opt_scalar.h"

typedef struct opt_sgd {
  double momentum, dampening, weight_decay;
  int nesterov, maximize;
} opt_sgd_t;

typedef struct opt_sgd_step { /* what all parameters share */
  em_x_t step;                /* new count of steps; with dampening alone */
  opt_scalar_t neg_lr;
  opt_scalar_t share; /* of the gradient in the momentum: 1 at the first step, then 1 - dampening */
} opt_sgd_step_t;

int opt_sgd_counts(const opt_sgd_t *o); /* 1: needs a step count, to know the first step */
opt_sgd_step_t opt_sgd_begin(em_t *e, const opt_sgd_t *o, em_x_t lr, em_x_t step);
/* *buffer: momentum, old to new; untouched without momentum. Answers the new parameter. */
em_x_t opt_sgd_update(em_t *e, const opt_sgd_t *o, opt_sgd_step_t *s, em_x_t param, em_x_t grad, em_x_t *buffer,
                      int32_t dtype);

#endif
