#define _GNU_SOURCE /* pipe2, posix_spawn_file_actions */
#include <cli/base/probe.h>

#include <aot/base.h>
#include <base/file.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <cache/cache_folder.h>
#include <process/crash.h>
#include <process/environment.h>
#include <process/process_state.h>
#include <base/clock.h>

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define STATUS 77 /* of a probe that came to its end */
#define WORDS_FD 3
#define DONE 'd'
#define CANNOT 'c' /* the loader will say why */
#define MOST_WORDS 400
#define TIMEOUT 30 /* seconds */
#define TICK_MS 20

extern char **environ;

/* ---- the process that tries ---- */

static _Noreturn void leave(int status) {
  for (;;) syscall(SYS_exit_group, status);
}

static void say(char word, const char *text) {
  char words[MOST_WORDS];
  const int n = snprintf(words, sizeof words, "%c%s", word, text);
  const ssize_t done = write(WORDS_FD, words, n < (int)sizeof words ? (size_t)n : sizeof words - 1);
  (void)done; /* nothing waits any more */
}

static void *open_plugin(const char *path) {
  const void *(AOT_CALL * entry)(uint32_t, uint32_t, aot_str_t *);
  aot_str_t why = {NULL, 0};
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *symbol = handle ? dlsym(handle, "aot_plugin_entry") : NULL;
  if (!symbol) return NULL;
  memcpy(&entry, &symbol, sizeof entry); /* an object pointer, as POSIX has it */
  entry(AOT_ABI_EPOCH, AOT_ABI_MINOR, &why);
  return handle;
}

int aoth_probe_be(const char *path) {
  const struct rlimit none = {0, 0};
  const pid_t self = getpid();
  kit_text_t left = {0};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* processes that outlive those that started them are seen, too */
  setrlimit(RLIMIT_CORE, &none);
  fcntl(WORDS_FD, F_SETFD, FD_CLOEXEC);
  aoth_process_state_t *before = aoth_process_state_record();
  void *handle = open_plugin(path);
  if (getpid() != self) leave(0); /* a copy that its constructor made */
  if (!handle) {
    say(CANNOT, "");
    leave(STATUS);
  }
  if (waitpid(-1, NULL, WNOHANG) >= 0) kit_text_z(&left, "a process that it started still running");
  else if (before) aoth_process_state_differs(before, &left);
  say(DONE, left.data ? left.data : "");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  leave(STATUS); /* the sanitizer has exit handlers of its own */
#else
  exit(STATUS);
#endif
}

/* ---- what is known ---- */

/* Its file in the cache folder; NULL: there is none, or none to be had. */
static const char *known_path(const char *path, kit_arena_t *arena) {
  const char *asked = aoth_env("AOT_CACHE"), *folder;
  aoth_map_t map;
  char name[64];
  if (asked && strcmp(asked, "off") == 0) return NULL;
  folder = aoth_cache_dir(arena, AOTH_UNITS_FOLDER);
  if (!folder || aoth_file_map(path, NULL, &map) != AOT_OK) return NULL;
  const XXH128_hash_t h = XXH3_128bits(map.data, (size_t)map.nbytes);
  aoth_file_unmap(&map);
  snprintf(name, sizeof name, "opened-%s-%016llx%016llx", AOT_VERSION, (unsigned long long)h.high64,
           (unsigned long long)h.low64);
  kit_text_t t = {0};
  kit_text_f(&t, "%s/%s", folder, name);
  const char *made = t.failed ? NULL : kit_arena_text(arena, t.data, t.size);
  kit_text_deinit(&t);
  return made;
}

static int is_known(const char *known) {
  struct stat st;
  return known && lstat(known, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static void note_known(const char *known) {
  const int fd = known ? open(known, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
  if (fd >= 0) close(fd);
}

/* ---- waiting for it ---- */

typedef struct probe_call {
  pid_t pid;
  int fd; /* of its words */
  char words[MOST_WORDS + 1];
  size_t n_words;
  int how, is_late, is_stopped;
} probe_call_t;

static int start(const char *path, probe_call_t *p) {
  char own[] = "/proc/self/exe", command[] = AOTH_PROBE_COMMAND;
  char *file = strdup(path), *line[] = {own, command, file, NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none, all;
  int fds[2];
  if (!file || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
    free(file);
    return 0;
  }
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&how);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, fds[1], WORDS_FD);
  posix_spawn_file_actions_addclosefrom_np(&files, WORDS_FD + 1);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawnattr_setsigmask(&how, &none);
  const int failed = posix_spawn(&p->pid, own, &files, &how, line, environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  free(file);
  close(fds[1]);
  p->fd = fds[0];
  if (failed) close(fds[0]);
  return !failed;
}

static void read_words(probe_call_t *p) {
  const ssize_t got = read(p->fd, p->words + p->n_words, MOST_WORDS - p->n_words);
  if (got > 0) p->n_words += (size_t)got;
}

static double timeout_s(void) {
  const char *text = aoth_env("AOT_LOAD_TIMEOUT");
  const double asked = text ? strtod(text, NULL) : 0;
  return asked > 0 ? asked : TIMEOUT;
}

/* The pipe closes at its end, so that nothing is lost between two looks. */
static void await(probe_call_t *p) {
  const uint64_t deadline = aoth_now_ns() + (uint64_t)(timeout_s() * 1e9);
  int is_open = 1, has_ended = 0;
  while (!has_ended && !p->is_late && !p->is_stopped) {
    struct pollfd f = {.fd = is_open ? p->fd : -1, .events = POLLIN};
    poll(&f, 1, is_open ? TICK_MS : 1);
    if (f.revents & POLLIN) read_words(p);
    else if (f.revents) is_open = 0;
    has_ended = waitpid(p->pid, &p->how, WNOHANG | WUNTRACED) == p->pid;
    p->is_stopped = has_ended && WIFSTOPPED(p->how);
    p->is_late = aoth_now_ns() > deadline;
  }
  if (is_open) read_words(p);
  close(p->fd);
  kill(-p->pid, SIGKILL); /* and what it started */
  if (!has_ended || p->is_stopped) waitpid(p->pid, NULL, 0);
}

static void tell(const probe_call_t *p, kit_text_t *t) {
  const int is_open = p->words[0] == DONE;
  const char *when = is_open ? "at the end of the process, by an exit handler, a destructor or a thread of its own"
                             : "while it was being opened";
  if (p->is_stopped) kit_text_f(t, "it stopped the process %s", when);
  else if (p->is_late) kit_text_f(t, "it exceeded %g seconds %s", timeout_s(), when);
  else if (WIFSIGNALED(p->how))
    kit_text_f(t, "it died %s: %s (%s)", when, aoth_signal_name(WTERMSIG(p->how)), aoth_signal_text(WTERMSIG(p->how)));
  else if (!is_open) kit_text_f(t, "it ended the process %s: it called exit()", when);
  else if (WEXITSTATUS(p->how) != STATUS)
    kit_text_f(t, "it changes the exit status to %d %s", WEXITSTATUS(p->how), when);
  else if (p->words[1]) kit_text_f(t, "it left %s when it was opened", p->words + 1);
}

const char *aoth_probe(const char *path, kit_arena_t *arena) {
  probe_call_t p = {.pid = -1};
  kit_text_t t = {0};
  const char *known = known_path(path, arena);
  if (is_known(known) || !start(path, &p)) return NULL;
  await(&p);
  if (p.words[0] == CANNOT) return NULL;
  tell(&p, &t);
  if (!t.size) note_known(known);
  const char *why = t.size ? kit_arena_text(arena, t.data, t.size) : NULL;
  kit_text_deinit(&t);
  return why;
}
