/* Whatever no lowering takes, of f16 or bf16 neither as floats, is run by a kernel where it is. */
#include "kit/lowering/kernel_step.h"
#include "kit/lowering/transaction.h"
#include "target.h"

static aot_status_t run_kernel(const lw_frame_t *f, void *payload) { return lw_run_kernel(payload, f->base, f->error); }

aot_status_t bc_lower_kernel(lw_build_t *b, const rk_kernel_t *kernel, const custom_node_t *custom, rk_arg_t *args) {
  lw_kernel_step_t *step;
  if (kernel && lw_op(b)->lower) {
    const aot_status_t status = bc_lower_in_float(b, lw_op(b)->lower);
    if (status != LW_DECLINED) return status;
  }
  if (kernel) {
    lw_transaction_t t;
    lw_begin(b, &t);
    const aot_status_t status = lw_end(b, &t, bc_lower_constant(b, kernel, args));
    if (status != LW_DECLINED) return status;
  }
  return lw_add_kernel_step(b, run_kernel, kernel, custom, args, &step);
}
