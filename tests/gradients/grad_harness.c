#include "grad_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static aot_status_t exec(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                         uint64_t *known) {
  return aoth_session_run_exe(self, what, symbols, open, known);
}

static int write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  int ok = f && fputs(text, f) >= 0;
  return f ? fclose(f) == 0 && ok : 0;
}

static int write_files(gh_prog_t *p, const char *ir, const char *stages, char *pipeline_path, size_t size) {
  char path[128];
  kit_text_t yaml = {0};
  int ok;
  kit_text_f(&yaml, "aot: 1\nmodel: {import: ir, path: program.ir}\nstages:\n");
  while (*stages) {
    int n = (int)strcspn(stages, " ");
    kit_text_f(&yaml, "  - use: %.*s\n", n, stages);
    stages += n + (stages[n] == ' ');
  }
  snprintf(path, sizeof path, "%s/program.ir", p->folder);
  snprintf(pipeline_path, size, "%s/pipeline.yaml", p->folder);
  ok = write_file(path, ir) && write_file(pipeline_path, yaml.data);
  kit_text_deinit(&yaml);
  return ok;
}

static aot_status_t compile(gh_prog_t *p, const char *pipeline_path) {
  const aoth_session_config_t config = {.sink = p->sink};
  AOT_TRY(aoth_pipeline_load(pipeline_path, NULL, p->sink, &p->pipeline));
  p->session = aoth_session_create(&config);
  if (!p->session) return AOT_E_EXHAUSTED;
  AOT_TRY(aoth_pipeline_check(p->session, p->pipeline));
  AOT_TRY(aoth_pipeline_import(p->session, p->pipeline));
  AOT_TRY(aoth_pipeline_run_stages(p->session, p->pipeline, 0));
  if (!aoth_session_exe(p->session)) return AOT_OK;
  const aoth_exec_t run = {.self = p->session, .queue = aoth_session_queue(p->session), .run = exec};
  return aoth_step_create(aoth_session_prog(p->session), &run, p->sink, &p->step);
}

int gh_open(gh_prog_t *p, const char *ir, const char *stages) {
  char pipeline_path[128];
  const char *tmp = getenv("TMPDIR");
  memset(p, 0, sizeof *p);
  snprintf(p->folder, sizeof p->folder, "%.40s/gradXXXXXX", tmp && *tmp && strlen(tmp) < 40 ? tmp : P_tmpdir);
  p->sink = aoth_sink_create(NULL);
  aot_status_t status = AOT_E_UNKNOWN;
  if (p->sink && mkdtemp(p->folder) && write_files(p, ir, stages, pipeline_path, sizeof pipeline_path))
    status = compile(p, pipeline_path);
  if (status != AOT_OK)
    snprintf(p->why, sizeof p->why, "status %d: %s", (int)status, p->sink ? aoth_sink_text(p->sink) : "");
  return status == AOT_OK;
}

void gh_close(gh_prog_t *p) {
  char path[128];
  aoth_step_destroy(p->step);
  if (p->session) aoth_session_destroy(p->session);
  aoth_pipeline_destroy(p->pipeline);
  aoth_sink_destroy(p->sink);
  snprintf(path, sizeof path, "%s/program.ir", p->folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/pipeline.yaml", p->folder);
  unlink(path);
  rmdir(p->folder);
}

void gh_print(gh_prog_t *p, kit_text_t *out) { aoth_print(aoth_session_prog(p->session), out); }
