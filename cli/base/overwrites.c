#include <cli/base/overwrites.h>

#include <aot/inline.h>
#include <base/file.h>
#include <config/pipeline.h>
#include <plugin/registry.h>

typedef struct written {
  const char *path, *what;
  const aoth_where_t *where;
  aoth_sink_t *sink;
} written_t;

static aot_status_t compare(const written_t *w, const char *read, const char *what) {
  if (!read || !kit_file_same(w->path, read)) return AOT_OK;
  aoth_sink_report(w->sink, AOT_SEVERITY_ERROR, w->where, "run.overwrites",
                   "%s would be written over %s: %s and %s are the same file; give it another name", w->what, what,
                   w->path, read);
  return AOT_E_INVALID;
}

/* Files that options name: programs around saved values, say. */
static aot_status_t compare_options(const written_t *w, const aoth_stage_t *stage) {
  for (uint32_t i = 0; stage->unit && i < stage->opts.n_values && i < stage->unit->desc.n_options; i++)
    if (stage->unit->options[i].kind == AOT_OPT_PATH && stage->opts.values[i].s.size)
      AOT_TRY(compare(w, stage->opts.values[i].s.data, "a file that an option names"));
  return AOT_OK;
}

aot_status_t aoth_pipeline_check_output(const aoth_pipeline_t *p, const char *path, const char *what,
                                        const aoth_where_t *where, aoth_sink_t *sink) {
  const aoth_run_spec_t *run = &p->run;
  const written_t w = {path, what, where, sink};
  if (!path) return AOT_OK;
  if (!p->model_bytes.data) AOT_TRY(compare(&w, p->model_path, "the model"));
  AOT_TRY(compare(&w, run->inputs.path, "the inputs"));
  if (run->train.present) AOT_TRY(compare(&w, run->train.data.path, "the data"));
  for (uint32_t i = 0; i < p->n_files; i++) AOT_TRY(compare(&w, p->files[i], "a file of the pipeline"));
  for (uint32_t i = 0; i < p->n_stages; i++) AOT_TRY(compare_options(&w, &p->stages[i]));
  return AOT_OK;
}

aot_status_t aoth_pipeline_check_outputs(const aoth_pipeline_t *p, aoth_sink_t *sink) {
  const aoth_run_spec_t *run = &p->run;
  const aoth_train_spec_t *train = &run->train;
  const char *checkpoint = train->present ? train->checkpoint_path : NULL;
  const written_t outputs = {run->outputs, "the outputs", &run->where_outputs, sink};
  const aot_status_t first =
      aoth_pipeline_check_output(p, checkpoint, "the checkpoint", &train->where_checkpoint, sink);
  AOT_TRY(aoth_pipeline_check_output(p, run->outputs, outputs.what, outputs.where, sink));
  if (run->outputs && checkpoint) AOT_TRY(compare(&outputs, checkpoint, "the checkpoint"));
  if (run->outputs && train->present) AOT_TRY(compare(&outputs, train->resume, "the checkpoint that it resumes"));
  return first;
}
