/* `cc` for tests: one source file compiled into one shared library is looked up in a folder first, by everything that
 * the result depends on: compiler, processor, arguments, the source and the files of -include. All tests of all
 * configurations share the folder, so that a generated kernel is compiled once, whichever test or cache requests it.
 * Every other command line runs the real compiler, AOT_REAL_CC, as it is.
 *
 *   AOT_TEST_CC_CACHE=FOLDER   where libraries are stored; unset: nothing is
 *   AOT_TEST_CC_LEVEL=-O1      the optimisation level in place of the one given; unset or empty: the one given
 *
 * No memory is allocated: tests that make allocations fail run it, too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { N_ARGUMENTS = 64, PATH_SIZE = 4096, N_BYTES = 1 << 20 };

typedef struct command {
  char *argv[N_ARGUMENTS];
  int argc, source, out; /* indices of the two paths */
  int headers[4], n_headers;
} command_t;

static char bytes[N_BYTES];
static XXH3_state_t state;

static int ends_in(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n > m && strcmp(text + n - m, end) == 0;
}

/* Whether the line compiles one C file into a library, with nothing that names further files. */
static int parse(int argc, char **argv, command_t *c) {
  int is_shared = 0;
  if (argc + 1 > N_ARGUMENTS) return 0;
  c->argc = argc;
  for (int k = 0; k <= argc; k++) c->argv[k] = argv[k];
  for (int k = 1; k < argc; k++) {
    const char *a = argv[k];
    const int has_value = k + 1 < argc;
    if (strcmp(a, "-shared") == 0) is_shared = 1;
    else if (strcmp(a, "-o") == 0 && has_value) c->out = ++k;
    else if (strcmp(a, "--param") == 0 && has_value) k++;
    else if (strcmp(a, "-include") == 0 && has_value && c->n_headers < 4) c->headers[c->n_headers++] = ++k;
    else if (ends_in(a, ".c") && a[0] != '-' && !c->source) c->source = k;
    else if (a[0] != '-' || strcmp(a, "-c") == 0 || strncmp(a, "-I", 2) == 0 || strncmp(a, "-L", 2) == 0 ||
             strncmp(a, "-fsanitize", 10) == 0)
      return 0;
  }
  return is_shared && c->source && c->out;
}

static int add_text(const char *text) { return XXH3_128bits_update(&state, text, strlen(text) + 1) == XXH_OK; }

/* A file's bytes. One that includes files of its own folder is not covered by its bytes: 0, as for a file too large. */
static int add_file(const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t n = 0;
  ssize_t got;
  while ((got = read(fd, bytes + n, N_BYTES - 1 - n)) > 0) n += (size_t)got;
  close(fd);
  bytes[n] = 0;
  if (n == N_BYTES - 1 || strstr(bytes, "#include \"")) return 0;
  return XXH3_128bits_update(&state, &n, sizeof n) == XXH_OK && XXH3_128bits_update(&state, bytes, n) == XXH_OK;
}

/* -march=native is another target on another machine. */
static void add_processor(void) {
  const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, bytes, 4096);
  bytes[n > 0 ? n : 0] = 0;
  close(fd);
  char *flags = strstr(bytes, "flags");
  if (!flags) return;
  flags[strcspn(flags, "\n")] = 0;
  add_text(flags);
}

static int key_of(const command_t *c, char *name, size_t size) {
  struct stat st;
  if (stat(AOT_REAL_CC, &st) || XXH3_128bits_reset(&state) != XXH_OK) return 0;
  const int64_t compiler[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
  if (XXH3_128bits_update(&state, compiler, sizeof compiler) != XXH_OK) return 0;
  add_processor();
  for (int k = 1; k < c->argc; k++)
    if (k != c->source && k != c->out && !add_text(c->argv[k])) return 0;
  if (!add_file(c->argv[c->source])) return 0;
  for (int k = 0; k < c->n_headers; k++) {
    const char *header = c->argv[c->headers[k]];
    if (strchr(header, '/') && !add_file(header)) return 0; /* without a folder it is one of the system's */
  }
  const XXH128_hash_t h = XXH3_128bits_digest(&state);
  snprintf(name, size, "%016llx%016llx.so", (unsigned long long)h.high64, (unsigned long long)h.low64);
  return 1;
}

static int copy(const char *from, const char *to) {
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return 0;
  const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  ssize_t n = -1;
  while (out >= 0 && (n = read(in, bytes, N_BYTES)) > 0)
    if (write(out, bytes, (size_t)n) != n) break;
  close(in);
  if (out >= 0 && close(out)) n = -1;
  return n == 0;
}

static int run_real(const command_t *c) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    execv(AOT_REAL_CC, c->argv);
    _exit(127);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Written under another name, then renamed: readers see a whole library or none. */
static void store(const char *library, const char *entry) {
  char fresh[PATH_SIZE];
  const int n = snprintf(fresh, sizeof fresh, "%s.tmp-%ld", entry, (long)getpid());
  if (n < 0 || (size_t)n >= sizeof fresh) return;
  if (!copy(library, fresh) || rename(fresh, entry)) unlink(fresh);
}

/* Returns the exit status, or -1 if the line is not one to look up. */
static int compile_cached(command_t *c, const char *folder) {
  char name[64], entry[PATH_SIZE];
  if (!folder || !*folder || !key_of(c, name, sizeof name)) return -1;
  const int n = snprintf(entry, sizeof entry, "%s/%s", folder, name);
  if (n < 0 || (size_t)n >= sizeof entry - 32) return -1;
  if (copy(entry, c->argv[c->out])) return 0;
  const int status = run_real(c);
  if (status == 0) {
    mkdir(folder, 0777);
    store(c->argv[c->out], entry);
  }
  return status;
}

int main(int argc, char **argv) {
  static command_t c;
  char *level = getenv("AOT_TEST_CC_LEVEL");
  const int has_level = level && *level;
  argv[0] = AOT_REAL_CC;
  if (parse(argc, argv, &c)) {
    for (int k = 1; k < argc && has_level; k++)
      if (strncmp(c.argv[k], "-O", 2) == 0) argv[k] = c.argv[k] = level;
    const int status = compile_cached(&c, getenv("AOT_TEST_CC_CACHE"));
    if (status >= 0) return status;
  } else if (has_level && argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("generated code is compiled with %s\n", level); /* callers that store what was compiled name it by this */
    fflush(stdout);
  }
  execv(AOT_REAL_CC, argv);
  perror(AOT_REAL_CC);
  return 127;
}
