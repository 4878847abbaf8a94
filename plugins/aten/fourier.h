/* What a call of fft_fft .. fft_ihfftn transforms: the same for its shape and for its decomposition. */
#ifndef AT_FOURIER_H
#define AT_FOURIER_H

#include "shape.h"

typedef struct at_fft_kind {
  const char *name; /* "fft", without its dimensions: fft, fft2 and fftn are one */
  int backward;     /* sign and scale of an inverse */
  int half_in;      /* it reads one half of the last dimension and gives real numbers */
  int half_out;     /* it reads real numbers and gives one half of the last dimension */
  int hermitian;    /* hfft, ihfft: conjugated where the halves are */
} at_fft_kind_t;

typedef struct at_fft_plan {
  const at_fft_kind_t *kind;
  uint32_t n;
  int32_t dims[AOT_MAX_RANK];
  int64_t points[AOT_MAX_RANK]; /* of the signal; may be symbolic */
} at_fft_plan_t;

/* n, s, dim: the arguments of these names, NULL or None where there are none. Failures go to c. */
at_fft_plan_t at_fft_plan(at_infer_t *c, const aot_type_t *self, const aot_arg_t *n, const aot_arg_t *s,
                          const aot_arg_t *dim);

#endif
