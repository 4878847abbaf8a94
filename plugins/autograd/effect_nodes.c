/* Erases effects from regions that compute gradients, so that a recomputed forward has none (effect_nodes.h). */
#include "effect_nodes.h"

#include "kit/graph/snap_births.h"
#include <aot/snapshot.h>
#include <stdlib.h>

static uint32_t n_reads(const ag_joint_t *j) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < j->a.info.n_results; k++)
    n += j->a.host->graph->n_uses(j->a.prog, (aot_value_t){j->a.info.first_result.id + k});
  return n;
}

/* What reports sizes may run again: it reports the same. */
static aot_status_t tells_sizes(ag_joint_t *j, int *out) {
  const aot_snapshot_t *s = NULL;
  AOT_TRY(j->a.host->graph->snapshot(j->a.prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  uint8_t *births = em_scratch(&j->a, (uint64_t)s->nodes.count + 1, 1);
  *out = 0;
  if (!births || sn_births(s, births) != 0) return AOT_E_EXHAUSTED;
  for (uint32_t n = 1; n < s->nodes.count; n++)
    if (nodes[n].id == j->a.node.id) *out = births[n];
  return AOT_OK;
}

static int gives_numbers(ag_joint_t *j) {
  aot_type_t t;
  for (uint32_t k = 0; k < j->a.info.n_results; k++)
    if (j->a.host->graph->value_type(j->a.prog, (aot_value_t){j->a.info.first_result.id + k}, &t) == AOT_OK &&
        t.kind != AOT_TYPE_TENSOR && t.kind != AOT_TYPE_NONE)
      return 1;
  return 0;
}

/* ---- regions in the region ---- */

static aot_status_t holds_effects(ag_joint_t *j, aot_graph_t region, uint32_t depth, int *out) {
  const aot_graph_api_t *api = j->a.host->graph;
  if (depth == AG_MAX_DEPTH) return AOT_OK;
  for (aot_node_t n = api->first(j->a.prog, region); n.id != AOT_NO_ID && !*out; n = api->next(j->a.prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(api->node_info(j->a.prog, n, &info));
    *out = (api->op_desc(j->a.prog, info.op)->flags & AOT_OP_EFFECT) != 0;
    for (uint32_t a = 0; a < info.n_args && !*out; a++)
      if (info.args[a].kind == AOT_ARG_GRAPH)
        AOT_TRY(holds_effects(j, (aot_graph_t){(uint32_t)info.args[a].u.i}, depth + 1, out));
  }
  return AOT_OK;
}

static aot_status_t copy_without_effects(const ag_joint_t *outer, aot_graph_t region, aot_graph_t *out) {
  ag_joint_t j;
  AOT_TRY(ag_joint_nest(&j, &outer->a, region));
  AOT_TRY(ag_joint_copy(&j, AOT_GRAPH_REGION, aot_str("")));
  for (uint32_t k = 0; k < j.a.host->graph->n_outputs(j.a.prog, region); k++) {
    aot_port_t port = j.a.host->graph->outputs(j.a.prog, region)[k];
    port.value.id = j.map[port.value.id];
    AOT_TRY(j.a.host->edit->output_add(j.a.prog, j.a.graph, port.role, port.index, port.value, port.name));
  }
  *out = j.a.graph;
  return ag_drop_effects(&j);
}

/* A region that the loaded node runs, again: its values are needed, its effects have been. */
static aot_status_t quiet_regions(ag_joint_t *j) {
  const aot_node_t node = j->a.node;
  for (uint32_t a = 0; a < j->a.info.n_args; a++) {
    aot_graph_t region = {(uint32_t)j->a.info.args[a].u.i};
    aot_arg_t quiet;
    int any = 0;
    if (j->a.info.args[a].kind != AOT_ARG_GRAPH) continue;
    AOT_TRY(holds_effects(j, region, 0, &any));
    if (!any) continue;
    AOT_TRY(copy_without_effects(j, region, &region));
    quiet = aot_arg_int_kind(AOT_ARG_GRAPH, region.id);
    AOT_TRY(j->a.host->edit->arg_set(j->a.prog, node, a, &quiet));
    AOT_TRY(ag_load(&j->a, node));
  }
  return AOT_OK;
}

aot_status_t ag_drop_effects(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  aot_node_t n, before;
  int may_run_again = 1;
  for (n = api->last(j->a.prog, j->a.graph); n.id != AOT_NO_ID; n = before) {
    before = api->prev(j->a.prog, n);
    AOT_TRY(ag_load(&j->a, n));
    if (j->a.desc->flags & AOT_OP_REGION) AOT_TRY(quiet_regions(j));
    if (!(j->a.desc->flags & AOT_OP_EFFECT)) continue;
    if (n_reads(j) == 0) {
      AOT_TRY(j->a.host->edit->node_erase(j->a.prog, n));
      continue;
    }
    if (gives_numbers(j)) continue;
    AOT_TRY(tells_sizes(j, &may_run_again));
    if (!may_run_again)
      em_fail(&j->a, AOT_E_INVALID, "take the operator out of the region, or detach what it gives",
              "%.*s has an effect in a region whose gradient needs its result: it would happen twice",
              (int)j->a.desc->name.size, j->a.desc->name.data);
  }
  return j->a.status;
}
