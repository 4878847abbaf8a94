/* A session over the test plugins in a folder of its own, for the unit tests of this folder. */
#ifndef SESSION_WORLD_H
#define SESSION_WORLD_H

#include <aot/inline.h>
#include <cli/base/bundle.h>
#include <process/crash.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
  char folder[1024], bundle[1040];
  aoth_sink_t *sink;
  aoth_session_t *session;
  aoth_pipeline_t *pipeline;
} fixture_t;

static inline void write_text(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static inline int setup(void **state) {
  static const char *const dirs[] = {TEST_PLUGINS "/good", TEST_PLUGINS "/hostile"};
  fixture_t *w = calloc(1, sizeof *w);
  strcpy(w->folder, TEST_PLUGINS "/session-XXXXXX");
  assert_non_null(mkdtemp(w->folder));
  assert_int_equal(chdir(w->folder), 0);
  snprintf(w->bundle, sizeof w->bundle, "%s/bundle", w->folder);
  w->sink = aoth_sink_create(NULL);
  const aoth_session_config_t config = {
      .sink = w->sink,
      .plugin_dirs = dirs,
      .n_plugin_dirs = 2,
      .bundle_dir = w->bundle,
      .write_bundle = aoth_bundle_write,
      .note_lowering = aoth_bundle_lowering,
      .isolate = AOTH_ISOLATE_NONE, /* tests/faults has workers */
  };
  w->session = aoth_session_create(&config);
  assert_non_null(w->session);
  *state = w;
  return 0;
}

/* The graph of that kind, without ports. */
static inline aot_status_t world_run(fixture_t *w, int32_t kind) {
  const aot_binding_t nothing = {.struct_size = sizeof nothing,
                                 .graph = {.struct_size = sizeof nothing.graph, .kind = kind}};
  return aoth_session_run_exe(w->session, &nothing, NULL, NULL, NULL);
}

static inline int teardown(void **state) {
  fixture_t *w = *state;
  aoth_session_destroy(w->session);
  aoth_pipeline_destroy(w->pipeline);
  aoth_sink_destroy(w->sink);
  assert_int_equal(chdir("/"), 0);
  char command[1040];
  snprintf(command, sizeof command, "rm -rf %s", w->folder);
  assert_int_equal(system(command), 0);
  free(w);
  return 0;
}

static inline void load(fixture_t *w, const char *model, const char *text) {
  write_text("m.toy", model);
  write_text("p.yaml", text);
  if (aoth_pipeline_load("p.yaml", NULL, w->sink, &w->pipeline) != AOT_OK ||
      aoth_pipeline_check(w->session, w->pipeline) != AOT_OK)
    fail_msg("%s", aoth_sink_text(w->sink));
}

/* What a process that contains crashes ends with (status, or signal + 1000) when it runs body, and what it said
 * meanwhile. */
static inline int end_of(void (*body)(fixture_t *), fixture_t *w, char *said, size_t size) {
  int out[2], status;
  size_t n = 0;
  assert_int_equal(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDERR_FILENO);
    signal(SIGSEGV, SIG_DFL); /* cmocka has its own */
    if (!aoth_contain_begin()) _exit(99);
    body(w);
    _exit(0);
  }
  close(out[1]);
  for (ssize_t got = 1; got > 0; n += got > 0 ? (size_t)got : 0) got = read(out[0], said + n, size - 1 - n);
  said[n] = 0;
  close(out[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static const char whole[] = "aot: 1\n"
                            "model: {import: toy-import, path: m.toy}\n"
                            "stages:\n"
                            "  - use: toy-functional\n"
                            "  - use: toy-backend\n"
                            "run: {train: {steps: 1, optimizer: toy-fuse, optimizer-with: {how: first}}}\n";

#endif
