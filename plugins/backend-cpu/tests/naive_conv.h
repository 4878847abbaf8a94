/* A convolution as the list of its products, for tests. */
#ifndef BC_NAIVE_CONV_H
#define BC_NAIVE_CONV_H

#include "conv_kernels.h"
#include "naive.h"

/* The position of the image under place k of the window of output p; -1: in the padding. */
static inline int64_t naive_input(const bc_conv_t *c, int64_t p, int64_t k) {
  int64_t at = 0, next = 1;
  for (int d = BC_WIDTH; d >= BC_DEPTH; next *= c->in[d], p /= c->out[d], k /= c->kernel[d], d--) {
    const int64_t x = p % c->out[d] * c->stride[d] - c->pad[d] + k % c->kernel[d] * c->dilation[d];
    if (x < 0 || x >= c->in[d]) return -1;
    at += x * next;
  }
  return at;
}

/* Calls visit(output, input, weight) for every product of the convolution; input < 0 in the padding is left out. */
typedef void (*visit_t)(int64_t y, int64_t x, int64_t w, void *self);
static inline void every_product(const bc_conv_t *c, visit_t visit, void *self) {
  int64_t ci = c->c_in / c->groups, co = c->c_out / c->groups;
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t o = 0; o < c->c_out; o++)
      for (int64_t p = 0; p < bc_conv_positions(c); p++)
        for (int64_t i = 0; i < ci; i++)
          for (int64_t k = 0; k < bc_conv_window(c); k++) {
            const int64_t x = naive_input(c, p, k);
            if (x < 0) continue;
            visit((n * c->c_out + o) * bc_conv_positions(c) + p,
                  (n * c->c_in + o / co * ci + i) * bc_conv_inputs(c) + x, (o * ci + i) * bc_conv_window(c) + k, self);
          }
}

static inline void find_output_size(bc_conv_t *c) {
  for (int k = 0; k < BC_CONV_RANK; k++)
    c->out[k] = (c->in[k] + 2 * c->pad[k] - c->dilation[k] * (c->kernel[k] - 1) - 1) / c->stride[k] + 1;
}

#endif
