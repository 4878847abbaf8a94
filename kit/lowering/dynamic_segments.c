#include "dynamic_segments.h"

#include "kit/base/vector.h"
#include "kit/graph/snap_births.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX

/* Rows that grow; `failed` once there was no memory. */
typedef struct rows {
  char *at;
  uint32_t count, capacity;
  int failed;
} rows_t;

static void put(rows_t *r, const void *row, size_t size) {
  char *grown = kit_grow(r->at, &r->capacity, (uint64_t)r->count + 1, size);
  r->failed |= grown == NULL;
  if (!grown) return;
  r->at = grown;
  memcpy(r->at + r->count++ * size, row, size);
}

typedef struct splitter {
  const aot_snapshot_t *s;
  const aot_snap_node_t *nodes;
  const uint32_t *operands;
  uint8_t *births; /* by node row */
  /* by value row: where it is made, 2k in segment k, 2k + 1 by the birth after it; NOWHERE: an input */
  uint32_t *place;
  uint32_t *last;  /* by value row: where it is read last, counted alike */
  uint32_t *stamp; /* by value row: the segment that lists it as an input */
  rows_t graphs, ports, parts;
} splitter_t;

/* ---- where values are made and read ---- */

static void read_at(splitter_t *c, uint32_t value, uint32_t place) {
  if (value != AOT_NO_ID && c->last[value] < place) c->last[value] = place;
}

static void find_places(splitter_t *c, const aot_snap_graph_t *g) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(c->s, aot_snap_port_t, ports);
  uint32_t segment = 0;
  for (uint32_t i = g->node_begin; i < g->node_begin + g->n_nodes; i++) {
    const aot_snap_node_t *n = &c->nodes[i];
    const uint32_t place = 2 * segment + c->births[i];
    for (uint32_t k = 0; k < n->n_operands; k++) read_at(c, c->operands[n->operand_begin + k], place);
    for (uint32_t r = 0; r < n->n_results; r++) c->place[n->result_begin + r] = place;
    segment += c->births[i];
  }
  for (uint32_t o = 0; o < g->n_outputs; o++) read_at(c, ports[g->output_begin + o].value, 2 * segment);
}

/* ---- segments ---- */

static void add_port(splitter_t *c, uint32_t value, uint32_t number) {
  const aot_snap_port_t port = {.index = number, .value = value};
  put(&c->ports, &port, sizeof port);
}

static void add_input(splitter_t *c, aot_snap_graph_t *segment, uint32_t value, uint32_t number) {
  if (value == AOT_NO_ID || c->place[value] == 2 * number || c->stamp[value] == segment->id) return;
  c->stamp[value] = segment->id;
  add_port(c, value, segment->n_inputs++);
}

/* Nodes [begin, end) are segment `number` of g. */
static void add_segment(splitter_t *c, const aot_snap_graph_t *g, uint32_t number, uint32_t begin, uint32_t end,
                        uint32_t birth) {
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(c->s, aot_snap_port_t, ports) + g->output_begin;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(c->s, aot_snap_value_t, values);
  AOT_ASSERT(begin <= end && end <= g->node_begin + g->n_nodes);
  const int is_last = birth == AOT_NO_ID;
  aot_snap_graph_t segment = {
      .id = c->s->graphs.count + c->graphs.count,
      .kind = AOT_GRAPH_REGION,
      .name = g->name,
      .node_begin = begin,
      .n_nodes = end - begin,
      .input_begin = c->s->ports.count + c->ports.count,
  };
  const lw_part_t part = {segment.id, birth};
  for (uint32_t i = begin; i < end; i++)
    for (uint32_t k = 0; k < c->nodes[i].n_operands; k++)
      add_input(c, &segment, c->operands[c->nodes[i].operand_begin + k], number);
  for (uint32_t o = 0; is_last && o < g->n_outputs; o++) add_input(c, &segment, outputs[o].value, number);
  segment.output_begin = c->s->ports.count + c->ports.count;
  for (uint32_t i = begin; !is_last && i < end; i++)
    for (uint32_t v = c->nodes[i].result_begin; v < c->nodes[i].result_begin + c->nodes[i].n_results; v++)
      if ((values[v].kind == AOT_TYPE_TENSOR || values[v].kind == AOT_TYPE_SYMFLOAT) && c->last[v] > 2 * number)
        add_port(c, v, segment.n_outputs++);
  for (uint32_t o = 0; is_last && o < g->n_outputs; o++) add_port(c, outputs[o].value, segment.n_outputs++);
  put(&c->graphs, &segment, sizeof segment);
  put(&c->parts, &part, sizeof part);
}

static uint32_t cut_graph(splitter_t *c, const aot_snap_graph_t *g) {
  uint32_t number = 0, begin = g->node_begin, end = begin + g->n_nodes;
  find_places(c, g);
  for (uint32_t i = begin; i < end; i++) {
    if (!c->births[i]) continue;
    add_segment(c, g, number++, begin, i, i);
    begin = i + 1;
  }
  add_segment(c, g, number++, begin, end, AOT_NO_ID);
  AOT_ASSERT(number > 1); /* has_birth */
  return number;
}

int lw_is_run(int32_t kind) { return kind != AOT_GRAPH_REGION && kind != AOT_GRAPH_JOINT; }

static int has_birth(const splitter_t *c, const aot_snap_graph_t *g) {
  const uint8_t *births = c->births + g->node_begin;
  return lw_is_run(g->kind) && memchr(births, 1, g->n_nodes) != NULL;
}

/* ---- the snapshot with more graphs ---- */

/* A row array at the end of the block: the old rows, then the new ones. */
static void extend(char *block, aot_snap_array_t *array, uint64_t *at, const rows_t *more) {
  AOT_ASSERT(*at % 8 == 0); /* rows of 8 bytes are aligned */
  memcpy(block + *at, block + array->at, (size_t)array->count * array->row_size);
  if (more->count)
    memcpy(block + *at + (size_t)array->count * array->row_size, more->at, (size_t)more->count * array->row_size);
  array->at = *at;
  array->count += more->count;
  *at += ((uint64_t)array->count * array->row_size + 7) / 8 * 8;
}

static aot_status_t extend_snapshot(lw_cut_t *out, const splitter_t *c) {
  const aot_snapshot_t *s = c->s;
  uint64_t at = (s->nbytes + 7) / 8 * 8;
  char *block = malloc((size_t)(at + ((uint64_t)s->graphs.count + c->graphs.count) * sizeof(aot_snap_graph_t) +
                                ((uint64_t)s->ports.count + c->ports.count) * sizeof(aot_snap_port_t) + 16));
  if (!block) return AOT_E_EXHAUSTED;
  memcpy(block, s, (size_t)s->nbytes);
  aot_snapshot_t *head = (aot_snapshot_t *)(void *)block;
  extend(block, &head->graphs, &at, &c->graphs);
  extend(block, &head->ports, &at, &c->ports);
  head->nbytes = at;
  out->block = block;
  out->s = head;
  return AOT_OK;
}

static aot_status_t cut(lw_cut_t *out, splitter_t *c) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(c->s, aot_snap_graph_t, graphs);
  for (uint32_t v = 1; v < c->s->values.count; v++) {
    c->place[v] = NOWHERE;
    c->stamp[v] = AOT_NO_INDEX;
  }
  for (uint32_t g = 1; g < c->s->graphs.count; g++) {
    out->first_part[g] = c->parts.count;
    if (has_birth(c, &graphs[g])) out->n_parts_of[g] = cut_graph(c, &graphs[g]);
  }
  if (c->graphs.failed || c->ports.failed || c->parts.failed) return AOT_E_EXHAUSTED;
  if (!c->parts.count) return AOT_OK;
  for (uint32_t v = 1; v < c->s->values.count; v++) out->last_use[v] = c->last[v] / 2;
  out->parts = (lw_part_t *)(void *)c->parts.at;
  out->n_parts = c->parts.count;
  c->parts.at = NULL;
  return extend_snapshot(out, c);
}

aot_status_t lw_cut_init(lw_cut_t *out, const aot_snapshot_t *s) {
  const size_t n_values = (size_t)s->values.count + 1, n_graphs = (size_t)s->graphs.count + 1;
  memset(out, 0, sizeof *out);
  out->s = s;
  out->first_part = calloc(n_graphs, 4);
  out->n_parts_of = calloc(n_graphs, 4);
  out->last_use = calloc(n_values, 4);
  splitter_t c = {s,
                  AOT_SNAP_ROWS(s, aot_snap_node_t, nodes),
                  AOT_SNAP_ROWS(s, uint32_t, operands),
                  calloc((size_t)s->nodes.count + 1, 1),
                  malloc(n_values * 4),
                  calloc(n_values, 4),
                  malloc(n_values * 4),
                  {0},
                  {0},
                  {0}};
  const int ok = out->first_part && out->n_parts_of && out->last_use && c.births && c.place && c.last && c.stamp &&
                 sn_births(s, c.births) == 0;
  const aot_status_t status = ok ? cut(out, &c) : AOT_E_EXHAUSTED;
  free(c.births);
  free(c.place);
  free(c.last);
  free(c.stamp);
  free(c.graphs.at);
  free(c.ports.at);
  free(c.parts.at);
  return status;
}

void lw_cut_deinit(lw_cut_t *c) {
  free(c->block);
  free(c->parts);
  free(c->first_part);
  free(c->n_parts_of);
  free(c->last_use);
  memset(c, 0, sizeof *c);
}
