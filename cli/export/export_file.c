/* From a program in a session to a file. See export_file.h. */
#include <cli/export/export_file.h>
#include <sandbox/session.h>

#include <aot/ext/export.h>
#include <aot/inline.h>
#include <sandbox/call.h>
#include <compiler/decompose.h>
#include <sandbox/extension.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 64u
#define MAX_LISTED 50u

/* ---- the stages that are missing ---- */

/* The first pass that gives the property to a program that has `properties`; no unit is known by its name here. */
static const char *giver(aoth_session_t *s, uint32_t property, aoth_properties_t properties) {
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    int has_pass = 0;
    for (uint32_t k = 0; k < p->n_units; k++)
      has_pass |= strcmp(p->units[k].kind, "pass/1") == 0 && !p->units[k].shadowed_by;
    if (!has_pass || aoth_plugin_open(s->registry, p, s->arena, NULL, NULL) != AOT_OK) continue;
    for (uint32_t k = 0; k < p->n_units; k++) {
      const aoth_unit_t *u = &p->units[k];
      if (u->shadowed_by || strcmp(u->kind, "pass/1") != 0 || !u->has_contract || !(u->contract.gives.known & property))
        continue;
      aoth_properties_t missing, unwanted;
      if (aoth_properties_minus(s->arena, u->contract.needs, properties, &missing) &&
          aoth_properties_are_none(missing) &&
          aoth_properties_common(s->arena, u->contract.refuses, properties, &unwanted) &&
          aoth_properties_are_none(unwanted))
        return u->id;
    }
  }
  return NULL;
}

static aot_status_t give(aoth_session_t *s, uint32_t property) {
  const aoth_properties_t properties = aoth_prog_properties(s->now.prog);
  aoth_stage_t stage;
  if (properties.known & property) return AOT_OK;
  const char *id = giver(s, property, properties);
  if (!id) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "export.stage",
                     "no unit is known that makes a program '%s' that is '%s'",
                     aoth_property_names(aoth_properties_known(property), s->arena),
                     aoth_property_names(properties, s->arena));
    return AOT_E_NOT_FOUND;
  }
  AOT_TRY(aoth_stage_of_unit(s, id, "pass/1", NULL, &stage));
  return aoth_session_run_stage(s, &stage);
}

aot_status_t aoth_export_prepare(aoth_session_t *s, int joint, int64_t loss) {
  const uint32_t properties = aoth_prog_properties(s->now.prog).known;
  const char *wrong = properties & AOTH_PROP_PARTITIONED ? "is divided into forward and backward already"
                      : properties & AOTH_PROP_LOWERED   ? "is made for a backend already"
                      : properties & AOTH_PROP_SHARDED   ? "is one shard of several"
                                                         : NULL;
  if (wrong) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "export.too-late",
                     "the program %s; an exported program is one graph", wrong);
    aoth_sink_line(s->config.sink, "hint: export before the partition");
    return AOT_E_PRECONDITION;
  }
  AOT_TRY(give(s, AOTH_PROP_FUNCTIONAL));
  AOT_TRY(aoth_export_check(s, joint, loss));
  if (joint) AOT_TRY(give(s, AOTH_PROP_JOINT));
  if (joint) return aoth_export_check_joint(s, loss);
  if (!(aoth_prog_properties(s->now.prog).known & AOTH_PROP_JOINT)) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "export.is-joint",
                   "the program holds gradients; --joint exports it with them");
  return AOT_E_PRECONDITION;
}

/* ---- the writer ---- */

typedef struct writer {
  aoth_session_t *s;
  aoth_stage_t stage;
  aoth_instance_t unit;
  aot_ext_export_t ext;
  aot_str_t name;
  aoth_writer_t *file;
  aot_str_t op;
  int32_t is_known;
  uint64_t nbytes;
} writer_t;

static int ends_with(const char *text, aot_str_t tail) {
  const size_t n = strlen(text);
  return tail.size && n > tail.size && memcmp(text + n - tail.size, tail.data, (size_t)tail.size) == 0;
}

/* The importer that writes files of the path's suffix; w->unit.unit NULL: there is none, and the suffixes are in
 * *known. */
static aot_status_t find_writer(writer_t *w, const char *path, kit_text_t *known) {
  aoth_session_t *s = w->s;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    for (uint32_t k = 0; k < p->n_units; k++) {
      if (p->units[k].shadowed_by || strcmp(p->units[k].kind, "import/1") != 0) continue;
      AOT_TRY(aoth_stage_of_unit(s, p->units[k].id, "import/1", NULL, &w->stage));
      AOT_TRY(aoth_instance_create(s, &w->stage, &w->unit));
      if (aoth_instance_extension(&w->unit, AOT_EXT_EXPORT, &w->ext, sizeof w->ext) == AOT_OK && w->ext.write) {
        if (ends_with(path, w->ext.suffix)) return AOT_OK;
        kit_text_f(known, ", %.*s (%s)", (int)w->ext.suffix.size, w->ext.suffix.data, w->stage.use);
      }
      aoth_instance_destroy(s, &w->stage, &w->unit);
    }
  }
  w->unit.unit = NULL;
  return AOT_OK;
}

/* ---- operators that the format does not know ---- */

static aot_status_t do_knows(void *arg) {
  writer_t *w = arg;
  w->is_known = !w->ext.knows || w->ext.knows(&w->ext, w->op);
  return AOT_OK;
}

/* Nodes of operators that the format does not know, in program order. Each operator is queried about once. */
static aot_status_t unknown_nodes(writer_t *w, kit_arena_t *arena, aot_node_t **out, uint32_t *out_n) {
  aot_prog_t *p = w->s->now.prog;
  const uint32_t n_ops = aoth_graph_n_ops(p);
  unsigned char *asked = kit_arena_alloc(arena, 1, n_ops + (size_t)1);
  aot_node_t *list = kit_arena_alloc(arena, sizeof(uint32_t), (aoth_graph_n_nodes(p) + (size_t)1) * sizeof *list);
  *out_n = 0;
  *out = list;
  if (!asked || !list) return AOT_E_EXHAUSTED;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t k = aoth_graph_first(p, (aot_graph_t){g}); k.id != AOT_NO_ID; k = aoth_graph_next(p, k)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(aoth_graph_node_info(p, k, &info));
      if (!asked[info.op.id]) {
        w->op = aoth_graph_op_desc(p, info.op)->name;
        AOT_TRY(aoth_call(w->s, &w->stage, "knows", do_knows, w));
        asked[info.op.id] = w->is_known ? 1 : 2;
      }
      if (asked[info.op.id] == 2) list[(*out_n)++] = k;
    }
  return AOT_OK;
}

static aot_status_t tell_unknown(const writer_t *w, const aot_node_t *list, uint32_t n) {
  aoth_session_t *s = w->s;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "export.unknown-operator",
                   "files of %s cannot hold %u node%s, and no opset decomposes them", w->stage.use, n,
                   n == 1 ? "" : "s");
  for (uint32_t i = 0; i < n && i < MAX_LISTED; i++) {
    kit_text_t t = {0};
    aoth_print_node(s->now.prog, list[i], &t);
    aoth_sink_line(s->config.sink, "%.*s", (int)strcspn(t.data ? t.data : "", "\n"), t.data ? t.data : "");
    kit_text_deinit(&t);
  }
  if (n > MAX_LISTED) aoth_sink_line(s->config.sink, "and %u more", n - MAX_LISTED);
  aoth_sink_line(s->config.sink, "hint: the text form holds every operator: -o FILE.ir");
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t decompose_unknown(writer_t *w, uint32_t *out_n) {
  kit_arena_t *arena = kit_arena_create();
  aot_status_t status = arena ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t round = 0; status == AOT_OK; round++) {
    aot_node_t *list;
    uint32_t n, n_stuck = 0;
    status = unknown_nodes(w, arena, &list, &n);
    if (status != AOT_OK || n == 0) break;
    for (uint32_t i = 0; status == AOT_OK && i < n; i++) {
      int done = 0;
      status = aoth_decompose_node(w->s, &w->stage, arena, list[i], &done);
      if (!done) list[n_stuck++] = list[i];
    }
    *out_n += n - n_stuck;
    if (status == AOT_OK && (n_stuck || round == MAX_ROUNDS)) status = tell_unknown(w, list, n_stuck ? n_stuck : n);
  }
  kit_arena_destroy(arena);
  return status;
}

/* ---- writing ---- */

static aot_status_t put_bytes(const aot_bytes_sink_t *sink, const void *data, uint64_t nbytes) {
  writer_t *w = sink->head.self;
  aoth_writer_write(w->file, data, (size_t)nbytes);
  w->nbytes += nbytes;
  return AOT_OK;
}

static aot_status_t do_write(void *arg) {
  writer_t *w = arg;
  const aot_bytes_sink_t sink = {.head = {.struct_size = sizeof sink, .self = w}, .write = put_bytes};
  return w->ext.write(&w->ext, &w->s->ctx, w->s->now.prog, w->name, &sink);
}

/* "out/model.pt2" -> "model" */
static aot_str_t stem(const char *path, aot_str_t suffix) {
  const char *slash = strrchr(path, '/');
  aot_str_t name = aot_str(slash ? slash + 1 : path);
  if (name.size >= suffix.size) name.size -= suffix.size;
  return name;
}

static aot_status_t write_with(writer_t *w, const char *path, aoth_exported_t *out) {
  AOT_TRY(decompose_unknown(w, &out->n_decomposed));
  if (out->n_decomposed) AOT_TRY(aoth_verify(w->s->now.prog, aoth_prog_properties(w->s->now.prog).known));
  w->name = stem(path, w->ext.suffix);
  w->file = aoth_writer_begin(path, w->s->config.sink);
  if (!w->file) return AOT_E_INVALID;
  const aot_status_t status = aoth_call(w->s, &w->stage, "write", do_write, w);
  if (status == AOT_OK) {
    out->nbytes = w->nbytes;
    return aoth_writer_commit(w->file);
  }
  aoth_writer_abort(w->file);
  return w->s->outcome == AOTH_CALL_TOLD ? AOT_E_UNIMPLEMENTED : aoth_session_fail(w->s, &w->stage);
}

static aot_status_t write_text(aoth_session_t *s, const char *path, aoth_exported_t *out) {
  kit_text_t text = {0};
  aot_status_t status = AOT_OK;
  aoth_print(s->now.prog, &text);
  out->format = "text";
  out->nbytes = text.size;
  if (path) {
    aoth_writer_t *w = aoth_writer_begin(path, s->config.sink);
    if (w) aoth_writer_write(w, text.data, text.size);
    status = w ? aoth_writer_commit(w) : AOT_E_INVALID;
  } else {
    fwrite(text.data ? text.data : "", 1, text.size, stdout);
  }
  kit_text_deinit(&text);
  return status;
}

aot_status_t aoth_export_write(aoth_session_t *s, const char *path, aoth_exported_t *out) {
  writer_t w = {.s = s};
  kit_text_t known = {0};
  memset(out, 0, sizeof *out);
  if (!path || strcmp(path, "-") == 0) return write_text(s, NULL, out);
  if (ends_with(path, aot_str(".ir"))) return write_text(s, path, out);
  aot_status_t status = find_writer(&w, path, &known);
  if (status == AOT_OK && !w.unit.unit) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "export.format",
                     "no format is known for '%s'; by its suffix: .ir (text)%s", path, known.data ? known.data : "");
    status = AOT_E_INVALID;
  } else if (status == AOT_OK) {
    out->format = kit_arena_text(s->arena, w.stage.use, strlen(w.stage.use));
    status = write_with(&w, path, out);
    aoth_instance_destroy(s, &w.stage, &w.unit);
  }
  kit_text_deinit(&known);
  return status;
}
