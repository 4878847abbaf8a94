#include "prefer_decomposition.h"

#include <aot/graph.h>
#include <aot/inline.h>

static const aot_snap_arg_t *arg(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  return k < node->n_args ? AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin + k : NULL;
}

static int is_none(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  const aot_snap_arg_t *a = arg(s, node, k);
  return !a || a->kind == AOT_ARG_NONE;
}

static const aot_snap_value_t *tensor(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  const aot_snap_arg_t *a = arg(s, node, k);
  return a && a->kind == AOT_ARG_VALUE ? AOT_SNAP_ROWS(s, aot_snap_value_t, values) + a->i : NULL;
}

/* Rows know the number that is added to their mean square, not that of the dtype. */
static int has_own_eps(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  return is_none(s, node, k + 3);
}

/* Rows are of matrices, with a class each, all of the same weight, and reduced: (self, target, weight, reduction, ..,
 * label_smoothing). */
static int is_no_row(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  const aot_snap_value_t *x = tensor(s, node, k), *target = tensor(s, node, k + 1);
  const aot_snap_arg_t *reduction = arg(s, node, k + 3), *smoothing = arg(s, node, k + 5);
  const int is_plain = (!smoothing || smoothing->kind == AOT_ARG_NONE || smoothing->i == 0) &&
                       is_none(s, node, k + 2) && !(reduction && reduction->kind == AOT_ARG_INT && reduction->i == 0);
  return x && target && (!is_plain || x->rank != 2 || target->dtype != AOT_I64);
}

/* Rows give every class the weight 1. */
static int is_weighted(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  return !is_none(s, node, k);
}

/* Batch norm by the running statistics is pointwise. */
static int is_evaluation(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k) {
  const aot_snap_arg_t *training = arg(s, node, k);
  return training && training->kind == AOT_ARG_BOOL && !training->i;
}

static const struct row {
  const char *op;
  uint32_t at; /* where the arguments that `when` looks at begin */
  int (*when)(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t at); /* NULL: in every form */
} rows[] = {
    {"aten.binary_cross_entropy_with_logits.default", 0, NULL},
    {"aten.conv_transpose1d.default", 0, NULL},
    {"aten.conv_transpose2d.input", 0, NULL},
    {"aten.repeat_interleave.self_int", 0, NULL},
    {"aten.rms_norm.default", 0, has_own_eps},
    {"aot.rms_norm_backward.default", 1, has_own_eps},
    {"aten.cross_entropy_loss.default", 0, is_no_row},
    {"aot.cross_entropy_loss_backward.default", 1, is_no_row},
    {"aten.nll_loss_forward.default", 2, is_weighted},
    {"aten.nll_loss_backward.default", 0, NULL},
    {"aten.nll_loss2d_forward.default", 0, NULL},
    {"aten.nll_loss2d_backward.default", 0, NULL},
    {"aten._native_batch_norm_legit_no_training.default", 0, NULL},
    {"aten._native_batch_norm_legit_functional.default", 5, is_evaluation},
    {"aten.native_batch_norm_backward.default", 7, is_evaluation},
};

int bc_is_written_out(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  const aot_str_t op = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (aot_str_eq(aot_str(rows[i].op), op)) return !rows[i].when || rows[i].when(s, node, rows[i].at);
  return 0;
}
