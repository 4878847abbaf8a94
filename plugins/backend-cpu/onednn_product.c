/* Products of two matrices. */
#include "onednn_build.h"

#include <string.h>

static int matrix_shape(const bc_matrix_t *m, dnnl_data_type_t type, dnnl_memory_desc_t *out) {
  const dnnl_dims_t sizes = {m->rows, m->columns};
  const dnnl_dims_t strides = {m->transposed ? 1 : m->ld, m->transposed ? m->ld : 1};
  return lib()->dnnl_memory_desc_init_by_strides(out, 2, sizes, type, strides) == dnnl_success;
}

/* A number a column, in the first row. */
static int bias_shape(const bc_product_t *p, dnnl_memory_desc_t *out) {
  const bc_matrix_t row = {.rows = 1, .columns = p->c.columns, .ld = p->c.columns};
  return matrix_shape(&row, bc_dnn_type(p->dtype), out);
}

static dnnl_primitive_attr_t product_attributes(const bc_product_t *p) {
  const float alpha = (float)p->alpha;
  dnnl_primitive_attr_t a = bc_dnn_attributes();
  dnnl_post_ops_t after = NULL;
  if (!a || lib()->dnnl_post_ops_create(&after) != dnnl_success) return a;
  if (alpha != 1) lib()->dnnl_primitive_attr_set_output_scales(a, 1, 0, &alpha);
  if (p->beta != 0) lib()->dnnl_post_ops_append_sum(after, (float)p->beta);
  lib()->dnnl_primitive_attr_set_post_ops(a, after);
  lib()->dnnl_post_ops_destroy(after);
  return a;
}

static int has(dnnl_cpu_isa_t vectors) {
  return ((int)lib()->dnnl_get_effective_cpu_isa() & (int)vectors) == (int)vectors;
}

static int multiplies_halves(void) { return has(dnnl_cpu_isa_avx512_core_bf16); }

/* The best implementation takes operands that fill their memory, or are in it by rows. Parts of others, which a team
 * multiplies, are left to one like a BLAS's: of f16 or bf16 it is nearly as fast where the processor multiplies them,
 * of floats the faster BLAS where vectors are wide and b is row major, or with a bias, which it adds
 * (docs/BENCH.md). */
static int is_fast(const_dnnl_primitive_desc_t made, const bc_product_t *p) {
  const char *name = bc_dnn_implementation(made);
  if (strncmp(name, "gemm", 4) != 0) return strncmp(name, "ref", 3) != 0;
  if (p->dtype == AOT_BF16) return multiplies_halves();
  return has(dnnl_cpu_isa_avx512_core) && (!p->b.transposed || p->has_bias);
}

static int make_product(bc_dnn_t *k, const bc_product_t *p, int32_t dtype_c, int is_tile) {
  const dnnl_data_type_t type = bc_dnn_type(p->dtype);
  dnnl_memory_desc_t a, b, c, bias;
  dnnl_matmul_desc_t d;
  dnnl_primitive_desc_t made = NULL;
  dnnl_primitive_attr_t attributes = product_attributes(p);
  int ok = attributes && matrix_shape(&p->a, type, &a) && matrix_shape(&p->b, type, &b) &&
           matrix_shape(&p->c, bc_dnn_type(dtype_c), &c) && bias_shape(p, &bias) &&
           lib()->dnnl_matmul_desc_init(&d, &a, &b, p->has_bias ? &bias : NULL, &c) == dnnl_success &&
           lib()->dnnl_primitive_desc_create(&made, &d, attributes, lib()->engine, NULL) == dnnl_success &&
           (is_tile || is_fast(made, p));
  bc_dnn_call_t *call = ok ? bc_dnn_call(k, made) : NULL;
  if (call) {
    bc_dnn_arg(call, DNNL_ARG_SRC, bc_dnn_place(k, &a, 0));
    bc_dnn_arg(call, DNNL_ARG_WEIGHTS, bc_dnn_place(k, &b, 1));
    bc_dnn_arg(call, DNNL_ARG_DST, bc_dnn_place(k, &c, 2));
    if (p->has_bias) bc_dnn_arg(call, DNNL_ARG_BIAS, bc_dnn_place(k, &bias, 3));
  }
  if (made) lib()->dnnl_primitive_desc_destroy(made);
  if (attributes) lib()->dnnl_primitive_attr_destroy(attributes);
  return call != NULL;
}

bc_dnn_t *bc_dnn_product(const bc_product_t *p, int32_t n_lanes) {
  bc_dnn_t *k = bc_dnn_new(n_lanes);
  if (!k) return NULL;
  const int before = dn_begin();
  k = bc_dnn_finish(k, make_product(k, p, p->dtype, 0));
  dn_end(before);
  return k;
}

bc_dnn_t *bc_dnn_tile_product(const bc_product_t *p, int32_t n_lanes) {
  bc_dnn_t *k = bc_dnn_new(n_lanes);
  if (!k) return NULL;
  const int before = dn_begin();
  k = bc_dnn_finish(k, multiplies_halves() && make_product(k, p, AOT_F32, 1));
  dn_end(before);
  return k;
}
