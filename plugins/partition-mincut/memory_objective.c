#include "memory_objective.h"

#include "pareto_plans.h"
#include "kit/model/ask_costs.h"
#include "kit/model/loop_times.h"
#include "kit/model/sim_graph.h"
#include "kit/model/sim_regions.h"
#include "kit/graph/joint_arrays.h"
#include "kit/partition/save_all.h"
#include <aot/ext/memory.h>
#include <aot/ext/report.h>
#include <aot/ext/trial.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the joint graph for the simulator ---- */

/* Inputs that the backward reads from a slot: user inputs and the like, and leaves that the forward updates
 * (aot/partition.h). */
static void find_slots(const jg_joint_t *j, uint8_t *needs_slot, uint8_t *is_updated) {
  const aot_snapshot_t *s = j->snapshot;
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + j->graph;
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->input_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->output_begin;
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (outputs[i].role == AOT_ROLE_UPDATE && outputs[i].index < s->leaves.count) is_updated[outputs[i].index] = 1;
  for (uint32_t i = 0; i < j->n_inputs; i++) {
    int is_leaf = inputs[i].role <= AOT_ROLE_STATE;
    needs_slot[i] = (uint8_t)(j->input_kind[i] != JG_INPUT_TANGENT &&
                              (!is_leaf || (inputs[i].index < s->leaves.count && is_updated[inputs[i].index])));
  }
}

/* ---- a step in one graph ---- */

typedef struct step_ports {
  mc_one_graph_t one;
  uint8_t *output;
  uint32_t *parameter, *input_of; /* input_of: by leaf */
} step_ports_t;

static uint8_t output_of(const aot_snap_port_t *port, uint32_t loss) {
  const int is_user = port->role == AOT_ROLE_LOSS || port->role == AOT_ROLE_USER_OUTPUT;
  if (is_user) return port->index == loss ? MC_HANDED : MC_DROPPED;
  return port->role == AOT_ROLE_BASE ? MC_DROPPED : MC_HOME;
}

/* Outputs as joint_arrays.c divides them: gradients, and with them the token of the backward; those of the forward. */
static int read_ports(const mc_memory_call_t *call, const jg_joint_t *j, step_ports_t *out) {
  const aot_snapshot_t *s = j->snapshot;
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + j->graph;
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->input_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->output_begin;
  uint32_t n_forward = 0, n_gradients = 0;
  *out = (step_ports_t){
      .output = calloc((size_t)g->n_outputs + 1, 1),
      .parameter = calloc((size_t)g->n_outputs + 1, 4),
      .input_of = calloc((size_t)s->leaves.count + 1, 4),
  };
  if (!out->output || !out->parameter || !out->input_of) return -2;
  memset(out->input_of, 0xff, ((size_t)s->leaves.count + 1) * 4);
  for (uint32_t i = 0; i < g->n_inputs; i++)
    if (inputs[i].role == AOT_ROLE_PARAMETER && inputs[i].index < s->leaves.count) out->input_of[inputs[i].index] = i;
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const int is_gradient = outputs[i].role == AOT_ROLE_GRADIENT && outputs[i].index < s->leaves.count;
    if (is_gradient) out->parameter[n_gradients++] = out->input_of[outputs[i].index];
    else if (outputs[i].role == AOT_ROLE_TOKEN && outputs[i].index == 1) out->parameter[n_gradients++] = JG_NONE;
    else out->output[n_forward++] = output_of(&outputs[i], call->step.loss);
  }
  out->one = (mc_one_graph_t){out->output, out->parameter, call->step.waits};
  return n_forward == j->n_forward_outputs && n_gradients == j->n_gradients ? 0 : -2;
}

static void ports_deinit(step_ports_t *p) {
  free(p->output);
  free(p->parameter);
  free(p->input_of);
}

/* ---- what the backend says ---- */

static const void *extension(const mc_memory_call_t *call, const char *id) { return aot_ext(&call->host->head, id); }

static aot_status_t ask_backend(const mc_memory_call_t *call, const aot_ext_memory_t *memory, const aot_cut_t *cut,
                                uint64_t *out_peak) {
  const aot_memory_plan_t *plan = NULL;
  AOT_TRY(pt_apply(call->host, call->ctx, call->prog, cut, call->how));
  if (memory->plan(memory, call->ctx, call->prog, NULL, 0, &plan) == AOT_OK && plan) *out_peak = plan->peak_nbytes;
  return AOT_OK;
}

/* The backend's peak of a plan, 0 where no backend reports. The program is as before afterwards. */
static aot_status_t measure_on_backend(const mc_memory_call_t *call, const jg_joint_t *j, const uint32_t *saved,
                                       uint32_t n_saved, uint64_t *out_peak) {
  const aot_ext_trial_t *trial = extension(call, AOT_EXT_TRIAL);
  const aot_ext_memory_t *memory = extension(call, AOT_EXT_MEMORY);
  aot_value_t *values = malloc(((size_t)n_saved + 1) * sizeof *values);
  *out_peak = 0;
  aot_status_t status = values ? AOT_OK : jg_no_memory(call->host, call->ctx);
  if (status == AOT_OK && trial && memory) {
    for (uint32_t i = 0; i < n_saved; i++) values[i].id = j->value_id[saved[i]];
    const aot_cut_t cut = {.struct_size = sizeof cut, .n_saved = n_saved, .saved = values};
    status = trial->begin(trial, call->ctx, call->prog);
    if (status == AOT_OK) {
      status = ask_backend(call, memory, &cut, out_peak);
      const aot_status_t undone = trial->undo(trial, call->ctx, call->prog);
      if (status == AOT_OK) status = undone;
    }
  }
  free(values);
  return status;
}

/* ---- what is said ---- */

typedef struct outcome {
  uint32_t chosen;
  uint64_t budget, measured, least; /* measured: 0 where no backend reports; least: only when nothing fits */
  uint64_t all_saved; /* peak with everything saved, of simulation and backend the larger: what fractions are of */
  int is_far_off;     /* the backend keeps much less than the simulation knows of: its numbers alone count */
} outcome_t;

/* Of forward and backward with everything saved, ps. */
static double step_cost(const mc_model_t *m) {
  double ps = 0;
  for (uint32_t n = 0; n < m->j->n_nodes; n++) ps += (double)m->cost[n];
  return ps;
}

static aot_status_t report(const mc_memory_call_t *call, const mc_candidates_t *c, const outcome_t *o) {
  const aot_ext_report_t *r = extension(call, AOT_EXT_REPORT);
  const mc_numbers_t *numbers = &c->list[o->chosen].numbers;
  double cost = (double)numbers->cost * 1e-12, bound;
  const uint64_t room =
      numbers->peak > o->budget ? numbers->peak : o->budget; /* of the simulation, whose bound it is */
  if (mc_candidates_bound(c, room, &bound) != 0) return jg_no_memory(call->host, call->ctx);
  bound *= 1e-12;
  const struct {
    const char *name, *unit;
    double value;
  } rows[] = {{"peak-bytes", "bytes", (double)numbers->peak},
              {"peak-arena-bytes", "bytes", (double)numbers->arena},
              {"budget-bytes", "bytes", (double)o->budget},
              {"all-saved-peak-bytes", "bytes", (double)o->all_saved},
              {"least-peak-bytes", "bytes", (double)c->list[c->n - 1].numbers.peak},
              {"least-peak-bound-bytes", "bytes", (double)c->least},
              {"recompute-cost", "seconds", cost},
              {"cost-lower-bound", "seconds", bound},
              {"step-cost", "seconds", step_cost(c->m) * 1e-12},
              {"gap", "", cost > 0 ? (cost - bound) / cost : 0},
              {"plans-tried", "", c->n_tried},
              {"measured-peak-bytes", "bytes", (double)o->measured}};
  for (size_t i = 0; r && i < sizeof rows / sizeof *rows - (o->measured == 0); i++)
    AOT_TRY(r->number(r, call->ctx, aot_str(rows[i].name), rows[i].value, aot_str(rows[i].unit)));
  return AOT_OK;
}

/* 1: views, loops and work space are the backend's; 0: the neutral model's. */
static aot_status_t report_teller(const mc_memory_call_t *call, int is_told) {
  const aot_ext_report_t *r = extension(call, AOT_EXT_REPORT);
  return r ? r->number(r, call->ctx, aot_str("costs-told"), is_told, aot_str("")) : AOT_OK;
}

static void refuse(const mc_memory_call_t *call, const mc_candidates_t *c, const outcome_t *o) {
  char text[400], a[MC_BUDGET_TEXT], b[MC_BUDGET_TEXT], w[MC_BUDGET_TEXT], l[MC_BUDGET_TEXT];
  const uint64_t least = o->least;
  const int is_least = !o->is_far_off && least <= c->least;
  snprintf(text, sizeof text,
           "budget %s is infeasible: the smallest peak found is %s%s (%.3f of the all-saved peak, %s); %s%s",
           mc_budget_print(o->budget, a), mc_budget_print(least, b), o->measured ? " on this backend" : "",
           ceil(1000 * (double)least / (double)o->all_saved) / 1000, mc_budget_print(o->all_saved, w),
           is_least        ? "no smaller peak exists"
           : o->is_far_off ? "a smaller peak may exist"
                           : "a smaller peak may exist, down to ",
           is_least || o->is_far_off ? "" : mc_budget_print(c->least, l));
  jg_fail(call->host, call->ctx, AOT_E_PRECONDITION, "partition-mincut.budget", text, aot_no_value());
}

/* ---- the choice ---- */

static int is_cancelled(const void *self) {
  const mc_memory_call_t *call = self;
  return call->host->cancelled(call->host, call->ctx);
}

static int told(aot_status_t status) {
  return status == AOT_OK ? 0 : status == AOT_E_EXHAUSTED ? PT_EXHAUSTED : PT_TOLD;
}

/* What plan i takes by the simulation and, where it reports, by the backend: the larger of the two. */
static int measure(const mc_memory_call_t *call, const mc_candidates_t *c, uint32_t i, uint32_t *saved,
                   uint32_t *n_saved, uint64_t *out_measured, uint64_t *out_peak) {
  if (is_cancelled(call)) return PT_STOPPED;
  mc_candidates_plan(c, i, saved, n_saved);
  const int status = told(measure_on_backend(call, c->m->j, saved, *n_saved, out_measured));
  if (status != 0) return status;
  *out_peak = *out_measured > c->list[i].numbers.peak ? *out_measured : c->list[i].numbers.peak;
  return 0;
}

enum { FAR_OFF = 4 }; /* by one part of so many */

/* Kernels and layouts that the simulation does not know may take a backend more: a fraction is then of the backend's
 * number. So it is where the backend takes much less, since its loops write over what they read, or rows run in
 * chunks. */
static int measure_all_saved(const mc_memory_call_t *call, const mc_candidates_t *c, uint32_t *saved, outcome_t *o) {
  uint32_t n_saved;
  uint64_t measured;
  if (pt_save_all(c->m->j, saved, &n_saved) != 0) return -2;
  const int status = told(measure_on_backend(call, c->m->j, saved, n_saved, &measured));
  if (status != 0) return status;
  o->is_far_off = measured && measured < c->all_saved.peak - c->all_saved.peak / FAR_OFF;
  o->all_saved = measured > c->all_saved.peak || o->is_far_off ? measured : c->all_saved.peak;
  return 0;
}

/* Nothing fits: the least peak of all. What is larger by the simulation alone need not be queried about. */
static int find_least(const mc_memory_call_t *call, const mc_candidates_t *c, uint32_t *saved, outcome_t *o) {
  int status = 0;
  o->least = UINT64_MAX;
  for (uint32_t i = c->n; i-- > 0 && status == 0 && c->list[i].numbers.peak < o->least;) {
    uint32_t n_saved;
    uint64_t peak;
    status = measure(call, c, i, saved, &n_saved, &o->measured, &peak);
    if (status == 0 && peak < o->least) o->least = peak;
  }
  return status;
}

/* The same where the backend's numbers alone count. They do not fall along the list as those of the simulation do: all
 * plans are queried about, those that cost less first. */
static int search_measured(const mc_memory_call_t *call, const mc_candidates_t *c, outcome_t *o, uint32_t *out_saved,
                           uint32_t *out_n_saved) {
  o->least = UINT64_MAX;
  for (o->chosen = 0; o->chosen < c->n; o->chosen++) {
    uint64_t peak;
    const int status = measure(call, c, o->chosen, out_saved, out_n_saved, &o->measured, &peak);
    if (status != 0 || (o->measured && o->measured <= o->budget)) return status;
    if (o->measured && o->measured < o->least) o->least = o->measured;
  }
  return 0;
}

/* The first plan in order of cost that fits. chosen: c->n when none does. */
static int search(const mc_memory_call_t *call, const mc_candidates_t *c, outcome_t *o, uint32_t *out_saved,
                  uint32_t *out_n_saved) {
  if (o->is_far_off) return search_measured(call, c, o, out_saved, out_n_saved);
  for (o->chosen = mc_candidates_first(c, o->budget, 0); o->chosen < c->n;
       o->chosen = mc_candidates_first(c, o->budget, o->chosen + 1)) {
    uint64_t peak;
    int status = measure(call, c, o->chosen, out_saved, out_n_saved, &o->measured, &peak);
    if (status != 0 || peak <= o->budget) return status;
  }
  return find_least(call, c, out_saved, o);
}

/* For a part of the step's time: of the plans that cost no more, the one with the least peak, if that is within the
 * budget. */
static int search_for_time(const mc_memory_call_t *call, const mc_candidates_t *c, outcome_t *o, uint32_t *out_saved,
                           uint32_t *out_n_saved) {
  uint64_t least = UINT64_MAX, measured_least = 0;
  uint32_t best = c->n;
  const double most = call->extra_time * step_cost(c->m);
  for (uint32_t i = 0; i < c->n && (double)c->list[i].numbers.cost <= most; i++) {
    uint64_t measured, peak;
    const int status = measure(call, c, i, out_saved, out_n_saved, &measured, &peak);
    if (status != 0) return status;
    if (o->is_far_off) peak = measured;
    if (peak >= least) continue;
    least = peak;
    measured_least = measured;
    best = i;
  }
  if (least > o->budget) return search(call, c, o, out_saved, out_n_saved);
  mc_candidates_plan(c, best, out_saved, out_n_saved);
  o->chosen = best;
  o->measured = measured_least;
  return 0;
}

static int choose(const mc_memory_call_t *call, const mc_model_t *m, uint32_t *out_saved, uint32_t *out_n_saved,
                  uint32_t *out_value) {
  mc_candidates_t c;
  int status = mc_candidates_init(&c, m, out_value);
  if (status == 0) {
    outcome_t o = {0};
    status = measure_all_saved(call, &c, out_saved, &o);
    o.budget = mc_budget_nbytes(&call->budget, o.all_saved);
    if (status == 0) status = (call->extra_time > 0 ? search_for_time : search)(call, &c, &o, out_saved, out_n_saved);
    if (status == 0 && o.chosen == c.n) {
      refuse(call, &c, &o);
      status = PT_TOLD;
    }
    if (status == 0) status = told(report(call, &c, &o));
  }
  mc_candidates_deinit(&c);
  return status;
}

/* What the search runs on. */
typedef struct ground {
  int64_t *dims;
  nc_costs_t costs;
  int is_told; /* by the pipeline's backend */
  uint64_t *inside;
  ms_sim_t sim;
  ms_graph_t graph;
  uint8_t *needs_slot, *is_updated;
  step_ports_t ports;
} ground_t;

/* Equal nodes were merged: operands differ from the snapshot's. */
static int prepare(const mc_memory_call_t *call, const jg_joint_t *j, ground_t *g) {
  const aot_snapshot_t *s = j->snapshot;
  const nc_question_t question = {.host = call->host, .ctx = call->ctx, .prog = call->prog, .snapshot = s};
  *g = (ground_t){
      .inside = calloc((size_t)s->graphs.count + 1, sizeof *g->inside),
      .needs_slot = calloc((size_t)j->n_inputs + 1, 1),
      .is_updated = calloc((size_t)s->leaves.count + 1, 1),
  };
  if (!g->inside || !g->needs_slot || !g->is_updated || nc_dims(s, NULL, 0, &g->dims) != AOT_OK) return -2;
  int status = nc_ask(&g->costs, &question, g->dims, &g->is_told);
  if (status == 0) status = nc_time_loops(&g->costs, s, j->graph, g->dims);
  if (status == 0) status = ms_region_memory(s, g->dims, &g->costs, g->inside);
  if (status == 0) status = ms_sim_init(&g->sim, s, j->graph, g->dims, &g->costs, g->inside);
  if (status != 0) return status;
  g->graph = ms_sim_reading(&g->sim, j->operand_begin, j->operands);
  if (call->step.is_one_graph) return read_ports(call, j, &g->ports);
  find_slots(j, g->needs_slot, g->is_updated);
  return 0;
}

static void ground_deinit(ground_t *g) {
  ms_sim_deinit(&g->sim);
  nc_deinit(&g->costs);
  ports_deinit(&g->ports);
  free(g->dims);
  free(g->inside);
  free(g->needs_slot);
  free(g->is_updated);
}

int mc_pick_memory(const void *self, const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved,
                   uint32_t *out_value) {
  const mc_memory_call_t *call = self;
  const mc_stop_t stop = {is_cancelled, call};
  ground_t g;
  mc_model_t m = {0};
  int status = prepare(call, j, &g);
  const mc_work_t work = {g.sim.flops, g.sim.nanoseconds};
  if (status == 0)
    status = mc_model_init(&m, j, &g.graph, g.sim.extent, g.needs_slot, &work,
                           call->step.is_one_graph ? &g.ports.one : NULL);
  m.stop = &stop;
  if (status == 0) status = told(report_teller(call, g.is_told));
  if (status == 0) status = choose(call, &m, out_saved, out_n_saved, out_value);
  mc_model_deinit(&m);
  ground_deinit(&g);
  return status;
}
