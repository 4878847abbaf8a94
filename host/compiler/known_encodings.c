/* Does the backend know the memory spaces and encodings that types of the program name? What it was never reported of
 * it must not compile: bytes would be treated as something else. O(values), and one question for each value that names
 * one. */
#include <compiler/known_encodings.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>

#include <aot/ext/encodings.h>
#include <aot/inline.h>

#define MAX_TOLD 20u

typedef struct query {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  const aoth_instance_t *backend;
  aot_ext_encodings_t ext; /* knows NULL: not offered */
  uint32_t n_unknown;
} query_t;

static void tell(query_t *a, aot_value_t v, const aot_type_t *t) {
  aot_prog_t *p = a->s->now.prog;
  const aot_node_t node = aoth_graph_value_def(p, v);
  aot_encoding_info_t e = {.struct_size = sizeof e};
  kit_text_t what = {0};
  if (a->n_unknown++ >= MAX_TOLD) return;
  kit_text_f(&what, "%s %u of graph %u", node.id == AOT_NO_ID ? "input" : "result", aoth_graph_value_index(p, v),
             aoth_graph_value_graph(p, v).id);
  if (t->memory) kit_text_f(&what, " lies in memory space %u%s", t->memory, t->encoding.id == AOT_NO_ID ? "" : " and");
  if (aoth_graph_encoding_info(p, t->encoding, &e) == AOT_OK)
    kit_text_f(&what, " has encoding %.*s", (int)e.name.size, e.name.data);
  aoth_report_node(p, node, AOT_SEVERITY_ERROR, "lower.encoding", NULL, "backend %s does not know how %s",
                   a->stage->use, what.data ? what.data : "a value lies");
  kit_text_deinit(&what);
}

static void ask(query_t *a, aot_value_t v) {
  aot_type_t t;
  if (aoth_graph_value_type(a->s->now.prog, v, &t) != AOT_OK || (t.encoding.id == AOT_NO_ID && !t.memory)) return;
  if (!a->ext.knows || !a->ext.knows(&a->ext, &a->s->ctx, a->s->now.prog, &t)) tell(a, v, &t);
}

static aot_status_t do_ask(void *arg) {
  query_t *a = arg;
  aot_prog_t *p = a->s->now.prog;
  if (aoth_instance_extension(a->backend, AOT_EXT_ENCODINGS, &a->ext, sizeof a->ext) != AOT_OK) a->ext.knows = NULL;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) {
    const aot_port_t *inputs = aoth_graph_inputs(p, (aot_graph_t){g});
    for (uint32_t i = 0; i < aoth_graph_n_inputs(p, (aot_graph_t){g}); i++) ask(a, inputs[i].value);
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(aoth_graph_node_info(p, n, &info));
      for (uint32_t r = 0; r < info.n_results; r++) ask(a, (aot_value_t){info.first_result.id + r});
    }
  }
  return a->n_unknown ? AOT_E_UNIMPLEMENTED : AOT_OK;
}

aot_status_t aoth_stage_knows_encodings(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend) {
  query_t a = {.s = s, .stage = stage, .backend = backend};
  return aoth_call(s, stage, "get_ext", do_ask, &a);
}
