#include "jobs_of_step.h"

#include "kit/model/ask_costs.h"
#include "kit/model/loop_times.h"
#include "memory_of_step.h"
#include "step_nodes.h"
#include "traffic.h"
#include <stdlib.h>

static const ov_form_t forms[] = {
    {"_c10d_functional.all_gather_into_tensor.default", "aot.start_all_gather.default", OV_GATHER},
    {"_c10d_functional.reduce_scatter_tensor.default", "aot.start_reduce_scatter.default", OV_SCATTER},
    {"_c10d_functional.all_reduce.default", "aot.start_all_reduce.default", OV_REDUCE},
    {"aot.all_to_all.default", "aot.start_all_to_all.default", OV_EXCHANGE},
};

const aot_graph_api_t *ov_graph_of(const ov_rewriting_t *r) { return r->e.host->graph; }

const ov_form_t *ov_form_of(const em_t *e, int may_be_begun) {
  for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (ov_is_node(e, forms[i].op) || (may_be_begun && ov_is_node(e, forms[i].start))) return &forms[i];
  return NULL;
}

/* ---- the graph as arrays ---- */

static aot_status_t list_nodes(ov_rewriting_t *r) {
  em_t *e = &r->e;
  const aot_graph_api_t *g = ov_graph_of(r);
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

uint32_t ov_maker(const ov_rewriting_t *r, uint32_t value) {
  const aot_node_t n = ov_graph_of(r)->value_def(r->e.prog, (aot_value_t){value});
  return n.id == AOT_NO_ID ? OV_NONE : r->place[n.id];
}

int ov_is_output(ov_rewriting_t *r, aot_value_t first, uint32_t n_results) {
  for (uint32_t v = first.id; v < first.id + n_results; v++) {
    const uint32_t n = ov_graph_of(r)->n_uses(r->e.prog, (aot_value_t){v});
    aot_node_t *users = em_scratch(&r->e, n, sizeof *users);
    if (!users || ov_graph_of(r)->users(r->e.prog, (aot_value_t){v}, users, n) != n) return 1;
  }
  return 0;
}

static int has_late_readers(ov_rewriting_t *r, uint32_t first, uint32_t n_results) {
  em_t *e = &r->e;
  for (uint32_t v = first; v < first + n_results; v++) {
    const uint32_t n = ov_graph_of(r)->n_uses(e->prog, (aot_value_t){v});
    aot_node_t *users = em_scratch(e, n, sizeof *users);
    const uint32_t n_nodes = users ? ov_graph_of(r)->users(e->prog, (aot_value_t){v}, users, n) : 0;
    for (uint32_t i = 0; i < n_nodes; i++)
      if (!r->may_wait[r->place[users[i].id]]) return 0;
  }
  return e->status == AOT_OK;
}

/* The optimizer's nodes, and what is computed for them alone. Collectives among them (a norm over ranks) stay what they
 * are: they come after what they read. */
static aot_status_t find_late(ov_rewriting_t *r) {
  em_t *e = &r->e;
  for (uint32_t i = r->n; i-- > 0;) {
    AOT_TRY(em_look(e, r->nodes[i]));
    const uint32_t flags = e->desc->flags, is_update = e->info.flags & AOT_NODE_UPDATE;
    r->is_collective[i] = is_update ? NULL : ov_form_of(e, 0);
    if (flags & (AOT_OP_REGION | AOT_OP_EFFECT) || r->is_collective[i] || !e->info.n_results) continue;
    if (is_update || flags & (AOT_OP_POINTWISE | AOT_OP_VIEW))
      r->may_wait[i] = (uint8_t)has_late_readers(r, e->info.first_result.id, e->info.n_results);
  }
  return e->status;
}

static aot_status_t list_operands(ov_rewriting_t *r) {
  em_t *e = &r->e;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++, n = 0) {
    for (uint32_t i = 0; i < r->n; i++) {
      AOT_TRY(em_look(e, r->nodes[i]));
      r->operand_begin[i] = n;
      for (uint32_t k = 0; r->may_wait[i] && k < e->info.n_operands; k++) {
        const uint32_t from = e->info.operands[k] == AOT_NO_ID ? OV_NONE : ov_maker(r, e->info.operands[k]);
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
static uint32_t first_urgent(ov_rewriting_t *r, aot_value_t v) {
  em_t *e = &r->e;
  const uint32_t n = ov_graph_of(r)->n_uses(e->prog, v);
  aot_node_t *users = em_scratch(e, n, sizeof *users);
  const uint32_t n_nodes = users ? ov_graph_of(r)->users(e->prog, v, users, n) : 0;
  uint32_t first = r->n;
  for (uint32_t i = 0; i < n_nodes; i++) {
    const uint32_t at = r->place[users[i].id];
    if (!r->may_wait[at] && at < first) first = at;
  }
  return first;
}

/* Its one reader, which waits for it; none: nothing does. */
static aot_node_t waiter(ov_rewriting_t *r, aot_value_t v) {
  em_t *e = &r->e;
  aot_node_t user;
  if (ov_graph_of(r)->n_uses(e->prog, v) != 1 || ov_graph_of(r)->users(e->prog, v, &user, 1) != 1 ||
      em_look(e, user) != AOT_OK || !ov_is_node(e, "_c10d_functional.wait_tensor.default"))
    return aot_no_node();
  return user;
}

/* A parameter's shard, or its cast: that is rebuilt where the gather begins. */
static int is_early(ov_rewriting_t *r, uint32_t value) {
  const uint32_t at = ov_maker(r, value);
  if (at == OV_NONE) return 1;
  if (em_look(&r->e, r->nodes[at]) != AOT_OK || !ov_is_node(&r->e, "aten._to_copy.default")) return 0;
  return r->e.info.n_operands == 1 && ov_maker(r, r->e.info.operands[0]) == OV_NONE;
}

static int is_alike(const aot_arg_t *a, const aot_arg_t *b) {
  if (a->kind != b->kind || a->n != b->n) return 0;
  return a->kind == AOT_ARG_STR ? a->n == 0 || memcmp(a->u.chars, b->u.chars, a->n) == 0 : a->u.i == b->u.i;
}

/* Of the same ranks, dtype and reduction, and both of the backward or neither. OV_NONE: there are too many kinds. */
static uint32_t group_of(ov_rewriting_t *r, aot_node_t node, int32_t dtype) {
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
  if (r->n_groups == OV_MOST_GROUPS) return OV_NONE;
  r->groups[g] = node;
  r->group_dtype[g] = dtype;
  return r->n_groups++;
}

static aot_status_t add_job(ov_rewriting_t *r, uint32_t at) {
  em_t *e = &r->e;
  AOT_TRY(em_look(e, r->nodes[at]));
  const ov_form_t *shape = r->is_collective[at];
  const aot_value_t result = e->info.first_result;
  const uint32_t operand = e->info.operands[0];
  const aot_type_t type = em_type(e, em_v(result));
  const aot_node_t wait = waiter(r, result);
  const uint32_t group = wait.id == AOT_NO_ID ? OV_NONE : group_of(r, r->nodes[at], type.dtype);
  if (group == OV_NONE) return e->status;
  const uint64_t whole = ov_nbytes(e, shape->kind == OV_SCATTER ? (aot_value_t){operand} : result);
  const int is_gather = shape->kind == OV_GATHER;
  const uint32_t made = ov_maker(r, operand), behind_made = made == OV_NONE ? 0 : made + 1;
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
static int is_only_shown(ov_rewriting_t *r, const ov_job_t *j) {
  aot_node_t user;
  return em_look(&r->e, r->nodes[j->wait]) == AOT_OK &&
         ov_graph_of(r)->users(r->e.prog, r->e.info.first_result, &user, 1) == 0;
}

/* What no node reads begins with the last of the others. Where its operand is made it would come between the loops of a
 * loss and of its gradient, which read the same scores, and keep a backend from making one of them. */
static void delay_shown(ov_rewriting_t *r) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < r->n_jobs; i++)
    if (r->jobs[i].kind != OV_GATHER && r->jobs[i].ready > last) last = r->jobs[i].ready;
  for (uint32_t i = 0; i < r->n_jobs; i++)
    if (r->jobs[i].kind != OV_GATHER && is_only_shown(r, &r->jobs[i])) r->jobs[i].ready = last;
}

/* ---- times ---- */

/* What the backend reports, else by work and bytes; of a loop what reaches memory. */
static aot_status_t find_times(ov_rewriting_t *r) {
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

aot_status_t ov_find_jobs(ov_rewriting_t *r) {
  AOT_TRY(list_nodes(r));
  AOT_TRY(find_late(r));
  AOT_TRY(list_operands(r));
  AOT_TRY(find_times(r));
  r->n_jobs = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->is_collective[i]) AOT_TRY(add_job(r, i));
  delay_shown(r);
  for (uint32_t j = 0; j < r->n_jobs; j++) r->ns[r->jobs[j].at] = r->ns[r->jobs[j].wait] = 0;
  return AOT_OK;
}
