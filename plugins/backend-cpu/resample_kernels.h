/* Images resized, forward and backward: planes of contiguous float32. Resizing is separable, so a row of the output is
 * the taps of the source's rows added up, and then the taps of its columns. */
#ifndef BC_RESAMPLE_KERNELS_H
#define BC_RESAMPLE_KERNELS_H

#include <stdint.h>

typedef struct
    bc_taps { /* of one output place; those that are not used have weight 0 and are at a place that is there */
  int32_t at[4];
  float weight[4];
} bc_taps_t;

typedef struct bc_resample {
  int64_t in[2], out[2];
  int32_t n[2];             /* taps along the dimension: 1, 2 or 4 */
  const bc_taps_t *taps[2]; /* by output place */
} bc_resample_t;

/* Planes [begin, end). work: in[1] floats. */
void bc_resample(const bc_resample_t *r, int64_t begin, int64_t end, const float *x, float *y, float *work);
/* gx is zeroed first. */
void bc_resample_backward(const bc_resample_t *r, int64_t begin, int64_t end, const float *gy, float *gx, float *work);

#endif
