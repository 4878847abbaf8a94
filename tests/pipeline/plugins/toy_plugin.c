/* A tiny world for the tests of the pipeline layer: four operators, passes, a partition, a backend, an importer, each
 * as small as it can be. No test of this folder needs a real plugin. */
#include "kit/base/host_call.h"
#include <aot/backend.h>
#include <aot/ext/coverage.h>
#include <aot/ext/env.h>
#include <aot/ext/report.h>
#include <aot/import.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/opset.h>
#include <aot/partition.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <stdlib.h>

typedef struct toy_plugin_unit {
  union {
    aot_pass_t pass;
    aot_opset_t opset;
    aot_backend_t backend;
    aot_import_t import;
    aot_partition_t partition;
  } table;
  aot_host_t host;
  const aot_opts_t *opts;
} toy_plugin_unit_t;

static toy_plugin_unit_t *unit_make(const aot_host_t *host, const aot_opts_t *opts) {
  toy_plugin_unit_t *u = calloc(1, sizeof *u);
  if (u && aot_import(&u->host, sizeof u->host, host) != AOT_OK) {
    free(u);
    return NULL;
  }
  if (u) u->opts = opts;
  return u;
}

static aot_status_t tell(const toy_plugin_unit_t *u, aot_ctx_t *ctx, aot_node_t node, const char *message) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str("toy.complaint");
  d.message = aot_str(message);
  d.node = node;
  d.value = aot_no_value();
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_UNIMPLEMENTED;
}

static int text_is(aot_str_t s, const char *text) { return aot_str_eq(s, aot_str(text)); }

/* ---- opset/1 "toy": every operator is (Tensor a, Tensor b) -> Tensor of a's type ---- */

#define SCHEMA "(Tensor a, Tensor b) -> Tensor"
static const aot_schema_arg_t args[] = {{.name = AOT_STR_INIT("a"), .type = AOT_STYPE_TENSOR},
                                        {.name = AOT_STR_INIT("b"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR}};
#define OP(name_)                                                                                                      \
  {                                                                                                                    \
    .struct_size = sizeof(aot_op_desc_t), .flags = AOT_OP_POINTWISE, .name = AOT_STR_INIT(name_),                      \
    .schema = AOT_STR_INIT(SCHEMA), .args = args, .results = results, .n_args = 2, .n_results = 1                      \
  }
static const aot_op_desc_t op_add = OP("toy.add"), op_mul = OP("toy.mul"), op_muladd = OP("toy.muladd"),
                           op_whole = OP("toy.whole"), op_endless = OP("toy.endless"), op_rather = OP("toy.rather"),
                           op_torn = OP("toy.torn"), op_plain = OP("toy.plain");
/* add, mul: the backend takes them. muladd(a, b) = add(mul(a, b), b). whole: no decomposition. endless: becomes
 * itself. rather, torn, plain: the backend takes them, and would rather have parts; rather is muladd, torn gives up in
 * the middle and complains, plain has no decomposition. */
static const aot_op_desc_t *const ops[] = {&op_add,     &op_mul,    &op_muladd, &op_whole,
                                           &op_endless, &op_rather, &op_torn,   &op_plain};

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *a,
                          uint32_t n, const aot_type_sink_t *sink) {
  const toy_plugin_unit_t *u = o->head.self;
  aot_type_t t;
  (void)ctx, (void)local, (void)n;
  AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)a[0].u.i}, &t));
  return sink->put(sink, &t);
}

static aot_status_t emit(const toy_plugin_unit_t *u, aot_prog_t *prog, aot_node_t before, const char *op, aot_value_t a,
                         aot_value_t b, aot_value_t *out) {
  const aot_arg_t list[] = {aot_arg_value(a), aot_arg_value(b)};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  aot_node_spec_t spec = {.struct_size = sizeof spec, .n_args = 2, .args = list, .origin = aot_no_origin()};
  AOT_TRY(u->host.graph->node_info(prog, before, &info));
  spec.op = u->host.graph->op_find(prog, aot_str(op));
  AOT_TRY(u->host.edit->node_create(prog, info.graph, &spec, before, &made));
  info.struct_size = sizeof info;
  AOT_TRY(u->host.graph->node_info(prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                              aot_value_t *out_values) {
  const toy_plugin_unit_t *u = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t product;
  (void)ctx;
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_value_t a = {info.operands[0]}, b = {info.operands[1]};
  if (local == 4) return emit(u, prog, node, "toy.endless", a, b, out_values);
  if (local != 2 && local != 5 && local != 6) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(emit(u, prog, node, "toy.mul", a, b, &product));
  if (local == 6) return tell(u, ctx, node, "torn in the middle");
  return emit(u, prog, node, "toy.add", product, b, out_values);
}

static void opset_destroy(const aot_table_t *o) { free(o->self); }

static aot_status_t opset_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                 const aot_table_t **out) {
  toy_plugin_unit_t *u = unit_make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.opset = (aot_opset_t){
      .head = {.struct_size = sizeof(aot_opset_t), .self = u, .destroy = opset_destroy},
      .ops = ops,
      .n_ops = sizeof ops / sizeof *ops,
      .infer = infer,
      .decompose = decompose,
  };
  *out = &u->table.opset.head;
  return AOT_OK;
}

/* ---- pass/1 "toy-fuse": add(mul(a, b), b) is left alone; every mul becomes a muladd when `how` says so ---- */

static const aot_str_t how_choices[] = {AOT_STR_INIT("none"), AOT_STR_INIT("all"), AOT_STR_INIT("first")};
static const aot_option_t fuse_options[] = {
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_ENUM,
        .name = AOT_STR_INIT("how"),
        .help = AOT_STR_INIT("which nodes to rewrite"),
        .choices = how_choices,
        .n_choices = 3,
        .preset = {.s = AOT_STR_INIT("all")},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_F64,
        .flags = AOT_OPT_HAS_RANGE,
        .name = AOT_STR_INIT("budget"),
        .help = AOT_STR_INIT("share of nodes"),
        .unit = AOT_STR_INIT("fraction"),
        .preset = {.f = 0.5},
        .min = 0,
        .max = 1,
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_I64,
        .flags = AOT_OPT_HAS_RANGE,
        .name = AOT_STR_INIT("rounds"),
        .help = AOT_STR_INIT("how often"),
        .preset = {.i = 1},
        .min = 1,
        .max = 1e18,
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_BOOL,
        .name = AOT_STR_INIT("report"),
        .help = AOT_STR_INIT("report numbers"),
        .preset = {.i = 1},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_STRING,
        .name = AOT_STR_INIT("label"),
        .help = AOT_STR_INIT("any text"),
        .preset = {.s = AOT_STR_INIT("x")},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_PATH,
        .name = AOT_STR_INIT("table"),
        .help = AOT_STR_INIT("a file"),
        .preset = {.s = AOT_STR_INIT("")},
    },
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_BYTES,
        .flags = AOT_OPT_HAS_RANGE,
        .name = AOT_STR_INIT("limit"),
        .help = AOT_STR_INIT("most bytes"),
        .unit = AOT_STR_INIT("bytes"),
        .preset = {.i = 1 << 20},
        .min = 0,
        .max = 1e12,
    },
};

static void report(const toy_plugin_unit_t *u, aot_ctx_t *ctx, const char *name, double value) {
  const aot_ext_report_t *ext = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (ext) ext->number(ext, ctx, aot_str(name), value, aot_str("nodes"));
}

static aot_status_t fuse_run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const toy_plugin_unit_t *u = p->head.self;
  const aot_graph_api_t *g = u->host.graph;
  const aot_ext_env_t *env = aot_ext(&u->host.head, AOT_EXT_ENV);
  const aot_op_t mul = g->op_find(prog, aot_str("toy.mul"));
  uint32_t n = 0;
  if (env) env->get(env, ctx, "TOY_FUSE");
  for (aot_node_t k = g->first(prog, g->graph_find(prog, AOT_GRAPH_FORWARD)), next; k.id != AOT_NO_ID; k = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_value_t made;
    next = g->next(prog, k);
    AOT_TRY(g->node_info(prog, k, &info));
    if (info.op.id != mul.id || text_is(u->opts->values[0].s, "none") || (n && text_is(u->opts->values[0].s, "first")))
      continue;
    const aot_value_t old = info.first_result;
    AOT_TRY(emit(u, prog, k, "toy.muladd", (aot_value_t){info.operands[0]}, (aot_value_t){info.operands[1]}, &made));
    AOT_TRY(u->host.edit->uses_replace(prog, old, made));
    AOT_TRY(u->host.edit->node_erase(prog, k));
    n++;
  }
  if (u->opts->values[3].i) report(u, ctx, "fused", n);
  return AOT_OK;
}

static void pass_destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t pass_make(const aot_host_t *host, const aot_opts_t *opts, const aot_table_t **out,
                              aot_status_t (*run)(const aot_pass_t *, aot_ctx_t *, aot_prog_t *)) {
  toy_plugin_unit_t *u = unit_make(host, opts);
  if (!u) return AOT_E_EXHAUSTED;
  u->table.pass = (aot_pass_t){
      .head = {.struct_size = sizeof(aot_pass_t), .self = u, .destroy = pass_destroy},
      .run = run,
  };
  *out = &u->table.pass.head;
  return AOT_OK;
}

static aot_status_t fuse_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                const aot_table_t **out) {
  (void)self, (void)ctx;
  return pass_make(host, opts, out, fuse_run);
}

/* ---- pass/1 "toy-functional", "toy-joint", "toy-strict": contracts and a required option ---- */

static aot_status_t nothing_run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  (void)p, (void)ctx, (void)prog;
  return AOT_OK;
}

static aot_status_t nothing_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  (void)self, (void)ctx;
  return pass_make(host, opts, out, nothing_run);
}

static const aot_option_t strict_options[] = {
    {
        .struct_size = sizeof(aot_option_t),
        .kind = AOT_OPT_I64,
        .flags = AOT_OPT_REQUIRED,
        .name = AOT_STR_INIT("seed"),
        .help = AOT_STR_INIT("where to begin"),
    },
};

/* ---- partition/1 "toy-partition": its contract is what the tests look at ---- */

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const aot_cut_t cut = {.struct_size = sizeof cut};
  (void)p, (void)ctx, (void)prog;
  return sink->put(sink, &cut);
}

static aot_status_t apply(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  (void)prog, (void)cut;
  return tell(p->head.self, ctx, aot_no_node(), "the toy partition divides nothing");
}

static void partition_destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t partition_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                     const aot_opts_t *opts, const aot_table_t **out) {
  toy_plugin_unit_t *u = unit_make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.partition = (aot_partition_t){
      .head = {.struct_size = sizeof(aot_partition_t), .self = u, .destroy = partition_destroy},
      .choose = choose,
      .apply = apply,
  };
  *out = &u->table.partition.head;
  return AOT_OK;
}

/* ---- backend/2 "toy-backend": takes add and mul; the artifact is four bytes ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const aot_graph_api_t *g = ((const toy_plugin_unit_t *)b->head.self)->host.graph;
  (void)ctx;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t k = g->first(prog, (aot_graph_t){i}); k.id != AOT_NO_ID; k = g->next(prog, k)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_verdict_t v = {.struct_size = sizeof v, .node = k, .reason = AOT_STR_INIT("only add and mul run on a toy")};
      AOT_TRY(g->node_info(prog, k, &info));
      const aot_str_t name = g->op_desc(prog, info.op)->name;
      v.accepted = text_is(name, "toy.add") || text_is(name, "toy.mul");
      if (text_is(name, "toy.rather") || text_is(name, "toy.torn") || text_is(name, "toy.plain")) v.accepted = 2;
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  (void)b, (void)ctx, (void)prog;
  AOT_TRY(sink->write(sink, "to", 2));
  return sink->write(sink, "y!", 2);
}

static aot_status_t exe_run(void *self, const hc_run_t *run) {
  if (run->kind == AOT_GRAPH_UPDATE) abort(); /* a test requests it */
  return self && run->n_inputs + run->n_outputs < 100 ? AOT_OK : AOT_E_INVALID;
}

static void exe_destroy(const aot_table_t *e) { free(e->self); }

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  (void)ctx;
  if (nbytes != 4 || memcmp(bytes, "toy!", 4) != 0) return tell(b->head.self, ctx, aot_no_node(), "not a toy artifact");
  hc_exe_t *e = calloc(1, sizeof *e);
  if (!e || !hc_exe_init(e, device, exe_run, e)) return AOT_E_EXHAUSTED;
  e->table.head.destroy = exe_destroy;
  *out = &e->table;
  return AOT_OK;
}

static void backend_destroy(const aot_table_t *b) { free(b->self); }

static const void *backend_ext(const aot_table_t *b, const char *id) {
  static const aot_str_t names[] = {AOT_STR_INIT("toy.mul"), AOT_STR_INIT("toy.add")};
  static const aot_ext_coverage_t coverage = {sizeof coverage, 0, names, 2};
  (void)b;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &coverage : NULL;
}

static aot_status_t backend_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  toy_plugin_unit_t *u = unit_make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.backend = (aot_backend_t){
      .head = {.struct_size = sizeof(aot_backend_t), .self = u, .destroy = backend_destroy, .get_ext = backend_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.backend.head;
  return AOT_OK;
}

/* ---- import/1 "toy-import": a file "TOY op op .." becomes a chain of these operators over two inputs ---- */

static aot_status_t probe(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, int32_t *out_score) {
  (void)i, (void)ctx;
  *out_score = file->nbytes >= 3 && memcmp(file->data, "TOY", 3) == 0 ? 100 : 0;
  return AOT_OK;
}

static aot_status_t add_input(const toy_plugin_unit_t *u, aot_prog_t *prog, aot_graph_t g, const aot_type_t *t,
                              const char *name, uint32_t ordinal, aot_value_t *out) {
  const aot_str_t names[] = {aot_str(name)};
  const aot_leaf_info_t leaf = {
      .struct_size = sizeof leaf,
      .role = ordinal ? AOT_ROLE_USER_INPUT : AOT_ROLE_PARAMETER,
      .flags = ordinal ? 0 : AOT_LEAF_REQUIRES_GRAD,
      .n_names = 1,
      .names = names,
      .type = *t,
  };
  aot_leaf_t made;
  AOT_TRY(u->host.edit->leaf_create(prog, &leaf, &made));
  return u->host.edit->input_add(prog, g, leaf.role, made.id, t, names[0], out);
}

static aot_status_t add_node(const toy_plugin_unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t g,
                             aot_str_t word, aot_value_t b, aot_value_t *v) {
  char name[64] = "toy.";
  const aot_arg_t list[] = {aot_arg_value(*v), aot_arg_value(b)};
  const aot_origin_info_t from = {
      .struct_size = sizeof from,
      .line = 7,
      .source_file = AOT_STR_INIT("toy.py"),
      .module_path = AOT_STR_INIT("toy.block"),
      .node_name = word,
      .parent = aot_no_origin(),
  };
  aot_node_spec_t spec = {.struct_size = sizeof spec, .n_args = 2, .args = list};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  if (word.size > 50) return tell(u, ctx, aot_no_node(), "a word is too long");
  memcpy(name + 4, word.data, (size_t)word.size);
  spec.op = u->host.graph->op_find(prog, aot_str(name));
  if (spec.op.id == AOT_NO_ID) return tell(u, ctx, aot_no_node(), "the file names an operator that is not a toy");
  AOT_TRY(u->host.edit->origin_create(prog, &from, &spec.origin));
  AOT_TRY(u->host.edit->node_create(prog, g, &spec, aot_no_node(), &made));
  AOT_TRY(u->host.graph->node_info(prog, made, &info));
  *v = info.first_result;
  return AOT_OK;
}

static aot_status_t read(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, aot_prog_t *prog) {
  const toy_plugin_unit_t *u = i->head.self;
  const int64_t sizes[] = {2, 3};
  const aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 2, .sizes = sizes};
  const char *s = file->data, *end = s + file->nbytes;
  aot_graph_t g;
  aot_value_t v, w;
  AOT_TRY(u->host.edit->graph_create(prog, AOT_GRAPH_FORWARD, aot_str("main"), &g));
  AOT_TRY(add_input(u, prog, g, &t, "w", 0, &w));
  AOT_TRY(add_input(u, prog, g, &t, "x", 1, &v));
  for (s += 3; s < end;) {
    while (s < end && *s <= ' ') s++;
    const char *begin = s;
    while (s<end && * s> ' ') s++;
    if (s > begin) AOT_TRY(add_node(u, ctx, prog, g, (aot_str_t){begin, (uint64_t)(s - begin)}, w, &v));
  }
  return u->host.edit->output_add(prog, g, AOT_ROLE_USER_OUTPUT, 0, v, aot_str("y"));
}

static void import_destroy(const aot_table_t *i) { free(i->self); }

static aot_status_t import_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                  const aot_opts_t *opts, const aot_table_t **out) {
  toy_plugin_unit_t *u = unit_make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.import = (aot_import_t){
      .head = {.struct_size = sizeof(aot_import_t), .self = u, .destroy = import_destroy},
      .probe = probe,
      .read = read,
  };
  *out = &u->table.import.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

#define CONTRACT(...)                                                                                                  \
  { .struct_size = sizeof(aot_contract_t), __VA_ARGS__ }
static const aot_contract_t fuse_contract =
    CONTRACT(.needs = AOT_NAMES(AOT_PROP_IMPORTED), .refuses = AOT_NAMES(AOT_PROP_LOWERED));
static const aot_contract_t functional_contract =
    CONTRACT(.needs = AOT_NAMES(AOT_PROP_IMPORTED), .gives = AOT_NAMES(AOT_PROP_FUNCTIONAL));
static const aot_contract_t joint_contract =
    CONTRACT(.needs = AOT_NAMES(AOT_PROP_FUNCTIONAL), .gives = AOT_NAMES(AOT_PROP_JOINT),
             .refuses = AOT_NAMES(AOT_PROP_JOINT));
static const aot_contract_t partition_contract =
    CONTRACT(.needs = AOT_NAMES(AOT_PROP_JOINT), .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
             .drops = AOT_NAMES(AOT_PROP_JOINT), .refuses = AOT_NAMES(AOT_PROP_PARTITIONED));
static const aot_contract_t backend_contract =
    CONTRACT(.needs = AOT_NAMES(AOT_PROP_FUNCTIONAL), .gives = AOT_NAMES(AOT_PROP_LOWERED),
             .refuses = AOT_NAMES(AOT_PROP_JOINT));

#define UNITS(X)                                                                                                       \
  X(u_opset, "opset/1", "toy", "five operators", NULL, 0, NULL, opset_create)                                          \
  X(u_import, "import/1", "toy-import", "reads toy files", NULL, 0, NULL, import_create)                               \
  X(u_fuse, "pass/1", "toy-fuse", "rewrites mul", fuse_options, 7, &fuse_contract, fuse_create)                        \
  X(u_functional, "pass/1", "toy-functional", "says that a program is functional", NULL, 0, &functional_contract,      \
    nothing_create)                                                                                                    \
  X(u_joint, "pass/1", "toy-joint", "claims a joint graph", NULL, 0, &joint_contract, nothing_create)                  \
  X(u_strict, "pass/1", "toy-strict", "wants its option", strict_options, 1, NULL, nothing_create)                     \
  X(u_partition, "partition/1", "toy-partition", "divides nothing", NULL, 0, &partition_contract, partition_create)    \
  X(u_backend, "backend/2", "toy-backend", "compiles to four bytes", NULL, 0, &backend_contract, backend_create)

#define AS_UNIT(name_, kind_, id_, help_, options_, n_, contract_, create_)                                            \
  static const aot_unit_t name_ = {.struct_size = sizeof(aot_unit_t),                                                  \
                                   .kind = AOT_STR_INIT(kind_),                                                        \
                                   .id = AOT_STR_INIT(id_),                                                            \
                                   .version = AOT_STR_INIT("0.1.0"),                                                   \
                                   .help = AOT_STR_INIT(help_),                                                        \
                                   .options = options_,                                                                \
                                   .n_options = n_,                                                                    \
                                   .option_stride = sizeof(aot_option_t),                                              \
                                   .contract = contract_,                                                              \
                                   .create = create_};
UNITS(AS_UNIT)
#define AS_POINTER(name_, kind_, id_, help_, options_, n_, contract_, create_) &name_,
static const aot_unit_t *const units[] = {UNITS(AS_POINTER)};
static const aot_plugin_t plugin = {
    .struct_size = sizeof(aot_plugin_t),
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = AOT_PLUGIN_LEAST_MINOR,
    .id = AOT_STR_INIT("toy"),
    .vendor = AOT_STR_INIT("tests"),
    .version = AOT_STR_INIT("0.1.0"),
    .build_id = AOT_STR_INIT("toy-build-1"),
    .units = units,
    .n_units = sizeof units / sizeof *units,
};

/* clang-format off */
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("toy", "0.1.0")
                AOT_NOTE_UNIT("opset/1", "toy", "five operators") ","
                AOT_NOTE_UNIT("import/1", "toy-import", "reads toy files") ","
                AOT_NOTE_UNIT("pass/1", "toy-fuse", "rewrites mul") ","
                AOT_NOTE_UNIT("pass/1", "toy-functional", "says that a program is functional") ","
                AOT_NOTE_UNIT("pass/1", "toy-joint", "claims a joint graph") ","
                AOT_NOTE_UNIT("pass/1", "toy-strict", "wants its option") ","
                AOT_NOTE_UNIT("partition/1", "toy-partition", "divides nothing") ","
                AOT_NOTE_UNIT("backend/2", "toy-backend", "compiles to four bytes")
                AOT_NOTE_TAIL);
/* clang-format on */

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
