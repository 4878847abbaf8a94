/* The emitter behind derivative rules: ag_emit.h has the contract. */
#include "ag_emit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- messages ---- */

void ag_fail(ag_t *a, const char *hint, const char *format, ...) {
  char text[512];
  aot_diag_t d;
  va_list list;
  if (a->status != AOT_OK) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_ERROR;
  d.code = aot_str("autograd.rule");
  d.message = aot_str(text);
  d.hint = aot_str(hint);
  d.node = a->node;
  d.value = aot_no_value();
  a->host->diag(a->host, a->ctx, &d);
  a->status = AOT_E_INVALID;
}

static aot_str_t op_name(const ag_t *a) { return a->desc ? a->desc->name : aot_str("the program"); }

/* Keep the status of a host call, which has told its story. */
static int ok(ag_t *a, aot_status_t status) {
  if (a->status == AOT_OK) a->status = status;
  return a->status == AOT_OK;
}

/* ---- values ---- */

ag_val_t ag_none(void) { return aot_arg_none(); }
ag_val_t ag_i(int64_t i) { return aot_arg_int(i); }
ag_val_t ag_f(double f) { return aot_arg_float(f); }
ag_val_t ag_b(int b) { return aot_arg_bool(b); }
ag_val_t ag_v(uint32_t value) {
  aot_value_t v;
  v.id = value;
  return aot_arg_value(v);
}

ag_val_t ag_list(ag_t *a, const int64_t *ints, uint32_t n) {
  int64_t *copy = a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 8, (n ? n : 1) * sizeof *copy);
  if (!copy) {
    ok(a, AOT_E_EXHAUSTED);
    return ag_none();
  }
  if (n) memcpy(copy, ints, n * sizeof *copy);
  return aot_arg_ints(copy, n);
}

int ag_is_tensor(ag_val_t v) { return v.kind == AOT_ARG_VALUE; }
int ag_is_number(ag_val_t v) { return v.kind == AOT_ARG_INT || v.kind == AOT_ARG_FLOAT || v.kind == AOT_ARG_BOOL; }
static int is_symbolic(ag_val_t v) { return v.kind == AOT_ARG_INT && AOT_DIM_IS_SYM(v.u.i); }
static double plain(ag_val_t v) { return v.kind == AOT_ARG_FLOAT ? v.u.f : (double)v.u.i; }
static int is_constant(ag_val_t v, double x) { return ag_is_number(v) && !is_symbolic(v) && plain(v) == x; }

double ag_number(ag_t *a, ag_val_t v, double otherwise) {
  if (v.kind == AOT_ARG_NONE) return otherwise;
  if (!ag_is_number(v) || is_symbolic(v))
    ag_fail(a, "specialise the size when exporting", "the derivative of this operator needs a constant number here");
  return a->status == AOT_OK ? plain(v) : otherwise;
}

int64_t ag_int(ag_t *a, ag_val_t v, int64_t otherwise) {
  if (v.kind == AOT_ARG_INT || v.kind == AOT_ARG_BOOL) return v.u.i;
  if (v.kind != AOT_ARG_NONE) ag_fail(a, "", "the derivative of this operator needs an integer here");
  return otherwise;
}

ag_type_t ag_type(ag_t *a, ag_val_t tensor) {
  ag_type_t r;
  aot_type_t t;
  aot_value_t v;
  memset(&r, 0, sizeof r);
  memset(&t, 0, sizeof t);
  if (a->status != AOT_OK) return r;
  v.id = (uint32_t)tensor.u.i;
  if (!ag_is_tensor(tensor)) {
    ag_fail(a, "", "the derivative of this operator needs a tensor where there is none");
    return r;
  }
  if (!ok(a, a->host->graph->value_type(a->prog, v, &t))) return r;
  r.dtype = t.dtype;
  r.rank = t.rank;
  r.device = t.device;
  r.device_index = t.device_index;
  if (t.rank > 0) memcpy(r.sizes, t.sizes, (size_t)t.rank * sizeof *r.sizes);
  return r;
}

uint32_t ag_dim(ag_t *a, int64_t dim, int32_t rank) {
  int32_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n) {
    ag_fail(a, "", "dimension %lld of a tensor of rank %d", (long long)dim, (int)rank);
    return 0;
  }
  return (uint32_t)(dim < 0 ? dim + n : dim);
}

/* ---- the node ---- */

uint32_t ag_index(const ag_t *a, const char *name, size_t size) {
  uint32_t i;
  for (i = 0; i < a->desc->n_args && i < a->info.n_args; i++)
    if (a->desc->args[i].name.size == size && memcmp(a->desc->args[i].name.data, name, size) == 0) return i;
  return AG_NO_ARG;
}

uint32_t ag_at(const ag_t *a, const char *name) { return ag_index(a, name, strlen(name)); }

static uint32_t index_of(ag_t *a, const char *name) {
  uint32_t i = ag_at(a, name);
  if (i == AG_NO_ARG) ag_fail(a, "", "the derivative rule names an argument '%s' that the operator does not have", name);
  return i;
}

ag_val_t ag_arg(ag_t *a, const char *name) {
  uint32_t i = index_of(a, name);
  return i == AG_NO_ARG ? ag_none() : a->info.args[i];
}

ag_val_t ag_y(ag_t *a, uint32_t result) {
  return result < a->info.n_results ? ag_v(a->info.first_result.id + result) : ag_none();
}

ag_val_t ag_g(ag_t *a, uint32_t result) {
  const uint32_t *from = a->conjugated ? a->conjugated : a->cotangents;
  return result < a->info.n_results ? ag_v(from[result]) : ag_none();
}

uint32_t ag_count(ag_t *a, const char *name) {
  uint32_t i = index_of(a, name);
  return i == AG_NO_ARG ? 0 : a->slot[i + 1] - a->slot[i];
}

/* The value id of an operand slot; AOT_NO_ID when absent. */
static uint32_t operand(const ag_t *a, uint32_t arg, uint32_t element) {
  const aot_arg_t *x = &a->info.args[arg];
  if (x->kind == AOT_ARG_VALUE) return (uint32_t)x->u.i;
  return x->kind == AOT_ARG_VALUES && element < x->n ? x->u.ids[element] : AOT_NO_ID;
}

int ag_needs_at(ag_t *a, uint32_t arg, uint32_t element) {
  uint32_t v = operand(a, arg, element);
  return v != AOT_NO_ID && a->needs[v];
}

int ag_needs(ag_t *a, const char *name) {
  uint32_t i = index_of(a, name), k;
  for (k = 0; i != AG_NO_ARG && k < a->slot[i + 1] - a->slot[i]; k++)
    if (ag_needs_at(a, i, k)) return 1;
  return 0;
}

static int is_complex_value(ag_t *a, uint32_t id) {
  aot_type_t t;
  if (id == AOT_NO_ID || a->host->graph->value_type(a->prog, (aot_value_t){id}, &t) != AOT_OK) return 0;
  return t.kind == AOT_TYPE_TENSOR && aot_dtype_is_complex(t.dtype);
}

int ag_is_complex(ag_t *a, ag_val_t v) { return ag_is_tensor(v) && is_complex_value(a, (uint32_t)v.u.i); }

static ag_val_t conjugate(ag_t *a, ag_val_t x) { return ag_is_complex(a, x) ? AG_OP(a, "conj_physical", x) : x; }

int ag_touches_complex(ag_t *a) {
  for (uint32_t i = 0; i < a->info.n_results; i++)
    if (is_complex_value(a, a->info.first_result.id + i)) return 1;
  for (uint32_t k = 0; k < a->info.n_operands; k++)
    if (is_complex_value(a, a->info.operands[k])) return 1;
  return 0;
}

void ag_conjugate_begin(ag_t *a) {
  uint32_t i, n = a->info.n_results;
  uint32_t *ids = a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 4, (n ? n : 1) * sizeof *ids);
  if (!ids) {
    a->status = AOT_E_EXHAUSTED;
    return;
  }
  for (i = 0; i < n; i++) {
    ag_val_t g = conjugate(a, ag_g(a, i));
    ids[i] = ag_is_tensor(g) ? (uint32_t)g.u.i : AOT_NO_ID;
  }
  a->conjugated = ids;
}

void ag_conjugate_end(ag_t *a) { a->conjugated = NULL; }

void ag_set_at(ag_t *a, uint32_t arg, uint32_t element, ag_val_t gradient) {
  if (a->status != AOT_OK || !ag_needs_at(a, arg, element)) return;
  if (is_constant(gradient, 0)) gradient = ag_none();
  if (gradient.kind != AOT_ARG_NONE) gradient = ag_match(a, gradient, ag_v(operand(a, arg, element)));
  if (a->conjugated) gradient = conjugate(a, gradient);
  a->out[a->slot[arg] + element] = ag_is_tensor(gradient) ? (uint32_t)gradient.u.i : AOT_NO_ID;
}

void ag_set(ag_t *a, const char *name, ag_val_t gradient) {
  uint32_t i = index_of(a, name);
  if (i != AG_NO_ARG && a->slot[i + 1] > a->slot[i]) ag_set_at(a, i, 0, gradient);
}

int ag_is_set(ag_t *a, const char *name, int otherwise) {
  ag_val_t v = ag_arg(a, name);
  return v.kind == AOT_ARG_NONE ? otherwise : v.u.i != 0;
}

/* ---- sizes ---- */

int64_t ag_dim_op(ag_t *a, int32_t op, int64_t x, int64_t y) {
  int64_t r = 0;
  if (a->status == AOT_OK) ok(a, a->host->edit->dim_make(a->prog, op, x, y, 0, &r));
  return r;
}

int64_t ag_product(ag_t *a, const int64_t *sizes, uint32_t n) {
  int64_t r = 1;
  uint32_t i;
  for (i = 0; i < n; i++) r = ag_dim_op(a, AOT_EXPR_MUL, r, sizes[i]);
  return r;
}

ag_val_t ag_sizes(ag_t *a, ag_val_t tensor) {
  ag_type_t t = ag_type(a, tensor);
  return ag_list(a, t.sizes, (uint32_t)t.rank);
}

void ag_dim_set(ag_t *a, ag_val_t dims, int32_t rank, uint8_t *marks) {
  uint32_t i, all = dims.kind == AOT_ARG_NONE || (dims.kind == AOT_ARG_INTS && dims.n == 0);
  memset(marks, (int)all, AOT_MAX_RANK);
  if (dims.kind == AOT_ARG_INT) marks[ag_dim(a, dims.u.i, rank)] = 1;
  for (i = 0; dims.kind == AOT_ARG_INTS && i < dims.n; i++) marks[ag_dim(a, dims.u.ints[i], rank)] = 1;
}

ag_val_t ag_extent(ag_t *a, ag_val_t tensor, ag_val_t dims) {
  ag_type_t t = ag_type(a, tensor);
  uint8_t marks[AOT_MAX_RANK];
  int64_t n = 1;
  int32_t d;
  ag_dim_set(a, dims, t.rank, marks);
  for (d = 0; d < t.rank; d++)
    if (marks[d]) n = ag_dim_op(a, AOT_EXPR_MUL, n, t.sizes[d]);
  return ag_i(n);
}

/* ---- operators ---- */

/* An operator by its full name, or without "aten.", ".default" or both. */
static aot_op_t find(ag_t *a, const char *op) {
  aot_op_t r = {AOT_NO_ID};
  char name[160];
  int i;
  for (i = 0; i < 4 && r.id == AOT_NO_ID; i++) {
    snprintf(name, sizeof name, "%s%s%s", i < 2 ? "" : "aten.", op, i % 2 ? ".default" : "");
    r = a->host->graph->op_find(a->prog, aot_str(name));
  }
  return r;
}

/* What the backward makes is not differentiated again, whatever its operands are. */
static void no_grad(ag_t *a, uint32_t value) {
  aot_type_t t;
  aot_value_t v;
  memset(&t, 0, sizeof t);
  v.id = value;
  if (!ok(a, a->host->graph->value_type(a->prog, v, &t)) || !(t.flags & AOT_TYPE_REQUIRES_GRAD)) return;
  t.flags &= ~AOT_TYPE_REQUIRES_GRAD;
  ok(a, a->host->edit->type_set(a->prog, v, &t));
}

void ag_call_n(ag_t *a, const char *op, uint32_t n_args, const ag_val_t *args, uint32_t n_out, ag_val_t *out) {
  aot_node_spec_t s;
  aot_node_info_t made;
  aot_node_t node;
  uint32_t i;
  for (i = 0; i < n_out; i++) out[i] = ag_none();
  if (a->status != AOT_OK || (n_args && args[0].kind == AOT_ARG_NONE)) return;
  memset(&s, 0, sizeof s);
  s.struct_size = sizeof s;
  s.flags = AOT_NODE_BACKWARD;
  s.op = find(a, op);
  s.n_args = n_args;
  s.args = args;
  s.origin = a->info.origin;
  if (s.op.id == AOT_NO_ID) {
    ag_fail(a, "load an operator set that has it", "the derivative of %.*s is made of '%s', which no operator set defines",
            (int)op_name(a).size, op_name(a).data, op);
    return;
  }
  if (!ok(a, a->host->edit->node_create(a->prog, a->graph, &s, aot_no_node(), &node))) return;
  memset(&made, 0, sizeof made);
  made.struct_size = sizeof made;
  if (!ok(a, a->host->graph->node_info(a->prog, node, &made))) return;
  a->n_made++;
  for (i = 0; i < made.n_results; i++) no_grad(a, made.first_result.id + i);
  for (i = 0; i < n_out && i < made.n_results; i++) out[i] = ag_v(made.first_result.id + i);
}

ag_val_t ag_call(ag_t *a, const char *op, uint32_t n_args, const ag_val_t *args) {
  ag_val_t r;
  ag_call_n(a, op, n_args, args, 1, &r);
  return r;
}

/* x op y where both are numbers; integers stay integers, symbolic ones become expressions. Division is a float's. */
static ag_val_t fold(ag_t *a, char op, ag_val_t x, ag_val_t y) {
  if (is_symbolic(x) && y.kind == AOT_ARG_FLOAT && y.u.f == floor(y.u.f)) y = ag_i((int64_t)y.u.f);
  if (is_symbolic(y) && x.kind == AOT_ARG_FLOAT && x.u.f == floor(x.u.f)) x = ag_i((int64_t)x.u.f);
  if (x.kind != AOT_ARG_FLOAT && y.kind != AOT_ARG_FLOAT && op != '/')
    return ag_i(ag_dim_op(a, op == '+' ? AOT_EXPR_ADD : op == '-' ? AOT_EXPR_SUB : AOT_EXPR_MUL, x.u.i, y.u.i));
  if (is_symbolic(x) || is_symbolic(y)) {
    ag_fail(a, "specialise the size when exporting", "the derivative mixes a symbolic size with a fraction");
    return ag_none();
  }
  if (op == '+') return ag_f(plain(x) + plain(y));
  if (op == '-') return ag_f(plain(x) - plain(y));
  return ag_f(op == '*' ? plain(x) * plain(y) : plain(x) / plain(y));
}

ag_val_t ag_add(ag_t *a, ag_val_t x, ag_val_t y) {
  if (x.kind == AOT_ARG_NONE || is_constant(x, 0)) return y.kind == AOT_ARG_NONE ? x : y;
  if (y.kind == AOT_ARG_NONE || is_constant(y, 0)) return x;
  if (ag_is_number(x) && ag_is_number(y)) return fold(a, '+', x, y);
  if (ag_is_number(x)) return AG_OP(a, "add.Scalar", y, x);
  return ag_is_number(y) ? AG_OP(a, "add.Scalar", x, y) : AG_OP(a, "add.Tensor", x, y);
}

ag_val_t ag_neg(ag_t *a, ag_val_t x) {
  return ag_is_number(x) ? fold(a, '-', ag_i(0), x) : AG_OP(a, "neg", x);
}

ag_val_t ag_sub(ag_t *a, ag_val_t x, ag_val_t y) {
  if (x.kind == AOT_ARG_NONE || is_constant(x, 0)) return ag_neg(a, y);
  if (y.kind == AOT_ARG_NONE || is_constant(y, 0)) return x;
  if (ag_is_number(x) && ag_is_number(y)) return fold(a, '-', x, y);
  if (ag_is_number(x)) return AG_OP(a, "rsub.Scalar", y, x);
  return ag_is_number(y) ? AG_OP(a, "sub.Scalar", x, y) : AG_OP(a, "sub.Tensor", x, y);
}

ag_val_t ag_mul(ag_t *a, ag_val_t x, ag_val_t y) {
  if (x.kind == AOT_ARG_NONE || y.kind == AOT_ARG_NONE || is_constant(x, 0) || is_constant(y, 0)) return ag_none();
  if (is_constant(x, 1)) return y;
  if (is_constant(y, 1)) return x;
  if (ag_is_number(x) && ag_is_number(y)) return fold(a, '*', x, y);
  if (ag_is_number(x)) return is_constant(x, -1) ? ag_neg(a, y) : AG_OP(a, "mul.Scalar", y, x);
  if (ag_is_number(y)) return is_constant(y, -1) ? ag_neg(a, x) : AG_OP(a, "mul.Scalar", x, y);
  return AG_OP(a, "mul.Tensor", x, y);
}

ag_val_t ag_div(ag_t *a, ag_val_t x, ag_val_t y) {
  if (x.kind == AOT_ARG_NONE || is_constant(x, 0)) return ag_none();
  if (is_constant(y, 1)) return x;
  if (ag_is_number(x) && ag_is_number(y)) return fold(a, '/', x, y);
  if (ag_is_number(x)) return ag_mul(a, AG_OP(a, "reciprocal", y), x);
  return ag_is_number(y) ? AG_OP(a, "div.Scalar", x, y) : AG_OP(a, "div.Tensor", x, y);
}

ag_val_t ag_pow(ag_t *a, ag_val_t x, ag_val_t exponent) {
  if (is_constant(exponent, 0)) return ag_i(1);
  if (is_constant(exponent, 1)) return x;
  if (ag_is_number(x) && ag_is_number(exponent)) return ag_f(pow(ag_number(a, x, 0), ag_number(a, exponent, 0)));
  if (ag_is_number(x)) return AG_OP(a, "pow.Scalar", x, exponent);
  return AG_OP(a, ag_is_number(exponent) ? "pow.Tensor_Scalar" : "pow.Tensor_Tensor", x, exponent);
}

ag_val_t ag_compare(ag_t *a, const char *op, ag_val_t x, ag_val_t y) {
  char name[32];
  snprintf(name, sizeof name, "%s.%s", op, ag_is_number(y) ? "Scalar" : "Tensor");
  return AG_OP(a, name, x, y);
}

ag_val_t ag_device(const ag_type_t *t) {
  if (t->device == AOT_DEVICE_CPU) return ag_none();
  return aot_arg_int_kind(AOT_ARG_DEVICE, t->device + 256 * (int64_t)(t->device_index + 1));
}

ag_val_t ag_where(ag_t *a, ag_val_t condition, ag_val_t x, ag_val_t y) {
  if (!ag_is_tensor(x) && !ag_is_tensor(y)) return ag_none();
  if (x.kind == AOT_ARG_NONE) x = ag_i(0);
  if (y.kind == AOT_ARG_NONE) y = ag_i(0);
  return AG_OP(a, "where.self", condition, x, y);
}

ag_val_t ag_zeros(ag_t *a, const ag_type_t *type) {
  return AG_OP(a, "full", ag_list(a, type->sizes, (uint32_t)type->rank), ag_i(0), aot_arg_dtype(type->dtype), ag_none(), ag_device(type));
}

ag_val_t ag_zeros_like(ag_t *a, ag_val_t tensor) {
  ag_type_t t = ag_type(a, tensor);
  return ag_zeros(a, &t);
}

/* ---- shapes ---- */

static int same_sizes(const int64_t *x, int32_t x_rank, const int64_t *y, int32_t y_rank) {
  return x_rank == y_rank && (x_rank == 0 || memcmp(x, y, (size_t)x_rank * sizeof *x) == 0);
}

/* Are the elements of x laid out in row-major order without gaps? */
static int is_contiguous(ag_t *a, ag_val_t x) {
  aot_type_t t;
  aot_value_t v;
  int64_t stride = 1;
  int32_t d;
  memset(&t, 0, sizeof t);
  v.id = (uint32_t)x.u.i;
  if (!ok(a, a->host->graph->value_type(a->prog, v, &t))) return 0;
  for (d = t.rank; d-- > 0;) {
    if (t.sizes[d] == 0) return 1;
    if (t.sizes[d] != 1 && t.strides && t.strides[d] != stride) return 0;
    stride = ag_dim_op(a, AOT_EXPR_MUL, stride, t.sizes[d]);
  }
  return 1;
}

/* What x is a reshape of, NONE if it is none. */
static ag_val_t reshaped(ag_t *a, ag_val_t x) {
  aot_node_info_t info;
  aot_value_t v;
  aot_node_t def;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  v.id = (uint32_t)x.u.i;
  def = a->host->graph->value_def(a->prog, v);
  if (def.id == AOT_NO_ID || !ok(a, a->host->graph->node_info(a->prog, def, &info))) return ag_none();
  if (info.op.id != find(a, "view").id && info.op.id != find(a, "reshape").id) return ag_none();
  return info.args[0];
}

ag_val_t ag_reshape(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank) {
  ag_type_t t;
  ag_val_t from;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, x);
  if (a->status != AOT_OK || same_sizes(t.sizes, t.rank, sizes, rank)) return x;
  from = reshaped(a, x);
  if (from.kind != AOT_ARG_NONE) { /* there and back again: linear after linear */
    t = ag_type(a, from);
    if (same_sizes(t.sizes, t.rank, sizes, rank)) return from;
  }
  return AG_OP(a, is_contiguous(a, x) ? "view" : "reshape", x, ag_list(a, sizes, (uint32_t)rank));
}

ag_val_t ag_reshape_like(ag_t *a, ag_val_t x, ag_val_t shaped) {
  ag_type_t t = ag_type(a, shaped);
  return ag_reshape(a, x, t.sizes, t.rank);
}

ag_val_t ag_expand(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank) {
  ag_type_t t;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, x);
  return same_sizes(t.sizes, t.rank, sizes, rank) ? x : AG_OP(a, "expand", x, ag_list(a, sizes, (uint32_t)rank));
}

ag_val_t ag_contiguous(ag_t *a, ag_val_t x) {
  if (!ag_is_tensor(x) || is_contiguous(a, x)) return x;
  return AG_OP(a, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
}

ag_val_t ag_transpose(ag_t *a, ag_val_t x) { return AG_OP(a, "transpose.int", x, ag_i(-2), ag_i(-1)); }

ag_val_t ag_pad_to(ag_t *a, ag_val_t x, const int64_t *sizes) {
  ag_type_t have;
  int64_t pad[2 * AOT_MAX_RANK] = {0};
  int32_t d, any = 0;
  if (x.kind == AOT_ARG_NONE) return x;
  have = ag_type(a, x);
  for (d = 0; d < have.rank; d++) {
    if (have.sizes[d] == sizes[d]) continue;
    pad[2 * (have.rank - 1 - d) + 1] = ag_dim_op(a, AOT_EXPR_SUB, sizes[d], have.sizes[d]);
    any = 1;
  }
  return any ? AG_OP(a, "constant_pad_nd", x, ag_list(a, pad, 2 * (uint32_t)have.rank), ag_i(0)) : x;
}

/* " 4 s3 1" */
static void print_sizes(char *out, size_t size, const int64_t *sizes, int32_t rank) {
  size_t n = 0;
  int32_t d;
  out[0] = '\0';
  for (d = 0; d < rank && n + 24 < size; d++) {
    int symbolic = AOT_DIM_IS_SYM(sizes[d]);
    n += (size_t)snprintf(out + n, size - n, " %s%lld", symbolic ? "e" : "",
                          (long long)(symbolic ? (int64_t)AOT_DIM_EXPR(sizes[d]) : sizes[d]));
  }
}

static void bad_shape(ag_t *a, const ag_type_t *t, const int64_t *sizes, int32_t rank) {
  char have[160], want[160];
  print_sizes(have, sizeof have, t->sizes, t->rank);
  print_sizes(want, sizeof want, sizes, rank);
  ag_fail(a, "this is an error of the derivative rule",
          "the rule of %.*s made a gradient of shape [%s ] for an operand of shape [%s ]", (int)op_name(a).size,
          op_name(a).data, have, want);
}

ag_val_t ag_sum_to(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank) {
  ag_type_t t;
  int64_t dims[AOT_MAX_RANK];
  uint32_t n = 0;
  int32_t d, lead;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, x);
  lead = t.rank - rank;
  if (a->status != AOT_OK || same_sizes(t.sizes, t.rank, sizes, rank)) return x;
  for (d = 0; d < t.rank; d++) {
    int64_t want = d < lead ? 1 : lead < 0 ? -1 : sizes[d - lead];
    int fixed = !AOT_DIM_IS_SYM(want) && !AOT_DIM_IS_SYM(t.sizes[d]);
    if (d < lead || (want == 1 && t.sizes[d] != 1)) dims[n++] = d;
    else if (fixed && want != t.sizes[d]) {
      bad_shape(a, &t, sizes, rank);
      return x;
    }
  }
  if (lead < 0) {
    bad_shape(a, &t, sizes, rank);
    return x;
  }
  if (n == 0) return x; /* symbolic sizes that broadcasting has made equal */
  x = AG_OP(a, "sum.dim_IntList", x, ag_list(a, dims, n), ag_b(n != (uint32_t)lead));
  return n == (uint32_t)lead ? x : ag_reshape(a, x, sizes, rank);
}

ag_val_t ag_cast(ag_t *a, ag_val_t x, int32_t dtype) {
  if (x.kind == AOT_ARG_NONE || ag_type(a, x).dtype == dtype) return x;
  return AG_OP(a, "_to_copy", x, aot_arg_dtype(dtype));
}

ag_val_t ag_match(ag_t *a, ag_val_t x, ag_val_t tensor) {
  ag_type_t want = ag_type(a, tensor), have;
  x = ag_sum_to(a, x, want.sizes, want.rank);
  if (a->status != AOT_OK || x.kind == AOT_ARG_NONE) return x;
  if (ag_is_complex(a, x) && !ag_is_complex(a, tensor)) x = AG_OP(a, "real", x); /* a real operand has no other part */
  have = ag_type(a, x);
  if (have.device == want.device && have.device_index == want.device_index) return ag_cast(a, x, want.dtype);
  return AG_OP(a, "_to_copy", x, aot_arg_dtype(want.dtype), ag_none(),
               aot_arg_int_kind(AOT_ARG_DEVICE, want.device + 256 * (int64_t)(want.device_index + 1)));
}

ag_val_t ag_unreduce(ag_t *a, ag_val_t x, ag_val_t tensor, ag_val_t dims, int keepdim) {
  ag_type_t t;
  uint8_t marks[AOT_MAX_RANK];
  int64_t kept[AOT_MAX_RANK];
  int32_t d;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, tensor);
  ag_dim_set(a, dims, t.rank, marks);
  for (d = 0; d < t.rank; d++) kept[d] = marks[d] ? 1 : t.sizes[d];
  if (!keepdim && ag_type(a, x).rank > 0) x = ag_reshape(a, x, kept, t.rank);
  return ag_expand(a, x, t.sizes, t.rank);
}

ag_val_t ag_scatter_at(ag_t *a, ag_val_t tensor, ag_val_t dim, ag_val_t index, ag_val_t g, int keepdim) {
  ag_type_t t = ag_type(a, tensor);
  if (g.kind == AOT_ARG_NONE || t.rank == 0) return g;
  if (!keepdim) {
    index = AG_OP(a, "unsqueeze", index, dim);
    g = AG_OP(a, "unsqueeze", g, dim);
  }
  return AG_OP(a, "scatter_add", ag_zeros_like(a, tensor), dim, index, g);
}
