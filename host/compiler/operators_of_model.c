/* What a model file says of operators before it is read, as its importer reports it (aot/ext/model_operators.h). */
#include <compiler/operators_of_model.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>

typedef struct lister {
  aoth_session_t *s;
  const aoth_model_t *model;
  const aoth_instance_t *importer;
  const aot_schema_sink_t *sink;
  int wants_schemas, is_told;
} lister_t;

static aot_status_t do_list(void *arg) {
  lister_t *l = arg;
  aot_ext_model_operators_t ext;
  if (aoth_instance_extension(l->importer, AOT_EXT_MODEL_OPERATORS, &ext, sizeof ext) != AOT_OK) return AOT_OK;
  l->is_told = l->wants_schemas ? ext.list != NULL : ext.namespaces != NULL;
  if (!l->is_told) return AOT_OK;
  return l->wants_schemas ? ext.list(&ext, &l->s->ctx, &l->model->file, l->sink)
                          : ext.namespaces(&ext, &l->s->ctx, &l->model->file, l->sink);
}

static aot_status_t ask_importer(lister_t *l, const char *doing) {
  const aoth_stage_t *stage = &l->model->stage;
  aoth_instance_t importer;
  AOT_TRY(aoth_instance_create(l->s, stage, &importer));
  l->importer = &importer;
  aot_status_t status = aoth_call(l->s, stage, doing, do_list, l);
  if (status != AOT_OK) status = aoth_session_fail(l->s, stage);
  aoth_instance_destroy(l->s, stage, &importer);
  return status;
}

aot_status_t aoth_model_schemas(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink) {
  lister_t l = {.s = s, .model = model, .sink = sink, .wants_schemas = 1};
  /* a text program names operators, and no more */
  return model->stage.unit ? ask_importer(&l, "model operators") : AOT_OK;
}

aot_status_t aoth_model_namespaces(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink,
                                   int *out_told) {
  lister_t l = {.s = s, .model = model, .sink = sink};
  const aot_status_t status = ask_importer(&l, "namespaces");
  *out_told = l.is_told;
  return status;
}
