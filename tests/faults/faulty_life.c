/* A plugin with every fault of life_faults.def: FAULTY_LIFE says which one. Its pass, faulty-life, commits it in a
 * call, and then takes a while, for what comes later. */
#define _GNU_SOURCE /* syscall */
#include <aot/describe.h>
#include <aot/float_env.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ID "faulty-life"
#define HELP "commits a fault of life_faults.def"

static const char *const names[] = {
#define LIFE_FAULT(name, status, text) name,
#include "life_faults.def"
#undef LIFE_FAULT
    "late", /* of the test of signals */
};

/* A name that the list does not have is a mistake of this file. */
static int is(const char *name) {
  const char *wanted = getenv("FAULTY_LIFE");
  size_t i = 0;
  while (i < sizeof names / sizeof *names && strcmp(names[i], name) != 0) i++;
  if (i == sizeof names / sizeof *names) abort();
  return wanted && strcmp(wanted, name) == 0;
}

static void *volatile nowhere;
static volatile int zero;

static void pause_ms(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {}
}

static void exit_at_once(void) { syscall(SYS_exit_group, 0); }
static void crash(void) { *((volatile int *)nowhere + 16) = 1; }
static void exit_zero(void) { exit(0); }
static void never_end(void) {
  while (!zero) pause_ms(1000);
}
static void on_signal(int signal) { (void)signal; }

typedef struct later {
  void (*what)(void);
  long ms;
} later_t;

static void *be_later(void *arg) {
  const later_t *l = arg;
  pause_ms(l->ms);
  l->what();
  return NULL;
}

static void later(void (*what)(void), long ms) {
  static later_t one;
  pthread_t t;
  one = (later_t){what, ms};
  pthread_create(&t, NULL, be_later, &one);
}

/* As -ffast-math does it. */
static void flush_denormals(void) {
  aot_float_env_t env = aot_float_env();
  env.control |= AOT_FLOAT_DENORMALS;
  aot_float_env_restore(env);
}

static void __attribute__((constructor)) begin(void) {
  if (is("load-loop")) never_end();
  if (is("load-stop")) raise(SIGSTOP);
  if (is("load-fork")) fork();
  if (is("load-exit")) exit_zero();
  if (is("load-exit-at-once")) exit_at_once();
  if (is("load-thread-exit")) later(exit_zero, 0);
  if (is("load-late-exit")) later(exit_zero, 500);
  if (is("load-late-exit-at-once")) later(exit_at_once, 500);
  if (is("load-late-crash")) later(crash, 500);
  if (is("load-atexit")) atexit(exit_at_once);
  if (is("load-atexit-loop")) atexit(never_end);
  if (is("load-handler")) signal(SIGSEGV, on_signal);
  if (is("load-folder") && chdir("/") != 0) abort();
  if (is("load-mask")) umask(0);
  if (is("load-environment")) setenv("FAULTY", "1", 1);
  if (is("load-closed")) close(STDOUT_FILENO);
  if (is("load-alarm")) alarm(1);
  if (is("load-denormals")) flush_denormals();
}

static void __attribute__((destructor)) end(void) {
  if (is("load-destructor")) crash();
}

/* The test waits for it. */
static void note_start(void) {
  FILE *f = fopen("started.tmp", "w");
  if (!f) return;
  fprintf(f, "%d\n", (int)getpid());
  fclose(f);
  if (rename("started.tmp", "started") != 0) abort();
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  (void)p, (void)ctx, (void)prog;
  if (is("exit-at-once")) exit_at_once();
  if (is("pthread-exit")) pthread_exit(NULL);
  if (is("thread-end")) syscall(SYS_exit, 0);
  if (is("denormals")) flush_denormals();
  if (is("late-crash")) later(crash, 500);
  if (is("atexit-abort")) atexit(abort);
  if (is("atexit-zero")) atexit(exit_at_once);
  if (is("late")) {
    note_start();
    pause_ms(20000);
  }
  if (is("load-late-exit") || is("load-late-exit-at-once") || is("load-late-crash") || is("load-alarm") ||
      is("late-crash"))
    pause_ms(5000);
  return is("atexit-zero") ? AOT_E_INTERNAL : AOT_OK;
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static const aot_pass_t table = {.head = {.struct_size = sizeof table}, .run = run};
  (void)self, (void)host, (void)ctx, (void)opts;
  *out_table = &table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
static const aot_unit_t unit = AOT_UNIT("pass/1", ID, "0.1", HELP, .contract = &contract, .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN(ID, "0.1", "test", "Apache-2.0", units, AOT_NOTE_UNIT("pass/1", ID, HELP));
