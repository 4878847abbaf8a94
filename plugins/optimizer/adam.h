/* Adam and AdamW, operation for operation as torch.optim's single-tensor reference (_single_tensor_adam, PyTorch 2.11):
 *
 *     t  <- t + 1
 *     AdamW:  p <- p * (1 - lr*wd)          Adam:  g <- g + wd*p
 *     m  <- lerp(m, g, 1 - beta1)
 *     v  <- v*beta2 + (1 - beta2)*g*g
 *     p  <- p + (-lr/(1 - beta1^t)) * m / (sqrt(v)/sqrt(1 - beta2^t) + eps)
 *
 * with amsgrad the largest v so far in place of v. Kingma, Ba: Adam, 2015; Loshchilov, Hutter: Decoupled Weight Decay
 * Regularization, 2019; Reddi, Kale, Kumar: On the Convergence of Adam and Beyond, 2018. */
#ifndef OPT_ADAM_H
#define OPT_ADAM_H

#include "opt_scalar.h"

typedef struct opt_adam {
  double beta1, beta2, eps, weight_decay;
  int decoupled; /* AdamW */
  int amsgrad, maximize;
} opt_adam_t;

typedef struct opt_adam_step { /* what all parameters share */
  em_x_t step;                 /* t, new */
  opt_scalar_t decay;          /* 1 - lr*wd; AdamW with a weight decay */
  opt_scalar_t neg_size;       /* -lr/(1 - beta1^t) */
  opt_scalar_t correction;     /* sqrt(1 - beta2^t) */
} opt_adam_step_t;

typedef struct opt_adam_values {                     /* of one parameter, before or after the step */
  em_x_t param, exp_avg, exp_avg_sq, max_exp_avg_sq; /* the last with amsgrad alone */
} opt_adam_values_t;

opt_adam_step_t opt_adam_begin(em_t *e, const opt_adam_t *o, em_x_t lr, em_x_t step);
opt_adam_values_t opt_adam_update(em_t *e, const opt_adam_t *o, opt_adam_step_t *s, opt_adam_values_t old, em_x_t grad,
                                  int32_t dtype);

#endif
