#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include <sandbox/worker.h>

#include <aot/inline.h>
#include <errno.h>
#include <fcntl.h>
#include <sandbox/call.h>
#include <sandbox/cancel.h>
#include <sandbox/isolation.h>
#include <process/process_state.h>
#include <sandbox/worker_receive.h>
#include <sandbox/worker_result.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 50         /* between two looks at whether it still lives */
#define LAST_WORDS_MS 2000 /* that it has for them, once it crashed or was requested to stop */
#define PIPE_SIZE (1 << 20)
#define BUFFER_SIZE ((size_t)256 << 10) /* of edits that wait to be sent */

struct aoth_worker {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  int letters, frames; /* ends of pipes to the process that waits */
  kit_text_t buffer;   /* frames; those within `whole` are */
  size_t whole;
  int is_sending;
  aoth_known_t known;
  aoth_worker_result_t result;
  aoth_watch_t watch;
  aoth_edit_listener_t listener;
  atomic_int *asked; /* to stop: a page of both processes, which is written by the one that waits */
  const char *why_not;
  uint32_t n_told[AOTH_N_SEVERITIES];
  size_t told_size;
};

static void count_told(const aoth_session_t *s, uint32_t out[AOTH_N_SEVERITIES]) {
  for (int32_t i = 0; i < AOTH_N_SEVERITIES; i++)
    out[i] = aoth_sink_count(s->config.sink, i) - aoth_sink_count(s->config.sink, i + 1);
}

/* ---- inside of the worker ---- */

static void send_letter(const aoth_worker_t *w, const char *unit, const aoth_crash_t *crash, const char *doing) {
  aoth_crash_report_t report_slot = {.is_written = 1, .last_node = w->s->ctx.last_node, .crash = *crash};
  strncpy(report_slot.doing, doing, sizeof report_slot.doing - 1);
  strncpy(report_slot.unit, unit, sizeof report_slot.unit - 1);
  const ssize_t done = write(w->letters, &report_slot, sizeof report_slot);
  (void)done; /* nothing waits any more */
}

/* In a signal handler. */
static void on_stray(void *self, const aoth_crash_t *crash, const char *doing) {
  send_letter(self, "", crash, doing);
  _exit(AOTH_EXIT_PLUGIN);
}

static void send_frames(aoth_worker_t *w) {
  w->is_sending = 1;
  for (size_t at = 0; at < w->whole;) {
    const ssize_t k = write(w->frames, w->buffer.data + at, w->whole - at);
    if (k < 0 && errno != EINTR) _exit(AOTH_EXIT_PLUGIN); /* nothing waits any more */
    if (k > 0) at += (size_t)k;
  }
  w->buffer.size = w->whole = 0;
  w->is_sending = 0;
}

static kit_wire_t begin_frame(aoth_worker_t *w, uint32_t kind) {
  const aoth_frame_t frame = {.kind = kind};
  if (w->whole >= BUFFER_SIZE) send_frames(w);
  kit_text_add(&w->buffer, (const char *)&frame, sizeof frame);
  return kit_wire_writer(&w->buffer);
}

/* One that found no memory ends the worker: half of the edits would be another stage. */
static void end_frame(aoth_worker_t *w, const kit_wire_t *wire) {
  if (wire->failed || w->buffer.failed) _exit(AOTH_EXIT_PLUGIN);
  const uint64_t nbytes = w->buffer.size - w->whole - sizeof(aoth_frame_t);
  memcpy(w->buffer.data + w->whole + offsetof(aoth_frame_t, nbytes), &nbytes, sizeof nbytes);
  w->whole = w->buffer.size;
}

static void send_word(aoth_worker_t *w, uint32_t kind) {
  const kit_wire_t wire = begin_frame(w, kind);
  end_frame(w, &wire);
}

static void on_made(void *self, const aoth_edit_t *edit) {
  aoth_worker_t *w = self;
  kit_wire_t wire = begin_frame(w, AOTH_FRAME_EDIT);
  aoth_wire_edit(&wire, edit, w->known, NULL);
  end_frame(w, &wire);
}

static void on_begun(void *self) { send_word(self, AOTH_FRAME_BEGUN); }
static void on_undone(void *self) { send_word(self, AOTH_FRAME_UNDONE); }
static void on_kept(void *self) { send_word(self, AOTH_FRAME_KEPT); }

static void on_cut(void *self, aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut) {
  kit_wire_t wire = begin_frame(self, AOTH_FRAME_CUT);
  (void)s, (void)stage;
  aoth_wire_cut(&wire, cut);
  end_frame(self, &wire);
}

/* By the thread that reports (crash.h): first what needs nothing, then the edits, as far as it gets. */
static void tell_crash(aoth_session_t *s, const aoth_stage_t *stage, const aoth_crash_t *crash, const char *doing) {
  aoth_worker_t *w = s->worker;
  send_letter(w, stage == w->stage ? "" : stage->unit->id, crash, doing);
  if (w->is_sending) return;
  send_frames(w);
  aoth_edits_tell(s->now.prog);
  send_frames(w);
}

static void hand_over(aoth_worker_t *w, aot_status_t status, const char *left) {
  aoth_session_t *s = w->s;
  aoth_worker_result_t r = {
      .status = status,
      .outcome = s->outcome,
      .last_node = s->last_node,
      .left = left,
      .why_not = s->cache_why_not == w->why_not ? NULL : s->cache_why_not,
      .numbers = s->report.numbers,
      .n_numbers = s->report.n_numbers,
      .env = s->report.env,
      .n_env = s->report.n_env,
      .told = aot_str(aoth_sink_text(s->config.sink) + w->told_size),
  };
  count_told(s, r.n_told);
  for (int32_t i = 0; i < AOTH_N_SEVERITIES; i++) r.n_told[i] -= w->n_told[i];
  aoth_edits_tell(s->now.prog);
  kit_wire_t wire = begin_frame(w, AOTH_FRAME_RESULT);
  aoth_wire_result(&wire, &r);
  end_frame(w, &wire);
  send_frames(w);
}

static _Noreturn void serve(aoth_worker_t *w, aot_status_t (*fn)(void *arg), void *arg) {
  aoth_session_t *s = w->s;
  kit_text_t left = {0};
  s->worker = w;
  s->ctx.asked = w->asked;
  s->tell_crash = tell_crash;
  s->config.bundle_dir = NULL;
  s->config.span = NULL;
  if (s->config.watch) s->config.watch = &w->watch;
  w->watch = (aoth_watch_t){.self = w, .cut = on_cut};
  w->listener = (aoth_edit_listener_t){w, kit_arena_create(), on_made, on_begun, on_undone, on_kept};
  aoth_process_state_t *before = aoth_process_state_record();
  if (!before || !w->listener.arena) _exit(AOTH_EXIT_PLUGIN);
  aoth_edits_hear(s->now.prog, &w->listener);
  const aot_status_t status = fn(arg);
  hand_over(w, status, aoth_process_state_differs(before, &left) ? left.data : NULL);
  _exit(0);
}

/* What it has already, and as much as the machine has. */
static void limit_memory(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  unsigned long held = 0;
  struct rlimit limit;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%lu", &held) == 1 && pages > 0 && getrlimit(RLIMIT_AS, &limit) == 0) {
    const rlim_t most = ((rlim_t)held + (rlim_t)pages) * (rlim_t)page;
    if (most < limit.rlim_cur) limit.rlim_cur = most;
    setrlimit(RLIMIT_AS, &limit);
  }
  if (f) fclose(f);
}

/* Fewer things that a unit can do to others than this process could. Ctrl-C is the other's to hear, and to hand on. */
static void limit_itself(const aoth_worker_t *w, pid_t parent) {
  const struct rlimit none = {0, 0};
  limit_memory();
  mprotect(w->asked, sizeof *w->asked, PROT_READ);
  setpgid(0, 0); /* what it starts ends with it */
  signal(SIGINT, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(AOTH_EXIT_PLUGIN); /* it died before the line above */
  setrlimit(RLIMIT_CORE, &none);
}

/* ---- what came of it ---- */

typedef struct waiter {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  aoth_received_t received;
  pid_t pid;
  int letters, frames;
  atomic_int *asked;
  aoth_crash_report_t report_slot;
  int is_late, is_stopped;
  int has_ended, how; /* wait status */
} waiter_t;

/* ---- waiting for it ---- */

static int64_t ms_left(uint64_t deadline_ns) {
  const uint64_t now = aoth_now_ns();
  return now < deadline_ns ? (int64_t)((deadline_ns - now) / 1000000) + 1 : 0;
}

/* 0: the other end is closed. */
static int read_frames(waiter_t *w) {
  char *room = aoth_received_room(&w->received, BUFFER_SIZE);
  const ssize_t k = room ? read(w->frames, room, BUFFER_SIZE) : 0;
  if (k > 0) aoth_received_more(&w->received, (size_t)k);
  return k > 0 || (k < 0 && errno == EINTR);
}

/* 1: it has written one. */
static int read_letter(waiter_t *w) {
  aoth_crash_report_t report_slot;
  if (read(w->letters, &report_slot, sizeof report_slot) != (ssize_t)sizeof report_slot) return 0;
  if (!aoth_letter_check(&report_slot)) w->received.is_broken = 1;
  else w->report_slot = report_slot;
  return w->report_slot.is_written;
}

/* Until it has handed over all, is gone, or the time is over. */
static void attend(waiter_t *w, uint64_t deadline_ns) {
  int is_open = 1;
  while (is_open && !w->received.has_result && !w->received.is_broken) {
    struct pollfd p[2] = {{.fd = w->frames, .events = POLLIN}, {.fd = w->letters, .events = POLLIN}};
    const int64_t left = ms_left(deadline_ns);
    if (left == 0) return;
    atomic_store(w->asked, aoth_is_cancelled(&w->s->ctx));
    const int ready = poll(p, 2, left < TICK_MS ? (int)left : TICK_MS);
    if (ready > 0 && p[0].revents) is_open = read_frames(w);
    if (ready > 0 && (p[1].revents & POLLIN) && read_letter(w))
      deadline_ns = aoth_now_ns() + LAST_WORDS_MS * UINT64_C(1000000);
    if (ready > 0) continue;
    if (w->has_ended) return; /* looked at again after its end: what it had written still lay there */
    w->has_ended = waitpid(w->pid, &w->how, WNOHANG | WUNTRACED) == w->pid;
    w->is_stopped = w->has_ended && WIFSTOPPED(w->how);
    if (w->is_stopped) w->has_ended = 0;
    if (w->is_stopped) return;
  }
  if (!w->report_slot.is_written) {
    struct pollfd p = {.fd = w->letters, .events = POLLIN};
    if (poll(&p, 1, 0) > 0 && (p.revents & POLLIN)) read_letter(w); /* or there is none */
  }
}

/* Where it handed over all, its end is nothing to wait for. */
static void end_it(waiter_t *w) {
  aoth_session_t *s = w->s;
  if (!w->received.has_result && !w->has_ended && !w->is_late && !w->received.is_broken &&
      !w->is_stopped) /* it is ending by itself: as what? */
    w->has_ended = waitpid(w->pid, &w->how, 0) == w->pid;
  kill(-w->pid, SIGKILL);
  if (!w->has_ended) kill(w->pid, SIGKILL); /* should it have no group of its own */
  if (s->past_worker > 0) waitpid(s->past_worker, NULL, 0);
  s->past_worker = w->has_ended ? 0 : w->pid;
}

static void await(waiter_t *w) {
  const double timeout = aoth_stage_timeout(w->s, w->stage);
  attend(w, timeout > 0 ? aoth_now_ns() + (uint64_t)(timeout * 1e9) : UINT64_MAX);
  struct pollfd p = {.fd = w->frames, .events = POLLIN};
  if (!w->received.has_result && !w->received.is_broken && !w->has_ended && !w->is_stopped &&
      !w->report_slot.is_written && poll(&p, 1, 0) == 0) {
    w->is_late = 1;
    kill(w->pid, SIGTERM); /* it says where it is, if it can */
    attend(w, aoth_now_ns() + LAST_WORDS_MS * UINT64_C(1000000));
  }
  end_it(w);
}

/* The unit of the letter is in the stage's place: a backend that was queried, say. */
static aot_status_t tell_letter(aoth_session_t *s, const aoth_stage_t *stage, const aoth_crash_report_t *report_slot) {
  const aoth_unit_t *called = report_slot->unit[0] ? aoth_registry_find(s->registry, report_slot->unit) : NULL;
  aoth_stage_t other = *stage;
  if (!called) return aoth_tell_crash(s, stage, &report_slot->crash, report_slot->doing);
  other.use = other.name = called->id;
  other.unit = called;
  return aoth_tell_crash(s, &other, &report_slot->crash, report_slot->doing);
}

/* It did not hand over all. */
static aot_status_t tell_end(aoth_session_t *s, const aoth_stage_t *stage, const waiter_t *w) {
  const char *doing = w->report_slot.doing[0] ? w->report_slot.doing : "its run";
  s->status = AOTH_E_PLUGIN;
  s->last_node = w->report_slot.is_written ? w->report_slot.last_node : s->ctx.last_node;
  s->outcome = AOTH_CALL_BROKE;
  if (w->is_late)
    return aoth_contract_violation(s, stage, "exceeded its timeout of %g seconds and was killed during %s",
                                   aoth_stage_timeout(s, stage), doing);
  if (w->is_stopped)
    return aoth_contract_violation(s, stage, "stopped its process during %s, by %s", doing,
                                   WSTOPSIG(w->how) == SIGSTOP ? "SIGSTOP" : "a signal");
  if (w->received.is_broken)
    return aoth_contract_violation(s, stage, "corrupted the memory of its process: the host received invalid edits");
  s->outcome = AOTH_CALL_CRASHED;
  s->crash = w->report_slot.crash;
  if (w->report_slot.is_written) return tell_letter(s, stage, &w->report_slot);
  if (WIFSIGNALED(w->how)) s->crash.signal = WTERMSIG(w->how);
  if (WIFSIGNALED(w->how)) return aoth_tell_crash(s, stage, &s->crash, doing);
  return aoth_contract_violation(s, stage, "ended the process during %s, with status %d: it called _exit()", doing,
                                 WEXITSTATUS(w->how));
}

static aot_status_t conclude(waiter_t *w) {
  const aot_status_t status = w->received.has_result ? w->received.status : tell_end(w->s, w->stage, w);
  for (; w->received.n_open; w->received.n_open--) aoth_journal_undo(w->s->now.prog);
  return status;
}

/* ---- starting it ---- */

static aot_status_t no_worker(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "worker.start",
                   "cannot start a worker process for stage %s: %s", stage->name, strerror(errno));
  s->outcome = AOTH_CALL_TOLD;
  return s->status = AOT_E_EXHAUSTED;
}

static void close_all(const int pipes[4]) {
  for (int i = 0; i < 4; i++)
    if (pipes[i] >= 0) close(pipes[i]);
}

/* Memory that a fork does not copy. NULL: none. */
static atomic_int *shared_word(void) {
  atomic_int *word = mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return word == MAP_FAILED ? NULL : word;
}

aot_status_t aoth_worker_run(aoth_session_t *s, const aoth_stage_t *stage, aot_status_t (*fn)(void *arg), void *arg) {
  aoth_type_numbers_t types = aoth_type_numbers(s->now.prog);
  aoth_worker_t worker = {.s = s, .stage = stage, .why_not = s->cache_why_not, .known = aoth_known_by_both(s, &types)};
  waiter_t w = {.s = s, .stage = stage, .received = {.s = s, .stage = stage, .known = worker.known}, .pid = -1};
  int pipes[4] = {-1, -1, -1, -1};
  const pid_t parent = getpid();
  worker.told_size = strlen(aoth_sink_text(s->config.sink));
  count_told(s, worker.n_told);
  fflush(NULL);
  worker.asked = w.asked = shared_word();
  if (w.asked && pipe2(pipes, O_CLOEXEC) == 0 && pipe2(pipes + 2, O_CLOEXEC) == 0) w.pid = fork();
  if (w.pid < 0) {
    const aot_status_t none = no_worker(s, stage);
    close_all(pipes);
    if (w.asked) munmap(w.asked, sizeof *w.asked);
    return none;
  }
  if (w.pid == 0) {
    worker.letters = pipes[1];
    worker.frames = pipes[3];
    close(pipes[0]);
    close(pipes[2]);
    limit_itself(&worker, parent);
    if (!aoth_contain_in_worker(on_stray, &worker)) _exit(AOTH_EXIT_PLUGIN);
    serve(&worker, fn, arg);
  }
  close(pipes[1]);
  close(pipes[3]);
  pipes[1] = pipes[3] = -1;
  w.letters = pipes[0];
  w.frames = pipes[2];
  fcntl(w.frames, F_SETPIPE_SZ, PIPE_SIZE); /* or as large as it is */
  s->ctx.stage = stage->name;
  s->ctx.n_diags = 0;
  await(&w);
  const aot_status_t status = conclude(&w);
  close_all(pipes);
  munmap(w.asked, sizeof *w.asked);
  aoth_type_numbers_deinit(&types);
  free(w.received.buffer);
  return status;
}
