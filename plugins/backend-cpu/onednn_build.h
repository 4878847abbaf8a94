/* How kernels of oneDNN are put together: places for operands and work space, calls on them in order. For the files
 * onednn_*.c alone. */
#ifndef BC_ONEDNN_BUILD_H
#define BC_ONEDNN_BUILD_H

#include "onednn_kernels.h"

#include "kit/blas/onednn.h"

typedef struct bc_dnn_call {
  dnnl_primitive_t primitive;
  int32_t n_args;
  struct {
    int arg, place;
  } args[6];
} bc_dnn_call_t;

static inline const dn_library_t *lib(void) { return dn_library(); }
static inline dnnl_data_type_t bc_dnn_type(int32_t dtype) { return dtype == AOT_BF16 ? dnnl_bf16 : dnnl_f32; }

bc_dnn_t *bc_dnn_new(int32_t n_lanes); /* NULL: the library is not there */
/* What the library has chosen to compute it with; "ref": its reference implementation. */
const char *bc_dnn_implementation(const_dnnl_primitive_desc_t made);
/* Work space comes from the caller: the library's own belongs to the thread that made a primitive. NULL: no memory. */
dnnl_primitive_attr_t bc_dnn_attributes(void);

/* Memory that calls read or write: the caller's operand of that number, or a part of the work space. */
enum { BC_DNN_WORK = -1 };
int bc_dnn_place(bc_dnn_t *k, const dnnl_memory_desc_t *shape, int32_t operand);
/* A call of what `made` describes; the caller adds its arguments, but for its work space. NULL: it cannot be had. */
bc_dnn_call_t *bc_dnn_call(bc_dnn_t *k, const_dnnl_primitive_desc_t made);
void bc_dnn_arg(bc_dnn_call_t *c, int arg, int place);
/* The place itself where it has that shape; else a part of the work space, and a call that copies there. -1: failed. */
int bc_dnn_read_as(bc_dnn_t *k, int place, const dnnl_memory_desc_t *shape);
int bc_dnn_copy(bc_dnn_t *k, int from, int to);
/* k, when `ok` and it can be run; else it is destroyed. */
bc_dnn_t *bc_dnn_finish(bc_dnn_t *k, int ok);

#endif
