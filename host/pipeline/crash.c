/* siglongjmp out of a handler on an alternate stack, so that an overflown stack is contained as well.
 *
 * Handlers are the process's, so their state is global here: the guard of each thread, and one flag that says that a crash
 * is being cleaned up after. The handler itself calls only what is safe in a signal handler. */
#include <pipeline/crash.h>

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)128 << 10)
#define PATIENCE 30 /* seconds for the clean-up */

typedef struct guard {
  sigjmp_buf back;
  struct guard *outer;
  aoth_crash_t crash;
} guard_t;

static _Thread_local guard_t *innermost;
static volatile sig_atomic_t cleaning;
static const char *volatile activity; /* what the guarded thread does: for last words */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define N_SIGNALS (sizeof signals / sizeof *signals)

const char *aoth_signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGALRM: return "no answer";
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
    default: return "";
  }
}

static void put(const char *text) {
  const ssize_t done = write(STDERR_FILENO, text, strlen(text));
  (void)done; /* nothing is left to be done about it */
}

static void last_words(int signal, const char *why) {
  const char *what = activity;
  put("aothost: ");
  put(aoth_signal_name(signal));
  put(why);
  put(what ? what : "a plugin call");
  put("; giving up\n");
  _exit(3);
}

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)context;
  guard_t *g = innermost;
  if (cleaning) last_words(signal, " while cleaning up after ");
  if (!g && activity) last_words(signal, " in another thread during ");
  if (!g) { /* our own: let it be what it is */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    raise(signal);
    return;
  }
  cleaning = 1;
  g->crash.signal = signal;
  const int by_kernel = info->si_code > 0; /* not by raise() or kill() */
  g->crash.address = by_kernel && (signal == SIGSEGV || signal == SIGBUS) ? (uint64_t)(uintptr_t)info->si_addr : 0;
  siglongjmp(g->back, 1);
}

static void on_alarm(int signal) {
  if (cleaning) last_words(signal, " for 30 seconds while cleaning up after ");
}

int aoth_crash_install(void) {
  /* The stack lives as long as the process: a handler may need it at any time. Under it lies a page nobody may touch. */
  stack_t old, stack = {.ss_size = STACK_SIZE};
  if (sigaltstack(NULL, &old) == 0 && ((old.ss_flags & SS_DISABLE) || old.ss_size < STACK_SIZE)) {
    char *memory = mmap(NULL, STACK_SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    mprotect(memory, 4096, PROT_NONE);
    stack.ss_sp = memory + 4096;
    if (sigaltstack(&stack, NULL) != 0) return 0;
  }
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  sigemptyset(&alarm_action.sa_mask);
  for (size_t i = 0; i < N_SIGNALS; i++)
    if (sigaction(signals[i], &action, NULL) != 0) return 0;
  return sigaction(SIGALRM, &alarm_action, NULL) == 0;
}

int aoth_guard(void (*fn)(void *arg), void *arg, const char *what, aoth_crash_t *out) {
  guard_t g;
  g.outer = innermost;
  const char *outer_activity = activity;
  if (sigsetjmp(g.back, 1)) {
    innermost = g.outer;
    activity = what; /* for last words: the clean-up belongs to this call */
    alarm(PATIENCE);
    *out = g.crash;
    return 0;
  }
  innermost = &g;
  activity = what;
  fn(arg);
  innermost = g.outer;
  activity = outer_activity;
  return 1;
}

void aoth_crash_done(void) {
  alarm(0);
  cleaning = 0;
  activity = NULL;
}
