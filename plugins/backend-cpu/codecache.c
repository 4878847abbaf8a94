#include "codecache.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
enum { N_FLAGS = sizeof flags / sizeof flags[0], PATH_SIZE = 4096 };

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
  return c->dir ? AOT_OK : lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for a path");
}

aot_status_t bc_cache_init(bc_cache_t *c, const char *dir, const char *compiler, lw_error_t *error) {
  memset(c, 0, sizeof *c);
  c->compiler = copy_text(compiler);
  if (!c->compiler) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for a path");
  if (!dir) return AOT_OK; /* a private one, when the first unit needs it */
  c->dir = copy_text(dir);
  return c->dir ? AOT_OK : lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for a path");
}

void bc_cache_deinit(bc_cache_t *c) {
  if (c->private_dir && c->dir) rmdir(c->dir); /* units in it are removed once they are open */
  free(c->dir);
  free(c->compiler);
  memset(c, 0, sizeof *c);
}

/* ---- work in progress ---- */

/* A folder of its own for every compile, under a lock for as long as it is in use: threads and processes never share a
 * name, and whoever can take the lock of a folder that a killed process left may remove it (the host does, see
 * aot/ext/env.h). */
typedef struct work {
  char path[PATH_SIZE];
  int lock;
} work_t;

static const char *const work_files[] = {"unit.c", "unit.so", "output", "version"};

static void path_in(const work_t *w, const char *name, char *out, size_t size) {
  snprintf(out, size, "%s/%s", w->path, name);
}

static void work_end(work_t *w) {
  char path[PATH_SIZE + 16];
  for (size_t k = 0; k < sizeof work_files / sizeof *work_files; k++) {
    path_in(w, work_files[k], path, sizeof path);
    unlink(path);
  }
  rmdir(w->path);
  close(w->lock);
}

/* Between making a folder and locking it somebody may have taken it for a dead one; then the next is tried. */
static aot_status_t work_begin(const char *dir, work_t *w, lw_error_t *error) {
  struct stat named, locked;
  for (int tries = 0; tries < 100; tries++) {
    int n = snprintf(w->path, sizeof w->path, "%s/work-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof w->path) errno = ENAMETOOLONG;
    if (n < 0 || (size_t)n >= sizeof w->path || !mkdtemp(w->path)) break;
    w->lock = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->lock < 0) continue;
    flock(w->lock, LOCK_EX); /* a file system without locks: nobody can take it either */
    if (fstat(w->lock, &locked) == 0 && stat(w->path, &named) == 0 && named.st_ino == locked.st_ino &&
        named.st_dev == locked.st_dev)
      return AOT_OK;
    close(w->lock);
  }
  return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "generated code cannot be compiled in %.200s: %s", dir,
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
static int spawn_read(char *const *argv, const work_t *w, char *text, size_t size) {
  char path[PATH_SIZE + 16];
  text[0] = 0;
  path_in(w, "output", path, sizeof path);
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

/* What the processor can do, as the kernel tells it: code for one machine must not be found by another. */
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

/* Where the folder keeps what this compiler's file, as it is now, has told of itself: asking it costs more than all the
 * rest of a start that finds its code. 0: there is no such file. */
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
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(version, 1, size - 1, f) : 0;
  if (f) fclose(f);
  version[n] = 0;
  return n > 1 && version[n - 1] == '\n'; /* what was cut short is asked again */
}

static void keep_version(const work_t *w, const char *path, const char *version) {
  char tmp[PATH_SIZE + 16];
  path_in(w, "version", tmp, sizeof tmp);
  if (write_source(tmp, version, strlen(version)) == 0) rename(tmp, path);
}

static aot_status_t ask_version(bc_cache_t *c, const char *kept_path, char *version, size_t size, lw_error_t *error) {
  char word[] = "--version", *argv[] = {c->compiler, word, NULL};
  work_t w;
  AOT_TRY(work_begin(c->dir, &w, error));
  const int status = spawn_read(argv, &w, version, size), why = errno;
  if (status == 0 && kept_path) keep_version(&w, kept_path, version);
  work_end(&w);
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

/* Ends every kept file, behind what the loader reads. The hash is of the bytes before and of the key, so that a file
 * cut short, changed or under another's name is found before it is loaded: the loader maps a file without checking
 * it. */
typedef struct seal {
  char magic[8];
  XXH128_hash_t key, hash;
} seal_t;

static seal_t seal_of(const void *bytes, size_t nbytes, XXH128_hash_t key) {
  seal_t seal = {.magic = "AOTCPU1", .key = key};
  XXH3_state_t *state = XXH3_createState();
  if (!state) return seal;
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, &key, sizeof key);
  XXH3_128bits_update(state, bytes, nbytes);
  seal.hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return seal;
}

/* The whole file; NULL: none to be had. */
static char *read_file(const char *path, size_t *out_nbytes) {
  struct stat st;
  char *bytes = NULL;
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
    bytes = malloc((size_t)st.st_size + 1);
  size_t n = 0;
  for (ssize_t got = 1; bytes && n < (size_t)st.st_size && got > 0; n += got > 0 ? (size_t)got : 0)
    got = read(fd, bytes + n, (size_t)st.st_size - n);
  if (fd >= 0) close(fd);
  *out_nbytes = n;
  return bytes;
}

static int is_sealed(const char *path, XXH128_hash_t key) {
  size_t nbytes;
  seal_t found, right;
  char *bytes = read_file(path, &nbytes);
  int same = bytes && nbytes > sizeof found;
  if (same) {
    memcpy(&found, bytes + nbytes - sizeof found, sizeof found);
    right = seal_of(bytes, nbytes - sizeof found, key);
    same = memcmp(&found, &right, sizeof found) == 0;
  }
  free(bytes);
  return same;
}

/* Sealed and on the disk before it gets its name: after a power failure a unit is whole or not there. 0, or errno
 * tells. */
static int seal_file(const char *path, XXH128_hash_t key) {
  size_t nbytes;
  char *bytes = read_file(path, &nbytes);
  seal_t seal = seal_of(bytes, bytes ? nbytes : 0, key);
  int fd = bytes ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  int failed = fd < 0 || write(fd, &seal, sizeof seal) != (ssize_t)sizeof seal || fsync(fd) != 0;
  if (fd >= 0) close(fd);
  free(bytes);
  return failed;
}

static aot_status_t compile_in(bc_cache_t *c, const work_t *w, const char *source, uint64_t nbytes, XXH128_hash_t key,
                               const char *so, lw_error_t *error) {
  char c_path[PATH_SIZE + 16], so_path[PATH_SIZE + 16], text[300], out_flag[] = "-o", math[] = "-lm",
                                                                   *argv[N_FLAGS + 6];
  int n = 0;
  path_in(w, "unit.c", c_path, sizeof c_path);
  path_in(w, "unit.so", so_path, sizeof so_path);
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
  if (seal_file(so_path, key) || rename(so_path, so))
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "%.200s: %s", so, strerror(errno));
  return AOT_OK;
}

static aot_status_t compile(bc_cache_t *c, const char *source, uint64_t nbytes, XXH128_hash_t key, const char *so,
                            lw_error_t *error) {
  work_t w;
  AOT_TRY(work_begin(c->dir, &w, error));
  const aot_status_t status = compile_in(c, &w, source, nbytes, key, so, error);
  work_end(&w);
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
  XXH128_hash_t key = XXH3_128bits_withSeed(source, (size_t)nbytes, c->identity);
  int n = snprintf(so, sizeof so, "%s/cpu-%016llx%016llx.so", c->dir, (unsigned long long)key.high64,
                   (unsigned long long)key.low64);
  if (n < 0 || (size_t)n >= sizeof so)
    return lw_fail(error, AOT_E_UNAVAILABLE, "no-folder", "the cache folder's path is too long");
  *out_handle = is_sealed(so, key) ? dlopen(so, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (*out_handle) {
    stats->n_hits++;
    utimensat(AT_FDCWD, so, NULL, 0); /* used now: what is unused for longest is removed first */
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

typedef struct opening {
  bc_cache_t *cache;
  bc_code_unit_t *units;
  struct opened {
    aot_status_t status;
    bc_code_stats_t stats;
    lw_error_t error;
  } * results;
} opening_t;

static void open_units(void *arg, int32_t part, int64_t begin, int64_t end) {
  const opening_t *o = arg;
  (void)part;
  for (int64_t k = begin; k < end; k++)
    o->results[k].status = bc_code_open(o->cache, o->units[k].source, o->units[k].nbytes, &o->units[k].handle,
                                        &o->results[k].stats, &o->results[k].error);
}

aot_status_t bc_code_open_all(bc_cache_t *c, bc_workers_t *workers, bc_code_unit_t *units, uint32_t n,
                              bc_code_stats_t *stats, lw_error_t *error) {
  const double begin = now_ms();
  opening_t o = {c, units, calloc((size_t)n + 1, sizeof *o.results)};
  aot_status_t status = AOT_OK;
  if (!o.results) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for generated code");
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
