/* Functional forms: a writing operator becomes its twin without the write, and the written tensor a new value.
 *
 * Most rows name their twin, which takes the same arguments. The result is cast to the written tensor's dtype where promotion
 * would change it (x.add_(1.5) on int64 is an error in PyTorch, x.mul_(y) with a float64 y on float32 is not), and stands
 * for the operator's result as well. */
#include "at_formula.h"

#include <string.h>

/* The place of the written operand in the node's arguments. */
static at_x written_arg(at_emit_t *e) {
  uint32_t i;
  for (i = 0; i < e->desc->n_args && i < e->info.n_args; i++)
    if (e->desc->args[i].flags & AOT_SARG_WRITE) return e->info.args[i];
  return at_none();
}

static aot_status_t give(at_emit_t *e, at_x value, aot_value_t *out_results, aot_value_t *out_written) {
  out_written[0] = at_value(e, value);
  if (e->desc->n_results) out_results[0] = out_written[0];
  return e->status;
}

aot_status_t at_functional_twin(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x self = written_arg(e), value = at_call(e, e->row->functional, e->info.n_args, e->info.args);
  aot_type_t before = at_type(e, self), after;
  if (e->status != AOT_OK) return e->status;
  if (!(e->desc->flags & AOT_OP_INPLACE_VIEW)) {
    value = at_cast(e, value, before.dtype);
    after = at_type(e, value);
    if (!at_same_shape(e, &after, before.sizes, before.rank))
      at_emit_fail(e, "", "%s writes a tensor of rank %d with a result of another shape", e->row->name, (int)before.rank);
  }
  return give(e, value, out_results, out_written);
}

/* copy_: the source in self's dtype, device and shape */
aot_status_t at_fn_copy(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x self = at_in(e, "self"), src = at_in(e, "src");
  aot_type_t to = at_type(e, self), from = at_type(e, src);
  if (from.kind != AOT_TYPE_TENSOR) {
    src = AT(e, "full_like", self, src);
  } else {
    src = at_cast(e, src, to.dtype);
    if (from.device != to.device)
      src = AT(e, "_to_copy", src, at_none(), at_none(),
               aot_arg_int_kind(AOT_ARG_DEVICE, to.device + 256 * ((int64_t)to.device_index + 1)));
    src = at_expanded(e, src, to.sizes, to.rank);
  }
  return give(e, src, out_results, out_written);
}

aot_status_t at_fn_zero(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, AT(e, "zeros_like", at_in(e, "self")), out_results, out_written);
}

aot_status_t at_fn_fill(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, AT(e, "full_like", at_in(e, "self"), at_in(e, "value")), out_results, out_written);
}

/* Batch norm. In training the running statistics that are there are written; the functional form returns them. In
 * evaluation, and without statistics, nothing is written. Results of the rewritten operator: the normalized tensor, and for
 * the native forms the saved mean and 1 / standard deviation, for cuDNN's an empty tensor more. */
aot_status_t at_fn_batch_norm(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x input = at_in(e, "input"), weight = at_in(e, "weight"), bias = at_in(e, "bias");
  at_x mean = at_in(e, "running_mean"), var = at_in(e, "running_var");
  at_x momentum = at_in(e, "momentum"), eps = at_in(e, "eps"), y;
  static const int64_t none[1] = {0};
  int training = at_in_int(e, "training", 0) != 0;
  uint32_t i, n_written = 0;
  if (at_is_none(momentum)) momentum = at_in(e, "exponential_average_factor"); /* cuDNN's names */
  if (at_is_none(eps)) eps = at_in(e, "epsilon");
  if (training && at_is_none(mean) != at_is_none(var)) {
    at_emit_fail(e, "give both or none", "%s with only one of running_mean and running_var", e->row->name);
    return e->status;
  }
  if (!training && !at_is_none(mean)) {
    y = AT(e, "_native_batch_norm_legit_no_training", input, weight, bias, mean, var, momentum, eps);
  } else if (at_is_none(mean)) {
    y = AT(e, "_native_batch_norm_legit.no_stats", input, weight, bias, at_b(1), momentum, eps);
  } else {
    y = AT(e, "_native_batch_norm_legit_functional", input, weight, bias, mean, var, at_b(1), momentum, eps);
    out_written[n_written++] = at_value(e, at_nth(y, 3));
    out_written[n_written++] = at_value(e, at_nth(y, 4));
  }
  for (i = 0; i < e->info.n_results && i < 3; i++) out_results[i] = at_value(e, at_nth(y, i));
  if (e->info.n_results == 4) out_results[3] = at_value(e, at_filled(e, none, 1, at_i(0), AOT_U8, input));
  return e->status;
}

/* resize_: a window on the same memory. What a larger size would add is undefined in PyTorch, and refused here. */
aot_status_t at_fn_resize(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x self = at_in(e, "self");
  aot_type_t from = at_type(e, self), to = at_result_type(e, 0);
  int64_t had = at_numel(e->infer, from.sizes, from.rank), wants = at_numel(e->infer, to.sizes, to.rank);
  if (e->status == AOT_OK && at_hint(e->infer, wants) > at_hint(e->infer, had))
    at_emit_fail(e, "create a tensor of that size", "%s from %lld to %lld elements: what a larger tensor adds is undefined",
                 e->row->name, (long long)at_hint(e->infer, had), (long long)at_hint(e->infer, wants));
  return give(e, AT(e, "as_strided", self, at_list(e, to.sizes, (uint32_t)to.rank), at_list(e, to.strides, (uint32_t)to.rank)),
              out_results, out_written);
}
