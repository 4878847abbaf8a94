#include "region_split.h"

#include "kit/emit/emit.h"
#include "kit/graph/copy_nodes.h"
#include "region_calls.h"
#include "kit/graph/split.h"
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* One body and its joint graph, and what they are divided into. */
typedef struct half {
  uint32_t body, joint;
  uint32_t n_operands; /* inputs of the joint graph that are the body's; cotangents follow */
  jg_joint_t arrays;
  jg_split_t split;
  aot_graph_t forward, backward;
  uint32_t *read, n_read; /* operands that the backward reads besides what was saved */
} half_t;

typedef struct divider {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  half_t *halves;
  uint32_t n_halves;
  uint32_t *half_of;       /* by pair */
  uint32_t *half_of_graph; /* by id of the joint graph */
  uint32_t n_calls;
  uint64_t nbytes_saved;
} divider_t;

/* ---- choosing ---- */

static aot_status_t read_half(divider_t *d, half_t *h, const uint32_t *row_of_graph, const aot_snapshot_t *s) {
  jg_sides_t sides = {h->n_operands, d->host->graph->n_outputs(d->prog, (aot_graph_t){h->joint}) -
                                         d->host->graph->n_outputs(d->prog, (aot_graph_t){h->body})};
  if (jg_joint_init_region(&h->arrays, s, row_of_graph[h->joint], &sides) != 0) return jg_no_memory(d->host, d->ctx);
  return AOT_OK;
}

static aot_status_t choose_half(divider_t *d, half_t *h, pt_pick_t pick, const void *self) {
  uint32_t *saved = calloc((size_t)h->arrays.n_values + 1, sizeof *saved), n_saved = 0, bad = 0, n_kept = 0;
  aot_status_t status =
      saved ? pt_resolve_tags(d->host, d->ctx, d->prog, &h->arrays, &n_kept) : jg_no_memory(d->host, d->ctx);
  int solved = status == AOT_OK ? pick(self, &h->arrays, saved, &n_saved, &bad) : 0;
  if (solved == -1)
    status = jg_fail(d->host, d->ctx, AOT_E_PRECONDITION, "partition.unbounded",
                     "no cut of the region is possible: this value may be neither saved nor recomputed",
                     (aot_value_t){h->arrays.value_id[bad]});
  else if (status == AOT_OK && (solved != 0 || jg_split_init(&h->split, &h->arrays, saved, n_saved, &bad) != 0))
    status = jg_no_memory(d->host, d->ctx);
  free(saved);
  return status;
}

/* Everything is chosen on one picture of the program, before the first edit. */
static aot_status_t choose_all(divider_t *d, pt_pick_t pick, const void *self) {
  const aot_snapshot_t *s = NULL;
  AOT_TRY(d->host->graph->snapshot(d->prog, &s));
  uint32_t *row_of_graph = calloc((size_t)d->host->graph->n_graphs(d->prog) + 1, sizeof *row_of_graph);
  aot_status_t status = row_of_graph ? AOT_OK : jg_no_memory(d->host, d->ctx);
  for (uint32_t g = 1; status == AOT_OK && g < s->graphs.count; g++)
    row_of_graph[AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[g].id] = g;
  for (uint32_t i = 0; status == AOT_OK && i < d->n_halves; i++) status = read_half(d, &d->halves[i], row_of_graph, s);
  for (uint32_t i = 0; status == AOT_OK && i < d->n_halves; i++) status = choose_half(d, &d->halves[i], pick, self);
  free(row_of_graph);
  return status;
}

/* ---- the two bodies ---- */

static aot_status_t add_output(jg_copier_t *c, aot_graph_t graph, uint32_t position, aot_value_t v, aot_str_t name) {
  v.id = c->map[v.id];
  return c->host->edit->output_add(c->prog, graph, AOT_ROLE_REGION, position, v, name);
}

static aot_status_t build_forward(divider_t *d, half_t *h, jg_copier_t *c) {
  const aot_graph_api_t *g = d->host->graph;
  uint32_t n_out = g->n_outputs(d->prog, (aot_graph_t){h->body}), n_gradients = h->arrays.n_gradients;
  int32_t kind;
  aot_str_t name;
  AOT_TRY(g->graph_info(d->prog, (aot_graph_t){h->body}, &kind, &name));
  AOT_TRY(d->host->edit->graph_create(d->prog, AOT_GRAPH_REGION, name, &h->forward));
  c->graph = h->forward;
  for (uint32_t i = 0; i < h->n_operands; i++) {
    aot_port_t port = g->inputs(d->prog, (aot_graph_t){h->joint})[i];
    AOT_TRY(jg_add_input(c, &port, AOT_ROLE_REGION, i, port.name));
  }
  for (uint32_t i = 0; i < h->split.n_forward; i++) AOT_TRY(jg_copy_node(c, h->arrays.node_id[h->split.forward[i]], 0));
  for (uint32_t i = 0; i < n_out; i++) {
    aot_port_t port = g->outputs(d->prog, (aot_graph_t){h->joint})[n_gradients + i];
    AOT_TRY(add_output(c, h->forward, i, port.value, port.name));
  }
  for (uint32_t i = 0; i < h->split.n_saved; i++)
    AOT_TRY(add_output(c, h->forward, n_out + i, (aot_value_t){h->arrays.value_id[h->split.saved[i]]}, aot_str("")));
  return AOT_OK;
}

/* Which inputs the backward nodes and the gradients read. */
static void mark_read(const half_t *h, uint8_t *is_read) {
  const jg_joint_t *j = &h->arrays;
  for (uint32_t i = 0; i < h->split.n_backward; i++)
    for (uint32_t k = j->operand_begin[h->split.backward[i]]; k < j->operand_begin[h->split.backward[i] + 1]; k++)
      if (j->def[j->operands[k]] == JG_NONE) is_read[j->operands[k]] = 1;
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE && j->def[j->gradients[i]] == JG_NONE) is_read[j->gradients[i]] = 1;
}

/* Inputs: what was saved, operands that are read, cotangents. */
static aot_status_t add_backward_inputs(divider_t *d, half_t *h, jg_copier_t *c, const uint8_t *is_read) {
  const jg_joint_t *j = &h->arrays;
  uint32_t at = 0;
  for (uint32_t i = 0; i < h->split.n_saved; i++) {
    aot_port_t port = {.value = {j->value_id[h->split.saved[i]]}};
    AOT_TRY(jg_add_input(c, &port, AOT_ROLE_REGION, at++, aot_str("")));
  }
  for (uint32_t i = 0; i < j->n_inputs; i++) {
    aot_port_t port = d->host->graph->inputs(d->prog, (aot_graph_t){h->joint})[i];
    if (i < h->n_operands && !is_read[i]) continue;
    if (i < h->n_operands) h->read[h->n_read++] = i;
    AOT_TRY(jg_add_input(c, &port, AOT_ROLE_REGION, at++, port.name));
  }
  return AOT_OK;
}

static aot_status_t build_backward(divider_t *d, half_t *h, jg_copier_t *c, const uint8_t *is_read) {
  const aot_graph_api_t *g = d->host->graph;
  AOT_TRY(d->host->edit->graph_create(d->prog, AOT_GRAPH_REGION, aot_str(""), &h->backward));
  c->graph = h->backward;
  AOT_TRY(add_backward_inputs(d, h, c, is_read));
  for (uint32_t i = 0; i < h->split.n_backward; i++) {
    uint32_t n = h->split.backward[i];
    AOT_TRY(jg_copy_node(c, h->arrays.node_id[n], h->arrays.late[n] ? 0 : AOT_NODE_BACKWARD));
  }
  for (uint32_t i = 0; i < h->arrays.n_gradients; i++) {
    aot_port_t port = g->outputs(d->prog, (aot_graph_t){h->joint})[i];
    AOT_TRY(add_output(c, h->backward, i, port.value, port.name));
  }
  return AOT_OK;
}

static aot_status_t build_half(divider_t *d, half_t *h, jg_copier_t *c, uint32_t n_ids) {
  uint8_t *is_read = calloc((size_t)h->arrays.n_inputs + 1, 1);
  h->read = calloc((size_t)h->n_operands + 1, sizeof *h->read);
  aot_status_t status = is_read && h->read ? AOT_OK : jg_no_memory(d->host, d->ctx);
  if (status == AOT_OK) {
    mark_read(h, is_read);
    memset(c->map, 0, (size_t)n_ids * sizeof *c->map);
    status = build_forward(d, h, c);
  }
  if (status == AOT_OK) {
    memset(c->map, 0, (size_t)n_ids * sizeof *c->map);
    status = build_backward(d, h, c, is_read);
  }
  free(is_read);
  return status;
}

static aot_status_t build_all(divider_t *d) {
  uint32_t n_ids = d->host->graph->n_values(d->prog);
  jg_copier_t c = {.host = d->host, .ctx = d->ctx, .prog = d->prog, .map = malloc(((size_t)n_ids + 1) * sizeof *c.map)};
  aot_status_t status = c.map ? AOT_OK : jg_no_memory(d->host, d->ctx);
  for (uint32_t i = 0; status == AOT_OK && i < d->n_halves; i++) status = build_half(d, &d->halves[i], &c, n_ids);
  free(c.map);
  jg_copier_deinit(&c);
  return status;
}

/* ---- stitching ---- */

/* The call with another body and other operands, in its place; its first n_results results take over the uses. */
static aot_status_t replace_call(divider_t *d, aot_node_t old, aot_graph_t body, const aot_arg_t *operands,
                                 uint32_t n_operands, uint32_t n_results, aot_node_info_t *out_made) {
  em_t e = em_make(d->host, d->ctx, d->prog, (aot_graph_t){AOT_NO_ID});
  AOT_TRY(em_rewrite(&e, old));
  aot_arg_t *args = em_scratch(&e, (uint64_t)n_operands + 2, sizeof *args);
  if (!args) return jg_no_memory(d->host, d->ctx);
  args[0] = aot_arg_int_kind(AOT_ARG_GRAPH, body.id);
  args[1] = e.info.args[1];
  if (n_operands) memcpy(args + 2, operands, n_operands * sizeof *args);
  em_put(&e, e.info.op, n_operands + 2, args, 0, NULL, out_made);
  AOT_TRY(e.status);
  em_take_over(&e, e.info.first_result, out_made->first_result, n_results);
  AOT_TRY(e.status);
  return d->host->edit->node_erase(d->prog, old);
}

/* Operands of the backward call: the saved results of the forward call, then those of its own that are still read. */
static aot_status_t stitch_backward(divider_t *d, const half_t *h, const pt_region_pair_t *p, uint32_t first_saved) {
  aot_node_info_t info = {.struct_size = sizeof info}, made;
  AOT_TRY(d->host->graph->node_info(d->prog, p->backward, &info));
  aot_arg_t *operands = calloc((size_t)h->split.n_saved + info.n_args + 1, sizeof *operands);
  uint32_t n = 0;
  if (!operands) return jg_no_memory(d->host, d->ctx);
  for (uint32_t i = 0; i < h->split.n_saved; i++) operands[n++] = aot_arg_value((aot_value_t){first_saved + i});
  for (uint32_t i = 0; i < h->n_read; i++) operands[n++] = info.args[2 + h->read[i]];
  for (uint32_t i = 2 + h->n_operands; i < info.n_args; i++) operands[n++] = info.args[i];
  aot_status_t status = replace_call(d, p->backward, h->backward, operands, n, h->arrays.n_gradients, &made);
  free(operands);
  return status;
}

static aot_status_t stitch(divider_t *d, const half_t *h, const pt_region_pair_t *p) {
  aot_node_info_t info = {.struct_size = sizeof info}, made;
  AOT_TRY(d->host->graph->node_info(d->prog, p->forward, &info));
  uint32_t n_results = info.n_results;
  aot_arg_t *operands = calloc((size_t)h->n_operands + 1, sizeof *operands);
  if (!operands) return jg_no_memory(d->host, d->ctx);
  memcpy(operands, info.args + 2, h->n_operands * sizeof *operands);
  aot_status_t status = replace_call(d, p->forward, h->forward, operands, h->n_operands, n_results, &made);
  free(operands);
  AOT_TRY(status);
  return stitch_backward(d, h, p, made.first_result.id + n_results);
}

/* Bodies that no node names any more. */
static aot_status_t erase_unnamed(divider_t *d) {
  const aot_graph_api_t *g = d->host->graph;
  uint32_t n_graphs = g->n_graphs(d->prog);
  uint8_t *named = calloc((size_t)n_graphs + 1, 1);
  aot_status_t status = named ? AOT_OK : jg_no_memory(d->host, d->ctx);
  for (uint32_t i = 1; status == AOT_OK && i < n_graphs; i++)
    for (aot_node_t n = g->first(d->prog, (aot_graph_t){i}); n.id != AOT_NO_ID && status == AOT_OK;
         n = g->next(d->prog, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      status = g->node_info(d->prog, n, &info);
      for (uint32_t a = 0; status == AOT_OK && a < info.n_args; a++)
        if (info.args[a].kind == AOT_ARG_GRAPH) named[info.args[a].u.i] = 1;
    }
  for (uint32_t i = 0; i < 2 * d->n_halves && status == AOT_OK; i++) {
    uint32_t id = i % 2 ? d->halves[i / 2].body : d->halves[i / 2].joint;
    if (named[id]) continue;
    named[id] = 1; /* erased now; other halves may have the same body */
    status = d->host->edit->graph_erase(d->prog, (aot_graph_t){id});
  }
  free(named);
  return status;
}

/* ---- the whole ---- */

/* The joint graph of a pair decides: it was made of one body. */
static void find_halves(divider_t *d, const pt_region_pairs_t *pairs) {
  for (uint32_t k = 0; k < pairs->n; k++) {
    const pt_region_pair_t *p = &pairs->at[k];
    d->half_of[k] = JG_NONE;
    if (p->forward.id == AOT_NO_ID) continue;
    uint32_t *half = &d->half_of_graph[p->joint];
    if (*half == JG_NONE) {
      *half = d->n_halves++;
      d->halves[*half] = (half_t){.body = p->body, .joint = p->joint, .n_operands = p->n_operands};
    }
    d->half_of[k] = *half;
  }
}

static aot_status_t report(const divider_t *d) {
  const aot_ext_report_t *r = aot_ext(&d->host->head, AOT_EXT_REPORT);
  uint32_t n_recomputed = 0;
  if (!r) return AOT_OK;
  for (uint32_t i = 0; i < d->n_halves; i++) n_recomputed += d->halves[i].split.n_recomputed;
  AOT_TRY(r->number(r, d->ctx, aot_str("regions-split"), d->n_halves, aot_str("")));
  AOT_TRY(r->number(r, d->ctx, aot_str("region-calls"), d->n_calls, aot_str("")));
  AOT_TRY(r->number(r, d->ctx, aot_str("region-saved-bytes"), (double)d->nbytes_saved, aot_str("bytes")));
  return r->number(r, d->ctx, aot_str("region-recomputed-nodes"), n_recomputed, aot_str("nodes"));
}

static aot_status_t divide(divider_t *d, const pt_region_pairs_t *pairs, pt_pick_t pick, const void *self) {
  find_halves(d, pairs);
  AOT_TRY(choose_all(d, pick, self));
  AOT_TRY(build_all(d));
  for (uint32_t k = 0; k < pairs->n; k++) {
    if (d->half_of[k] == JG_NONE) continue;
    const half_t *h = &d->halves[d->half_of[k]];
    AOT_TRY(stitch(d, h, &pairs->at[k]));
    d->n_calls++;
    d->nbytes_saved += h->split.nbytes_saved;
  }
  AOT_TRY(erase_unnamed(d));
  return report(d);
}

static void deinit(divider_t *d) {
  for (uint32_t i = 0; i < d->n_halves; i++) {
    jg_joint_deinit(&d->halves[i].arrays);
    jg_split_deinit(&d->halves[i].split);
    free(d->halves[i].read);
  }
  free(d->halves);
  free(d->half_of);
  free(d->half_of_graph);
}

aot_status_t pt_split_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_str_t only, pt_pick_t pick,
                              const void *self) {
  const aot_graph_t joint = host->graph->graph_find(prog, AOT_GRAPH_JOINT);
  uint32_t n_graphs = host->graph->n_graphs(prog);
  pt_region_pairs_t pairs;
  if (joint.id == AOT_NO_ID)
    return jg_fail(host, ctx, AOT_E_PRECONDITION, "partition.no-joint",
                   "the program has no joint graph; add stage autograd before the partition", aot_no_value());
  AOT_TRY(pt_region_pairs_init(host, ctx, prog, joint, only, &pairs));
  divider_t d = {.host = host, .ctx = ctx, .prog = prog};
  d.halves = calloc((size_t)n_graphs + 1, sizeof *d.halves);
  d.half_of = calloc((size_t)pairs.n + 1, sizeof *d.half_of);
  d.half_of_graph = malloc(((size_t)n_graphs + 1) * sizeof *d.half_of_graph);
  if (d.half_of_graph) memset(d.half_of_graph, 0xff, (size_t)n_graphs * sizeof *d.half_of_graph);
  aot_status_t status =
      d.halves && d.half_of && d.half_of_graph ? divide(&d, &pairs, pick, self) : jg_no_memory(host, ctx);
  deinit(&d);
  pt_region_pairs_deinit(&pairs);
  return status;
}
