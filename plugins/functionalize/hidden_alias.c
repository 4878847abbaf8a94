/* Decomposes composites whose results alias an operand without a schema mark. */
#include "hidden_alias.h"

#include "rewriting.h"
#include "schema_marks.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t read_types(const aot_host_t *host, aot_prog_t *prog, const aot_node_info_t *n,
                               const uint32_t *operands, aot_type_t *out) {
  for (uint32_t k = 0; k < n->n_operands; k++)
    if (operands[k] != AOT_NO_ID) AOT_TRY(host->graph->value_type(prog, (aot_value_t){operands[k]}, &out[k]));
  for (uint32_t i = 0; i < n->n_results; i++)
    AOT_TRY(host->graph->value_type(prog, (aot_value_t){n->first_result.id + i}, &out[n->n_operands + i]));
  return AOT_OK;
}

aot_status_t fz_whose_memory(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_node_info_t *n,
                             const uint32_t *operands, uint32_t *out) {
  aot_type_t *types = calloc((size_t)n->n_operands + n->n_results + 1, sizeof *types);
  if (!types) return fz_no_memory(host, ctx, aot_no_node(), "for the types of a call");
  const aot_call_t call = {
      .struct_size = sizeof call,
      .args = n->args,
      .n_args = n->n_args,
      .operands = types,
      .n_operands = n->n_operands,
      .results = types + n->n_operands,
      .n_results = n->n_results,
  };
  aot_status_t status = read_types(host, prog, n, operands, types);
  if (status == AOT_OK) status = host->edit->aliases(prog, n->op, &call, out);
  free(types);
  return status;
}

/* Does a result share memory that its schema does not report? Or is one that may be its operand a copy here? Whether
 * resolve_conj is one can be reported only while the graph is as it was traced. */
static int is_hidden(const aot_op_desc_t *d, const aot_node_info_t *n, const uint32_t *memory) {
  const int may_be_operand = (d->flags & AOT_OP_MAYBE_SELF) != 0;
  for (uint32_t i = 0; i < n->n_results; i++)
    if (memory[i] != fz_aliased_operand(d, n, i) && (memory[i] || may_be_operand)) return 1;
  return 0;
}

/* What is new has the type that the model was traced with: an operand that is given another shape in place, before the
 * node, still shows its first one here. */
static aot_status_t replace(const aot_host_t *host, aot_prog_t *prog, aot_node_t node, const aot_node_info_t *n,
                            const aot_value_t *values, uint32_t first_made) {
  for (uint32_t i = 0; i < n->n_results; i++) {
    const aot_value_t was = {n->first_result.id + i};
    aot_type_t type;
    if (values[i].id == AOT_NO_ID) continue;
    AOT_TRY(host->graph->value_type(prog, was, &type));
    if (values[i].id >= first_made) AOT_TRY(host->edit->type_set(prog, values[i], &type));
    AOT_TRY(host->edit->uses_replace(prog, was, values[i]));
  }
  return host->edit->node_erase(prog, node);
}

static aot_status_t expose_node(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_node_t node,
                                uint32_t *n_exposed) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(host->graph->node_info(prog, node, &info));
  const aot_op_desc_t *d = host->graph->op_desc(prog, info.op);
  const uint32_t first_made = host->graph->n_values(prog);
  if (info.n_operands == 0 || !(d->flags & AOT_OP_COMPOSITE) || (d->flags & AOT_OP_EFFECT)) return AOT_OK;
  uint32_t *memory = calloc((size_t)info.n_results + 1, sizeof *memory);
  aot_value_t *values = calloc((size_t)info.n_results + 1, sizeof *values);
  aot_status_t status = memory && values ? AOT_OK : fz_no_memory(host, ctx, node, "for the types of a call");
  if (status == AOT_OK) status = fz_whose_memory(host, ctx, prog, &info, info.operands, memory);
  if (status == AOT_OK && is_hidden(d, &info, memory)) {
    status = host->edit->decompose(prog, node, values);
    if (status == AOT_OK) status = replace(host, prog, node, &info, values, first_made);
    if (status == AOT_OK) ++*n_exposed;
    if (status == AOT_E_UNIMPLEMENTED) status = AOT_OK;
  }
  free(memory);
  free(values);
  return status;
}

aot_status_t fz_expose_aliases(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *n_exposed) {
  const aot_graph_api_t *g = host->graph;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++) {
    int32_t kind;
    aot_str_t name;
    if (g->graph_info(prog, (aot_graph_t){i}, &kind, &name) != AOT_OK) continue; /* erased */
    for (aot_node_t n = g->first(prog, (aot_graph_t){i}), next; n.id != AOT_NO_ID; n = next) {
      next = g->next(prog, n);
      AOT_TRY(expose_node(host, ctx, prog, n, n_exposed));
    }
  }
  return AOT_OK;
}
