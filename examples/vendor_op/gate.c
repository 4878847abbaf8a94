/* A vendor's operator with all that belongs to it, as one plugin built with the installed headers alone:
 *
 *     example_gate::gate_(Tensor(a!) x, Tensor by) -> ()      x *= sigmoid(by): what models call; it writes x
 *     example_gate::gate(Tensor x, Tensor by) -> Tensor       its functional form
 *     example_gate::gate_backward(Tensor grad, Tensor x, Tensor by) -> (Tensor, Tensor)     its derivative
 *
 * The stage functionalize puts `gate` in the place of `gate_`, autograd asks for the derivative, backends for the
 * kernels.
 *
 *     cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -I PREFIX/include gate.c -o gate.so -lm
 *
 * Read it from the bottom: the entry, the unit and its table, then what each operator is and does. */
#include <aot/describe.h>
#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ID "example.gate"
#define HELP "example_gate::gate_: written argument, functional form, kernel and derivative"

enum { GATE_WRITE, GATE, GATE_BACKWARD, N_OPS };

/* ---- what they are ---- */

#define TENSOR(text)                                                                                                   \
  { .name = AOT_STR_INIT(text), .type = AOT_STYPE_TENSOR }
static const aot_schema_arg_t write_args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}, TENSOR("by")};
static const aot_schema_arg_t gate_args[] = {TENSOR("x"), TENSOR("by")};
static const aot_schema_arg_t backward_args[] = {TENSOR("grad"), TENSOR("x"), TENSOR("by")};
static const aot_schema_arg_t results[] = {TENSOR(""), TENSOR("")};

static const aot_op_desc_t descs[N_OPS] = {
    [GATE_WRITE] = {.struct_size = sizeof(aot_op_desc_t),
                    .flags = AOT_OP_WRITES,
                    .name = AOT_STR_INIT("example_gate.gate_.default"),
                    .schema = AOT_STR_INIT("(Tensor(a!) x, Tensor by) -> ()"),
                    .group = AOT_STR_INIT("example_gate"),
                    .doc = AOT_STR_INIT("x *= sigmoid(by)"),
                    .args = write_args,
                    .n_args = 2},
    [GATE] = {.struct_size = sizeof(aot_op_desc_t),
              .name = AOT_STR_INIT("example_gate.gate.default"),
              .schema = AOT_STR_INIT("(Tensor x, Tensor by) -> Tensor"),
              .group = AOT_STR_INIT("example_gate"),
              .doc = AOT_STR_INIT("x sigmoid(by)"),
              .args = gate_args,
              .n_args = 2,
              .results = results,
              .n_results = 1},
    [GATE_BACKWARD] = {.struct_size = sizeof(aot_op_desc_t),
                       .name = AOT_STR_INIT("example_gate.gate_backward.default"),
                       .schema = AOT_STR_INIT("(Tensor grad, Tensor x, Tensor by) -> (Tensor, Tensor)"),
                       .group = AOT_STR_INIT("example_gate"),
                       .doc = AOT_STR_INIT("gradients of x and by"),
                       .args = backward_args,
                       .n_args = 3,
                       .results = results,
                       .n_results = 2},
};
static const aot_op_desc_t *const ops[N_OPS] = {&descs[GATE_WRITE], &descs[GATE], &descs[GATE_BACKWARD]};

/* ---- kernels: tensors of one shape, as they lie ---- */

static int64_t count(const aot_tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

static float *element(const aot_tensor_t *t, int64_t i) {
  int64_t at = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    at += i % t->sizes[d] * t->strides[d];
    i /= t->sizes[d];
  }
  return (float *)t->data + at;
}

static aot_status_t check(const aot_kernel_call_t *c) {
  const aot_tensor_t *first = c->args[0].u.tensor;
  for (uint32_t i = 0; i < c->n_args; i++) {
    const aot_tensor_t *t = c->args[i].u.tensor;
    if (t->dtype == AOT_F32 && t->rank == first->rank &&
        (t->rank == 0 || memcmp(t->sizes, first->sizes, (size_t)t->rank * sizeof *t->sizes) == 0))
      continue;
    snprintf(c->message, c->message_size, "takes f32 tensors of one shape");
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static aot_status_t gate(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  AOT_TRY(check(c));
  for (int64_t i = 0, n = count(&c->results[0]); i < n; i++)
    *element(&c->results[0], i) = *element(c->args[0].u.tensor, i) * sigmoid(*element(c->args[1].u.tensor, i));
  return AOT_OK;
}

static aot_status_t gate_backward(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  AOT_TRY(check(c));
  for (int64_t i = 0, n = count(&c->results[0]); i < n; i++) {
    const float grad = *element(c->args[0].u.tensor, i), x = *element(c->args[1].u.tensor, i);
    const float s = sigmoid(*element(c->args[2].u.tensor, i));
    *element(&c->results[0], i) = grad * s;
    *element(&c->results[1], i) = grad * x * s * (1 - s);
  }
  return AOT_OK;
}

static const aot_kernel_t gate_kernel = {
    .head = {.struct_size = sizeof(aot_kernel_t)}, .op = AOT_STR_INIT("example_gate.gate.default"), .run = gate};
static const aot_kernel_t backward_kernel = {.head = {.struct_size = sizeof(aot_kernel_t)},
                                             .op = AOT_STR_INIT("example_gate.gate_backward.default"),
                                             .run = gate_backward};
static const aot_kernel_t *const kernel_rows[] = {&gate_kernel, &backward_kernel};
static const aot_ext_kernels_t kernels = {.struct_size = sizeof kernels, .kernels = kernel_rows, .n_kernels = 2};

/* ---- the unit: an opset ---- */

typedef struct unit {
  aot_opset_t table;
  aot_host_t host;
  aot_derivative_t derivative;
  const aot_derivative_t *rows[1];
  aot_ext_derivatives_t derivatives;
} unit_t;

/* As x lies, but dense: `gate` has one result, `gate_backward` one for x and one for by. */
static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n_args, const aot_type_sink_t *sink) {
  const unit_t *u = o->head.self;
  (void)ctx, (void)n_args;
  for (uint32_t r = 0; r < descs[local].n_results; r++) {
    aot_type_t t;
    AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[r + (local == GATE_BACKWARD)].u.i}, &t));
    t.strides = NULL;
    t.offset = 0;
    t.flags = 0;
    AOT_TRY(sink->put(sink, &t));
  }
  return AOT_OK;
}

/* A node of one of these operators; its first result. */
static aot_status_t make(const unit_t *u, aot_prog_t *prog, aot_graph_t graph, aot_node_t before, const char *op,
                         const aot_arg_t *args, uint32_t n_args, aot_value_t *out) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = u->host.graph->op_find(prog, aot_str(op)), .n_args = n_args, .args = args};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(u->host.edit->node_create(prog, graph, &spec, before, &made));
  AOT_TRY(u->host.graph->node_info(prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

/* gate_(x, by) -> the new value of x is gate(x, by). */
static aot_status_t functional_form(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                    aot_node_t node, aot_value_t *out_results, aot_value_t *out_written) {
  const unit_t *u = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)ctx, (void)out_results;
  if (local != GATE_WRITE) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_arg_t args[] = {info.args[0], info.args[1]};
  return make(u, prog, info.graph, node, "example_gate.gate.default", args, 2, &out_written[0]);
}

static aot_status_t derive(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  const unit_t *u = d->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t grads;
  (void)ctx;
  AOT_TRY(u->host.graph->node_info(call->prog, call->node, &info));
  const aot_arg_t args[] = {aot_arg_value(call->cotangents[0]), info.args[0], info.args[1]};
  AOT_TRY(make(u, call->prog, call->graph, aot_no_node(), "example_gate.gate_backward.default", args, 3, &grads));
  for (uint32_t i = 0; i < 2; i++)
    if (call->wanted[i]) call->out[i].id = grads.id + i;
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *o, const char *id) {
  const unit_t *u = o->self;
  if (strcmp(id, AOT_EXT_KERNELS) == 0) return &kernels;
  return strcmp(id, AOT_EXT_DERIVATIVE) == 0 ? &u->derivatives : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_opset_t){.head = {.struct_size = sizeof u->table, .self = u, .get_ext = get_ext},
                           .ops = ops,
                           .n_ops = N_OPS,
                           .infer = infer,
                           .functional_form = functional_form};
  u->derivative = (aot_derivative_t){
      .head = {.struct_size = sizeof u->derivative, .self = u}, .op = descs[GATE].name, .covers = 3, .put = derive};
  u->rows[0] = &u->derivative;
  u->derivatives =
      (aot_ext_derivatives_t){.struct_size = sizeof u->derivatives, .derivatives = u->rows, .n_derivatives = 1};
  *out_table = &u->table.head;
  return AOT_OK;
}

AOT_PLUGIN_OPSET(ID, "1.0.0", "example", "Apache-2.0", HELP, "example_gate", create);
