#include "opt_emit.h"

#include <aot/inline.h>
#include <stdio.h>

void opt_fail(opt_emit_t *e, aot_status_t status, const char *code, const char *message, const char *hint, opt_v at) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR, .code = aot_str(code), .message = aot_str(message),
                  .hint = aot_str(hint), .node = aot_no_node(), .value = at};
  if (e->status != AOT_OK) return;
  e->host->diag(e->ctx, &d);
  e->status = status;
}

static opt_v make(opt_emit_t *e, const char *name, const aot_arg_t *args, uint32_t n) {
  aot_node_spec_t spec = {.struct_size = sizeof spec, .n_args = n, .args = args, .origin = aot_no_origin()};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t node;
  if (e->status != AOT_OK) return aot_no_value();
  spec.op = e->host->graph->op_find(e->prog, aot_str(name));
  if (spec.op.id == AOT_NO_ID) {
    char text[120];
    snprintf(text, sizeof text, "the update needs operator %s, which no opset offers", name);
    opt_fail(e, AOT_E_PRECONDITION, "optimizer.operator", text, "add the opset aten to the pipeline", aot_no_value());
    return aot_no_value();
  }
  e->status = e->host->edit->node_create(e->prog, e->graph, &spec, aot_no_node(), &node);
  if (e->status == AOT_OK) e->status = e->host->graph->node_info(e->prog, node, &info);
  return e->status == AOT_OK ? info.first_result : aot_no_value();
}

static opt_v unary(opt_emit_t *e, const char *name, opt_v a) {
  aot_arg_t args[] = {aot_arg_value(a)};
  return make(e, name, args, 1);
}
static opt_v binary(opt_emit_t *e, const char *name, opt_v a, opt_v b) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_value(b)};
  return make(e, name, args, 2);
}
static opt_v with_number(opt_emit_t *e, const char *name, opt_v a, double number) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_float(number)};
  return make(e, name, args, 2);
}

opt_v opt_add(opt_emit_t *e, opt_v a, opt_v b) { return binary(e, "aten.add.Tensor", a, b); }
opt_v opt_mul(opt_emit_t *e, opt_v a, opt_v b) { return binary(e, "aten.mul.Tensor", a, b); }
opt_v opt_div(opt_emit_t *e, opt_v a, opt_v b) { return binary(e, "aten.div.Tensor", a, b); }
opt_v opt_max(opt_emit_t *e, opt_v a, opt_v b) { return binary(e, "aten.maximum.default", a, b); }
opt_v opt_neg(opt_emit_t *e, opt_v a) { return unary(e, "aten.neg.default", a); }
opt_v opt_sqrt(opt_emit_t *e, opt_v a) { return unary(e, "aten.sqrt.default", a); }
opt_v opt_as_real(opt_emit_t *e, opt_v a) { return unary(e, "aten.view_as_real.default", a); }
opt_v opt_as_complex(opt_emit_t *e, opt_v a) { return unary(e, "aten.view_as_complex.default", a); }
opt_v opt_add_number(opt_emit_t *e, opt_v a, double number) { return with_number(e, "aten.add.Scalar", a, number); }
opt_v opt_mul_number(opt_emit_t *e, opt_v a, double number) { return with_number(e, "aten.mul.Scalar", a, number); }
opt_v opt_number_minus(opt_emit_t *e, double number, opt_v a) { return with_number(e, "aten.rsub.Scalar", a, number); }

opt_v opt_number_power(opt_emit_t *e, double number, opt_v a) {
  aot_arg_t args[] = {aot_arg_float(number), aot_arg_value(a)};
  return make(e, "aten.pow.Scalar", args, 2);
}
opt_v opt_at_most(opt_emit_t *e, opt_v a, double number) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_none(), aot_arg_float(number)};
  return make(e, "aten.clamp.default", args, 3);
}
opt_v opt_add_scaled(opt_emit_t *e, opt_v a, opt_v b, double alpha) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_value(b), aot_arg_float(alpha)};
  return make(e, "aten.add.Tensor", args, 3);
}
opt_v opt_lerp(opt_emit_t *e, opt_v a, opt_v b, double weight) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_value(b), aot_arg_float(weight)};
  return make(e, "aten.lerp.Scalar", args, 3);
}
opt_v opt_addcmul(opt_emit_t *e, opt_v a, opt_v b, opt_v c, double value) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_value(b), aot_arg_value(c), aot_arg_float(value)};
  return make(e, "aten.addcmul.default", args, 4);
}
opt_v opt_cast(opt_emit_t *e, opt_v a, int32_t dtype) {
  aot_arg_t args[] = {aot_arg_value(a), aot_arg_dtype(dtype)};
  return make(e, "aten._to_copy.default", args, 2);
}
