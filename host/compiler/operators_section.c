/* Schema texts become operators of the session before the model is read: those of a pipeline's `operators:`, then those
 * that the model file brings (aot/ext/model_operators.h), where nothing knows them yet.
 *
 * The host knows no schema grammar: an opset that offers aot.declare/1 reads the texts and is queried about the
 * operators ever after. A complaint points into the text where it is in the pipeline. */
#include <compiler/operators_section.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>
#include <compiler/operators_of_model.h>
#include <compiler/opsets.h>

#include <aot/ext/declare.h>
#include <string.h>

typedef struct declaration {
  aoth_session_t *s;
  const aoth_instance_t *opset; /* that takes texts; NULL: none does */
  aot_ext_declare_t ext;
  aoth_stage_t stage; /* the opset's, for calls */
  /* the text at hand */
  aot_str_t text;             /* terminated */
  const aoth_yaml_t *written; /* its place in the pipeline; NULL: the model file brings it */
  const aoth_where_t *where;  /* of the text, or of the model's name */
} declaration_t;

/* ---- the opset ---- */

static const aoth_instance_t *find_opset(aoth_session_t *s, aot_ext_declare_t *out) {
  for (uint32_t i = 0; i < s->n_opsets; i++)
    if (aoth_instance_extension(&s->opsets[i], AOT_EXT_DECLARE, out, sizeof *out) == AOT_OK && out->declare)
      return &s->opsets[i];
  return NULL;
}

/* id: of the opset that is opened if none that is open accepts texts. */
static aot_status_t declaring_init(aoth_session_t *s, const char *id, const aoth_where_t *where, declaration_t *out) {
  *out = (declaration_t){.s = s, .where = where};
  if (!find_opset(s, &out->ext)) AOT_TRY(aoth_session_open_opset(s, id, where));
  out->opset = find_opset(s, &out->ext);
  if (!out->opset) return AOT_OK;
  const aoth_unit_t *unit = out->opset->unit;
  out->stage = (aoth_stage_t){.use = unit->id, .name = unit->id, .unit = unit};
  if (where) out->stage.where = *where;
  return AOT_OK;
}

/* ---- one text ---- */

/* The text's place, moved on to a byte of it. A text with escapes or over several lines keeps the place where it
 * begins. */
static aoth_where_t place_in(aoth_session_t *s, const aoth_yaml_t *text, uint32_t byte) {
  aoth_where_t where = aoth_yaml_where(s->arena, text);
  const uint32_t begin = where.column + (text->quoted ? 1u : 0u);
  const size_t size = where.source ? strcspn(where.source, "\n") : 0;
  if (!where.line || begin == 0 || begin - 1 + text->text.size > size) return where;
  if (memcmp(where.source + begin - 1, text->text.data, (size_t)text->text.size) != 0) return where;
  where.column = begin + (byte < text->text.size ? byte : (uint32_t)text->text.size);
  where.end_column = where.column + 1;
  return where;
}

static aot_status_t complain(const declaration_t *d, const aot_declare_error_t *error) {
  aoth_sink_t *sink = d->s->config.sink;
  if (d->written) {
    const aoth_where_t where = place_in(d->s, d->written, error->byte);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "operators.schema", "%s", error->message);
  } else {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, d->where, "operators.schema",
                     "the model file declares an operator that cannot be: %s", error->message);
  }
  aoth_sink_line(sink, "in the schema: %s", d->text.data);
  if (d->written) aoth_yaml_notes(sink, d->s->arena, d->written, "operators.schema");
  d->s->ctx.n_diags++;
  return AOT_E_INVALID;
}

/* A bundle has them, too. */
static aot_status_t remember(aoth_session_t *s, aot_str_t text) {
  aot_str_t *rows = aoth_session_room(s, s->declared, s->n_declared, &s->declared_capacity, sizeof *rows);
  const char *copy = rows ? kit_arena_text(s->arena, text.data, (size_t)text.size) : NULL;
  if (!copy) return AOT_E_EXHAUSTED;
  s->declared = rows;
  rows[s->n_declared++] = (aot_str_t){copy, text.size};
  return AOT_OK;
}

static aot_status_t do_declare(void *arg) {
  const declaration_t *d = arg;
  aot_declare_error_t error = {.struct_size = sizeof error};
  const aot_op_desc_t *op = NULL;
  uint32_t local = 0;
  const aot_status_t status = d->ext.declare(&d->ext, &d->s->ctx, d->text, &op, &local, &error);
  if (status == AOT_E_INVALID) return complain(d, &error);
  AOT_TRY(status);
  if (!d->written && aoth_ops_find(d->s->ops, op->name).id != AOT_NO_ID) return AOT_OK; /* what is known holds */
  const aot_status_t added = aoth_ops_declare(d->s->ops, d->opset->self, op, local, d->where, d->s->config.sink);
  if (added != AOT_OK) d->s->ctx.n_diags++;
  return added == AOT_OK ? remember(d->s, d->text) : added;
}

static aot_status_t declare_text(declaration_t *d) {
  const aot_status_t status = aoth_call(d->s, &d->stage, "declare", do_declare, d);
  return d->s->outcome == AOTH_CALL_SILENT ? aoth_session_fail(d->s, &d->stage) : status;
}

/* ---- the pipeline's ---- */

aot_status_t aoth_session_declare(aoth_session_t *s, const char *id, const aoth_yaml_t *const *texts,
                                  uint32_t n_texts) {
  declaration_t d;
  aot_status_t first = AOT_OK;
  if (n_texts == 0) return AOT_OK;
  const aoth_where_t where = aoth_yaml_where(s->arena, texts[0]);
  AOT_TRY(declaring_init(s, id, &where, &d));
  if (!d.opset) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &where, "operators.no-opset", "no opset takes schema texts");
    return AOT_E_PRECONDITION;
  }
  for (uint32_t i = 0; i < n_texts; i++) { /* all are looked at, so that one run reports all that is wrong */
    const aoth_where_t here = aoth_yaml_where(s->arena, texts[i]);
    d.text = texts[i]->text;
    d.written = texts[i];
    d.where = &here;
    const aot_status_t status = declare_text(&d);
    if (s->outcome == AOTH_CALL_SILENT) return status;
    if (first == AOT_OK) first = status;
  }
  return first;
}

/* ---- the model's own ---- */

typedef struct found {
  aoth_session_t *s;
  aot_str_t *texts; /* n, terminated; session memory */
  uint32_t n, capacity;
} found_t;

static aot_status_t AOT_CALL put_text(const aot_schema_sink_t *sink, aot_str_t schema) {
  found_t *f = sink->head.self;
  aot_str_t *texts = aoth_session_room(f->s, f->texts, f->n, &f->capacity, sizeof *texts);
  const char *text = texts ? kit_arena_text(f->s->arena, schema.data, (size_t)schema.size) : NULL;
  if (!text) return AOT_E_EXHAUSTED;
  f->texts = texts;
  texts[f->n++] = (aot_str_t){text, schema.size};
  return AOT_OK;
}

aot_status_t aoth_session_declare_found(aoth_session_t *s, const char *id, const aoth_model_t *model) {
  found_t found = {.s = s};
  const aot_schema_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &found}, .put = put_text};
  declaration_t d;
  AOT_TRY(aoth_model_schemas(s, model, &sink));
  if (found.n == 0) return AOT_OK;
  AOT_TRY(declaring_init(s, id, model->where, &d));
  /* without an opset the importer says which operators are unknown */
  for (uint32_t i = 0; d.opset && i < found.n; i++) {
    d.text = found.texts[i];
    AOT_TRY(declare_text(&d));
  }
  return AOT_OK;
}
