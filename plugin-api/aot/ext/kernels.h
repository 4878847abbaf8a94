/* aot/ext/kernels.h - kernels of operators that the backends do not know themselves, on the CPU.
 *
 * "aot.kernels/1" is offered by an opset's table: plain functions, one an operator. The operators may be the opset's
 * own, or those of another opset, or declared in a pipeline (an opset may have kernels and no operators).
 * "aot.kernel-lookup/1" is offered by the host: backends ask it for the operators of a program. */
#ifndef AOT_EXT_KERNELS_H
#define AOT_EXT_KERNELS_H

#include <aot/base.h>
#include <aot/opset.h>
#include <aot/status.h>

#define AOT_EXT_KERNELS "aot.kernels/1"
#define AOT_EXT_KERNEL_LOOKUP "aot.kernel-lookup/1"

/* One argument of a call, in schema order, defaults filled in. Sizes are numbers here: symbols have been evaluated.
 * Frozen. */
typedef struct aot_kernel_arg {
  int32_t kind; /* AOT_ARG_*; VALUE: u.tensor; VALUES: u.tensors; NONE: absent */
  uint32_t n;   /* elements of a list, bytes of a string, else 0 */
  union {
    int64_t i;
    double f;
    const int64_t *ints;
    const double *floats;
    const char *chars;
    const aot_tensor_t *tensor;
    const aot_tensor_t *const *tensors; /* n of them, NULL where an optional element is absent */
  } u;
} aot_kernel_arg_t;

/* One call. Everything is borrowed for its duration. Tensors have the shapes and dtypes that the program says, and any
 * strides: a kernel goes by `sizes`, `strides` and `offset` (elements), or refuses. */
typedef struct aot_kernel_call {
  uint32_t struct_size, n_args;
  /* a written argument is to be written in place; no other argument shares its memory, unless the program passes one
   * tensor for several written arguments */
  const aot_kernel_arg_t *args;
  const aot_tensor_t *results; /* to be filled, allocated; those without alias mark, a Tensor[] one by one */
  uint32_t n_results;
  uint32_t message_size;
  char *message; /* what is wrong, terminated, when the answer is not AOT_OK; room for message_size bytes */
} aot_kernel_call_t;

/* head.flags */
/* Its results are there when a later kernel of the program has waited for them, and until then arguments are read.
 * Refused by backends whose kernels do not work, one after the other, on memory that stays where it is. */
#define AOT_KERNEL_STARTS 1u
/* Its result is its first argument: where the backend lets them be the same memory, the call has no results. */
#define AOT_KERNEL_PASSES 2u

typedef struct aot_kernel {
  aot_table_t head; /* flags: AOT_KERNEL_* */
  aot_str_t op;     /* full name: "mylib.add_one_out.default" */
  aot_status_t(AOT_CALL *run)(const struct aot_kernel *k, const aot_kernel_call_t *call); /* [any-thread] */
  /* Minor 6; with AOT_KERNEL_STARTS. A run has ended half-way: when this returns, nothing that the kernel has started
   * uses memory any more. */
  void(AOT_CALL *settle)(const struct aot_kernel *k);
} aot_kernel_t;

typedef struct aot_ext_kernels {
  uint32_t struct_size, flags;
  const aot_kernel_t *const *kernels; /* n_kernels [session] */
  uint64_t n_kernels;
} aot_ext_kernels_t;

typedef struct aot_ext_kernel_lookup {
  aot_table_t head;
  /* The operator of this full name, and its kernel; each NULL when there is none. Both [session]. O(kernels) [stage-
   * exclusive] */
  aot_status_t(AOT_CALL *find)(const struct aot_ext_kernel_lookup *x, aot_ctx_t *ctx, aot_str_t op,
                               const aot_op_desc_t **out_op, const aot_kernel_t **out_kernel);
} aot_ext_kernel_lookup_t;

#endif
