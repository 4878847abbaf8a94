/* Every unit of wrong_units.def, and one that is right. Each is a pass that names a value and notes a node, as it may, and has one fault. */
#include <aot/ext/trial.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum fault {
  FAULT_right,
#define WRONG(name, kind, rule) FAULT_##name,
#include "wrong_units.def"
#undef WRONG
} fault_t;

typedef struct wrong {
  aot_pass_t table;
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
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
static const aot_unit_t unit_rows[] = {
#define UNIT(name_, kind_)                                                                                             \
  {                                                                                                                    \
    .struct_size = sizeof(aot_unit_t), .kind = AOT_STR_INIT(kind_), .id = AOT_STR_INIT("wrong." #name_),               \
    .version = AOT_STR_INIT("0.1"), .help = AOT_STR_INIT("wrong in one way"),                                          \
    .options = FAULT_##name_ == FAULT_default_outside ? level_outside : level, .n_options = 1,                         \
    .option_stride = sizeof *level, .contract = &contract, .create = create,                                           \
  }
    UNIT(right, "pass/1"),
#define WRONG(name, kind, rule) UNIT(name, kind),
#include "wrong_units.def"
#undef WRONG
};

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  wrong_t *u = calloc(1, sizeof *u);
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  for (size_t i = 0; i < sizeof unit_rows / sizeof *unit_rows; i++) /* self may be a copy */
    if (aot_str_eq(self->id, unit_rows[i].id)) u->fault = (fault_t)i;
  u->level = opts->values[0].i;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  n_alive++;
  if (u->fault == FAULT_no_run) u->table.run = NULL;
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
/* The note by hand: a list of units in a file cannot stand in a macro's argument. */
#define WRONG(name, kind, rule) "," AOT_NOTE_UNIT(kind, "wrong." #name, "wrong in one way")
static const char note_text[] = AOT_NOTE_HEAD("wrong", "0.1") AOT_NOTE_UNIT("pass/1", "wrong.right", "wrong in one way")
#include "wrong_units.def"
    AOT_NOTE_TAIL;
static const struct {
  uint32_t name_size, desc_size, type;
  char name[4];
  char desc[sizeof note_text];
} note __attribute__((section(AOT_NOTE_SECTION), used, aligned(4))) = {
    4u, (uint32_t)sizeof note_text, AOT_NOTE_TYPE, "AOT",
    AOT_NOTE_HEAD("wrong", "0.1") AOT_NOTE_UNIT("pass/1", "wrong.right", "wrong in one way")
#include "wrong_units.def"
        AOT_NOTE_TAIL};
#undef WRONG

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
