#include "assign.h"

#include "claims.h"
#include "outline.h"
#include "worth.h"

#include "kit/graph/snap_births.h"
#include <aot/ext/report.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

/* ---- one graph, while the snapshot lasts ---- */

typedef struct edge {
  uint32_t from, to; /* positions */
} edge_t;

typedef struct reader {
  const as_stage_t *s;
  const aot_snapshot_t *p;
  const aot_snap_graph_t *graph;
  const aot_snap_node_t *nodes; /* of the graph */
  const uint8_t *births;        /* by node row */
  uint32_t *ids;                /* by position */
  uint32_t *home;               /* by output: the input in whose memory it may lie, a value row; 0: none */
  uint32_t *updater; /* by value row: the position + 1 of the node that makes what is to be in this input's memory */
  edge_t *edges;
  uint64_t n_edges;
} reader_t;

/* What the stage will do with one graph. */
typedef struct plan {
  aot_graph_t graph;
  uint32_t *part;    /* by node id */
  uint32_t *backend; /* by part */
  uint32_t n_parts;
  uint8_t *in_place; /* by output */
} plan_t;

static const uint32_t *operands_of(const reader_t *r, uint32_t n) {
  return AOT_SNAP_ROWS(r->p, uint32_t, operands) + r->nodes[n].operand_begin;
}

static uint32_t flags_of(const reader_t *r, uint32_t n) {
  return AOT_SNAP_ROWS(r->p, aot_snap_op_t, ops)[r->nodes[n].op].flags;
}

/* The position + 1 of the node that makes a value row; 0: an input, or none. */
static uint32_t maker(const reader_t *r, uint32_t value) {
  const uint32_t def = AOT_SNAP_ROWS(r->p, aot_snap_value_t, values)[value].def;
  return def ? def - r->graph->node_begin + 1 : 0;
}

/* Of a step's outputs the inputs in whose memory they lie (aot/graph.h), and who writes there. */
static aot_status_t find_homes(reader_t *r) {
  const aot_snap_port_t *in = AOT_SNAP_ROWS(r->p, aot_snap_port_t, ports) + r->graph->input_begin;
  const aot_snap_port_t *out = AOT_SNAP_ROWS(r->p, aot_snap_port_t, ports) + r->graph->output_begin;
  uint32_t *of_leaf = as_alloc(r->s, r->p->leaves.count, sizeof *of_leaf), offset = 0; /* value rows */
  r->home = as_alloc(r->s, r->graph->n_outputs, sizeof *r->home);
  r->updater = as_alloc(r->s, r->p->values.count, sizeof *r->updater);
  if (!of_leaf || !r->home || !r->updater) return AOT_E_EXHAUSTED;
  if (r->graph->kind != AOT_GRAPH_STEP) return AOT_OK;
  for (uint32_t i = 0; i < r->graph->n_inputs; i++) {
    if (aot_role_is_leaf(in[i].role)) of_leaf[in[i].index] = in[i].value;
    if (in[i].role == AOT_ROLE_OFFSET) offset = in[i].value;
  }
  for (uint32_t o = 0; o < r->graph->n_outputs; o++) {
    if (!out[o].value) continue;
    if (out[o].role == AOT_ROLE_UPDATE) r->home[o] = of_leaf[out[o].index];
    if (out[o].role == AOT_ROLE_OFFSET) r->home[o] = offset;
    if (r->home[o]) r->updater[r->home[o]] = maker(r, out[o].value);
  }
  return AOT_OK;
}

/* ---- what comes before what ---- */

static void add_edge(reader_t *r, uint32_t from, uint32_t to) { r->edges[r->n_edges++] = (edge_t){from, to}; }

/* Operands; effects and collectives in their order; and what writes over an input's memory after what reads it, as far
 * as it follows that already: so that no copy of the new value has to wait. */
static void add_edges_of(reader_t *r, uint32_t n, uint32_t *last_effect) {
  for (uint32_t k = 0; k < r->nodes[n].n_operands; k++) {
    const uint32_t v = operands_of(r, n)[k], from = v ? maker(r, v) : 0;
    if (from) add_edge(r, from - 1, n);
    if (v && r->updater[v] > n + 1) add_edge(r, n, r->updater[v] - 1);
  }
  if (!(flags_of(r, n) & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_RANDOM))) return;
  if (*last_effect) add_edge(r, *last_effect - 1, n);
  *last_effect = n + 1;
}

static aot_status_t read_order(reader_t *r, as_graph_t *out) {
  const uint32_t n_nodes = r->graph->n_nodes;
  uint64_t most = n_nodes;
  uint32_t last_effect = 0;
  for (uint32_t n = 0; n < n_nodes; n++) most += 2 * (uint64_t)r->nodes[n].n_operands;
  r->edges = as_alloc(r->s, most, sizeof *r->edges);
  uint32_t *begin = as_alloc(r->s, n_nodes + 2u, sizeof *begin), *edges = as_alloc(r->s, most, sizeof *edges);
  if (!r->edges || !begin || !edges) return AOT_E_EXHAUSTED;
  for (uint32_t n = 0; n < n_nodes; n++) add_edges_of(r, n, &last_effect);
  for (uint64_t e = 0; e < r->n_edges; e++) begin[r->edges[e].from + 1]++;
  for (uint32_t n = 0; n < n_nodes; n++) begin[n + 1] += begin[n];
  for (uint64_t e = r->n_edges; e-- > 0;) edges[--begin[r->edges[e].from + 1]] = r->edges[e].to;
  for (uint32_t n = 0; n < n_nodes; n++) begin[n] = begin[n + 1];
  begin[n_nodes] = (uint32_t)r->n_edges;
  *out = (as_graph_t){n_nodes, begin, edges};
  return AOT_OK;
}

/* ---- who runs what ---- */

/* A graph whose sizes or numbers only a run reports stays whole: nothing that is between parts could be given memory
 * before it. */
static uint32_t what_keeps_it_whole(const reader_t *r) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(r->p, aot_snap_value_t, values);
  for (uint32_t n = 0; n < r->graph->n_nodes; n++) {
    if (r->births[r->graph->node_begin + n]) return n + 1;
    for (uint32_t v = r->nodes[n].result_begin; v < r->nodes[n].result_begin + r->nodes[n].n_results; v++)
      if (values[v].kind != AOT_TYPE_TENSOR && values[v].kind != AOT_TYPE_NONE) return n + 1;
  }
  return 0;
}

/* The first node that the backend does not claim, + 1. */
static uint32_t first_unclaimed(const reader_t *r, uint32_t backend) {
  for (uint32_t n = 0; n < r->graph->n_nodes; n++)
    if (!r->s->is_claimed[as_row(r->s, backend, r->ids[n])]) return n + 1;
  return 0;
}

static aot_status_t colour_whole(const reader_t *r, uint32_t why, uint32_t *colour) {
  uint32_t b = 1, left = 0;
  while (b <= r->s->n_backends && (left = first_unclaimed(r, b)) != 0) b++;
  if (b > r->s->n_backends) {
    const aot_str_t name = aot_snap_text(r->p, AOT_SNAP_ROWS(r->p, aot_snap_op_t, ops)[r->nodes[left - 1].op].name);
    return as_fail(r->s, r->ids[why - 1], "assign.whole", "put a backend that takes all of it at the end of the stages",
                   "a size or number that only a run tells keeps the graph whole, and no backend takes all of it; the "
                   "last one leaves "
                   "%.*s",
                   (int)name.size, name.data);
  }
  for (uint32_t n = 0; n < r->graph->n_nodes; n++) colour[n] = b - 1;
  return AOT_OK;
}

static aot_status_t colour_nodes(const reader_t *r, uint32_t *colour) {
  for (uint32_t n = 0; n < r->graph->n_nodes; n++) {
    uint32_t b = 1;
    while (b <= r->s->n_backends && !r->s->is_claimed[as_row(r->s, b, r->ids[n])]) b++;
    if (b > r->s->n_backends)
      return as_fail(r->s, r->ids[n], "assign.no-backend", NULL,
                     "no backend of the pipeline supports this node and its regions; append one that does");
    colour[n] = b - 1;
  }
  return AOT_OK;
}

/* ---- which outputs may be where their old values do ---- */

/* An output that no node makes is handed over; so is one whose old value is read, or is an output itself, after the
 * part that writes it. */
static aot_status_t find_places(const reader_t *r, const as_division_t *d, uint8_t *in_place) {
  const aot_snap_port_t *out = AOT_SNAP_ROWS(r->p, aot_snap_port_t, ports) + r->graph->output_begin;
  uint32_t *last_reader = as_alloc(r->s, r->p->values.count, sizeof *last_reader); /* part + 1 */
  if (!last_reader) return AOT_E_EXHAUSTED;
  for (uint32_t n = 0; n < r->graph->n_nodes; n++)
    for (uint32_t k = 0; k < r->nodes[n].n_operands; k++) {
      const uint32_t v = operands_of(r, n)[k];
      if (v && d->part[n] + 1 > last_reader[v]) last_reader[v] = d->part[n] + 1;
    }
  for (uint32_t o = 0; o < r->graph->n_outputs; o++)
    if (out[o].value && !maker(r, out[o].value)) last_reader[out[o].value] = AS_NONE;
  for (uint32_t o = 0; o < r->graph->n_outputs; o++) {
    const uint32_t by = out[o].value ? maker(r, out[o].value) : 0, home = r->home[o];
    in_place[o] = by && (!home || last_reader[home] <= d->part[by - 1] + 1);
  }
  return AOT_OK;
}

/* ---- one graph ---- */

static aot_status_t plan_graph(reader_t *r, plan_t *out, uint32_t *out_moved) {
  const uint32_t n = r->graph->n_nodes;
  as_division_t d = {.colour = as_alloc(r->s, n, sizeof *d.colour), .part = as_alloc(r->s, n, sizeof *d.part)};
  r->ids = as_alloc(r->s, n, sizeof *r->ids);
  out->part = as_alloc(r->s, r->s->n_nodes, sizeof *out->part);
  out->in_place = as_alloc(r->s, r->graph->n_outputs, 1);
  if (!d.colour || !d.part || !r->ids || !out->part || !out->in_place) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) r->ids[i] = r->nodes[i].id;
  d.nodes = r->ids;
  AOT_TRY(find_homes(r));
  AOT_TRY(read_order(r, &d.order));
  const uint32_t whole = what_keeps_it_whole(r);
  AOT_TRY(whole ? colour_whole(r, whole, d.colour) : colour_nodes(r, d.colour));
  if (whole) d.n_parts = 1; /* all of part 0 */
  as_wires_t wires;
  AOT_TRY(as_find_wires(r->s, r->p, r->graph, &wires));
  d.wires = &wires;
  if (!whole) AOT_TRY(as_divide_worthily(r->s, &d, out_moved));
  AOT_TRY(find_places(r, &d, out->in_place));
  out->graph = (aot_graph_t){r->graph->id};
  out->n_parts = n ? d.n_parts : 0;
  out->backend = as_alloc(r->s, d.n_parts, sizeof *out->backend);
  if (!out->backend) return AOT_E_EXHAUSTED;
  memset(out->part, 0xff, (size_t)r->s->n_nodes * sizeof *out->part);
  for (uint32_t i = 0; i < n; i++) {
    out->part[r->ids[i]] = d.part[i];
    out->backend[d.part[i]] = d.colour[i] + 1;
  }
  return AOT_OK;
}

/* Regions are of their nodes. */
static aot_status_t plan_all(as_stage_t *s, plan_t **out, uint32_t *out_n, uint32_t *out_moved) {
  const aot_snapshot_t *p;
  AOT_TRY(s->host->graph->snapshot(s->prog, &p));
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(p, aot_snap_graph_t, graphs);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes);
  uint8_t *births = as_alloc(s, p->nodes.count + 1u, 1);
  *out = as_alloc(s, p->graphs.count, sizeof **out);
  if (!births || !*out) return AOT_E_EXHAUSTED;
  if (sn_births(p, births) != 0) return AOT_E_EXHAUSTED;
  AOT_TRY(as_ask(s, p));
  for (uint32_t g = 1; g < p->graphs.count; g++) {
    if (graphs[g].kind == AOT_GRAPH_REGION) continue;
    reader_t r = {.s = s, .p = p, .graph = &graphs[g], .nodes = nodes + graphs[g].node_begin, .births = births};
    AOT_TRY(plan_graph(&r, &(*out)[(*out_n)++], out_moved));
  }
  return AOT_OK;
}

static aot_status_t report(const as_stage_t *s, const plan_t *plans, uint32_t n_plans, uint32_t n_moved) {
  const aot_ext_report_t *r = aot_ext(&s->host->head, AOT_EXT_REPORT);
  uint32_t n_parts = 0;
  for (uint32_t i = 0; i < n_plans; i++) n_parts += plans[i].n_parts;
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, s->ctx, aot_str("parts"), n_parts, aot_str("")));
  return r->number(r, s->ctx, aot_str("not-worth-it"), n_moved, aot_str("nodes"));
}

/* "strict,,host" */
static aot_status_t read_devices(as_stage_t *s, aot_str_t text) {
  s->device = as_alloc(s, s->n_backends, sizeof *s->device);
  s->device_of = as_alloc(s, s->n_backends, sizeof *s->device_of);
  s->n_devices = 1;
  if (!s->device || !s->device_of) return AOT_E_EXHAUSTED;
  for (uint32_t b = 0; b < s->n_backends; b++) {
    const char *comma = text.size ? memchr(text.data, ',', (size_t)text.size) : NULL;
    s->device[b] = (aot_str_t){text.data, comma ? (uint64_t)(comma - text.data) : text.size};
    const uint64_t skip = s->device[b].size + (comma != NULL);
    text = (aot_str_t){text.data + skip, text.size - skip};
    for (uint32_t k = 0; k < b && s->device[b].size && !s->device_of[b]; k++)
      if (aot_str_eq(s->device[k], s->device[b])) s->device_of[b] = s->device_of[k];
    if (s->device[b].size && !s->device_of[b]) s->device_of[b] = s->n_devices++;
  }
  return AOT_OK;
}

aot_status_t as_assign(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const as_options_t *options) {
  as_stage_t s = {.host = host,
                  .ctx = ctx,
                  .prog = prog,
                  .backends = aot_ext(&host->head, AOT_EXT_BACKENDS),
                  .least_nodes = options->least_nodes,
                  .move_delay = options->move_delay,
                  .move_rate = options->move_rate,
                  .withheld = options->withheld,
                  .n_nodes = host->graph->n_nodes(prog)};
  plan_t *plans = NULL;
  uint32_t n_plans = 0, n_moved = 0;
  s.n_backends = s.backends ? s.backends->count(s.backends, ctx) : 0;
  if (!s.n_backends)
    return as_fail(&s, AOT_NO_ID, "assign.backends",
                   "backends stand behind it in the pipeline, the preferred one first",
                   "there is no backend to assign nodes to");
  AOT_TRY(read_devices(&s, options->devices));
  AOT_TRY(plan_all(&s, &plans, &n_plans, &n_moved));
  AOT_TRY(report(&s, plans, n_plans, n_moved));
  for (uint32_t i = 0; i < n_plans; i++)
    AOT_TRY(as_outline(&s, plans[i].graph, plans[i].part, plans[i].backend, plans[i].n_parts, plans[i].in_place));
  return AOT_OK;
}
