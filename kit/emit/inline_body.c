#include "inline_body.h"

#include <stdlib.h>

void em_inline_open(em_inliner_t *in, em_t *e) {
  *in = (em_inliner_t){.e = e, .copier = {.host = e->host, .ctx = e->ctx, .prog = e->prog}};
  in->copier.map = calloc((size_t)e->host->graph->n_values(e->prog) + 1, sizeof *in->copier.map);
  if (!in->copier.map) em_fail(e, AOT_E_EXHAUSTED, "", "no memory to put a region's body in place of its call");
}

void em_inline_close(em_inliner_t *in) {
  free(in->copier.map);
  jg_copier_deinit(&in->copier);
}

void em_inline(em_inliner_t *in, aot_graph_t graph, uint32_t n, const em_x_t *inputs, em_x_t *outputs) {
  em_t *e = in->e;
  jg_copier_t *c = &in->copier;
  const aot_graph_api_t *g = e->host->graph;
  const uint32_t n_inputs = g->n_inputs(e->prog, graph), n_outputs = g->n_outputs(e->prog, graph);
  for (uint32_t i = 0; i < n_outputs; i++) outputs[i] = em_none();
  if (n != n_inputs) em_fail(e, AOT_E_INVALID, "", "the region takes %u operands, %u are given", n_inputs, n);
  if (e->status != AOT_OK) return;
  c->graph = e->graph;
  c->before = e->before;
  c->region_tag = e->region_tag;
  for (uint32_t i = 0; i < n; i++)
    if (em_is_value(inputs[i])) c->map[g->inputs(e->prog, graph)[i].value.id] = (uint32_t)inputs[i].u.i;
  for (aot_node_t k = g->first(e->prog, graph); k.id != AOT_NO_ID && e->status == AOT_OK; k = g->next(e->prog, k))
    em_ok(e, jg_copy_node(c, k.id, e->flags));
  for (uint32_t i = 0; i < n_outputs && e->status == AOT_OK; i++) {
    const aot_value_t v = g->outputs(e->prog, graph)[i].value;
    if (v.id != AOT_NO_ID) outputs[i] = em_v((aot_value_t){c->map[v.id]});
  }
}
