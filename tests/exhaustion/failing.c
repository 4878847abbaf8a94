/* LD_PRELOAD: the n-th call of some kind that the command, the host library or a plugin makes fails. Calls of other
 * libraries (libyaml, jansson, OpenBLAS, libc itself) are not counted: the caller's return address decides.
 *
 *   FAIL=memory   malloc, calloc, realloc, aligned_alloc, posix_memalign, strdup, strndup, anonymous mmap: NULL, ENOMEM
 *   FAIL=disk     open, fopen, mkdir, mkdtemp, write, fwrite, fsync, ftruncate, rename, close, fclose: FAIL_ERRNO; a
 *   write
 *                 with FAIL_ERRNO=0 is short, and the next one has no space
 *   FAIL_AT=N     the N-th call; 0: none
 *   FAIL_COUNT=F  how many there were goes to file F when the process ends
 *   FAIL_FORK=F   at every call: a child in which it fails continues to its end, while this process waits and then goes
 *   on as
 *                 if nothing were (SQLite tries allocations so, https://sqlite.org/testing.html, a process each);
 *                 results go to file F, a line each. FAIL_EACH=K: at every K-th one. FAIL_ONCE=D: only where the D
 *                 innermost callers were not seen together before. FAIL_SAME=A:B: a child of status 0 without a warning
 *                 has left files A and B equal. FAIL_LEAKS=F: nor does a child leave a block of memory from a call that
 *                 file F does not name; without FAIL_FORK those that are left at the end are written there.
 *                 FAIL_SECONDS=S: a child that takes longer hangs */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NONE, MEMORY, DISK };
enum { N_PAGES = 1 << 14, N_STACKS = 1 << 16, DEPTH = 24, BOOT = 1 << 16 };

/* Written by the constructor, before any call counts. */
static struct settings {
  int what, error, is_forking, depth, seconds;
  long at, each;
  const char *count, *same, *leaks;
  pid_t process;
  int results;
} set;
static atomic_long n_calls;
static _Thread_local int is_inside;
static int is_child;        /* in which a call failed */
static atomic_int is_short; /* the write before this one was cut short */

/* ---- the functions themselves ---- */

static char boot[BOOT];
static size_t boot_used;

/* dlsym itself may allocate before it has reported where the allocator is. */
static void *boot_alloc(size_t n) {
  const size_t at = (boot_used + 15) & ~(size_t)15;
  if (n > BOOT - at) abort();
  boot_used = at + n;
  return boot + at;
}
static int is_boot(const void *p) { return (const char *)p >= boot && (const char *)p < boot + BOOT; }

#define REAL(type, name, ...)                                                                                          \
  static type (*real_##name)(__VA_ARGS__);                                                                             \
  static type (*find_##name(void))(__VA_ARGS__) {                                                                      \
    if (!real_##name) {                                                                                                \
      void *found = dlsym(RTLD_NEXT, #name);                                                                           \
      memcpy(&real_##name, &found, sizeof found);                                                                      \
    }                                                                                                                  \
    return real_##name;                                                                                                \
  }
REAL(void *, malloc, size_t)
REAL(void *, calloc, size_t, size_t)
REAL(void *, realloc, void *, size_t)
REAL(void *, aligned_alloc, size_t, size_t)
REAL(int, posix_memalign, void **, size_t, size_t)
REAL(void, free, void *)
REAL(void *, mmap, void *, size_t, int, int, int, off_t)
REAL(int, open, const char *, int, ...)
REAL(int, openat, int, const char *, int, ...)
REAL(FILE *, fopen, const char *, const char *)
REAL(int, mkdir, const char *, mode_t)
REAL(char *, mkdtemp, char *)
REAL(ssize_t, write, int, const void *, size_t)
REAL(size_t, fwrite, const void *, size_t, size_t, FILE *)
REAL(int, fsync, int)
REAL(int, ftruncate, int, off_t)
REAL(int, rename, const char *, const char *)
REAL(int, close, int)
REAL(int, fclose, FILE *)

/* ---- whose call it is ---- */

static struct page {
  atomic_uintptr_t page;
  atomic_int is_ours;
} pages[N_PAGES];

static int find_owner(void *caller) {
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
  return strcmp(name, "aothost") == 0 || strncmp(name, "libaothost", 10) == 0 || strstr(info.dli_fname, "lib/aothost/");
}

static int is_ours(void *caller) {
  const uintptr_t page = (uintptr_t)caller >> 12;
  struct page *p = &pages[page % N_PAGES];
  if (atomic_load(&p->page) != page) {
    atomic_store(&p->is_ours, find_owner(caller)); /* two threads at one row: a call more or less */
    atomic_store(&p->page, page);
  }
  return atomic_load(&p->is_ours);
}

/* ---- blocks that are not freed ---- */

enum { N_BLOCKS = 1 << 20 };
static struct block { void *at, *caller; /* at NULL: free; or GONE */ } blocks[N_BLOCKS];
static atomic_flag blocks_lock = ATOMIC_FLAG_INIT;
#define GONE ((void *)1)

static struct block *find_block(const void *at, int is_new) {
  size_t i = (size_t)(((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15u >> 44);
  for (int n = 0; n < N_BLOCKS; n++, i = (i + 1) % N_BLOCKS)
    if (blocks[i].at == at || !blocks[i].at || (is_new && blocks[i].at == GONE)) return &blocks[i];
  return NULL;
}

/* Answers p. Blocks of others are not counted: they may keep them for the whole process. */
static void *note_block(void *p, void *caller) {
  if (!p || !set.leaks || is_inside) return p;
  is_inside = 1;
  if (is_ours(caller)) {
    while (atomic_flag_test_and_set(&blocks_lock)) {}
    struct block *b = find_block(p, 1);
    if (b) *b = (struct block){p, caller};
    atomic_flag_clear(&blocks_lock);
  }
  is_inside = 0;
  return p;
}

static void forget_block(const void *p) {
  if (!p || !set.leaks) return;
  while (atomic_flag_test_and_set(&blocks_lock)) {}
  struct block *b = find_block(p, 0);
  if (b && b->at == p) b->at = GONE;
  atomic_flag_clear(&blocks_lock);
}

/* "module+0xoffset", which is the same in every process */
static void name_caller(void *caller, char *out, size_t size) {
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) *out = 0;
  else snprintf(out, size, "%s+0x%lx\n", info.dli_fname, (unsigned long)((char *)caller - (char *)info.dli_fbase));
}

static void write_blocks(void) {
  char name[4200];
  const int f = find_open()(set.leaks, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (size_t i = 0; i < N_BLOCKS; i++) {
    if (!blocks[i].at || blocks[i].at == GONE) continue;
    name_caller(blocks[i].caller, name, sizeof name);
    if (*name) dprintf(f, "%s", name);
  }
  find_close()(f);
}

/* Of a child: what is left that an undisturbed run does not leave. */
static void report_leaks(void) {
  static char known[1 << 18];
  char name[4200];
  const int f = find_open()(set.leaks, O_RDONLY);
  const ssize_t n = f >= 0 ? read(f, known, sizeof known - 1) : 0;
  known[n > 0 ? n : 0] = 0;
  for (size_t i = 0; i < N_BLOCKS; i++) {
    if (!blocks[i].at || blocks[i].at == GONE) continue;
    name_caller(blocks[i].caller, name, sizeof name);
    if (*name && !strstr(known, name)) dprintf(2, "leaked: %s", name);
  }
}

/* ---- a child at every call ---- */

static uint64_t stacks[N_STACKS];

static int is_new_stack(void *const *frames, int n) {
  uint64_t h = 1469598103934665603u;
  for (int i = 0; i < n && i < set.depth; i++) h = (h ^ (uintptr_t)frames[i]) * 1099511628211u;
  uint64_t *at = &stacks[h % N_STACKS];
  for (int i = 0; *at && i < N_STACKS; i++) {
    if (*at == h) return 0;
    at = at + 1 == stacks + N_STACKS ? stacks : at + 1;
  }
  *at = h;
  return 1;
}

static int has_threads(void) {
  int n = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *d; tasks && (d = readdir(tasks));) n += d->d_name[0] != '.';
  if (tasks) closedir(tasks);
  return n > 2; /* the one that reports crashes is not missed */
}

static int is_same(void) {
  char a[4096], *b, x[4096], y[4096];
  int same = 1;
  snprintf(a, sizeof a, "%s", set.same);
  b = strchr(a, ':');
  if (!b) return 0;
  *b++ = 0;
  const int f = find_open()(a, O_RDONLY), g = find_open()(b, O_RDONLY);
  for (ssize_t n = 1, m; same && n > 0;) {
    n = read(f, x, sizeof x);
    m = read(g, y, sizeof y);
    same = n == m && n >= 0 && memcmp(x, y, (size_t)n) == 0;
  }
  if (f >= 0) find_close()(f);
  if (g >= 0) find_close()(g);
  return same;
}

/* The first error that the child reported, whether a signal is mentioned, and whether a warning says what it did
 * without. */
static void read_message(int log, char *out, size_t size, int *is_crash, int *is_warned, char *leak) {
  static char text[1 << 16];
  const ssize_t n = pread(log, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = 0;
  const char *error = strstr(text, "error: ");
  if (!error) error = strstr(text, "aothost ");
  *is_crash =
      strstr(text, "SIG") || strstr(text, "Sanitizer") || strstr(text, "runtime error") || strstr(text, "ssertion");
  *is_warned = strstr(text, "warning: ") != NULL;
  const char *leaked = strstr(text, "leaked: ");
  snprintf(leak, size, "%.*s", leaked ? (int)strcspn(leaked, "\n") : 0, leaked ? leaked : "");
  snprintf(out, size, "%.*s", error ? (int)strcspn(error, "\n") : 0, error ? error : "");
}

static void print_frames(void *const *frames, int n) {
  for (int i = 0; i < n; i++) {
    Dl_info info;
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    dprintf(set.results, "    %s+0x%lx\n", info.dli_fname, (unsigned long)((char *)frames[i] - (char *)info.dli_fbase));
  }
}

static void tell(long n, int status, int log, void *const *frames, int n_frames) {
  char message[512], leak[512];
  int is_crash, is_warned;
  read_message(log, message, sizeof message, &is_crash, &is_warned, leak);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  const char *wrong = code == -SIGALRM         ? "hangs"
                      : code < 0 || is_crash   ? "crashes"
                      : *leak                  ? "leaks"
                      : code == 0              ? set.same && !is_warned && !is_same() ? "another result" : NULL
                      : code != 2 && code != 3 ? "another status"
                      : !*message              ? "no message"
                                               : NULL;
  dprintf(set.results, "%ld %s %d %s\n", n, wrong ? wrong : "ok", code, message);
  if (*leak) dprintf(set.results, "    %s\n", leak + strlen("leaked: "));
  if (wrong) print_frames(frames, n_frames);
}

/* 1: this is the child, and the call fails. */
static int try_here(long n) {
  void *frames[DEPTH];
  const int depth = backtrace(frames, DEPTH), skip = depth > 3 ? 3 : 0; /* the functions of this file */
  if (set.depth && !is_new_stack(frames + skip, depth - skip)) return 0;
  if (has_threads()) {
    dprintf(set.results, "%ld skipped 0 other threads are there\n", n);
    return 0;
  }
  const int log = memfd_create("log", 0);
  const pid_t child = fork();
  if (child == 0) {
    set.is_forking = 0;
    is_child = 1;
    dup2(log, 1);
    dup2(log, 2);
    alarm((unsigned)set.seconds);
    return 1;
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (child > 0) tell(n, status, log, frames + skip, depth - skip);
  find_close()(log);
  return 0;
}

/* ---- counting ---- */

static int __attribute__((noinline)) fails(int what, void *caller) {
  if (set.what != what || is_inside) return 0;
  is_inside = 1;
  int failing = 0;
  if (is_ours(caller) && getpid() == set.process) {
    const long n = atomic_fetch_add(&n_calls, 1) + 1;
    if (set.is_forking) {
      const int error = errno;
      failing = n % set.each == 0 && try_here(n);
      errno = error;
      if (failing) set.process = 0; /* of the child nothing counts any more */
    } else {
      failing = n == set.at;
    }
  }
  is_inside = 0;
  if (failing) errno = what == MEMORY ? ENOMEM : set.error ? set.error : ENOSPC;
  return failing;
}

static void __attribute__((constructor)) begin(void) {
  void *frames[4];
  const char *what = getenv("FAIL"), *at = getenv("FAIL_AT"), *error = getenv("FAIL_ERRNO"),
             *fork_to = getenv("FAIL_FORK");
  const char *each = getenv("FAIL_EACH"), *depth = getenv("FAIL_ONCE"), *seconds = getenv("FAIL_SECONDS");
  if (!what) return;
  backtrace(frames, 4); /* loads the unwinder now */
  set.at = at ? atol(at) : 0;
  set.error = error ? atoi(error) : ENOSPC;
  set.each = each && atol(each) > 0 ? atol(each) : 1;
  set.depth = depth ? atoi(depth) : 0;
  set.seconds = seconds ? atoi(seconds) : 60;
  set.count = getenv("FAIL_COUNT");
  set.same = getenv("FAIL_SAME");
  set.leaks = getenv("FAIL_LEAKS");
  set.process = getpid();
  unsetenv("LD_PRELOAD"); /* not for compilers that a plugin starts */
  set.results = fork_to ? find_open()(fork_to, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : -1;
  set.is_forking = set.results >= 0;
  set.what = strcmp(what, "memory") == 0 ? MEMORY : strcmp(what, "disk") == 0 ? DISK : NONE;
}

static void __attribute__((destructor)) end(void) {
  if (set.leaks && is_child) report_leaks();
  else if (set.leaks && getpid() == set.process && set.results < 0) write_blocks();
  if (!set.count || getpid() != set.process) return;
  const int f = find_open()(set.count, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (f >= 0) dprintf(f, "%ld\n", atomic_load(&n_calls));
  if (f >= 0) find_close()(f);
}

#define CALLER __builtin_return_address(0)

/* ---- memory ---- */

void *malloc(size_t n) {
  static _Thread_local int is_finding;
  if (!real_malloc) {
    if (is_finding) return boot_alloc(n);
    is_finding = 1;
    find_malloc();
    is_finding = 0;
  }
  return fails(MEMORY, CALLER) ? NULL : note_block(real_malloc(n), CALLER);
}

void *calloc(size_t n, size_t size) {
  static _Thread_local int is_finding;
  if (!real_calloc) {
    if (is_finding) return boot_alloc(n * size); /* zero, as statics are */
    is_finding = 1;
    find_calloc();
    is_finding = 0;
  }
  return fails(MEMORY, CALLER) ? NULL : note_block(real_calloc(n, size), CALLER);
}

void *realloc(void *p, size_t n) {
  if (is_boot(p)) {
    void *moved = malloc(n);
    if (moved) memcpy(moved, p, n < BOOT - (size_t)((char *)p - boot) ? n : BOOT - (size_t)((char *)p - boot));
    return moved;
  }
  if (fails(MEMORY, CALLER)) return NULL;
  void *moved = find_realloc()(p, n);
  if (moved) forget_block(p);
  return note_block(moved, CALLER);
}

void free(void *p) {
  forget_block(p);
  if (p && !is_boot(p)) find_free()(p);
}

void *aligned_alloc(size_t alignment, size_t n) {
  return fails(MEMORY, CALLER) ? NULL : note_block(find_aligned_alloc()(alignment, n), CALLER);
}

int posix_memalign(void **out, size_t alignment, size_t n) {
  if (fails(MEMORY, CALLER)) return ENOMEM;
  const int error = find_posix_memalign()(out, alignment, n);
  if (!error) note_block(*out, CALLER);
  return error;
}

char *strdup(const char *s) {
  const size_t n = strlen(s) + 1;
  char *copy = fails(MEMORY, CALLER) ? NULL : malloc(n);
  return copy ? note_block(memcpy(copy, s, n), CALLER) : NULL;
}

char *strndup(const char *s, size_t most) {
  const size_t n = strnlen(s, most);
  char *copy = fails(MEMORY, CALLER) ? NULL : malloc(n + 1);
  if (!copy) return NULL;
  copy[n] = 0;
  return note_block(memcpy(copy, s, n), CALLER);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_ANONYMOUS) && fails(MEMORY, CALLER)) return MAP_FAILED;
  return find_mmap()(at, n, protection, flags, fd, offset);
}

/* ---- disk ---- */

static mode_t mode_of(int flags, va_list args) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0; }

int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return fails(DISK, CALLER) ? -1 : find_open()(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return fails(DISK, CALLER) ? -1 : find_openat()(folder, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) { return fails(DISK, CALLER) ? NULL : find_fopen()(path, mode); }
int mkdir(const char *path, mode_t mode) { return fails(DISK, CALLER) ? -1 : find_mkdir()(path, mode); }
char *mkdtemp(char *path) { return fails(DISK, CALLER) ? NULL : find_mkdtemp()(path); }
int fsync(int fd) { return fails(DISK, CALLER) ? -1 : find_fsync()(fd); }
int ftruncate(int fd, off_t n) { return fails(DISK, CALLER) ? -1 : find_ftruncate()(fd, n); }
int rename(const char *from, const char *to) { return fails(DISK, CALLER) ? -1 : find_rename()(from, to); }

static int is_file(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t n) {
  if (set.what != DISK || !is_file(fd)) return find_write()(fd, bytes, n);
  if (atomic_exchange(&is_short, 0)) {
    errno = ENOSPC;
    return -1;
  }
  if (!fails(DISK, CALLER)) return find_write()(fd, bytes, n);
  if (set.error || n < 2) return -1;
  atomic_store(&is_short, 1);
  return find_write()(fd, bytes, n / 2);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *f) {
  return set.what == DISK && is_file(fileno(f)) && fails(DISK, CALLER) ? 0 : find_fwrite()(bytes, size, n, f);
}

/* What is closed is closed; that it failed is reported. */
int close(int fd) {
  const int failing = set.what == DISK && is_file(fd) && fails(DISK, CALLER), error = errno;
  const int status = find_close()(fd);
  if (failing) errno = error;
  return failing ? -1 : status;
}

int fclose(FILE *f) {
  const int failing = set.what == DISK && fileno(f) >= 0 && is_file(fileno(f)) && fails(DISK, CALLER), error = errno;
  const int status = find_fclose()(f);
  if (failing) errno = error;
  return failing ? EOF : status;
}
