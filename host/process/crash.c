/* Handlers are the process's, and so is what they reach: that is why this file has state of its own. The call that a
 * thread is in belongs to the thread; only while crashes are contained is it counted, for a crash in a thread that has
 * no frame.
 *
 * The handlers call only what POSIX allows in one. They run on an alternate signal stack with a guard page below
 * it. */
#define _GNU_SOURCE /* registers of a context, process_vm_readv */
#include <process/crash.h>

#include <process/code_of.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)128 << 10)
#define GUARD_SIZE ((size_t)4096)
#define PATIENCE 10 /* seconds for `tell` */
#define STATUS 3
#define TICK_MS 1000 /* between two looks at the watched thread */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define N_SIGNALS (sizeof signals / sizeof *signals)

/* Of this thread. initial-exec: reading it in a handler must not allocate. */
#define THREAD_STATE static _Thread_local __attribute__((tls_model("initial-exec")))
THREAD_STATE aoth_crash_frame_t *innermost;
THREAD_STATE const char *telling;   /* the crash that this thread reports */
THREAD_STATE sigjmp_buf *unwinding; /* where a fault leads that comes of reading a damaged stack */

typedef struct report_slot {
  aoth_crash_frame_t *frame;
  aoth_crash_t crash;
} crash_report_t;

static struct containment {
  pid_t owner;
  crash_report_t report_slot;     /* from the thread that crashed to the one that reports */
  atomic_int is_written, is_over; /* 1: no letter will come */
  int letters[2];                 /* a pipe: that there is one. Anybody can write to it */
  pthread_t teller;
  sem_t is_reading; /* raised by the teller: from then on it holds no lock that a fork could copy */
  struct sigaction before[N_SIGNALS];
  stack_t stack_before;
  char *stack; /* NULL: the thread had one that is large enough */
  void (*stray)(void *self, const aoth_crash_t *crash, const char *doing); /* of a worker; NULL: this is none */
  void *self;
} now;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_asked;
static atomic_int is_contained;
static atomic_flag is_crashed = ATOMIC_FLAG_INIT;
static _Atomic(const char *) inside; /* what the last thread to enter a frame does */
static aoth_last_calls_t own_calls;
static aoth_last_calls_t *calls = &own_calls;
static pthread_mutex_t alive; /* robust: held by the watched thread */
static atomic_int is_watched;

const char *aoth_signal_name(int signal) {
  switch (signal) {
    case 0: return "exit";
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGKILL: return "SIGKILL";
    default: return "a signal";
  }
}

const char *aoth_signal_text(int signal) {
  switch (signal) {
    case SIGSEGV: return "it used an address that is not its own, or its stack ran over";
    case SIGBUS: return "it read or wrote beyond the end of a mapped file, or a misaligned address";
    case SIGFPE: return "it divided an integer by zero, or the like";
    case SIGILL: return "it ran an instruction that this processor does not have";
    case SIGABRT: return "it called abort(): an assertion, or damage that the C library found";
    case SIGKILL: return "it was killed: memory may have run out";
    default: return "";
  }
}

/* ---- frames ---- */

void aoth_crash_enter(aoth_crash_frame_t *frame) {
  frame->outer = innermost;
  const int is_noted = atomic_load(&is_contained);
  frame->is_counted = !innermost && is_noted;
  if (is_noted) aoth_last_calls_note(calls, frame->what, frame->is_own);
  if (frame->is_counted) {
    atomic_fetch_add(&calls->n_inside, 1);
    atomic_store(&inside, frame->what);
  }
  innermost = frame;
}

void aoth_crash_leave(const aoth_crash_frame_t *frame) {
  innermost = frame->outer;
  if (frame->is_counted) {
    atomic_store(&inside, NULL);
    atomic_fetch_sub(&calls->n_inside, 1);
  }
}

/* ---- the end of a process ---- */

static void put(const char *text) {
  const ssize_t done = write(STDERR_FILENO, text, strlen(text));
  (void)done; /* nothing is left to be done about it */
}

static _Noreturn void give_up(const char *why, const char *what) {
  put(why);
  put(what ? what : "a plugin call");
  put("; giving up\n");
  _exit(STATUS);
}

static _Noreturn void last_words(int signal, const char *why, const char *what) {
  telling = why; /* so that this way out is treated as without an owner */
  put("aothost: ");
  put(aoth_signal_name(signal));
  give_up(why, what);
}

/* In a thread that has no frame, while another one is inside of one. */
static _Noreturn void last_words_of_thread(const aoth_crash_t *crash) {
  const int is_one = atomic_load(&calls->n_inside) == 1;
  uint64_t stack[1 + AOTH_CRASH_CALLERS];
  aoth_code_of_t code;
  stack[0] = crash->pc;
  memcpy(stack + 1, crash->callers, crash->n_callers * sizeof *stack);
  aoth_code_of(stack, 1 + crash->n_callers, &code);
  telling = "a thread";
  put("aothost: ");
  put(aoth_signal_name(crash->signal));
  put(" in ");
  put(code.outermost[0] ? "a thread of " : is_one ? "another thread" : "a thread that is not the host's");
  put(code.outermost);
  if (strcmp(code.innermost, code.outermost) != 0) put(", in code of ");
  if (strcmp(code.innermost, code.outermost) != 0) put(code.innermost);
  give_up(" during ", is_one ? atomic_load(&inside) : NULL);
}

/* In a worker code that waits for it reports, however little there is to be reported. */
static void leave_to_parent(const aoth_crash_t *crash) {
  if (!now.stray) return;
  if (telling) _exit(STATUS);
  telling = "its run"; /* so that this way out is treated as without an owner */
  now.stray(now.self, crash,
            atomic_load(&calls->n_inside) ? "its run, in a thread of its own" : "what follows its run");
}

/* Inside of a frame: hands the story over, and waits for the end. */
static _Noreturn void stand_still(const aoth_crash_t *crash) {
  static const char word = 1;
  if (atomic_flag_test_and_set(&is_crashed))
    for (;;) pause(); /* another thread was first */
  now.report_slot = (crash_report_t){innermost, *crash};
  atomic_store(&now.is_written, 1);
  const ssize_t done = write(now.letters[1], &word, 1);
  (void)done; /* the other thread looks by itself, too */
  for (int second = 0; second < PATIENCE; second++) sleep(1);
  last_words(crash->signal, " during ", now.report_slot.frame->what);
}

/* It follows calls of plugins, and may be damage that one of them has left. */
static void put_suspects(int signal, const aoth_crash_t *crash) {
  uint64_t stack[1 + AOTH_CRASH_CALLERS];
  aoth_code_of_t code;
  if (!calls->last[0] || getpid() != now.owner) return;
  stack[0] = crash->pc;
  memcpy(stack + 1, crash->callers, crash->n_callers * sizeof *stack);
  aoth_code_of(stack, 1 + crash->n_callers, &code);
  put("aothost: ");
  put(aoth_signal_name(signal));
  put(" outside of every call of a plugin");
  if (code.innermost[0]) put(", in code of ");
  put(code.innermost);
  aoth_last_calls_put(calls, STDERR_FILENO);
  put("\n");
}

static void as_before(int signal, siginfo_t *info, void *context, const aoth_crash_t *crash) {
  size_t i = 0;
  while (signals[i] != signal) i++;
  const struct sigaction *before = &now.before[i];
  if (before->sa_flags & SA_SIGINFO) {
    before->sa_sigaction(signal, info, context);
  } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
    before->sa_handler(signal);
  } else if (before->sa_handler == SIG_DFL ||
             info->si_code > 0) { /* a fault that is ignored would come again for ever */
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    put_suspects(signal, crash);
    sigaction(signal, &plain, NULL);
    raise(signal);
  }
}

#define N_OWN_FRAMES 8 /* of the handler, and of the kernel's way into it */

/* Who called what is at `from`: nothing where the stack is too damaged to be reported. */
static void note_callers(aoth_crash_t *crash, uint64_t from) {
  void *at[AOTH_CRASH_CALLERS + N_OWN_FRAMES];
  sigset_t faults, before;
  sigjmp_buf back;
  volatile int n = 0;
  sigemptyset(&faults);
  for (size_t i = 0; i < N_SIGNALS; i++) sigaddset(&faults, signals[i]);
  pthread_sigmask(SIG_UNBLOCK, &faults, &before);
  if (sigsetjmp(back, 0) == 0) {
    unwinding = &back;
    n = backtrace(at, AOTH_CRASH_CALLERS + N_OWN_FRAMES);
  }
  unwinding = NULL;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  int k = 0;
  while (k < n && (uint64_t)(uintptr_t)at[k] != from) k++;
  for (k++; k < n && crash->n_callers < AOTH_CRASH_CALLERS; k++)
    crash->callers[crash->n_callers++] = (uint64_t)(uintptr_t)at[k];
}

#if defined(__x86_64__)
/* A call of what is no code has no frame: its return address is the last thing that was put on the stack. */
static void note_last_call(aoth_crash_t *crash, uint64_t stack) {
  const struct iovec to = {crash->callers, sizeof *crash->callers},
                     from = {(void *)(uintptr_t)stack, sizeof *crash->callers};
  crash->n_callers = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof *crash->callers;
}

static void note_context(aoth_crash_t *crash, const ucontext_t *context) {
  const greg_t *r = context->uc_mcontext.gregs;
  crash->pc = (uint64_t)r[REG_RIP];
  note_callers(crash, crash->pc);
  if (!crash->n_callers) note_last_call(crash, (uint64_t)r[REG_RSP]);
}
#elif defined(__aarch64__)
static void note_context(aoth_crash_t *crash, const ucontext_t *context) {
  crash->pc = context->uc_mcontext.pc;
  note_callers(crash, crash->pc);
  if (!crash->n_callers) {
    crash->callers[0] = context->uc_mcontext.regs[30]; /* the link register has it */
    crash->n_callers = 1;
  }
}
#else
static void note_context(aoth_crash_t *crash, const ucontext_t *context) { (void)crash, (void)context; }
#endif

static void on_signal(int signal, siginfo_t *info, void *context) {
  const int by_kernel = info->si_code > 0; /* not by raise() or kill() */
  const int has_address = by_kernel && (signal == SIGSEGV || signal == SIGBUS);
  aoth_crash_t crash = {.signal = signal, .address = has_address ? (uint64_t)(uintptr_t)info->si_addr : 0};
  if (unwinding) siglongjmp(*unwinding, 1);
  note_context(&crash, context);
  const int error = errno;
  if (getpid() == now.owner) {
    if (innermost && !telling) stand_still(&crash);
    leave_to_parent(&crash);
    if (telling) last_words(signal, " while telling of a crash during ", telling);
    if (atomic_load(&calls->n_inside)) last_words_of_thread(&crash);
  }
  as_before(signal, info, context, &crash);
  errno = error;
}

void aoth_crash_leaving(void) {
  aoth_crash_t exits = {0};
  if (!atomic_load(&is_contained) || getpid() != now.owner || telling) return;
  exits.pc = (uint64_t)(uintptr_t)__builtin_return_address(0);
  note_callers(&exits, exits.pc);
  if (innermost) stand_still(&exits);
  if (atomic_load(&calls->n_inside)) leave_to_parent(&exits);
  if (atomic_load(&calls->n_inside)) last_words_of_thread(&exits);
}

void aoth_crash_thread_leaving(void) {
  aoth_crash_t ends = {.ends_thread = 1};
  if (!innermost || !atomic_load(&is_contained) || getpid() != now.owner || telling) return;
  ends.pc = (uint64_t)(uintptr_t)__builtin_return_address(0);
  note_callers(&ends, ends.pc);
  stand_still(&ends);
}

void aoth_crash_share(aoth_last_calls_t *shared) {
  for (uint32_t i = atomic_load(&calls->n_suspects); i > 0; i--)
    aoth_last_calls_note(shared, calls->suspects[i - 1], 0);
  if (calls->last[0]) aoth_last_calls_note(shared, calls->last, 1);
  atomic_store(&shared->n_inside, atomic_load(&calls->n_inside));
  calls = shared;
}

/* ---- the thread that reports ---- */

aoth_sink_t *aoth_crash_sink(void) {
  const int fd = dup(STDERR_FILENO);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  return out ? aoth_sink_create(out) : NULL;
}

/* The thread that calls plugins has ended, with whatever it was in. */
static _Noreturn void tell_thread_end(void) {
  const aoth_crash_t ends = {.ends_thread = 1};
  const char *what = atomic_load(&inside);
  leave_to_parent(&ends);
  telling = "the end of a thread";
  put("aothost: the thread that calls plugins was ended, by pthread_exit() or a system call,");
  give_up(" during ", what);
}

static void look_at_watched(void) {
  if (!atomic_load(&is_watched)) return;
  const int held = pthread_mutex_trylock(&alive);
  if (held == EOWNERDEAD) tell_thread_end();
  if (held == 0) pthread_mutex_unlock(&alive);
}

static void nap(void) {
  const struct timespec tick = {0, TICK_MS * 100000L};
  nanosleep(&tick, NULL);
  look_at_watched();
}

/* 0: none will come: the end of the containment. The pipe may be closed or written to by whomever, which says
 * nothing. */
static int await_letter(void) {
  while (!atomic_load(&now.is_written) && !atomic_load(&now.is_over)) {
    struct pollfd p = {.fd = now.letters[0], .events = POLLIN};
    char word;
    const int n = poll(&p, 1, TICK_MS);
    if (n > 0 && (!(p.revents & POLLIN) || read(now.letters[0], &word, 1) <= 0) && !atomic_load(&now.is_over))
      nap(); /* closed */
    if (n <= 0) look_at_watched();
  }
  return atomic_load(&now.is_written);
}

static void *teller(void *arg) {
  const crash_report_t *report_slot = &now.report_slot;
  (void)arg;
  sem_post(&now.is_reading);
  if (!await_letter()) return NULL;
  telling = report_slot->frame->what;
  report_slot->frame->tell(report_slot->frame->self, &report_slot->crash);
  if (ftrylockfile(stdout) == 0) fflush(stdout); /* unless it died while printing */
  _exit(STATUS);
}

/* It takes no signal that is not its own fault. */
static int start_teller(void) {
  sigset_t all, before;
  if (pipe(now.letters) != 0) return 0;
  for (int i = 0; i < 2; i++) fcntl(now.letters[i], F_SETFD, FD_CLOEXEC);
  now.owner = getpid();
  atomic_store(&now.is_written, 0);
  atomic_store(&now.is_over, 0);
  sem_init(&now.is_reading, 0, 0);
  sigfillset(&all);
  for (size_t i = 0; i < N_SIGNALS; i++) sigdelset(&all, signals[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&now.teller, NULL, teller, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    for (int i = 0; i < 2; i++) close(now.letters[i]);
    return 0;
  }
  while (sem_wait(&now.is_reading) != 0) {} /* only a signal can wake it before */
  return 1;
}

static void end_teller(void) {
  atomic_store(&now.is_over, 1);
  close(now.letters[1]);
  pthread_join(now.teller, NULL);
  close(now.letters[0]);
}

/* ---- beginning and ending ---- */

static void give_stack(void) {
  now.stack = NULL;
  if (sigaltstack(NULL, &now.stack_before) != 0) return;
  if (!(now.stack_before.ss_flags & SS_DISABLE) && now.stack_before.ss_size >= STACK_SIZE) return;
  char *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const stack_t stack = {.ss_sp = memory + GUARD_SIZE, .ss_size = STACK_SIZE};
  mprotect(memory, GUARD_SIZE, PROT_NONE);
  if (sigaltstack(&stack, NULL) == 0) now.stack = memory;
  else munmap(memory, GUARD_SIZE + STACK_SIZE);
}

/* On another thread than the one that has it, it stays. */
static void take_stack(void) {
  stack_t current;
  if (!now.stack || sigaltstack(NULL, &current) != 0 || current.ss_sp != now.stack + GUARD_SIZE) return;
  if (sigaltstack(&now.stack_before, NULL) == 0) munmap(now.stack, GUARD_SIZE + STACK_SIZE);
}

static void set_handlers(void) {
  void *here[1];
  backtrace(here, 1); /* the first one loads a library, which no handler may */
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &action, &now.before[i]);
}

static void reset_handlers(void) {
  for (size_t i = 0; i < N_SIGNALS; i++) {
    struct sigaction current;
    if (sigaction(signals[i], NULL, &current) == 0 && (current.sa_flags & SA_SIGINFO) &&
        current.sa_sigaction == on_signal)
      sigaction(signals[i], &now.before[i], NULL);
  }
}

static void watch_exits(void) { atexit(aoth_crash_leaving); }

int aoth_contain_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_mutex_lock(&asking);
  const int ok = n_asked > 0 || start_teller();
  if (ok && n_asked++ == 0) {
    give_stack();
    set_handlers();
    atomic_store(&is_contained, 1);
    pthread_once(&once, watch_exits);
  }
  pthread_mutex_unlock(&asking);
  return ok;
}

void aoth_contain_watch(void) {
  pthread_mutexattr_t robust;
  if (pthread_mutexattr_init(&robust) != 0) return;
  if (pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST) == 0 && pthread_mutex_init(&alive, &robust) == 0)
    atomic_store(&is_watched, pthread_mutex_lock(&alive) == 0);
  pthread_mutexattr_destroy(&robust);
}

void aoth_contain_end(void) {
  pthread_mutex_lock(&asking);
  if (n_asked > 0 && --n_asked == 0) {
    if (atomic_exchange(&is_watched, 0)) pthread_mutex_unlock(&alive);
    atomic_store(&is_contained, 0);
    reset_handlers();
    take_stack();
    end_teller();
  }
  pthread_mutex_unlock(&asking);
}

/* The process that it was forked from continues writing to the other one. */
static void use_own_calls(void) {
  aoth_last_calls_t *before = calls;
  atomic_flag_clear(&own_calls.is_writing);
  if (before != &own_calls) aoth_crash_share(&own_calls);
  atomic_store(&own_calls.n_inside, innermost != NULL);
  calls = &own_calls;
}

int aoth_contain_after_fork(void) {
  use_own_calls();
  if (n_asked == 0) return 1;
  for (int i = 0; i < 2; i++) close(now.letters[i]);
  if (atomic_exchange(&is_watched, 0)) aoth_contain_watch();
  return start_teller();
}

static void on_stop(int signal) {
  const aoth_crash_t stopped = {.signal = signal};
  if (getpid() == now.owner && innermost && !telling) stand_still(&stopped);
}

int aoth_contain_in_worker(void (*stray)(void *self, const aoth_crash_t *crash, const char *doing), void *self) {
  struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_ONSTACK};
  sigemptyset(&stop.sa_mask);
  now.stray = stray;
  now.self = self;
  give_stack();
  sigaction(SIGTERM, &stop, NULL);
  atomic_store(&is_watched, 1); /* again, in this process */
  if (n_asked > 0) return aoth_contain_after_fork();
  use_own_calls();
  aoth_contain_watch();
  n_asked = 1; /* the lock may have been another thread's, which is not here */
  set_handlers();
  atomic_store(&is_contained, 1);
  atexit(aoth_crash_leaving);
  return start_teller();
}
