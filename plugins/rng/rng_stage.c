#include "rng_stage.h"

#include "random_rules.h"
#include "random_regions.h"
#include "saved_states.h"
#include "kit/base/errors.h"
#include "kit/emit/emit_layout.h"

#include <stdio.h>

/* An operator without a rule. */
typedef struct unknown {
  aot_op_t op;
  aot_node_t first;
  uint32_t n;
} unknown_t;

typedef struct stage {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  uint16_t *row_of_op; /* row + 1; 0: none */
  rg_graph_t *graphs;  /* by id */
  rg_states_t states;
  rg_attention_draws_t attention;
  unknown_t *unknown;      /* in order of appearance; room for every operator */
  uint32_t *unknown_of_op; /* index + 1 */
  uint32_t n_unknown;
  rg_counts_t counts;
  uint32_t n_ranks;
} stage_t;

/* ---- operators without a rule ---- */

static void note_unknown(stage_t *s, aot_op_t op, aot_node_t node) {
  if (!s->unknown_of_op[op.id]) {
    s->unknown[s->n_unknown] = (unknown_t){.op = op, .first = node};
    s->unknown_of_op[op.id] = ++s->n_unknown;
  }
  s->unknown[s->unknown_of_op[op.id] - 1].n++;
}

static void tell(stage_t *s, int32_t severity, const char *message, const char *hint, aot_node_t at) {
  aot_diag_t d = kit_diag(severity, "rng.unknown", message);
  d.hint = aot_str(hint);
  d.node = at;
  s->host->diag(s->host, s->ctx, &d);
}

static aot_status_t tell_unknown(stage_t *s) {
  char text[320];
  uint32_t n_nodes = 0;
  if (s->n_unknown == 0) return AOT_OK;
  for (uint32_t i = 0; i < s->n_unknown; i++) n_nodes += s->unknown[i].n;
  snprintf(text, sizeof text,
           "the program draws random numbers with %u operator%s that cannot be written with explicit draws (%u node%s)",
           s->n_unknown, s->n_unknown == 1 ? "" : "s", n_nodes, n_nodes == 1 ? "" : "s");
  tell(s, AOT_SEVERITY_ERROR, text, "draw the numbers with one of the operators that plugins/rng/README.md lists",
       s->unknown[0].first);
  for (uint32_t i = 0; i < s->n_unknown; i++) {
    const unknown_t *u = &s->unknown[i];
    const aot_str_t name = s->host->graph->op_desc(s->prog, u->op)->name;
    snprintf(text, sizeof text, "%.*s: %u node%s, %s", (int)name.size, name.data, u->n, u->n == 1 ? "" : "s",
             u->n == 1 ? "here" : "the first here");
    tell(s, AOT_SEVERITY_NOTE, text, "", u->first);
  }
  return AOT_E_UNIMPLEMENTED;
}

/* ---- one node ---- */

/* The new value in the memory order of the old one, and with its name if it has none. */
static aot_status_t replace_result(em_t *e, uint32_t i, aot_value_t to, uint32_t first_new) {
  const aot_value_t from = {e->info.first_result.id + i};
  const aot_graph_api_t *g = e->host->graph;
  aot_type_t old;
  if (g->n_uses(e->prog, from) == 0) return AOT_OK;
  AOT_TRY(g->value_type(e->prog, from, &old));
  if (to.id == AOT_NO_ID)
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "result %u of %.*s is read, which is not supported", i, (int)e->desc->name.size,
            e->desc->name.data);
  if (old.kind == AOT_TYPE_TENSOR) to = em_value(e, em_laid_out(e, em_v(to), &old));
  if (e->status != AOT_OK) return e->status;
  if (to.id >= first_new && g->value_name(e->prog, to).size == 0)
    AOT_TRY(e->host->edit->name_set(e->prog, to, g->value_name(e->prog, from)));
  return e->host->edit->uses_replace(e->prog, from, to);
}

static aot_status_t rewrite(stage_t *s, em_t *e, rg_rule_t rule) {
  const uint32_t n = e->info.n_results, first_new = e->host->graph->n_values(e->prog);
  aot_value_t *out = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n + 1) * sizeof *out);
  if (!out) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) out[i] = aot_no_value();
  rule(e, out);
  if (e->status != AOT_OK || rg_of(e)->is_left) return e->status;
  for (uint32_t i = 0; i < n; i++) AOT_TRY(replace_result(e, i, out[i], first_new));
  s->counts.nodes++;
  return s->host->edit->node_erase(s->prog, e->node);
}

/* A rule for operators without one: what their operator set makes of them. */
static void decompose(em_t *e, aot_value_t *out) {
  e->status = e->host->edit->decompose(e->prog, e->node, out);
  rg_of(e)->is_left = e->status == AOT_E_UNIMPLEMENTED;
  if (rg_of(e)->is_left) e->status = AOT_OK;
}

/* The operator that a node runs: with_effects stands around another. */
static aot_op_t runs(const em_t *e) {
  for (uint32_t a = 0; a < e->info.n_args; a++)
    if (e->info.args[a].kind == AOT_ARG_OP) return (aot_op_t){(uint32_t)e->info.args[a].u.i};
  return e->info.op;
}

static aot_status_t visit_state_node(stage_t *s, em_t *outer);

/* *out_rewritten: other nodes are in its place, which are to be visited. */
static aot_status_t visit(stage_t *s, em_t *e, aot_node_t node, int *out_rewritten) {
  *out_rewritten = 0;
  AOT_TRY(em_rewrite(e, node));
  rg_of(e)->is_left = 0;
  if (rg_calls_random(e, s->graphs)) return rg_extend_call(e, s->graphs);
  if (rg_is_state_node(&s->states, e)) return visit_state_node(s, e);
  const uint16_t row = s->row_of_op[e->info.op.id];
  if (row) {
    AOT_TRY(rewrite(s, e, rg_row_at(row - 1u)->rule));
    *out_rewritten = !rg_of(e)->is_left;
    return AOT_OK;
  }
  const aot_op_t op = runs(e);
  if (!(s->host->graph->op_desc(s->prog, op)->flags & AOT_OP_RANDOM)) return AOT_OK;
  rg_of(e)->is_left = 1;
  if (op.id == e->info.op.id) AOT_TRY(rewrite(s, e, decompose));
  *out_rewritten = !rg_of(e)->is_left;
  if (rg_of(e)->is_left) note_unknown(s, op, node);
  return AOT_OK;
}

/* ---- one graph ---- */

/* The nodes of a graph from `first` on, up to `stop`. What a rule wrote is visited too: attention becomes dropout,
 * which becomes a draw. */
static aot_status_t visit_nodes(stage_t *s, em_t *e, aot_node_t first, aot_node_t stop) {
  const aot_graph_api_t *g = s->host->graph;
  aot_node_t next;
  for (aot_node_t n = first; n.id != AOT_NO_ID && n.id != stop.id; n = next) {
    const aot_node_t before = g->prev(s->prog, n);
    int rewritten;
    next = g->next(s->prog, n);
    if (s->host->cancelled(s->host, s->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(visit(s, e, n, &rewritten));
    if (rewritten) next = before.id == AOT_NO_ID ? g->first(s->prog, e->graph) : g->next(s->prog, before);
  }
  return AOT_OK;
}

/* An operator between a saved random state and its use draws from that state, and so do the nodes that it is written
 *
 * with. */
static aot_status_t visit_state_node(stage_t *s, em_t *outer) {
  em_t e = *outer;
  rg_state_use_t use;
  AOT_TRY(rg_states_enter(&s->states, outer, &use));
  rg_draw_state_t draws = {.stream = use.stream, .attention = &s->attention};
  e.self = &draws;
  s->counts.nodes++;
  return visit_nodes(s, &e, use.inner, use.stop);
}

static aot_status_t visit_graph(stage_t *s, aot_graph_t graph) {
  rg_graph_t *here = &s->graphs[graph.id];
  rg_draw_state_t draws = {.stream = &here->stream, .attention = &s->attention};
  em_t e = em_make(s->host, s->ctx, s->prog, graph);
  e.code = "rng.rewrite";
  e.self = &draws;
  AOT_TRY(visit_nodes(s, &e, s->host->graph->first(s->prog, graph), aot_no_node()));
  AOT_TRY(rg_states_finish(&s->states, &e));
  here->draws = here->stream.seed.id != AOT_NO_ID;
  return AOT_OK;
}

/* The offset of the next step. */
static aot_status_t add_advance(stage_t *s, aot_graph_t graph) {
  const rg_graph_t *here = &s->graphs[graph.id];
  em_t e = em_make(s->host, s->ctx, s->prog, graph);
  int32_t kind;
  aot_str_t name;
  AOT_TRY(s->host->graph->graph_info(s->prog, graph, &kind, &name));
  if (!here->draws || kind == AOT_GRAPH_REGION) return AOT_OK;
  s->counts.draws += here->stream.next;
  const int64_t advance = (int64_t)here->stream.next * s->n_ranks;
  const aot_value_t offset = em_value(&e, EM(&e, "add.Scalar", em_v(here->stream.offset), em_i(advance)));
  return e.status == AOT_OK ? s->host->edit->output_add(s->prog, graph, AOT_ROLE_OFFSET, 0, offset, aot_str("offset"))
                            : e.status;
}

static int init(stage_t *s) {
  const aot_graph_api_t *g = s->host->graph;
  const uint64_t n_ops = (uint64_t)g->n_ops(s->prog) + 1, n_graphs = (uint64_t)g->n_graphs(s->prog) + 1;
  s->row_of_op = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 2, n_ops * sizeof *s->row_of_op);
  s->unknown = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 8, n_ops * sizeof *s->unknown);
  s->unknown_of_op = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 4, n_ops * sizeof *s->unknown_of_op);
  s->graphs = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 8, n_graphs * sizeof *s->graphs);
  if (!s->row_of_op || !s->unknown || !s->unknown_of_op || !s->graphs) return 0;
  for (uint64_t i = 0; i < n_graphs; i++) {
    const aot_value_t none = aot_no_value();
    s->graphs[i] = (rg_graph_t){.stream = {.seed = none, .offset = none, .there_seed = none, .there_offset = none}};
  }
  rg_states_init(&s->states, s->host, s->prog);
  for (uint32_t i = 0; i < rg_n_rows(); i++) {
    const aot_op_t op = g->op_find(s->prog, aot_str(rg_row_at(i)->op));
    if (op.id != AOT_NO_ID) s->row_of_op[op.id] = (uint16_t)(i + 1);
  }
  return 1;
}

aot_status_t rg_make_explicit(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t n_ranks,
                              rg_counts_t *out) {
  stage_t s = {.host = host, .ctx = ctx, .prog = prog, .n_ranks = n_ranks};
  uint32_t n = 0;
  uint32_t *order = init(&s) ? rg_call_order(host, ctx, prog, &n) : NULL;
  if (!order) {
    tell(&s, AOT_SEVERITY_ERROR, "no memory to walk over the program", "", aot_no_node());
    return AOT_E_EXHAUSTED;
  }
  for (uint32_t i = 0; i < n; i++) AOT_TRY(visit_graph(&s, (aot_graph_t){order[i]}));
  AOT_TRY(tell_unknown(&s));
  for (uint32_t i = 0; i < n; i++) AOT_TRY(add_advance(&s, (aot_graph_t){order[i]}));
  *out = s.counts;
  return AOT_OK;
}
