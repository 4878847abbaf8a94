/* Functional forms: a writing operator becomes its twin without the write, and the written tensors new values.
 *
 * Most rows name their twin, or derive from it. Its results are cast to the written tensors' dtypes where promotion
 * would change them (x.add_(1.5) on int64 is an error, x.mul_(y) with a float64 y on float32 is not), and represent the
 * operator's results as well. */
#include "at_formula.h"
#include "rewrites.h"

#include <aot/inline.h>
#include <string.h>

/* The place of the written operand in the node's arguments. */
static em_x_t written_arg(em_t *e) {
  uint32_t i;
  for (i = 0; i < e->desc->n_args && i < e->info.n_args; i++)
    if (e->desc->args[i].flags & AOT_SARG_WRITE) return e->info.args[i];
  return em_none();
}

static aot_status_t give(em_t *e, em_x_t value, aot_value_t *out_results, aot_value_t *out_written) {
  out_written[0] = em_value(e, value);
  if (e->desc->n_results) out_results[0] = out_written[0];
  return e->status;
}

#define MAX_ARGS 32

/* ---- the twin without the write ---- */

static const char *twin_of(const em_t *e) {
  return at_of(e)->row->of != NULL ? at_of(e)->row->of->name : at_of(e)->row->functional;
}

/* An argument of the twin that the written tensor answers, for an operator whose results are given: what a factory
 * makes, and the dtype that a reduction is computed in when none is requested. */
static em_x_t answered_by_out(em_t *e, aot_str_t name, em_x_t given) {
  em_x_t to = written_arg(e);
  aot_type_t out;
  if (given.kind != AOT_ARG_NONE || to.kind != AOT_ARG_VALUE) return given;
  out = at_type(e, to);
  if (aot_str_eq(name, aot_str("dtype"))) return em_dtype(out.dtype);
  if (!aot_str_eq(name, aot_str("device"))) return given;
  return em_device(out.device, out.device_index);
}

/* The arguments of the twin, all but the ones that results are given by. Those of a derived row are found by name. */
static uint32_t twin_args(em_t *e, em_x_t *args) {
  const uint32_t given = AOT_SARG_WRITE | AOT_SARG_KWONLY;
  const aot_op_desc_t *twin;
  uint32_t i, k, n = 0;
  if (at_of(e)->row->form != AT_OUT) {
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

/* A result as it is in the tensor that it is written to: its dtype and, unless the operator changes it or the
 * tensor is resized, its shape. */
static em_x_t stored(em_t *e, em_x_t value, em_x_t to) {
  aot_type_t before = at_type(e, to), after = at_type(e, value);
  if (e->status != AOT_OK || (e->desc->flags & AOT_OP_INPLACE_VIEW)) return value;
  if (dtype_kind(after.dtype) > dtype_kind(before.dtype))
    em_fail(e, AOT_E_UNIMPLEMENTED, "PyTorch refuses it, too", "%s cannot write a result of dtype %s to a tensor of %s",
            at_name(e), aot_dtype_name(after.dtype), aot_dtype_name(before.dtype));
  if (at_of(e)->row->form == AT_OUT && e->desc->n_results > 0 && at_is_resized(&before, &after))
    return em_cast(e, value, before.dtype);
  if (!at_may_have_shape(e, &after, before.sizes, before.rank)) {
    char text[2][100];
    em_fail(e, AOT_E_UNIMPLEMENTED,
            at_of(e)->row->form == AT_OUT
                ? "give a tensor of that shape; only one of no elements, and not in a list, is resized"
                : "",
            "%s writes a tensor of shape [%s] with a result of shape [%s]", at_name(e),
            at_dims_text(at_infer(e), before.sizes, before.rank, text[0], 100),
            at_dims_text(at_infer(e), after.sizes, after.rank, text[1], 100));
  }
  return em_cast(e, value, before.dtype);
}

/* A tensor whose elements are all replaced: y.copy_(x), x.lt_(y), x.normal_(). It stays a result of its past, which has
 * a gradient of zeros (PyTorch: zeros_like in derivatives.yaml); so the node of the new value reads the tensor, too. */
static em_x_t with_past(em_t *e, em_x_t value, em_x_t to) {
  const int32_t dtype = at_type(e, to).dtype;
  return at_is_integral(dtype) || (e->info.flags & AOT_NODE_NO_GRAD) ? value : EM(e, "copy", to, value);
}

/* Does the twin say nothing of gradients, where PyTorch knows one of the operator in place? out= has none. */
static int replaces_all(const em_t *e) {
  const aot_op_t twin = e->host->graph->op_find(e->prog, aot_str(twin_of(e)));
  const aot_op_desc_t *d = twin.id == AOT_NO_ID ? NULL : e->host->graph->op_desc(e->prog, twin);
  return at_of(e)->row->form != AT_OUT && d && (d->flags & AOT_OP_NO_GRAD) && !(e->desc->flags & AOT_OP_INPLACE_VIEW);
}

/* Every written tensor gets the twin's result of the same number; results are those. */
aot_status_t at_functional_twin(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t args[MAX_ARGS], value;
  uint32_t n = twin_args(e, args), i, k, n_written = 0;
  const int all = replaces_all(e);
  value = em_call(e, twin_of(e), n, args);
  for (i = 0; i < e->desc->n_args && i < e->info.n_args; i++) {
    const aot_schema_arg_t *s = &e->desc->args[i];
    if (!(s->flags & AOT_SARG_WRITE) || e->info.args[i].kind == AOT_ARG_NONE) continue;
    for (k = 0; k < ((s->flags & AOT_SARG_LIST) ? e->info.args[i].n : 1) && e->status == AOT_OK; k++) {
      em_x_t to = at_element(s, &e->info.args[i], k), after = stored(e, em_nth(value, n_written), to);
      if (all && !(s->flags & AOT_SARG_LIST)) after = with_past(e, after, to);
      out_written[n_written] = em_value(e, after);
      if (n_written < e->info.n_results) out_results[n_written] = out_written[n_written];
      n_written++;
      at_infer(e)->n_pool = 0;
    }
  }
  return e->status;
}

/* copy_: the source in self's dtype, device and shape */
aot_status_t at_fn_copy(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t self = em_in(e, "self"), src = em_in(e, "src");
  aot_type_t to = at_type(e, self), from = at_type(e, src);
  if (from.kind != AOT_TYPE_TENSOR) {
    src = EM(e, "fill.Scalar", self, src);
  } else {
    src = em_cast(e, src, to.dtype);
    if (from.device != to.device)
      src = EM(e, "_to_copy", src, em_none(), em_none(), em_device(to.device, to.device_index));
    src = with_past(e, at_expanded(e, src, to.sizes, to.rank), self);
  }
  return give(e, src, out_results, out_written);
}

aot_status_t at_fn_zero(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, EM(e, "fill.Scalar", em_in(e, "self"), em_i(0)), out_results, out_written);
}

aot_status_t at_fn_fill(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, EM(e, "fill.Scalar", em_in(e, "self"), em_in(e, "value")), out_results, out_written);
}

/* Its twin takes the order first. */
aot_status_t at_fn_polygamma(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  return give(e, EM(e, "polygamma", em_in(e, "n"), em_in(e, "self")), out_results, out_written);
}

/* Where all indices are equal; wrapped, a matrix of w columns has its diagonal again every w + 1 rows. */
aot_status_t at_fn_fill_diagonal(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t self = em_in(e, "self"), first, on = em_none();
  const aot_type_t t = at_type(e, self);
  int32_t d;
  first = at_along(e, at_range(e, t.sizes[0], self), 0, t.rank);
  if (t.rank == 2 && at_in_int(e, "wrap", 0))
    first = EM(e, "remainder.Tensor", first, em_i(at_add(at_infer(e), t.sizes[1], 1)));
  for (d = 1; d < t.rank; d++) {
    em_x_t here = EQ(first, at_along(e, at_range(e, t.sizes[d], self), d, t.rank));
    on = em_is_none(on) ? here : EM(e, "logical_and", on, here);
  }
  return give(e, EM(e, "masked_fill.Scalar", self, on, em_in(e, "fill_value")), out_results, out_written);
}

/* renorm of the rows that are named, once each however often they are. */
aot_status_t at_fn_embedding_renorm(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t self = em_in(e, "self"), indices = em_in(e, "indices"), named;
  const aot_type_t t = at_type(e, self), at = at_type(e, indices);
  const int64_t n = at_numel(at_infer(e), at.sizes, at.rank);
  named = at_filled(e, t.sizes, 1, em_f(0.0), AOT_F32, self);
  named = EM(e, "index_fill.int_Scalar", named, em_i(0), at_reshaped(e, indices, &n, 1), em_f(1.0));
  named = at_along(e, GT(named, em_f(0.0)), 0, t.rank);
  return give(e, WHERE(named, EM(e, "renorm", self, em_in(e, "norm_type"), em_i(0), em_in(e, "max_norm")), self),
              out_results, out_written);
}

/* Batch norm. In training the running statistics that are there are written; the functional form returns them. In
 * evaluation, and without statistics, nothing is written. Results of the rewritten operator: the normalized tensor, and
 * for the native forms the saved mean and 1 / standard deviation, for cuDNN's an empty tensor more. */
aot_status_t at_fn_batch_norm(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t input = em_in(e, "input"), weight = em_in(e, "weight"), bias = em_in(e, "bias");
  em_x_t mean = em_in(e, "running_mean"), var = em_in(e, "running_var");
  em_x_t momentum = em_in(e, "momentum"), eps = em_in(e, "eps"), y;
  static const int64_t none[1] = {0};
  int training = at_in_int(e, "training", 0) != 0;
  uint32_t i, n_written = 0;
  if (em_is_none(momentum)) momentum = em_in(e, "exponential_average_factor"); /* cuDNN's names */
  if (em_is_none(eps)) eps = em_in(e, "epsilon");
  if (training && em_is_none(mean) != em_is_none(var)) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "give both or none", "%s with only one of running_mean and running_var",
            at_name(e));
    return e->status;
  }
  if (!training && !em_is_none(mean)) {
    y = EM(e, "_native_batch_norm_legit_no_training", input, weight, bias, mean, var, momentum, eps);
  } else if (em_is_none(mean)) {
    y = EM(e, "_native_batch_norm_legit.no_stats", input, weight, bias, em_b(1), momentum, eps);
  } else {
    y = EM(e, "_native_batch_norm_legit_functional", input, weight, bias, mean, var, em_b(1), momentum, eps);
    out_written[n_written++] = em_value(e, em_nth(y, 3));
    out_written[n_written++] = em_value(e, em_nth(y, 4));
  }
  for (i = 0; i < e->info.n_results && i < 3; i++) out_results[i] = em_value(e, em_nth(y, i));
  if (e->info.n_results == 4) out_results[3] = em_value(e, at_filled(e, none, 1, em_i(0), AOT_U8, input));
  return e->status;
}

/* resize_: a window on the same memory. What a larger size would add is undefined in PyTorch, and refused here. */
aot_status_t at_fn_resize(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t self = em_in(e, "self");
  aot_type_t from = at_type(e, self), to = at_result_type(e, 0);
  int64_t had = at_numel(at_infer(e), from.sizes, from.rank), wants = at_numel(at_infer(e), to.sizes, to.rank);
  if (e->status == AOT_OK && at_below(at_infer(e), had, wants))
    em_fail(e, AOT_E_UNIMPLEMENTED, "create a tensor of that size",
            "%s from %lld to %lld elements: what a larger tensor adds is undefined", at_name(e),
            (long long)at_hint(at_infer(e), had), (long long)at_hint(at_infer(e), wants));
  return give(
      e, EM(e, "as_strided", self, em_list(e, to.sizes, (uint32_t)to.rank), em_list(e, to.strides, (uint32_t)to.rank)),
      out_results, out_written);
}
