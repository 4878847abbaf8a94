/* A child dies with its parent, answers in frames (length, JSON), and sleeps between requests. */
#define _GNU_SOURCE /* memfd_create */
#include <trainer/trial/child.h>

#include <aot/inline.h>
#include <errno.h>
#include <fcntl.h>
#include <process/crash.h>
#include <trainer/supervisor.h>
#include <config/pipeline.h>
#include <poll.h>
#include <trainer/interrupt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST_ANSWER (UINT64_C(1) << 32)

static void be_child(aoth_child_t *w, int fd, pid_t parent, aoth_child_serve_t serve, void *self) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(AOTH_EXIT_PLUGIN); /* it died before the line above */
  if (!aoth_contain_after_fork()) _exit(AOTH_EXIT_PLUGIN);
  aoth_supervise_nothing();
  setpgid(0, 0); /* Ctrl-C is the parent's; and compilers that a plugin starts are stopped and ended with it */
  dup2(w->log_fd, STDOUT_FILENO);
  dup2(w->log_fd, STDERR_FILENO);
  serve(self, fd);
  _exit(0);
}

int aoth_child_start(aoth_child_t *w, aoth_child_serve_t serve, void *self) {
  int pair[2];
  const pid_t parent = getpid();
  *w = (aoth_child_t){.fd = -1, .log_fd = memfd_create("aothost-child", MFD_CLOEXEC)};
  if (w->log_fd < 0 || fcntl(w->log_fd, F_SETFL, O_APPEND) != 0) return 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 0;
  fflush(NULL);
  w->pid = fork();
  if (w->pid == 0) {
    close(pair[0]);
    be_child(w, pair[1], parent, serve, self);
  }
  close(pair[1]);
  w->fd = pair[0];
  if (w->pid > 0) setpgid(w->pid, w->pid); /* code that is first */
  if (w->pid > 0) return 1;
  w->pid = 0;
  return 0;
}

/* ---- frames ---- */

typedef struct wait_for {
  uint64_t deadline_ns;
  int is_patient; /* Ctrl-C can wait */
} wait_for_t;

/* Moves n bytes; 1: done, 0: the other end is gone, -1: too late, or interrupted. */
static int move(int fd, void *data, size_t n, int is_write, const wait_for_t *wait) {
  for (char *at = data; n;) {
    const uint64_t now = aoth_now_ns();
    struct pollfd p = {.fd = fd, .events = is_write ? POLLOUT : POLLIN};
    if (now >= wait->deadline_ns || (!wait->is_patient && aoth_interrupt_asked())) return -1;
    const uint64_t left_ms = (wait->deadline_ns - now) / 1000000 + 1;
    const int ready = poll(&p, 1, left_ms > 1000000 ? 1000000 : (int)left_ms);
    if (ready < 0 && errno != EINTR) return 0;
    if (ready <= 0) continue;
    const ssize_t k = is_write ? send(fd, at, n, MSG_NOSIGNAL) : recv(fd, at, n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return 0;
    at += k;
    n -= (size_t)k;
  }
  return 1;
}

static int receive(int fd, const wait_for_t *wait, json_t **out) {
  uint64_t size = 0;
  int moved = move(fd, &size, sizeof size, 0, wait);
  *out = NULL;
  if (moved != 1) return moved;
  char *text = size < LONGEST_ANSWER ? malloc(size + 1) : NULL;
  if (!text) return 0;
  moved = move(fd, text, size, 0, wait);
  if (moved == 1) *out = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
  free(text);
  return moved == 1 && !*out ? 0 : moved;
}

/* ---- losing an arm ---- */

static void lose(aoth_child_t *w, int fate, const char *doing, const char *why) {
  w->fate = fate;
  w->doing = doing;
  w->why = strdup(why);
}

static void read_log(const aoth_child_t *w, off_t from, kit_text_t *out) {
  char piece[4096];
  off_t at = from;
  for (ssize_t n; w->log_fd >= 0 && (n = pread(w->log_fd, piece, sizeof piece, at)) > 0; at += n)
    kit_text_add(out, piece, (size_t)n);
}

void aoth_child_log(const aoth_child_t *w, kit_text_t *out) { read_log(w, 0, out); }

void aoth_first_error(const char *printed, char *out, size_t size) {
  const char *at = printed ? strstr(printed, "error: ") : NULL;
  *out = 0;
  if (!at) return;
  at += strlen("error: ");
  size_t n = strcspn(at, "\n");
  for (size_t k = n; k > 1 && at[n - 1] == ']'; k--) /* " [code]" */
    if (at[k - 1] == '[' && at[k - 2] == ' ') n = k - 2;
  snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), at);
}

/* The first error that it printed since the request. */
static void first_error(const aoth_child_t *w, char *out, size_t size) {
  kit_text_t log = {0};
  read_log(w, (off_t)w->log_at, &log);
  aoth_first_error(log.data, out, size);
  kit_text_deinit(&log);
}

static void lose_dead(aoth_child_t *w, const char *doing) {
  char why[512], said[256];
  int status = 0;
  waitpid(w->pid, &status, 0);
  w->pid = 0;
  first_error(w, said, sizeof said);
  if (WIFSIGNALED(status))
    snprintf(why, sizeof why, "its process died of %s%s%s", aoth_signal_name(WTERMSIG(status)), *said ? ": " : "",
             said);
  else if (WEXITSTATUS(status) == AOTH_EXIT_PLUGIN && *said) snprintf(why, sizeof why, "%s", said);
  else snprintf(why, sizeof why, "its process ended with status %d%s%s", WEXITSTATUS(status), *said ? ": " : "", said);
  lose(w, AOTH_CHILD_CRASHED, doing, why);
}

static void lose_late(aoth_child_t *w, const char *doing, int64_t timeout_ms) {
  char why[128];
  if (aoth_interrupt_asked()) snprintf(why, sizeof why, "interrupted");
  else snprintf(why, sizeof why, "no answer in %g seconds", (double)timeout_ms / 1000);
  aoth_child_end(w);
  lose(w, AOTH_CHILD_HUNG, doing, why);
}

/* It answered that it cannot continue. */
static void lose_told(aoth_child_t *w, const char *doing, json_t *answer) {
  char why[512];
  first_error(w, why, sizeof why);
  w->input = json_is_true(json_object_get(answer, "input"));
  const int crashed = json_is_true(json_object_get(answer, "crashed"));
  lose(w, crashed ? AOTH_CHILD_CRASHED : AOTH_CHILD_FAILED, doing, *why ? why : "it gave no reason");
}

json_t *aoth_child_ask(aoth_child_t *w, const aoth_request_t *request, const char *doing, int64_t timeout_ms) {
  const wait_for_t wait = {aoth_now_ns() + (uint64_t)timeout_ms * 1000000u, request->is_patient};
  aoth_request_t copy = *request;
  json_t *answer = NULL;
  if (w->fate != AOTH_CHILD_FINE || !w->pid) return NULL;
  w->log_at = lseek(w->log_fd, 0, SEEK_END);
  kill(-w->pid, SIGCONT);
  int moved = move(w->fd, &copy, sizeof copy, 1, &wait);
  if (moved == 1) moved = receive(w->fd, &wait, &answer);
  if (moved == 1) kill(-w->pid, SIGSTOP);
  if (moved == 0) lose_dead(w, doing);
  if (moved < 0) lose_late(w, doing, timeout_ms);
  if (moved != 1 || !json_is_true(json_object_get(answer, "failed"))) return answer;
  lose_told(w, doing, answer);
  json_decref(answer);
  aoth_child_end(w);
  return NULL;
}

void aoth_child_end(aoth_child_t *w) {
  if (w->pid > 0) {
    kill(-w->pid, SIGKILL);
    kill(w->pid, SIGKILL); /* should it have no group of its own */
    waitpid(w->pid, NULL, 0);
  }
  w->pid = 0;
}

void aoth_child_deinit(aoth_child_t *w) {
  aoth_child_end(w);
  if (w->fd >= 0) close(w->fd);
  if (w->log_fd >= 0) close(w->log_fd);
  free(w->why);
}

/* ---- in the child ---- */

static int transfer(int fd, void *data, size_t n, int is_write) {
  for (char *at = data; n;) {
    const ssize_t k = is_write ? send(fd, at, n, MSG_NOSIGNAL) : recv(fd, at, n, 0);
    if (k <= 0) return 0;
    at += k;
    n -= (size_t)k;
  }
  return 1;
}

static int answer_with(int fd, json_t *answer) {
  char *text = json_dumps(answer, JSON_COMPACT);
  uint64_t size = text ? strlen(text) : 0;
  const int sent = text && transfer(fd, &size, sizeof size, 1) && transfer(fd, text, size, 1);
  free(text);
  return sent;
}

void aoth_child_serve(int fd, aoth_child_answer_t answer_one, void *self) {
  aoth_request_t request;
  while (transfer(fd, &request, sizeof request, 0)) {
    json_t *answer = json_object();
    const aot_status_t status = answer_one(self, &request, answer);
    if (status != AOT_OK) {
      json_object_set_new(answer, "failed", json_true());
      json_object_set_new(answer, "input", json_boolean(aoth_exit_code(status) == AOTH_EXIT_INPUT));
    }
    fflush(NULL);
    if (!answer_with(fd, answer)) break;
    json_decref(answer);
  }
  _exit(0);
}

void aoth_child_serve_table(void *served, int fd) {
  const aoth_served_t *table = served;
  aoth_child_serve(fd, table->answer, table->self);
}
