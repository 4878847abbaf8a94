/* A differentiated scan saves the carries at the start of each step, one row per step. The body returns its carries
 * unchanged; the results of these outputs are the rows, so the rule finds them without a mark. */
#include "joint.h"

uint32_t ag_history_of(const em_t *a, aot_graph_t body, uint32_t n_carries, uint32_t k) {
  const aot_graph_api_t *g = a->host->graph;
  const uint32_t n = g->n_outputs(a->prog, body), carry = g->inputs(a->prog, body)[k].value.id;
  for (uint32_t r = n_carries; r < n; r++)
    if (g->outputs(a->prog, body)[r].value.id == carry) return r;
  return AG_NO_ARG;
}

uint32_t ag_n_listed(const em_t *a) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->info.n_args; i++)
    n += a->info.args[i].kind == AOT_ARG_VALUES || a->info.args[i].kind == AOT_ARG_INTS ? a->info.args[i].n : 0;
  return n;
}

/* The body with its first n inputs as further outputs. */
static aot_status_t body_with_carries(const em_t *a, aot_graph_t body, uint32_t n, aot_graph_t *out) {
  const aot_host_t *h = a->host;
  ag_joint_t j;
  const uint32_t n_out = h->graph->n_outputs(a->prog, body);
  AOT_TRY(ag_joint_nest(&j, a, body));
  AOT_TRY(ag_joint_copy(&j, AOT_GRAPH_REGION, aot_str("")));
  for (uint32_t k = 0; k < n_out + n; k++) {
    aot_value_t v =
        k < n_out ? h->graph->outputs(a->prog, body)[k].value : h->graph->inputs(a->prog, body)[k - n_out].value;
    v.id = j.map[v.id];
    AOT_TRY(h->edit->output_add(a->prog, j.a.graph, AOT_ROLE_REGION, k, v, aot_str("")));
  }
  *out = j.a.graph;
  return AOT_OK;
}

/* The type of a row a step of what has this type. */
static aot_status_t type_of_rows(em_t *a, aot_value_t v, int64_t steps, aot_type_t *out) {
  int64_t *sizes;
  AOT_TRY(a->host->graph->value_type(a->prog, v, out));
  sizes = em_scratch(a, (uint64_t)out->rank + 1, sizeof *sizes);
  if (!sizes) return AOT_E_EXHAUSTED;
  sizes[0] = steps;
  for (int32_t d = 0; d < out->rank; d++) sizes[d + 1] = out->sizes[d];
  out->sizes = sizes;
  out->strides = NULL;
  out->offset = 0;
  out->rank++;
  return AOT_OK;
}

aot_status_t ag_keep_carries(em_t *a, aot_value_t *out) {
  enum { BODY, INIT, XS };
  const aot_graph_t body = {(uint32_t)a->info.args[BODY].u.i};
  const uint32_t n_carries = ag_n_operands(&a->info.args[INIT]), n_old = a->info.n_results;
  aot_type_t *types = em_scratch(a, (uint64_t)n_old + n_carries, sizeof *types), x = {0};
  aot_arg_t *args = em_scratch(a, a->info.n_args, sizeof *args);
  em_t e = *a;
  aot_node_info_t made;
  uint32_t k, n_kept = 0;
  aot_graph_t longer;
  if (a->status != AOT_OK) return a->status;
  if (a->info.args[BODY].kind != AOT_ARG_GRAPH) return AOT_E_UNIMPLEMENTED; /* another operator stands around it */
  for (k = 0; k < n_carries; k++) n_kept += ag_history_of(a, body, n_carries, k) != AG_NO_ARG;
  if (n_kept == n_carries || ag_n_operands(&a->info.args[XS]) == 0) return AOT_E_UNIMPLEMENTED;
  memcpy(args, a->info.args, a->info.n_args * sizeof *args);
  AOT_TRY(a->host->graph->value_type(a->prog, (aot_value_t){ag_operand(&args[XS], 0)}, &x));
  em_types(a, a->info.first_result, n_old, types);
  for (k = 0; k < n_carries; k++)
    AOT_TRY(type_of_rows(a, a->host->graph->inputs(a->prog, body)[k].value, x.sizes[0], &types[n_old + k]));
  AOT_TRY(body_with_carries(a, body, n_carries, &longer));
  args[BODY] = aot_arg_int_kind(AOT_ARG_GRAPH, longer.id);
  em_carry(&e, &a->info);
  e.before = a->node;
  em_put(&e, a->info.op, a->info.n_args, args, n_old + n_carries, types, &made);
  AOT_TRY(e.status);
  for (k = 0; k < n_old; k++) out[k].id = made.first_result.id + k;
  return AOT_OK;
}
