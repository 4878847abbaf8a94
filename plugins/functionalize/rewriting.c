/* State of a rewrite: initialisation, errors, and nodes made by the pass. */
#include "rewriting.h"

#include "kit/base/errors.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

em_t fz_emitter(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, aot_node_t before,
                const char *what) {
  em_t e = em_make(host, ctx, prog, graph);
  e.before = e.node = before;
  e.code = "functionalize.no-operator";
  e.what = what;
  return e;
}

aot_status_t fz_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_node_t node) {
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, message);
  d.node = node;
  return kit_report(host, ctx, status, &d);
}

aot_status_t fz_no_memory(const aot_host_t *host, aot_ctx_t *ctx, aot_node_t node, const char *what) {
  return kit_no_memory(host, ctx, "functionalize.no-memory", node, what);
}

aot_status_t fz_no_alias_memory(const fz_rewrite_t *w) {
  return fz_no_memory(w->host, w->ctx, aot_no_node(), "for the alias sets");
}

aot_status_t fz_call(fz_rewrite_t *w, const char *op, const aot_arg_t *args, uint32_t n_args, aot_node_t before,
                     aot_value_t *out) {
  em_t e = fz_emitter(w->host, w->ctx, w->prog, w->graph, before, "a write through an alias");
  *out = em_value(&e, em_call(&e, op, n_args, args));
  return e.status;
}

aot_status_t fz_rewrite_init(fz_rewrite_t *w, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                             aot_graph_t graph) {
  memset(w, 0, sizeof *w);
  w->host = host;
  w->ctx = ctx;
  w->prog = prog;
  w->graph = graph;
  w->first_made = host->graph->n_nodes(prog);
  return fz_alias_init(&w->alias, host->graph->n_values(prog)) == 0 ? AOT_OK : fz_no_alias_memory(w);
}

void fz_rewrite_deinit(fz_rewrite_t *w) {
  fz_alias_deinit(&w->alias);
  free(w->chain);
}
