/* The emitter for derivative rules (ag_emit.h). */
#include "ag_emit.h"

#include <aot/ext/compare_dims.h>
#include <aot/inline.h>

#include <math.h>
#include <stdio.h>

static aot_str_t op_name(const em_t *a) { return a->desc ? a->desc->name : aot_str("the program"); }

/* ---- values ---- */

em_x_t ag_v(uint32_t value) {
  aot_value_t v;
  v.id = value;
  return aot_arg_value(v);
}

static int is_symbolic(em_x_t v) { return v.kind == AOT_ARG_INT && AOT_DIM_IS_SYM(v.u.i); }
static double plain(em_x_t v) { return v.kind == AOT_ARG_FLOAT ? v.u.f : (double)v.u.i; }
int ag_is_constant(em_x_t v) { return em_is_number(v) && !is_symbolic(v); }
static int equals(em_x_t v, double x) { return ag_is_constant(v) && plain(v) == x; }

double ag_number(em_t *a, em_x_t v, double otherwise) {
  if (v.kind == AOT_ARG_NONE) return otherwise;
  if (!ag_is_constant(v))
    em_fail(a, AOT_E_INVALID, "specialise the size when exporting",
            "the derivative of this operator needs a constant number here");
  return a->status == AOT_OK ? plain(v) : otherwise;
}

int64_t ag_int(em_t *a, em_x_t v, int64_t otherwise) {
  if (v.kind == AOT_ARG_INT || v.kind == AOT_ARG_BOOL) return v.u.i;
  if (v.kind != AOT_ARG_NONE) em_fail(a, AOT_E_INVALID, "", "the derivative of this operator needs an integer here");
  return otherwise;
}

ag_type_t ag_type(em_t *a, em_x_t tensor) {
  ag_type_t r;
  aot_type_t t;
  aot_value_t v;
  memset(&r, 0, sizeof r);
  memset(&t, 0, sizeof t);
  if (a->status != AOT_OK) return r;
  v.id = (uint32_t)tensor.u.i;
  if (!em_is_value(tensor)) {
    em_fail(a, AOT_E_INVALID, "", "the derivative of this operator needs a tensor where there is none");
    return r;
  }
  if (!em_ok(a, a->host->graph->value_type(a->prog, v, &t))) return r;
  r.dtype = t.dtype;
  r.rank = t.rank;
  r.device = t.device;
  r.device_index = t.device_index;
  if (t.rank > 0) memcpy(r.sizes, t.sizes, (size_t)t.rank * sizeof *r.sizes);
  return r;
}

uint32_t ag_dim(em_t *a, int64_t dim, int32_t rank) {
  int32_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n) {
    em_fail(a, AOT_E_INVALID, "", "dimension %lld of a tensor of rank %d", (long long)dim, (int)rank);
    return 0;
  }
  return (uint32_t)(dim < 0 ? dim + n : dim);
}

/* ---- the node ---- */

uint32_t ag_index(const em_t *a, const char *name, size_t size) {
  uint32_t i;
  for (i = 0; i < a->desc->n_args && i < a->info.n_args; i++)
    if (a->desc->args[i].name.size == size && memcmp(a->desc->args[i].name.data, name, size) == 0) return i;
  return AG_NO_ARG;
}

uint32_t ag_at(const em_t *a, const char *name) { return ag_index(a, name, strlen(name)); }

static uint32_t index_of(em_t *a, const char *name) {
  uint32_t i = ag_at(a, name);
  if (i == AG_NO_ARG)
    em_fail(a, AOT_E_INVALID, "", "the derivative rule names an argument '%s' that the operator does not have", name);
  return i;
}

em_x_t ag_arg(em_t *a, const char *name) {
  uint32_t i = index_of(a, name);
  return i == AG_NO_ARG ? em_none() : a->info.args[i];
}

em_x_t ag_y(em_t *a, uint32_t result) {
  return result < a->info.n_results ? ag_v(a->info.first_result.id + result) : em_none();
}

em_x_t ag_g(em_t *a, uint32_t result) {
  const uint32_t *from = ag_of(a)->conjugated ? ag_of(a)->conjugated : ag_of(a)->cotangents;
  return result < a->info.n_results ? ag_v(from[result]) : em_none();
}

uint32_t ag_count(em_t *a, const char *name) {
  uint32_t i = index_of(a, name);
  return i == AG_NO_ARG ? 0 : ag_of(a)->slot[i + 1] - ag_of(a)->slot[i];
}

/* The value id of an operand slot; AOT_NO_ID when absent. */
static uint32_t operand(const em_t *a, uint32_t arg, uint32_t element) {
  const aot_arg_t *x = &a->info.args[arg];
  if (x->kind == AOT_ARG_VALUE) return (uint32_t)x->u.i;
  return x->kind == AOT_ARG_VALUES && element < x->n ? x->u.ids[element] : AOT_NO_ID;
}

int ag_needs_at(em_t *a, uint32_t arg, uint32_t element) {
  uint32_t v = operand(a, arg, element);
  return v != AOT_NO_ID && ag_of(a)->needs[v];
}

int ag_needs(em_t *a, const char *name) {
  uint32_t i = index_of(a, name), k;
  for (k = 0; i != AG_NO_ARG && k < ag_of(a)->slot[i + 1] - ag_of(a)->slot[i]; k++)
    if (ag_needs_at(a, i, k)) return 1;
  return 0;
}

static em_x_t conjugate(em_t *a, em_x_t x) { return em_is_complex(a, x) ? AG_OP(a, "conj_physical", x) : x; }

void ag_conjugate_begin(em_t *a) {
  uint32_t i, n = a->info.n_results;
  uint32_t *ids = a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 4, (n ? n : 1) * sizeof *ids);
  if (!ids) {
    a->status = AOT_E_EXHAUSTED;
    return;
  }
  for (i = 0; i < n; i++) {
    em_x_t g = conjugate(a, ag_g(a, i));
    ids[i] = em_is_value(g) ? (uint32_t)g.u.i : AOT_NO_ID;
  }
  ag_of(a)->conjugated = ids;
}

void ag_conjugate_end(em_t *a) { ag_of(a)->conjugated = NULL; }

void ag_set_at(em_t *a, uint32_t arg, uint32_t element, em_x_t gradient) {
  if (a->status != AOT_OK || !ag_needs_at(a, arg, element)) return;
  if (equals(gradient, 0)) gradient = em_none();
  if (gradient.kind != AOT_ARG_NONE) gradient = ag_match(a, gradient, ag_v(operand(a, arg, element)));
  if (ag_of(a)->conjugated) gradient = conjugate(a, gradient);
  ag_of(a)->out[ag_of(a)->slot[arg] + element] = em_is_value(gradient) ? (uint32_t)gradient.u.i : AOT_NO_ID;
}

void ag_set(em_t *a, const char *name, em_x_t gradient) {
  uint32_t i = index_of(a, name);
  if (i != AG_NO_ARG && ag_of(a)->slot[i + 1] > ag_of(a)->slot[i]) ag_set_at(a, i, 0, gradient);
}

int ag_is_set(em_t *a, const char *name, int otherwise) {
  em_x_t v = ag_arg(a, name);
  return v.kind == AOT_ARG_NONE ? otherwise : v.u.i != 0;
}

/* ---- sizes ---- */

int64_t ag_dim_op(em_t *a, int32_t op, int64_t x, int64_t y) {
  int64_t r = 0;
  if (a->status == AOT_OK) em_ok(a, a->host->edit->dim_make(a->prog, op, x, y, 0, &r));
  return r;
}

int64_t ag_product(em_t *a, const int64_t *sizes, uint32_t n) {
  int64_t r = 1;
  uint32_t i;
  for (i = 0; i < n; i++) r = ag_dim_op(a, AOT_EXPR_MUL, r, sizes[i]);
  return r;
}

em_x_t ag_sizes(em_t *a, em_x_t tensor) {
  ag_type_t t = ag_type(a, tensor);
  return em_list(a, t.sizes, (uint32_t)t.rank);
}

void ag_dim_set(em_t *a, em_x_t dims, int32_t rank, uint8_t *marks) {
  uint32_t i, all = dims.kind == AOT_ARG_NONE || (dims.kind == AOT_ARG_INTS && dims.n == 0);
  memset(marks, (int)all, AOT_MAX_RANK);
  if (dims.kind == AOT_ARG_INT) marks[ag_dim(a, dims.u.i, rank)] = 1;
  for (i = 0; dims.kind == AOT_ARG_INTS && i < dims.n; i++) marks[ag_dim(a, dims.u.ints[i], rank)] = 1;
}

em_x_t ag_extent(em_t *a, em_x_t tensor, em_x_t dims) {
  ag_type_t t = ag_type(a, tensor);
  uint8_t marks[AOT_MAX_RANK];
  int64_t n = 1;
  int32_t d;
  ag_dim_set(a, dims, t.rank, marks);
  for (d = 0; d < t.rank; d++)
    if (marks[d]) n = ag_dim_op(a, AOT_EXPR_MUL, n, t.sizes[d]);
  return em_i(n);
}

/* ---- operators ---- */

/* What the backward makes is not differentiated again, whatever its operands are. */
static void no_grad(em_t *a, uint32_t value) {
  aot_type_t t;
  aot_value_t v;
  memset(&t, 0, sizeof t);
  v.id = value;
  if (!em_ok(a, a->host->graph->value_type(a->prog, v, &t)) || !(t.flags & AOT_TYPE_REQUIRES_GRAD)) return;
  t.flags &= ~AOT_TYPE_REQUIRES_GRAD;
  em_ok(a, a->host->edit->type_set(a->prog, v, &t));
}

void ag_call_n(em_t *a, const char *op, uint32_t n_args, const em_x_t *args, uint32_t n_out, em_x_t *out) {
  aot_node_info_t made;
  uint32_t i;
  for (i = 0; i < n_out; i++) out[i] = em_none();
  if (a->status != AOT_OK || (n_args && args[0].kind == AOT_ARG_NONE)) return;
  em_put(a, em_op(a, op), n_args, args, 0, NULL, &made);
  if (a->status != AOT_OK) return;
  ag_of(a)->n_made++;
  for (i = 0; i < made.n_results; i++) no_grad(a, made.first_result.id + i);
  for (i = 0; i < n_out && i < made.n_results; i++) out[i] = ag_v(made.first_result.id + i);
}

em_x_t ag_call(em_t *a, const char *op, uint32_t n_args, const em_x_t *args) {
  em_x_t r;
  ag_call_n(a, op, n_args, args, 1, &r);
  return r;
}

/* x op y where both are numbers; integers stay integers, symbolic ones become expressions. Division is a float's. */
static em_x_t fold(em_t *a, char op, em_x_t x, em_x_t y) {
  if (is_symbolic(x) && y.kind == AOT_ARG_FLOAT && y.u.f == floor(y.u.f)) y = em_i((int64_t)y.u.f);
  if (is_symbolic(y) && x.kind == AOT_ARG_FLOAT && x.u.f == floor(x.u.f)) x = em_i((int64_t)x.u.f);
  if (x.kind != AOT_ARG_FLOAT && y.kind != AOT_ARG_FLOAT && op != '/')
    return em_i(ag_dim_op(a, op == '+' ? AOT_EXPR_ADD : op == '-' ? AOT_EXPR_SUB : AOT_EXPR_MUL, x.u.i, y.u.i));
  if (is_symbolic(x) || is_symbolic(y)) {
    em_fail(a, AOT_E_INVALID, "specialise the size when exporting",
            "the derivative mixes a symbolic size with a fraction");
    return em_none();
  }
  if (op == '+') return em_f(plain(x) + plain(y));
  if (op == '-') return em_f(plain(x) - plain(y));
  return em_f(op == '*' ? plain(x) * plain(y) : plain(x) / plain(y));
}

em_x_t ag_add(em_t *a, em_x_t x, em_x_t y) {
  if (x.kind == AOT_ARG_NONE || equals(x, 0)) return y.kind == AOT_ARG_NONE ? x : y;
  if (y.kind == AOT_ARG_NONE || equals(y, 0)) return x;
  if (em_is_number(x) && em_is_number(y)) return fold(a, '+', x, y);
  if (em_is_number(x)) return AG_OP(a, "add.Scalar", y, x);
  return em_is_number(y) ? AG_OP(a, "add.Scalar", x, y) : AG_OP(a, "add.Tensor", x, y);
}

em_x_t ag_neg(em_t *a, em_x_t x) { return em_is_number(x) ? fold(a, '-', em_i(0), x) : AG_OP(a, "neg", x); }

em_x_t ag_sub(em_t *a, em_x_t x, em_x_t y) {
  if (x.kind == AOT_ARG_NONE || equals(x, 0)) return ag_neg(a, y);
  if (y.kind == AOT_ARG_NONE || equals(y, 0)) return x;
  if (em_is_number(x) && em_is_number(y)) return fold(a, '-', x, y);
  if (em_is_number(x)) return AG_OP(a, "rsub.Scalar", y, x);
  return em_is_number(y) ? AG_OP(a, "sub.Scalar", x, y) : AG_OP(a, "sub.Tensor", x, y);
}

em_x_t ag_mul(em_t *a, em_x_t x, em_x_t y) {
  if (x.kind == AOT_ARG_NONE || y.kind == AOT_ARG_NONE || equals(x, 0) || equals(y, 0)) return em_none();
  if (equals(x, 1)) return y;
  if (equals(y, 1)) return x;
  if (em_is_number(x) && em_is_number(y)) return fold(a, '*', x, y);
  if (em_is_number(x)) return equals(x, -1) ? ag_neg(a, y) : AG_OP(a, "mul.Scalar", y, x);
  if (em_is_number(y)) return equals(y, -1) ? ag_neg(a, x) : AG_OP(a, "mul.Scalar", x, y);
  return AG_OP(a, "mul.Tensor", x, y);
}

em_x_t ag_div(em_t *a, em_x_t x, em_x_t y) {
  if (x.kind == AOT_ARG_NONE || equals(x, 0)) return em_none();
  if (equals(y, 1)) return x;
  if (em_is_number(x) && em_is_number(y)) return fold(a, '/', x, y);
  if (em_is_number(x)) return ag_mul(a, AG_OP(a, "reciprocal", y), x);
  return em_is_number(y) ? AG_OP(a, "div.Scalar", x, y) : AG_OP(a, "div.Tensor", x, y);
}

em_x_t ag_pow(em_t *a, em_x_t x, em_x_t exponent) {
  if (equals(exponent, 0)) return em_i(1);
  if (equals(exponent, 1)) return x;
  if (em_is_number(x) && em_is_number(exponent)) return em_f(pow(ag_number(a, x, 0), ag_number(a, exponent, 0)));
  if (em_is_number(x)) return AG_OP(a, "pow.Scalar", x, exponent);
  return AG_OP(a, em_is_number(exponent) ? "pow.Tensor_Scalar" : "pow.Tensor_Tensor", x, exponent);
}

em_x_t ag_compare(em_t *a, const char *op, em_x_t x, em_x_t y) {
  char name[32];
  snprintf(name, sizeof name, "%s.%s", op, em_is_number(y) ? "Scalar" : "Tensor");
  return AG_OP(a, name, x, y);
}

em_x_t ag_device(const ag_type_t *t) {
  if (t->device == AOT_DEVICE_CPU) return em_none();
  return em_device(t->device, t->device_index);
}

em_x_t ag_where(em_t *a, em_x_t condition, em_x_t x, em_x_t y) {
  if ((x.kind == AOT_ARG_NONE || equals(x, 0)) && (y.kind == AOT_ARG_NONE || equals(y, 0))) return em_none();
  if (x.kind == AOT_ARG_NONE) x = em_i(0);
  if (y.kind == AOT_ARG_NONE) y = em_i(0);
  return AG_OP(a, "where.self", condition, x, y);
}

em_x_t ag_zeros(em_t *a, const ag_type_t *type) {
  const em_x_t sizes = em_list(a, type->sizes, (uint32_t)type->rank);
  return AG_OP(a, "full", sizes, em_i(0), em_dtype(type->dtype), em_none(), ag_device(type));
}

em_x_t ag_zeros_like(em_t *a, em_x_t tensor) {
  ag_type_t t = ag_type(a, tensor);
  return ag_zeros(a, &t);
}

/* ---- shapes ---- */

static int same_sizes(const int64_t *x, int32_t x_rank, const int64_t *y, int32_t y_rank) {
  return x_rank == y_rank && (x_rank == 0 || memcmp(x, y, (size_t)x_rank * sizeof *x) == 0);
}

/* Are the elements of x laid out in row-major order without gaps? */
static int is_contiguous(em_t *a, em_x_t x) {
  aot_type_t t;
  aot_value_t v;
  int64_t stride = 1;
  int32_t d;
  memset(&t, 0, sizeof t);
  v.id = (uint32_t)x.u.i;
  if (!em_ok(a, a->host->graph->value_type(a->prog, v, &t))) return 0;
  for (d = t.rank; d-- > 0;) {
    if (t.sizes[d] == 0) return 1;
    if (t.sizes[d] != 1 && t.strides && t.strides[d] != stride) return 0;
    stride = ag_dim_op(a, AOT_EXPR_MUL, stride, t.sizes[d]);
  }
  return 1;
}

static int is_op(const em_t *a, aot_op_t op, const char *name) {
  return op.id == a->host->graph->op_find(a->prog, aot_str(name)).id;
}

/* What x is a reshape of, NONE if it is none. */
static em_x_t reshaped(em_t *a, em_x_t x) {
  aot_node_info_t info;
  aot_value_t v;
  aot_node_t def;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  v.id = (uint32_t)x.u.i;
  def = a->host->graph->value_def(a->prog, v);
  if (def.id == AOT_NO_ID || !em_ok(a, a->host->graph->node_info(a->prog, def, &info))) return em_none();
  if (!is_op(a, info.op, "aten.view.default") && !is_op(a, info.op, "aten.reshape.default")) return em_none();
  return info.args[0];
}

em_x_t ag_reshape(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank) {
  ag_type_t t;
  em_x_t from;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, x);
  if (a->status != AOT_OK || same_sizes(t.sizes, t.rank, sizes, rank)) return x;
  from = reshaped(a, x);
  if (from.kind != AOT_ARG_NONE) { /* there and back again: linear after linear */
    t = ag_type(a, from);
    if (same_sizes(t.sizes, t.rank, sizes, rank)) return from;
  }
  return AG_OP(a, is_contiguous(a, x) ? "view" : "reshape", x, em_list(a, sizes, (uint32_t)rank));
}

em_x_t ag_reshape_like(em_t *a, em_x_t x, em_x_t shaped) {
  ag_type_t t = ag_type(a, shaped);
  return ag_reshape(a, x, t.sizes, t.rank);
}

em_x_t ag_expand(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank) {
  ag_type_t t;
  if (x.kind == AOT_ARG_NONE) return x;
  t = ag_type(a, x);
  return same_sizes(t.sizes, t.rank, sizes, rank) ? x : AG_OP(a, "expand", x, em_list(a, sizes, (uint32_t)rank));
}

em_x_t ag_contiguous(em_t *a, em_x_t x) {
  if (!em_is_value(x) || is_contiguous(a, x)) return x;
  return AG_OP(a, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
}

em_x_t ag_transpose(em_t *a, em_x_t x) { return AG_OP(a, "transpose.int", x, em_i(-2), em_i(-1)); }

em_x_t ag_pad_to(em_t *a, em_x_t x, const int64_t *sizes) {
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
  return any ? AG_OP(a, "constant_pad_nd", x, em_list(a, pad, 2 * (uint32_t)have.rank), em_i(0)) : x;
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

static void bad_shape(em_t *a, const ag_type_t *t, const int64_t *sizes, int32_t rank) {
  char have[160], want[160];
  print_sizes(have, sizeof have, t->sizes, t->rank);
  print_sizes(want, sizeof want, sizes, rank);
  em_fail(a, AOT_E_INVALID, "this is an error of the derivative rule",
          "the rule of %.*s made a gradient of shape [%s ] for an operand of shape [%s ]", (int)op_name(a).size,
          op_name(a).data, have, want);
}

/* Sizes that broadcasting has made equal. Where that depends on data, a view compares them when the program runs. */
static em_x_t as_declared(em_t *a, em_x_t x, const ag_type_t *t, const int64_t *sizes) {
  const aot_ext_compare_dims_t *dims = aot_ext(&a->host->head, AOT_EXT_COMPARE_DIMS);
  for (int32_t d = 0; dims && d < t->rank; d++)
    if (t->sizes[d] != sizes[d] && dims->compare(dims, a->prog, AOT_EXPR_EQ, t->sizes[d], sizes[d]) == AOT_DIMS_UNKNOWN)
      return ag_reshape(a, x, sizes, t->rank);
  return x;
}

em_x_t ag_sum_to(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank) {
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
  if (n == 0) return as_declared(a, x, &t, sizes);
  x = AG_OP(a, "sum.dim_IntList", x, em_list(a, dims, n), em_b(n != (uint32_t)lead));
  return n == (uint32_t)lead ? x : ag_reshape(a, x, sizes, rank);
}

em_x_t ag_cast(em_t *a, em_x_t x, int32_t dtype) {
  if (x.kind == AOT_ARG_NONE || ag_type(a, x).dtype == dtype) return x;
  return AG_OP(a, "_to_copy", x, aot_arg_dtype(dtype));
}

em_x_t ag_wide(em_t *a, em_x_t x) {
  int32_t dtype = em_is_value(x) ? ag_type(a, x).dtype : AOT_F32;
  return dtype == AOT_F16 || dtype == AOT_BF16 ? ag_cast(a, x, AOT_F32) : x;
}

em_x_t ag_match(em_t *a, em_x_t x, em_x_t tensor) {
  ag_type_t want = ag_type(a, tensor), have;
  x = ag_sum_to(a, x, want.sizes, want.rank);
  if (a->status != AOT_OK || x.kind == AOT_ARG_NONE) return x;
  if (em_is_complex(a, x) && !em_is_complex(a, tensor)) x = AG_OP(a, "real", x); /* a real operand has no other part */
  have = ag_type(a, x);
  if (have.device == want.device && have.device_index == want.device_index) return ag_cast(a, x, want.dtype);
  return AG_OP(a, "_to_copy", x, aot_arg_dtype(want.dtype), em_none(), em_device(want.device, want.device_index));
}

em_x_t ag_unreduce(em_t *a, em_x_t x, em_x_t tensor, em_x_t dims, int keepdim) {
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

em_x_t ag_scatter_at(em_t *a, em_x_t tensor, em_x_t dim, em_x_t index, em_x_t g, int keepdim) {
  ag_type_t t = ag_type(a, tensor);
  if (g.kind == AOT_ARG_NONE || t.rank == 0) return g;
  if (!keepdim) {
    index = AG_OP(a, "unsqueeze", index, dim);
    g = AG_OP(a, "unsqueeze", g, dim);
  }
  return AG_OP(a, "scatter_add", ag_zeros_like(a, tensor), dim, index, g);
}
