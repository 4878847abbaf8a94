#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include <pipeline/worker.h>

#include <aot/inline.h>
#include <errno.h>
#include <fcntl.h>
#include <ir/edits_wire.h>
#include <pipeline/call.h>
#include <pipeline/cancel.h>
#include <pipeline/isolation.h>
#include <pipeline/process_state.h>
#include <pipeline/stage_check.h>
#include <pipeline/worker_result.h>
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
#define LAST_WORDS_MS 2000 /* that it has for them, once it crashed or was asked to stop */
#define PIPE_SIZE (1 << 20)
#define BUFFER_SIZE ((size_t)256 << 10) /* of edits that wait to be sent */

/* What comes through the pipe of edits, in order: a head, and its bytes, a multiple of 8. */
enum { FRAME_EDIT = 1, FRAME_BEGUN, FRAME_UNDONE, FRAME_KEPT, FRAME_CUT, FRAME_RESULT };
typedef struct frame {
  uint32_t kind, reserved;
  uint64_t nbytes;
} frame_t;

/* Of a crash, through a pipe of its own in one write: also from a signal handler. */
typedef struct letter {
  uint32_t is_written, last_node;
  aoth_crash_t crash;
  char doing[128];
  char unit[64]; /* that was called; empty: the stage's own */
} letter_t;
_Static_assert(sizeof(letter_t) <= 4096, "POSIX promises no more at once");

struct aoth_worker {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  int letters, frames; /* ends of pipes to the process that waits */
  aoth_text_t buffer;  /* frames; those within `whole` are */
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

/* Memory of both processes: model files, and what leaves hold already. In session memory; none where there is no room. */
static aoth_known_t what_both_have(aoth_session_t *s, aoth_type_numbers_t *types) {
  const uint32_t n_leaves = aoth_graph_n_leaves(s->now.prog);
  aoth_known_t known = {.n = 0, .types = types};
  known.at = aoth_arena_alloc(s->arena, sizeof(void *), (s->n_maps + (size_t)n_leaves) * sizeof *known.at);
  for (uint32_t i = 0; known.at && i < s->n_maps; i++)
    known.at[known.n++] = (aoth_span_t){s->maps[i].data, s->maps[i].nbytes};
  for (uint32_t l = 1; known.at && l < n_leaves; l++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (aoth_graph_leaf_info(s->now.prog, (aot_leaf_t){l}, &leaf) == AOT_OK && leaf.data)
      known.at[known.n++] = (aoth_span_t){leaf.data, leaf.nbytes};
  }
  return known;
}

/* ---- inside of the worker ---- */

static void send_letter(const aoth_worker_t *w, const char *unit, const aoth_crash_t *crash, const char *doing) {
  letter_t letter = {.is_written = 1, .last_node = w->s->ctx.last_node, .crash = *crash};
  strncpy(letter.doing, doing, sizeof letter.doing - 1);
  strncpy(letter.unit, unit, sizeof letter.unit - 1);
  const ssize_t done = write(w->letters, &letter, sizeof letter);
  (void)done; /* nobody waits any more */
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
    if (k < 0 && errno != EINTR) _exit(AOTH_EXIT_PLUGIN); /* nobody waits any more */
    if (k > 0) at += (size_t)k;
  }
  w->buffer.size = w->whole = 0;
  w->is_sending = 0;
}

static aoth_wire_t begin_frame(aoth_worker_t *w, uint32_t kind) {
  const frame_t frame = {.kind = kind};
  if (w->whole >= BUFFER_SIZE) send_frames(w);
  aoth_text_add(&w->buffer, (const char *)&frame, sizeof frame);
  return aoth_wire_writer(&w->buffer);
}

/* One that found no memory ends the worker: half of the edits would be another stage. */
static void end_frame(aoth_worker_t *w, const aoth_wire_t *wire) {
  if (wire->failed || w->buffer.failed) _exit(AOTH_EXIT_PLUGIN);
  const uint64_t nbytes = w->buffer.size - w->whole - sizeof(frame_t);
  memcpy(w->buffer.data + w->whole + offsetof(frame_t, nbytes), &nbytes, sizeof nbytes);
  w->whole = w->buffer.size;
}

static void send_word(aoth_worker_t *w, uint32_t kind) {
  const aoth_wire_t wire = begin_frame(w, kind);
  end_frame(w, &wire);
}

static void on_made(void *self, const aoth_edit_t *edit) {
  aoth_worker_t *w = self;
  aoth_wire_t wire = begin_frame(w, FRAME_EDIT);
  aoth_wire_edit(&wire, edit, w->known, NULL);
  end_frame(w, &wire);
}

static void on_begun(void *self) { send_word(self, FRAME_BEGUN); }
static void on_undone(void *self) { send_word(self, FRAME_UNDONE); }
static void on_kept(void *self) { send_word(self, FRAME_KEPT); }

static void on_cut(void *self, aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut) {
  aoth_wire_t wire = begin_frame(self, FRAME_CUT);
  (void)s, (void)stage;
  aoth_wire_cut(&wire, cut);
  end_frame(self, &wire);
}

/* By the thread that tells (crash.h): first what needs nothing, then the edits, as far as it gets. */
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
  aoth_wire_t wire = begin_frame(w, FRAME_RESULT);
  aoth_wire_result(&wire, &r);
  end_frame(w, &wire);
  send_frames(w);
}

static _Noreturn void serve(aoth_worker_t *w, aot_status_t (*fn)(void *arg), void *arg) {
  aoth_session_t *s = w->s;
  aoth_text_t left = {0};
  s->worker = w;
  s->ctx.asked = w->asked;
  s->tell_crash = tell_crash;
  s->config.bundle_dir = NULL;
  s->config.trace = NULL;
  if (s->config.watch) s->config.watch = &w->watch;
  w->watch = (aoth_watch_t){.self = w, .cut = on_cut};
  w->listener = (aoth_edit_listener_t){w, aoth_arena_create(), on_made, on_begun, on_undone, on_kept};
  aoth_process_state_t *before = aoth_process_state_record();
  if (!before || !w->listener.arena) _exit(AOTH_EXIT_PLUGIN);
  aoth_edits_hear(s->now.prog, &w->listener);
  aot_status_t status = fn(arg);
  if (status == AOT_OK) status = aoth_stage_check_memory(s, w->stage);
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

typedef struct waiting {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  aoth_known_t known;
  pid_t pid;
  int letters, frames;
  atomic_int *asked;
  letter_t letter;
  char *buffer; /* of frames; the last one may not be whole */
  size_t size, capacity;
  uint32_t n_open; /* journals inside of the stage's */
  int has_result, is_late, is_broken, is_stopped;
  int has_ended, how; /* wait status */
  aot_status_t status;
} waiting_t;

static aot_status_t take_result(waiting_t *w, const aoth_worker_result_t *r) {
  aoth_session_t *s = w->s;
  for (uint32_t i = 0; i < r->n_numbers; i++) {
    const aoth_number_t *n = &r->numbers[i];
    if (n->text) aoth_report_text(&s->report, aot_str(n->name), aot_str(n->text));
    else aoth_report_number(&s->report, aot_str(n->name), n->value, aot_str(n->unit));
  }
  for (uint32_t i = 0; i < r->n_env; i++) aoth_report_env(&s->report, r->env[i].name);
  if (r->why_not) s->cache_why_not = aoth_arena_text(s->arena, r->why_not, strlen(r->why_not));
  aoth_sink_adopt(s->config.sink, r->told.data, (size_t)r->told.size, r->n_told);
  s->outcome = r->outcome;
  s->last_node = r->last_node;
  s->status = r->status;
  if (r->status == AOT_OK && r->left) s->status = aoth_misbehaved(s, w->stage, "left %s", r->left);
  return s->status;
}

static void show_cut(const waiting_t *w, const aot_cut_t *cut) {
  const aoth_watch_t *watch = w->s->config.watch;
  if (watch && watch->cut) watch->cut(watch->self, w->s, w->stage, cut);
}

/* 0: it is none. */
static int take_frame(waiting_t *w, uint32_t kind, char *bytes, size_t nbytes) {
  aot_prog_t *p = w->s->now.prog;
  aoth_wire_t wire = aoth_wire_reader(bytes, nbytes);
  aoth_worker_result_t result = {.status = AOT_OK};
  const aoth_edit_t *edit;
  const aot_cut_t *cut;
  switch (kind) {
    case FRAME_EDIT:
      edit = aoth_wire_edit(&wire, NULL, w->known, aoth_prog_arena(p));
      return aoth_wire_done(&wire) && aoth_edit_replay(p, edit) == AOT_OK;
    case FRAME_BEGUN:
      if (aoth_journal_begin(p) != AOT_OK) return 0;
      w->n_open++;
      return 1;
    case FRAME_UNDONE:
    case FRAME_KEPT:
      if (w->n_open == 0) return 0;
      w->n_open--;
      if (kind == FRAME_KEPT) aoth_journal_commit(p);
      else aoth_journal_undo(p);
      return 1;
    case FRAME_CUT:
      cut = aoth_wire_cut(&wire, NULL);
      if (aoth_wire_done(&wire)) show_cut(w, cut);
      return aoth_wire_done(&wire);
    case FRAME_RESULT:
      aoth_wire_result(&wire, &result);
      w->has_result = aoth_wire_done(&wire) && w->n_open == 0;
      if (w->has_result) w->status = take_result(w, &result);
      return w->has_result;
    default: return 0;
  }
}

static void take_frames(waiting_t *w) {
  size_t at = 0;
  frame_t frame;
  while (!w->is_broken && !w->has_result && w->size - at >= sizeof frame) {
    memcpy(&frame, w->buffer + at, sizeof frame);
    if (frame.nbytes > w->size - at - sizeof frame) break; /* the rest is to come */
    at += sizeof frame;
    w->is_broken = frame.nbytes % 8 || !take_frame(w, frame.kind, w->buffer + at, (size_t)frame.nbytes);
    at += (size_t)frame.nbytes;
  }
  w->size -= at;
  if (w->size && at) memmove(w->buffer, w->buffer + at, w->size);
}

/* ---- waiting for it ---- */

static int64_t ms_left(uint64_t deadline_ns) {
  const uint64_t now = aoth_now_ns();
  return now < deadline_ns ? (int64_t)((deadline_ns - now) / 1000000) + 1 : 0;
}

/* 0: the other end is closed. */
static int read_frames(waiting_t *w) {
  if (w->capacity - w->size < BUFFER_SIZE) { /* a frame may be longer than that */
    char *larger = realloc(w->buffer, 2 * w->capacity + BUFFER_SIZE);
    w->is_broken = !larger;
    if (!larger) return 0;
    w->buffer = larger;
    w->capacity = 2 * w->capacity + BUFFER_SIZE;
  }
  const ssize_t k = read(w->frames, w->buffer + w->size, w->capacity - w->size);
  if (k > 0) w->size += (size_t)k;
  if (k > 0) take_frames(w);
  return k > 0 || (k < 0 && errno == EINTR);
}

/* 1: it has written one. */
static int read_letter(waiting_t *w) {
  letter_t letter;
  if (read(w->letters, &letter, sizeof letter) <= 0) return 0;
  w->letter = letter;
  return 1;
}

/* Until it has handed over all, is gone, or the time is over. */
static void attend(waiting_t *w, uint64_t deadline_ns) {
  int is_open = 1;
  while (is_open && !w->has_result && !w->is_broken) {
    struct pollfd p[2] = {{.fd = w->frames, .events = POLLIN}, {.fd = w->letters, .events = POLLIN}};
    const int64_t left = ms_left(deadline_ns);
    if (left == 0) return;
    atomic_store(w->asked, aoth_is_cancelled(&w->s->ctx));
    const int ready = poll(p, 2, left < TICK_MS ? (int)left : TICK_MS);
    if (ready > 0 && p[0].revents) is_open = read_frames(w);
    if (ready > 0 && (p[1].revents & POLLIN) && read_letter(w))
      deadline_ns = aoth_now_ns() + LAST_WORDS_MS * UINT64_C(1000000);
    if (ready > 0) continue;
    if (w->has_ended) return; /* looked at once more after its end: what it had written still lay there */
    w->has_ended = waitpid(w->pid, &w->how, WNOHANG | WUNTRACED) == w->pid;
    w->is_stopped = w->has_ended && WIFSTOPPED(w->how);
    if (w->is_stopped) w->has_ended = 0;
    if (w->is_stopped) return;
  }
  if (!w->letter.is_written) {
    struct pollfd p = {.fd = w->letters, .events = POLLIN};
    if (poll(&p, 1, 0) > 0 && (p.revents & POLLIN)) read_letter(w); /* or there is none */
  }
}

/* Where it handed over all, its end is nothing to wait for. */
static void end_it(waiting_t *w) {
  aoth_session_t *s = w->s;
  if (!w->has_result && !w->has_ended && !w->is_late && !w->is_broken &&
      !w->is_stopped) /* it is ending by itself: as what? */
    w->has_ended = waitpid(w->pid, &w->how, 0) == w->pid;
  kill(-w->pid, SIGKILL);
  if (!w->has_ended) kill(w->pid, SIGKILL); /* should it have no group of its own */
  if (s->past_worker > 0) waitpid(s->past_worker, NULL, 0);
  s->past_worker = w->has_ended ? 0 : w->pid;
}

static void await(waiting_t *w) {
  const double timeout = aoth_stage_timeout(w->s, w->stage);
  attend(w, timeout > 0 ? aoth_now_ns() + (uint64_t)(timeout * 1e9) : UINT64_MAX);
  struct pollfd p = {.fd = w->frames, .events = POLLIN};
  if (!w->has_result && !w->is_broken && !w->has_ended && !w->is_stopped && !w->letter.is_written &&
      poll(&p, 1, 0) == 0) {
    w->is_late = 1;
    kill(w->pid, SIGTERM); /* it says where it is, if it can */
    attend(w, aoth_now_ns() + LAST_WORDS_MS * UINT64_C(1000000));
  }
  end_it(w);
}

/* The unit of the letter stands in the stage's place: a backend that was asked, say. */
static aot_status_t tell_letter(aoth_session_t *s, const aoth_stage_t *stage, const letter_t *letter) {
  const aoth_unit_t *called = letter->unit[0] ? aoth_registry_find(s->registry, letter->unit) : NULL;
  aoth_stage_t other = *stage;
  if (!called) return aoth_tell_crash(s, stage, &letter->crash, letter->doing);
  other.use = other.name = called->id;
  other.unit = called;
  return aoth_tell_crash(s, &other, &letter->crash, letter->doing);
}

/* It did not hand over all. */
static aot_status_t tell_end(aoth_session_t *s, const aoth_stage_t *stage, const waiting_t *w) {
  const char *doing = w->letter.doing[0] ? w->letter.doing : "its run";
  s->status = AOTH_E_PLUGIN;
  s->last_node = w->letter.is_written ? w->letter.last_node : s->ctx.last_node;
  s->outcome = AOTH_CALL_BROKE;
  if (w->is_late)
    return aoth_misbehaved(s, stage, "was not done after %g seconds, its timeout, and was stopped during %s",
                           aoth_stage_timeout(s, stage), doing);
  if (w->is_stopped)
    return aoth_misbehaved(s, stage, "stopped its process during %s, by %s", doing,
                           WSTOPSIG(w->how) == SIGSTOP ? "SIGSTOP" : "a signal");
  if (w->is_broken)
    return aoth_misbehaved(s, stage, "damaged the memory of its process: what came from there are no edits");
  s->outcome = AOTH_CALL_CRASHED;
  s->crash = w->letter.crash;
  if (w->letter.is_written) return tell_letter(s, stage, &w->letter);
  if (WIFSIGNALED(w->how)) s->crash.signal = WTERMSIG(w->how);
  if (WIFSIGNALED(w->how)) return aoth_tell_crash(s, stage, &s->crash, doing);
  return aoth_misbehaved(s, stage, "ended the process during %s, with status %d: it called _exit()", doing,
                         WEXITSTATUS(w->how));
}

static aot_status_t conclude(waiting_t *w) {
  const aot_status_t status = w->has_result ? w->status : tell_end(w->s, w->stage, w);
  for (; w->n_open; w->n_open--) aoth_journal_undo(w->s->now.prog);
  return status;
}

/* ---- starting it ---- */

static aot_status_t no_worker(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "worker.start",
                   "no process for stage %s could be started: %s", stage->name, strerror(errno));
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
  aoth_worker_t worker = {.s = s, .stage = stage, .why_not = s->cache_why_not, .known = what_both_have(s, &types)};
  waiting_t w = {.s = s, .stage = stage, .known = worker.known, .pid = -1};
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
  free(w.buffer);
  return status;
}
