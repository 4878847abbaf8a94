/* A partitioner and a backend that lose a comparison in every way there is: `how` chooses. The partitioner saves all
 * that its backward reads, or leaves a choice that is impossible to the host; the backend takes every node, and its
 * results are zeros. */
#include "kit/base/host_call.h"
#include "kit/partition/apply.h"
#include "kit/graph/joint_arrays.h"
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/partition.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct divider {
  aot_partition_t table;
  aot_host_t host;
  aot_str_t how;
} divider_t;

typedef struct zeros {
  aot_backend_t table;
  hc_exe_t exe;
  aot_str_t how;
  uint64_t n_runs;
} zeros_t;

static int is(aot_str_t how, const char *what) { return aot_str_eq(how, aot_str(what)); }

static void misbehave(aot_str_t how) {
  if (is(how, "crash") || is(how, "crash-at-once")) raise(SIGSEGV);
  if (is(how, "exit")) _exit(7);
  for (; is(how, "hang");) sleep(1);
}

/* ---- the partitioner ---- */

/* Every forward value that a node after the last forward one reads, or a gradient is. */
static int save_all(const void *self, const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved,
                    uint32_t *out_value) {
  uint32_t end = 0;
  unsigned char *is_read = calloc(j->n_values + 1u, 1);
  (void)self, (void)out_value;
  *out_n_saved = 0;
  if (!is_read) return -2;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (j->early[n]) end = n + 1;
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE) is_read[j->gradients[i]] = 1;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    for (uint32_t k = j->operand_begin[n]; (n >= end || j->late[n]) && k < j->operand_begin[n + 1]; k++)
      is_read[j->operands[k]] = 1;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (is_read[v] && j->def[v] < end && !j->late[j->def[v]]) out_saved[(*out_n_saved)++] = v;
  free(is_read);
  return 0;
}

static const pt_how_t how_to_divide = {.pick = save_all};

/* Choices of which no halves can be made: nothing is saved, whatever draws numbers; one value twice; the last value,
 * a gradient. */
static int is_impossible(aot_str_t how) { return is(how, "nothing") || is(how, "twice") || is(how, "late"); }

static aot_status_t choose_impossibly(const divider_t *u, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const aot_graph_t joint = u->host.graph->graph_find(prog, AOT_GRAPH_JOINT);
  const aot_node_t node = is(u->how, "late") ? u->host.graph->last(prog, joint) : u->host.graph->first(prog, joint);
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_value_t saved[] = {info.first_result, info.first_result};
  const aot_cut_t cut = {.struct_size = sizeof cut,
                         .saved = saved,
                         .n_saved = is(u->how, "nothing") ? 0
                                    : is(u->how, "late")  ? 1
                                                          : 2};
  return sink->put(sink, &cut);
}

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const divider_t *u = p->head.self;
  if (is_impossible(u->how)) return choose_impossibly(u, prog, sink);
  const aot_value_t nowhere = {123456789};
  const aot_cut_t garbage = {.struct_size = sizeof garbage, .n_saved = 1, .saved = &nowhere};
  misbehave(u->how);
  if (is(u->how, "garbage")) return sink->put(sink, &garbage);
  return pt_choose(&u->host, ctx, prog, sink, &how_to_divide);
}

static int same_type(const divider_t *u, aot_prog_t *prog, aot_value_t a, aot_value_t b) {
  aot_type_t x, y;
  if (a.id == AOT_NO_ID || b.id == AOT_NO_ID || a.id == b.id) return 0;
  if (u->host.graph->value_type(prog, a, &x) != AOT_OK || u->host.graph->value_type(prog, b, &y) != AOT_OK) return 0;
  return x.dtype == y.dtype && x.rank == y.rank && x.rank > 0 &&
         memcmp(x.sizes, y.sizes, (size_t)x.rank * sizeof *x.sizes) == 0 &&
         memcmp(x.strides, y.strides, (size_t)x.rank * sizeof *x.strides) == 0;
}

/* Two gradients change places: a program in order, and wrong. */
static aot_status_t swap_gradients(const divider_t *u, aot_prog_t *prog) {
  const aot_graph_t backward = u->host.graph->graph_find(prog, AOT_GRAPH_BACKWARD);
  const uint32_t n = u->host.graph->n_outputs(prog, backward);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = i + 1; k < n; k++) {
      const aot_value_t a = u->host.graph->outputs(prog, backward)[i].value,
                        b = u->host.graph->outputs(prog, backward)[k].value;
      if (!same_type(u, prog, a, b)) continue;
      AOT_TRY(u->host.edit->output_set(prog, backward, i, b));
      return u->host.edit->output_set(prog, backward, k, a);
    }
  }
  return AOT_OK;
}

/* The outputs of a graph again, without the first `skipped`, from the back if `turned`. */
static aot_status_t list_outputs(const divider_t *u, aot_prog_t *prog, int32_t kind, uint32_t skipped, int turned) {
  const aot_graph_t graph = u->host.graph->graph_find(prog, kind);
  const uint32_t n = u->host.graph->n_outputs(prog, graph);
  aot_port_t *ports = malloc((n + 1u) * sizeof *ports);
  aot_status_t status = ports ? AOT_OK : AOT_E_EXHAUSTED;
  if (ports) memcpy(ports, u->host.graph->outputs(prog, graph), n * sizeof *ports);
  if (ports) status = u->host.edit->outputs_clear(prog, graph);
  for (uint32_t i = skipped; i < n && status == AOT_OK; i++) {
    const aot_port_t *port = &ports[turned ? n - 1 - i + skipped : i];
    status = u->host.edit->output_add(prog, graph, port->role, port->index, port->value, port->name);
  }
  free(ports);
  return status;
}

static aot_status_t zero_gradient(const divider_t *u, aot_prog_t *prog) {
  const aot_graph_t backward = u->host.graph->graph_find(prog, AOT_GRAPH_BACKWARD);
  const aot_arg_t args[] = {aot_arg_value(u->host.graph->outputs(prog, backward)[0].value)};
  const aot_op_t zeros = u->host.graph->op_find(prog, aot_str("aten.zeros_like.default"));
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = zeros, .n_args = 1, .args = args, .origin = aot_no_origin()};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(u->host.edit->node_create(prog, backward, &spec, aot_no_node(), &made));
  AOT_TRY(u->host.graph->node_info(prog, made, &info));
  return u->host.edit->output_set(prog, backward, 0, info.first_result);
}

/* The last value of the forward gets another dtype, and what reads it is none the wiser. */
static aot_status_t lie_about_type(const divider_t *u, aot_prog_t *prog) {
  const aot_graph_t forward = u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_type_t type;
  AOT_TRY(u->host.graph->node_info(prog, u->host.graph->first(prog, forward), &info));
  AOT_TRY(u->host.graph->value_type(prog, info.first_result, &type));
  type.dtype = AOT_F64;
  return u->host.edit->type_set(prog, info.first_result, &type);
}

static aot_status_t apply(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  const divider_t *u = p->head.self;
  AOT_TRY(pt_apply(&u->host, ctx, prog, cut, &how_to_divide));
  if (is(u->how, "swap")) return swap_gradients(u, prog);
  if (is(u->how, "drop")) return list_outputs(u, prog, AOT_GRAPH_BACKWARD, 1, 0);
  if (is(u->how, "turn")) return list_outputs(u, prog, AOT_GRAPH_BACKWARD, 0, 1);
  if (is(u->how, "deaf")) return list_outputs(u, prog, AOT_GRAPH_FORWARD, 1, 0);
  if (is(u->how, "zero")) return zero_gradient(u, prog);
  return is(u->how, "type") ? lie_about_type(u, prog) : AOT_OK;
}

static void destroy_divider(const aot_table_t *p) { free(p->self); }

static aot_status_t create_divider(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out_table) {
  divider_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  u->how = opts->values[0].s;
  u->table = (aot_partition_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy_divider},
                               .choose = choose};
  if (!is_impossible(u->how)) u->table.apply = apply;
  *out_table = &u->table.head;
  return AOT_OK;
}

/* ---- the backend ---- */

static aot_status_t accept(aot_prog_t *prog, const aot_host_t *host, const aot_verdict_sink_t *sink) {
  const uint32_t n = host->graph->n_graphs(prog);
  for (uint32_t g = 0; g < n; g++) {
    for (aot_node_t k = host->graph->first(prog, (aot_graph_t){g}); k.id != AOT_NO_ID; k = host->graph->next(prog, k)) {
      const aot_verdict_t v = {.struct_size = sizeof v, .accepted = 1, .node = k};
      AOT_TRY(sink->put(sink, &v));
    }
  }
  return AOT_OK;
}

typedef struct zeros_unit {
  zeros_t zeros;
  aot_host_t host;
} zeros_unit_t;

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  (void)ctx;
  return accept(prog, &((const zeros_unit_t *)b->head.self)->host, sink);
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  (void)b, (void)ctx, (void)prog;
  return sink->write(sink, "zeros", 5);
}

/* The third forward is one too many. */
static aot_status_t run(void *self, const hc_run_t *run) {
  zeros_t *z = self;
  const uint64_t at = is(z->how, "crash-at-once") ? 1 : 3;
  if (run->kind == AOT_GRAPH_FORWARD && ++z->n_runs == at) misbehave(z->how);
  for (uint64_t i = 0; i < run->n_outputs; i++)
    if (run->outputs[i].data) memset(run->outputs[i].data, 0, (size_t)run->outputs[i].nbytes);
  return AOT_OK;
}

static void destroy_exe(const aot_table_t *e) { (void)e; }

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  zeros_t *z = &((zeros_unit_t *)b->head.self)->zeros;
  (void)ctx, (void)bytes, (void)nbytes;
  if (!hc_exe_init(&z->exe, device, run, z)) return AOT_E_UNIMPLEMENTED;
  z->exe.table.head.destroy = destroy_exe;
  *out = &z->exe.table;
  return AOT_OK;
}

static void destroy_zeros(const aot_table_t *b) { free(b->self); }

static aot_status_t create_zeros(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                 const aot_table_t **out_table) {
  zeros_unit_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  u->zeros.how = opts->values[0].s;
  u->zeros.table = (aot_backend_t){
      .head = {.struct_size = sizeof u->zeros.table, .self = u, .destroy = destroy_zeros},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out_table = &u->zeros.table.head;
  return AOT_OK;
}

/* ---- the plugin ---- */

#define ID "arms"
#define HELP "loses comparisons"
static const aot_str_t choices[] = {AOT_STR_INIT("well"),  AOT_STR_INIT("crash"),   AOT_STR_INIT("exit"),
                                    AOT_STR_INIT("hang"),  AOT_STR_INIT("garbage"), AOT_STR_INIT("swap"),
                                    AOT_STR_INIT("drop"),  AOT_STR_INIT("turn"),    AOT_STR_INIT("deaf"),
                                    AOT_STR_INIT("zero"),  AOT_STR_INIT("type"),    AOT_STR_INIT("late"),
                                    AOT_STR_INIT("twice"), AOT_STR_INIT("nothing"), AOT_STR_INIT("crash-at-once")};
static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_ENUM,
    .flags = AOT_OPT_AFFECTS_OUTPUT,
    .name = AOT_STR_INIT("how"),
    .help = AOT_STR_INIT("in what way"),
    .preset = {.s = AOT_STR_INIT("well")},
    .choices = choices,
    .n_choices = sizeof choices / sizeof *choices,
}};
static const aot_contract_t divider_contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
static const aot_contract_t zeros_contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
};
static const aot_unit_t divider =
    AOT_UNIT("partition/1", "divider", "1.0.0", HELP, .options = options, .n_options = 1,
             .option_stride = sizeof *options, .contract = &divider_contract, .create = create_divider);
static const aot_unit_t zeros =
    AOT_UNIT("backend/2", "zeros", "1.0.0", HELP, .options = options, .n_options = 1, .option_stride = sizeof *options,
             .contract = &zeros_contract, .create = create_zeros);
static const aot_unit_t *const units[] = {&divider, &zeros};

AOT_PLUGIN(ID, "1.0.0", "tests", "Apache-2.0", units,
           AOT_NOTE_UNIT("partition/1", "divider", HELP) "," AOT_NOTE_UNIT("backend/2", "zeros", HELP));
