/* A vendor's backend of 18 operators: kernels in plain C, everything else left to the backend that stands behind it.
 *
 * It takes nodes of float32 whose sizes are numbers, and refuses all others with a reason; `aothost` then gives it the
 * largest parts of a program that it can run (stage assign). A part comes as a graph like any other. The artifact is
 * the program's snapshot; every value has its place in the arena, and outputs are copied out when all nodes have run.
 * Read it from the bottom: descriptor, create, query, compile, load, bind, submit, run. */
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/coverage.h>
#include <aot/host_backend.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ID "example.npu"
#define HELP "runs 18 operators of float32 with kernels of its own"
#define ALIGNMENT 64u

/* ---- kernels ---- */

typedef struct tensor {
  float *data; /* of the first element */
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
} tensor_t;

/* One node: operands and numbers by argument; a result that is dense. */
typedef struct call {
  tensor_t in[3];
  int is_tensor[3];
  double number[3];
  tensor_t out;
} call_t;

typedef double (*scalar_fn)(double a, double b, double s);
static double add(double a, double b, double s) { return a + s * b; }
static double sub(double a, double b, double s) { return a - s * b; }
static double mul(double a, double b, double s) { return (void)s, a * b; }
static double quotient(double a, double b, double s) { return (void)s, a / b; }
static double neg(double a, double b, double s) { return (void)b, (void)s, -a; }
static double exponential(double a, double b, double s) { return (void)b, (void)s, exp(a); }
static double root(double a, double b, double s) { return (void)b, (void)s, sqrt(a); }
static double hyperbolic(double a, double b, double s) { return (void)b, (void)s, tanh(a); }
static double sigmoid(double a, double b, double s) { return (void)b, (void)s, 1 / (1 + exp(-a)); }
static double relu(double a, double b, double s) { return (void)b, (void)s, a < 0 ? 0 : a; }
static double gelu(double a, double b, double s) {
  return (void)b, (void)s, 0.5 * a * (1 + erf(a * 0.70710678118654752440));
}

static int64_t count(const tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

/* The element of `t` at the place of the i-th of `out`; sizes of 1 are repeated. */
static float *element(const tensor_t *t, const tensor_t *out, int64_t i) {
  int64_t at = 0;
  for (int32_t d = out->rank - 1, k = t->rank - 1; k >= 0; d--, k--) {
    if (t->sizes[k] != 1) at += i % out->sizes[d] * t->strides[k];
    i /= out->sizes[d];
  }
  return t->data + at;
}

static void elementwise(const call_t *c, scalar_fn fn) {
  for (int64_t i = 0, n = count(&c->out); i < n; i++) {
    const double a = c->is_tensor[0] ? *element(&c->in[0], &c->out, i) : c->number[0];
    const double b = c->is_tensor[1] ? *element(&c->in[1], &c->out, i) : c->number[1];
    c->out.data[i] = (float)fn(a, b, c->number[2]);
  }
}

/* out[i, j] = bias[j] + the sum over k of a[i, k] b[k, j] */
static void product(const float *a, const float *b, const tensor_t *bias, float *out, const int64_t n[3],
                    const int64_t strides[4]) {
  for (int64_t i = 0; i < n[0]; i++)
    for (int64_t j = 0; j < n[2]; j++) {
      double sum = bias ? bias->data[j * bias->strides[0]] : 0;
      for (int64_t k = 0; k < n[1]; k++)
        sum += (double)a[i * strides[0] + k * strides[1]] * b[k * strides[2] + j * strides[3]];
      out[i * n[2] + j] = (float)sum;
    }
}

static void mm(const call_t *c, scalar_fn fn) {
  const tensor_t *a = &c->in[0], *b = &c->in[1];
  (void)fn;
  product(a->data, b->data, NULL, c->out.data, (int64_t[]){a->sizes[0], a->sizes[1], b->sizes[1]},
          (int64_t[]){a->strides[0], a->strides[1], b->strides[0], b->strides[1]});
}

static void bmm(const call_t *c, scalar_fn fn) {
  const tensor_t *a = &c->in[0], *b = &c->in[1];
  (void)fn;
  for (int64_t i = 0; i < a->sizes[0]; i++)
    product(a->data + i * a->strides[0], b->data + i * b->strides[0], NULL, c->out.data + i * a->sizes[1] * b->sizes[2],
            (int64_t[]){a->sizes[1], a->sizes[2], b->sizes[2]},
            (int64_t[]){a->strides[1], a->strides[2], b->strides[1], b->strides[2]});
}

/* One row of the input at a time, wherever it lies. */
static void linear(const call_t *c, scalar_fn fn) {
  const tensor_t *x = &c->in[0], *w = &c->in[1];
  tensor_t rows = *x;
  const int32_t last = x->rank - 1;
  (void)fn;
  rows.sizes[last] = 1;
  for (int64_t i = 0, n = count(&rows); i < n; i++)
    product(element(&rows, &rows, i), w->data, c->is_tensor[2] ? &c->in[2] : NULL, c->out.data + i * w->sizes[0],
            (int64_t[]){1, x->sizes[last], w->sizes[0]},
            (int64_t[]){0, x->strides[last], w->strides[1], w->strides[0]});
}

static void turn(const call_t *c, int32_t a, int32_t b) {
  tensor_t t = c->in[0];
  for (int64_t i = 0, n = count(&c->out); i < n; i++) {
    int64_t rest = i, at = 0;
    for (int32_t d = t.rank - 1; d >= 0; d--) {
      at += rest % c->out.sizes[d] * t.strides[d == a ? b : d == b ? a : d];
      rest /= c->out.sizes[d];
    }
    c->out.data[i] = t.data[at];
  }
}

static void t(const call_t *c, scalar_fn fn) {
  (void)fn;
  turn(c, 0, c->in[0].rank - 1); /* of a vector: itself */
}

static void transpose(const call_t *c, scalar_fn fn) {
  const int32_t rank = c->in[0].rank, a = (int32_t)c->number[1], b = (int32_t)c->number[2];
  (void)fn;
  turn(c, a < 0 ? a + rank : a, b < 0 ? b + rank : b);
}

static const struct row {
  const char *op;
  void (*run)(const call_t *c, scalar_fn fn);
  scalar_fn fn;
} rows[] = {
    {"aten.add.Tensor", elementwise, add},
    {"aten.sub.Tensor", elementwise, sub},
    {"aten.mul.Tensor", elementwise, mul},
    {"aten.div.Tensor", elementwise, quotient},
    {"aten.add.Scalar", elementwise, add},
    {"aten.mul.Scalar", elementwise, mul},
    {"aten.neg.default", elementwise, neg},
    {"aten.exp.default", elementwise, exponential},
    {"aten.sqrt.default", elementwise, root},
    {"aten.tanh.default", elementwise, hyperbolic},
    {"aten.sigmoid.default", elementwise, sigmoid},
    {"aten.relu.default", elementwise, relu},
    {"aten.gelu.default", elementwise, gelu},
    {"aten.mm.default", mm, NULL},
    {"aten.bmm.default", bmm, NULL},
    {"aten.linear.default", linear, NULL},
    {"aten.t.default", t, NULL},
    {"aten.transpose.int", transpose, NULL},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const struct row *find_row(aot_str_t op) {
  for (int i = 0; i < N_ROWS; i++)
    if (aot_str_eq(op, aot_str(rows[i].op))) return &rows[i];
  return NULL;
}

/* ---- the unit ---- */

typedef struct unit {
  aot_backend_t table;
  aot_host_t host;
  aot_str_t names[N_ROWS];
  aot_ext_coverage_t coverage;
} unit_t;

static aot_status_t fail(const unit_t *u, aot_ctx_t *ctx, aot_status_t status, const char *message) {
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = AOT_SEVERITY_ERROR,
                        .code = AOT_STR_INIT(ID ".failed"),
                        .message = aot_str(message),
                        .node = aot_no_node(),
                        .value = aot_no_value()};
  u->host.diag(&u->host, ctx, &d);
  return status;
}

/* ---- query: which nodes, and why not the others ---- */

static int is_plain(const unit_t *u, aot_prog_t *prog, uint32_t value) {
  aot_type_t type;
  if (value == AOT_NO_ID || u->host.graph->value_type(prog, (aot_value_t){value}, &type) != AOT_OK) return 0;
  if (type.kind != AOT_TYPE_TENSOR || type.dtype != AOT_F32) return 0;
  for (int32_t d = 0; d < type.rank; d++)
    if (AOT_DIM_IS_SYM(type.sizes[d]) || AOT_DIM_IS_SYM(type.strides[d])) return 0;
  return !AOT_DIM_IS_SYM(type.offset);
}

static const char *refusal(const unit_t *u, aot_prog_t *prog, const aot_node_info_t *node) {
  const struct row *row = find_row(u->host.graph->op_desc(prog, node->op)->name);
  if (!row) return "it has no kernel for this operator";
  for (uint32_t i = 0; i < node->n_operands; i++)
    if (!is_plain(u, prog, node->operands[i])) return "it takes tensors of float32 whose sizes are numbers";
  if (node->n_results != 1 || !is_plain(u, prog, node->first_result.id))
    return "it makes tensors of float32 whose sizes are numbers";
  for (uint32_t i = 0; i < node->n_args; i++) {
    const aot_arg_t *a = &node->args[i];
    if (a->kind == AOT_ARG_STR && row->fn == gelu && !aot_str_eq((aot_str_t){a->u.chars, a->n}, aot_str("none")))
      return "it knows the exact gelu only";
    if (a->kind == AOT_ARG_INT && AOT_DIM_IS_SYM(a->u.i)) return "it takes numbers that are known";
  }
  return NULL;
}

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const unit_t *u = b->head.self;
  const aot_graph_api_t *g = u->host.graph;
  (void)ctx;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t n = g->first(prog, (aot_graph_t){i}); n.id != AOT_NO_ID; n = g->next(prog, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(g->node_info(prog, n, &info));
      const char *why = refusal(u, prog, &info);
      const aot_verdict_t v = {.struct_size = sizeof v, .accepted = !why, .node = n, .reason = aot_str(why)};
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const unit_t *u = b->head.self;
  const aot_snapshot_t *s;
  (void)ctx;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  return sink->write(sink, s, s->nbytes);
}

/* ---- the executable ---- */

typedef struct exe {
  aot_exe_t table;
  const unit_t *unit;
  const aot_device_t *device;
  const aot_ext_host_work_t *work;
  aot_snapshot_t *s;
} exe_t;

struct aot_bound {
  const exe_t *exe;
  const aot_snap_graph_t *graph;
  aot_binding_t binding;
  float **data; /* by value row of the graph's nodes: where it lies in the arena */
};

/* A value as its type says; dense where it is this backend's own. */
static tensor_t typed(const exe_t *x, uint32_t row, float *data) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(x->s, aot_snap_value_t, values) + row;
  tensor_t out = {.data = data, .rank = v->rank};
  int64_t stride = 1;
  memcpy(out.sizes, AOT_SNAP_ROWS(x->s, int64_t, ints) + v->dims, (size_t)v->rank * sizeof *out.sizes);
  for (int32_t d = v->rank - 1; d >= 0; d--) {
    out.strides[d] = stride;
    stride *= out.sizes[d];
  }
  return out;
}

static tensor_t given(const aot_tensor_t *from) {
  tensor_t out = {.data = (float *)from->data + from->offset, .rank = from->rank};
  for (int32_t d = 0; d < from->rank; d++) {
    out.sizes[d] = from->sizes[d];
    out.strides[d] = from->strides[d];
  }
  return out;
}

static uint64_t nbytes_of(const tensor_t *t) {
  return ((uint64_t)count(t) * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Every result has a place, and so has every output: it is copied there before any is written. data: NULL, or filled
 * in. */
static uint64_t place_all(const exe_t *x, const aot_snap_graph_t *g, char *arena, float **data) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(x->s, aot_snap_node_t, nodes) + g->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(x->s, aot_snap_port_t, ports) + g->output_begin;
  uint64_t at = 0;
  for (uint32_t i = 0; i < g->n_nodes + g->n_outputs; i++) {
    const uint32_t row = i < g->n_nodes ? nodes[i].result_begin : outputs[i - g->n_nodes].value;
    if (row == AOT_NO_ID) continue;
    const tensor_t t = typed(x, row, NULL);
    if (data) data[i] = (float *)(void *)(arena + at);
    at += nbytes_of(&t);
  }
  return at;
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *at, aot_exe_plan_t *out) {
  const exe_t *x = e->head.self;
  const aot_snap_graph_t *g = aot_graph_of(x->s, at);
  if (!g) return fail(x->unit, ctx, AOT_E_RANGE, "there is no such graph");
  const aot_exe_plan_t full = {
      .struct_size = sizeof full, .arena = {.nbytes = place_all(x, g, NULL, NULL)}, .alignment = ALIGNMENT};
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *call) {
  (void)e;
  free(call->data);
  free(call);
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *binding, aot_bound_t **out) {
  const exe_t *x = e->head.self;
  const aot_snap_graph_t *g = aot_graph_of(x->s, &binding->graph);
  aot_bound_t *c = calloc(1, sizeof *c);
  if (!g || !c || !(c->data = calloc((size_t)g->n_nodes + g->n_outputs + 1, sizeof *c->data))) {
    free(c);
    return fail(x->unit, ctx, AOT_E_EXHAUSTED, "no memory to bind a call");
  }
  c->exe = x;
  c->graph = g;
  c->binding = *binding;
  place_all(x, g, (char *)(uintptr_t)binding->arena.address, c->data);
  *out = c;
  return AOT_OK;
}

/* A value of the graph: an input as it was bound, or a result in its place. */
static tensor_t value_of(const aot_bound_t *c, uint32_t row) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(c->exe->s, aot_snap_value_t, values) + row;
  if (v->def == AOT_NO_ID) return given(&c->binding.inputs[v->index]);
  return typed(c->exe, row, c->data[v->def - c->graph->node_begin]);
}

static void run_node(const aot_bound_t *c, uint32_t i) {
  const aot_snapshot_t *s = c->exe->s;
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + c->graph->node_begin + i;
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  const struct row *row = find_row(aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name));
  call_t call = {.out = typed(c->exe, node->result_begin, c->data[i])};
  for (uint32_t a = 0; a < node->n_args && a < 3; a++) {
    call.number[a] = (double)args[a].i;
    if (args[a].kind == AOT_ARG_FLOAT) memcpy(&call.number[a], &args[a].i, sizeof(double));
    call.is_tensor[a] = args[a].kind == AOT_ARG_VALUE;
    if (call.is_tensor[a]) call.in[a] = value_of(c, (uint32_t)args[a].i);
  }
  if (count(&call.out)) row->run(&call, row->fn);
}

/* Outputs may lie in the memory of inputs: all are read before any is written. */
static void write_outputs(const aot_bound_t *c) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(c->exe->s, aot_snap_port_t, ports) + c->graph->output_begin;
  for (int is_written = 0; is_written < 2; is_written++)
    for (uint32_t o = 0; o < c->graph->n_outputs; o++) {
      if (ports[o].value == AOT_NO_ID) continue;
      const tensor_t kept = typed(c->exe, ports[o].value, c->data[c->graph->n_nodes + o]);
      const tensor_t from = is_written ? kept : value_of(c, ports[o].value),
                     to = is_written ? given(&c->binding.outputs[o]) : kept;
      for (int64_t i = 0, n = count(&kept); i < n; i++) *element(&to, &kept, i) = *element(&from, &kept, i);
    }
}

static aot_status_t run(void *self, aot_status_t before) {
  const aot_bound_t *c = self;
  if (before != AOT_OK) return before;
  for (uint32_t i = 0; i < c->graph->n_nodes; i++) run_node(c, i);
  write_outputs(c);
  return AOT_OK;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s) {
  const exe_t *x = e->head.self;
  return aot_submit_work(x->device, x->work, ctx, s, run, call);
}

static void exe_destroy(const aot_table_t *e) {
  exe_t *x = e->self;
  free(x->s);
  free(x);
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  const unit_t *u = b->head.self;
  const aot_ext_host_work_t *work = aot_host_work(device);
  if (!work)
    return fail(u, ctx, AOT_E_UNIMPLEMENTED,
                "it computes on the CPU, and the device has no memory that the CPU computes on");
  exe_t *x = calloc(1, sizeof *x);
  aot_snapshot_t *s = malloc((size_t)nbytes + 1);
  if (s) memcpy(s, bytes, (size_t)nbytes);
  if (!x || !s || !aot_is_snapshot(bytes, nbytes)) {
    free(x);
    free(s);
    return fail(u, ctx, AOT_E_DATA_LOSS, "these bytes are no artifact of " ID);
  }
  *x = (exe_t){.unit = u, .device = device, .work = work, .s = s};
  x->table = (aot_exe_t){.head = {.struct_size = sizeof x->table, .self = x, .destroy = exe_destroy},
                         .plan = plan,
                         .bind = bind,
                         .submit = submit,
                         .unbind = unbind};
  *out = &x->table;
  return AOT_OK;
}

/* ---- the descriptor ---- */

static const void *get_ext(const aot_table_t *b, const char *id) {
  const unit_t *u = b->self;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &u->coverage : NULL;
}

static void destroy(const aot_table_t *b) { free(b->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) {
    free(u);
    return AOT_E_EXHAUSTED;
  }
  for (int i = 0; i < N_ROWS; i++) u->names[i] = aot_str(rows[i].op);
  u->coverage = (aot_ext_coverage_t){.struct_size = sizeof u->coverage, .ops = u->names, .n_ops = N_ROWS};
  u->table =
      (aot_backend_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
                      .query = query,
                      .compile = compile,
                      .load = load};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};
AOT_PLUGIN_ONE("backend/2", ID, "0.1.0", "example", "Apache-2.0", HELP, create, .contract = &contract);
