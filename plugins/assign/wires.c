#include "wires.h"

#include "convex.h"
#include "kit/graph/snap_expr.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

/* ---- the wires of a graph ---- */

static uint64_t nbytes_of(const aot_snapshot_t *p, const aot_snap_value_t *v, const int64_t *exprs) {
  const int64_t *ints = AOT_SNAP_ROWS(p, int64_t, ints);
  uint64_t n = aot_dtype_size(v->dtype);
  if (v->kind != AOT_TYPE_TENSOR) return v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN ? 0 : 8;
  for (int32_t d = 0; d < v->rank; d++) {
    const int64_t size = sn_dim(ints[v->dims + (uint32_t)d], exprs);
    n *= size > 0 ? (uint64_t)size : 0;
  }
  return n;
}

/* Dimensions at the hints of their symbols; none exists where a hint makes none. */
static aot_status_t eval_hints(const as_stage_t *s, const aot_snapshot_t *p, int64_t **out) {
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(p, aot_snap_symbol_t, symbols);
  int64_t *hints = as_alloc(s, p->symbols.count, sizeof *hints);
  sn_error_t error;
  *out = as_alloc(s, p->exprs.count, sizeof **out);
  if (!hints || !*out) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < p->symbols.count; i++) hints[i] = symbols[i].hint;
  return sn_exprs_eval(p, hints, p->symbols.count, *out, &error);
}

/* By value row: the wire + 1. What is a leaf that the graph does not write stays where it is read; copies are
 * stored. */
static void find_wires(const aot_snapshot_t *p, const aot_snap_graph_t *g, const int64_t *exprs, uint32_t *of,
                       as_wires_t *w) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(p, aot_snap_value_t, values);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes) + g->node_begin;
  const aot_snap_port_t *in = AOT_SNAP_ROWS(p, aot_snap_port_t, ports) + g->input_begin;
  const aot_snap_port_t *out = AOT_SNAP_ROWS(p, aot_snap_port_t, ports) + g->output_begin;
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    uint32_t writer = 0;
    const int is_leaf = aot_role_is_leaf(in[i].role) && in[i].role != AOT_ROLE_USER_INPUT;
    if (is_leaf) writer = w->writer[in[i].index];
    if (is_leaf && !writer) continue;
    of[in[i].value] = w->n + 1;
    w->wire[w->n++] = (as_wire_t){.maker = writer, .nbytes = nbytes_of(p, &values[in[i].value], exprs)};
  }
  for (uint32_t n = 0; n < g->n_nodes; n++)
    for (uint32_t v = nodes[n].result_begin; v < nodes[n].result_begin + nodes[n].n_results; v++) {
      of[v] = w->n + 1;
      w->wire[w->n++] = (as_wire_t){.maker = n + 1, .nbytes = nbytes_of(p, &values[v], exprs)};
    }
  for (uint32_t o = 0; o < g->n_outputs; o++)
    if (out[o].value && of[out[o].value] && out[o].role != AOT_ROLE_UPDATE) w->wire[of[out[o].value] - 1].is_wanted = 1;
}

static aot_status_t find_writers(const as_stage_t *s, const aot_snapshot_t *p, const aot_snap_graph_t *g,
                                 as_wires_t *w) {
  const aot_snap_port_t *out = AOT_SNAP_ROWS(p, aot_snap_port_t, ports) + g->output_begin;
  w->writer = as_alloc(s, p->leaves.count, sizeof *w->writer);
  if (!w->writer) return AOT_E_EXHAUSTED;
  for (uint32_t o = 0; o < g->n_outputs; o++) {
    const uint32_t def =
        out[o].role == AOT_ROLE_UPDATE ? AOT_SNAP_ROWS(p, aot_snap_value_t, values)[out[o].value].def : 0;
    if (def) w->writer[out[o].index] = def - g->node_begin + 1;
  }
  return AOT_OK;
}

aot_status_t as_find_wires(const as_stage_t *s, const aot_snapshot_t *p, const aot_snap_graph_t *g, as_wires_t *w) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes) + g->node_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(p, uint32_t, operands);
  uint32_t *of = as_alloc(s, p->values.count, sizeof *of);
  uint64_t n_operands = 0, n_results = 0;
  int64_t *exprs;
  *w = (as_wires_t){0};
  if (s->n_devices < 2) return AOT_OK;
  for (uint32_t n = 0; n < g->n_nodes; n++) {
    n_operands += nodes[n].n_operands;
    n_results += nodes[n].n_results;
  }
  w->wire = as_alloc(s, g->n_inputs + n_results, sizeof *w->wire);
  w->readers = as_alloc(s, n_operands, sizeof *w->readers);
  if (!of || !w->wire || !w->readers) return AOT_E_EXHAUSTED;
  if (eval_hints(s, p, &exprs) != AOT_OK) return AOT_OK; /* nothing is known of sizes */
  AOT_TRY(find_writers(s, p, g, w));
  find_wires(p, g, exprs, of, w);
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t n = 0; n < g->n_nodes; n++)
      for (uint32_t k = 0; k < nodes[n].n_operands; k++) {
        const uint32_t v = operands[nodes[n].operand_begin + k];
        as_wire_t *wire = v && of[v] ? &w->wire[of[v] - 1] : NULL;
        if (wire && pass) w->readers[wire->end] = n;
        if (wire) wire->end++;
      }
    for (uint32_t i = 0, at = 0; !pass && i < w->n; i++) {
      w->wire[i].begin = at;
      at += w->wire[i].end;
      w->wire[i].end = w->wire[i].begin;
    }
  }
  return AOT_OK;
}

/* ---- what moving takes ---- */

typedef struct counter {
  const as_stage_t *s;
  const as_wires_t *wires;
  const uint32_t *of;             /* by node position: its part */
  const uint32_t *device, *other; /* by part */
  uint32_t *n_on;                 /* by device: parts that want the wire there */
  uint32_t *stamp;                /* by part: the last wire + 1 that it was counted for */
  uint32_t *parts;                /* that read the wire */
} counter_t;

static uint64_t count_others(const counter_t *c, uint32_t than) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < c->s->n_devices; i++) n += i != than && c->n_on[i] != 0;
  return n;
}

static void count_wire(const counter_t *c, uint32_t number, as_move_time_t *out) {
  const as_wire_t *w = &c->wires->wire[number];
  const uint64_t each = c->s->move_delay + w->nbytes * 1000 / c->s->move_rate;
  const uint32_t maker = w->maker ? c->of[w->maker - 1] : AS_NONE;
  const uint32_t at = w->maker ? c->device[maker] : 0;
  uint32_t n = 0;
  memset(c->n_on, 0, c->s->n_devices * sizeof *c->n_on);
  c->n_on[0] = w->is_wanted;
  for (uint32_t r = w->begin; r < w->end; r++) {
    const uint32_t part = c->of[c->wires->readers[r]];
    if (part == maker || c->stamp[part] == number + 1) continue;
    c->stamp[part] = number + 1;
    c->parts[n++] = part;
    c->n_on[c->device[part]]++;
  }
  const uint64_t now = count_others(c, at) * each;
  if (maker != AS_NONE) {
    out[maker].here += now;
    out[maker].there += count_others(c, c->other[maker]) * each;
  }
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t part = c->parts[i];
    c->n_on[c->device[part]]--;
    c->n_on[c->other[part]]++;
    out[part].here += now;
    out[part].there += count_others(c, at) * each;
    c->n_on[c->other[part]]--;
    c->n_on[c->device[part]]++;
  }
}

aot_status_t as_count_moves(const as_stage_t *s, const as_wires_t *w, uint32_t n_parts, const uint32_t *part,
                            const uint32_t *device, const uint32_t *other, as_move_time_t *out) {
  const counter_t c = {.s = s,
                       .wires = w,
                       .of = part,
                       .device = device,
                       .other = other,
                       .n_on = as_alloc(s, s->n_devices, sizeof *c.n_on),
                       .stamp = as_alloc(s, n_parts, sizeof *c.stamp),
                       .parts = as_alloc(s, n_parts, sizeof *c.parts)};
  if (!c.n_on || !c.stamp || !c.parts) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < w->n; i++) count_wire(&c, i, out);
  return AOT_OK;
}
