#include "whose_memory.h"

#include <stdlib.h>

aot_status_t at_whose_memory(const aot_host_t *host, aot_prog_t *prog, const aot_node_info_t *n, uint32_t *out) {
  const uint32_t n_types = n->n_operands + n->n_results;
  aot_type_t *types = calloc((size_t)n_types + 1, sizeof *types);
  aot_status_t status = types ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; status == AOT_OK && i < n_types; i++) {
    const uint32_t v = i < n->n_operands ? n->operands[i] : n->first_result.id + (i - n->n_operands);
    if (v != AOT_NO_ID) status = host->graph->value_type(prog, (aot_value_t){v}, &types[i]);
  }
  const aot_call_t call = {
      .struct_size = sizeof call,
      .args = n->args,
      .n_args = n->n_args,
      .operands = types,
      .n_operands = n->n_operands,
      .results = types + n->n_operands,
      .n_results = n->n_results,
  };
  if (status == AOT_OK) status = host->edit->aliases(prog, n->op, &call, out);
  free(types);
  return status;
}
