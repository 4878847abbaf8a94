/* Initialises a joint graph as a copy of the forward's inputs and nodes. */
#include "joint.h"
#include "kit/graph/copy_nodes.h"

void ag_joint_begin(ag_joint_t *j, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t forward) {
  *j = (ag_joint_t){.a = em_make(host, ctx, prog, (aot_graph_t){AOT_NO_ID}), .forward = forward};
  j->a.flags = AOT_NODE_BACKWARD;
  j->a.code = "autograd.rule";
  j->a.what = "a gradient";
  j->a.self = &j->site;
}

aot_status_t ag_joint_nest(ag_joint_t *j, const em_t *outer, aot_graph_t region) {
  ag_joint_begin(j, outer->host, outer->ctx, outer->prog, region);
  j->a.node = outer->node;
  j->site.rules = ag_of(outer)->rules;
  j->site.shared = ag_of(outer)->shared;
  j->site.depth = ag_of(outer)->depth + 1;
  if (j->site.depth > AG_MAX_DEPTH) em_fail(&j->a, AOT_E_INVALID, "", "regions nest more than %d deep", AG_MAX_DEPTH);
  return j->a.status;
}

static aot_status_t copy_names(ag_joint_t *j, aot_node_t from) {
  const aot_host_t *h = j->a.host;
  uint32_t i;
  AOT_TRY(ag_load(&j->a, from));
  for (i = 0; i < j->a.info.n_results; i++) {
    const aot_value_t old = {j->a.info.first_result.id + i}, copy = {j->map[old.id]};
    const aot_str_t name = h->graph->value_name(j->a.prog, old);
    if (name.size) AOT_TRY(h->edit->name_set(j->a.prog, copy, name));
  }
  return AOT_OK;
}

static aot_status_t copy_all(ag_joint_t *j, jg_copier_t *c) {
  const aot_graph_api_t *api = j->a.host->graph;
  uint32_t i, n = api->n_inputs(j->a.prog, j->forward);
  aot_node_t node;
  for (i = 0; i < n; i++) {
    const aot_port_t port = api->inputs(j->a.prog, j->forward)[i];
    AOT_TRY(jg_add_input(c, &port, port.role, port.index, port.name));
  }
  for (node = api->first(j->a.prog, j->forward); node.id != AOT_NO_ID; node = api->next(j->a.prog, node)) {
    AOT_TRY(jg_copy_node(c, node.id, 0));
    AOT_TRY(copy_names(j, node));
  }
  return AOT_OK;
}

aot_status_t ag_joint_copy(ag_joint_t *j, int32_t kind, aot_str_t name) {
  const aot_host_t *h = j->a.host;
  jg_copier_t c = {.host = h, .ctx = j->a.ctx, .prog = j->a.prog};
  aot_status_t status;
  j->map = c.map = em_scratch(&j->a, h->graph->n_values(j->a.prog), sizeof *j->map);
  if (!j->map) return AOT_E_EXHAUSTED;
  AOT_TRY(h->edit->graph_create(j->a.prog, kind, name, &j->a.graph));
  c.graph = j->a.graph;
  status = copy_all(j, &c);
  jg_copier_deinit(&c);
  return status;
}
