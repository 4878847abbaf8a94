#include "region_calls.h"

#include "apply.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct call_name {
  aot_str_t region;
  uint32_t number;
  int is_backward;
} call_name_t;

/* NAME:fwK or NAME:bwK. 0: the node is no such call. */
static int read_name(const aot_op_desc_t *d, const aot_node_info_t *n, call_name_t *out) {
  const aot_arg_t *name = &n->args[1];
  uint32_t digits = 0, at;
  uint64_t number = 0;
  if (!(d->flags & AOT_OP_REGION) || n->n_args < 2 || n->args[0].kind != AOT_ARG_GRAPH || name->kind != AOT_ARG_STR)
    return 0;
  while (digits < name->n && digits < 9 && name->u.chars[name->n - 1 - digits] >= '0' &&
         name->u.chars[name->n - 1 - digits] <= '9')
    digits++;
  at = name->n - digits;
  if (digits == 0 || at < 3 || name->u.chars[at - 3] != ':' || name->u.chars[at - 1] != 'w') return 0;
  if (name->u.chars[at - 2] != 'f' && name->u.chars[at - 2] != 'b') return 0;
  for (uint32_t i = at; i < name->n; i++) number = 10 * number + (uint64_t)(name->u.chars[i] - '0');
  *out = (call_name_t){{name->u.chars, at - 3}, (uint32_t)number, name->u.chars[at - 2] == 'b'};
  return 1;
}

/* Is the region among the names? Marks the name as met. */
static int is_wanted(aot_str_t only, aot_str_t region, uint8_t *met) {
  uint32_t k = 0;
  if (only.size == 0) return 1;
  for (uint64_t at = 0; at <= only.size; k++) {
    const char *from = only.data + at, *comma = memchr(from, ',', (size_t)(only.size - at));
    uint64_t size = comma ? (uint64_t)(comma - from) : only.size - at;
    at += size + 1;
    while (size && *from == ' ') from++, size--;
    while (size && from[size - 1] == ' ') size--;
    if (size != region.size || memcmp(from, region.data, (size_t)size) != 0) continue;
    met[k] = 1;
    return 1;
  }
  return 0;
}

static aot_status_t check_met(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t only, const uint8_t *met) {
  uint32_t k = 0;
  char text[200];
  for (uint64_t at = 0; only.size && at <= only.size; k++) {
    const char *from = only.data + at, *comma = memchr(from, ',', (size_t)(only.size - at));
    uint64_t size = comma ? (uint64_t)(comma - from) : only.size - at;
    at += size + 1;
    if (met[k]) continue;
    snprintf(text, sizeof text,
             "option 'only' names '%.*s', which is no repeated region with a forward and a backward call",
             (int)(size < 80 ? size : 80), from);
    return jg_fail(host, ctx, AOT_E_NOT_FOUND, "partition.no-region", text, aot_no_value());
  }
  return AOT_OK;
}

static aot_status_t note_call(const aot_host_t *host, aot_ctx_t *ctx, aot_node_t node, const aot_node_info_t *n,
                              const call_name_t *name, pt_region_pair_t *p) {
  aot_node_t *half = name->is_backward ? &p->backward : &p->forward;
  if (half->id != AOT_NO_ID)
    return jg_fail(host, ctx, AOT_E_INVALID, "partition.same-call", "two calls of a region have the same number",
                   n->first_result);
  *half = node;
  if (name->is_backward) {
    p->joint = (uint32_t)n->args[0].u.i;
  } else {
    p->body = (uint32_t)n->args[0].u.i;
    p->n_operands = n->n_args - 2;
  }
  return AOT_OK;
}

/* The backward call begins with what the forward call got. */
static int belongs_together(const aot_host_t *host, aot_prog_t *prog, const pt_region_pair_t *p) {
  aot_node_info_t f = {.struct_size = sizeof f}, b = {.struct_size = sizeof b};
  if (p->forward.id == AOT_NO_ID || p->backward.id == AOT_NO_ID) return 0;
  if (host->graph->node_info(prog, p->forward, &f) != AOT_OK || host->graph->node_info(prog, p->backward, &b) != AOT_OK)
    return 0;
  if (b.n_args < f.n_args) return 0;
  for (uint32_t a = 2; a < f.n_args; a++)
    if (f.args[a].kind != b.args[a].kind || f.args[a].u.i != b.args[a].u.i) return 0;
  return 1;
}

static aot_status_t collect(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, aot_str_t only,
                            uint8_t *met, pt_region_pairs_t *out) {
  for (aot_node_t n = host->graph->first(prog, graph); n.id != AOT_NO_ID; n = host->graph->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    call_name_t name;
    AOT_TRY(host->graph->node_info(prog, n, &info));
    if (!read_name(host->graph->op_desc(prog, info.op), &info, &name) || name.number >= out->n) continue;
    if (is_wanted(only, name.region, met)) AOT_TRY(note_call(host, ctx, n, &info, &name, &out->at[name.number]));
  }
  for (uint32_t k = 0; k < out->n; k++)
    if (!belongs_together(host, prog, &out->at[k])) out->at[k].forward = out->at[k].backward = aot_no_node();
  return check_met(host, ctx, only, met);
}

aot_status_t pt_region_pairs_init(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                  aot_str_t only, pt_region_pairs_t *out) {
  uint8_t *met = calloc((size_t)only.size + 1, 1);
  out->n = host->graph->n_nodes(prog);
  out->at = malloc(((size_t)out->n + 1) * sizeof *out->at);
  for (uint32_t k = 0; out->at && k < out->n; k++)
    out->at[k] = (pt_region_pair_t){aot_no_node(), aot_no_node(), 0, 0, 0};
  aot_status_t status = met && out->at ? collect(host, ctx, prog, graph, only, met, out) : jg_no_memory(host, ctx);
  free(met);
  if (status != AOT_OK) pt_region_pairs_deinit(out);
  return status;
}

void pt_region_pairs_deinit(pt_region_pairs_t *p) {
  free(p->at);
  *p = (pt_region_pairs_t){NULL, 0};
}
