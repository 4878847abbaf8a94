/* One a process: signals and exit statuses are the process's. */
#define _GNU_SOURCE /* syscall, close_range */
#include <trainer/supervisor.h>

#include <dirent.h>
#include <base/exit_status.h>
#include <process/crash.h>
#include <process/environment.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 2   /* this one, and the one that reports crashes */
#define LONGEST_END 30   /* seconds that exit handlers and destructors have */
#define WAIT_MS 30       /* for a signal of the whole process group to be seen by the other process */
#define FIRST_OTHER_FD 3 /* after the standard streams */

static pid_t command; /* may still be supervised; 0: not (any more) */
static int is_command;
static aoth_last_calls_t *calls; /* of both processes; NULL: this one is not supervised */

void aoth_supervise_command(void) {
  command = getpid();
  is_command = 1;
}

int aoth_is_command(void) { return is_command; }

void aoth_supervise_nothing(void) {
  command = 0;
  is_command = 0;
}

void aoth_supervised_end(int code) {
  if (!calls) return;
  atomic_store(&calls->end, 1 + code);
  signal(SIGALRM, SIG_DFL);
  alarm(LONGEST_END);
}

void aoth_supervised_signal(void) {
  if (calls) atomic_fetch_add(&calls->n_signals, 1);
}

/* ---- whether ---- */

static int is_traced(void) {
  char line[128];
  int tracer = 0;
  FILE *f = fopen("/proc/self/status", "re");
  while (f && !tracer && fgets(line, sizeof line, f)) sscanf(line, "TracerPid: %d", &tracer);
  if (f) fclose(f);
  return tracer != 0;
}

static unsigned n_threads(void) {
  unsigned n = 0;
  DIR *dir = opendir("/proc/self/task");
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;) n += d->d_name[0] != '.';
  if (dir) closedir(dir);
  return n;
}

/* A profiler of GPUs that was injected does not follow a fork. */
static int is_profiled(void) {
  return aoth_env("CUDA_INJECTION64_PATH") || aoth_env("NVTX_INJECTION64_PATH") ||
         aoth_env("NSYS_PROFILING_SESSION_ID");
}

static int is_wanted(void) {
  const char *asked = aoth_env("AOT_SUPERVISE");
  return !(asked && strcmp(asked, "0") == 0) && n_threads() <= MOST_THREADS && !is_traced() && !is_profiled();
}

/* ---- the one that waits ---- */

static _Noreturn void end(int code) {
  for (;;) syscall(SYS_exit_group, code); /* exit handlers are the other process's */
}

static _Noreturn void end_by(int signal_number) {
  const struct rlimit none = {0, 0};
  sigset_t one;
  setrlimit(RLIMIT_CORE, &none); /* the other one has left it */
  signal(signal_number, SIG_DFL);
  sigemptyset(&one);
  sigaddset(&one, signal_number);
  raise(signal_number);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  end(128 + signal_number);
}

static void tell(const char *what, int number, const char *rest) {
  const int is_inside = atomic_load(&calls->n_inside) > 0;
  if (is_inside)
    dprintf(STDERR_FILENO, "aothost: contract violation by a plugin: %s %d%s during %s", what, number, rest,
            calls->last);
  else
    dprintf(STDERR_FILENO, "aothost: contract violation by a plugin: %s %d%s outside of every call", what, number,
            rest);
  if (!is_inside) aoth_last_calls_put(calls, STDERR_FILENO);
  dprintf(STDERR_FILENO, "\n");
}

/* By a user or the system, and not by what the process did. */
static int is_sent(int signal_number) {
  return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP || signal_number == SIGQUIT ||
         signal_number == SIGKILL || signal_number == SIGXCPU;
}

static _Noreturn void end_as(int how) {
  const int decided = atomic_load(&calls->end) - 1;
  if (WIFSIGNALED(how)) {
    const int s = WTERMSIG(how);
    if (s == SIGKILL && atomic_load(&calls->n_inside))
      tell("the process was killed by signal", s, "; memory may have run out");
    if (is_sent(s)) end_by(s);
    if (decided >= 0) tell("an exit handler or destructor ended the process by signal", s, "");
    else if (calls->last[0]) tell("the process was ended by signal", s, "");
    else end_by(s);
    end(decided > 0 ? decided : AOTH_EXIT_PLUGIN);
  }
  const int status = WEXITSTATUS(how);
  if (decided < 0 && status != AOTH_EXIT_PLUGIN) {
    tell("the process was ended with status", status, ", not by the host,");
    end(AOTH_EXIT_PLUGIN);
  }
  if (decided > 0 && status == 0) {
    tell("an exit handler ended the process with status", status, "");
    end(decided);
  }
  end(status);
}

static uint32_t n_known; /* signals that the other one has seen, or will see as they were handed on */

static int has_seen_more(void) {
  const struct timespec tick = {0, 5000000};
  for (int ms = 0; ms < WAIT_MS; ms += 5) {
    if ((int32_t)(atomic_load(&calls->n_signals) - n_known) > 0) return 1;
    nanosleep(&tick, NULL);
  }
  return 0;
}

/* What a terminal sends, or code that means the process group, has reached the other one already. */
static void hand_on(pid_t other, const siginfo_t *info) {
  const int is_counted = info->si_signo == SIGINT || info->si_signo == SIGTERM || info->si_signo == SIGHUP;
  if (info->si_code > 0) return;
  if (is_counted && has_seen_more()) {
    n_known = atomic_load(&calls->n_signals);
    return;
  }
  if (is_counted) n_known++;
  kill(other, info->si_signo);
}

static void look_at_end(pid_t other) {
  int how;
  if (waitpid(other, &how, WNOHANG | WUNTRACED) != other) return;
  if (!WIFSTOPPED(how)) end_as(how);
  raise(SIGSTOP); /* for the shell that has the job, until it continues it */
  kill(other, SIGCONT);
}

static _Noreturn void wait_for(pid_t other, const sigset_t *signals) {
  siginfo_t info;
  close_range(FIRST_OTHER_FD, ~0U, 0); /* locks and pipes are the other one's */
  for (;;) {
    look_at_end(other);
    if (sigwaitinfo(signals, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) hand_on(other, &info);
  }
}

void aoth_supervise(void) {
  static const int left[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  sigset_t signals, before;
  if (!command || command != getpid()) return;
  command = 0;
  if (!is_wanted()) return;
  aoth_last_calls_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return;
  fflush(NULL);
  sigfillset(&signals);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) sigdelset(&signals, left[i]);
  pthread_sigmask(SIG_SETMASK, &signals, &before);
  const pid_t parent = getpid(), child = fork();
  if (child != 0) {
    if (child > 0) calls = shared;
    if (child > 0) wait_for(child, &signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* no process to be had */
    munmap(shared, sizeof *shared);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) end_by(SIGKILL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!aoth_contain_after_fork()) end(AOTH_EXIT_PLUGIN);
  calls = shared;
  aoth_crash_share(shared);
}
