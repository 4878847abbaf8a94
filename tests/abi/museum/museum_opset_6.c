/* Museum, ABI 1.6: an opset. One operator, museum6::twice, with its shape, its derivative and what it decomposes into.
 *
 * And three with kernels: museum6::begin doubles its argument on a thread of its own and is done before it is,
 * museum6::end waits for that and lets it through, museum6::least fails where the first element is less than it may be:
 * then what was begun is settled. */
#include <aot/describe.h>
#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELP "museum6::twice, and kernels whose results come later"

#define N_JOBS 8

typedef struct job { /* dense floats */
  pthread_t thread;
  const float *from;
  float *to; /* NULL: nothing is under way */
  int64_t n;
} job_t;

typedef struct unit {
  aot_opset_t table;
  aot_host_t host;
  aot_derivative_t derivative;
  const aot_derivative_t *derivatives[1];
  aot_ext_derivatives_t ext;
  aot_kernel_t begin, end, least;
  const aot_kernel_t *kernels[3];
  aot_ext_kernels_t kernels_ext;
  pthread_mutex_t lock;
  job_t jobs[N_JOBS];
} unit_t;

static const aot_schema_arg_t tensor[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_op_desc_t twice = {
    .struct_size = sizeof twice,
    .flags = AOT_OP_POINTWISE,
    .name = AOT_STR_INIT("museum6.twice.default"),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .group = AOT_STR_INIT("pointwise"),
    .doc = AOT_STR_INIT("x + x"),
    .args = tensor,
    .results = tensor,
    .n_args = 1,
    .n_results = 1,
};
static const aot_schema_arg_t with_least[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR},
                                              {.name = AOT_STR_INIT("least"), .type = AOT_STYPE_FLOAT}};
#define OF_TENSOR(NAME, DOC)                                                                                           \
  {                                                                                                                    \
    .struct_size = sizeof(aot_op_desc_t), .flags = AOT_OP_NO_GRAD, .name = AOT_STR_INIT(NAME),                         \
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"), .group = AOT_STR_INIT("museum"), .doc = AOT_STR_INIT(DOC),         \
    .args = tensor, .results = tensor, .n_args = 1, .n_results = 1                                                     \
  }
static const aot_op_desc_t begin_op = OF_TENSOR("museum6.begin.default", "x + x, later");
static const aot_op_desc_t end_op = OF_TENSOR("museum6.end.default", "x, when it is there");
static const aot_op_desc_t least_op = {
    .struct_size = sizeof least_op,
    .flags = AOT_OP_NO_GRAD,
    .name = AOT_STR_INIT("museum6.least.default"),
    .schema = AOT_STR_INIT("(Tensor x, float least) -> Tensor"),
    .group = AOT_STR_INIT("museum"),
    .doc = AOT_STR_INIT("x, unless its first element is less"),
    .args = with_least,
    .results = tensor,
    .n_args = 2,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&twice, &begin_op, &end_op, &least_op};

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n_args, const aot_type_sink_t *sink) {
  const unit_t *u = o->head.self;
  aot_type_t t;
  (void)ctx, (void)local, (void)n_args;
  AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[0].u.i}, &t));
  t.strides = NULL;
  t.offset = 0;
  return sink->put(sink, &t);
}

static aot_status_t put(const unit_t *u, aot_prog_t *prog, aot_graph_t g, const char *op, const aot_arg_t *args,
                        uint32_t n, aot_node_t before, aot_value_t *out) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = u->host.graph->op_find(prog, aot_str(op)), .n_args = n, .args = args};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t node;
  AOT_TRY(u->host.edit->node_create(prog, g, &spec, before, &node));
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                              aot_value_t *out_values) {
  const unit_t *u = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)ctx;
  if (local != 0) return AOT_E_UNIMPLEMENTED; /* twice alone */
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_arg_t args[] = {info.args[0], info.args[0]};
  return put(u, prog, info.graph, "aten.add.Tensor", args, 2, node, out_values);
}

static aot_status_t put_derivative(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  const aot_arg_t arg = aot_arg_value(call->cotangents[0]);
  (void)ctx;
  if (!call->wanted[0]) return AOT_OK;
  return put(d->head.self, call->prog, call->graph, "museum6.twice.default", &arg, 1, aot_no_node(), &call->out[0]);
}

/* ---- kernels ---- */

static int64_t numel(const aot_tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    if (t->sizes[d] != 1 && t->strides[d] != n) return -1; /* not dense */
    n *= t->sizes[d];
  }
  return t->dtype == AOT_F32 ? n : -1;
}

static float *first(const aot_tensor_t *t) { return (float *)t->data + t->offset; }

static aot_status_t fail(const aot_kernel_call_t *c, aot_status_t status, const char *text) {
  snprintf(c->message, c->message_size, "%s", text);
  return status;
}

static void *work(void *arg) {
  const job_t *j = arg;
  const struct timespec pause = {0, 20 * 1000 * 1000};
  nanosleep(&pause, NULL);
  for (int64_t i = 0; i < j->n; i++) j->to[i] = j->from[i] + j->from[i];
  return NULL;
}

static aot_status_t run_begin(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  unit_t *u = k->head.self;
  const aot_tensor_t *x = c->args[0].u.tensor;
  aot_status_t status = AOT_E_EXHAUSTED;
  if (numel(x) < 0 || c->n_results != 1 || numel(&c->results[0]) != numel(x))
    return fail(c, AOT_E_INVALID, "takes a dense f32 tensor");
  pthread_mutex_lock(&u->lock);
  for (int i = 0; i < N_JOBS && status != AOT_OK; i++) {
    job_t *j = &u->jobs[i];
    if (j->to) continue;
    *j = (job_t){.from = first(x), .to = first(&c->results[0]), .n = numel(x)};
    if (pthread_create(&j->thread, NULL, work, j) == 0) status = AOT_OK;
    else j->to = NULL;
  }
  pthread_mutex_unlock(&u->lock);
  return status == AOT_OK ? AOT_OK : fail(c, status, "too much is under way");
}

/* Jobs that write there, or all: NULL. How many they were. */
static int wait_for(unit_t *u, const float *to) {
  int n = 0;
  pthread_mutex_lock(&u->lock);
  for (int i = 0; i < N_JOBS; i++) {
    if (!u->jobs[i].to || (to && u->jobs[i].to != to)) continue;
    pthread_join(u->jobs[i].thread, NULL);
    u->jobs[i].to = NULL;
    n++;
  }
  pthread_mutex_unlock(&u->lock);
  return n;
}

static aot_status_t run_end(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor;
  if (wait_for(k->head.self, first(x)) != 1) return fail(c, AOT_E_INVALID, "what it waits for was never begun");
  if (c->n_results && numel(&c->results[0]) != numel(x)) return fail(c, AOT_E_INVALID, "takes a dense f32 tensor");
  if (c->n_results) memcpy(first(&c->results[0]), first(x), (size_t)numel(x) * sizeof(float));
  return AOT_OK;
}

static aot_status_t run_least(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor;
  (void)k;
  if (numel(x) < 1 || numel(&c->results[0]) != numel(x)) return fail(c, AOT_E_INVALID, "takes a dense f32 tensor");
  if (first(x)[0] < c->args[1].u.f) return fail(c, AOT_E_RANGE, "the first element is less than it may be");
  memcpy(first(&c->results[0]), first(x), (size_t)numel(x) * sizeof(float));
  return AOT_OK;
}

static void settle(const aot_kernel_t *k) {
  fprintf(stderr, "museum: %d settled\n", wait_for(k->head.self, NULL)); /* the test looks for it */
}

static const void *get_ext(const aot_table_t *o, const char *id) {
  const unit_t *u = o->self;
  if (strcmp(id, AOT_EXT_KERNELS) == 0) return &u->kernels_ext;
  return strcmp(id, AOT_EXT_DERIVATIVE) == 0 ? &u->ext : NULL;
}

static void destroy(const aot_table_t *o) {
  unit_t *u = o->self;
  pthread_mutex_destroy(&u->lock);
  free(u);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->derivative = (aot_derivative_t){
      .head = {.struct_size = sizeof u->derivative, .self = u}, .op = twice.name, .covers = 1, .put = put_derivative};
  u->derivatives[0] = &u->derivative;
  u->ext = (aot_ext_derivatives_t){.struct_size = sizeof u->ext, .derivatives = u->derivatives, .n_derivatives = 1};
  pthread_mutex_init(&u->lock, NULL);
  u->begin = (aot_kernel_t){.head = {.struct_size = sizeof u->begin, .flags = AOT_KERNEL_STARTS, .self = u},
                            .op = begin_op.name,
                            .run = run_begin,
                            .settle = settle};
  u->end = (aot_kernel_t){
      .head = {.struct_size = sizeof u->end, .flags = AOT_KERNEL_PASSES, .self = u}, .op = end_op.name, .run = run_end};
  u->least = (aot_kernel_t){.head = {.struct_size = sizeof u->least, .self = u}, .op = least_op.name, .run = run_least};
  u->kernels[0] = &u->begin;
  u->kernels[1] = &u->end;
  u->kernels[2] = &u->least;
  u->kernels_ext = (aot_ext_kernels_t){.struct_size = sizeof u->kernels_ext, .kernels = u->kernels, .n_kernels = 3};
  u->table = (aot_opset_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
                           .ops = ops,
                           .n_ops = 4,
                           .infer = infer,
                           .decompose = decompose};
  *out_table = &u->table.head;
  return AOT_OK;
}

AOT_PLUGIN_OPSET("museum.opset-6", "6.0", "museum", "Apache-2.0", HELP, "museum6", create);
