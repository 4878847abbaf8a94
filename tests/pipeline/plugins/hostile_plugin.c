/* One pass that misbehaves in every way there is: `how` chooses. The host must name it, put the program back, and
 * live. */
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct hostile {
  aot_pass_t table;
  aot_host_t host;
  aot_str_t how;
} hostile_t;

static int is(const hostile_t *u, const char *how) { return aot_str_eq(u->how, aot_str(how)); }

/* Never inlined, never a tail call: it needs stack for each level, more than there is. */
static int __attribute__((noinline)) deeper(volatile int *n) {
  volatile char page[4096];
  page[0] = (char)++*n;
  return *n > 1000000000 ? 0 : deeper(n) + page[0];
}

/* The processor's own complaint, not a sanitizer's. */
static int __attribute__((noinline, no_sanitize("undefined"))) divide(volatile int *zero) { return 7 / *zero; }

static void *crash_in_thread(void *arg) {
  (void)arg;
  raise(SIGSEGV);
  return NULL;
}

static void *exit_in_thread(void *arg) {
  (void)arg;
  exit(0);
}

static void in_thread(void *(*body)(void *)) {
  pthread_t t;
  if (pthread_create(&t, NULL, body, NULL) == 0) pthread_join(t, NULL);
}

/* Runs over the end of a block, so that malloc itself finds the damage and aborts, with its lock held. */
static void __attribute__((noinline)) damage_heap(void) {
  for (volatile size_t n = 100000;;) {
    volatile char *block = malloc(n);
    for (size_t i = n; i < n + 32; i++) block[i] = (char)0xf1;
  }
}

/* The last node of the forward graph, looked at and given a new twin: something to be undone. */
static aot_status_t edit_something(const hostile_t *u, aot_prog_t *prog) {
  const aot_graph_api_t *g = u->host.graph;
  const aot_graph_t forward = g->graph_find(prog, AOT_GRAPH_FORWARD);
  const aot_node_t last = g->last(prog, forward);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(g->node_info(prog, last, &info));
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = info.op,
      .n_args = info.n_args,
      .args = info.args,
      .origin = aot_no_origin(),
  };
  AOT_TRY(u->host.edit->node_create(prog, forward, &spec, last, &made));
  info.struct_size = sizeof info;
  return g->node_info(prog, g->first(prog, forward), &info); /* the breadcrumb */
}

static aot_status_t tell(const hostile_t *u, aot_ctx_t *ctx, aot_prog_t *prog) {
  aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = AOT_STR_INIT("hostile.told"),
      .message = AOT_STR_INIT("this node is too beautiful"),
      .hint = AOT_STR_INIT("make it plainer"),
      .value = {AOT_NO_ID},
  };
  d.node = u->host.graph->first(prog, u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD));
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_UNIMPLEMENTED;
}

/* The first output of the forward graph gets another type, another role, another number, or goes. */
static aot_status_t change_port(const hostile_t *u, aot_prog_t *prog) {
  const aot_graph_t forward = u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
  const aot_port_t port = u->host.graph->outputs(prog, forward)[0];
  aot_type_t type;
  if (is(u, "port-type")) {
    AOT_TRY(u->host.graph->value_type(prog, port.value, &type));
    type.dtype = AOT_F64;
    return u->host.edit->type_set(prog, port.value, &type);
  }
  AOT_TRY(u->host.edit->outputs_clear(prog, forward));
  if (is(u, "port-gone")) return AOT_OK;
  const int32_t role = is(u, "port-role") ? AOT_ROLE_OFFSET : port.role;
  return u->host.edit->output_add(prog, forward, role, port.index + (uint32_t)is(u, "port-index"), port.value,
                                  port.name);
}

/* Another twin of the last node, whose operator gives neither this dtype nor this size. */
static aot_status_t set_type(const hostile_t *u, aot_prog_t *prog) {
  const aot_graph_api_t *g = u->host.graph;
  const aot_graph_t forward = g->graph_find(prog, AOT_GRAPH_FORWARD);
  const aot_node_t last = g->last(prog, forward);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  aot_type_t type;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(g->node_info(prog, last, &info));
  AOT_TRY(g->value_type(prog, info.first_result, &type));
  for (int32_t i = 0; i < type.rank; i++) sizes[i] = type.sizes[i] + is(u, "type-size");
  if (is(u, "type-dtype")) type.dtype = AOT_F64;
  type.sizes = sizes;
  type.strides = NULL;
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = info.op,
      .n_args = info.n_args,
      .args = info.args,
      .n_types = 1,
      .types = &type,
      .origin = aot_no_origin(),
  };
  return u->host.edit->node_create(prog, forward, &spec, last, &made);
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const hostile_t *u = p->head.self;
  volatile int zero = 0;
  AOT_TRY(edit_something(u, prog));
  if (is(u, "segv")) *(volatile int *)(uintptr_t)(zero + 64) = 1;
  if (is(u, "abort")) abort();
  if (is(u, "fpe")) zero = divide(&zero);
  if (is(u, "ill")) raise(SIGILL);
  if (is(u, "bus")) raise(SIGBUS);
  if (is(u, "stack")) return deeper(&zero);
  if (is(u, "silent")) return AOT_E_INTERNAL;
  if (is(u, "told")) return tell(u, ctx, prog);
  if (is(u, "alloc")) return u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 3, 8) ? AOT_OK : AOT_E_EXHAUSTED;
  if (is(u, "thread")) in_thread(crash_in_thread);
  if (is(u, "exit")) exit(0);
  if (is(u, "_exit")) _exit(0);
  if (is(u, "exit-thread")) in_thread(exit_in_thread);
  if (is(u, "heap")) damage_heap();
  if (u->how.size > 5 && memcmp(u->how.data, "port-", 5) == 0) return change_port(u, prog);
  if (u->how.size > 5 && memcmp(u->how.data, "type-", 5) == 0) return set_type(u, prog);
  return AOT_OK;
}

static void destroy(const aot_table_t *p) {
  const hostile_t *u = p->self;
  const int crash = is(u, "destroy");
  free(p->self);
  if (crash) raise(SIGSEGV);
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  static aot_pass_t no_run = {.head = {.struct_size = sizeof no_run}};
  hostile_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  u->how = opts->values[0].s;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  if (is(u, "create")) raise(SIGSEGV);
  if (is(u, "null")) *out_table = NULL;
  if (is(u, "no-run")) *out_table = &no_run.head;
  if (is(u, "refuse")) {
    const aot_diag_t d = {
        .struct_size = sizeof d,
        .severity = AOT_SEVERITY_ERROR,
        .code = AOT_STR_INIT("hostile.option"),
        .message = AOT_STR_INIT("not on a Sunday"),
        .node = {AOT_NO_ID},
        .value = {AOT_NO_ID},
    };
    host->diag(host, ctx, &d);
    return AOT_E_OPTION;
  }
  return AOT_OK;
}

static const aot_str_t choices[] = {
    AOT_STR_INIT("segv"),       AOT_STR_INIT("abort"),     AOT_STR_INIT("fpe"),         AOT_STR_INIT("ill"),
    AOT_STR_INIT("bus"),        AOT_STR_INIT("stack"),     AOT_STR_INIT("silent"),      AOT_STR_INIT("told"),
    AOT_STR_INIT("alloc"),      AOT_STR_INIT("thread"),    AOT_STR_INIT("create"),      AOT_STR_INIT("null"),
    AOT_STR_INIT("no-run"),     AOT_STR_INIT("refuse"),    AOT_STR_INIT("destroy"),     AOT_STR_INIT("nothing"),
    AOT_STR_INIT("exit"),       AOT_STR_INIT("_exit"),     AOT_STR_INIT("exit-thread"), AOT_STR_INIT("heap"),
    AOT_STR_INIT("port-type"),  AOT_STR_INIT("port-gone"), AOT_STR_INIT("port-role"),   AOT_STR_INIT("port-index"),
    AOT_STR_INIT("type-dtype"), AOT_STR_INIT("type-size")};
static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_ENUM,
    .flags = AOT_OPT_AFFECTS_OUTPUT,
    .name = AOT_STR_INIT("how"),
    .help = AOT_STR_INIT("in which way"),
    .choices = choices,
    .n_choices = sizeof choices / sizeof *choices,
    .preset = {.s = AOT_STR_INIT("segv")},
    .min = 1,
    .max = 0,
}};

/* Three passes of one body: an honest contract, one that promises more than it keeps, one that creates what it must
 * not. */
static const aot_str_t nothing_made[] = {AOT_STR_INIT("toy.nothing*")};
static const aot_contract_t plain = {.struct_size = sizeof plain, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
static const aot_contract_t liar = {.struct_size = sizeof liar, .gives = AOT_NAMES(AOT_PROP_PARTITIONED)};
static const aot_contract_t maker = {.struct_size = sizeof maker, .creates = nothing_made, .n_creates = 1};
#define UNIT(name_, id_, contract_)                                                                                    \
  static const aot_unit_t name_ = {.struct_size = sizeof(aot_unit_t),                                                  \
                                   .kind = AOT_STR_INIT("pass/1"),                                                     \
                                   .id = AOT_STR_INIT(id_),                                                            \
                                   .version = AOT_STR_INIT("6.6.6"),                                                   \
                                   .help = AOT_STR_INIT("misbehaves"),                                                 \
                                   .options = options,                                                                 \
                                   .n_options = 1,                                                                     \
                                   .option_stride = sizeof *options,                                                   \
                                   .contract = &contract_,                                                             \
                                   .create = create};
UNIT(u_hostile, "hostile", plain)
UNIT(u_liar, "hostile-liar", liar)
UNIT(u_maker, "hostile-maker", maker)
static const aot_unit_t *const units[] = {&u_hostile, &u_liar, &u_maker};
static const aot_plugin_t plugin = {
    .struct_size = sizeof(aot_plugin_t),
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = AOT_PLUGIN_LEAST_MINOR,
    .id = AOT_STR_INIT("hostile"),
    .version = AOT_STR_INIT("6.6.6"),
    .build_id = AOT_STR_INIT("beast"),
    .units = units,
    .n_units = 3,
};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("hostile", "6.6.6") AOT_NOTE_UNIT("pass/1", "hostile", "misbehaves") "," AOT_NOTE_UNIT(
    "pass/1", "hostile-liar", "misbehaves") "," AOT_NOTE_UNIT("pass/1", "hostile-maker", "misbehaves") AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
