#include "workshop.h"

#include <aot/inline.h>
#include "kit/base/text.h"
#include <sandbox/session.h>
#include <compiler/session_lifetime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WS_PROGRAMS 200u /* of one session, whose messages and records grow */
#define EMPTY "aot 1\nproperties imported\ngraph @main forward {\n}\n"

static aot_status_t exec(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                         uint64_t *known) {
  return aoth_session_run_exe(self, what, symbols, open, known);
}

static int put_file(const char *folder, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  int ok = f && fputs(text, f) >= 0;
  return f ? fclose(f) == 0 && ok : 0;
}

static void drop_file(const char *folder, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

static int put_pipeline(const ws_t *w) {
  kit_text_t yaml = {0};
  kit_text_z(&yaml, "aot: 1\nmodel: {import: ir, path: program.ir}\nstages:\n");
  for (const char *use = w->stages; *use;) {
    int n = (int)strcspn(use, " ");
    kit_text_f(&yaml, "  - use: %.*s\n", n, use);
    use += n + (use[n] == ' ');
  }
  int ok = yaml.data && put_file(w->folder, "p.yaml", yaml.data);
  kit_text_deinit(&yaml);
  return ok;
}

static int open_session(ws_t *w) {
  aoth_session_config_t config = {0};
  char path[128];
  const char *tmp = getenv("TMPDIR");
  snprintf(w->folder, sizeof w->folder, "%s/programXXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
  w->sink = config.sink = aoth_sink_create(NULL);
  if (!w->sink || !mkdtemp(w->folder) || !put_pipeline(w) || !put_file(w->folder, "program.ir", EMPTY)) return 0;
  snprintf(path, sizeof path, "%s/p.yaml", w->folder);
  if (aoth_pipeline_load(path, NULL, w->sink, &w->pipeline) != AOT_OK) return 0;
  w->session = aoth_session_create(&config);
  return w->session && aoth_pipeline_check(w->session, w->pipeline) == AOT_OK &&
         aoth_pipeline_import(w->session, w->pipeline) == AOT_OK; /* opens the operator set */
}

int ws_import(ws_t *w, const char *ir) {
  if (w->n_programs++ >= WS_PROGRAMS) ws_close(w);
  aoth_step_destroy(w->step);
  w->step = NULL;
  if (!w->session && !open_session(w)) return 0;
  w->n_complaints = (unsigned)strlen(aoth_sink_text(w->sink));
  aoth_model_t model = {.stage = {.use = "ir", .name = "ir"}};
  model.file =
      (aot_file_t){.struct_size = sizeof model.file, .path = aot_str("program.ir"), .data = ir, .nbytes = strlen(ir)};
  return aoth_session_read_model(w->session, &model) == AOT_OK;
}

int ws_build(ws_t *w) {
  aoth_exec_t run = {.self = w->session, .queue = aoth_session_queue(w->session), .run = exec};
  return aoth_pipeline_run_stages(w->session, w->pipeline, 0) == AOT_OK &&
         aoth_step_create(aoth_session_prog(w->session), &run, w->sink, &w->step) == AOT_OK;
}

int ws_compile(ws_t *w, const char *ir) { return ws_import(w, ir) && ws_build(w); }

const char *ws_complaints(const ws_t *w) { return w->sink ? aoth_sink_text(w->sink) + w->n_complaints : "no session"; }

void ws_close(ws_t *w) {
  if (!w->sink) return; /* never opened */
  aoth_step_destroy(w->step);
  if (w->session) aoth_session_destroy(w->session);
  aoth_pipeline_destroy(w->pipeline);
  aoth_sink_destroy(w->sink);
  drop_file(w->folder, "program.ir");
  drop_file(w->folder, "p.yaml");
  rmdir(w->folder);
  *w = (ws_t){.stages = w->stages};
}
