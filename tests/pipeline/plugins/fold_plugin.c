/* A pass that folds constants: a product of two f32 constants becomes a constant leaf with an input, and the inputs of
 * constants that no node reads any more are erased. Option `graph` says which graph;
 * `how: foreign` adds the input of a constant leaf that it did not create, which the host refuses. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>

typedef struct fold {
  aot_pass_t table;
  aot_host_t host;
  int32_t kind; /* AOT_GRAPH_* */
  int is_foreign;
} fold_t;

static uint64_t count_elements(const aot_type_t *t) {
  uint64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= (uint64_t)t->sizes[d];
  return n;
}

/* The constant leaf of a value that is its input: f32, with contents. 0: the value is something else. */
static int constant_of(const fold_t *f, aot_prog_t *prog, aot_graph_t graph, uint32_t value, aot_leaf_info_t *out) {
  const aot_port_t *inputs = f->host.graph->inputs(prog, graph);
  const uint32_t n = f->host.graph->n_inputs(prog, graph);
  uint32_t i = 0;
  while (i < n && inputs[i].value.id != value) i++;
  if (i == n || inputs[i].role != AOT_ROLE_CONSTANT) return 0;
  *out = (aot_leaf_info_t){.struct_size = sizeof *out};
  return f->host.graph->leaf_info(prog, (aot_leaf_t){inputs[i].index}, out) == AOT_OK && out->data &&
         out->type.dtype == AOT_F32 && out->nbytes == count_elements(&out->type) * sizeof(float);
}

static aot_status_t add_product(const fold_t *f, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                const aot_leaf_info_t *a, const aot_leaf_info_t *b, aot_value_t *out) {
  static const aot_str_t name = AOT_STR_INIT("folded");
  const float *x = a->data, *y = b->data;
  float *data = f->host.alloc(&f->host, ctx, AOT_ARENA_GRAPH, sizeof *data, a->nbytes);
  aot_leaf_t made;
  if (!data) return AOT_E_EXHAUSTED;
  for (uint64_t i = 0; i < a->nbytes / sizeof *data; i++) data[i] = x[i] * y[i];
  const aot_leaf_info_t leaf = {.struct_size = sizeof leaf,
                                .role = AOT_ROLE_CONSTANT,
                                .n_names = 1,
                                .names = &name,
                                .type = a->type,
                                .data = data,
                                .nbytes = a->nbytes};
  AOT_TRY(f->host.edit->leaf_create(prog, &leaf, &made));
  return f->host.edit->input_add(prog, graph, AOT_ROLE_CONSTANT, made.id, &a->type, name, out);
}

static aot_status_t fold_nodes(const fold_t *f, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph) {
  const aot_op_t mul = f->host.graph->op_find(prog, aot_str("aten.mul.Tensor"));
  for (aot_node_t k = f->host.graph->first(prog, graph), next; k.id != AOT_NO_ID; k = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_leaf_info_t a, b;
    aot_value_t made;
    next = f->host.graph->next(prog, k);
    AOT_TRY(f->host.graph->node_info(prog, k, &info));
    if (info.op.id != mul.id || !constant_of(f, prog, graph, info.operands[0], &a) ||
        !constant_of(f, prog, graph, info.operands[1], &b) || a.nbytes != b.nbytes)
      continue;
    const aot_value_t old = info.first_result;
    AOT_TRY(add_product(f, ctx, prog, graph, &a, &b, &made));
    AOT_TRY(f->host.edit->uses_replace(prog, old, made));
    AOT_TRY(f->host.edit->node_erase(prog, k));
  }
  return AOT_OK;
}

static aot_status_t erase_unread(const fold_t *f, aot_prog_t *prog, aot_graph_t graph) {
  for (uint32_t i = f->host.graph->n_inputs(prog, graph); i-- > 0;) {
    const aot_port_t port = f->host.graph->inputs(prog, graph)[i];
    if (port.role == AOT_ROLE_CONSTANT && f->host.graph->n_uses(prog, port.value) == 0)
      AOT_TRY(f->host.edit->input_erase(prog, graph, i));
  }
  return AOT_OK;
}

/* The input of a constant is erased and added again at the end: for the host, an input that no stage may add. */
static aot_status_t move_first_constant(const fold_t *f, aot_prog_t *prog, aot_graph_t graph) {
  for (uint32_t i = 0; i < f->host.graph->n_inputs(prog, graph); i++) {
    const aot_port_t port = f->host.graph->inputs(prog, graph)[i];
    aot_type_t type;
    aot_value_t made;
    if (port.role != AOT_ROLE_CONSTANT) continue;
    AOT_TRY(f->host.graph->value_type(prog, port.value, &type));
    AOT_TRY(f->host.edit->input_add(prog, graph, port.role, port.index, &type, aot_str("moved"), &made));
    AOT_TRY(f->host.edit->uses_replace(prog, port.value, made));
    return f->host.edit->input_erase(prog, graph, i);
  }
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const fold_t *f = p->head.self;
  const aot_graph_t graph = f->host.graph->graph_find(prog, f->kind);
  if (graph.id == AOT_NO_ID) return AOT_OK;
  if (f->is_foreign) return move_first_constant(f, prog, graph);
  AOT_TRY(fold_nodes(f, ctx, prog, graph));
  return erase_unread(f, prog, graph);
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out) {
  fold_t *f = calloc(1, sizeof *f);
  (void)self, (void)ctx;
  if (!f) return AOT_E_EXHAUSTED;
  if (aot_import(&f->host, sizeof f->host, host) != AOT_OK) {
    free(f);
    return AOT_E_TOO_NEW;
  }
  f->kind = aot_str_eq(opts->values[0].s, aot_str("joint")) ? AOT_GRAPH_JOINT : AOT_GRAPH_FORWARD;
  f->is_foreign = aot_str_eq(opts->values[1].s, aot_str("foreign"));
  f->table = (aot_pass_t){.head = {.struct_size = sizeof f->table, .self = f, .destroy = destroy}, .run = run};
  *out = &f->table.head;
  return AOT_OK;
}

static const aot_str_t graphs[] = {AOT_STR_INIT("forward"), AOT_STR_INIT("joint")};
static const aot_str_t hows[] = {AOT_STR_INIT("right"), AOT_STR_INIT("foreign")};
static const aot_option_t options[] = {{.struct_size = sizeof(aot_option_t),
                                        .kind = AOT_OPT_ENUM,
                                        .name = AOT_STR_INIT("graph"),
                                        .help = AOT_STR_INIT("the graph to fold constants in"),
                                        .choices = graphs,
                                        .n_choices = 2,
                                        .preset = {.s = AOT_STR_INIT("forward")}},
                                       {.struct_size = sizeof(aot_option_t),
                                        .kind = AOT_OPT_ENUM,
                                        .name = AOT_STR_INIT("how"),
                                        .help = AOT_STR_INIT("whether the edits are allowed"),
                                        .choices = hows,
                                        .n_choices = 2,
                                        .preset = {.s = AOT_STR_INIT("right")}}};
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL)};
static const aot_unit_t unit =
    AOT_UNIT("pass/1", "fold-constants", "1", "folds products of constants", .options = options, .n_options = 2,
             .option_stride = sizeof *options, .contract = &contract, .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN("fold", "1", "tests", "Apache-2.0", units,
           AOT_NOTE_UNIT("pass/1", "fold-constants", "folds products of constants"));
