#include <cli/find/reduce_bundle.h>

#include <aot/inline.h>
#include <base/file.h>
#include <dirent.h>
#include <errno.h>
#include <ir/tables.h>
#include <sandbox/session.h>
#include <compiler/stage.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a bundle in another folder ---- */

static aot_status_t copy_file(const char *from, const char *to, aoth_sink_t *sink) {
  aoth_map_t map;
  AOT_TRY(aoth_file_map(from, sink, &map));
  aoth_writer_t *w = aoth_writer_begin_own(to, sink);
  if (w) aoth_writer_write(w, map.data, (size_t)map.nbytes);
  aoth_file_unmap(&map);
  return w ? aoth_writer_commit(w) : AOT_E_INVALID;
}

/* All of its files but the program. */
static aot_status_t copy_bundle(const char *from, const char *to, aoth_sink_t *sink) {
  static const char *const names[] = {"pipeline.yaml", "info.json", "call.safetensors"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    kit_text_t a = {0}, b = {0};
    kit_text_f(&a, "%s/%s", from, names[i]);
    kit_text_f(&b, "%s/%s", to, names[i]);
    const int is_there = a.data && access(a.data, F_OK) == 0;
    const aot_status_t status = is_there ? copy_file(a.data, b.data, sink) : AOT_OK;
    kit_text_deinit(&a);
    kit_text_deinit(&b);
    AOT_TRY(status);
  }
  return AOT_OK;
}

static aot_status_t make_folder(aoth_reduce_t *r) {
  const char *tmp = getenv("TMPDIR");
  snprintf(r->folder, sizeof r->folder, "%s/aothost-reduce-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (mkdtemp(r->folder)) return copy_bundle(r->bundle, r->folder, r->cli->sink);
  r->folder[0] = 0;
  aoth_sink_report(r->cli->sink, AOT_SEVERITY_ERROR, NULL, "reduce.folder", "no folder can be made in %s",
                   tmp && *tmp ? tmp : "/tmp");
  return AOT_E_INVALID;
}

/* ---- a try ---- */

/* Keeps the edited program if the bundle still fails in the same way; else undoes the edits. */
static int keep_or_undo(aoth_reduce_t *r, aot_prog_t *p, int is_edited) {
  kit_text_t text = {0};
  if (is_edited) aoth_print(p, &text);
  const int is_kept = is_edited && !text.failed && aoth_reduce_still_fails(r, text.data, text.size);
  if (is_kept) aoth_journal_commit(p);
  else aoth_journal_undo(p);
  if (is_kept) {
    kit_text_deinit(&r->text);
    r->text = text;
  } else {
    kit_text_deinit(&text);
  }
  return is_kept;
}

/* ---- nodes ---- */

static int same_type(const aot_type_t *a, const aot_type_t *b) {
  if (a->kind != b->kind) return 0;
  if (a->kind != AOT_TYPE_TENSOR) return a->expr == b->expr;
  if (a->dtype != b->dtype || a->rank != b->rank || a->device != b->device || a->encoding.id != b->encoding.id)
    return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d]) return 0;
  return 1;
}

/* What can be in a result's place: an operand of its type, or an input. */
static aot_value_t stand_in(aot_prog_t *p, aot_graph_t g, const aot_node_info_t *n, const aot_type_t *type) {
  const aot_port_t *in = aoth_graph_inputs(p, g);
  aot_type_t t;
  for (uint32_t i = 0; i < n->n_operands; i++) {
    const aot_value_t v = {n->operands[i]};
    if (v.id != AOT_NO_ID && aoth_graph_value_type(p, v, &t) == AOT_OK && same_type(&t, type)) return v;
  }
  for (uint32_t i = 0; i < aoth_graph_n_inputs(p, g); i++)
    if (aoth_graph_value_type(p, in[i].value, &t) == AOT_OK && same_type(&t, type)) return in[i].value;
  return (aot_value_t){AOT_NO_ID};
}

/* Or a user input more, of that type. */
static aot_status_t new_input(aot_prog_t *p, aot_graph_t g, const aot_type_t *type, aot_value_t *out) {
  aot_leaf_info_t leaf;
  aot_leaf_t made;
  uint32_t ordinal = 0;
  for (uint32_t l = 1; l < aoth_graph_n_leaves(p); l++) {
    leaf = (aot_leaf_info_t){.struct_size = sizeof leaf};
    AOT_TRY(aoth_graph_leaf_info(p, (aot_leaf_t){l}, &leaf));
    ordinal += leaf.role == AOT_ROLE_USER_INPUT;
  }
  aot_type_t plain = *type;
  plain.flags = 0;
  leaf = (aot_leaf_info_t){.struct_size = sizeof leaf, .role = AOT_ROLE_USER_INPUT, .ordinal = ordinal, .type = plain};
  AOT_TRY(aoth_edit_leaf_create(p, &leaf, &made));
  return aoth_edit_input_add(p, g, AOT_ROLE_USER_INPUT, made.id, &plain, (aot_str_t){NULL, 0}, out);
}

/* Nothing reads its results, and it is gone. 0: it must stay. */
static int erase(aot_prog_t *p, aot_graph_t g, aot_node_t node) {
  aot_node_info_t n = {.struct_size = sizeof n};
  aot_type_t type;
  if (aoth_graph_node_info(p, node, &n) != AOT_OK) return 0;
  for (uint32_t i = 0; i < n.n_results; i++) {
    const aot_value_t result = {n.first_result.id + i};
    if (!aoth_graph_n_uses(p, result)) continue;
    if (aoth_graph_value_type(p, result, &type) != AOT_OK) return 0;
    aot_value_t other = stand_in(p, g, &n, &type);
    if (other.id == AOT_NO_ID && (type.kind != AOT_TYPE_TENSOR || new_input(p, g, &type, &other) != AOT_OK)) return 0;
    if (aoth_edit_uses_replace(p, result, other) != AOT_OK) return 0;
    n = (aot_node_info_t){.struct_size = sizeof n};
    if (aoth_graph_node_info(p, node, &n) != AOT_OK) return 0;
  }
  return aoth_edit_node_erase(p, node) == AOT_OK;
}

typedef struct node_at {
  aot_graph_t graph;
  aot_node_t node;
} node_at_t;

static uint32_t list_nodes(aot_prog_t *p, node_at_t **out) {
  uint32_t n = 0;
  *out = malloc((size_t)aoth_graph_n_nodes(p) * sizeof **out);
  for (uint32_t g = 1; *out && g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t at = aoth_graph_first(p, (aot_graph_t){g}); at.id != AOT_NO_ID; at = aoth_graph_next(p, at))
      (*out)[n++] = (node_at_t){{g}, at};
  return n;
}

/* In order, so that an operand is replaced before its reader is queried what can be in its place. 0: none could go. */
static int erase_group(aot_prog_t *p, const node_at_t *nodes, uint32_t n) {
  uint32_t n_erased = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (aoth_journal_begin(p) != AOT_OK) return 0;
    const int is_erased = erase(p, nodes[i].graph, nodes[i].node);
    if (is_erased) aoth_journal_commit(p);
    else aoth_journal_undo(p);
    n_erased += is_erased != 0;
  }
  return n_erased != 0;
}

/* Groups of `size`, from the end on: what nothing reads any more goes before what it read. Answers whether any went. */
static int try_groups(aoth_reduce_t *r, aot_prog_t *p, uint32_t size) {
  node_at_t *nodes;
  const uint32_t n = list_nodes(p, &nodes);
  int any = 0;
  for (uint32_t end = n; nodes && end > 0; end = end > size ? end - size : 0) {
    const uint32_t begin = end > size ? end - size : 0;
    if (aoth_journal_begin(p) != AOT_OK) break;
    any |= keep_or_undo(r, p, erase_group(p, nodes + begin, end - begin));
  }
  free(nodes);
  return any;
}

static void reduce_nodes(aoth_reduce_t *r, aot_prog_t *p) {
  for (int again = 1; again;) {
    again = 0;
    for (uint32_t size = (uint32_t)aoth_count_nodes(p); size; size /= 2) {
      const int any = try_groups(r, p, size);
      again |= any && size == 1;
    }
  }
}

/* ---- outputs ---- */

static int is_optional(int32_t role) {
  return role == AOT_ROLE_USER_OUTPUT || role == AOT_ROLE_GRADIENT || role == AOT_ROLE_LOSS;
}

/* Outputs [begin, end) of the graph become None, as far as they may. */
static int drop_outputs(aot_prog_t *p, aot_graph_t g, uint32_t begin, uint32_t end) {
  int any = 0;
  for (uint32_t i = begin; i < end; i++) {
    const aot_port_t *port = &aoth_graph_outputs(p, g)[i];
    if (!is_optional(port->role) || port->value.id == AOT_NO_ID) continue;
    any |= aoth_edit_output_set(p, g, i, (aot_value_t){AOT_NO_ID}) == AOT_OK;
  }
  return any;
}

static void reduce_outputs(aoth_reduce_t *r, aot_prog_t *p) {
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) {
    const uint32_t n = aoth_graph_n_outputs(p, (aot_graph_t){g});
    for (uint32_t size = n; size; size /= 2)
      for (uint32_t begin = 0; begin < n; begin += size) {
        if (aoth_journal_begin(p) != AOT_OK) return;
        keep_or_undo(r, p, drop_outputs(p, (aot_graph_t){g}, begin, begin + size < n ? begin + size : n));
      }
  }
}

/* ---- inputs ---- */

static void reduce_inputs(aoth_reduce_t *r, aot_prog_t *p) {
  int any = 0;
  if (aoth_journal_begin(p) != AOT_OK) return;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (uint32_t i = aoth_graph_n_inputs(p, (aot_graph_t){g}); i-- > 0;) {
      const aot_value_t v = aoth_graph_inputs(p, (aot_graph_t){g})[i].value;
      if (!aoth_graph_n_uses(p, v)) any |= aoth_edit_input_erase(p, (aot_graph_t){g}, i) == AOT_OK;
    }
  keep_or_undo(r, p, any);
}

/* ---- all of it ---- */

static aot_status_t read_bundle(aoth_reduce_t *r, aoth_pipeline_t **out) {
  char path[4096];
  aoth_overrides_t overrides = {0};
  snprintf(path, sizeof path, "%s/pipeline.yaml", r->bundle);
  r->cli->common.no_cache = 1;
  AOT_TRY(aoth_cli_pipeline(r->cli, path, &overrides, out));
  return aoth_pipeline_import(r->cli->session, *out);
}

static aot_status_t reduce(aoth_reduce_t *r) {
  aoth_session_t *s = r->cli->session;
  aot_prog_t *p = s->now.prog;
  aoth_print(p, &r->text);
  r->nodes_before = r->nodes_after = aoth_count_nodes(p);
  AOT_TRY(aoth_reduce_first(r, r->text.data, r->text.size));
  if (r->status == AOTH_EXIT_OK) return AOT_OK;
  s->config.sink = s->ctx.sink = NULL; /* edits that are refused are no news */
  reduce_outputs(r, p);
  reduce_nodes(r, p);
  reduce_outputs(r, p);
  reduce_inputs(r, p);
  r->nodes_after = aoth_count_nodes(p);
  s->config.sink = s->ctx.sink = r->cli->sink;
  aoth_reduce_leaves(r);
  aoth_reduce_sizes(r);
  aoth_reduce_dtypes(r);
  return AOT_OK;
}

aot_status_t aoth_reduce_run(aoth_reduce_t *r, aoth_cli_t *cli, const char *bundle) {
  aoth_pipeline_t *p = NULL;
  *r = (aoth_reduce_t){.cli = cli, .bundle = bundle, .timeout = 60};
  aot_status_t status = read_bundle(r, &p);
  if (status == AOT_OK) status = make_folder(r);
  if (status == AOT_OK) status = reduce(r);
  aoth_pipeline_destroy(p);
  return status;
}

aot_status_t aoth_reduce_write(const aoth_reduce_t *r, const char *folder, aoth_sink_t *sink) {
  kit_text_t path = {0};
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "reduce.folder", "cannot make the folder %s: %s", folder,
                     strerror(errno));
    return AOT_E_INVALID;
  }
  AOT_TRY(copy_bundle(r->folder, folder, sink));
  kit_text_f(&path, "%s/program.ir", folder);
  aoth_writer_t *w = aoth_writer_begin_own(path.data ? path.data : "", sink);
  if (w) aoth_writer_write(w, r->text.data ? r->text.data : "", r->text.size);
  kit_text_deinit(&path);
  return w ? aoth_writer_commit(w) : AOT_E_INVALID;
}

void aoth_reduce_deinit(aoth_reduce_t *r) {
  static const char *const names[] = {"program.ir", "pipeline.yaml", "info.json", "call.safetensors"};
  char path[512];
  for (size_t i = 0; i < sizeof names / sizeof *names && r->folder[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", r->folder, names[i]);
    unlink(path);
  }
  if (r->folder[0]) rmdir(r->folder);
  kit_text_deinit(&r->text);
}
