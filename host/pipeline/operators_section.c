/* Schema texts become operators of the session before the model is read: those of a pipeline's `operators:`, then those that the
 * model file brings (aot/ext/model_operators.h), where nobody knows them yet.
 *
 * The host knows no schema grammar: an opset that offers aot.declare/1 reads the texts and is asked about the operators ever
 * after. A complaint points into the text where it stands in the pipeline. */
#include <pipeline/session.h>

#include <aot/ext/declare.h>
#include <aot/ext/model_operators.h>
#include <aot/inline.h>
#include <string.h>

#define DECLARING_OPSET "declared-ops" /* opened when no opset of the pipeline's own list takes texts */

typedef struct declaring {
  aoth_session_t *s;
  const aoth_instance_t *opset;
  aot_ext_declare_t ext;
  const aoth_yaml_t *text;
} declaring_t;

static int takes_texts(const aoth_instance_t *opset, aot_ext_declare_t *out) {
  const aot_opset_t *table = &opset->table.opset;
  const void *given = table->get_ext ? table->get_ext(opset->self, AOT_EXT_DECLARE) : NULL;
  return given && aot_import(out, sizeof *out, given) == AOT_OK && out->declare;
}

static const aoth_instance_t *find_opset(aoth_session_t *s, aot_ext_declare_t *out) {
  for (uint32_t i = 0; i < s->n_opsets; i++)
    if (takes_texts(&s->opsets[i], out)) return &s->opsets[i];
  return NULL;
}

/* The text's place, moved on to a byte of it. A text with escapes or over several lines keeps the place where it begins. */
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

static aot_status_t complain(const declaring_t *d, const aot_declare_error_t *error) {
  const aoth_where_t where = place_in(d->s, d->text, error->byte);
  aoth_sink_report(d->s->config.sink, AOT_SEVERITY_ERROR, &where, "operators.schema", "%s", error->message);
  aoth_sink_line(d->s->config.sink, "in the schema: %s", d->text->text.data);
  aoth_yaml_notes(d->s->config.sink, d->s->arena, d->text, "operators.schema");
  d->s->ctx.n_diags++;
  return AOT_E_INVALID;
}

static aot_status_t do_declare(void *arg) {
  const declaring_t *d = arg;
  aot_declare_error_t error = {.struct_size = sizeof error};
  const aot_op_desc_t *op = NULL;
  uint32_t local = 0;
  const aot_status_t status = d->ext.declare(d->opset->self, &d->s->ctx, d->text->text, &op, &local, &error);
  if (status == AOT_E_INVALID) return complain(d, &error);
  AOT_TRY(status);
  const aoth_where_t where = aoth_yaml_where(d->s->arena, d->text);
  const aot_status_t added = aoth_ops_declare(d->s->ops, d->opset->self, op, local, &where, d->s->config.sink);
  if (added != AOT_OK) d->s->ctx.n_diags++;
  return added;
}

aot_status_t aoth_session_declare(aoth_session_t *s, const aoth_yaml_t *const *texts, uint32_t n_texts) {
  declaring_t d = {.s = s};
  aot_status_t first = AOT_OK;
  if (n_texts == 0) return AOT_OK;
  const aoth_where_t where = aoth_yaml_where(s->arena, texts[0]);
  if (!find_opset(s, &d.ext)) AOT_TRY(aoth_session_open_opset(s, DECLARING_OPSET, &where));
  d.opset = find_opset(s, &d.ext);
  if (!d.opset) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &where, "operators.no-opset", "no opset takes schema texts");
    return AOT_E_PRECONDITION;
  }
  aoth_stage_t stage = {.use = d.opset->unit->id, .name = d.opset->unit->id, .where = where, .unit = d.opset->unit};
  for (uint32_t i = 0; i < n_texts; i++) { /* all are looked at, so that one run tells all that is wrong */
    d.text = texts[i];
    const aot_status_t status = aoth_call(s, &stage, "declare", do_declare, &d);
    if (s->outcome == AOTH_CALL_SILENT) return aoth_session_fail(s, &stage);
    if (first == AOT_OK) first = status;
  }
  return first;
}

/* ---- the model's own ---- */

typedef struct model_declaring {
  declaring_t d;
  const aoth_model_t *model;
  const aoth_instance_t *importer;
  const char **texts; /* n_texts, terminated; session memory */
  uint32_t n_texts, capacity;
} model_declaring_t;

static aot_status_t AOT_CALL put_text(void *self, aot_str_t schema) {
  model_declaring_t *m = self;
  aoth_session_t *s = m->d.s;
  if (m->n_texts == m->capacity) {
    const uint32_t capacity = m->capacity ? 2 * m->capacity : 8;
    const char **texts = aoth_arena_alloc(s->arena, sizeof *texts, capacity * sizeof *texts);
    if (!texts) return AOT_E_EXHAUSTED;
    if (m->n_texts) memcpy(texts, m->texts, m->n_texts * sizeof *texts);
    m->texts = texts;
    m->capacity = capacity;
  }
  const char *text = aoth_arena_text(s->arena, schema.data, (size_t)schema.size);
  if (!text) return AOT_E_EXHAUSTED;
  m->texts[m->n_texts++] = text;
  return AOT_OK;
}

static aot_status_t do_list(void *arg) {
  model_declaring_t *m = arg;
  const aot_import_t *table = &m->importer->table.import;
  const void *given = table->get_ext ? table->get_ext(m->importer->self, AOT_EXT_MODEL_OPERATORS) : NULL;
  const aot_schema_sink_t sink = {.struct_size = sizeof sink, .self = m, .put = put_text};
  aot_ext_model_operators_t ext;
  if (!given || aot_import(&ext, sizeof ext, given) != AOT_OK || !ext.list) return AOT_OK;
  return ext.list(m->importer->self, &m->d.s->ctx, &m->model->file, &sink);
}

static aot_status_t do_declare_found(void *arg) {
  const model_declaring_t *m = arg;
  aoth_session_t *s = m->d.s;
  for (uint32_t i = 0; i < m->n_texts; i++) {
    aot_declare_error_t error = {.struct_size = sizeof error};
    const aot_op_desc_t *op = NULL;
    uint32_t local = 0;
    const aot_status_t status = m->d.ext.declare(m->d.opset->self, &s->ctx, aot_str(m->texts[i]), &op, &local, &error);
    if (status == AOT_E_INVALID) {
      aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, m->model->where, "operators.schema",
                       "the model file declares an operator that cannot be: %s", error.message);
      aoth_sink_line(s->config.sink, "in the schema: %s", m->texts[i]);
      s->ctx.n_diags++;
    }
    AOT_TRY(status);
    if (aoth_ops_find(s->ops, op->name).id != AOT_NO_ID) continue;
    AOT_TRY(aoth_ops_declare(s->ops, m->d.opset->self, op, local, m->model->where, s->config.sink));
  }
  return AOT_OK;
}

aot_status_t aoth_session_declare_found(aoth_session_t *s, const aoth_model_t *model) {
  model_declaring_t m = {.d = {.s = s}, .model = model};
  aoth_instance_t importer;
  aoth_stage_t stage = model->stage;
  if (!stage.unit) return AOT_OK; /* a text program names operators, and no more */
  AOT_TRY(aoth_instance_create(s, &stage, &importer));
  m.importer = &importer;
  aot_status_t status = aoth_call(s, &stage, "model operators", do_list, &m);
  if (status != AOT_OK) status = aoth_session_fail(s, &stage);
  aoth_instance_destroy(s, &stage, &importer);
  if (status != AOT_OK || m.n_texts == 0) return status;
  if (!find_opset(s, &m.d.ext)) AOT_TRY(aoth_session_open_opset(s, DECLARING_OPSET, model->where));
  m.d.opset = find_opset(s, &m.d.ext);
  if (!m.d.opset) return AOT_OK; /* the importer says which operators are unknown */
  aoth_stage_t declares = {.use = m.d.opset->unit->id, .name = m.d.opset->unit->id, .unit = m.d.opset->unit};
  if (model->where) declares.where = *model->where;
  status = aoth_call(s, &declares, "declare", do_declare_found, &m);
  return status != AOT_OK && s->outcome == AOTH_CALL_SILENT ? aoth_session_fail(s, &declares) : status;
}
