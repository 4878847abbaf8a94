/* A plugin of opsets that each claim a namespace: two operators, x by and x *= by, with kernels, a functional form and
 * a derivative, of which one is wrong. */
#include <aot/describe.h>
#include <aot/edit.h>
#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCT, PRODUCT_WRITE, N_OPS };
typedef enum fault { KERNEL_WRITES, FORM_DIFFERS, DERIVATIVE_DIFFERS, N_FAULTS } fault_t;

typedef struct wrong_opset {
  aot_opset_t table;
  aot_host_t host;
  fault_t fault;
  char names[N_OPS][64];
  aot_op_desc_t descs[N_OPS];
  const aot_op_desc_t *ops[N_OPS];
  aot_kernel_t kernel_rows[N_OPS];
  const aot_kernel_t *kernel_list[N_OPS];
  aot_ext_kernels_t kernels;
  aot_derivative_t derivative;
  const aot_derivative_t *derivative_list[1];
  aot_ext_derivatives_t derivatives;
} wrong_opset_t;

static const aot_schema_arg_t read_args[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR},
                                             {.name = AOT_STR_INIT("by"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t write_args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1},
    {.name = AOT_STR_INIT("by"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR}};

static double *element(const aot_tensor_t *t, int64_t i) {
  int64_t at = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    at += i % t->sizes[d] * t->strides[d];
    i /= t->sizes[d];
  }
  return (double *)t->data + at;
}

static aot_status_t multiply(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const wrong_opset_t *w = k->head.self;
  const aot_tensor_t *x = c->args[0].u.tensor, *by = c->args[1].u.tensor, *out = c->n_results ? &c->results[0] : x;
  int64_t n = 1;
  if (x->dtype != AOT_F64 || by->dtype != AOT_F64) {
    snprintf(c->message, c->message_size, "takes tensors of f64");
    return AOT_E_INVALID;
  }
  for (int32_t d = 0; d < x->rank; d++) n *= x->sizes[d];
  for (int64_t i = 0; i < n; i++) {
    *element(out, i) = *element(x, i) * *element(by, i);
    if (w->fault == KERNEL_WRITES) *element(by, i) = 0;
  }
  return AOT_OK;
}

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n_args, const aot_type_sink_t *sink) {
  const wrong_opset_t *w = o->head.self;
  aot_type_t type;
  (void)ctx, (void)n_args;
  if (local == PRODUCT_WRITE) return AOT_OK;
  AOT_TRY(w->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[0].u.i}, &type));
  type.strides = NULL;
  type.offset = 0;
  type.flags = 0;
  return sink->put(sink, &type);
}

static aot_status_t make(const wrong_opset_t *w, aot_prog_t *prog, aot_graph_t graph, aot_node_t before, const char *op,
                         const aot_arg_t *args, aot_value_t *out) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = w->host.graph->op_find(prog, aot_str(op)), .n_args = 2, .args = args};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(w->host.edit->node_create(prog, graph, &spec, before, &made));
  AOT_TRY(w->host.graph->node_info(prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t functional_form(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                    aot_node_t node, aot_value_t *out_results, aot_value_t *out_written) {
  const wrong_opset_t *w = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)ctx, (void)out_results;
  if (local != PRODUCT_WRITE) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(w->host.graph->node_info(prog, node, &info));
  const char *op = w->fault == FORM_DIFFERS ? "aten.add.Tensor" : "aten.mul.Tensor";
  return make(w, prog, info.graph, node, op, info.args, &out_written[0]);
}

/* Of x the cotangent by `by`, of `by` that by x. */
static aot_status_t derive(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  const wrong_opset_t *w = d->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)ctx;
  AOT_TRY(w->host.graph->node_info(call->prog, call->node, &info));
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t other = w->fault == DERIVATIVE_DIFFERS ? 0 : 1 - i;
    const aot_arg_t args[] = {aot_arg_value(call->cotangents[0]), info.args[other]};
    if (call->wanted[i])
      AOT_TRY(make(w, call->prog, call->graph, aot_no_node(), "aten.mul.Tensor", args, &call->out[i]));
  }
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *t, const char *id) {
  const wrong_opset_t *w = t->self;
  if (strcmp(id, AOT_EXT_KERNELS) == 0) return &w->kernels;
  return strcmp(id, AOT_EXT_DERIVATIVE) == 0 ? &w->derivatives : NULL;
}

static void destroy(const aot_table_t *t) { free(t->self); }

static const char *const names[N_FAULTS] = {"kernel_writes", "form_differs", "derivative_differs"};

static void describe(wrong_opset_t *w, uint32_t i, const char *op, const char *schema) {
  snprintf(w->names[i], sizeof w->names[i], "%s.%s.default", names[w->fault], op);
  w->descs[i] = (aot_op_desc_t){.struct_size = sizeof w->descs[i],
                                .flags = i == PRODUCT_WRITE ? AOT_OP_WRITES : 0,
                                .name = aot_str(w->names[i]),
                                .schema = aot_str(schema),
                                .args = i == PRODUCT_WRITE ? write_args : read_args,
                                .n_args = 2,
                                .results = results,
                                .n_results = i == PRODUCT_WRITE ? 0 : 1};
  w->ops[i] = &w->descs[i];
  w->kernel_rows[i] = (aot_kernel_t){
      .head = {.struct_size = sizeof w->kernel_rows[i], .self = w}, .op = w->descs[i].name, .run = multiply};
  w->kernel_list[i] = &w->kernel_rows[i];
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  wrong_opset_t *w = calloc(1, sizeof *w);
  (void)ctx, (void)opts;
  if (!w || aot_import(&w->host, sizeof w->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < N_FAULTS; i++)
    if (aot_str_eq(self->id, aot_str(names[i]))) w->fault = (fault_t)i;
  describe(w, PRODUCT, "product", "(Tensor x, Tensor by) -> Tensor");
  describe(w, PRODUCT_WRITE, "product_", "(Tensor(a!) x, Tensor by) -> ()");
  w->kernels = (aot_ext_kernels_t){.struct_size = sizeof w->kernels, .kernels = w->kernel_list, .n_kernels = N_OPS};
  w->derivative = (aot_derivative_t){.head = {.struct_size = sizeof w->derivative, .self = w},
                                     .op = w->descs[PRODUCT].name,
                                     .covers = 3,
                                     .put = derive};
  w->derivative_list[0] = &w->derivative;
  w->derivatives = (aot_ext_derivatives_t){
      .struct_size = sizeof w->derivatives, .derivatives = w->derivative_list, .n_derivatives = 1};
  w->table = (aot_opset_t){
      .head = {.struct_size = sizeof w->table, .self = w, .destroy = destroy, .get_ext = get_ext},
      .ops = w->ops,
      .n_ops = N_OPS,
      .infer = infer,
      .functional_form = functional_form,
  };
  *out_table = &w->table.head;
  return AOT_OK;
}

#define HELP "wrong in one way"
#define OPSET(id_) AOT_UNIT("opset/1", id_, "0.1", HELP, .create = create)
static const aot_unit_t unit_rows[N_FAULTS] = {OPSET("kernel_writes"), OPSET("form_differs"),
                                               OPSET("derivative_differs")};
static const aot_unit_t *const units[] = {&unit_rows[0], &unit_rows[1], &unit_rows[2]};
AOT_PLUGIN("wrong-opsets", "0.1", "aothost", "Apache-2.0", units,
           AOT_NOTE_OPSET("kernel_writes", HELP, "kernel_writes") "," AOT_NOTE_OPSET(
               "form_differs", HELP, "form_differs") "," AOT_NOTE_OPSET("derivative_differs", HELP,
                                                                        "derivative_differs"));
