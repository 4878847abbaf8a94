#include "overlap_step.h"

#include "apply_plan.h"
#include "exchange.h"
#include "jobs_of_step.h"
#include "kit/graph/snap_births.h"
#include "kept_gathers.h"
#include "step_nodes.h"
#include <stdlib.h>

/* What represents collectives and copies of one rank becomes them. */
static aot_status_t write_out(em_t *e) {
  const aot_graph_api_t *g = e->host->graph;
  for (aot_node_t n = g->first(e->prog, e->graph), next; n.id != AOT_NO_ID; n = next) {
    aot_value_t sum;
    next = g->next(e->prog, n);
    AOT_TRY(em_look(e, n));
    if (!ov_is_node(e, "aot.sum_over_ranks.default") && !ov_is_node(e, "aot.copy_to_ranks.default") &&
        !ov_is_node(e, "aot.all_gather_as.default"))
      continue;
    const aot_value_t was = e->info.first_result;
    const aot_status_t status = e->host->edit->decompose(e->prog, n, &sum);
    /* of complex numbers, say: the backend reports what it does not take */
    if (status == AOT_E_UNIMPLEMENTED) continue;
    AOT_TRY(status);
    em_take_over(e, was, sum, 1);
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, n));
    AOT_TRY(e->status);
  }
  return AOT_OK;
}

/* What is handed over; those that go together are one collective, whose shares are of all its tensors. */
static aot_status_t count_traffic(ov_rewriting_t *r, ov_traffic_t *out) {
  em_t *e = &r->e;
  const aot_graph_api_t *g = ov_graph_of(r);
  for (aot_node_t n = g->first(e->prog, e->graph); n.id != AOT_NO_ID; n = g->next(e->prog, n)) {
    AOT_TRY(em_look(e, n));
    const ov_form_t *form = ov_form_of(e, 1);
    if (!form) continue;
    const aot_node_info_t info = e->info;
    const ov_among_t among = ov_among_of(&info.args[info.n_args - 1], r->options->n_ranks);
    const aot_type_t type = em_type(e, em_v(info.first_result));
    uint64_t whole = 0;
    for (uint32_t i = 0; i < info.n_results; i++)
      whole += ov_nbytes(e, (aot_value_t){info.first_result.id + i}) * (form->kind == OV_SCATTER ? among.n_ranks : 1);
    ov_traffic_add(out, form->kind, &among, whole, aot_dtype_size(type.dtype));
  }
  return e->status;
}

static aot_status_t run_graph(ov_rewriting_t *r, ov_counts_t *out) {
  em_t *e = &r->e;
  ov_plan_t plan = {0};
  AOT_TRY(write_out(e));
  if (r->options->keeps) AOT_TRY(ov_keep_gathers(e, &out->n_kept));
  if (r->options->exchange) AOT_TRY(ov_exchange(e, r->options->exchange, &out->n_exchanged));
  AOT_TRY(ov_find_jobs(r));
  const ov_problem_t problem = {.n_nodes = r->n,
                                .ns = r->ns,
                                .operand_begin = r->operand_begin,
                                .operands = r->operands,
                                .jobs = r->jobs,
                                .n_jobs = r->n_jobs,
                                .bucket = r->options->bucket,
                                .ahead = r->options->ahead,
                                .margin = r->options->margin,
                                .link = r->options->link};
  aot_status_t status = ov_arrange(&problem, &plan) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = ov_apply(r, &plan);
  if (status == AOT_OK) status = count_traffic(r, &out->traffic);
  out->n_collectives += r->n_jobs;
  out->n_started += plan.n_buckets;
  out->compute_ns += plan.compute_ns;
  out->collective_ns += plan.collective_ns;
  out->step_ns += plan.step_ns;
  ov_plan_deinit(&plan);
  return status == AOT_OK ? ov_memory_of_step(e, &out->memory) : status;
}

/* Values whose sizes a run distinguishes are withheld from each other by backends, and may be moved: such programs
 * stay. */
static aot_status_t has_births(const aot_host_t *host, aot_prog_t *prog, int *out) {
  const aot_snapshot_t *s;
  AOT_TRY(host->graph->snapshot(prog, &s));
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  const aot_status_t status = births && sn_births(s, births) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  *out = 0;
  for (uint32_t n = 1; status == AOT_OK && n < s->nodes.count; n++) *out |= births[n];
  free(births);
  return status;
}

aot_status_t ov_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const ov_options_t *options,
                    ov_counts_t *out) {
  int is_told_by_run;
  AOT_TRY(has_births(host, prog, &is_told_by_run));
  for (uint32_t g = 1, n = host->graph->n_graphs(prog); g < n && !is_told_by_run; g++) {
    int32_t kind;
    aot_str_t name;
    if (host->graph->graph_info(prog, (aot_graph_t){g}, &kind, &name) != AOT_OK || kind != AOT_GRAPH_STEP) continue;
    ov_rewriting_t r = {.e = em_make(host, ctx, prog, (aot_graph_t){g}), .options = options};
    r.e.code = "overlap";
    r.e.what = "the step";
    AOT_TRY(run_graph(&r, out));
  }
  return AOT_OK;
}
