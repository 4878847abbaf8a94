/* The CPU as a target of lowering. */
#ifndef BC_TARGET_H
#define BC_TARGET_H

#include "kit/lowering/group_loop.h"
#include "workers.h"

extern const lw_target_t bc_cpu;

/* For schedules that never run: one stand-in for every generated function. Without a C compiler, or where one fails,
 * groups are run node by node, which takes more memory: `compiles` says which it is. */
lw_machine_t bc_planning_machine(int32_t n_threads, const custom_program_t *custom, int compiles);

extern const lw_lowering_table_t bc_lowerings_bags, bc_lowerings_resample, bc_lowerings_attention,
    bc_lowerings_embedding, bc_lowerings_conv, bc_lowerings_batch_norm, bc_lowerings_pool, bc_lowerings_scatter,
    bc_lowerings_order, bc_lowerings_sum;

/* lower_matmul.c */
aot_status_t bc_add_product(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                            const lw_tensor_t *c, double alpha, double beta);
/* lower_group.c */
aot_status_t bc_lower_loop_step(lw_build_t *b, lw_group_t *g);
aot_status_t bc_join_loops(lw_build_t *b, const lw_step_t *const *steps, uint32_t n, lw_step_t *out);
/* lower_loss.c */
aot_status_t bc_count_classes(lw_build_t *b, uint32_t k, int64_t n_classes, lw_tensor_t *out);
/* lower_reference.c */
aot_status_t bc_lower_kernel(lw_build_t *b, const rk_kernel_t *kernel, const custom_node_t *custom, rk_arg_t *args);

aot_status_t bc_lower_rows_added(lw_build_t *b); /* lower_scatter.c: the gradient of an embedding */
/* LW_DECLINED: it reads elements, or gives many. (lower_constant.c) */
aot_status_t bc_lower_constant(lw_build_t *b, const rk_kernel_t *kernel, const rk_arg_t *args);

/* ---- halves as floats (lower_half.c) ---- */
aot_status_t bc_widened(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out); /* a float copy in the arena */
/* both lie the same way, without holes */
aot_status_t bc_narrow_into(lw_build_t *b, const lw_tensor_t *full, const lw_tensor_t *half);
int bc_is_float(const lw_tensor_t *t); /* f32 or a half; NULL is none */
/* For kernels of contiguous floats: an operand; a result, which is the node's own or narrowed into it when the steps
 * that write it are there. A result that is not wanted has no storage. */
aot_status_t bc_dense_float(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out);
aot_status_t bc_float_result(lw_build_t *b, uint32_t k, lw_tensor_t *out);
aot_status_t bc_finish_result(lw_build_t *b, uint32_t k, const lw_tensor_t *out);
/* The node with floats in the place of its halves. LW_DECLINED: it has none, or `lower` declines; nothing has
 * changed. */
aot_status_t bc_lower_in_float(lw_build_t *b, lw_lower_fn lower);

#endif
