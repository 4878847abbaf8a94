/* autograd: options, contract and descriptor of the pass that turns a forward graph into a joint graph. */
#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/ext/coverage.h>
#include <aot/ext/report.h>
#include <aot/ext/uncovered.h>
#include <aot/pass.h>

#include "joint.h"
#include "no_rule.h"

#define ID "autograd"
#define HELP "differentiates the forward graph into a joint graph with tangents and gradients"

typedef struct autograd_unit {
  aot_pass_t table;
  aot_host_t host;
  int forward_only; /* allowed: a program in which nothing requires a gradient */
  aot_ext_coverage_t coverage;
  aot_ext_uncovered_t uncovered;
} autograd_unit_t;

static aot_status_t complain(const autograd_unit_t *u, aot_ctx_t *ctx, int32_t severity, const char *code,
                             const char *message, const char *hint) {
  aot_diag_t d = kit_diag(severity, code, message);
  d.hint = aot_str(hint);
  return kit_report(&u->host, ctx, AOT_E_PRECONDITION, &d);
}

/* There is one forward graph, and it holds no gradients yet. */
static aot_status_t check_input(const autograd_unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t *out) {
  uint32_t i, n;
  *out = u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
  if (out->id == AOT_NO_ID)
    return complain(u, ctx, AOT_SEVERITY_ERROR, "autograd.no-forward",
                    "the program has no forward graph to differentiate", "autograd comes before the partition, once");
  n = u->host.graph->n_outputs(prog, *out);
  for (i = 0; i < n; i++)
    if (u->host.graph->outputs(prog, *out)[i].role == AOT_ROLE_GRADIENT)
      return complain(u, ctx, AOT_SEVERITY_ERROR, "autograd.already-joint",
                      "the forward graph already returns gradients (exported with its backward); remove stage autograd",
                      "or export the model without its backward");
  return AOT_OK;
}

static void tell(const autograd_unit_t *u, aot_ctx_t *ctx, const char *name, double value, const char *what) {
  const aot_ext_report_t *report = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (report) report->number(report, ctx, aot_str(name), value, aot_str(what));
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const autograd_unit_t *u = p->head.self;
  ag_bound_t *rules;
  ag_shared_t shared = {0};
  ag_joint_t j;
  aot_graph_t forward;
  AOT_TRY(check_input(u, ctx, prog, &forward));
  ag_joint_begin(&j, &u->host, ctx, prog, forward);
  j.site.shared = &shared;
  rules = em_scratch(&j.a, u->host.graph->n_ops(prog), sizeof *rules);
  if (!rules) return AOT_E_EXHAUSTED;
  j.site.rules = rules;
  ag_bind(&j.a, rules);
  if (j.a.status != AOT_OK) return j.a.status;
  AOT_TRY(ag_joint_differentiate(&j));
  if (j.n_gradients == 0) {
    aot_status_t status =
        complain(u, ctx, u->forward_only ? AOT_SEVERITY_INFO : AOT_SEVERITY_ERROR, "autograd.nothing-to-differentiate",
                 j.n_tangents ? "no gradient reaches a leaf" : "no output depends on a leaf that requires a gradient",
                 "run a pipeline without autograd, or set its option when-nothing to forward-only");
    if (!u->forward_only) return status;
  }
  AOT_TRY(u->host.edit->graph_erase(prog, j.forward));
  tell(u, ctx, "forward-nodes", j.n_nodes, "nodes");
  tell(u, ctx, "backward-nodes", j.site.n_made, "nodes");
  tell(u, ctx, "decomposed-nodes", j.n_decomposed, "nodes");
  tell(u, ctx, "gradients", j.n_gradients, "");
  if (shared.n) tell(u, ctx, "regions-differentiated", shared.n, "");
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *p, const char *id) {
  const autograd_unit_t *u = p->self;
  if (strcmp(id, AOT_EXT_COVERAGE) == 0) return &u->coverage;
  return strcmp(id, AOT_EXT_UNCOVERED) == 0 ? &u->uncovered : NULL;
}

/* What the unit says of operators: those with a rule, and those left without one on purpose. */
static aot_status_t fill_coverage(autograd_unit_t *u, aot_ctx_t *ctx) {
  const uint32_t n = ag_n_rules(), n_left = ag_n_no_rules();
  aot_str_t *ops = u->host.alloc(&u->host, ctx, AOT_ARENA_SESSION, 8, n * sizeof *ops);
  aot_str_t *left = u->host.alloc(&u->host, ctx, AOT_ARENA_SESSION, 8, n_left * sizeof *left);
  aot_str_t *reasons = u->host.alloc(&u->host, ctx, AOT_ARENA_SESSION, 8, n_left * sizeof *reasons);
  if (!ops || !left || !reasons) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) ops[i] = aot_str(ag_rule_at(i)->op);
  for (uint32_t i = 0; i < n_left; i++) {
    left[i] = aot_str(ag_no_rule_at(i)->op);
    reasons[i] = aot_str(ag_no_rule_at(i)->reason);
  }
  u->coverage = (aot_ext_coverage_t){.struct_size = sizeof u->coverage, .ops = ops, .n_ops = n};
  u->uncovered =
      (aot_ext_uncovered_t){.struct_size = sizeof u->uncovered, .ops = left, .reasons = reasons, .n_ops = n_left};
  return AOT_OK;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  autograd_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  AOT_TRY(fill_coverage(u, ctx));
  u->forward_only = aot_str_eq(opts->values[0].s, aot_str("forward-only"));
  u->table = (aot_pass_t){
      .head = {.struct_size = sizeof u->table, .self = u, .get_ext = get_ext},
      .run = run,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_str_t when_nothing[] = {AOT_STR_INIT("error"), AOT_STR_INIT("forward-only")};
/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("when-nothing"),
     .help = AOT_STR_INIT("what to do when nothing requires a gradient: fail, or leave a joint graph without gradients"),
     .n_choices = 2, .choices = when_nothing, .preset = {.s = AOT_STR_INIT("error")}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_PARTITIONED),
};

AOT_PLUGIN_ONE("pass/1", ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
