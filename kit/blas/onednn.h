/* oneDNN (release 2), opened when the first product or convolution requests it. It is optional: without it, or on a
 * processor for which it has no kernels, everything runs as it does with OpenBLAS alone.
 *
 * It computes in the thread that calls it: its OpenMP runtime is held to one thread, so that a team that divides a
 * product neither waits for other threads nor spins next to them.
 *
 * Like OpenBLAS it is one for the whole process; this is state that lives as long. */
#ifndef BL_ONEDNN_H
#define BL_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

/* clang-format off */
#define DN_FUNCTIONS(X) \
  X(dnnl_engine_create) X(dnnl_stream_create) X(dnnl_stream_destroy) \
  X(dnnl_memory_desc_init_by_strides) X(dnnl_memory_desc_init_by_tag) X(dnnl_memory_desc_get_size) \
  X(dnnl_memory_desc_equal) X(dnnl_memory_create) X(dnnl_memory_destroy) X(dnnl_memory_set_data_handle) \
  X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_destroy) X(dnnl_primitive_attr_set_scratchpad_mode) \
  X(dnnl_primitive_attr_set_output_scales) X(dnnl_primitive_attr_set_post_ops) \
  X(dnnl_post_ops_create) X(dnnl_post_ops_destroy) X(dnnl_post_ops_append_sum) \
  X(dnnl_primitive_desc_create) X(dnnl_primitive_desc_destroy) X(dnnl_primitive_desc_query) \
  X(dnnl_primitive_desc_query_md) X(dnnl_reorder_primitive_desc_create) \
  X(dnnl_primitive_create) X(dnnl_primitive_destroy) X(dnnl_primitive_execute) \
  X(dnnl_matmul_desc_init) X(dnnl_dilated_convolution_forward_desc_init) \
  X(dnnl_dilated_convolution_backward_data_desc_init) X(dnnl_dilated_convolution_backward_weights_desc_init) \
  X(dnnl_version) X(dnnl_get_effective_cpu_isa)
/* clang-format on */

typedef struct dn_library {
#define DN_FIELD(name) __typeof__(name) *name;
  DN_FUNCTIONS(DN_FIELD)
#undef DN_FIELD
  dnnl_engine_t engine;
  char failure[200]; /* empty: it is open, and all functions are there */
} dn_library_t;

/* Opened by the first call. [any-thread] */
const dn_library_t *dn_library(void);

/* Around every call that creates or runs a primitive: this thread's number of OpenMP threads becomes 1, and again what
 * it was. Other users of the OpenMP runtime keep theirs. */
int dn_begin(void);
void dn_end(int before);

#endif
