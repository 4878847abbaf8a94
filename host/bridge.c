/* What plugins see of the host: the graph and edit tables of the program store, the sink, the arenas, the extensions.
 *
 * Tables are made for each plugin and cut to its ABI minor, so that an old plugin, which must refuse a longer struct
 * with a non-zero tail, never meets one. Sizes by minor are in one table each; a minor appends a row. */
#include <bridge.h>

#include <aot/ext/backends.h>
#include <aot/ext/compare_dims.h>
#include <aot/ext/cost.h>
#include <aot/ext/derivative.h>
#include <aot/ext/env.h>
#include <aot/ext/joint_halves.h>
#include <aot/ext/size_guards.h>
#include <aot/ext/kernels.h>
#include <aot/ext/leaf_part.h>
#include <aot/ext/memory.h>
#include <aot/ext/nearest.h>
#include <aot/ext/ranks.h>
#include <aot/ext/report.h>
#include <aot/ext/saved.h>
#include <aot/ext/program_file.h>
#include <aot/ext/trial.h>
#include <aot/inline.h>
#include <base/file.h>
#include <ir/dim_order.h>
#include <kit/graph/make_halves.h>
#include <ir/program.h>
#include <ir/saved_slots.h>
#include <ir/tables.h>
#include <compiler/backend_route.h>
#include <cache/cache_folder.h>
#include <sandbox/cancel.h>
#include <process/environment.h>
#include <sandbox/kernel_guards.h>
#include <compiler/run_ranks.h>
#include <sandbox/record.h>
#include <stddef.h>
#include <string.h>

#define MAX_ALIGN 4096u

/* [minor - AOT_ABI_OLDEST_MINOR]: the size that minor knows. */
#define UP_TO(table, member) (offsetof(table, member) + sizeof(void *))
static const uint32_t host_sizes[] = {UP_TO(aot_host_t, cancelled), UP_TO(aot_host_t, cancelled),
                                      UP_TO(aot_host_t, cancelled)};
static const uint32_t graph_sizes[] = {UP_TO(aot_graph_api_t, snapshot), UP_TO(aot_graph_api_t, snapshot),
                                       UP_TO(aot_graph_api_t, snapshot)};
static const uint32_t edit_sizes[] = {UP_TO(aot_edit_api_t, aliases), UP_TO(aot_edit_api_t, aliases),
                                      UP_TO(aot_edit_api_t, aliases)};
_Static_assert(sizeof host_sizes / sizeof *host_sizes == AOT_ABI_MINOR - AOT_ABI_OLDEST_MINOR + 1,
               "a minor needs its row of sizes");

static aot_status_t AOT_CALL on_diag(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)h;
  return ctx && d ? aoth_report_diag(ctx, d) : AOT_E_INVALID;
}

static void *allocation_failed(aot_ctx_t *ctx, const char *arena, uint64_t size, const char *why) {
  ctx->n_diags++;
  aoth_sink_report(ctx->sink, AOT_SEVERITY_ERROR, NULL, "host.memory", "%llu bytes of %s memory were asked for: %s",
                   (unsigned long long)size, arena, why);
  if (ctx->stage) aoth_sink_line(ctx->sink, "in stage %s", ctx->stage);
  return NULL;
}

static void *AOT_CALL on_alloc(const aot_host_t *h, aot_ctx_t *ctx, uint32_t arena, uint32_t align, uint64_t size) {
  (void)h;
  static const char *const names[] = {"unknown", "session", "graph", "scratch"};
  if (!ctx) return NULL;
  kit_arena_t *const arenas[] = {NULL, ctx->session, ctx->graph, ctx->scratch};
  if (arena > AOT_ARENA_SCRATCH) arena = 0;
  if (!arenas[arena]) return allocation_failed(ctx, names[arena], size, "there is no such arena during this call");
  if (align == 0 || align > MAX_ALIGN || (align & (align - 1)))
    return allocation_failed(ctx, names[arena], size, "the alignment is not a power of two up to 4096");
  void *memory = size < SIZE_MAX / 2 ? kit_arena_alloc(arenas[arena], align, (size_t)size) : NULL;
  return memory ? memory : allocation_failed(ctx, names[arena], size, "there is none left");
}

static int32_t AOT_CALL on_cancelled(const aot_host_t *h, aot_ctx_t *ctx) {
  (void)h;
  return ctx ? aoth_is_cancelled(ctx) : 0;
}

static aot_status_t AOT_CALL on_number(const aot_ext_report_t *x, aot_ctx_t *ctx, aot_str_t name, double value,
                                       aot_str_t unit) {
  (void)x;
  return ctx && ctx->report ? aoth_report_number(ctx->report, name, value, unit) : AOT_E_PRECONDITION;
}

static aot_status_t AOT_CALL on_text(const aot_ext_report_t *x, aot_ctx_t *ctx, aot_str_t name, aot_str_t text) {
  (void)x;
  return ctx && ctx->report ? aoth_report_text(ctx->report, name, text) : AOT_E_PRECONDITION;
}

static const char *AOT_CALL on_env_get(const aot_ext_env_t *x, aot_ctx_t *ctx, const char *name) {
  (void)x;
  return ctx && ctx->report && name ? aoth_report_env(ctx->report, name) : NULL;
}

static const char *AOT_CALL on_cache_dir(const aot_ext_env_t *x, aot_ctx_t *ctx) {
  (void)x;
  return ctx && ctx->session ? aoth_cache_dir(ctx->session, AOTH_UNITS_FOLDER) : NULL;
}

static aot_str_t AOT_CALL on_nearest_op(const aot_ext_nearest_t *x, aot_prog_t *prog, aot_str_t name) {
  (void)x;
  aot_str_t near = {NULL, 0};
  if (prog && name.data) aoth_ops_nearest(aoth_prog_ops(prog), name, &near);
  return near;
}

static aot_status_t AOT_CALL on_held(const aot_ext_saved_t *x, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *out_held,
                                     uint32_t capacity, uint32_t *out_n) {
  (void)x;
  return ctx && prog && out_n && (out_held || !capacity) ? aoth_saved_held(prog, out_held, capacity, out_n)
                                                         : AOT_E_INVALID;
}

/* The program complains through a context of its own, so that the breadcrumb of the call stays at its program. */
static aot_status_t parse_file(aot_ctx_t *ctx, const char *path, aot_prog_t **out) {
  aoth_map_t map = {0};
  aot_ctx_t *own = kit_arena_alloc(ctx->scratch, sizeof(void *), sizeof *own);
  if (!own) return AOT_E_EXHAUSTED;
  ctx->n_diags++; /* undone below: whatever fails from here on is reported */
  AOT_TRY(aoth_file_map(path, ctx->sink, &map));
  *own = *ctx;
  own->prog = *out = aoth_prog_create(aoth_prog_ops(ctx->prog), own);
  own->graph = *out ? aoth_prog_arena(*out) : NULL;
  aot_status_t status = *out ? aoth_parse_with_lines(*out, path, map.data, (size_t)map.nbytes) : AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = aoth_verify(*out, 0);
  aoth_file_unmap(&map);
  if (status == AOT_OK) ctx->n_diags--;
  return status;
}

static void AOT_CALL on_file_release(const aot_ext_program_file_t *x, aot_ctx_t *ctx, aot_prog_t *prog) {
  (void)x;
  (void)ctx;
  if (prog) aoth_prog_destroy(prog);
}

static aot_status_t AOT_CALL on_file_read(const aot_ext_program_file_t *x, aot_ctx_t *ctx, aot_str_t path,
                                          aot_prog_t **out) {
  if (!ctx || !ctx->prog || !ctx->scratch || !out) return AOT_E_INVALID;
  *out = NULL;
  const char *file = kit_arena_text(ctx->scratch, path.data ? path.data : "", (size_t)path.size);
  if (!file) return allocation_failed(ctx, "scratch", path.size, "there is none left"), AOT_E_EXHAUSTED;
  const aot_status_t status = parse_file(ctx, file, out);
  if (status == AOT_OK) return AOT_OK;
  on_file_release(x, ctx, *out);
  *out = NULL;
  return status;
}

static aot_status_t AOT_CALL on_find_kernel(const aot_ext_kernel_lookup_t *x, aot_ctx_t *ctx, aot_str_t op,
                                            const aot_op_desc_t **out_op, const aot_kernel_t **out_kernel) {
  (void)x;
  if (!ctx || !op.data) return AOT_E_INVALID;
  *out_op = aoth_ops_desc(ctx->ops, aoth_ops_find(ctx->ops, op));
  const aot_opset_t *opset;
  *out_kernel = aoth_ops_kernel(ctx->ops, op, &opset);
  if (!*out_kernel || !*out_op || !ctx->kernel_guards) return AOT_OK;
  *out_kernel = aoth_kernel_guarded(ctx->kernel_guards, *out_kernel, *out_op, opset);
  return *out_kernel ? AOT_OK : AOT_E_EXHAUSTED;
}

static aot_status_t AOT_CALL on_all_derivatives(const aot_ext_derivative_lookup_t *x, aot_ctx_t *ctx,
                                                const aot_derivative_t *const **out, uint64_t *out_n) {
  (void)x;
  if (!ctx || !ctx->scratch || !out || !out_n) return AOT_E_INVALID;
  return aoth_ops_derivatives(ctx->ops, ctx->scratch, out, out_n);
}

static aot_status_t AOT_CALL on_memory(const aot_ext_memory_t *x, aot_ctx_t *ctx, aot_prog_t *prog,
                                       const int64_t *symbols, uint64_t n_symbols, const aot_memory_plan_t **out) {
  (void)x;
  return ctx && prog && out ? aoth_backend_route_plan(ctx, prog, symbols, n_symbols, out) : AOT_E_INVALID;
}

static aot_status_t AOT_CALL on_machine(const aot_ext_cost_t *x, aot_ctx_t *ctx, aot_cost_machine_t *out) {
  (void)x;
  return ctx && out ? aoth_backend_route_machine(ctx, AOTH_LAST_BACKEND, out) : AOT_E_INVALID;
}

static aot_status_t AOT_CALL on_costs(const aot_ext_cost_t *x, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                      const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  (void)x;
  return ctx && prog && sink ? aoth_backend_route_costs(ctx, AOTH_LAST_BACKEND, prog, graph, symbols, n_symbols, sink)
                             : AOT_E_INVALID;
}

static uint32_t AOT_CALL on_count(const aot_ext_backends_t *x, aot_ctx_t *ctx) {
  (void)x;
  return ctx ? aoth_backend_route_count(ctx) : 0;
}

static aot_str_t AOT_CALL on_name(const aot_ext_backends_t *x, aot_ctx_t *ctx, uint32_t backend) {
  const char *name = ctx ? aoth_backend_route_name(ctx, backend) : NULL;
  (void)x;
  return aot_str(name ? name : "");
}

/* The caller cannot continue without an answer. */
static aot_status_t told(aot_ctx_t *ctx, uint32_t backend, aot_status_t status) {
  if (status == AOT_OK) return AOT_OK;
  const char *name = aoth_backend_route_name(ctx, backend);
  return aoth_report_error(ctx, status, "lower.query", "backend %s could not be asked which nodes it takes",
                           name ? name : "?");
}

static aot_status_t AOT_CALL on_query(const aot_ext_backends_t *x, aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog,
                                      const aot_verdict_sink_t *sink) {
  (void)x;
  if (!ctx || !prog || !sink || !backend) return AOT_E_INVALID;
  return told(ctx, backend, aoth_backend_route_query(ctx, backend, prog, sink));
}

static aot_status_t AOT_CALL on_machine_of(const aot_ext_backends_t *x, aot_ctx_t *ctx, uint32_t backend,
                                           aot_cost_machine_t *out) {
  (void)x;
  return ctx && backend && out ? aoth_backend_route_machine(ctx, backend, out) : AOT_E_INVALID;
}

static aot_status_t AOT_CALL on_costs_of(const aot_ext_backends_t *x, aot_ctx_t *ctx, uint32_t backend,
                                         aot_prog_t *prog, aot_graph_t graph, const int64_t *symbols,
                                         uint64_t n_symbols, const aot_cost_sink_t *sink) {
  (void)x;
  if (!ctx || !backend || !prog || !sink) return AOT_E_INVALID;
  return aoth_backend_route_costs(ctx, backend, prog, graph, symbols, n_symbols, sink);
}

static aot_status_t AOT_CALL on_trial_begin(const aot_ext_trial_t *x, aot_ctx_t *ctx, aot_prog_t *prog) {
  (void)x;
  if (!ctx || !prog || prog != ctx->prog) return AOT_E_PRECONDITION;
  AOT_TRY(aoth_journal_begin(prog));
  ctx->n_trials++;
  return AOT_OK;
}

static aot_status_t AOT_CALL on_trial_undo(const aot_ext_trial_t *x, aot_ctx_t *ctx, aot_prog_t *prog) {
  (void)x;
  if (!ctx || !prog || prog != ctx->prog || !ctx->n_trials) return AOT_E_PRECONDITION;
  aoth_journal_undo(prog);
  ctx->n_trials--;
  return AOT_OK;
}

static aot_status_t AOT_CALL on_halves(const aot_ext_joint_halves_t *x, aot_ctx_t *ctx, aot_prog_t *prog,
                                       const aot_cut_t *cut) {
  (void)x;
  aoth_kit_host_t tables;
  jg_halves_t *halves = NULL;
  aot_cut_t copy;
  if (!ctx || !prog || prog != ctx->prog || !cut) return AOT_E_PRECONDITION;
  AOT_TRY(aot_import(&copy, sizeof copy, cut));
  aot_status_t status = jg_halves_plan(aoth_kit_host(&tables), ctx, prog, &copy, &halves);
  if (status == AOT_OK) status = jg_halves_make(halves);
  jg_halves_destroy(halves);
  return status;
}

static aot_status_t AOT_CALL on_ranks(const aot_ext_ranks_t *x, aot_ctx_t *ctx, aot_run_ranks_t *out) {
  (void)x;
  return ctx && out ? aoth_ranks_get(ctx, out) : AOT_E_INVALID;
}

static aot_status_t AOT_CALL on_draws(const aot_ext_ranks_t *x, aot_ctx_t *ctx, uint64_t n) {
  (void)x;
  if (!ctx) return AOT_E_INVALID;
  aoth_ranks_draws(ctx, n);
  return AOT_OK;
}

static aot_status_t AOT_CALL on_parts(const aot_ext_ranks_t *x, aot_ctx_t *ctx, uint32_t n) {
  (void)x;
  if (!ctx) return AOT_E_INVALID;
  aoth_ranks_parts(ctx, n);
  return AOT_OK;
}

static aot_status_t AOT_CALL on_leaf_part(const aot_ext_leaf_part_t *x, aot_ctx_t *ctx, aot_prog_t *prog,
                                          aot_leaf_t leaf, const aot_type_t *type, const void *data, uint64_t nbytes) {
  (void)x;
  if (!ctx || !prog || prog != ctx->prog || !type) return AOT_E_PRECONDITION;
  return aoth_edit_leaf_part(prog, leaf, type, data, nbytes);
}

static aot_status_t AOT_CALL on_guard_add(const aot_ext_size_guards_t *x, aot_ctx_t *ctx, aot_prog_t *prog,
                                          const aot_guard_info_t *guard) {
  (void)x;
  if (!ctx || !prog || prog != ctx->prog || !guard) return AOT_E_PRECONDITION;
  return aoth_edit_guard_add(prog, guard);
}

static uint32_t AOT_CALL on_guard_count(const aot_ext_size_guards_t *x, aot_prog_t *prog) {
  (void)x;
  return prog ? aoth_graph_n_guards(prog) : 0;
}

static aot_status_t AOT_CALL on_guard_get(const aot_ext_size_guards_t *x, aot_prog_t *prog, uint32_t i,
                                          aot_guard_info_t *out) {
  (void)x;
  return prog && out ? aoth_graph_guard(prog, i, out) : AOT_E_INVALID;
}

static int32_t AOT_CALL on_compare_dims(const aot_ext_compare_dims_t *x, aot_prog_t *prog, int32_t op, int64_t a,
                                        int64_t b) {
  (void)x;
  return prog ? aoth_dims_decide(prog, op, a, b) : AOT_DIMS_UNKNOWN;
}

static int32_t AOT_CALL on_is_unbacked(const aot_ext_compare_dims_t *x, aot_prog_t *prog, int64_t dim) {
  (void)x;
  return prog ? aoth_dim_is_unbacked(prog, dim) : 0;
}

static uint64_t AOT_CALL on_dim_text(const aot_ext_compare_dims_t *x, aot_prog_t *prog, int64_t dim, char *out,
                                     uint64_t capacity) {
  (void)x;
  return prog ? aoth_dim_text(prog, dim, out, capacity) : 0;
}

#define HEAD(table)                                                                                                    \
  { .struct_size = sizeof table }
static const void *AOT_CALL on_get_ext(const aot_table_t *host, const char *id) {
  static const aot_ext_report_t report = {HEAD(report), on_number, on_text};
  static const aot_ext_env_t env = {HEAD(env), on_env_get, on_cache_dir};
  static const aot_ext_nearest_t nearest = {HEAD(nearest), on_nearest_op};
  static const aot_ext_program_file_t file = {HEAD(file), on_file_read, on_file_release};
  static const aot_ext_saved_t saved = {HEAD(saved), on_held};
  static const aot_ext_kernel_lookup_t kernels = {HEAD(kernels), on_find_kernel};
  static const aot_ext_derivative_lookup_t derivatives = {HEAD(derivatives), on_all_derivatives};
  static const aot_ext_memory_t memory = {HEAD(memory), on_memory};
  static const aot_ext_cost_t cost = {HEAD(cost), on_machine, on_costs};
  static const aot_ext_backends_t backends = {HEAD(backends), on_count, on_name, on_query, on_machine_of, on_costs_of};
  static const aot_ext_trial_t trial = {HEAD(trial), on_trial_begin, on_trial_undo};
  static const aot_ext_joint_halves_t halves = {HEAD(halves), on_halves};
  static const aot_ext_ranks_t ranks = {HEAD(ranks), on_ranks, on_draws, on_parts};
  static const aot_ext_leaf_part_t leaf_part = {HEAD(leaf_part), on_leaf_part};
  static const aot_ext_size_guards_t guards = {HEAD(guards), on_guard_add, on_guard_count, on_guard_get};
  static const aot_ext_compare_dims_t compare = {HEAD(compare), on_compare_dims, on_is_unbacked, on_dim_text};
  (void)host;
  if (!id) return NULL;
  if (strcmp(id, AOT_EXT_REPORT) == 0) return &report;
  if (strcmp(id, AOT_EXT_ENV) == 0) return &env;
  if (strcmp(id, AOT_EXT_NEAREST) == 0) return &nearest;
  if (strcmp(id, AOT_EXT_PROGRAM_FILE) == 0) return &file;
  if (strcmp(id, AOT_EXT_SAVED) == 0) return &saved;
  if (strcmp(id, AOT_EXT_KERNEL_LOOKUP) == 0) return &kernels;
  if (strcmp(id, AOT_EXT_DERIVATIVE_LOOKUP) == 0) return &derivatives;
  if (strcmp(id, AOT_EXT_MEMORY) == 0) return &memory;
  if (strcmp(id, AOT_EXT_COST) == 0) return &cost;
  if (strcmp(id, AOT_EXT_BACKENDS) == 0) return &backends;
  if (strcmp(id, AOT_EXT_TRIAL) == 0) return &trial;
  if (strcmp(id, AOT_EXT_JOINT_HALVES) == 0) return &halves;
  if (strcmp(id, AOT_EXT_RANKS) == 0) return &ranks;
  if (strcmp(id, AOT_EXT_LEAF_PART) == 0) return &leaf_part;
  if (strcmp(id, AOT_EXT_SIZE_GUARDS) == 0) return &guards;
  if (strcmp(id, AOT_EXT_COMPARE_DIMS) == 0) return &compare;
  return NULL;
}

aot_host_t *aoth_bridge_host(kit_arena_t *arena, uint32_t minor) {
  aot_host_t *host = kit_arena_alloc(arena, sizeof(void *), sizeof *host);
  aot_graph_api_t *graph = kit_arena_alloc(arena, sizeof(void *), sizeof *graph);
  aot_edit_api_t *edit = kit_arena_alloc(arena, sizeof(void *), sizeof *edit);
  if (!host || !graph || !edit) return NULL;
  if (minor < AOT_ABI_OLDEST_MINOR) minor = AOT_ABI_OLDEST_MINOR;
  if (minor > AOT_ABI_MINOR) minor = AOT_ABI_MINOR;
  aoth_fill_graph_api(graph);
  aoth_fill_edit_api(edit);
  *host = (aot_host_t){
      .head = {.struct_size = host_sizes[minor - AOT_ABI_OLDEST_MINOR], .get_ext = on_get_ext},
      .abi_epoch = AOT_ABI_EPOCH,
      .abi_minor = AOT_ABI_MINOR,
      .graph = graph,
      .edit = edit,
      .diag = on_diag,
      .alloc = on_alloc,
      .cancelled = on_cancelled,
  };
  graph->head.struct_size = graph_sizes[minor - AOT_ABI_OLDEST_MINOR];
  edit->head.struct_size = edit_sizes[minor - AOT_ABI_OLDEST_MINOR];
  return host;
}
