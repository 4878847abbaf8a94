#include <cli/verify/backend_shares.h>

#include <aot/inline.h>
#include <jansson.h>
#include <compiler/several_backends.h>
#include <string.h>

static uint32_t count_nodes(aot_prog_t *p) {
  uint32_t n = 0;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) {
    int32_t kind;
    aot_str_t name;
    if (aoth_graph_graph_info(p, (aot_graph_t){g}, &kind, &name) != AOT_OK || kind == AOT_GRAPH_REGION) continue;
    for (aot_node_t k = aoth_graph_first(p, (aot_graph_t){g}); k.id != AOT_NO_ID; k = aoth_graph_next(p, k)) n++;
  }
  return n;
}

void aoth_backend_shares(aoth_session_t *s, const aoth_pipeline_t *p, aoth_backend_shares_t *out) {
  const aoth_stage_t *last = p->n_stages ? &p->stages[p->n_stages - 1] : NULL;
  memset(out, 0, sizeof *out);
  out->n = aoth_session_shares(s, &out->at);
  if (out->n || !last || strcmp(last->unit->kind, "backend/2") != 0) return;
  out->one = (aoth_share_t){.backend = last->name, .n_nodes = count_nodes(aoth_session_prog(s)), .n_parts = 1};
  out->at = &out->one;
  out->n = 1;
}

static const char *plural(uint32_t n) { return n == 1 ? "" : "s"; }

void aoth_backend_shares_print(const aoth_backend_shares_t *b, int verbose, FILE *out) {
  for (uint32_t i = 0; i < b->n; i++) {
    const aoth_share_t *s = &b->at[i];
    fprintf(out, "%s%s %u node%s", i ? "; " : "backends: ", s->backend, s->n_nodes, plural(s->n_nodes));
    if (b->n > 1) fprintf(out, " in %u part%s", s->n_parts, plural(s->n_parts));
    if (s->device) fprintf(out, " on %s", s->device);
  }
  if (b->n) fprintf(out, "\n");
  for (uint32_t i = 0; verbose && i < b->n; i++)
    for (uint32_t k = 0; k < b->at[i].n_refusals; k++) {
      const aoth_refusal_t *r = &b->at[i].refusals[k];
      fprintf(out, "%s leaves %s, %u node%s: %s\n", b->at[i].backend, r->op, r->n_nodes, plural(r->n_nodes), r->reason);
    }
}

json_t *aoth_backend_shares_json(const aoth_backend_shares_t *b) { return aoth_shares_json(b->at, b->n); }

int aoth_backend_is_idle(const aoth_backend_shares_t *b) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < b->n; i++) all += b->at[i].n_nodes;
  return b->n > 1 && b->at[0].n_nodes == 0 && all > 0;
}
