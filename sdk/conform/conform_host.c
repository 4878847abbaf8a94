#include <sdk/conform/conform_host.h>

#include <ir/tables.h>
#include <stdio.h>
#include <string.h>

#define MOST_ASKED 32u

static struct {
  aot_host_t real; /* what the plugin would be handed */
  int what;        /* AOTH_HOSTILE_*, 0: nothing fails */
  uint64_t n, at;  /* calls of that sort since it was armed; the one that fails */
  int has_failed;
  char name[80];
  char asked[MOST_ASKED][40]; /* n_asked extensions, the first ones */
  uint32_t n_asked;
} hostile;

/* Is this the call? */
static int is_the_one(int what, const char *name) {
  if (hostile.what != what || hostile.n++ != hostile.at) return 0;
  hostile.has_failed = 1;
  snprintf(hostile.name, sizeof hostile.name, "%s", name);
  return 1;
}

/* ---- host ---- */

static void *AOT_CALL on_alloc(const aot_host_t *h, aot_ctx_t *ctx, uint32_t arena, uint32_t align, uint64_t size) {
  char name[80];
  (void)h;
  snprintf(name, sizeof name, "alloc of %llu bytes", (unsigned long long)size);
  if (!is_the_one(AOTH_HOSTILE_ALLOC, name)) return hostile.real.alloc(&hostile.real, ctx, arena, align, size);
  if (ctx) aoth_report_error(ctx, AOT_E_EXHAUSTED, "host.memory", "there is none left for an %s", name);
  return NULL;
}

static aot_status_t AOT_CALL on_diag(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)h;
  return hostile.real.diag(&hostile.real, ctx, d);
}

static int32_t AOT_CALL on_cancelled(const aot_host_t *h, aot_ctx_t *ctx) {
  (void)h;
  if (hostile.what == AOTH_HOSTILE_CANCELLED && hostile.n++ >= hostile.at) ctx->cancelled = hostile.has_failed = 1;
  return hostile.real.cancelled(&hostile.real, ctx);
}

static const void *AOT_CALL on_get_ext(const aot_table_t *t, const char *id) {
  (void)t;
  if (id && hostile.n_asked < MOST_ASKED) snprintf(hostile.asked[hostile.n_asked++], sizeof *hostile.asked, "%s", id);
  return is_the_one(AOTH_HOSTILE_EXTENSION, id ? id : "") ? NULL : hostile.real.head.get_ext(&hostile.real.head, id);
}

/* ---- graphs and edits ---- */

static int fails(aot_prog_t *p, const char *name) {
  if (!is_the_one(AOTH_HOSTILE_EDIT, name)) return 0;
  aoth_report_node(p, (aot_node_t){AOT_NO_ID}, AOT_SEVERITY_ERROR, "host.memory", NULL, "there is no memory for %s",
                   name);
  return 1;
}

static aot_status_t snapshot(aot_prog_t *p, const struct aot_snapshot **out) {
  return fails(p, "snapshot") ? AOT_E_EXHAUSTED : aoth_graph_snapshot(p, out);
}
static aot_status_t graph_create(aot_prog_t *p, int32_t kind, aot_str_t name, aot_graph_t *out) {
  return fails(p, "graph_create") ? AOT_E_EXHAUSTED : aoth_edit_graph_create(p, kind, name, out);
}
static aot_status_t graph_erase(aot_prog_t *p, aot_graph_t g) {
  return fails(p, "graph_erase") ? AOT_E_EXHAUSTED : aoth_edit_graph_erase(p, g);
}
static aot_status_t input_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, const aot_type_t *t,
                              aot_str_t name, aot_value_t *out) {
  return fails(p, "input_add") ? AOT_E_EXHAUSTED : aoth_edit_input_add(p, g, role, index, t, name, out);
}
static aot_status_t input_erase(aot_prog_t *p, aot_graph_t g, uint32_t i) {
  return fails(p, "input_erase") ? AOT_E_EXHAUSTED : aoth_edit_input_erase(p, g, i);
}
static aot_status_t output_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, aot_value_t v,
                               aot_str_t name) {
  return fails(p, "output_add") ? AOT_E_EXHAUSTED : aoth_edit_output_add(p, g, role, index, v, name);
}
static aot_status_t output_set(aot_prog_t *p, aot_graph_t g, uint32_t i, aot_value_t v) {
  return fails(p, "output_set") ? AOT_E_EXHAUSTED : aoth_edit_output_set(p, g, i, v);
}
static aot_status_t outputs_clear(aot_prog_t *p, aot_graph_t g) {
  return fails(p, "outputs_clear") ? AOT_E_EXHAUSTED : aoth_edit_outputs_clear(p, g);
}
static aot_status_t node_create(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before,
                                aot_node_t *out) {
  return fails(p, "node_create") ? AOT_E_EXHAUSTED : aoth_edit_node_create(p, g, s, before, out);
}
static aot_status_t node_erase(aot_prog_t *p, aot_node_t n) {
  return fails(p, "node_erase") ? AOT_E_EXHAUSTED : aoth_edit_node_erase(p, n);
}
static aot_status_t operand_set(aot_prog_t *p, aot_node_t n, uint32_t operand, aot_value_t v) {
  return fails(p, "operand_set") ? AOT_E_EXHAUSTED : aoth_edit_operand_set(p, n, operand, v);
}
static aot_status_t arg_set(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a) {
  return fails(p, "arg_set") ? AOT_E_EXHAUSTED : aoth_edit_arg_set(p, n, arg, a);
}
static aot_status_t uses_replace(aot_prog_t *p, aot_value_t from, aot_value_t to) {
  return fails(p, "uses_replace") ? AOT_E_EXHAUSTED : aoth_edit_uses_replace(p, from, to);
}
static aot_status_t type_set(aot_prog_t *p, aot_value_t v, const aot_type_t *t) {
  return fails(p, "type_set") ? AOT_E_EXHAUSTED : aoth_edit_type_set(p, v, t);
}
static aot_status_t flags_set(aot_prog_t *p, aot_node_t n, uint32_t flags) {
  return fails(p, "flags_set") ? AOT_E_EXHAUSTED : aoth_edit_flags_set(p, n, flags);
}
static aot_status_t name_set(aot_prog_t *p, aot_value_t v, aot_str_t name) {
  return fails(p, "name_set") ? AOT_E_EXHAUSTED : aoth_edit_name_set(p, v, name);
}
static aot_status_t note(aot_prog_t *p, aot_node_t n, aot_str_t text) {
  return fails(p, "note") ? AOT_E_EXHAUSTED : aoth_edit_note(p, n, text);
}
static aot_status_t leaf_create(aot_prog_t *p, const aot_leaf_info_t *leaf, aot_leaf_t *out) {
  return fails(p, "leaf_create") ? AOT_E_EXHAUSTED : aoth_edit_leaf_create(p, leaf, out);
}
static aot_status_t rule_add(aot_prog_t *p, const aot_rule_t *rule) {
  return fails(p, "rule_add") ? AOT_E_EXHAUSTED : aoth_edit_rule_add(p, rule);
}
static aot_status_t origin_create(aot_prog_t *p, const aot_origin_info_t *o, aot_origin_t *out) {
  return fails(p, "origin_create") ? AOT_E_EXHAUSTED : aoth_edit_origin_create(p, o, out);
}
static aot_status_t encoding_create(aot_prog_t *p, const aot_encoding_info_t *e, aot_encoding_t *out) {
  return fails(p, "encoding_create") ? AOT_E_EXHAUSTED : aoth_edit_encoding_create(p, e, out);
}
static aot_status_t symbol_create(aot_prog_t *p, const aot_symbol_info_t *s, int64_t *out_dim) {
  return fails(p, "symbol_create") ? AOT_E_EXHAUSTED : aoth_edit_symbol_create(p, s, out_dim);
}
static aot_status_t dim_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out_dim) {
  return fails(p, "dim_make") ? AOT_E_EXHAUSTED : aoth_edit_dim_make(p, op, a, b, c, out_dim);
}
static aot_status_t infer(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                          const aot_type_sink_t *sink) {
  return fails(p, "infer") ? AOT_E_EXHAUSTED : aoth_edit_infer(p, op, args, n_args, sink);
}
static aot_status_t decompose(aot_prog_t *p, aot_node_t n, aot_value_t *out_values) {
  return fails(p, "decompose") ? AOT_E_EXHAUSTED : aoth_edit_decompose(p, n, out_values);
}
static aot_status_t functional_form(aot_prog_t *p, aot_node_t n, aot_value_t *out_results, aot_value_t *out_written) {
  return fails(p, "functional_form") ? AOT_E_EXHAUSTED : aoth_edit_functional_form(p, n, out_results, out_written);
}
static aot_status_t view_inverse(aot_prog_t *p, aot_node_t view, uint32_t index, aot_value_t base, aot_value_t updated,
                                 aot_node_t before, aot_value_t *out_base) {
  return fails(p, "view_inverse") ? AOT_E_EXHAUSTED
                                  : aoth_edit_view_inverse(p, view, index, base, updated, before, out_base);
}
static aot_status_t aliases(aot_prog_t *p, aot_op_t op, const aot_call_t *call, uint32_t *out_operands) {
  return fails(p, "aliases") ? AOT_E_EXHAUSTED : aoth_edit_aliases(p, op, call, out_operands);
}

static void replace_edits(aot_edit_api_t *e) {
  const aot_table_t head = e->head;
  *e = (aot_edit_api_t){
      .head = head,
      .graph_create = graph_create,
      .graph_erase = graph_erase,
      .input_add = input_add,
      .input_erase = input_erase,
      .output_add = output_add,
      .output_set = output_set,
      .outputs_clear = outputs_clear,
      .node_create = node_create,
      .node_erase = node_erase,
      .operand_set = operand_set,
      .arg_set = arg_set,
      .uses_replace = uses_replace,
      .type_set = type_set,
      .flags_set = flags_set,
      .name_set = name_set,
      .note = note,
      .leaf_create = leaf_create,
      .rule_add = rule_add,
      .origin_create = origin_create,
      .encoding_create = encoding_create,
      .symbol_create = symbol_create,
      .dim_make = dim_make,
      .infer = infer,
      .decompose = decompose,
      .functional_form = functional_form,
      .view_inverse = view_inverse,
      .aliases = aliases,
  };
}

/* ---- the table ---- */

int aoth_hostile_install(aoth_plugin_t *p, kit_arena_t *arena) {
  aot_graph_api_t *graph = kit_arena_copy(arena, sizeof(void *), p->host->graph, sizeof *graph);
  aot_edit_api_t *edit = kit_arena_copy(arena, sizeof(void *), p->host->edit, sizeof *edit);
  if (!graph || !edit) return 0;
  hostile.real = *p->host;
  hostile.what = 0;
  graph->snapshot = snapshot;
  replace_edits(edit);
  p->host->graph = graph;
  p->host->edit = edit;
  p->host->head.get_ext = on_get_ext;
  p->host->alloc = on_alloc;
  p->host->diag = on_diag;
  p->host->cancelled = on_cancelled;
  return 1;
}

void aoth_hostile_arm(int what, uint64_t n) {
  hostile.what = what;
  hostile.n = 0;
  hostile.at = n;
  hostile.has_failed = 0;
}

int aoth_hostile_was_asked(const char *extension) {
  for (uint32_t i = 0; i < hostile.n_asked; i++)
    if (strcmp(hostile.asked[i], extension) == 0) return 1;
  return 0;
}

int aoth_hostile_has_failed(void) { return hostile.has_failed; }
const char *aoth_hostile_name(void) { return hostile.name; }
