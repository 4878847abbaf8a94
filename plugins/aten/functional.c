/* Functional forms: a writing operator becomes its twin without the write, and the written tensors new values.
 *
 * Most rows name their twin, or derive from it. Its results are cast to the written tensors' dtypes where promotion would
 * change them (x.add_(1.5) on int64 is an error, x.mul_(y) with a float64 y on float32 is not), and stand for the operator's
 * results as well. */
#include "at_formula.h"
#include "rewrites.h"

#include <aot/inline.h>
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

#define MAX_ARGS 32

/* ---- the twin without the write ---- */

static const char *twin_of(const at_emit_t *e) { return e->row->of != NULL ? e->row->of->name : e->row->functional; }

/* An argument of the twin that the written tensor answers, for an operator whose results are given: what a factory makes,
 * and the dtype that a reduction is computed in when none is asked for. */
static at_x answered_by_out(at_emit_t *e, aot_str_t name, at_x given) {
  at_x to = written_arg(e);
  aot_type_t out;
  if (given.kind != AOT_ARG_NONE || to.kind != AOT_ARG_VALUE) return given;
  out = at_type(e, to);
  if (aot_str_eq(name, aot_str("dtype"))) return at_dtype_of(out.dtype);
  if (!aot_str_eq(name, aot_str("device"))) return given;
  return aot_arg_int_kind(AOT_ARG_DEVICE, out.device + 256 * ((int64_t)out.device_index + 1));
}

/* The arguments of the twin, all but the ones that results are given by. Those of a derived row are found by name. */
static uint32_t twin_args(at_emit_t *e, at_x *args) {
  const uint32_t given = AOT_SARG_WRITE | AOT_SARG_KWONLY;
  const aot_op_desc_t *twin;
  uint32_t i, k, n = 0;
  if (e->row->form != AT_OUT) {
    for (i = 0; i < e->info.n_args && n < MAX_ARGS; i++)
      if ((e->desc->args[i].flags & given) != given) args[n++] = e->info.args[i];
    return n;
  }
  twin = e->host->graph->op_desc(e->prog, e->host->graph->op_find(e->prog, aot_str(twin_of(e))));
  for (i = 0; twin != NULL && i < twin->n_args && i < MAX_ARGS; i++) {
    args[i] = twin->args[i].preset;
    for (k = 0; k < e->desc->n_args; k++)
      if (aot_str_eq(e->desc->args[k].name, twin->args[i].name))
        args[i] = k < e->info.n_args ? e->info.args[k] : e->desc->args[k].preset;
    args[i] = answered_by_out(e, twin->args[i].name, args[i]);
  }
  return i;
}

/* 0: bool, 1: integer, 2: floating, 3: complex */
static int dtype_kind(int32_t dtype) {
  if (aot_dtype_is_complex(dtype)) return 3;
  if (!at_is_integral(dtype)) return 2;
  return dtype != AOT_BOOL;
}

/* A result as it stands in the tensor that it is written to: its dtype and, unless the operator changes it, its shape. */
static at_x stored(at_emit_t *e, at_x value, at_x to) {
  aot_type_t before = at_type(e, to), after = at_type(e, value);
  if (e->status != AOT_OK || (e->desc->flags & AOT_OP_INPLACE_VIEW)) return value;
  if (dtype_kind(after.dtype) > dtype_kind(before.dtype))
    at_emit_fail(e, "PyTorch refuses it, too", "%s cannot write a result of dtype %s to a tensor of %s", e->row->name,
                 aot_dtype_name(after.dtype), aot_dtype_name(before.dtype));
  if (!at_same_shape(e, &after, before.sizes, before.rank)) {
    char text[2][100];
    at_emit_fail(e, e->row->form == AT_OUT ? "give a tensor of that shape; resizing one is not supported" : "",
                 "%s writes a tensor of shape [%s] with a result of shape [%s]", e->row->name,
                 at_dims_text(e->infer, before.sizes, before.rank, text[0], 100),
                 at_dims_text(e->infer, after.sizes, after.rank, text[1], 100));
  }
  return at_cast(e, value, before.dtype);
}

/* A tensor whose elements are all replaced: y.copy_(x), x.lt_(y), x.normal_(). It stays a result of its past, which has a gradient of
 * zeros (PyTorch: zeros_like in derivatives.yaml); so the node of the new value reads the tensor, too. */
static at_x with_past(at_emit_t *e, at_x value, at_x to) {
  const int32_t dtype = at_type(e, to).dtype;
  return at_is_integral(dtype) || (e->info.flags & AOT_NODE_NO_GRAD) ? value : AT(e, "copy", to, value);
}

/* Does the twin say nothing of gradients, where PyTorch knows one of the operator in place? out= has none. */
static int replaces_all(const at_emit_t *e) {
  const aot_op_t twin = e->host->graph->op_find(e->prog, aot_str(twin_of(e)));
  const aot_op_desc_t *d = twin.id == AOT_NO_ID ? NULL : e->host->graph->op_desc(e->prog, twin);
  return e->row->form != AT_OUT && d && (d->flags & AOT_OP_NO_GRAD) && !(e->desc->flags & AOT_OP_INPLACE_VIEW);
}

/* Every written tensor gets the twin's result of the same number; results are those. */
aot_status_t at_functional_twin(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x args[MAX_ARGS], value;
  uint32_t n = twin_args(e, args), i, k, n_written = 0;
  const int all = replaces_all(e);
  value = at_call(e, twin_of(e), n, args);
  for (i = 0; i < e->desc->n_args && i < e->info.n_args; i++) {
    const aot_schema_arg_t *s = &e->desc->args[i];
    if (!(s->flags & AOT_SARG_WRITE) || e->info.args[i].kind == AOT_ARG_NONE) continue;
    for (k = 0; k < ((s->flags & AOT_SARG_LIST) ? e->info.args[i].n : 1) && e->status == AOT_OK; k++) {
      at_x to = at_element(s, &e->info.args[i], k), after = stored(e, at_nth(value, n_written), to);
      if (all && !(s->flags & AOT_SARG_LIST)) after = with_past(e, after, to);
      out_written[n_written] = at_value(e, after);
      if (n_written < e->info.n_results) out_results[n_written] = out_written[n_written];
      n_written++;
      e->infer->n_pool = 0;
    }
  }
  return e->status;
}

/* copy_: the source in self's dtype, device and shape */
aot_status_t at_fn_copy(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x self = at_in(e, "self"), src = at_in(e, "src");
  aot_type_t to = at_type(e, self), from = at_type(e, src);
  if (from.kind != AOT_TYPE_TENSOR) {
    src = AT(e, "fill.Scalar", self, src);
  } else {
    src = at_cast(e, src, to.dtype);
    if (from.device != to.device)
      src = AT(e, "_to_copy", src, at_none(), at_none(),
               aot_arg_int_kind(AOT_ARG_DEVICE, to.device + 256 * ((int64_t)to.device_index + 1)));
    src = with_past(e, at_expanded(e, src, to.sizes, to.rank), self);
  }
  return give(e, src, out_results, out_written);
}

aot_status_t at_fn_zero(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, AT(e, "fill.Scalar", at_in(e, "self"), at_i(0)), out_results, out_written);
}

aot_status_t at_fn_fill(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, AT(e, "fill.Scalar", at_in(e, "self"), at_in(e, "value")), out_results, out_written);
}

/* Where all indices are equal; wrapped, a matrix of w columns has its diagonal again every w + 1 rows. */
aot_status_t at_fn_fill_diagonal(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x self = at_in(e, "self"), first, on = at_none();
  const aot_type_t t = at_type(e, self);
  int32_t d;
  first = at_along(e, at_range(e, t.sizes[0], self), 0, t.rank);
  if (t.rank == 2 && at_in_int(e, "wrap", 0)) first = AT(e, "remainder.Tensor", first, at_i(at_add(e->infer, t.sizes[1], 1)));
  for (d = 1; d < t.rank; d++) {
    at_x here = EQ(first, at_along(e, at_range(e, t.sizes[d], self), d, t.rank));
    on = at_is_none(on) ? here : AT(e, "logical_and", on, here);
  }
  return give(e, AT(e, "masked_fill.Scalar", self, on, at_in(e, "fill_value")), out_results, out_written);
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
