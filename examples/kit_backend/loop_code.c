#include "loop_code.h"

#include "kit/base/sealed_file.h"
#include "kit/base/work_folder.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { FILE_SIZE = KF_PATH_SIZE + KF_NAME_SIZE };

void kb_code_deinit(kb_code_t *c) {
  for (kb_function_t *f = c->functions, *next; f; f = next) {
    next = f->next;
    free(f);
  }
  for (kb_module_t *m = c->modules, *next; m; m = next) {
    next = m->next;
    dlclose(m->handle);
    free(m);
  }
  lp_text_deinit(&c->source);
  memset(c, 0, sizeof *c);
}

/* Linear: layers share functions, so that a model has some dozens. */
const lw_loop_fn *kb_code_find(const kb_code_t *c, const char *name) {
  for (const kb_function_t *f = c->functions; f; f = f->next)
    if (strcmp(f->name, name) == 0) return &f->address;
  return NULL;
}

aot_status_t kb_code_add(kb_code_t *c, const char *name, const char *text, uint64_t nbytes, const lw_loop_fn **out) {
  kb_function_t *f = calloc(1, sizeof *f);
  *out = NULL;
  if (!f) return AOT_E_EXHAUSTED;
  if (!c->source.size) lp_prelude_add(&c->source);
  lp_text_add(&c->source, text, nbytes);
  snprintf(f->name, sizeof f->name, "%s", name);
  f->next = c->functions;
  c->functions = f;
  c->n_functions++;
  *out = &f->address;
  return c->source.failed ? AOT_E_EXHAUSTED : AOT_OK;
}

/* ---- the compiler ---- */

static int write_file(const char *path, const lp_text_t *text) {
  FILE *f = fopen(path, "wb");
  if (!f) return -1;
  const size_t n = fwrite(text->data, 1, (size_t)text->size, f);
  return fclose(f) == 0 && n == text->size ? 0 : -1;
}

static void first_line(const char *path, char *out, size_t size) {
  FILE *f = fopen(path, "rb");
  if (!f || !fgets(out, (int)size, f)) snprintf(out, size, "it prints nothing");
  out[strcspn(out, "\n")] = 0;
  if (f) fclose(f);
}

/* Started directly, without a shell. Integers of tensors wrap around, and sums keep their order: no -ffast-math. */
static int spawn(const char *compiler, const char *source, const char *object, const char *log) {
  const char *const argv[] = {compiler,
                              "-std=gnu11",
                              "-O2",
                              "-fno-math-errno",
                              "-fno-trapping-math",
                              "-fwrapv",
                              "-fPIC",
                              "-shared",
                              "-w",
                              "-o",
                              object,
                              source,
                              "-lm",
                              NULL};
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status = -1;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int failed = posix_spawnp(&pid, compiler, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    errno = failed;
    return -1;
  }
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static aot_status_t load(kb_code_t *c, const char *object, lw_error_t *error) {
  kb_module_t *m = calloc(1, sizeof *m);
  if (!m) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for generated code");
  m->handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
  if (!m->handle) {
    free(m);
    return lw_fail(error, AOT_E_UNAVAILABLE, "load", "generated code cannot be loaded: %s", dlerror());
  }
  m->next = c->modules;
  c->modules = m;
  for (kb_function_t *f = c->functions; f; f = f->next) {
    void *symbol = f->address ? NULL : dlsym(m->handle, f->name);
    if (symbol) memcpy(&f->address, &symbol, sizeof f->address); /* POSIX: both kinds of pointers have one form */
    if (!f->address) return lw_fail(error, AOT_E_INTERNAL, "load", "generated code lacks %s", f->name);
  }
  return AOT_OK;
}

/* path, key: where the object is cached; path NULL: nowhere. */
static aot_status_t compile_in(kb_code_t *c, const kf_work_t *w, const char *path, kf_key_t key, lw_error_t *error) {
  char source[FILE_SIZE], object[FILE_SIZE], log[FILE_SIZE], line[200];
  kf_work_path(w, "loops.c", source);
  kf_work_path(w, "loops.so", object);
  kf_work_path(w, "log", log);
  if (write_file(source, &c->source) != 0)
    return lw_fail(error, AOT_E_UNAVAILABLE, "folder", "cannot write %.200s: %s", source, strerror(errno));
  const int status = spawn(c->compiler, source, object, log);
  if (status < 0)
    return lw_fail(error, AOT_E_UNAVAILABLE, "compiler", "cannot start the C compiler '%.80s': %s", c->compiler,
                   strerror(errno));
  if (status > 0) {
    first_line(log, line, sizeof line);
    return lw_fail(error, AOT_E_UNAVAILABLE, "compiler", "the C compiler '%.80s' fails on generated code: %s",
                   c->compiler, line);
  }
  if (path && (kf_seal(object, key) != 0 || rename(object, path) != 0))
    return lw_fail(error, AOT_E_UNAVAILABLE, "folder", "cannot write %.200s: %s", path, strerror(errno));
  return load(c, path ? path : object, error);
}

static int is_cached(const char *path, kf_key_t key) {
  size_t nbytes;
  char *bytes = kf_read(path, key, &nbytes);
  free(bytes);
  return bytes != NULL;
}

static aot_status_t compile(kb_code_t *c, const char *path, kf_key_t key, lw_error_t *error) {
  const char *folder = c->cache ? c->cache : "/tmp";
  kf_work_t w;
  if (kf_work_begin(folder, &w) != 0)
    return lw_fail(error, AOT_E_UNAVAILABLE, "folder", "cannot make a folder in %.200s: %s", folder, strerror(errno));
  const aot_status_t status = compile_in(c, &w, path, key, error);
  kf_work_end(&w); /* an object that is not cached stays mapped */
  return status;
}

aot_status_t kb_code_compile(kb_code_t *c, lw_error_t *error) {
  char path[FILE_SIZE];
  if (!c->source.size) return AOT_OK;
  const kf_key_t compiler = kf_key(c->compiler, strlen(c->compiler), 0);
  const kf_key_t key = kf_key(c->source.data, (size_t)c->source.size, compiler.low64);
  const int n = snprintf(path, sizeof path, "%s/example.kit-backend-%016llx%016llx.so", c->cache ? c->cache : "",
                         (unsigned long long)key.high64, (unsigned long long)key.low64);
  const int is_kept = c->cache && n > 0 && n < (int)sizeof path;
  const aot_status_t status =
      is_kept && is_cached(path, key) ? load(c, path, error) : compile(c, is_kept ? path : NULL, key, error);
  lp_text_deinit(&c->source);
  c->source = (lp_text_t){0};
  return status;
}
