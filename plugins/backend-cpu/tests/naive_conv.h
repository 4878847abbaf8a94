/* A convolution as the list of its products, for tests. */
#ifndef BC_NAIVE_CONV_H
#define BC_NAIVE_CONV_H

#include "conv_kernels.h"
#include "naive.h"

/* Calls visit(output, input, weight) for every product of the convolution; input < 0 in the padding is left out. */
typedef void (*visit_t)(int64_t y, int64_t x, int64_t w, void *self);
static inline void every_product(const bc_conv_t *c, visit_t visit, void *self) {
  int64_t ci = c->c_in / c->groups, co = c->c_out / c->groups;
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t o = 0; o < c->c_out; o++)
      for (int64_t h = 0; h < c->out[0]; h++)
        for (int64_t w = 0; w < c->out[1]; w++)
          for (int64_t i = 0; i < ci; i++)
            for (int64_t kh = 0; kh < c->kernel[0]; kh++)
              for (int64_t kw = 0; kw < c->kernel[1]; kw++) {
                int64_t y = h * c->stride[0] - c->pad[0] + kh * c->dilation[0],
                        x = w * c->stride[1] - c->pad[1] + kw * c->dilation[1];
                if (y < 0 || y >= c->in[0] || x < 0 || x >= c->in[1]) continue;
                visit(((n * c->c_out + o) * c->out[0] + h) * c->out[1] + w,
                      ((n * c->c_in + o / co * ci + i) * c->in[0] + y) * c->in[1] + x,
                      ((o * ci + i) * c->kernel[0] + kh) * c->kernel[1] + kw, self);
              }
}

static inline void find_output_size(bc_conv_t *c) {
  for (int k = 0; k < 2; k++)
    c->out[k] = (c->in[k] + 2 * c->pad[k] - c->dilation[k] * (c->kernel[k] - 1) - 1) / c->stride[k] + 1;
}

#endif
