/* Calls of convolutions: where their operators have their arguments, checked against each other.
 *
 * A transposed convolution is the gradient of a convolution towards its input, and has gradients of the same kind: x, w
 * and y below are those of the convolution, so that three directions serve all. */
#ifndef LW_CONV_CALL_H
#define LW_CONV_CALL_H

#include "lower.h"

enum { LW_CONV_MAX_RANK = 3 };
enum { LW_CONV_FORWARD = 1, LW_CONV_DATA, LW_CONV_WEIGHTS };

typedef struct lw_conv {
  const lw_tensor_t *in, *weight, *out; /* of the operator; out: of a gradient the one that enters it */
  const lw_tensor_t *bias;              /* NULL: none */
  const lw_tensor_t *x, *y;             /* in and out, or the other way where it is transposed */
  int is_transposed;
  int32_t rank; /* spatial dimensions: 1 to 3 */
  int64_t groups, stride[LW_CONV_MAX_RANK], pad[LW_CONV_MAX_RANK], dilation[LW_CONV_MAX_RANK];
} lw_conv_t;

/* 0: of nothing, or arguments that do not fit each other. Dtypes are the same. */
int lw_conv_call(const lw_build_t *b, lw_conv_t *out);          /* conv1d, .., conv_transpose1d, .., convolution */
int lw_conv_backward_call(const lw_build_t *b, lw_conv_t *out); /* convolution_backward, results checked, too */

#endif
