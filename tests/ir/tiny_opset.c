#include "tiny_opset.h"
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define S(text) AOT_STR_INIT(text)
/* clang-format off */
#define ARG(name, type, flags) {S(name), type, flags, 0, 0, 0, 0, {0, 0, {0}}}
/* clang-format on */
#define ARG_INT(name, type, flags, value)                                                                              \
  {                                                                                                                    \
    S(name), type, (flags) | AOT_SARG_HAS_DEFAULT, 0, 0, 0, 0, {                                                       \
      AOT_ARG_INT, 0, { value }                                                                                        \
    }                                                                                                                  \
  }
#define ARG_NONE(name, type, flags)                                                                                    \
  {                                                                                                                    \
    S(name), type, (flags) | AOT_SARG_HAS_DEFAULT | AOT_SARG_OPTIONAL, 0, 0, 0, 0, {                                   \
      0, 0, { 0 }                                                                                                      \
    }                                                                                                                  \
  }
#define PAIR(name, value)                                                                                              \
  {                                                                                                                    \
    S(name), AOT_STYPE_INT, AOT_SARG_LIST | AOT_SARG_HAS_DEFAULT, 0, 2, 0, 0, {                                        \
      AOT_ARG_INT, 0, { value }                                                                                        \
    }                                                                                                                  \
  }
/* clang-format off */
#define WRITTEN(name, write_if) {S(name), AOT_STYPE_TENSOR, AOT_SARG_WRITE, 1, 0, write_if, 0, {0, 0, {0}}}
/* clang-format on */
#define TENSOR(name) ARG(name, AOT_STYPE_TENSOR, 0)

static const aot_schema_arg_t one_tensor[] = {TENSOR("")};
static const aot_schema_arg_t two_tensors[] = {TENSOR("values"), TENSOR("indices")};
static const aot_schema_arg_t tensor_list[] = {ARG("", AOT_STYPE_TENSOR, AOT_SARG_LIST)};

static const aot_schema_arg_t add_args[] = {TENSOR("self"), TENSOR("other"),
                                            ARG_INT("alpha", AOT_STYPE_SCALAR, AOT_SARG_KWONLY, 1)};
static const aot_schema_arg_t add__args[] = {WRITTEN("self", 0), TENSOR("other")};
static const aot_schema_arg_t norm_args[] = {TENSOR("self"), WRITTEN("running", 3), ARG("training", AOT_STYPE_BOOL, 0)};
static const aot_schema_arg_t rand_args[] = {
    ARG("size", AOT_STYPE_INT, AOT_SARG_LIST), ARG_NONE("dtype", AOT_STYPE_DTYPE, AOT_SARG_KWONLY),
    ARG_NONE("device", AOT_STYPE_DEVICE, AOT_SARG_KWONLY),
    ARG("generator", AOT_STYPE_GENERATOR, AOT_SARG_OPTIONAL | AOT_SARG_KWONLY)};
static const aot_schema_arg_t view_args[] = {TENSOR("self"), ARG("size", AOT_STYPE_INT, AOT_SARG_LIST)};
static const aot_schema_arg_t split_args[] = {TENSOR("self"), ARG("n", AOT_STYPE_INT, 0)};
static const aot_schema_arg_t max_args[] = {TENSOR("self"), ARG_INT("dim", AOT_STYPE_INT, 0, -1)};
static const aot_schema_arg_t cat_args[] = {ARG("tensors", AOT_STYPE_TENSOR, AOT_SARG_LIST),
                                            ARG_INT("dim", AOT_STYPE_INT, 0, 0)};
static const aot_schema_arg_t index_args[] = {TENSOR("self"),
                                              ARG("indices", AOT_STYPE_TENSOR, AOT_SARG_LIST | AOT_SARG_OPTIONAL_ELEM)};
static const aot_schema_arg_t call_args[] = {ARG("body", AOT_STYPE_GRAPH, 0),
                                             ARG("operands", AOT_STYPE_ANY, AOT_SARG_VARIADIC)};
static const aot_schema_arg_t print_args[] = {TENSOR("self"), ARG("text", AOT_STYPE_STR, 0)};
static const aot_schema_arg_t conv_args[] = {TENSOR("input"), TENSOR("weight"), ARG_NONE("bias", AOT_STYPE_TENSOR, 0),
                                             PAIR("stride", 1), PAIR("padding", 0)};
static const aot_schema_arg_t every_args[] = {TENSOR("tensor"),
                                              ARG("tensor_opt", AOT_STYPE_TENSOR, AOT_SARG_OPTIONAL),
                                              ARG("tensors", AOT_STYPE_TENSOR, AOT_SARG_LIST),
                                              ARG("scalar", AOT_STYPE_SCALAR, 0),
                                              ARG("i", AOT_STYPE_INT, 0),
                                              ARG("ints", AOT_STYPE_INT, AOT_SARG_LIST),
                                              ARG("f", AOT_STYPE_FLOAT, 0),
                                              ARG("floats", AOT_STYPE_FLOAT, AOT_SARG_LIST | AOT_SARG_OPTIONAL),
                                              ARG("b", AOT_STYPE_BOOL, 0),
                                              ARG("bools", AOT_STYPE_BOOL, AOT_SARG_LIST),
                                              ARG("text", AOT_STYPE_STR, 0),
                                              ARG("dtype", AOT_STYPE_DTYPE, 0),
                                              ARG("layout", AOT_STYPE_LAYOUT, 0),
                                              ARG("device", AOT_STYPE_DEVICE, 0),
                                              ARG("format", AOT_STYPE_MEMORY_FORMAT, 0),
                                              ARG("generator", AOT_STYPE_GENERATOR, AOT_SARG_OPTIONAL),
                                              ARG("op", AOT_STYPE_OP, 0),
                                              ARG("graph", AOT_STYPE_GRAPH, 0)};

#define N(a) (uint32_t)(sizeof(a) / sizeof *(a))
#define OP(ident, name_, flags_, args_, n_args_, results_, n_results_, schema_)                                        \
  static const aot_op_desc_t ident = {.struct_size = sizeof(aot_op_desc_t),                                            \
                                      .flags = flags_,                                                                 \
                                      .name = S(name_),                                                                \
                                      .schema = S(schema_),                                                            \
                                      .group = S("test"),                                                              \
                                      .doc = S(""),                                                                    \
                                      .args = args_,                                                                   \
                                      .results = results_,                                                             \
                                      .n_args = n_args_,                                                               \
                                      .n_results = n_results_};
OP(op_add, "tiny.add.Tensor", AOT_OP_POINTWISE, add_args, N(add_args), one_tensor, 1,
   "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
OP(op_add_, "tiny.add_.Tensor", AOT_OP_POINTWISE | AOT_OP_WRITES, add__args, N(add__args), one_tensor, 1,
   "(Tensor(a!) self, Tensor other) -> Tensor")
OP(op_norm, "tiny.norm.default", AOT_OP_WRITES, norm_args, N(norm_args), one_tensor, 1,
   "(Tensor self, Tensor(a!) running, bool training) -> Tensor")
OP(op_rand, "tiny.rand.default", AOT_OP_RANDOM | AOT_OP_CREATION, rand_args, N(rand_args), one_tensor, 1,
   "(SymInt[] size, *, ScalarType? dtype=None, Device? device=None, Generator? generator) -> Tensor")
OP(op_view, "tiny.view.default", AOT_OP_VIEW, view_args, N(view_args), one_tensor, 1,
   "(Tensor self, SymInt[] size) -> Tensor")
OP(op_split, "tiny.split.default", AOT_OP_VIEW | AOT_OP_MULTI_VIEW, split_args, N(split_args), tensor_list, 1,
   "(Tensor self, int n) -> Tensor[]")
OP(op_max, "tiny.max.dim", AOT_OP_REDUCTION, max_args, N(max_args), two_tensors, 2,
   "(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)")
OP(op_cat, "tiny.cat.default", AOT_OP_MOVEMENT, cat_args, N(cat_args), one_tensor, 1,
   "(Tensor[] tensors, int dim=0) -> Tensor")
OP(op_index, "tiny.index.Tensor", AOT_OP_MOVEMENT, index_args, N(index_args), one_tensor, 1,
   "(Tensor self, Tensor?[] indices) -> Tensor")
OP(op_call, "tiny.call", AOT_OP_REGION, call_args, N(call_args), tensor_list, 1, "(Graph body, ...) -> Tensor[]")
OP(op_print, "tiny.print", AOT_OP_EFFECT, print_args, N(print_args), NULL, 0, "(Tensor self, str text) -> ()")
OP(op_conv, "tiny.conv2d.default", AOT_OP_HEAVY, conv_args, N(conv_args), one_tensor, 1,
   "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0) -> Tensor")
OP(op_every, "tiny.every", 0, every_args, N(every_args), one_tensor, 1, "(...) -> Tensor")

static const aot_op_desc_t *const ops[] = {&op_add, &op_add_,  &op_norm, &op_rand,  &op_view, &op_split, &op_max,
                                           &op_cat, &op_index, &op_call, &op_print, &op_conv, &op_every};

static aot_status_t put_like(aot_prog_t *p, const aot_arg_t *a, const aot_type_sink_t *sink) {
  aot_type_t t;
  aot_value_t v = {a->kind == AOT_ARG_VALUES ? a->u.ids[0] : (uint32_t)a->u.i};
  AOT_TRY(aoth_graph_value_type(p, v, &t));
  t.strides = NULL;
  t.offset = 0;
  return sink->put(sink, &t);
}

static aot_status_t refuse(aot_prog_t *p, const char *text) {
  aoth_report_node(p, aot_no_node(), AOT_SEVERITY_ERROR, "tiny.infer", NULL, "%s", text);
  return AOT_E_INVALID;
}

static aot_status_t infer_sized(const aot_arg_t *size, int32_t dtype, const aot_type_sink_t *sink) {
  aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = dtype, .rank = (int32_t)size->n, .sizes = size->u.ints};
  return sink->put(sink, &t);
}

static aot_status_t infer_cat(aot_prog_t *p, const aot_arg_t *args, const aot_type_sink_t *sink) {
  int64_t sizes[AOT_MAX_RANK], total = 0;
  aot_type_t t;
  if (!args[0].n) return refuse(p, "cat of nothing");
  for (uint32_t i = 0; i < args[0].n; i++) {
    aot_value_t v = {args[0].u.ids[i]};
    AOT_TRY(aoth_graph_value_type(p, v, &t));
    if (args[1].u.i < 0 || args[1].u.i >= t.rank) return refuse(p, "cat has no such dimension");
    AOT_TRY(aoth_edit_dim_make(p, AOT_EXPR_ADD, total, t.sizes[args[1].u.i], 0, &total));
  }
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[args[1].u.i] = total;
  t.sizes = sizes;
  t.strides = NULL;
  return sink->put(sink, &t);
}

static aot_status_t tiny_infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *p, uint32_t local,
                               const aot_arg_t *args, uint32_t n_args, const aot_type_sink_t *sink) {
  const aot_op_desc_t *d = ops[local];
  (void)o;
  (void)ctx;
  if (d == &op_rand) return infer_sized(&args[0], args[1].kind == AOT_ARG_DTYPE ? (int32_t)args[1].u.i : AOT_F32, sink);
  if (d == &op_cat) return infer_cat(p, args, sink);
  if (d == &op_call) return refuse(p, "the results of a region must be declared");
  if (d == &op_view) {
    aot_type_t t;
    aot_value_t v = {(uint32_t)args[0].u.i};
    AOT_TRY(aoth_graph_value_type(p, v, &t));
    return infer_sized(&args[1], t.dtype, sink);
  }
  uint32_t n = d == &op_split ? (uint32_t)args[1].u.i : d->n_results;
  if (n > 64) return refuse(p, "too many pieces");
  if (n_args && args[0].kind != AOT_ARG_VALUE) return refuse(p, "the first argument must be a tensor");
  for (uint32_t i = 0; i < n; i++) AOT_TRY(put_like(p, &args[0], sink));
  return AOT_OK;
}

/* add(a, b, alpha) -> add(b, a): enough to see that a decomposition reaches its opset. */
static aot_status_t tiny_decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *p, uint32_t local, aot_node_t node,
                                   aot_value_t *out) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  (void)o;
  (void)ctx;
  if (ops[local] != &op_add) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(aoth_graph_node_info(p, node, &info));
  const aot_arg_t args[2] = {info.args[1], info.args[0]};
  aot_node_spec_t s = {.struct_size = sizeof s, .op = info.op, .n_args = 2, .args = args, .origin = aot_no_origin()};
  AOT_TRY(aoth_edit_node_create(p, info.graph, &s, node, &made));
  AOT_TRY(aoth_graph_node_info(p, made, &info));
  out[0] = info.first_result;
  return AOT_OK;
}

const aot_opset_t *tiny_opset(void) {
  static const aot_opset_t opset = {
      .head = {.struct_size = sizeof opset},
      .ops = ops,
      .n_ops = N(ops),
      .infer = tiny_infer,
      .decompose = tiny_decompose,
  };
  return &opset;
}

/* ---- world ---- */
void world_init(fixture_t *w) {
  memset(w, 0, sizeof *w);
  w->ops = aoth_ops_create();
  w->session = kit_arena_create();
  w->scratch = kit_arena_create();
  w->sink = aoth_sink_create(NULL);
  assert_int_equal(aoth_ops_add(w->ops, tiny_opset(), "tiny", w->sink), AOT_OK);
  w->ctx.sink = w->sink;
  w->ctx.session = w->session;
  w->ctx.scratch = w->scratch;
  w->p = aoth_prog_create(w->ops, &w->ctx);
  w->ctx.prog = w->p;
  assert_non_null(w->p);
}

void world_deinit(fixture_t *w) {
  aoth_prog_destroy(w->p);
  aoth_ops_destroy(w->ops);
  aoth_sink_destroy(w->sink);
  kit_arena_destroy(w->session);
  kit_arena_destroy(w->scratch);
}

void world_reset(fixture_t *w) {
  aoth_prog_destroy(w->p);
  aoth_sink_destroy(w->sink);
  w->ctx.sink = w->sink = aoth_sink_create(NULL);
  w->ctx.n_diags = 0;
  w->ctx.prog = w->p = aoth_prog_create(w->ops, &w->ctx);
}

aot_status_t world_parse(fixture_t *w, const char *text) { return aoth_parse(w->p, "test.ir", text, strlen(text)); }

char *world_print(fixture_t *w) {
  kit_text_t t = {0};
  aoth_print(w->p, &t);
  assert_false(t.failed);
  return t.data;
}

aot_op_t tiny_op(fixture_t *w, const char *name) {
  aot_op_t op = aoth_ops_find(w->ops, aot_str(name));
  assert_int_not_equal(op.id, AOT_NO_ID);
  return op;
}

aot_type_t f32_type(uint32_t rank, const int64_t *sizes) {
  aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = (int32_t)rank, .sizes = sizes};
  return t;
}
