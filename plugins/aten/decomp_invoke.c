/* invoke_subgraph: its body in its place, for who cannot call one. */
#include "at_emit.h"
#include "rewrites.h"

#include <stdlib.h>

typedef struct body_copy {
  at_emit_t *e;
  uint32_t *map; /* by value of the body: value in the node's graph */
  aot_arg_t *args;
  aot_type_t *types;
  uint32_t *ids;
  uint32_t capacity; /* of args, types and ids */
} body_copy_t;

static aot_status_t no_memory(at_emit_t *e) {
  at_emit_fail(e, "", "no memory to put a region's body in its place");
  return e->status;
}

static aot_status_t make_room(body_copy_t *c, uint32_t n) {
  if (n <= c->capacity) return AOT_OK;
  free(c->args);
  free(c->types);
  free(c->ids);
  c->capacity = 2 * n + 16;
  c->args = malloc(c->capacity * sizeof *c->args);
  c->types = malloc(c->capacity * sizeof *c->types);
  c->ids = malloc(c->capacity * sizeof *c->ids);
  return c->args && c->types && c->ids ? AOT_OK : no_memory(c->e);
}

static void rename_args(body_copy_t *c, const aot_node_info_t *n) {
  uint32_t n_ids = 0;
  for (uint32_t a = 0; a < n->n_args; a++) {
    c->args[a] = n->args[a];
    if (n->args[a].kind == AOT_ARG_VALUE) c->args[a].u.i = c->map[n->args[a].u.i];
    if (n->args[a].kind != AOT_ARG_VALUES) continue;
    c->args[a].u.ids = c->ids + n_ids;
    for (uint32_t k = 0; k < n->args[a].n; k++)
      c->ids[n_ids++] = n->args[a].u.ids[k] == AOT_NO_ID ? AOT_NO_ID : c->map[n->args[a].u.ids[k]];
  }
}

static aot_status_t copy_node(body_copy_t *c, aot_node_t from) {
  at_emit_t *e = c->e;
  aot_node_info_t n = {.struct_size = sizeof n}, made_info = {.struct_size = sizeof made_info};
  aot_node_t made;
  AOT_TRY(e->host->graph->node_info(e->prog, from, &n));
  AOT_TRY(make_room(c, n.n_args + n.n_operands + n.n_results));
  rename_args(c, &n);
  for (uint32_t i = 0; i < n.n_results; i++)
    AOT_TRY(e->host->graph->value_type(e->prog, (aot_value_t){n.first_result.id + i}, &c->types[i]));
  aot_node_spec_t spec = {.struct_size = sizeof spec, .flags = n.flags | e->info.flags, .op = n.op, .n_args = n.n_args,
                          .args = c->args, .n_types = n.n_results, .types = c->types,
                          .region_tag = n.region_tag ? n.region_tag : e->info.region_tag, .origin = n.origin};
  AOT_TRY(e->host->edit->node_create(e->prog, e->info.graph, &spec, e->before, &made));
  AOT_TRY(e->host->graph->node_info(e->prog, made, &made_info));
  for (uint32_t i = 0; i < n.n_results; i++) c->map[n.first_result.id + i] = made_info.first_result.id + i;
  return AOT_OK;
}

static aot_status_t copy_body(body_copy_t *c, aot_graph_t body, aot_value_t *out) {
  const aot_graph_api_t *g = c->e->host->graph;
  enum { FIRST = 2 };
  uint32_t n_inputs = g->n_inputs(c->e->prog, body);
  if (c->e->info.n_args != FIRST + n_inputs)
    at_emit_fail(c->e, "", "the region takes %u operands, %u are given", n_inputs, c->e->info.n_args - FIRST);
  for (uint32_t i = 0; i < n_inputs && c->e->status == AOT_OK; i++) { /* a size stands in the body as an expression */
    const aot_arg_t *operand = &c->e->info.args[FIRST + i];
    if (operand->kind == AOT_ARG_VALUE) c->map[g->inputs(c->e->prog, body)[i].value.id] = (uint32_t)operand->u.i;
  }
  if (c->e->status != AOT_OK) return c->e->status;
  for (aot_node_t n = g->first(c->e->prog, body); n.id != AOT_NO_ID; n = g->next(c->e->prog, n)) AOT_TRY(copy_node(c, n));
  for (uint32_t i = 0; i < c->e->info.n_results; i++) {
    aot_value_t v = g->outputs(c->e->prog, body)[i].value;
    if (v.id != AOT_NO_ID) out[i].id = c->map[v.id];
  }
  return AOT_OK;
}

aot_status_t at_dc_invoke_subgraph(at_emit_t *e, aot_value_t *out) {
  aot_graph_t body = {(uint32_t)e->info.args[0].u.i};
  body_copy_t c = {.e = e};
  aot_status_t status;
  c.map = malloc(((size_t)e->host->graph->n_values(e->prog) + 1) * sizeof *c.map);
  status = c.map ? copy_body(&c, body, out) : no_memory(e);
  free(c.map);
  free(c.args);
  free(c.types);
  free(c.ids);
  return status;
}
