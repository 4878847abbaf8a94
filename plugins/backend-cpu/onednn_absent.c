/* In the place of onednn_kernels.c where the build found no headers of oneDNN 2. */
#include "onednn_kernels.h"

#include <stdio.h>

bc_dnn_t *bc_dnn_product(const bc_product_t *p, int32_t n_lanes) {
  (void)p, (void)n_lanes;
  return NULL;
}

bc_dnn_t *bc_dnn_tile_product(const bc_product_t *p, int32_t n_lanes) {
  (void)p, (void)n_lanes;
  return NULL;
}

bc_dnn_t *bc_dnn_conv(const bc_dnn_conv_t *c, int what, int32_t n_lanes) {
  (void)c, (void)what, (void)n_lanes;
  return NULL;
}

uint64_t bc_dnn_work(const bc_dnn_t *k) {
  (void)k;
  return 0;
}

int bc_dnn_run(const bc_dnn_t *k, int32_t lane, void *const *operands, void *work) {
  (void)k, (void)lane, (void)operands, (void)work;
  return 1;
}

void bc_dnn_destroy(void *k) { (void)k; }

void bc_dnn_describe(char *out, size_t size) { snprintf(out, size, "none: built without its headers"); }
