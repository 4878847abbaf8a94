/* aot/opset.h - unit kind opset/1: the only place where the host learns operators.
 *
 * An opset hands over its operators as parsed schemas with alias marks and flags, infers result types, and rewrites its
 * own operators on request: into simpler ones, into functional form, or the inverse of a view. Passes decide by the
 * marks and flags, never by lists of names. Schema grammar: PyTorch's native_functions.yaml. */
#ifndef AOT_OPSET_H
#define AOT_OPSET_H

#include <aot/base.h>
#include <aot/status.h>

/* Type of a schema argument or result. */
#define AOT_STYPE_TENSOR 1
#define AOT_STYPE_SCALAR 2 /* int, float or bool: the kind of the argument tells */
#define AOT_STYPE_INT 3    /* int and SymInt */
#define AOT_STYPE_FLOAT 4
#define AOT_STYPE_BOOL 5
#define AOT_STYPE_STR 6
#define AOT_STYPE_DTYPE 7
#define AOT_STYPE_LAYOUT 8
#define AOT_STYPE_DEVICE 9
#define AOT_STYPE_MEMORY_FORMAT 10
#define AOT_STYPE_GENERATOR 11
#define AOT_STYPE_GRAPH 12 /* regions of higher-order operators */
#define AOT_STYPE_ANY 13   /* variadic tail of higher-order operators */
#define AOT_STYPE_OP 14

#define AOT_SARG_OPTIONAL 1u      /* T? */
#define AOT_SARG_LIST 2u          /* T[] */
#define AOT_SARG_OPTIONAL_ELEM 4u /* T?[] */
#define AOT_SARG_KWONLY 8u
#define AOT_SARG_HAS_DEFAULT 16u
#define AOT_SARG_WRITE 32u    /* (a!) */
#define AOT_SARG_VARIADIC 64u /* takes all remaining arguments */

#define AOT_ALIAS_ANY 255

/* One argument or result of a schema. Frozen. */
typedef struct aot_schema_arg {
  aot_str_t name;    /* empty for an unnamed result */
  int32_t type;      /* AOT_STYPE_* */
  uint32_t flags;    /* AOT_SARG_* */
  int32_t alias_set; /* 0: none; 1, 2, ..: the marks (a), (b), ..; AOT_ALIAS_ANY: (*), any of them */
  int32_t list_size; /* int[2]: 2; else 0 */
  /* WRITE happens only when this bool argument, counted from 1, is true (batch_norm's training); 0: always */
  int32_t write_if;
  int32_t reserved;
  aot_arg_t preset; /* the default, with HAS_DEFAULT */
} aot_schema_arg_t;

#define AOT_OP_VIEW 1u   /* some result aliases an argument that it does not write */
#define AOT_OP_WRITES 2u /* some argument is written */
#define AOT_OP_RANDOM 4u /* draws random numbers */
#define AOT_OP_EFFECT 8u /* order matters: print, assert, collectives' waits */
#define AOT_OP_COLLECTIVE 16u
#define AOT_OP_POINTWISE 32u /* each output element depends on one element of each input, broadcast */
#define AOT_OP_REDUCTION 64u
#define AOT_OP_CREATION 128u      /* no tensor inputs; cheap to make again */
#define AOT_OP_COMPOSITE 256u     /* made of others by PyTorch's definition; decompose() knows how */
#define AOT_OP_HEAVY 512u         /* compute-intensive: matrix products, convolutions, attention */
#define AOT_OP_NO_GRAD 1024u      /* results carry no gradient whatever goes in (comparisons, arange, detach) */
#define AOT_OP_MOVEMENT 2048u     /* copies elements about: cat, repeat, clone, gather, casts */
#define AOT_OP_INPLACE_VIEW 4096u /* changes shape or strides of its argument: t_, unsqueeze_ */
#define AOT_OP_REGION 8192u       /* owns sub-graphs */
#define AOT_OP_MULTI_VIEW 16384u  /* several views of one base: split, unbind */
/* About the whole storage of its first argument: a number as second argument is its new size in bytes; a tensor is
 * copied there, or, with INPLACE_VIEW, is what the first argument becomes (set_). */
#define AOT_OP_STORAGE 65536u
/* A view whose elements are computed from its argument's, and back when it is written: conj, of complex numbers; where
 * it is POINTWISE too, of all. Handed out of a program, it has memory of its own. */
#define AOT_OP_COMPUTED 262144u
/* a result that shares its argument's memory, and lies as it does, is that tensor: to, contiguous */
#define AOT_OP_MAYBE_SELF 32768u
/* Its first argument again, with memory of its own, in the memory order that its second one asks for (clone). */
#define AOT_OP_COPY 524288u
#define AOT_OP_SELF_AT_RANK_0 1048576u /* of a real tensor of rank 0 the result is that tensor, otherwise a view: mT */
#define AOT_OP_LOOP 131072u            /* runs its sub-graphs any number of times, handing on results */
/* A convolution: its first argument are images [N, C, ..], its second the weights. It is faster where they lie channels
 * last, and inferred to make what lies so where one of them does. */
#define AOT_OP_CONVOLUTION 2097152u
/* What it answers, or whether it does, depends on how its argument lies in memory: view, as_strided, stride. */
#define AOT_OP_AS_IT_LIES 4194304u

/* What autocast (mixed precision, as PyTorch has it) does to an operator's operands of float32, float16 and bfloat16.
 * 0: nothing, the operator runs in what it is given. */
#define AOT_AUTOCAST_LOWER 1        /* they are cast to the low precision */
#define AOT_AUTOCAST_F32 2          /* to float32, unless the call says in a dtype argument what it computes in */
#define AOT_AUTOCAST_WIDEST 3       /* to float32 if one of them is that, otherwise to the low precision */
#define AOT_AUTOCAST_BANNED 4       /* the operator is refused: its numbers do not fit into the low precision's range */
#define AOT_AUTOCAST_PARTS 5        /* a composite: autocast acts on what it decomposes into */
#define AOT_AUTOCAST_F32_AND_BACK 6 /* as F32, and the results are cast to what the first operand was */

/* One operator. Constant for the session. */
typedef struct aot_op_desc {
  uint32_t struct_size;
  uint32_t flags;   /* AOT_OP_* */
  aot_str_t name;   /* full: "aten.add.Tensor", "aten.linear.default" */
  aot_str_t schema; /* "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
  aot_str_t group;  /* "pointwise", "norm", .. */
  aot_str_t doc;    /* one line */
  const aot_schema_arg_t *args;
  const aot_schema_arg_t *results;
  uint32_t n_args, n_results; /* a Tensor[] result stands for as many node results as the node has */
  uint8_t autocast[8];        /* AOT_AUTOCAST_*, by AOT_DEVICE_*: the lists of devices differ */
} aot_op_desc_t;

/* Where infer() puts the result types, in order. */
typedef struct aot_type_sink {
  aot_table_t head;
  aot_status_t(AOT_CALL *put)(const struct aot_type_sink *sink, const aot_type_t *type); /* [stage-exclusive] copies */
} aot_type_sink_t;

/* One call as the model was traced. */
typedef struct aot_call {
  uint32_t struct_size, n_args;
  const aot_arg_t *args;
  /* types of the tensors among args, in order, list elements one by one; kind NONE: an absent one */
  const aot_type_t *operands;
  const aot_type_t *results;
  uint32_t n_operands, n_results;
} aot_call_t;

typedef struct aot_opset {
  aot_table_t head;
  const aot_op_desc_t *const *ops; /* n_ops descriptors [session] */
  uint64_t n_ops;
  /* Result types of op applied to args. Types of operands are read through the host's graph table. Wrong arguments: a
   * diagnostic and AOT_E_INVALID. No rule for op: AOT_E_UNIMPLEMENTED without diagnostic; its types are then given, by
   * the model file or by who makes the node. NULL: no rules. `local` is the index of op in ops. [stage-exclusive] */
  aot_status_t(AOT_CALL *infer)(const struct aot_opset *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                const aot_arg_t *args, uint32_t n_args, const aot_type_sink_t *sink);
  /* Put equivalent simpler nodes before `node`; out_values[i] replaces its i-th result. `node` itself is left alone.
   * AOT_E_UNIMPLEMENTED without diagnostic: there is no decomposition. [stage-exclusive] */
  aot_status_t(AOT_CALL *decompose)(const struct aot_opset *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                    aot_node_t node, aot_value_t *out_values);
  /* Put the functional form of a writing node before it, reading the same operands. out_results[i] replaces its i-th
   * result; out_written[k] is the new value of the tensor at the k-th written operand (operands counted in argument
   * order, list elements one by one, those whose write_if is false left out). AOT_E_UNIMPLEMENTED without diagnostic,
   * or NULL: there is none; the operator then runs on copies of what it writes (aot.auto_functionalized).
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *functional_form)(const struct aot_opset *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                          aot_node_t node, aot_value_t *out_results, aot_value_t *out_written);
  /* The base after `updated` has been written over result `index` of the view node `view`, whose base operand held
   * `base`: select -> select_scatter, transpose -> transpose, .. New nodes go before `before`. [stage-exclusive] */
  aot_status_t(AOT_CALL *view_inverse)(const struct aot_opset *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                       aot_node_t view, uint32_t index, aot_value_t base, aot_value_t updated,
                                       aot_node_t before, aot_value_t *out_base);
  /* Appended by minor 2. Whose memory the results of one call share. out_operands[i] is the operand that result i is,
   * or is a view of, counted from 1; 0: it has memory of its own. They hold what the schema's marks say; the opset
   * changes those that are otherwise in this call: reshape that has to copy, dropout that has nothing to drop. NULL:
   * the marks say all. [stage-exclusive] */
  aot_status_t(AOT_CALL *aliases)(const struct aot_opset *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                  const aot_call_t *call, uint32_t *out_operands);
} aot_opset_t;

#endif
