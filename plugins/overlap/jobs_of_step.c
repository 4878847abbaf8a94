#include "jobs_of_step.h"

#include "arrange.h"
#include "exchange.h"
#include "kept_gathers.h"
#include "common/cost/ask_costs.h"
#include "common/cost/loop_times.h"
#include "common/emit/emit.h"
#include "joint/snap_births.h"
#include "memory_of_step.h"
#include "step_nodes.h"
#include <aot/ext/ranks.h>
#include <aot/graph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
  const char *op, *start;
  int kind;
} shape_t;

static const shape_t shapes[] = {
    {"_c10d_functional.all_gather_into_tensor.default", "aot.start_all_gather.default", OV_GATHER},
    {"_c10d_functional.reduce_scatter_tensor.default", "aot.start_reduce_scatter.default", OV_SCATTER},
    {"_c10d_functional.all_reduce.default", "aot.start_all_reduce.default", OV_REDUCE},
    {"aot.all_to_all.default", "aot.start_all_to_all.default", OV_EXCHANGE},
};

enum { MOST_GROUPS = 64 };

typedef struct rewriting {
  em_t e;
  const ov_options_t *options;
  uint32_t n;                    /* nodes of the graph */
  aot_node_t *nodes;             /* in order */
  uint32_t *place;               /* by node id */
  const shape_t **is_collective; /* by place */
  uint8_t *may_wait;             /* by place: it may go later */
  uint8_t *is_repeated;          /* by place: it is made anew where a collective that reads it begins */
  double *ns;
  uint32_t *operand_begin, *operands;
  ov_job_t *jobs;
  uint32_t n_jobs;
  aot_node_t groups[MOST_GROUPS]; /* of jobs that go together: one of each */
  int32_t group_dtype[MOST_GROUPS];
  uint32_t n_groups;
} rewriting_t;

static const aot_graph_api_t *graph_of(const rewriting_t *r) { return r->e.host->graph; }

static const shape_t *shape_of(const em_t *e) {
  for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (ov_is_node(e, shapes[i].op)) return &shapes[i];
  return NULL;
}

/* ---- the graph as arrays ---- */

static aot_status_t list_nodes(rewriting_t *r) {
  em_t *e = &r->e;
  const aot_graph_api_t *g = graph_of(r);
  const uint32_t n_ids = g->n_nodes(e->prog);
  r->place = em_scratch(e, n_ids, sizeof *r->place);
  r->nodes = em_scratch(e, n_ids + 1u, sizeof *r->nodes);
  r->is_collective = em_scratch(e, n_ids + 1u, sizeof(void *));
  r->may_wait = em_scratch(e, n_ids + 1u, 1);
  r->is_repeated = em_scratch(e, n_ids + 1u, 1);
  r->ns = em_scratch(e, n_ids + 1u, sizeof *r->ns);
  r->operand_begin = em_scratch(e, n_ids + 2u, sizeof *r->operand_begin);
  r->jobs = em_scratch(e, n_ids + 1u, sizeof *r->jobs);
  r->n = 0;
  if (e->status != AOT_OK) return e->status;
  for (aot_node_t n = g->first(e->prog, e->graph); n.id != AOT_NO_ID; n = g->next(e->prog, n)) {
    r->place[n.id] = r->n;
    r->nodes[r->n++] = n;
  }
  return AOT_OK;
}

/* Where a value of this graph is made; OV_NONE: it is an input. */
static uint32_t maker(const rewriting_t *r, uint32_t value) {
  const aot_node_t n = graph_of(r)->value_def(r->e.prog, (aot_value_t){value});
  return n.id == AOT_NO_ID ? OV_NONE : r->place[n.id];
}

static int is_output(rewriting_t *r, aot_value_t first, uint32_t n_results) {
  for (uint32_t v = first.id; v < first.id + n_results; v++) {
    const uint32_t n = graph_of(r)->n_uses(r->e.prog, (aot_value_t){v});
    aot_node_t *users = em_scratch(&r->e, n, sizeof *users);
    if (!users || graph_of(r)->users(r->e.prog, (aot_value_t){v}, users, n) != n) return 1;
  }
  return 0;
}

static int has_late_readers(rewriting_t *r, uint32_t first, uint32_t n_results) {
  em_t *e = &r->e;
  for (uint32_t v = first; v < first + n_results; v++) {
    const uint32_t n = graph_of(r)->n_uses(e->prog, (aot_value_t){v});
    aot_node_t *users = em_scratch(e, n, sizeof *users);
    const uint32_t n_nodes = users ? graph_of(r)->users(e->prog, (aot_value_t){v}, users, n) : 0;
    for (uint32_t i = 0; i < n_nodes; i++)
      if (!r->may_wait[r->place[users[i].id]]) return 0;
  }
  return e->status == AOT_OK;
}

/* The optimizer's nodes, and what is computed for them alone. Collectives among them (a norm over ranks) stay what they
 * are: they come behind what they read. */
static aot_status_t find_late(rewriting_t *r) {
  em_t *e = &r->e;
  for (uint32_t i = r->n; i-- > 0;) {
    AOT_TRY(em_look(e, r->nodes[i]));
    const uint32_t flags = e->desc->flags, is_update = e->info.flags & AOT_NODE_UPDATE;
    r->is_collective[i] = is_update ? NULL : shape_of(e);
    if (flags & (AOT_OP_REGION | AOT_OP_EFFECT) || r->is_collective[i] || !e->info.n_results) continue;
    if (is_update || flags & (AOT_OP_POINTWISE | AOT_OP_VIEW))
      r->may_wait[i] = (uint8_t)has_late_readers(r, e->info.first_result.id, e->info.n_results);
  }
  return e->status;
}

static aot_status_t list_operands(rewriting_t *r) {
  em_t *e = &r->e;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++, n = 0) {
    for (uint32_t i = 0; i < r->n; i++) {
      AOT_TRY(em_look(e, r->nodes[i]));
      r->operand_begin[i] = n;
      for (uint32_t k = 0; r->may_wait[i] && k < e->info.n_operands; k++) {
        const uint32_t from = e->info.operands[k] == AOT_NO_ID ? OV_NONE : maker(r, e->info.operands[k]);
        if (from == OV_NONE) continue;
        if (pass) r->operands[n] = from;
        n++;
      }
    }
    r->operand_begin[r->n] = n;
    if (!pass && !(r->operands = em_scratch(e, n + 1u, sizeof *r->operands))) return e->status;
  }
  return AOT_OK;
}

/* ---- jobs ---- */

/* The first reader that cannot go later. */
static uint32_t first_urgent(rewriting_t *r, aot_value_t v) {
  em_t *e = &r->e;
  const uint32_t n = graph_of(r)->n_uses(e->prog, v);
  aot_node_t *users = em_scratch(e, n, sizeof *users);
  const uint32_t n_nodes = users ? graph_of(r)->users(e->prog, v, users, n) : 0;
  uint32_t first = r->n;
  for (uint32_t i = 0; i < n_nodes; i++) {
    const uint32_t at = r->place[users[i].id];
    if (!r->may_wait[at] && at < first) first = at;
  }
  return first;
}

/* Its one reader, which waits for it; none: nobody does. */
static aot_node_t waiter(rewriting_t *r, aot_value_t v) {
  em_t *e = &r->e;
  aot_node_t user;
  if (graph_of(r)->n_uses(e->prog, v) != 1 || graph_of(r)->users(e->prog, v, &user, 1) != 1 ||
      em_look(e, user) != AOT_OK || !ov_is_node(e, "_c10d_functional.wait_tensor.default"))
    return aot_no_node();
  return user;
}

/* A parameter's shard, or its cast: that is made anew where the gather begins. */
static int is_early(rewriting_t *r, uint32_t value) {
  const uint32_t at = maker(r, value);
  if (at == OV_NONE) return 1;
  if (em_look(&r->e, r->nodes[at]) != AOT_OK || !ov_is_node(&r->e, "aten._to_copy.default")) return 0;
  return r->e.info.n_operands == 1 && maker(r, r->e.info.operands[0]) == OV_NONE;
}

static int is_alike(const aot_arg_t *a, const aot_arg_t *b) {
  if (a->kind != b->kind || a->n != b->n) return 0;
  return a->kind == AOT_ARG_STR ? a->n == 0 || memcmp(a->u.chars, b->u.chars, a->n) == 0 : a->u.i == b->u.i;
}

/* Of the same ranks, dtype and reduction, and both of the backward or neither. OV_NONE: there are too many kinds. */
static uint32_t group_of(rewriting_t *r, aot_node_t node, int32_t dtype) {
  em_t *e = &r->e;
  em_t own = *e;
  uint32_t g = 0;
  if (em_look(&own, node) != AOT_OK) return OV_NONE;
  for (; g < r->n_groups; g++) {
    if (em_look(e, r->groups[g]) != AOT_OK) return OV_NONE;
    int is_same = e->info.op.id == own.info.op.id && e->info.n_args == own.info.n_args && r->group_dtype[g] == dtype &&
                  !((e->info.flags ^ own.info.flags) & AOT_NODE_BACKWARD);
    for (uint32_t a = 1; is_same && a < own.info.n_args; a++) is_same = is_alike(&e->info.args[a], &own.info.args[a]);
    if (is_same) return g;
  }
  if (r->n_groups == MOST_GROUPS) return OV_NONE;
  r->groups[g] = node;
  r->group_dtype[g] = dtype;
  return r->n_groups++;
}

static aot_status_t add_job(rewriting_t *r, uint32_t at) {
  em_t *e = &r->e;
  AOT_TRY(em_look(e, r->nodes[at]));
  const shape_t *shape = r->is_collective[at];
  const aot_value_t result = e->info.first_result;
  const uint32_t operand = e->info.operands[0];
  const aot_type_t type = em_type(e, em_v(result));
  const aot_node_t wait = waiter(r, result);
  const uint32_t group = wait.id == AOT_NO_ID ? OV_NONE : group_of(r, r->nodes[at], type.dtype);
  if (group == OV_NONE) return e->status;
  const uint64_t whole = ov_nbytes(e, shape->kind == OV_SCATTER ? (aot_value_t){operand} : result);
  const int is_gather = shape->kind == OV_GATHER;
  const uint32_t made = maker(r, operand), behind_made = made == OV_NONE ? 0 : made + 1;
  AOT_TRY(em_look(e, wait));
  r->jobs[r->n_jobs] = (ov_job_t){
      .kind = shape->kind,
      .group = group,
      .at = at,
      .ready = is_gather ? is_early(r, operand) ? 0 : behind_made : at,
      .wait = r->place[wait.id],
      .need = is_gather ? r->place[wait.id] : first_urgent(r, e->info.first_result),
      .nbytes = whole,
  };
  AOT_TRY(em_look(e, r->nodes[at]));
  const ov_among_t among = ov_among_of(&e->info.args[e->info.n_args - 1], r->options->n_ranks);
  r->jobs[r->n_jobs].n_ranks = among.n_ranks;
  r->jobs[r->n_jobs++].span = among.span;
  return e->status;
}

/* Of the program's outputs alone, as a loss is: no node reads it. */
static int is_only_shown(rewriting_t *r, const ov_job_t *j) {
  aot_node_t user;
  return em_look(&r->e, r->nodes[j->wait]) == AOT_OK &&
         graph_of(r)->users(r->e.prog, r->e.info.first_result, &user, 1) == 0;
}

/* What no node reads begins with the last of the others. Where its operand is made it would come between the loops of a loss
 * and of its gradient, which read the same scores, and keep a backend from making one of them. */
static void delay_shown(rewriting_t *r) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < r->n_jobs; i++)
    if (r->jobs[i].kind != OV_GATHER && r->jobs[i].ready > last) last = r->jobs[i].ready;
  for (uint32_t i = 0; i < r->n_jobs; i++)
    if (r->jobs[i].kind != OV_GATHER && is_only_shown(r, &r->jobs[i])) r->jobs[i].ready = last;
}

/* ---- times ---- */

/* What the backend tells, else by work and bytes; of a loop what reaches memory. */
static aot_status_t find_times(rewriting_t *r) {
  em_t *e = &r->e;
  const nc_question_t q = {.host = e->host, .ctx = e->ctx, .prog = e->prog};
  nc_question_t question = q;
  nc_costs_t costs = {0};
  int64_t *dims = NULL;
  int is_told;
  AOT_TRY(e->host->graph->snapshot(e->prog, &question.snapshot));
  const aot_snapshot_t *s = question.snapshot;
  aot_status_t status = nc_dims(s, NULL, 0, &dims);
  if (status == AOT_OK && nc_ask(&costs, &question, dims, &is_told) != 0) status = AOT_E_EXHAUSTED;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  if (status == AOT_OK) {
    nc_costs_t timed = {0};
    status = nc_init(&timed, s, dims) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
    if (status == AOT_OK) nc_time_nodes(&timed, s, dims, &r->options->rates);
    for (uint32_t n = 1; status == AOT_OK && n < s->nodes.count; n++)
      if (!costs.nanoseconds[n]) costs.nanoseconds[n] = timed.nanoseconds[n];
    if (status == AOT_OK && nc_time_loops(&costs, s, ov_graph_row(s, e->graph), dims) != 0) status = AOT_E_EXHAUSTED;
    for (uint32_t n = 1; status == AOT_OK && n < s->nodes.count; n++) {
      const uint32_t at = nodes[n].id < e->host->graph->n_nodes(e->prog) ? r->place[nodes[n].id] : 0;
      if (at >= r->n || r->nodes[at].id != nodes[n].id) continue;
      r->ns[at] = (double)costs.nanoseconds[n];
    }
    nc_deinit(&timed);
  }
  nc_deinit(&costs);
  free(dims);
  return status;
}

/* ---- the plan, in the program ---- */

/* New nodes are like this one, and stand in front of that. */
static aot_status_t stand_for(em_t *e, aot_node_t like, aot_node_t before) {
  AOT_TRY(em_look(e, like));
  em_carry(e, &e->info);
  e->before = before;
  return AOT_OK;
}

static aot_node_t node_in_front(const rewriting_t *r, uint32_t place) {
  return place < r->n ? r->nodes[place] : aot_no_node();
}

/* Does the node that makes what the job reads go where that begins? The cast of a shard that is gathered early; of what is
 * only shown a last step of arithmetic (a loss by the number of ranks), which would read the loss where it is made. */
static int takes_maker(rewriting_t *r, const ov_job_t *j, uint32_t value) {
  const uint32_t at = maker(r, value);
  if (at == OV_NONE) return 0;
  if (j->kind == OV_GATHER) return j->ready == 0;
  return j->ready != j->at && graph_of(r)->n_uses(r->e.prog, (aot_value_t){value}) == 1 &&
         em_look(&r->e, r->nodes[at]) == AOT_OK && r->e.desc->flags & AOT_OP_POINTWISE;
}

static aot_value_t repeat_maker(rewriting_t *r, uint32_t value, aot_node_t before) {
  em_t *e = &r->e;
  const uint32_t at = maker(r, value);
  if (stand_for(e, r->nodes[at], before) != AOT_OK) return (aot_value_t){value};
  aot_node_info_t made;
  em_repeat(e, &e->info, &made);
  r->is_repeated[at] = 1;
  return e->status == AOT_OK ? made.first_result : (aot_value_t){value};
}

typedef struct started {
  aot_value_t result, kept; /* by job */
} started_t;

static void start(rewriting_t *r, const ov_plan_t *plan, const ov_bucket_t *b, started_t *started) {
  em_t *e = &r->e;
  uint32_t *ids = em_scratch(e, b->n, sizeof *ids);
  const aot_node_t before = node_in_front(r, b->start);
  for (uint32_t i = 0; ids && i < b->n; i++) {
    const ov_job_t *j = &r->jobs[plan->list[b->first + i]];
    if (em_look(e, r->nodes[j->at]) != AOT_OK) return;
    const uint32_t operand = e->info.operands[0];
    const aot_value_t v = takes_maker(r, j, operand) ? repeat_maker(r, operand, before) : (aot_value_t){operand};
    started[plan->list[b->first + i]].kept = v;
    ids[i] = v.id;
  }
  if (e->status != AOT_OK) return;
  const ov_job_t *first = &r->jobs[plan->list[b->first]];
  if (stand_for(e, r->nodes[first->at], before) != AOT_OK) return;
  aot_arg_t args[4];
  const uint32_t n_args = e->info.n_args;
  memcpy(args, e->info.args, n_args * sizeof *args);
  args[0] = aot_arg_values(ids, b->n);
  const aot_value_t result = em_value(e, em_call(e, r->is_collective[first->at]->start, n_args, args));
  for (uint32_t i = 0; i < b->n; i++) started[plan->list[b->first + i]].result = (aot_value_t){result.id + i};
}

/* The wait, in front of that node, in place of the one that was there. */
static void wait_for(rewriting_t *r, uint32_t job, aot_node_t before, const started_t *started) {
  em_t *e = &r->e;
  const aot_node_t old = r->nodes[r->jobs[job].wait];
  if (stand_for(e, old, before) != AOT_OK) return;
  const aot_value_t was = e->info.first_result;
  const em_x_t done =
      EM(e, "aot.wait_for_ranks.default", em_v(started[job].result), aot_arg_values(&started[job].kept.id, 1));
  if (e->status == AOT_OK) em_take_over(e, was, em_value(e, done), 1);
}

static void repeat(rewriting_t *r, uint32_t place, aot_node_t before) {
  em_t *e = &r->e;
  aot_node_info_t made;
  if (stand_for(e, r->nodes[place], before) != AOT_OK) return;
  const aot_value_t was = e->info.first_result;
  const uint32_t n = e->info.n_results;
  em_repeat(e, &e->info, &made);
  if (e->status == AOT_OK) em_take_over(e, was, made.first_result, n);
}

/* What only nodes that go later read goes with the first of them, so that it does not lie about. */
static void take_along(rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  uint32_t *first = em_scratch(e, r->n + 1u, sizeof *first); /* of a node's readers, by bucket; 0: none, 1: one stays */
  for (uint32_t i = r->n; first && i-- > 0;) {
    if (!plan->behind[i] && r->may_wait[i] && first[i] > 1 && em_look(e, r->nodes[i]) == AOT_OK &&
        !is_output(r, e->info.first_result, e->info.n_results))
      plan->behind[i] = first[i] - 1;
    if (em_look(e, r->nodes[i]) != AOT_OK) return;
    for (uint32_t k = 0; k < e->info.n_operands; k++) {
      const uint32_t from = e->info.operands[k] == AOT_NO_ID ? OV_NONE : maker(r, e->info.operands[k]);
      const uint32_t own = plan->behind[i] + 1;
      if (from != OV_NONE && (!first[from] || own < first[from])) first[from] = own;
    }
  }
}

/* By bucket: nodes that go behind its wait, in order. */
static aot_status_t list_late(rewriting_t *r, const ov_plan_t *plan, uint32_t **out_begin, uint32_t **out_list) {
  uint32_t *begin = em_scratch(&r->e, plan->n_buckets + 2u, sizeof *begin), *list = em_scratch(&r->e, r->n + 1u, 4);
  *out_begin = begin;
  *out_list = list;
  if (!begin || !list) return r->e.status;
  for (uint32_t i = 0; i < r->n; i++)
    if (plan->behind[i]) begin[plan->behind[i] + 1]++;
  for (uint32_t b = 1; b <= plan->n_buckets + 1; b++) begin[b] += begin[b - 1];
  for (uint32_t i = 0; i < r->n; i++)
    if (plan->behind[i]) list[begin[plan->behind[i]]++] = i;
  for (uint32_t b = plan->n_buckets + 1; b > 0; b--) begin[b] = begin[b - 1];
  begin[0] = 0;
  return AOT_OK;
}

typedef struct applying {
  rewriting_t *r;
  const ov_plan_t *plan;
  started_t *started;
  uint32_t *late_begin, *late;
  uint32_t next, next_wait; /* buckets: to begin, to wait for */
} applying_t;

static void end_bucket(applying_t *a, const ov_bucket_t *b, uint32_t k, aot_node_t before) {
  for (uint32_t i = 0; i < b->n; i++) wait_for(a->r, a->plan->list[b->first + i], before, a->started);
  for (uint32_t i = a->late_begin[k + 1]; i < a->late_begin[k + 2]; i++) repeat(a->r, a->late[i], before);
}

static void start_at(applying_t *a, uint32_t place, int only_gathers) {
  for (; a->next < a->plan->n_buckets; a->next++) {
    const ov_bucket_t *b = &a->plan->buckets[a->next];
    const int is_gather = a->r->jobs[a->plan->list[b->first]].kind == OV_GATHER;
    if (b->start > place || (b->start == place && only_gathers && !is_gather)) return;
    start(a->r, a->plan, b, a->started);
  }
}

static void end_at(applying_t *a, uint32_t place, int only_urgent) {
  for (; a->next_wait < a->next; a->next_wait++) {
    const ov_bucket_t *b = &a->plan->buckets[a->next_wait];
    if (b->wait == OV_NONE) continue; /* of gathers each is waited for where it is read */
    if (b->wait > place || (only_urgent && !b->is_urgent)) return;
    end_bucket(a, b, a->next_wait, node_in_front(a->r, place));
  }
}

static void apply_at(applying_t *a, uint32_t place, const uint32_t *gather_at) {
  rewriting_t *r = a->r;
  const aot_node_t before = node_in_front(r, place);
  start_at(a, place, 1);
  end_at(a, place, 1);
  start_at(a, place, 0);
  end_at(a, place, 0);
  if (place < r->n && gather_at[place] != OV_NONE) wait_for(r, gather_at[place], before, a->started);
}

/* It was made anew, and nobody reads it where it stood. */
static int is_left_over(rewriting_t *r, uint32_t place) {
  return r->is_repeated[place] && em_look(&r->e, r->nodes[place]) == AOT_OK &&
         graph_of(r)->n_uses(r->e.prog, r->e.info.first_result) == 0;
}

static void erase_old(rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  uint8_t *is_old = em_scratch(e, r->n + 1u, 1);
  for (uint32_t j = 0; is_old && j < r->n_jobs; j++) is_old[r->jobs[j].at] = is_old[r->jobs[j].wait] = 1;
  for (uint32_t i = r->n; i-- > 0 && e->status == AOT_OK;)
    if (is_old[i] || plan->behind[i] || is_left_over(r, i)) em_ok(e, e->host->edit->node_erase(e->prog, r->nodes[i]));
}

static aot_status_t apply(rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  applying_t a = {.r = r, .plan = plan, .started = em_scratch(e, r->n_jobs, sizeof(started_t))};
  uint32_t *gather_at = em_scratch(e, r->n + 1u, sizeof *gather_at);
  if (!a.started || !gather_at) return e->status;
  take_along(r, plan);
  AOT_TRY(list_late(r, plan, &a.late_begin, &a.late));
  for (uint32_t i = 0; i <= r->n; i++) gather_at[i] = OV_NONE;
  for (uint32_t j = 0; j < r->n_jobs; j++)
    if (r->jobs[j].kind == OV_GATHER) gather_at[r->jobs[j].wait] = j;
  for (uint32_t i = 0; i <= r->n && e->status == AOT_OK; i++) apply_at(&a, i, gather_at);
  if (e->status == AOT_OK) erase_old(r, plan);
  return e->status;
}

/* ---- a step graph ---- */

/* What stands for collectives and copies of one rank becomes them. */
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
    if (status == AOT_E_UNIMPLEMENTED) continue; /* of complex numbers, say: the backend tells what it does not take */
    AOT_TRY(status);
    em_take_over(e, was, sum, 1);
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, n));
    AOT_TRY(e->status);
  }
  return AOT_OK;
}

/* What is handed over; those that go together are one collective, whose shares are of all its tensors. */
static aot_status_t count_traffic(rewriting_t *r, ov_traffic_t *out) {
  em_t *e = &r->e;
  const aot_graph_api_t *g = graph_of(r);
  for (aot_node_t n = g->first(e->prog, e->graph); n.id != AOT_NO_ID; n = g->next(e->prog, n)) {
    AOT_TRY(em_look(e, n));
    const shape_t *shape = shape_of(e);
    for (uint32_t i = 0; !shape && i < sizeof shapes / sizeof *shapes; i++)
      if (ov_is_node(e, shapes[i].start)) shape = &shapes[i];
    if (!shape) continue;
    const aot_node_info_t info = e->info;
    const ov_among_t among = ov_among_of(&info.args[info.n_args - 1], r->options->n_ranks);
    const aot_type_t type = em_type(e, em_v(info.first_result));
    uint64_t whole = 0;
    for (uint32_t i = 0; i < info.n_results; i++)
      whole += ov_nbytes(e, (aot_value_t){info.first_result.id + i}) * (shape->kind == OV_SCATTER ? among.n_ranks : 1);
    ov_traffic_add(out, shape->kind, &among, whole, aot_dtype_size(type.dtype));
  }
  return e->status;
}

static aot_status_t run_graph(rewriting_t *r, ov_counts_t *out) {
  em_t *e = &r->e;
  ov_plan_t plan = {0};
  AOT_TRY(write_out(e));
  if (r->options->keeps) AOT_TRY(ov_keep_gathers(e, &out->n_kept));
  if (r->options->exchange) AOT_TRY(ov_exchange(e, r->options->exchange, &out->n_exchanged));
  AOT_TRY(list_nodes(r));
  AOT_TRY(find_late(r));
  AOT_TRY(list_operands(r));
  AOT_TRY(find_times(r));
  r->n_jobs = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->is_collective[i]) AOT_TRY(add_job(r, i));
  delay_shown(r);
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
  for (uint32_t j = 0; j < r->n_jobs; j++) r->ns[r->jobs[j].at] = r->ns[r->jobs[j].wait] = 0;
  aot_status_t status = ov_arrange(&problem, &plan) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = apply(r, &plan);
  if (status == AOT_OK) status = count_traffic(r, &out->traffic);
  out->n_collectives += r->n_jobs;
  out->n_started += plan.n_buckets;
  out->compute_ns += plan.compute_ns;
  out->collective_ns += plan.collective_ns;
  out->step_ns += plan.step_ns;
  ov_plan_deinit(&plan);
  return status == AOT_OK ? ov_memory_of_step(e, &out->memory) : status;
}

/* Values whose sizes a run tells are kept apart from each other by backends, and may be moved: such programs stay. */
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
    rewriting_t r = {.e = em_make(host, ctx, prog, (aot_graph_t){g}), .options = options};
    r.e.code = "overlap";
    r.e.what = "the step";
    AOT_TRY(run_graph(&r, out));
  }
  return AOT_OK;
}
