/* `operators:` of a pipeline: schema texts become operators of the session, before the model is read.
 *
 * The host knows no schema grammar: an opset that offers aot.declare/1 reads the texts and is asked about the operators ever
 * after. A complaint points into the text where it stands in the pipeline. */
#include <pipeline/session.h>

#include <aot/ext/declare.h>
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
