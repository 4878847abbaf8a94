/* Nodes that no lowering has used: a view becomes a tensor over the same storage, and no step; the others go to the
 * target, with their arguments. */
#include "transaction.h"

#include <aot/assert.h>
#include <string.h>

static aot_str_t op_name(const lw_build_t *b) {
  return aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
}

/* The first operand laid out as its type says, for operators that read strides: a copy if it lies otherwise. */
static aot_status_t declare_first(lw_build_t *b) {
  const aot_snap_arg_t *a = lw_arg(b, 0);
  if (a->kind != AOT_ARG_VALUE) return AOT_OK;
  const aot_snap_value_t *row = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values) + a->i;
  lw_value_t *v = lw_value(b, (uint32_t)a->i);
  lw_tensor_t declared = v->t, actual = v->t;
  AOT_ASSERT(row->rank == v->t.rank);
  for (int32_t d = 0; d < row->rank; d++) declared.strides[d] = lw_declared_stride(b, (uint32_t)a->i, d);
  declared.offset = sn_offset(row->offset, b->exprs);
  if (lw_same_geometry(&declared, &actual)) return AOT_OK;
  AOT_TRY(lw_new_tensor(b, &declared));
  AOT_TRY(lw_copy(b, &declared, &actual));
  lw_set_value(b, v, &declared);
  return AOT_OK;
}

/* ---- views ---- */

static const rk_tensor_t *base_of(const rk_arg_t *args, uint32_t n) {
  if (n && args[0].kind == AOT_ARG_VALUE) return args[0].u.tensor;
  return NULL;
}

/* No strides can express the view: the elements in order, in memory of their own, in the result's shape. */
static aot_status_t copy_reshaped(lw_build_t *b) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0);
  lw_tensor_t result, source, shaped;
  if (!self || b->node->n_results != 1 || lw_type(b, 0)->dtype != self->dtype ||
      lw_numel(self) != lw_numel(lw_type(b, 0)))
    return LW_DECLINED;
  source = *self;
  AOT_TRY(lw_result_dense(b, 0, &result));
  shaped = source;
  lw_make_contiguous(&shaped);
  shaped.storage = result.storage;
  return lw_copy(b, &shaped, &source);
}

int lw_see(lw_build_t *b, const lw_tensor_t *operand, lw_tensor_t *out) {
  lw_value_t *v = lw_value(b, lw_arg_row(b, 0));
  AOT_ASSERT(lw_op(b)->kernel && rk_is_view(lw_op(b)->kernel));
  const lw_tensor_t declared = v->t;
  rk_tensor_t view = {0};
  rk_error_t error;
  rk_arg_t *args;
  v->t = *operand;
  const aot_status_t status = lw_rk_args(b, &args);
  v->t = declared;
  const rk_call_t call = {args, b->node->n_args, &view, 1};
  if (status != AOT_OK || rk_view(lw_op(b)->kernel, &call, &error) != AOT_OK) return 0;
  *out = (lw_tensor_t){.dtype = view.dtype, .rank = view.rank, .storage = operand->storage, .offset = view.offset};
  memcpy(out->sizes, view.sizes, sizeof out->sizes);
  memcpy(out->strides, view.strides, sizeof out->strides);
  return 1;
}

int lw_is_plain_view(const lw_build_t *b) {
  const rk_kernel_t *kernel = lw_op(b)->kernel;
  const lw_tensor_t *of = lw_arg_tensor(b, 0);
  return !lw_op(b)->lower && kernel && rk_is_view(kernel) && !rk_needs_storage(kernel) && b->node->n_results == 1 &&
         of && of->dtype == lw_type(b, 0)->dtype && lw_numel(of) == lw_numel(lw_type(b, 0));
}

static aot_status_t lower_view(lw_build_t *b, const rk_kernel_t *kernel, rk_arg_t *args) {
  uint32_t n = b->node->n_results;
  rk_tensor_t *views = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *views);
  rk_call_t call = {args, b->node->n_args, views, n};
  rk_error_t error;
  const lw_tensor_t *self = lw_arg_tensor(b, 0);
  if (!views) return lw_no_memory(b->error, "for a node's arguments");
  if (!self || !base_of(args, b->node->n_args)) return LW_DECLINED;
  aot_status_t status = rk_view(kernel, &call, &error);
  if (status == AOT_E_UNIMPLEMENTED) return copy_reshaped(b);
  if (status != AOT_OK) return lw_fail(b->error, status, "bad-view", "%s", error.text);
  uint32_t storage = self->storage;
  for (uint32_t r = 0; r < n; r++) {
    lw_tensor_t t;
    memset(&t, 0, sizeof t);
    t.dtype = views[r].dtype;
    t.rank = views[r].rank;
    t.storage = storage;
    t.offset = views[r].offset;
    memcpy(t.sizes, views[r].sizes, sizeof t.sizes);
    memcpy(t.strides, views[r].strides, sizeof t.strides);
    if (!t.dtype || !lw_type(b, r)->dtype) continue;
    if (t.dtype != lw_type(b, r)->dtype || !lw_same_sizes(&t, lw_type(b, r)))
      return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "result %u of a view does not have its declared type", r);
    lw_bind(b, r, &t);
  }
  return AOT_OK;
}

aot_status_t lw_lower_rest(lw_build_t *b) {
  const rk_kernel_t *kernel = lw_op(b)->kernel;
  aot_str_t name = op_name(b);
  rk_arg_t *args;
  if (!kernel)
    return lw_fail(b->error, AOT_E_UNIMPLEMENTED, "no-kernel", "%.*s is not supported in this form", (int)name.size,
                   name.data);
  if (rk_needs_storage(kernel)) AOT_TRY(declare_first(b));
  AOT_TRY(lw_rk_args(b, &args));
  const char *refusal = rk_refuse(kernel, args, b->node->n_args);
  if (refusal) return lw_fail(b->error, AOT_E_UNIMPLEMENTED, "refused", "%.*s: %s", (int)name.size, name.data, refusal);
  if (rk_is_view(kernel)) {
    lw_transaction_t t;
    lw_begin(b, &t);
    const aot_status_t status = lw_end(b, &t, lower_view(b, kernel, args));
    if (status != LW_DECLINED) return status;
  }
  return b->machine->target->kernel(b, kernel, NULL, args);
}

aot_status_t lw_lower_custom(lw_build_t *b, const custom_node_t *custom) {
  rk_arg_t *args;
  AOT_TRY(lw_rk_args(b, &args));
  return b->machine->target->kernel(b, NULL, custom, args);
}
