#include "region_body.h"

#include <stdlib.h>

static aot_status_t no_memory(at_emit_t *e) {
  at_emit_fail(e, "", "no memory to put a region's body in its place");
  return e->status;
}

void at_body_open(at_body_t *b, at_emit_t *e, aot_graph_t graph) {
  const aot_graph_api_t *g = e->host->graph;
  *b = (at_body_t){.e = e, .graph = graph, .n_inputs = g->n_inputs(e->prog, graph), .n_outputs = g->n_outputs(e->prog, graph)};
  for (aot_node_t n = g->first(e->prog, graph); n.id != AOT_NO_ID; n = g->next(e->prog, n)) b->n_nodes++;
  b->map = calloc((size_t)g->n_values(e->prog) + 1, sizeof *b->map);
  if (!b->map) no_memory(e);
}

void at_body_close(at_body_t *b) {
  free(b->map);
  free(b->args);
  free(b->types);
  free(b->ids);
}

static aot_status_t make_room(at_body_t *b, uint32_t n) {
  if (n <= b->capacity) return AOT_OK;
  free(b->args);
  free(b->types);
  free(b->ids);
  b->capacity = 2 * n + 16;
  b->args = malloc(b->capacity * sizeof *b->args);
  b->types = malloc(b->capacity * sizeof *b->types);
  b->ids = malloc(b->capacity * sizeof *b->ids);
  return b->args && b->types && b->ids ? AOT_OK : no_memory(b->e);
}

static void rename_args(at_body_t *b, const aot_node_info_t *n) {
  uint32_t n_ids = 0;
  for (uint32_t a = 0; a < n->n_args; a++) {
    b->args[a] = n->args[a];
    if (n->args[a].kind == AOT_ARG_VALUE) b->args[a].u.i = b->map[n->args[a].u.i];
    if (n->args[a].kind != AOT_ARG_VALUES) continue;
    b->args[a].u.ids = b->ids + n_ids;
    for (uint32_t k = 0; k < n->args[a].n; k++)
      b->ids[n_ids++] = b->map[n->args[a].u.ids[k]];
  }
}

static aot_status_t copy_node(at_body_t *b, aot_node_t from) {
  at_emit_t *e = b->e;
  aot_node_info_t n = {.struct_size = sizeof n}, made_info = {.struct_size = sizeof made_info};
  aot_node_t made;
  AOT_TRY(e->host->graph->node_info(e->prog, from, &n));
  AOT_TRY(make_room(b, n.n_args + n.n_operands + n.n_results));
  rename_args(b, &n);
  for (uint32_t i = 0; i < n.n_results; i++)
    AOT_TRY(e->host->graph->value_type(e->prog, (aot_value_t){n.first_result.id + i}, &b->types[i]));
  aot_node_spec_t spec = {.struct_size = sizeof spec, .flags = n.flags | e->info.flags, .op = n.op, .n_args = n.n_args,
                          .args = b->args, .n_types = n.n_results, .types = b->types,
                          .region_tag = n.region_tag ? n.region_tag : e->info.region_tag, .origin = n.origin};
  AOT_TRY(e->host->edit->node_create(e->prog, e->info.graph, &spec, e->before, &made));
  AOT_TRY(e->host->graph->node_info(e->prog, made, &made_info));
  for (uint32_t i = 0; i < n.n_results; i++) b->map[n.first_result.id + i] = made_info.first_result.id + i;
  return AOT_OK;
}

static aot_status_t copy_nodes(at_body_t *b) {
  const aot_graph_api_t *g = b->e->host->graph;
  for (aot_node_t n = g->first(b->e->prog, b->graph); n.id != AOT_NO_ID; n = g->next(b->e->prog, n)) AOT_TRY(copy_node(b, n));
  return AOT_OK;
}

void at_body_copy(at_body_t *b, const at_x *inputs, uint32_t n, at_x *outputs) {
  at_emit_t *e = b->e;
  const aot_graph_api_t *g = e->host->graph;
  if (e->status == AOT_OK && n != b->n_inputs) at_emit_fail(e, "", "the region takes %u operands, %u are given", b->n_inputs, n);
  for (uint32_t i = 0; i < b->n_outputs; i++) outputs[i] = at_none();
  if (e->status != AOT_OK) return;
  for (uint32_t i = 0; i < n; i++)
    if (inputs[i].kind == AOT_ARG_VALUE) b->map[g->inputs(e->prog, b->graph)[i].value.id] = (uint32_t)inputs[i].u.i;
  e->status = copy_nodes(b);
  for (uint32_t i = 0; e->status == AOT_OK && i < b->n_outputs; i++) {
    const aot_value_t v = g->outputs(e->prog, b->graph)[i].value;
    if (v.id != AOT_NO_ID) outputs[i] = at_v((aot_value_t){b->map[v.id]});
  }
}
