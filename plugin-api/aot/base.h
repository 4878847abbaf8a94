/* aot/base.h - the words every other header is written in.
 *
 * Fixed-width types, strings, typed ids, dimensions and dtypes. Values of this file are frozen: they are
 * embedded in other structs and in arrays, so they never grow and carry no struct_size.
 * No C enum, bool, long or size_t crosses the boundary: enumerations are int32_t with #defines.
 *
 * Pointer marks in comments of this SDK: [session] [graph] [scratch] name the arena that owns the memory,
 * [borrow until X] its life otherwise; no mark means borrowed for the duration of the call. */
#ifndef AOT_BASE_H
#define AOT_BASE_H

#include <stdint.h>

/* Plain numbers: AOT_NOTE_HEAD (note.h) makes text of them. */
#define AOT_ABI_EPOCH 1        /* expected to stay 1 */
#define AOT_ABI_MINOR 6        /* counts appends */
#define AOT_ABI_OLDEST_MINOR 4 /* of plugins that hosts load: before it, types were smaller */
#define AOT_VERSION "0.1.0"

#define AOT_CALL
#if defined(_WIN32)
#define AOT_EXPORT __declspec(dllexport)
#else
#define AOT_EXPORT __attribute__((visibility("default")))
#endif

/* UTF-8 bytes, not terminated. */
typedef struct aot_str {
  const char *data;
  uint64_t size;
} aot_str_t;
#define AOT_STR_INIT(s)                                                                                                \
  { (s), sizeof(s) - 1 } /* of a string literal, as initialiser; aot_str() is the expression */

/* Typed 32-bit ids into the host's arrays: passed by value, returned through out_ parameters. */
typedef struct aot_graph {
  uint32_t id;
} aot_graph_t;
typedef struct aot_node {
  uint32_t id;
} aot_node_t;
typedef struct aot_value {
  uint32_t id;
} aot_value_t;
typedef struct aot_op {
  uint32_t id;
} aot_op_t;
typedef struct aot_leaf {
  uint32_t id;
} aot_leaf_t;
typedef struct aot_origin {
  uint32_t id;
} aot_origin_t;
typedef struct aot_encoding {
  uint32_t id;
} aot_encoding_t;
#define AOT_NO_ID 0u /* the id of nothing: row 0 of every array is empty, ids count from 1 */

typedef struct aot_prog aot_prog_t; /* the host's program, opaque */
typedef struct aot_ctx aot_ctx_t;   /* one call into a unit, opaque */

/* A dimension, stride, offset or integer argument: an int64_t. Values in [AOT_DIM_SYM, AOT_DIM_SYM + 2^32) are not
 * numbers but expression AOT_DIM_EXPR(d) of the program's shape environment. Every other value is itself (INT64_MAX,
 * PyTorch's open slice end, lies outside the window). */
#define AOT_DIM_SYM (INT64_C(1) << 62)
#define AOT_DIM_IS_SYM(d) ((d) >= AOT_DIM_SYM && (d) < AOT_DIM_SYM + (INT64_C(1) << 32))
#define AOT_DIM_EXPR(d) ((uint32_t)((d)-AOT_DIM_SYM))

/* dtype: X(constant, number, text, bytes per element) */
#define AOT_DTYPE_MAP(X)                                                                                               \
  X(AOT_U8, 1, "u8", 1)                                                                                                \
  X(AOT_I8, 2, "i8", 1)                                                                                                \
  X(AOT_I16, 3, "i16", 2)                                                                                              \
  X(AOT_I32, 4, "i32", 4)                                                                                              \
  X(AOT_I64, 5, "i64", 8)                                                                                              \
  X(AOT_F16, 6, "f16", 2)                                                                                              \
  X(AOT_F32, 7, "f32", 4)                                                                                              \
  X(AOT_F64, 8, "f64", 8)                                                                                              \
  X(AOT_C64, 10, "c64", 8)                                                                                             \
  X(AOT_C128, 11, "c128", 16)                                                                                          \
  X(AOT_BOOL, 12, "bool", 1)                                                                                           \
  X(AOT_BF16, 13, "bf16", 2)                                                                                           \
  X(AOT_U16, 28, "u16", 2)                                                                                             \
  X(AOT_U32, 34, "u32", 4)                                                                                             \
  X(AOT_U64, 35, "u64", 8)
#define AOT_U8 1
#define AOT_I8 2
#define AOT_I16 3
#define AOT_I32 4
#define AOT_I64 5
#define AOT_F16 6
#define AOT_F32 7
#define AOT_F64 8
#define AOT_C64 10
#define AOT_C128 11
#define AOT_BOOL 12
#define AOT_BF16 13
#define AOT_U16 28
#define AOT_U32 34
#define AOT_U64 35

#define AOT_DEVICE_CPU 1 /* what a tensor is on that says nothing */
#define AOT_DEVICE_CUDA 2
#define AOT_DEVICE_META 3

#define AOT_LAYOUT_STRIDED 7 /* the only layout of this minor */

#define AOT_MEMORY_CONTIGUOUS 1 /* memory formats, numbered as in PyTorch's archives */
#define AOT_MEMORY_CHANNELS_LAST 2
#define AOT_MEMORY_CHANNELS_LAST_3D 3
#define AOT_MEMORY_PRESERVE 4

/* What a value is. */
#define AOT_TYPE_NONE 0 /* an absent tensor: a gradient nobody has, an optional result */
#define AOT_TYPE_TENSOR 1
#define AOT_TYPE_SYMINT 2
#define AOT_TYPE_SYMFLOAT 3
#define AOT_TYPE_SYMBOOL 4
#define AOT_TYPE_TOKEN 5

#define AOT_TYPE_REQUIRES_GRAD 1u /* flag */

/* The type of a value. Strides and offset count elements. Types of another memory space or encoding are other types.
 * An encoding (aot/graph.h) says how the elements lie, or what stands for them, where sizes and strides do not: packed
 * tiles, shards, quantised numbers. The values are the same; the bytes mean nothing to who does not know the encoding.
 * Storage at the boundary is as large as dtype, sizes, strides and offset say, so that an encoding that needs more
 * room says so in strides. */
typedef struct aot_type {
  int32_t kind;  /* AOT_TYPE_* */
  int32_t dtype; /* tensors only */
  int32_t rank;  /* tensors only, 0..AOT_MAX_RANK */
  uint32_t flags;
  int32_t device;          /* AOT_DEVICE_*, tensors only */
  int32_t device_index;    /* counted from 1, 0: the model names none */
  uint32_t memory;         /* memory space of the device, as its maker counts them; 0: the one that it computes on */
  aot_encoding_t encoding; /* tensors only; AOT_NO_ID: none, the elements lie as sizes and strides say */
  int64_t offset;          /* of the first element in its storage */
  const int64_t *sizes;    /* rank dimensions; inputs borrowed for the call, outputs [graph] */
  const int64_t *strides;  /* rank strides; NULL on input means contiguous */
  int64_t expr;            /* SYMINT, SYMBOOL: the value as a dimension */
  uint64_t reserved[2];    /* 0 */
} aot_type_t;
#define AOT_MAX_RANK 16

/* One argument of a node, in schema order: an operand or an attribute. Lists have n elements. */
#define AOT_ARG_NONE 0
#define AOT_ARG_VALUE 1          /* u.i: value id */
#define AOT_ARG_VALUES 2         /* u.ids: value ids; AOT_NO_ID where an optional element is absent */
#define AOT_ARG_INT 3            /* u.i: a dimension (constant or symbolic), or a number in a Scalar or Tensor slot */
#define AOT_ARG_INTS 4           /* u.ints */
#define AOT_ARG_FLOAT 5          /* u.f */
#define AOT_ARG_FLOATS 6         /* u.floats */
#define AOT_ARG_BOOL 7           /* u.i: 0 or 1 */
#define AOT_ARG_BOOLS 8          /* u.ints: 0 or 1 each */
#define AOT_ARG_STR 9            /* u.chars, n bytes */
#define AOT_ARG_DTYPE 10         /* u.i: AOT_F32, .. */
#define AOT_ARG_LAYOUT 11        /* u.i */
#define AOT_ARG_DEVICE 12        /* u.i: AOT_DEVICE_* + 256 * device_index, which counts from 1 */
#define AOT_ARG_MEMORY_FORMAT 13 /* u.i */
#define AOT_ARG_GRAPH 14         /* u.i: graph id of a region */
#define AOT_ARG_OP 15            /* u.i: operator id */
typedef union aot_arg_payload {
  int64_t i;
  double f;
  const int64_t *ints;
  const double *floats;
  const uint32_t *ids;
  const char *chars;
} aot_arg_payload_t;
typedef struct aot_arg {
  int32_t kind; /* AOT_ARG_* */
  uint32_t n;   /* elements of a list, bytes of a string, else 0 */
  aot_arg_payload_t u;
} aot_arg_t;

/* A tensor in memory at a call boundary; the fields of a DLPack DLTensor in fixed-width types. */
typedef struct aot_tensor {
  void *data;      /* first byte of the storage; may be NULL when nbytes is 0 */
  uint64_t nbytes; /* of the storage */
  int32_t dtype;
  int32_t rank;
  int32_t device;          /* AOT_DEVICE_* */
  int32_t device_index;    /* as in aot_type_t */
  uint32_t memory;         /* as in aot_type_t */
  aot_encoding_t encoding; /* of the program that was compiled, as its port has it */
  int64_t offset;          /* elements */
  const int64_t *sizes;
  const int64_t *strides;
  uint64_t reserved[2]; /* 0 */
} aot_tensor_t;

/* The head of every table: a struct with functions begins with it, so that any of them is destroyed and asked in one
 * way. A function of a table gets the table first, then the context, then what it is about. It finds its own data
 * through `self` and by nothing else: the caller may hand a copy of the table. Frozen; struct_size is that of the
 * whole table. */
typedef struct aot_table {
  uint32_t struct_size, flags;
  void *self;                                         /* the callee's own */
  void(AOT_CALL *destroy)(const struct aot_table *t); /* [host-main] NULL: nothing is to be done */
  /* The extension of this id (aot/ext/), NULL: not offered. NULL: none is. [any-thread] */
  const void *(AOT_CALL *get_ext)(const struct aot_table *t, const char *id);
} aot_table_t;

/* Memory that the host owns, by lifetime. */
#define AOT_ARENA_SESSION 1u /* as long as the loaded plugin */
#define AOT_ARENA_GRAPH 2u   /* as long as the program */
#define AOT_ARENA_SCRATCH 3u /* as long as this call into the unit */

#endif
