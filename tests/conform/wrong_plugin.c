/* Every unit of wrong_units.def, and one that is right. Each does what a unit of its kind may do, and has one fault. */
#include "wrong_units.h"

#include <aot/backend.h>
#include <aot/ext/trial.h>
#include <aot/import.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/opset.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct wrong {
  union {
    aot_table_t head;
    aot_pass_t pass;
    aot_opset_t opset;
    aot_backend_t backend;
    aot_import_t import;
  } table;
  aot_exe_t exe;
  aot_host_t host;
  fault_t fault;
  int64_t level;
} wrong_t;

static void *volatile nowhere; /* the compiler must not know that it is NULL */
static int n_alive, n_runs;    /* what shares_state and other_each_time may not have */

static aot_status_t crash(void) {
  *((volatile int *)nowhere + 16) = 1;
  return AOT_OK;
}

static aot_status_t tell(const wrong_t *u, aot_ctx_t *ctx, aot_status_t status, const char *message) {
  const aot_diag_t d = {.struct_size = sizeof d, .code = aot_str("wrong.fault"), .message = aot_str(message)};
  u->host.diag(&u->host, ctx, &d);
  return status;
}

/* ---- what a program has ---- */

typedef struct call {
  const wrong_t *u;
  const aot_graph_api_t *g;
  const aot_edit_api_t *e;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  aot_node_t first;
} call_t;

static int has_buffer(const call_t *c) {
  for (uint32_t l = 1; l < c->g->n_leaves(c->prog); l++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (c->g->leaf_info(c->prog, (aot_leaf_t){l}, &leaf) == AOT_OK && leaf.role == AOT_ROLE_BUFFER) return 1;
  }
  return 0;
}

static int has_unused_input(const call_t *c) {
  const aot_port_t *in = c->g->inputs(c->prog, c->graph);
  for (uint32_t i = 0; i < c->g->n_inputs(c->prog, c->graph); i++)
    if (c->g->n_uses(c->prog, in[i].value) == 0) return 1;
  return 0;
}

static int has_dtype(const call_t *c, int32_t dtype) {
  for (uint32_t v = 1; v < c->g->n_values(c->prog); v++) {
    aot_type_t t;
    if (c->g->value_type(c->prog, (aot_value_t){v}, &t) == AOT_OK && t.dtype == dtype) return 1;
  }
  return 0;
}

/* The first node of an operator. */
static aot_node_t find(const call_t *c, const char *name, aot_node_info_t *out) {
  const aot_op_t op = c->g->op_find(c->prog, aot_str(name));
  aot_node_t n = c->first;
  for (; n.id != AOT_NO_ID; n = c->g->next(c->prog, n)) {
    *out = (aot_node_info_t){.struct_size = sizeof *out};
    if (c->g->node_info(c->prog, n, out) == AOT_OK && out->op.id == op.id) return n;
  }
  return n;
}

/* ---- faults of a run ---- */

static aot_status_t name_first(const call_t *c, const char *format, int number) {
  char name[40];
  aot_node_info_t info = {.struct_size = sizeof info};
  if (c->first.id == AOT_NO_ID || c->g->node_info(c->prog, c->first, &info) != AOT_OK || !info.n_results) return AOT_OK;
  snprintf(name, sizeof name, format, number);
  return c->e->name_set(c->prog, info.first_result, aot_str(name));
}

static aot_status_t drop_negation(const call_t *c) {
  aot_node_info_t info;
  const aot_node_t n = find(c, "aten.neg.default", &info);
  return n.id == AOT_NO_ID ? AOT_OK : c->e->uses_replace(c->prog, info.first_result, (aot_value_t){info.operands[0]});
}

static aot_status_t commit(const call_t *c) {
  const wrong_t *u = c->u;
  switch (u->fault) {
    case FAULT_silent: return has_buffer(c) ? AOT_E_INTERNAL : AOT_OK;
    case FAULT_port_gone: return has_buffer(c) ? c->e->outputs_clear(c->prog, c->graph) : AOT_OK;
    case FAULT_empty_crash: return c->first.id == AOT_NO_ID ? crash() : AOT_OK;
    case FAULT_unused_crash: return c->first.id != AOT_NO_ID && has_unused_input(c) ? crash() : AOT_OK;
    case FAULT_dtype_crash: return has_dtype(c, AOT_U16) ? crash() : AOT_OK;
    case FAULT_symbolic_crash: return c->g->n_symbols(c->prog) ? crash() : AOT_OK;
    case FAULT_large_endless:
      while (c->g->n_nodes(c->prog) > 5000 && !nowhere) {}
      return AOT_OK;
    case FAULT_other_results: return drop_negation(c);
    case FAULT_other_each_time: return name_first(c, "run%d", n_runs++);
    case FAULT_unchecked_run:
      return *(char *)u->host.alloc(&u->host, c->ctx, AOT_ARENA_SCRATCH, 8, 64) ? AOT_E_INTERNAL : AOT_OK;
    case FAULT_other_status:
      return name_first(c, "named%d", 1) == AOT_OK ? AOT_OK : tell(u, c->ctx, AOT_E_INTERNAL, "naming went wrong");
    case FAULT_cancelled_badly:
      return u->host.cancelled(&u->host, c->ctx) ? tell(u, c->ctx, AOT_E_INTERNAL, "stopped") : AOT_OK;
    case FAULT_shares_state: return name_first(c, "alive%d", n_alive);
    case FAULT_option_at_run: return u->level == 9 ? crash() : AOT_OK;
    case FAULT_extension_at_run:
      return ((const aot_ext_trial_t *)aot_ext(&u->host.head, AOT_EXT_TRIAL))->head.struct_size ? AOT_OK : crash();
    case FAULT_locale_left: setlocale(LC_ALL, "C.UTF-8"); return AOT_OK;
    default: return AOT_OK;
  }
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const wrong_t *u = p->head.self;
  call_t c = {.u = u, .g = u->host.graph, .e = u->host.edit, .ctx = ctx, .prog = prog};
  c.graph = c.g->graph_find(prog, AOT_GRAPH_FORWARD);
  c.first = c.g->first(prog, c.graph);
  if (c.first.id != AOT_NO_ID) AOT_TRY(c.e->note(prog, c.first, aot_str("looked at")));
  return commit(&c);
}

/* ---- opsets ---- */

#define ARGUMENT(name_, type_, flags_)                                                                                 \
  { .name = AOT_STR_INIT(name_), .type = type_, .flags = flags_ }
#define OPERATOR(name_, schema_, args_)                                                                                \
  {                                                                                                                    \
    .struct_size = sizeof(aot_op_desc_t), .name = AOT_STR_INIT(name_), .schema = AOT_STR_INIT(schema_), .args = args_, \
    .n_args = sizeof args_ / sizeof *args_                                                                             \
  }
static const aot_schema_arg_t one[] = {ARGUMENT("x", AOT_STYPE_TENSOR, 0)};
static const aot_schema_arg_t two[] = {ARGUMENT("x", AOT_STYPE_TENSOR, 0), ARGUMENT("n", AOT_STYPE_INT, 0)};
static const aot_schema_arg_t written[] = {ARGUMENT("x", AOT_STYPE_TENSOR, AOT_SARG_WRITE)};
static const aot_op_desc_t op_of_row = OPERATOR("wrong.row.default", "(Tensor x, int n=2) -> ()", two);
static const aot_op_desc_t op_of_flag = OPERATOR("wrong.flag.default", "(Tensor(a!) x) -> ()", written);
static const aot_op_desc_t op_of_name = OPERATOR("wrong.name.default", "(Tensor x) -> ()", one);
static const aot_op_desc_t *const row_ops[] = {&op_of_row}, *const flag_ops[] = {&op_of_flag},
                                  *const name_ops[] = {&op_of_name, &op_of_name};

static aot_opset_t make_opset(const wrong_t *u) {
  if (u->fault == FAULT_schema_row) return (aot_opset_t){.ops = row_ops, .n_ops = 1};
  if (u->fault == FAULT_flag_missing) return (aot_opset_t){.ops = flag_ops, .n_ops = 1};
  return (aot_opset_t){.ops = name_ops, .n_ops = 2};
}

/* ---- backends ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const wrong_t *u = b->head.self;
  const aot_graph_api_t *g = u->host.graph;
  (void)ctx;
  for (uint32_t graph = 1; graph < g->n_graphs(prog); graph++)
    for (aot_node_t n = g->first(prog, (aot_graph_t){graph}); n.id != AOT_NO_ID; n = g->next(prog, n)) {
      const aot_verdict_t v = {.struct_size = sizeof v, .node = n, .accepted = u->fault == FAULT_other_bytes};
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const wrong_t *u = b->head.self;
  const int bytes = u->fault == FAULT_other_bytes ? n_runs++ : 0;
  (void)ctx, (void)prog;
  return sink->write(sink, &bytes, sizeof bytes);
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  (void)graph, (void)out;
  return tell(e->head.self, ctx, AOT_E_UNAVAILABLE, "the machine that runs it is not here");
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *binding, aot_bound_t **out) {
  (void)binding, (void)out;
  return tell(e->head.self, ctx, AOT_E_UNAVAILABLE, "the machine that runs it is not here");
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s) {
  (void)call, (void)s;
  return tell(e->head.self, ctx, AOT_E_UNAVAILABLE, "the machine that runs it is not here");
}

static void unbind(const aot_exe_t *e, aot_bound_t *call) { (void)e, (void)call; }

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  wrong_t *u = b->head.self;
  (void)ctx, (void)bytes, (void)nbytes, (void)device;
  u->exe = (aot_exe_t){.plan = plan, .bind = bind, .submit = submit, .unbind = unbind};
  u->exe.head = (aot_table_t){.struct_size = sizeof u->exe, .self = u};
  *out = &u->exe;
  return AOT_OK;
}

/* ---- importers ---- */

static aot_status_t read_file(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, aot_prog_t *prog) {
  (void)prog;
  return file->nbytes ? tell(i->head.self, ctx, AOT_E_INVALID, "this is none of its files") : crash();
}

/* ---- units ---- */

static void destroy(const aot_table_t *p) {
  const wrong_t *u = p->self;
  n_alive--;
  if (u->fault != FAULT_leaks) free(p->self);
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table);

#define OPTION(name_, preset_)                                                                                         \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT(name_), \
    .help = AOT_STR_INIT("how much"), .preset = {.i = preset_}, .min = 0, .max = 9                                     \
  }
static const aot_option_t level[] = {OPTION("level", 3)}, level_outside[] = {OPTION("level", 30)};
static const aot_option_t budget[] = {{.struct_size = sizeof(aot_option_t),
                                       .kind = AOT_OPT_BYTES,
                                       .name = AOT_STR_INIT("budget"),
                                       .help = AOT_STR_INIT("how much memory"),
                                       .preset = {.i = 1 << 20}}};
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
static const aot_contract_t contract_of_partitions = {
    .struct_size = sizeof contract_of_partitions,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
#define IS_PARTITION(fault) ((fault) >= FAULT_halves_of_late && (fault) <= FAULT_budget_broken)
static const aot_unit_t unit_rows[] = {
#define UNIT(name_, kind_)                                                                                             \
  {                                                                                                                    \
    .struct_size = sizeof(aot_unit_t), .kind = AOT_STR_INIT(kind_), .id = AOT_STR_INIT("wrong." #name_),               \
    .version = AOT_STR_INIT("0.1"), .help = AOT_STR_INIT("wrong in one way"),                                          \
    .options = FAULT_##name_ == FAULT_default_outside ? level_outside                                                  \
               : IS_PARTITION(FAULT_##name_)          ? budget                                                         \
                                                      : level,                                                                  \
    .n_options = 1, .option_stride = sizeof *level, .create = create,                                                  \
    .contract = IS_PARTITION(FAULT_##name_) ? &contract_of_partitions : &contract,                                     \
  }
    UNIT(right, "pass/1"),
#define WRONG(name, kind, rule) UNIT(name, kind),
#include "wrong_units.def"
#undef WRONG
};

static void make_table(wrong_t *u, aot_str_t kind) {
  uint32_t size = sizeof u->table.pass;
  if (aot_str_eq(kind, aot_str("opset/1"))) {
    u->table.opset = make_opset(u);
    size = sizeof u->table.opset;
  } else if (aot_str_eq(kind, aot_str("backend/2"))) {
    u->table.backend = (aot_backend_t){.query = query, .compile = compile, .load = load};
    size = sizeof u->table.backend;
  } else if (aot_str_eq(kind, aot_str("import/1"))) {
    u->table.import = (aot_import_t){.read = read_file};
    size = sizeof u->table.import;
  } else {
    u->table.pass = (aot_pass_t){.run = run};
  }
  u->table.head = (aot_table_t){.struct_size = size, .self = u, .destroy = destroy};
}

/* Kinds with a file of their own. */
static const struct {
  const char *kind;
  const aot_table_t *(*make)(const aot_host_t *host, fault_t fault);
} long_kinds[] = {{"partition/1", wrong_partition}, {"device/1", wrong_device}, {"communicator/1", wrong_communicator}};

static fault_t fault_of(const aot_unit_t *self) {
  for (size_t i = 0; i < sizeof unit_rows / sizeof *unit_rows; i++) /* self may be a copy */
    if (aot_str_eq(self->id, unit_rows[i].id)) return (fault_t)i;
  return FAULT_right;
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  aot_host_t own;
  AOT_TRY(aot_import(&own, sizeof own, host));
  for (size_t i = 0; i < sizeof long_kinds / sizeof *long_kinds; i++) {
    if (!aot_str_eq(self->kind, aot_str(long_kinds[i].kind))) continue;
    *out_table = long_kinds[i].make(&own, fault_of(self));
    return *out_table ? AOT_OK : AOT_E_EXHAUSTED;
  }
  wrong_t *u = calloc(1, sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  u->host = own;
  u->fault = fault_of(self);
  u->level = opts->values[0].i;
  make_table(u, self->kind);
  n_alive++;
  if (u->fault == FAULT_no_run) u->table.pass.run = NULL;
  if (u->fault == FAULT_leaves_open && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) return AOT_OK;
  if (u->fault == FAULT_option_crash && u->level == 0) crash();
  if (u->fault == FAULT_unchecked_create) *(char *)host->alloc(host, ctx, AOT_ARENA_SESSION, 8, 64) = 1;
  if (u->fault == FAULT_needs_extension)
    ((const aot_ext_trial_t *)aot_ext(&host->head, AOT_EXT_TRIAL))->begin ? 0 : crash();
  if (u->fault == FAULT_folder_left && chdir("/") != 0) return AOT_OK;
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_unit_t *const units[] = {
    &unit_rows[FAULT_right],
#define WRONG(name, kind, rule) &unit_rows[FAULT_##name],
#include "wrong_units.def"
#undef WRONG
};
static const aot_plugin_t plugin = {
    .struct_size = sizeof plugin,
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = AOT_PLUGIN_LEAST_MINOR,
    .id = AOT_STR_INIT("wrong"),
    .version = AOT_STR_INIT("0.1"),
    .units = units,
    .n_units = sizeof units / sizeof *units,
};
/* The note by hand: a list of units in a file cannot be in a macro's argument. */
#define WRONG(name, kind, rule)                                                                                        \
  ",{\"kind\":\"" kind "\",\"id\":\"wrong." #name "\",\"help\":\"wrong in one way\",\"claims\":\"\"}"
enum {
  NOTE_SIZE = sizeof(AOT_NOTE_HEAD("wrong", "0.1") AOT_NOTE_UNIT("pass/1", "wrong.right", "wrong in one way")
#include "wrong_units.def"
                         AOT_NOTE_TAIL)
};
static const struct {
  uint32_t name_size, desc_size, type;
  char name[4];
  char desc[NOTE_SIZE];
} note __attribute__((section(AOT_NOTE_SECTION), used, aligned(4))) = {
    4u, NOTE_SIZE, AOT_NOTE_TYPE, "AOT",
    AOT_NOTE_HEAD("wrong", "0.1") AOT_NOTE_UNIT("pass/1", "wrong.right", "wrong in one way")
#include "wrong_units.def"
        AOT_NOTE_TAIL};
#undef WRONG

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
