#include "codecache.h"

#include "kit/base/sealed_file.h"
#include "kit/base/work_folder.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

extern char **environ;

/* Contraction and vectorised reductions of maxima are allowed; reassociation, finite-only and reciprocal shortcuts are
 * not. Vector code for the rest of a row is not worth its compile time, a third of all. */
static const char *const flags[] = {"-std=gnu11",
                                    "-O3",
                                    "--param",
                                    "vect-epilogues-nomask=0",
                                    "-march=native",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fwrapv",
                                    "-ffp-contract=fast",
                                    "-fPIC",
                                    "-shared",
                                    "-w"};
enum { N_FLAGS = sizeof flags / sizeof flags[0], PATH_SIZE = KF_PATH_SIZE };

static char *copy_text(const char *s) {
  size_t n = strlen(s) + 1;
  char *copy = malloc(n);
  return copy ? memcpy(copy, s, n) : NULL;
}

static aot_status_t make_private(bc_cache_t *c, lw_error_t *error) {
  const char *base = getenv("TMPDIR");
  char path[PATH_SIZE];
  int n = snprintf(path, sizeof path, "%s/aothost-cpu-XXXXXX", base && *base ? base : "/tmp");
  if (n < 0 || (size_t)n >= sizeof path || !mkdtemp(path))
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "no folder for generated code: %s", strerror(errno));
  c->private_dir = 1;
  c->dir = copy_text(path);
  return c->dir ? AOT_OK : lw_no_memory(error, "for a path");
}

aot_status_t bc_cache_init(bc_cache_t *c, const char *dir, const char *compiler, lw_error_t *error) {
  memset(c, 0, sizeof *c);
  c->compiler = copy_text(compiler);
  if (!c->compiler) return lw_no_memory(error, "for a path");
  if (!dir) return AOT_OK; /* a private one, when the first unit needs it */
  c->dir = copy_text(dir);
  if (c->dir) return AOT_OK;
  bc_cache_deinit(c);
  return lw_no_memory(error, "for a path");
}

void bc_cache_deinit(bc_cache_t *c) {
  if (c->private_dir && c->dir) rmdir(c->dir); /* units in it are removed once they are open */
  free(c->dir);
  free(c->compiler);
  memset(c, 0, sizeof *c);
}

static aot_status_t work_begin(const bc_cache_t *c, kf_work_t *w, lw_error_t *error) {
  if (kf_work_begin(c->dir, w) == 0) return AOT_OK;
  return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "generated code cannot be compiled in %.200s: %s", c->dir,
                 strerror(errno));
}

/* ---- running the compiler ---- */

/* Exit status, or -1 with errno when it could not be started. Output goes to out_fd. */
static int spawn(char *const *argv, int out_fd) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status = 0, failed;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
  failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    errno = failed;
    return -1;
  }
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Like spawn; the first bytes of its output go to text. */
static int spawn_read(char *const *argv, const kf_work_t *w, char *text, size_t size) {
  char path[PATH_SIZE + KF_NAME_SIZE];
  text[0] = 0;
  kf_work_path(w, "output", path);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int status = spawn(argv, fd), saved = errno;
  ssize_t got = pread(fd, text, size - 1, 0);
  text[got > 0 ? got : 0] = 0;
  close(fd);
  errno = saved;
  return status;
}

static aot_status_t no_compiler(bc_cache_t *c, lw_error_t *error, const char *why) {
  c->no_compiler = 1;
  error->hint = "install a C compiler, or name one in the option `compiler`";
  return lw_fail(error, AOT_E_UNAVAILABLE, "no-compiler", "the C compiler %s cannot be used: %s", c->compiler, why);
}

/* What the processor can do, as the kernel reports it: code for one machine must not be found by another. */
static uint64_t processor(uint64_t seed) {
  char line[8192];
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
      seed = XXH3_64bits_withSeed(line, strlen(line), seed);
      break;
    }
  if (f) fclose(f);
  return seed;
}

static int write_source(const char *path, const char *source, uint64_t nbytes) {
  FILE *f = fopen(path, "wb");
  if (!f) return -1;
  size_t put = fwrite(source, 1, (size_t)nbytes, f);
  return fclose(f) == 0 && put == nbytes ? 0 : -1;
}

/* ---- which compiler it is ---- */

/* The file that the name means, as execvp finds it. 0: none. */
static int find_compiler(const char *name, char *path, size_t size, struct stat *st) {
  const char *folders = strchr(name, '/') ? "" : getenv("PATH");
  for (const char *at = folders; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
    int width = (int)strcspn(at, ":");
    int n = snprintf(path, size, "%.*s%s%s", width, at, width ? "/" : "", name);
    if (n > 0 && (size_t)n < size && stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, X_OK) == 0) return 1;
  }
  return 0;
}

/* The cache file with the version text of this compiler binary (by path, inode, size and time): running the compiler
 * for it costs more than the rest of a start with cached code. 0: there is no such compiler. */
static int version_path(const bc_cache_t *c, char *path, size_t size) {
  struct stat st;
  if (!find_compiler(c->compiler, path, size, &st)) return 0;
  const int64_t file[] = {(int64_t)st.st_dev, (int64_t)st.st_ino, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                          (int64_t)st.st_mtim.tv_nsec};
  const uint64_t key = XXH3_64bits_withSeed(file, sizeof file, XXH3_64bits(path, strlen(path)));
  int n = snprintf(path, size, "%s/compiler-%016llx.version", c->dir, (unsigned long long)key);
  return n > 0 && (size_t)n < size;
}

static int read_version(const char *path, char *version, size_t size) {
  size_t n = 0;
  char *bytes = kf_read_all(path, &n);
  if (bytes && n < size) memcpy(version, bytes, n);
  else n = 0;
  free(bytes);
  version[n] = 0;
  return n > 1 && version[n - 1] == '\n'; /* what was cut short is queried again */
}

static void keep_version(const kf_work_t *w, const char *path, const char *version) {
  char tmp[PATH_SIZE + KF_NAME_SIZE];
  kf_work_path(w, "version", tmp);
  if (write_source(tmp, version, strlen(version)) == 0) rename(tmp, path);
}

static aot_status_t ask_version(bc_cache_t *c, const char *kept_path, char *version, size_t size, lw_error_t *error) {
  char word[] = "--version", *argv[] = {c->compiler, word, NULL};
  kf_work_t w;
  AOT_TRY(work_begin(c, &w, error));
  const int status = spawn_read(argv, &w, version, size), why = errno;
  if (status == 0 && kept_path) keep_version(&w, kept_path, version);
  kf_work_end(&w);
  return status == 0 ? AOT_OK : no_compiler(c, error, status < 0 ? strerror(why) : "it does not tell its version");
}

static aot_status_t identify(bc_cache_t *c, lw_error_t *error) {
  char version[2048], path[PATH_SIZE];
  if (c->identity) return AOT_OK;
  if (c->no_compiler) return no_compiler(c, error, "it was not found before");
  const int is_kept = !c->private_dir && version_path(c, path, sizeof path);
  if (!is_kept || !read_version(path, version, sizeof version))
    AOT_TRY(ask_version(c, is_kept ? path : NULL, version, sizeof version, error));
  c->identity = processor(XXH3_64bits(version, strlen(version)));
  for (int k = 0; k < N_FLAGS; k++) c->identity = XXH3_64bits_withSeed(flags[k], strlen(flags[k]), c->identity);
  return AOT_OK;
}

/* ---- units ---- */

/* The loader maps a file without checking it, and does not read what follow the code: the seal. */
static int is_sealed(const char *path, kf_key_t key) {
  size_t nbytes;
  char *bytes = kf_read(path, key, &nbytes);
  const int is_there = bytes != NULL;
  free(bytes);
  return is_there;
}

static aot_status_t compile_in(bc_cache_t *c, const kf_work_t *w, const char *source, uint64_t nbytes, kf_key_t key,
                               const char *so, lw_error_t *error) {
  char c_path[PATH_SIZE + KF_NAME_SIZE], so_path[PATH_SIZE + KF_NAME_SIZE], text[300],
      out_flag[] = "-o", math[] = "-lm", *argv[N_FLAGS + 6];
  int n = 0;
  kf_work_path(w, "unit.c", c_path);
  kf_work_path(w, "unit.so", so_path);
  argv[n++] = c->compiler;
  for (int k = 0; k < N_FLAGS; k++) argv[n++] = (char *)(uintptr_t)flags[k]; /* posix_spawn does not write them */
  argv[n++] = out_flag;
  argv[n++] = so_path;
  argv[n++] = c_path;
  argv[n++] = math;
  argv[n] = NULL;
  if (write_source(c_path, source, nbytes))
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "generated code cannot be written to %.200s: %s", c_path,
                   strerror(errno));
  int status = spawn_read(argv, w, text, sizeof text);
  if (status < 0) return no_compiler(c, error, strerror(errno));
  if (status)
    return lw_fail(error, AOT_E_UNAVAILABLE, "compiler-failed", "%s fails on generated code: %s", c->compiler, text);
  if (kf_seal(so_path, key) || rename(so_path, so))
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "%.200s: %s", so, strerror(errno));
  return AOT_OK;
}

static aot_status_t compile(bc_cache_t *c, const char *source, uint64_t nbytes, kf_key_t key, const char *so,
                            lw_error_t *error) {
  kf_work_t w;
  AOT_TRY(work_begin(c, &w, error));
  const aot_status_t status = compile_in(c, &w, source, nbytes, key, so, error);
  kf_work_end(&w);
  return status;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

aot_status_t bc_code_open(bc_cache_t *c, const char *source, uint64_t nbytes, void **out_handle, bc_code_stats_t *stats,
                          lw_error_t *error) {
  char so[PATH_SIZE];
  double begin = now_ms();
  if (!c->dir) AOT_TRY(make_private(c, error));
  AOT_TRY(identify(c, error));
  kf_key_t key = kf_key(source, (size_t)nbytes, c->identity);
  int n = snprintf(so, sizeof so, "%s/cpu-%016llx%016llx.so", c->dir, (unsigned long long)key.high64,
                   (unsigned long long)key.low64);
  if (n < 0 || (size_t)n >= sizeof so)
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "the cache folder's path is too long");
  *out_handle = is_sealed(so, key) ? dlopen(so, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (*out_handle) {
    stats->n_hits++;
  } else {
    AOT_TRY(compile(c, source, nbytes, key, so, error));
    *out_handle = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    stats->n_compiled++;
    stats->compile_ms += now_ms() - begin;
  }
  if (c->private_dir) unlink(so);
  if (*out_handle) return AOT_OK;
  const char *why = dlerror();
  return lw_fail(error, AOT_E_UNAVAILABLE, "code-not-loaded", "compiled code cannot be loaded: %s", why ? why : so);
}

typedef struct open_call {
  bc_cache_t *cache;
  bc_code_unit_t *units;
  struct opened {
    aot_status_t status;
    bc_code_stats_t stats;
    lw_error_t error;
  } * results;
} open_call_t;

static void open_units(void *arg, int32_t part, int64_t begin, int64_t end) {
  const open_call_t *o = arg;
  (void)part;
  for (int64_t k = begin; k < end; k++)
    o->results[k].status = bc_code_open(o->cache, o->units[k].source, o->units[k].nbytes, &o->units[k].handle,
                                        &o->results[k].stats, &o->results[k].error);
}

aot_status_t bc_code_open_all(bc_cache_t *c, bc_workers_t *workers, bc_code_unit_t *units, uint32_t n,
                              bc_code_stats_t *stats, lw_error_t *error) {
  const double begin = now_ms();
  open_call_t o = {c, units, calloc((size_t)n + 1, sizeof *o.results)};
  aot_status_t status = AOT_OK;
  if (!o.results) return lw_no_memory(error, "for generated code");
  status = bc_code_available(c, error); /* folder and compiler are settled before threads read them */
  if (status == AOT_OK) bc_parallel(workers, n, 1, open_units, &o);
  uint32_t n_compiled = 0;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    status = o.results[k].status;
    if (status != AOT_OK) *error = o.results[k].error;
    stats->n_hits += o.results[k].stats.n_hits;
    n_compiled += o.results[k].stats.n_compiled;
  }
  for (uint32_t k = 0; k < n && status != AOT_OK; k++) {
    bc_code_close(units[k].handle);
    units[k].handle = NULL;
  }
  stats->n_compiled += n_compiled;
  if (n_compiled) stats->compile_ms += now_ms() - begin;
  free(o.results);
  return status;
}

aot_status_t bc_code_available(bc_cache_t *c, lw_error_t *error) {
  if (!c->dir) AOT_TRY(make_private(c, error));
  return identify(c, error);
}

lw_loop_fn bc_code_find(void *handle, const char *name) {
  void *symbol = dlsym(handle, name);
  lw_loop_fn function = NULL;
  if (symbol) memcpy(&function, &symbol, sizeof function); /* POSIX: object and function pointers have one form */
  return function;
}

void bc_code_close(void *handle) {
  if (handle) dlclose(handle);
}
