/* What reads nothing but its arguments' sizes (arange, tril_indices, new_ones) gives the same in every run: its
 * reference kernel runs once, when the schedule is made, and a step copies what it gave. Large ones are not stored. */
#include "target.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20 };

typedef struct constant_step {
  lw_ref_t to;
  uint64_t nbytes;
  const void *from;
} constant_step_t;

static aot_status_t run_constant(const lw_frame_t *f, void *payload) {
  const constant_step_t *p = payload;
  memcpy(f->base[p->to.storage], p->from, (size_t)p->nbytes);
  return AOT_OK;
}

aot_status_t bc_lower_constant(lw_build_t *b, const rk_kernel_t *kernel, const rk_arg_t *args) {
  constant_step_t *p;
  rk_error_t error;
  if (!rk_is_fill(kernel) || b->node->n_results != 1) return LW_DECLINED; /* an assertion has no result to look at */
  lw_tensor_t t = *lw_type(b, 0);
  if (!t.dtype) return LW_DECLINED;
  for (uint32_t k = 0; k < b->node->n_args;
       k++) { /* a number that is read out of a tensor, by the program or by linspace */
    const lw_value_t *v = lw_arg(b, k)->kind == AOT_ARG_VALUE ? lw_value(b, (uint32_t)lw_arg(b, k)->i) : NULL;
    if (v && (v->kind == AOT_TYPE_SYMFLOAT || (v->kind == AOT_TYPE_TENSOR && v->t.rank == 0))) return LW_DECLINED;
  }
  lw_result_geometry(&t);
  const uint64_t nbytes = lw_extent(&t);
  if (nbytes == 0 || nbytes > MOST_BYTES) return LW_DECLINED;
  rk_tensor_t result = lw_rk_tensor(b, &t);
  result.data = lw_pool_alloc(b->pool, nbytes);
  result.nbytes = nbytes;
  if (!result.data) return lw_no_memory(b->error, "for a constant");
  const rk_call_t call = {args, b->node->n_args, &result, 1};
  if (rk_run(kernel, &call, &error) != AOT_OK) return LW_DECLINED; /* a run reports what is wrong */
  AOT_TRY(lw_result(b, 0, &t));
  LW_STEP(b, run_constant, p);
  *p = (constant_step_t){.to = lw_use(b, &t), .nbytes = nbytes, .from = result.data};
  return AOT_OK;
}
