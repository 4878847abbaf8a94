/* The smallest backend that trains: eight operators on floats of any strides, computed one element at a time.
 *
 *     query     takes the eight operators in f32 and f64, says why of all others
 *     compile   the artifact is the program's snapshot
 *     load      on any device whose memory the CPU computes on
 *     plan      an arena in which every result of the graph has a place of its own
 *     bind      where each value of the graph lies
 *     submit    waits, one item of host work, signals
 *
 * Outputs are copied at the end of a run, when everything has been read: so an output of a step that lies in the memory
 * of an input (aot/graph.h, AOT_GRAPH_STEP) may be written. docs/BACKEND.md goes through it. */
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/coverage.h>
#include <aot/host_backend.h>
#include <stdlib.h>

#define ID "example.few-ops"
#define HELP "eight operators on floats, one element at a time"
#define ALIGN 64u /* of places in the arena, bytes */

typedef struct unit {
  aot_backend_t table;
  aot_host_t host;
} unit_t;

static aot_status_t tell(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code,
                         const char *text) {
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(code),
      .message = aot_str(text),
  };
  host->diag(host, ctx, &d);
  return status;
}

/* ---- the operators ---- */

static double add(double a, double b) { return a + b; }
static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double neg(double a, double b) { return (void)b, -a; }
static double same(double a, double b) { return (void)b, a; }

typedef struct op {
  aot_str_t name;
  uint32_t first, n; /* arguments that are operands: tensors or numbers */
  double (*of)(double a, double b);
  int sums; /* over all elements of its operand */
} op_t;

static const op_t ops[] = {
    {AOT_STR_INIT("aten.add.Tensor"), 0, 2, add, 0},        {AOT_STR_INIT("aten.sub.Tensor"), 0, 2, sub, 0},
    {AOT_STR_INIT("aten.mul.Tensor"), 0, 2, mul, 0},        {AOT_STR_INIT("aten.neg.default"), 0, 1, neg, 0},
    {AOT_STR_INIT("aten._to_copy.default"), 0, 1, same, 0}, {AOT_STR_INIT("aten.expand.default"), 0, 1, same, 0},
    {AOT_STR_INIT("aten.full.default"), 1, 1, same, 0},     {AOT_STR_INIT("aten.sum.default"), 0, 1, add, 1},
};
#define N_OPS (sizeof ops / sizeof *ops)

static const op_t *find_op(aot_str_t name) {
  for (size_t i = 0; i < N_OPS; i++)
    if (aot_str_eq(ops[i].name, name)) return &ops[i];
  return NULL;
}

static int is_float(const aot_snap_value_t *v) {
  return v->kind == AOT_TYPE_TENSOR && (v->dtype == AOT_F32 || v->dtype == AOT_F64);
}

/* NULL: the node is taken. */
static const char *refusal(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands) + node->operand_begin;
  const op_t *op = find_op(aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name));
  if (!op) return "it is none of the eight operators";
  if (s->symbols.count) return "the model has symbolic sizes; export it without";
  for (uint32_t i = 0; i < node->n_operands; i++)
    if (operands[i] == AOT_NO_ID || !is_float(&values[operands[i]])) return "an operand is no tensor of f32 or f64";
  for (uint32_t i = 0; i < node->n_results; i++)
    if (!is_float(&values[node->result_begin + i])) return "its result is neither f32 nor f64";
  for (uint32_t i = op->first; i < op->first + op->n; i++)
    if (args[i].kind == AOT_ARG_INT && AOT_DIM_IS_SYM(args[i].i)) return "a number is known only when it runs";
  if ((op->of == add || op->of == sub) && !op->sums && (args[2].kind != AOT_ARG_INT || args[2].i != 1))
    return "alpha is not 1";
  return NULL;
}

/* ---- query and compile ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const unit_t *u = b->head.self;
  const aot_snapshot_t *s;
  (void)ctx;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  for (uint32_t i = 1; i < s->nodes.count; i++) {
    const char *why = refusal(s, &nodes[i]);
    const aot_verdict_t v = {.struct_size = sizeof v, .accepted = !why, .node = {nodes[i].id}, .reason = aot_str(why)};
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

/* ---- executables ---- */

typedef struct exe {
  aot_exe_t table;
  aot_host_t host;
  const aot_device_t *device;
  const aot_ext_host_work_t *work;
  const aot_snapshot_t *s; /* a copy: the bytes that load is handed need not be aligned */
} exe_t;

struct aot_bound {
  const exe_t *exe;
  const aot_snap_graph_t *graph;
  const aot_tensor_t *outputs; /* borrowed until unbind */
  aot_tensor_t *held;          /* by output: a copy, where the output is an input; else data NULL */
  aot_tensor_t values[];       /* by values row of the snapshot */
};

/* A value as a row-major tensor at `*end` of the arena, which moves on. dims gets its strides. */
static aot_tensor_t place(const aot_snapshot_t *s, uint32_t value, char *arena, uint64_t *end, int64_t *strides) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(s, aot_snap_value_t, values) + value;
  aot_tensor_t t = {.data = arena + *end, .dtype = v->dtype, .rank = v->kind == AOT_TYPE_TENSOR ? v->rank : 0};
  t.sizes = AOT_SNAP_ROWS(s, int64_t, ints) + v->dims;
  t.strides = strides;
  t.nbytes = aot_dtype_size(v->dtype);
  for (int32_t d = t.rank; d-- > 0; t.nbytes *= (uint64_t)t.sizes[d])
    strides[d] = (int64_t)(t.nbytes / aot_dtype_size(v->dtype));
  *end += (t.nbytes + ALIGN - 1) / ALIGN * ALIGN;
  return t;
}

/* Where the results of the graph lie, and copies of inputs that it hands out again. values and held NULL: only how much
 * memory that is. */
static uint64_t lay_out(const aot_snapshot_t *s, const aot_snap_graph_t *g, char *arena, aot_tensor_t *values,
                        aot_tensor_t *held, int64_t *strides) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->output_begin;
  int64_t scratch[AOT_MAX_RANK];
  uint64_t end = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t v = nodes[i].result_begin; v < nodes[i].result_begin + nodes[i].n_results; v++) {
      const aot_tensor_t t = place(s, v, arena, &end, values ? strides : scratch);
      if (!values) continue;
      values[v] = t;
      strides += t.rank;
    }
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const uint32_t v = outputs[i].value;
    if (v == AOT_NO_ID || AOT_SNAP_ROWS(s, aot_snap_value_t, values)[v].def != AOT_NO_ID) continue;
    const aot_tensor_t t = place(s, v, arena, &end, values ? strides : scratch);
    if (!values) continue;
    held[i] = t;
    strides += t.rank;
  }
  return end;
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *at, aot_exe_plan_t *out) {
  const exe_t *x = e->head.self;
  const aot_snap_graph_t *g = aot_graph_of(x->s, at);
  aot_exe_plan_t mine = {.struct_size = sizeof mine, .alignment = ALIGN};
  if (!g) return tell(&x->host, ctx, AOT_E_NOT_FOUND, ID ".graph", "the program has no such graph");
  mine.arena.nbytes = lay_out(x->s, g, NULL, NULL, NULL, NULL);
  aot_export(out, &mine, sizeof mine);
  return AOT_OK;
}

/* Addresses are counted with, not followed: this is no work of a queue. */
static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  const exe_t *x = e->head.self;
  const aot_snapshot_t *s = x->s;
  const aot_snap_graph_t *g = aot_graph_of(s, &b->graph);
  if (!g || g->n_inputs != b->n_inputs || g->n_outputs != b->n_outputs)
    return tell(&x->host, ctx, AOT_E_INVALID, ID ".graph", "the program has no graph with these ports");
  const size_t n_tensors = (size_t)s->values.count + g->n_outputs;
  aot_bound_t *c = calloc(1, sizeof *c + n_tensors * (sizeof(aot_tensor_t) + AOT_MAX_RANK * sizeof(int64_t)));
  if (!c) return tell(&x->host, ctx, AOT_E_EXHAUSTED, ID ".memory", "no memory to bind a call");
  c->exe = x;
  c->graph = g;
  c->outputs = b->outputs;
  c->held = c->values + s->values.count;
  for (uint32_t i = 0; i < g->n_inputs; i++)
    c->values[AOT_SNAP_ROWS(s, aot_snap_port_t, ports)[g->input_begin + i].value] = b->inputs[i];
  lay_out(s, g, (char *)(uintptr_t)b->arena.address, c->values, c->held, (int64_t *)(void *)(c->values + n_tensors));
  *out = c;
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *c) {
  (void)e;
  free(c);
}

/* ---- a run ---- */

/* The element of t at a place of a larger shape, right-aligned: dimensions of size 1 are repeated. */
static char *element(const aot_tensor_t *t, const int64_t *index, int32_t rank) {
  int64_t at = t->offset;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] != 1) at += index[rank - t->rank + d] * t->strides[d];
  return (char *)t->data + at * (int64_t)aot_dtype_size(t->dtype);
}

static double read(const aot_tensor_t *t, const int64_t *index, int32_t rank) {
  const char *at = element(t, index, rank);
  return t->dtype == AOT_F64 ? *(const double *)(const void *)at : (double)*(const float *)(const void *)at;
}

static void write(const aot_tensor_t *t, const int64_t *index, int32_t rank, double value) {
  char *at = element(t, index, rank);
  if (t->dtype == AOT_F64) *(double *)(void *)at = value;
  else *(float *)(void *)at = (float)value;
}

static int is_empty(const aot_tensor_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] == 0) return 1;
  return 0;
}

/* The next place of a shape in row-major order; 0: there is none. */
static int next(int64_t *index, const aot_tensor_t *shape) {
  for (int32_t d = shape->rank; d-- > 0; index[d] = 0)
    if (++index[d] < shape->sizes[d]) return 1;
  return 0;
}

static void copy(const aot_tensor_t *to, const aot_tensor_t *from) {
  int64_t index[AOT_MAX_RANK] = {0};
  if (is_empty(to)) return;
  do memcpy(element(to, index, to->rank), element(from, index, to->rank), (size_t)aot_dtype_size(to->dtype));
  while (next(index, to));
}

static void run_node(const aot_snapshot_t *s, const aot_snap_node_t *node, const aot_tensor_t *values) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  const op_t *op = find_op(aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name));
  const aot_tensor_t *result = &values[node->result_begin], *operand[2] = {NULL, NULL};
  double number[2] = {0, 0}, sum = 0;
  for (uint32_t i = 0; i < op->n; i++) {
    const aot_snap_arg_t *a = &args[op->first + i];
    if (a->kind == AOT_ARG_VALUE) operand[i] = &values[a->i];
    else if (a->kind == AOT_ARG_FLOAT) memcpy(&number[i], &a->i, sizeof number[i]);
    else number[i] = (double)a->i;
  }
  const aot_tensor_t *shape = op->sums ? operand[0] : result;
  int64_t index[AOT_MAX_RANK] = {0};
  const int64_t first[AOT_MAX_RANK] = {0};
  if (!is_empty(shape)) do {
      for (uint32_t i = 0; i < op->n; i++)
        if (operand[i]) number[i] = read(operand[i], index, shape->rank);
      if (op->sums) sum = op->of(sum, number[0]);
      else write(result, index, shape->rank, op->of(number[0], number[1]));
    } while (next(index, shape));
  if (op->sums) write(result, first, 0, sum);
}

/* An item of the queue: here, and nowhere else, addresses of the device are pointers. */
static aot_status_t run(void *self, aot_status_t before) {
  const aot_bound_t *c = self;
  const aot_snapshot_t *s = c->exe->s;
  const aot_snap_graph_t *g = c->graph;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->output_begin;
  if (before != AOT_OK) return before;
  for (uint32_t i = 0; i < g->n_nodes; i++) run_node(s, &nodes[i], c->values);
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (c->held[i].data) copy(&c->held[i], &c->values[outputs[i].value]);
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (c->outputs[i].data) copy(&c->outputs[i], c->held[i].data ? &c->held[i] : &c->values[outputs[i].value]);
  return AOT_OK;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *what) {
  const exe_t *x = e->head.self;
  return aot_submit_work(x->device, x->work, ctx, what, run, c);
}

/* ---- load ---- */

static void exe_destroy(const aot_table_t *e) {
  exe_t *x = e->self;
  free((void *)(uintptr_t)x->s);
  free(x);
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  const unit_t *u = b->head.self;
  const aot_ext_host_work_t *work = aot_host_work(device);
  if (!work)
    return tell(&u->host, ctx, AOT_E_UNIMPLEMENTED, ID ".device", "the CPU cannot compute on the device's memory");
  if (!aot_is_snapshot(bytes, nbytes))
    return tell(&u->host, ctx, AOT_E_DATA_LOSS, ID ".artifact", "these bytes are no artifact of " ID);
  exe_t *x = calloc(1, sizeof *x);
  void *block = malloc((size_t)nbytes);
  if (!x || !block) {
    free(x);
    free(block);
    return tell(&u->host, ctx, AOT_E_EXHAUSTED, ID ".memory", "no memory for the executable");
  }
  x->s = memcpy(block, bytes, (size_t)nbytes);
  x->host = u->host;
  x->device = device;
  x->work = work;
  x->table = (aot_exe_t){
      .head = {.struct_size = sizeof x->table, .self = x, .destroy = exe_destroy},
      .plan = plan,
      .bind = bind,
      .submit = submit,
      .unbind = unbind,
  };
  *out = &x->table;
  return AOT_OK;
}

/* ---- the unit ---- */

static void destroy(const aot_table_t *b) { free(b->self); }

static const void *get_ext(const aot_table_t *b, const char *id) {
  static const aot_str_t names[N_OPS] = {
      AOT_STR_INIT("aten.add.Tensor"),   AOT_STR_INIT("aten.sub.Tensor"),       AOT_STR_INIT("aten.mul.Tensor"),
      AOT_STR_INIT("aten.neg.default"),  AOT_STR_INIT("aten._to_copy.default"), AOT_STR_INIT("aten.expand.default"),
      AOT_STR_INIT("aten.full.default"), AOT_STR_INIT("aten.sum.default"),
  };
  static const aot_ext_coverage_t coverage = {.struct_size = sizeof coverage, .ops = names, .n_ops = N_OPS};
  (void)b;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &coverage : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts, const aot_table_t **out) {
  unit_t *u = calloc(1, sizeof *u);
  (void)opts;
  if (!u) return tell(host, ctx, AOT_E_EXHAUSTED, ID ".memory", "no memory for the unit");
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_backend_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};

AOT_PLUGIN_ONE("backend/2", ID, "1.0", "example", "Apache-2.0", HELP, create, .contract = &contract);
