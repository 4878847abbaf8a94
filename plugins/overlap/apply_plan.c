#include "apply_plan.h"

#include <aot/graph.h>
#include <string.h>

/* New nodes are like this one, and are in front of that. */
static aot_status_t stand_for(em_t *e, aot_node_t like, aot_node_t before) {
  AOT_TRY(em_look(e, like));
  em_carry(e, &e->info);
  e->before = before;
  return AOT_OK;
}

static aot_node_t node_in_front(const ov_rewriting_t *r, uint32_t place) {
  return place < r->n ? r->nodes[place] : aot_no_node();
}

/* Does the node that makes what the job reads go where that begins? The cast of a shard that is gathered early; of what
 * is only shown a last step of arithmetic (a loss by the number of ranks), which would read the loss where it is
 * made. */
static int takes_maker(ov_rewriting_t *r, const ov_job_t *j, uint32_t value) {
  const uint32_t at = ov_maker(r, value);
  if (at == OV_NONE) return 0;
  if (j->kind == OV_GATHER) return j->ready == 0;
  return j->ready != j->at && ov_graph_of(r)->n_uses(r->e.prog, (aot_value_t){value}) == 1 &&
         em_look(&r->e, r->nodes[at]) == AOT_OK && r->e.desc->flags & AOT_OP_POINTWISE;
}

static aot_value_t repeat_maker(ov_rewriting_t *r, uint32_t value, aot_node_t before) {
  em_t *e = &r->e;
  const uint32_t at = ov_maker(r, value);
  if (stand_for(e, r->nodes[at], before) != AOT_OK) return (aot_value_t){value};
  aot_node_info_t made;
  em_repeat(e, &e->info, &made);
  r->is_repeated[at] = 1;
  return e->status == AOT_OK ? made.first_result : (aot_value_t){value};
}

typedef struct started {
  aot_value_t result, kept; /* by job */
} started_t;

static void start(ov_rewriting_t *r, const ov_plan_t *plan, const ov_bucket_t *b, started_t *started) {
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
static void wait_for(ov_rewriting_t *r, uint32_t job, aot_node_t before, const started_t *started) {
  em_t *e = &r->e;
  const aot_node_t old = r->nodes[r->jobs[job].wait];
  if (stand_for(e, old, before) != AOT_OK) return;
  const aot_value_t was = e->info.first_result;
  const em_x_t done =
      EM(e, "aot.wait_for_ranks.default", em_v(started[job].result), aot_arg_values(&started[job].kept.id, 1));
  if (e->status == AOT_OK) em_take_over(e, was, em_value(e, done), 1);
}

static void repeat(ov_rewriting_t *r, uint32_t place, aot_node_t before) {
  em_t *e = &r->e;
  aot_node_info_t made;
  if (stand_for(e, r->nodes[place], before) != AOT_OK) return;
  const aot_value_t was = e->info.first_result;
  const uint32_t n = e->info.n_results;
  em_repeat(e, &e->info, &made);
  if (e->status == AOT_OK) em_take_over(e, was, made.first_result, n);
}

/* What only nodes that go later read goes with the first of them, so that it does not lie about. */
static void take_along(ov_rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  uint32_t *first = em_scratch(e, r->n + 1u, sizeof *first); /* of a node's readers, by bucket; 0: none, 1: one stays */
  for (uint32_t i = r->n; first && i-- > 0;) {
    if (!plan->behind[i] && r->may_wait[i] && first[i] > 1 && em_look(e, r->nodes[i]) == AOT_OK &&
        !ov_is_output(r, e->info.first_result, e->info.n_results))
      plan->behind[i] = first[i] - 1;
    if (em_look(e, r->nodes[i]) != AOT_OK) return;
    for (uint32_t k = 0; k < e->info.n_operands; k++) {
      const uint32_t from = e->info.operands[k] == AOT_NO_ID ? OV_NONE : ov_maker(r, e->info.operands[k]);
      const uint32_t own = plan->behind[i] + 1;
      if (from != OV_NONE && (!first[from] || own < first[from])) first[from] = own;
    }
  }
}

/* By bucket: nodes that go after its wait, in order. */
static aot_status_t list_late(ov_rewriting_t *r, const ov_plan_t *plan, uint32_t **out_begin, uint32_t **out_list) {
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

typedef struct applier {
  ov_rewriting_t *r;
  const ov_plan_t *plan;
  started_t *started;
  uint32_t *late_begin, *late;
  uint32_t next, next_wait; /* buckets: to begin, to wait for */
} applier_t;

static void end_bucket(applier_t *a, const ov_bucket_t *b, uint32_t k, aot_node_t before) {
  for (uint32_t i = 0; i < b->n; i++) wait_for(a->r, a->plan->list[b->first + i], before, a->started);
  for (uint32_t i = a->late_begin[k + 1]; i < a->late_begin[k + 2]; i++) repeat(a->r, a->late[i], before);
}

static void start_at(applier_t *a, uint32_t place, int only_gathers) {
  for (; a->next < a->plan->n_buckets; a->next++) {
    const ov_bucket_t *b = &a->plan->buckets[a->next];
    const int is_gather = a->r->jobs[a->plan->list[b->first]].kind == OV_GATHER;
    if (b->start > place || (b->start == place && only_gathers && !is_gather)) return;
    start(a->r, a->plan, b, a->started);
  }
}

static void end_at(applier_t *a, uint32_t place, int only_urgent) {
  for (; a->next_wait < a->next; a->next_wait++) {
    const ov_bucket_t *b = &a->plan->buckets[a->next_wait];
    if (b->wait == OV_NONE) continue; /* of gathers each is waited for where it is read */
    if (b->wait > place || (only_urgent && !b->is_urgent)) return;
    end_bucket(a, b, a->next_wait, node_in_front(a->r, place));
  }
}

static void apply_at(applier_t *a, uint32_t place, const uint32_t *gather_at) {
  ov_rewriting_t *r = a->r;
  const aot_node_t before = node_in_front(r, place);
  start_at(a, place, 1);
  end_at(a, place, 1);
  start_at(a, place, 0);
  end_at(a, place, 0);
  if (place < r->n && gather_at[place] != OV_NONE) wait_for(r, gather_at[place], before, a->started);
}

/* It was rebuilt, and nothing reads it where it stood. */
static int is_left_over(ov_rewriting_t *r, uint32_t place) {
  return r->is_repeated[place] && em_look(&r->e, r->nodes[place]) == AOT_OK &&
         ov_graph_of(r)->n_uses(r->e.prog, r->e.info.first_result) == 0;
}

static void erase_old(ov_rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  uint8_t *is_old = em_scratch(e, r->n + 1u, 1);
  for (uint32_t j = 0; is_old && j < r->n_jobs; j++) is_old[r->jobs[j].at] = is_old[r->jobs[j].wait] = 1;
  for (uint32_t i = r->n; i-- > 0 && e->status == AOT_OK;)
    if (is_old[i] || plan->behind[i] || is_left_over(r, i)) em_ok(e, e->host->edit->node_erase(e->prog, r->nodes[i]));
}

aot_status_t ov_apply(ov_rewriting_t *r, const ov_plan_t *plan) {
  em_t *e = &r->e;
  applier_t a = {.r = r, .plan = plan, .started = em_scratch(e, r->n_jobs, sizeof(started_t))};
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
