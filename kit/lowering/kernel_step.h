/* A node that is run by its reference kernel (kit/reference), slow and correct, or by the kernel that a plugin has for
 * it (kit/custom), as a step. */
#ifndef LW_KERNEL_STEP_H
#define LW_KERNEL_STEP_H

#include "lower.h"

typedef struct lw_kernel_float { /* a number that is read when it runs */
  uint32_t arg;
  lw_ref_t at;
} lw_kernel_float_t;

typedef struct lw_kernel_step {
  const rk_kernel_t *kernel;
  const custom_node_t *custom; /* in place of the kernel */
  rk_arg_t *args;              /* the call's */
  rk_call_t call;
  rk_tensor_t **tensors; /* operands, then results: data is set when run */
  lw_ref_t *refs;        /* storages only */
  uint32_t n_tensors, n_operands;
  lw_kernel_float_t *floats;
  uint32_t n_floats;
  void *self; /* the target's own */
} lw_kernel_step_t;

/* Results are bound, and the step `run` is added with *out as its payload; the target may add to what it uses. */
aot_status_t lw_add_kernel_step(lw_build_t *b, lw_run_fn run, const rk_kernel_t *kernel, const custom_node_t *custom,
                                rk_arg_t *args, lw_kernel_step_t **out);
/* On the CPU; base: where storages lie, of those that the step uses. */
aot_status_t lw_run_kernel(const lw_kernel_step_t *p, char *const *base, lw_error_t *e);

#endif
