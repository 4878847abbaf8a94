#include <ir/verifier.h>

#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>

void aoth_verify_report(aoth_verifier_t *v, uint32_t node, const char *code, const char *format, ...) {
  aot_node_t n = {node};
  va_list args;
  kit_text_t t = {0};
  v->n_bad++;
  if (v->n_bad > VERIFY_MAX_REPORTS) return;
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  aoth_report_node(v->p, n, AOT_SEVERITY_ERROR, code, NULL, "%s", t.data ? t.data : "");
  kit_text_deinit(&t);
}

int aoth_verify_full(const aoth_verifier_t *v) { return v->n_bad >= VERIFY_MAX_REPORTS; }

/* A graph as messages call it. */
const char *aoth_verify_graph_text(aoth_verifier_t *v, uint32_t graph) {
  const aoth_graph_row_t *g = &v->p->graphs.at[graph];
  snprintf(v->text, sizeof v->text, "%s graph @%.*s", aoth_graph_kind_name(g->kind), STR_ARGS(g->name));
  return v->text;
}
