/* Crashes of plugins: named before the process ends.
 *
 *     aoth_crash_frame_t f = {.what = "run of unit x", .report = report, .self = call};
 *     aoth_crash_enter(&f);
 *     fn(arg);                                    the plugin
 *     aoth_crash_leave(&f);
 *
 * Frames belong to their thread and cost nothing; by themselves they do nothing. Crashes are contained between
 * aoth_contain_begin() and aoth_contain_end(), which the command calls, and the library only with AOTHOST_CONTAIN:
 *
 *     a thread inside of a frame meets SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, or leaves the process (exit)
 *       -> it never continues. It stands still where it is, with whatever locks it holds (those of malloc or dlopen,
 *       say);
 *          another thread, there since the beginning, calls `tell` and ends the process with status 3
 *     `tell` crashes too, or is not done in 10 seconds (it needs a lock that died with the call)
 *       -> one line, written by the signal handler itself, and status 3
 *     a thread that a plugin started crashes, while a frame is open in another
 *       -> the same line, which names the file that started the thread, by its outermost caller
 *     a crash outside of every frame, which may be damage that a call has left
 *       -> a line with the plugins that were called last, then as it would have been without
 *     the thread that aoth_contain_watch() watches ends (pthread_exit, or the bare system call), within a second
 *       -> the same line
 *     anything else, and what a forked child does before it begins its own
 *       -> as it would have been without: the handler that was there before
 *
 * Nothing is jumped out of, so nothing continues in a process whose memory may be damaged. */
#ifndef AOTH_CRASH_H
#define AOTH_CRASH_H

#include <base/sink.h>
#include <process/last_calls.h>

#define AOTH_CRASH_CALLERS 64

typedef struct aoth_crash {
  int signal;      /* 0: the process was to be left, */
  int ends_thread; /* or, 1, only the thread that the host called in */
  uint32_t n_callers, reserved;
  uint64_t address;                     /* that the instruction wanted; SIGSEGV and SIGBUS */
  uint64_t pc;                          /* of the instruction; 0: not known */
  uint64_t callers[AOTH_CRASH_CALLERS]; /* n_callers return addresses, the innermost first */
} aoth_crash_t;

typedef struct aoth_crash_frame {
  const char *what;                                    /* "run of unit x, plugin p": for the line */
  int is_own;                                          /* 1: the plugin is the project's, and no first suspect */
  void (*tell)(void *self, const aoth_crash_t *crash); /* runs on a thread of its own; the frame's own stands still */
  void *self;
  struct aoth_crash_frame *outer;
  int is_counted;
} aoth_crash_frame_t;

void aoth_crash_enter(aoth_crash_frame_t *frame);
void aoth_crash_leave(const aoth_crash_frame_t *frame);

/* May be nested, from any thread; the last end puts the handlers back that were there before, where they are still
 * ours. A stack that ran over is contained on the thread that began first. 0: it could not be set up. */
int aoth_contain_begin(void);
void aoth_contain_end(void);
/* In a child made by fork, which has no other threads: contains from now on what its parent contained. */
int aoth_contain_after_fork(void);
/* In a child that runs one stage (worker.h): contains whatever the parent did. SIGTERM stops it where it is, and is
 * reported as a crash is. A crash outside of every frame, or in a thread without one, is reported by `stray`, in the
 * signal handler, instead of the line; it does not come back. */
int aoth_contain_in_worker(void (*stray)(void *self, const aoth_crash_t *crash, const char *doing), void *self);
/* This thread is about to leave the process. Inside of a frame it does not come back; outside it does nothing. */
void aoth_crash_leaving(void);

/* This thread is about to end itself, and not the process. The same. */
void aoth_crash_thread_leaving(void);
/* The thread that calls this is not to end before aoth_contain_end, which it calls itself. */
void aoth_contain_watch(void);
/* From now on the calls of this process are noted there. Calls already noted go along. */
void aoth_crash_share(aoth_last_calls_t *calls);

/* For `tell`: prints to the standard error through a stream that no thread standing still can hold. */
aoth_sink_t *aoth_crash_sink(void);

const char *aoth_signal_name(int signal); /* "SIGSEGV" */
const char *aoth_signal_text(int signal); /* what it means, as the end of a sentence */

#endif
