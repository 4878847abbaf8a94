/* The values of all operands of a model's forward graph: they become user outputs of the program in a child, which runs
 * it on the reference backend. */
#include <cli/verify/gradcheck.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdlib.h>
#include <trainer/trial/oracle.h>

static int is_float_tensor(aot_prog_t *p, aot_value_t v) {
  aot_type_t t;
  return v.id != AOT_NO_ID && aoth_graph_value_type(p, v, &t) == AOT_OK && t.kind == AOT_TYPE_TENSOR &&
         aot_dtype_is_float(t.dtype);
}

static void mark_inputs(aoth_gradcheck_t *g) {
  aot_prog_t *p = g->s->now.prog;
  const aot_port_t *in = aoth_graph_inputs(p, g->forward);
  for (uint32_t i = 0; i < aoth_graph_n_inputs(p, g->forward); i++) {
    aot_type_t t;
    if (!is_float_tensor(p, in[i].value) || aoth_graph_value_type(p, in[i].value, &t) != AOT_OK) continue;
    g->needs[in[i].value.id] = (t.flags & AOT_TYPE_REQUIRES_GRAD) != 0;
  }
}

/* A result carries a gradient if an operand does and the operator lets it through. */
static void mark_results(aoth_gradcheck_t *g, const aot_node_info_t *info) {
  aot_prog_t *p = g->s->now.prog;
  int any = 0;
  for (uint32_t i = 0; i < info->n_operands; i++) any |= info->operands[i] != AOT_NO_ID && g->needs[info->operands[i]];
  if (!any || aoth_graph_op_desc(p, info->op)->flags & AOT_OP_NO_GRAD || info->flags & AOT_NODE_NO_GRAD) return;
  for (uint32_t r = 0; r < info->n_results; r++)
    g->needs[info->first_result.id + r] = is_float_tensor(p, (aot_value_t){info->first_result.id + r}) != 0;
}

static void want_value(aoth_gradcheck_t *g, aot_value_t v) {
  aot_type_t t;
  if (v.id == AOT_NO_ID || g->key[v.id] != AOT_NO_INDEX) return;
  if (aoth_graph_value_type(g->s->now.prog, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) return;
  g->outputs[g->n_keys - g->n_own] = v;
  g->key[v.id] = g->n_keys++;
}

int aoth_gradcheck_has(const aoth_gradcheck_t *g, aot_node_t node) {
  aot_node_info_t info = {.struct_size = sizeof info};
  int in = 0, out = 0;
  if (aoth_graph_node_info(g->s->now.prog, node, &info) != AOT_OK) return 0;
  for (uint32_t i = 0; i < info.n_operands; i++) in |= info.operands[i] != AOT_NO_ID && g->needs[info.operands[i]];
  for (uint32_t r = 0; r < info.n_results; r++) out |= g->needs[info.first_result.id + r];
  return in && out;
}

static void want_operands(aoth_gradcheck_t *g, aot_node_t node) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (!aoth_gradcheck_has(g, node) || aoth_graph_node_info(g->s->now.prog, node, &info) != AOT_OK) return;
  for (uint32_t i = 0; i < info.n_operands; i++) want_value(g, (aot_value_t){info.operands[i]});
}

static void count_own_outputs(aoth_gradcheck_t *g) {
  const aot_port_t *out = aoth_graph_outputs(g->s->now.prog, g->forward);
  for (uint32_t i = 0; i < aoth_graph_n_outputs(g->s->now.prog, g->forward); i++) {
    g->used[out[i].value.id] = 1;
    if ((out[i].role == AOT_ROLE_USER_OUTPUT || out[i].role == AOT_ROLE_LOSS) && out[i].index >= g->n_own)
      g->n_own = out[i].index + 1;
  }
  g->n_keys = g->n_own;
}

/* In the child. */
static aot_status_t add_outputs(void *self, aoth_session_t *s) {
  const aoth_gradcheck_t *g = self;
  for (uint32_t k = g->n_own; k < g->n_keys; k++)
    AOT_TRY(aoth_edit_output_add(s->now.prog, g->forward, AOT_ROLE_USER_OUTPUT, k, g->outputs[k - g->n_own],
                                 (aot_str_t){0}));
  return AOT_OK;
}

static aot_status_t run(aoth_gradcheck_t *g, const aoth_run_spec_t *spec) {
  aoth_oracle_t oracle;
  aoth_oracle_answer_t answer;
  AOT_TRY(aoth_oracle_init(&oracle, g->s, spec, g->backend));
  aoth_oracle_ask(&oracle, add_outputs, g, &answer);
  aoth_oracle_deinit(&oracle);
  g->values = answer.results;
  if (answer.end == AOTH_ORACLE_RAN) return AOT_OK;
  aoth_sink_report(g->s->config.sink, AOT_SEVERITY_ERROR, NULL, "gradcheck.values", "the model does not run on %s: %s",
                   g->backend, answer.why);
  const int is_plugins = answer.is_fault && answer.status != AOT_OK; /* else the inputs, say, do not fit */
  return answer.end == AOTH_ORACLE_CRASHED || is_plugins ? AOTH_E_PLUGIN : AOT_E_INVALID;
}

aot_status_t aoth_gradcheck_begin(aoth_gradcheck_t *g, const aoth_run_spec_t *spec) {
  aot_prog_t *p = g->s->now.prog;
  const size_t n = aoth_graph_n_values(p) + (size_t)1;
  g->forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  g->needs = calloc(n, sizeof *g->needs);
  g->used = calloc(n, sizeof *g->used);
  g->key = malloc(n * sizeof *g->key);
  g->outputs = calloc(n, sizeof *g->outputs);
  if (!g->needs || !g->used || !g->key || !g->outputs) {
    aoth_sink_report(g->s->config.sink, AOT_SEVERITY_ERROR, NULL, "gradcheck.memory", "no memory for %zu values", n);
    return AOT_E_EXHAUSTED;
  }
  for (size_t i = 0; i < n; i++) g->key[i] = AOT_NO_INDEX;
  mark_inputs(g);
  count_own_outputs(g);
  for (aot_node_t k = aoth_graph_first(p, g->forward); k.id != AOT_NO_ID; k = aoth_graph_next(p, k)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(aoth_graph_node_info(p, k, &info));
    for (uint32_t i = 0; i < info.n_operands; i++) g->used[info.operands[i]] = 1;
    mark_results(g, &info);
    want_operands(g, k);
  }
  return g->n_keys > g->n_own ? run(g, spec) : AOT_OK;
}

void aoth_gradcheck_deinit(aoth_gradcheck_t *g) {
  aoth_st_close(g->values);
  free(g->needs);
  free(g->used);
  free(g->key);
  free(g->outputs);
}
