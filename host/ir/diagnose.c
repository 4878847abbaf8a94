/* Diagnostics about programs: the message once, at the place of trouble, with the way home.
 *
 *     gpt.py:41: error: sizes 8 and 9 do not broadcast [aten.broadcast]
 *       node %add_3 = aten.add.Tensor %linear_2, %wpe
 *       from transformer.h.0.attn, node add_3 of gpt.pt2
 *       in stage decompose (train.yaml:7)
 *       hint: ...
 *
 * A node made by a stage names the origin it was made from; the chain of parents is followed to its end, at most 8
 * steps. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/program_store.h>
#include <stdarg.h>
#include <string.h>

#define MAX_PARENTS 8

/* The nearest origin of the chain that says where in the model something is. */
static const aot_origin_info_t *known_origin(const aot_prog_t *p, uint32_t origin) {
  for (int step = 0; origin && origin < p->origins.n && step < MAX_PARENTS; step++) {
    const aot_origin_info_t *o = &p->origins.at[origin];
    AOT_ASSERT(o->parent.id < origin);
    if (o->source_file.size || o->module_path.size || o->node_name.size) return o;
    origin = o->parent.id;
  }
  return NULL;
}

static const aot_origin_info_t *origin_of_node(const aot_prog_t *p, uint32_t node) {
  return p && node < p->nodes.n ? known_origin(p, p->nodes.at[node].origin) : NULL;
}

static void line_origin(aot_prog_t *p, const aot_origin_info_t *o) {
  kit_text_t t = {0};
  if (o->module_path.size) kit_text_f(&t, "from module %.*s", STR_ARGS(o->module_path));
  if (o->node_name.size) kit_text_f(&t, "%snode %.*s", t.size ? ", " : "from ", STR_ARGS(o->node_name));
  if (p->model && t.size) kit_text_f(&t, " of %s", p->model);
  if (t.size) aoth_sink_line(p->ctx->sink, "%s", t.data);
  kit_text_deinit(&t);
}

/* Of a node, or of the one that is being made. */
static void line_node(aot_prog_t *p, uint32_t node, const aoth_node_row_t *making) {
  kit_text_t t = {0};
  aot_node_t n = {node};
  if (making) p->print_call(p, making, &t);
  else p->print_node(p, n, &t);
  if (t.size > 300) memcpy(t.data + 296, "...", 4); /* a long argument list reports nothing more */
  if (t.size) aoth_sink_line(p->ctx->sink, "node %s", t.data);
  kit_text_deinit(&t);
}

static void line_stage(const aot_ctx_t *ctx) {
  if (ctx->stage && ctx->where_file)
    aoth_sink_line(ctx->sink, "in stage %s (%s:%u)", ctx->stage, ctx->where_file, (unsigned)ctx->where_line);
  else if (ctx->stage) aoth_sink_line(ctx->sink, "in stage %s", ctx->stage);
}

/* One report: place, node, origin, stage, hint. file: a terminated copy of a name the caller knows, or NULL. */
static void report(aot_ctx_t *ctx, aot_prog_t *p, uint32_t node, int32_t severity, const aoth_where_t *given,
                   const char *code, const char *hint, const char *message) {
  aoth_where_t where = {0};
  const aoth_node_row_t *making = !node && p && !p->locator ? p->making : NULL;
  if (!node && p && !p->locator) node = p->asked_about;
  const aot_origin_info_t *origin =
      making && making->origin ? known_origin(p, making->origin) : origin_of_node(p, node);
  char *file = NULL;
  if (given) {
    where = *given;
  } else if (p && p->locator) {
    p->locator->find(p->locator->self, AOT_NO_INDEX, &where);
  } else if (origin && origin->source_file.size && ctx->scratch) {
    file = kit_arena_text(ctx->scratch, origin->source_file.data, (size_t)origin->source_file.size);
  } else if (origin && origin->source_file.size) {
    file = kit_arena_text(p->store, origin->source_file.data, (size_t)origin->source_file.size);
  }
  if (file) {
    where.file = file;
    where.line = origin->line;
  }
  if (severity >= AOT_SEVERITY_ERROR) ctx->n_diags++;
  aoth_sink_report(ctx->sink, severity, &where, code, "%s", message);
  if (making || (p && node && node < p->nodes.n)) line_node(p, node, making);
  if (origin) line_origin(p, origin);
  if (severity >= AOT_SEVERITY_WARNING) line_stage(ctx);
  if (hint && *hint) aoth_sink_line(ctx->sink, "hint: %s", hint);
}

void aoth_report_node(aot_prog_t *p, aot_node_t n, int32_t severity, const char *code, const char *hint,
                      const char *format, ...) {
  kit_text_t t = {0};
  va_list args;
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  report(p->ctx, p, n.id, severity, NULL, code, hint, t.data ? t.data : "");
  kit_text_deinit(&t);
}

static char *terminated(kit_text_t *t, aot_str_t s) {
  static char empty[1] = "";
  if (!s.size || !s.data) return empty;
  kit_text_str(t, s);
  return t->data ? t->data : empty;
}

/* The node that a diagnostic speaks of: the one it names, or the one that made the value it names. */
static uint32_t node_of_diag(const aot_prog_t *p, const aot_diag_t *d) {
  if (!p) return NONE;
  const uint32_t node = !p->node_map ? d->node.id : d->node.id < p->n_node_map ? p->node_map[d->node.id] : NONE;
  if (node && node < p->nodes.n) return node;
  return d->value.id < p->values.n ? p->values.at[d->value.id].def : NONE;
}

#define MOST_GIVEN 1000u
#define MOST_BYTES (UINT64_C(1) << 20)

/* Of one call: a unit that never stops must not fill the disk. An error that is dropped counts as one. */
static int is_dropped(aot_ctx_t *ctx, const aot_diag_t *d) {
  const uint64_t nbytes = d->message.size + d->hint.size;
  AOT_ASSERT(ctx->n_given <= MOST_GIVEN && ctx->n_given_bytes < MOST_BYTES + MOST_BYTES / 64);
  if (ctx->n_given < MOST_GIVEN && ctx->n_given_bytes < MOST_BYTES) {
    ctx->n_given++;
    ctx->n_given_bytes += nbytes < MOST_BYTES / 64 ? nbytes : MOST_BYTES / 64; /* the sink cuts it there */
    return 0;
  }
  ctx->n_dropped++;
  ctx->n_dropped_bytes += nbytes;
  if (d->severity >= AOT_SEVERITY_ERROR) ctx->n_diags++;
  return 1;
}

aot_status_t aoth_report_diag(aot_ctx_t *ctx, const aot_diag_t *d) {
  aot_diag_t diag;
  kit_text_t code = {0}, message = {0}, hint = {0}, file = {0};
  if (aot_import(&diag, sizeof diag, d) != AOT_OK) return AOT_E_TOO_NEW;
  if (diag.severity < AOT_SEVERITY_NOTE || diag.severity > AOT_SEVERITY_ERROR) diag.severity = AOT_SEVERITY_ERROR;
  if (is_dropped(ctx, &diag)) return AOT_OK;
  terminated(&message, diag.message);
  if (diag.byte && !diag.line) kit_text_f(&message, " (byte %llu)", (unsigned long long)diag.byte);
  aoth_where_t where = {
      .file = diag.file.size ? terminated(&file, diag.file) : NULL,
      .line = diag.line,
      .column = diag.column,
      .end_column = diag.column,
  };
  report(ctx, ctx->prog, node_of_diag(ctx->prog, &diag), diag.severity, where.file ? &where : NULL,
         terminated(&code, diag.code), terminated(&hint, diag.hint), message.data ? message.data : "");
  kit_text_deinit(&code);
  kit_text_deinit(&message);
  kit_text_deinit(&hint);
  kit_text_deinit(&file);
  return AOT_OK;
}

static void complain_v(aot_prog_t *p, uint32_t arg, const char *code, const char *format, va_list args) {
  aoth_where_t where = {0};
  if (p->locator) p->locator->find(p->locator->self, arg, &where);
  if (!p->locator && (p->making || p->asked_about)) {
    kit_text_t t = {0};
    kit_text_v(&t, format, args);
    report(p->ctx, p, NONE, AOT_SEVERITY_ERROR, NULL, code, NULL, t.data ? t.data : "");
    kit_text_deinit(&t);
    return;
  }
  p->ctx->n_diags++;
  aoth_sink_v(p->ctx->sink, AOT_SEVERITY_ERROR, &where, code, format, args);
  if (!p->locator) line_stage(p->ctx);
}

aot_status_t aoth_diagnose(aot_prog_t *p, aot_status_t status, const char *code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  complain_v(p, AOT_NO_INDEX, code, format, args);
  va_end(args);
  return status;
}

aot_status_t aoth_complain_arg(aot_prog_t *p, uint32_t arg, aot_status_t status, const char *code, const char *format,
                               ...) {
  va_list args;
  va_start(args, format);
  complain_v(p, arg, code, format, args);
  va_end(args);
  return status;
}

void aoth_hint(aot_prog_t *p, const char *format, ...) {
  kit_text_t t = {0};
  va_list args;
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  if (t.size) aoth_sink_line(p->ctx->sink, "hint: %s", t.data);
  kit_text_deinit(&t);
}

aot_status_t aoth_report_error(aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format, ...) {
  va_list args;
  kit_text_t t = {0};
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR, .node = {AOT_NO_ID}, .value = {AOT_NO_ID}};
  d.code = (aot_str_t){code, strlen(code)};
  d.message = (aot_str_t){t.data ? t.data : "", t.size};
  aoth_report_diag(ctx, &d);
  kit_text_deinit(&t);
  return status;
}

aot_status_t aoth_no_op(aot_prog_t *p, aot_op_t op) {
  return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no operator %u; %u are known", op.id,
                       aoth_ops_count(p->ops) - 1);
}

aot_status_t aoth_need_graph(aot_prog_t *p, aot_graph_t g) {
  if (!g.id || g.id >= p->graphs.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no graph %u; %u were made", g.id, p->graphs.n - 1);
  if (!p->graphs.at[g.id].alive) return aoth_diagnose(p, AOT_E_STALE, "ir.stale", "graph %u has been erased", g.id);
  return AOT_OK;
}

aot_status_t aoth_need_node(aot_prog_t *p, aot_node_t n) {
  touch(p, n.id);
  if (!n.id || n.id >= p->nodes.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no node %u; %u were made", n.id, p->nodes.n - 1);
  if (!p->nodes.at[n.id].alive)
    return aoth_diagnose(p, AOT_E_STALE, "ir.stale", "node %u (%.*s) has been erased", n.id,
                         STR_ARGS(op_name(p, p->nodes.at[n.id].op)));
  AOT_ASSERT(graph_is_alive(p, p->nodes.at[n.id].graph));
  return AOT_OK;
}

aot_status_t aoth_need_value(aot_prog_t *p, aot_value_t v) {
  if (!v.id || v.id >= p->values.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no value %u; %u were made", v.id, p->values.n - 1);
  if (!value_is_alive(p, v.id)) return aoth_diagnose(p, AOT_E_STALE, "ir.stale", "value %u has been erased", v.id);
  AOT_ASSERT(graph_is_alive(p, p->values.at[v.id].graph));
  return AOT_OK;
}
