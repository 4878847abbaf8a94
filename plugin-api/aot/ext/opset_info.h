/* aot/ext/opset_info.h - extension "aot.opset-info/1", offered by an opset: what it can do with an operator that the
 * descriptor does not tell. For lists and checks (`aothost ops`); no stage decides by it. Asked of the table that
 * create() returned. */
#ifndef AOT_EXT_OPSET_INFO_H
#define AOT_EXT_OPSET_INFO_H

#include <aot/base.h>

#define AOT_EXT_OPSET_INFO "aot.opset-info/1"

/* decompose() knows the operator. What it is made of, and whether a node with unusual arguments is refused, is seen
 * only when the node is there. */
#define AOT_OP_INFO_DECOMPOSES 1u
/* functional_form() knows it. */
#define AOT_OP_INFO_FUNCTIONAL 2u
/* view_inverse() knows it. */
#define AOT_OP_INFO_INVERSE 4u

/* One operator. */
typedef struct aot_op_info {
  uint32_t flags; /* AOT_OP_INFO_* */
  uint32_t reserved;
  aot_str_t shape_rule; /* operators with one name here have their result types from one rule */
  aot_str_t functional; /* full name of the operator without the write; empty: made of several, or nothing is written */
} aot_op_info_t;

typedef struct aot_ext_opset_info {
  uint32_t struct_size, flags;
  const aot_op_info_t *ops;  /* n_ops [session], in the order of aot_opset_t.ops */
  uint64_t n_ops, op_stride; /* stride: the opset's sizeof(aot_op_info_t) */
} aot_ext_opset_info_t;

#endif
