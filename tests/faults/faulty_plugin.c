/* A pass with every fault of faults.def; its option says which one. Before its fault it does what a pass may do: it
 * names values and notes nodes, so that the fault is one edit among several. */
#define _GNU_SOURCE /* syscall */
#include <aot/ext/trial.h>
#include <aot/float_env.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct faulty {
  aot_pass_t table;
  aot_host_t host;
  const struct fault *fault;
} faulty_t;

typedef struct call {
  const faulty_t *u;
  const aot_graph_api_t *g;
  const aot_edit_api_t *e;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
} call_t;

/* ---- how a process ends ---- */

/* The compiler must not know that it is NULL. */
static void *volatile nowhere;
static volatile int zero;

static aot_status_t fault_segv(const call_t *c) {
  (void)c;
  *((volatile int *)nowhere + 16) = 1;
  return AOT_OK;
}

static aot_status_t fault_null_call(const call_t *c) {
  void *address = nowhere;
  aot_status_t (*function)(const call_t *);
  memcpy(&function, &address, sizeof function);
  return function(c);
}

static aot_status_t fault_abort(const call_t *c) {
  (void)c;
  abort();
}

/* The processor's own complaint, not a sanitizer's. */
static aot_status_t __attribute__((noinline, no_sanitize("undefined"))) fault_divide(const call_t *c) {
  (void)c;
  return 7 / zero;
}

static aot_status_t fault_illegal(const call_t *c) {
  (void)c;
  __builtin_trap();
}

/* A page of a file that ends before it. */
static aot_status_t fault_mapped_file(const call_t *c) {
  char name[] = "/tmp/faulty-XXXXXX";
  const int fd = mkstemp(name);
  (void)c;
  if (fd < 0) return AOT_OK;
  unlink(name);
  volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  return (void *)(uintptr_t)page == MAP_FAILED ? AOT_OK : page[8];
}

static aot_status_t fault_exit_zero(const call_t *c) {
  (void)c;
  exit(0);
}

static aot_status_t fault_exit_two(const call_t *c) {
  (void)c;
  exit(2);
}

static aot_status_t fault_exit_at_once(const call_t *c) {
  (void)c;
  syscall(SYS_exit_group, 0);
  return AOT_OK;
}

static aot_status_t fault_quick_exit(const call_t *c) {
  (void)c;
  quick_exit(0);
}

static aot_status_t fault_killed(const call_t *c) {
  (void)c;
  raise(SIGKILL);
  return AOT_OK;
}

static aot_status_t fault_stopped(const call_t *c) {
  (void)c;
  raise(SIGSTOP);
  return AOT_OK;
}

static aot_status_t fault_alarm(const call_t *c) {
  (void)c;
  alarm(1);
  pause();
  return AOT_OK;
}

static aot_status_t fault_pthread_exit(const call_t *c) {
  (void)c;
  pthread_exit(NULL);
}

static aot_status_t fault_thread_end(const call_t *c) {
  (void)c;
  syscall(SYS_exit, 0);
  return AOT_OK;
}

/* ---- what the worker has open ---- */

static aot_status_t fault_garbage(const call_t *c) {
  static unsigned char bytes[8192];
  (void)c;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  for (int fd = 3; fd < 64; fd++) {
    const ssize_t done = write(fd, bytes, sizeof bytes);
    (void)done;
  }
  return AOT_OK;
}

static aot_status_t fault_pipes_closed(const call_t *c) {
  (void)c;
  for (int fd = 3; fd < 64; fd++) close(fd);
  return AOT_OK;
}

/* ---- work without end ---- */

static aot_status_t fault_endless(const call_t *c) {
  (void)c;
  while (!zero) {}
  return AOT_OK;
}

static aot_status_t fault_endless_deaf(const call_t *c) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  return fault_endless(c);
}

static aot_status_t fault_asleep(const call_t *c) {
  (void)c;
  while (!zero) sleep(1000);
  return AOT_OK;
}

static aot_status_t fault_locked(const call_t *c) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  (void)c;
  pthread_mutex_lock(&lock);
  return pthread_mutex_lock(&lock);
}

/* ---- memory ---- */

/* Never inlined, never a tail call: it needs stack for each level, more than there is. */
static int __attribute__((noinline)) deeper(volatile int *n) {
  volatile char page[4096];
  page[0] = (char)++*n;
  return *n > 1000000000 ? 0 : deeper(n) + page[0];
}

static aot_status_t fault_stack(const call_t *c) {
  volatile int depth = 0;
  (void)c;
  return deeper(&depth);
}

/* Runs over the end of blocks, until malloc itself finds the damage. */
static aot_status_t fault_heap(const call_t *c) {
  (void)c;
  for (volatile size_t n = 100000; !zero;) {
    volatile char *block = malloc(n);
    for (size_t i = n; i < n + 32; i++) block[i] = (char)0xf1;
  }
  return AOT_OK;
}

static aot_status_t fault_freed_twice(const call_t *c) {
  void *volatile block = malloc(1 << 20), *volatile again = malloc(100);
  void *const same = again;
  (void)c;
  free(block);
  free(again);
  free(same);
  return AOT_OK;
}

/* Without touching it: what runs out is what the process may have. */
static aot_status_t fault_leak(const call_t *c) {
  void *volatile block;
  (void)c;
  do block = malloc((size_t)1 << 30);
  while (block);
  abort();
}

/* Code is not to be written. */
static aot_status_t fault_code(const call_t *c) {
  aot_status_t (*const function)(const call_t *) = fault_code;
  void *address;
  (void)c;
  memcpy(&address, &function, sizeof address);
  *(volatile char *)address = 0;
  return AOT_OK;
}

/* ---- threads ---- */

static void *crash_in_thread(void *arg) {
  (void)arg;
  *((volatile int *)nowhere + 16) = 1;
  return NULL;
}

static void *exit_in_thread(void *arg) {
  (void)arg;
  exit(0);
}

static aot_status_t in_thread(void *(*body)(void *)) {
  pthread_t t;
  if (pthread_create(&t, NULL, body, NULL) == 0) pthread_join(t, NULL);
  return AOT_OK;
}

static aot_status_t fault_thread_segv(const call_t *c) {
  (void)c;
  return in_thread(crash_in_thread);
}

static aot_status_t fault_thread_exit(const call_t *c) {
  (void)c;
  return in_thread(exit_in_thread);
}

/* ---- what belongs to the whole process ---- */

static void on_signal(int signal) { (void)signal; }

static aot_status_t fault_handler(const call_t *c) {
  (void)c;
  signal(SIGUSR1, on_signal);
  return AOT_OK;
}

static aot_status_t fault_crash_handler(const call_t *c) {
  (void)c;
  signal(SIGSEGV, on_signal);
  return AOT_OK;
}

static aot_status_t fault_blocked(const call_t *c) {
  sigset_t one;
  (void)c;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  return AOT_OK;
}

static aot_status_t fault_input_closed(const call_t *c) {
  (void)c;
  close(STDIN_FILENO);
  return AOT_OK;
}

static aot_status_t fault_output_closed(const call_t *c) {
  (void)c;
  close(STDOUT_FILENO);
  return AOT_OK;
}

static aot_status_t fault_error_closed(const call_t *c) {
  (void)c;
  close(STDERR_FILENO);
  return AOT_OK;
}

static aot_status_t fault_output_replaced(const call_t *c) {
  const int fd = open("/dev/full", O_WRONLY);
  (void)c;
  dup2(fd, STDOUT_FILENO);
  close(fd);
  return AOT_OK;
}

static aot_status_t fault_folder(const call_t *c) {
  (void)c;
  return chdir("/");
}

static aot_status_t fault_locale(const call_t *c) {
  (void)c;
  setlocale(LC_ALL, "C.UTF-8");
  return AOT_OK;
}

static aot_status_t fault_environment(const call_t *c) {
  (void)c;
  return setenv("FAULTY", "1", 1);
}

static aot_status_t fault_mask(const call_t *c) {
  (void)c;
  umask(0);
  return AOT_OK;
}

static aot_status_t fault_rounding(const call_t *c) {
  (void)c;
  return fesetround(FE_UPWARD);
}

/* As -ffast-math does it. */
static aot_status_t fault_denormals(const call_t *c) {
  aot_float_env_t env = aot_float_env();
  (void)c;
  env.control |= AOT_FLOAT_DENORMALS;
  aot_float_env_restore(env);
  return AOT_OK;
}

/* ---- the contract ---- */

static aot_status_t fault_silent(const call_t *c) {
  (void)c;
  return AOT_E_INTERNAL;
}

/* A diagnostic of this unit. */
static aot_status_t say(const call_t *c, int32_t severity, const char *text) {
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = severity,
                        .code = AOT_STR_INIT("faulty.said"),
                        .message = aot_str(text),
                        .node = {AOT_NO_ID},
                        .value = {AOT_NO_ID}};
  return c->u->host.diag(&c->u->host, c->ctx, &d);
}

static aot_status_t fault_error_ok(const call_t *c) { return say(c, AOT_SEVERITY_ERROR, "this went wrong"); }

/* What a terminal obeys, and lines that pass for the host's. */
static aot_status_t fault_escapes(const call_t *c) {
  AOT_TRY(say(c, AOT_SEVERITY_WARNING, "\033]0;title\007\033[2J\u202eback\xff\np.yaml:1:1: error: forged\r"));
  return fault_error_ok(c);
}

static aot_status_t fault_chatter(const call_t *c) {
  const size_t size = (size_t)1 << 20;
  char *text = calloc(size + 1, 1);
  if (!text) return AOT_E_EXHAUSTED;
  memset(text, 'a', size);
  for (int i = 0; i < 3000; i++) say(c, AOT_SEVERITY_WARNING, text);
  free(text);
  return fault_error_ok(c);
}

static aot_status_t fault_trial(const call_t *c) {
  const aot_ext_trial_t *trial = aot_ext(&c->u->host.head, AOT_EXT_TRIAL);
  return trial->begin(trial, c->ctx, c->prog);
}

static aot_graph_t forward(const call_t *c) { return c->g->graph_find(c->prog, AOT_GRAPH_FORWARD); }

static aot_status_t fault_port_gone(const call_t *c) { return c->e->outputs_clear(c->prog, forward(c)); }

/* ---- edits ---- */

/* The first node of an operator. */
static aot_node_t find(const call_t *c, const char *name, aot_node_info_t *out) {
  const aot_op_t op = c->g->op_find(c->prog, aot_str(name));
  aot_node_t n = c->g->first(c->prog, forward(c));
  for (; n.id != AOT_NO_ID; n = c->g->next(c->prog, n)) {
    *out = (aot_node_info_t){.struct_size = sizeof *out};
    if (c->g->node_info(c->prog, n, out) == AOT_OK && out->op.id == op.id) return n;
  }
  return n;
}

static aot_value_t operand(const aot_node_info_t *n, uint32_t i) { return (aot_value_t){n->operands[i]}; }

static aot_status_t fault_wrong_type(const call_t *c) {
  aot_node_info_t n;
  aot_type_t type;
  find(c, "aten.relu.default", &n);
  AOT_TRY(c->g->value_type(c->prog, n.first_result, &type));
  type.dtype = AOT_F64;
  return c->e->type_set(c->prog, n.first_result, &type);
}

static aot_status_t fault_swapped(const call_t *c) {
  aot_node_info_t info;
  const aot_node_t n = find(c, "aten.sub.Tensor", &info);
  const aot_value_t first = operand(&info, 0), second = operand(&info, 1);
  AOT_TRY(c->e->operand_set(c->prog, n, 0, second));
  return c->e->operand_set(c->prog, n, 1, first);
}

static aot_status_t fault_scalar(const call_t *c) {
  const aot_arg_t two = {.kind = AOT_ARG_INT, .u.i = 2};
  aot_node_info_t info;
  return c->e->arg_set(c->prog, find(c, "aten.add.Tensor", &info), 2, &two);
}

static aot_status_t fault_dropped(const call_t *c) {
  aot_node_info_t info;
  find(c, "aten.relu.default", &info);
  return c->e->uses_replace(c->prog, info.first_result, operand(&info, 0));
}

static aot_status_t fault_wrong_use(const call_t *c) {
  aot_node_info_t exp, mul;
  find(c, "aten.exp.default", &exp);
  return c->e->operand_set(c->prog, find(c, "aten.mul.Scalar", &mul), 0, operand(&exp, 0));
}

static aot_status_t fault_wrong_output(const call_t *c) {
  aot_node_info_t neg;
  find(c, "aten.neg.default", &neg);
  return c->e->output_set(c->prog, forward(c), 0, operand(&neg, 0));
}

/* A new node before `at`, with these arguments; *out is its result. */
static aot_status_t make(const call_t *c, const char *op, const aot_arg_t *args, uint32_t n, aot_node_t at,
                         aot_value_t *out) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = c->g->op_find(c->prog, aot_str(op)),
      .args = args,
      .n_args = n,
      .origin = aot_no_origin(),
  };
  AOT_TRY(c->e->node_create(c->prog, forward(c), &spec, at, &made));
  AOT_TRY(c->g->node_info(c->prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t fault_doubled(const call_t *c) {
  aot_node_info_t info;
  aot_value_t made;
  const aot_node_t n = find(c, "aten.exp.default", &info);
  const aot_arg_t value = {.kind = AOT_ARG_VALUE, .u.i = operand(&info, 0).id}, args[] = {value, value};
  AOT_TRY(make(c, "aten.add.Tensor", args, 2, n, &made));
  return c->e->operand_set(c->prog, n, 0, made);
}

static aot_status_t fault_other_dim(const call_t *c) {
  static const int64_t rows[] = {1};
  const aot_arg_t dims = {.kind = AOT_ARG_INTS, .n = 1, .u.ints = rows};
  aot_node_info_t info;
  return c->e->arg_set(c->prog, find(c, "aten.sum.dim_IntList", &info), 1, &dims);
}

static aot_status_t fault_other_operator(const call_t *c) {
  aot_node_info_t info;
  aot_value_t made;
  const aot_node_t n = find(c, "aten.neg.default", &info);
  const aot_arg_t value = {.kind = AOT_ARG_VALUE, .u.i = operand(&info, 0).id};
  AOT_TRY(make(c, "aten.relu.default", &value, 1, n, &made));
  return c->e->uses_replace(c->prog, info.first_result, made);
}

/* ---- the pass ---- */

typedef struct fault {
  const char *name;
  aot_status_t (*commit)(const call_t *c);
} fault_t;

static const fault_t faults[] = {
#define FAULT(id, name, status, text) {name, fault_##id},
#include "faults.def"
#undef FAULT
};
static const aot_str_t names[] = {
#define FAULT(id, name, status, text) AOT_STR_INIT(name),
#include "faults.def"
#undef FAULT
};
#define N_FAULTS (sizeof faults / sizeof *faults)

/* What a pass may do, and changes no result. */
static aot_status_t edit_harmlessly(const call_t *c) {
  aot_node_info_t info;
  const char *const ops[] = {"aten.mul.Tensor", "aten.exp.default", "aten.sum.dim_IntList"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    const aot_node_t n = find(c, ops[i], &info);
    AOT_TRY(c->e->note(c->prog, n, aot_str("looked at")));
    AOT_TRY(c->e->name_set(c->prog, info.first_result, aot_str(i == 0 ? "first" : i == 1 ? "second" : "third")));
  }
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const faulty_t *u = p->head.self;
  const call_t c = {u, u->host.graph, u->host.edit, ctx, prog};
  AOT_TRY(edit_harmlessly(&c));
  return u->fault->commit(&c);
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  faulty_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  for (size_t i = 0; i < N_FAULTS; i++)
    if (aot_str_eq(opts->values[0].s, aot_str(faults[i].name))) u->fault = &faults[i];
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_ENUM,
    .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_REQUIRED,
    .name = AOT_STR_INIT("fault"),
    .help = AOT_STR_INIT("which"),
    .choices = names,
    .n_choices = N_FAULTS,
}};
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
static const aot_unit_t unit = {
    .struct_size = sizeof unit,
    .kind = AOT_STR_INIT("pass/1"),
    .id = AOT_STR_INIT("faulty"),
    .version = AOT_STR_INIT("0.1"),
    .help = AOT_STR_INIT("commits one fault"),
    .options = options,
    .n_options = 1,
    .option_stride = sizeof *options,
    .contract = &contract,
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};
static const aot_plugin_t plugin = {
    .struct_size = sizeof plugin,
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = AOT_PLUGIN_LEAST_MINOR,
    .id = AOT_STR_INIT("faulty"),
    .version = AOT_STR_INIT("0.1"),
    .build_id = AOT_STR_INIT("f"),
    .units = units,
    .n_units = 1,
};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("faulty", "0.1") AOT_NOTE_UNIT("pass/1", "faulty", "commits one fault") AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
