/* `cc` for tests: one source file compiled into one shared library is looked up in a folder first, by everything that
 * the result depends on: compiler, processor, arguments, the source and the files of -include. All tests of all
 * configurations share the folder, so that a generated kernel is compiled once, whichever test or cache requests it.
 * What generated C has before its first kernel is compiled once, too, as a precompiled header. Every other command line
 * runs the real compiler, AOT_REAL_CC, as it is.
 *
 *   AOT_TEST_CC_CACHE=FOLDER   where libraries are stored; unset: nothing is
 *   AOT_TEST_CC_LEVEL=-Og      the optimisation level in place of the one given; unset or empty: the one given
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
  if (argc + 2 > N_ARGUMENTS) return 0;
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

/* Into `bytes`. One that includes files of its own folder is not covered by its bytes: 0, as for a file too large. */
static int read_file(const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t n = 0;
  ssize_t got;
  while ((got = read(fd, bytes + n, N_BYTES - 1 - n)) > 0) n += (size_t)got;
  close(fd);
  bytes[n] = 0;
  return n < N_BYTES - 1 && strlen(bytes) == n && !strstr(bytes, "#include \"");
}

static int add_file(const char *path) {
  if (!read_file(path)) return 0;
  const size_t n = strlen(bytes);
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

/* Adds what a compilation depends on besides the source. */
static int add_command(const command_t *c) {
  struct stat st;
  if (stat(AOT_REAL_CC, &st) || XXH3_128bits_reset(&state) != XXH_OK) return 0;
  const int64_t compiler[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
  if (XXH3_128bits_update(&state, compiler, sizeof compiler) != XXH_OK) return 0;
  add_processor();
  for (int k = 1; k < c->argc; k++)
    if (k != c->source && k != c->out && !add_text(c->argv[k])) return 0;
  for (int k = 0; k < c->n_headers; k++) {
    const char *header = c->argv[c->headers[k]];
    if (strchr(header, '/') && !add_file(header)) return 0; /* without a folder it is one of the system's */
  }
  return 1;
}

static void print_key(char *name, size_t size) {
  const XXH128_hash_t h = XXH3_128bits_digest(&state);
  snprintf(name, size, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

/* The source is in `bytes` then. */
static int key_of(const command_t *c, char *name, size_t size) {
  if (!add_command(c) || !add_file(c->argv[c->source])) return 0;
  print_key(name, size);
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

static int run_quietly(char *const *argv, int is_quiet) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    const int null = is_quiet ? open("/dev/null", O_WRONLY) : -1;
    if (null >= 0) dup2(null, 1), dup2(null, 2);
    execv(AOT_REAL_CC, argv);
    _exit(127);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_real(const command_t *c) { return run_quietly(c->argv, 0); }

/* Written under another name, then renamed: readers see a whole library or none. */
static void store(const char *library, const char *entry) {
  char fresh[PATH_SIZE];
  const int n = snprintf(fresh, sizeof fresh, "%s.tmp-%ld", entry, (long)getpid());
  if (n < 0 || (size_t)n >= sizeof fresh) return;
  if (!copy(library, fresh) || rename(fresh, entry)) unlink(fresh);
}

/* ---- the head of generated C as a precompiled header ---- */

/* Where the first kernel begins: what is before it is equal in all sources of a target, and takes a third of the time.
 * */
static size_t head_size(const char *source) {
  static const char *const kernels[] = {"\nvoid lp_", "\nLP_KERNEL(", "\nLP_RESIDENT("};
  const char *first = NULL;
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    const char *at = strstr(source, kernels[k]);
    if (at && (!first || at < first)) first = at;
  }
  return first ? (size_t)(first - source) + 1 : 0;
}

static int is_header(const command_t *c, int k) { /* or its -include */
  for (int h = 0; h < c->n_headers; h++)
    if (k == c->headers[h] || k + 1 == c->headers[h]) return 1;
  return 0;
}

static int is_linkers(const char *a) {
  return strcmp(a, "-shared") == 0 || strncmp(a, "-l", 2) == 0 || strncmp(a, "-Wl,", 4) == 0 ||
         strncmp(a, "-fuse-ld", 8) == 0;
}

/* The line with another source, another output, and no -include but HEADER. */
static void change(const command_t *c, char **argv, char *header, char *language, char *source, char *out) {
  static char include[] = "-include", x[] = "-x";
  int n = 0;
  argv[n++] = c->argv[0];
  if (header) argv[n++] = include, argv[n++] = header;
  for (int k = 1; k < c->argc; k++) {
    if (is_header(c, k) || (language && is_linkers(c->argv[k]))) continue;
    if (k == c->source && language) argv[n++] = x, argv[n++] = language;
    argv[n++] = k == c->source ? source : k == c->out ? out : c->argv[k];
  }
  argv[n] = NULL;
}

/* START, then the bytes of TEXT. */
static int write_text(const char *path, const char *start, const char *text, size_t n) {
  const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const size_t m = strlen(start);
  const int is_written = out >= 0 && write(out, start, m) == (ssize_t)m && write(out, text, n) == (ssize_t)n;
  return out >= 0 && !close(out) && is_written;
}

/* HEADER.gch is there now: HEADER is written under another name first, as libraries are. */
static int make_head(const command_t *c, char **argv, char *header, const char *text, size_t n) {
  static char language[] = "c-header";
  char gch[PATH_SIZE + 8], fresh[PATH_SIZE + 32], fresh_gch[PATH_SIZE + 40], includes[4 * PATH_SIZE] = "";
  snprintf(gch, sizeof gch, "%s.gch", header);
  if (access(gch, R_OK) == 0) return 1;
  snprintf(fresh, sizeof fresh, "%s.tmp-%ld", header, (long)getpid());
  snprintf(fresh_gch, sizeof fresh_gch, "%s.gch", fresh);
  for (int k = 0; k < c->n_headers; k++) {
    const char *path = c->argv[c->headers[k]];
    const size_t at = strlen(includes);
    snprintf(includes + at, sizeof includes - at, strchr(path, '/') ? "#include \"%s\"\n" : "#include <%s>\n", path);
  }
  change(c, argv, NULL, language, fresh, fresh_gch);
  const int is_made = write_text(fresh, includes, text, n) && run_quietly(argv, 1) == 0 && !rename(fresh, header) &&
                      !rename(fresh_gch, gch);
  if (!is_made) unlink(fresh), unlink(fresh_gch);
  return is_made;
}

/* Of the head alone. The source is in `bytes` then, too. */
static int head_key(const command_t *c, char *name, size_t size) {
  if (!add_command(c) || !read_file(c->argv[c->source])) return 0;
  const size_t n = head_size(bytes);
  if (n == 0 || XXH3_128bits_update(&state, bytes, n) != XXH_OK) return 0;
  print_key(name, size);
  return 1;
}

/* Compiles the kernels behind their precompiled head. 0: not done, and nothing is printed. */
static int run_with_head(const command_t *c, const char *folder) {
  static char *argv[N_ARGUMENTS + 8];
  char name[64], header[PATH_SIZE], kernels[PATH_SIZE + 16], line[PATH_SIZE + 64];
  if (!head_key(c, name, sizeof name)) return 0;
  const size_t n = head_size(bytes);
  if (snprintf(header, sizeof header, "%s/%s.h", folder, name) >= (int)sizeof header) return 0;
  if (!make_head(c, argv, header, bytes, n)) return 0;
  int row = 1;
  for (size_t k = 0; k < n; k++) row += bytes[k] == '\n';
  snprintf(kernels, sizeof kernels, "%s.kernels.c", c->argv[c->out]);
  snprintf(line, sizeof line, "#line %d \"%s\"\n", row, c->argv[c->source]);
  change(c, argv, header, NULL, kernels, c->argv[c->out]);
  const int is_done = write_text(kernels, line, bytes + n, strlen(bytes + n)) && run_quietly(argv, 1) == 0;
  unlink(kernels);
  return is_done;
}

/* Of the lines that are looked up alone. */
static void choose_linker(command_t *c) {
#ifdef AOT_LINKER
  static char linker[] = AOT_LINKER;
  c->argv[c->argc++] = linker;
  c->argv[c->argc] = NULL;
#else
  (void)c;
#endif
}

/* Returns the exit status, or -1 if the line is not one to look up. */
static int compile_cached(command_t *c, const char *folder) {
  char name[64], entry[PATH_SIZE];
  if (!folder || !*folder) return -1;
  choose_linker(c);
  if (!key_of(c, name, sizeof name)) return -1;
  const int n = snprintf(entry, sizeof entry, "%s/%s.so", folder, name);
  if (n < 0 || (size_t)n >= sizeof entry - 32) return -1;
  if (copy(entry, c->argv[c->out])) return 0;
  mkdir(folder, 0777);
  const int status = run_with_head(c, folder) ? 0 : run_real(c);
  if (status == 0) store(c->argv[c->out], entry);
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
