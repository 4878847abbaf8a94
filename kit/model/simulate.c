#include "simulate.h"

#include "kit/loops/group.h"
#include "plan.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

#define GIVEN (UINT32_MAX - 1) /* a storage outside the arena */

typedef struct work {
  const ms_graph_t *g;
  const ms_run_t *run;
  uint32_t *position; /* by node: where it is in the run, MS_NONE: it does not */
  uint32_t *when;     /* by position: where it runs */
  uint32_t *maker;    /* by value: position of the node that makes it */
  uint32_t *root;     /* by value: whose memory it is in, GIVEN: not the arena; MS_NONE: no value of this run */
  uint32_t *last;     /* by value that is a root: last position that reads it */
  uint8_t *stored;    /* by value that is a root: it is in memory at all */
  uint8_t *handed;    /* by value that is a root: it is handed over where it lies */
  mp_buffer_t *plan;
} work_t;

static int work_init(work_t *w, const ms_graph_t *g, const ms_run_t *run) {
  size_t nodes = (size_t)g->n_nodes + 1, values = (size_t)g->n_values + 1, positions = (size_t)run->n_nodes + 1;
  memset(w, 0, sizeof *w);
  w->g = g;
  w->run = run;
  w->position = malloc(nodes * 4);
  w->when = malloc(positions * 4);
  w->maker = malloc(values * 4);
  w->root = malloc(values * 4);
  w->last = calloc(values, 4);
  w->stored = calloc(values, 1);
  w->handed = calloc(values, 1);
  if (!w->position || !w->when || !w->maker || !w->root || !w->last || !w->stored || !w->handed) return -2;
  memset(w->position, 0xff, nodes * 4);
  memset(w->root, 0xff, values * 4);
  memset(w->maker, 0xff, values * 4);
  return 0;
}

static void work_deinit(work_t *w) {
  void *arrays[] = {w->position, w->when, w->maker, w->root, w->last, w->stored, w->handed, w->plan};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* ---- who makes what, and in whose memory ---- */

static void find_roots(work_t *w) {
  const ms_graph_t *g = w->g;
  for (uint32_t v = 0; v < g->n_values; v++)
    if (w->run->is_given[v]) w->root[v] = GIVEN;
  for (uint32_t p = 0; p < w->run->n_nodes; p++) {
    uint32_t n = w->run->nodes[p];
    w->position[n] = p;
    for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++) {
      if (w->run->is_given[v]) continue;
      w->maker[v] = p;
      w->root[v] = g->base[v] == v || w->root[g->base[v]] == MS_NONE ? v : w->root[g->base[v]];
    }
  }
}

/* ---- when nodes run ---- */

static int find_times(work_t *w) {
  const ms_graph_t *g = w->g;
  uint32_t n = w->run->n_nodes, at = 0, n_operands = 0;
  for (uint32_t p = 0; p < n; p++)
    n_operands += g->operand_begin[w->run->nodes[p] + 1] - g->operand_begin[w->run->nodes[p]];
  uint32_t *begin = malloc(((size_t)n + 1) * 4), *producers = malloc(((size_t)n_operands + 1) * 4);
  uint32_t *space = malloc(((size_t)n + 1) * 4);
  int status = begin && producers && space ? 0 : -2;
  for (uint32_t p = 0; status == 0 && p < n; p++) {
    uint32_t node = w->run->nodes[p];
    begin[p] = at;
    space[p] = g->space[node] == MS_NONE ? FU_NONE : g->space[node];
    for (uint32_t k = g->operand_begin[node]; k < g->operand_begin[node + 1]; k++)
      producers[at++] = w->maker[g->operands[k]];
  }
  if (status == 0) {
    AOT_ASSERT(at == n_operands);
    begin[n] = at;
    fu_graph_t f = {n, begin, producers, space, g->max_loop, NULL, NULL, NULL, NULL, 0, NULL};
    status = fu_group(&f, w->when);
  }
  free(begin);
  free(producers);
  free(space);
  return status;
}

/* ---- lifetimes ---- */

static int is_view_node(const ms_graph_t *g, uint32_t n) {
  for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++)
    if (g->base[v] != v) return 1;
  return 0;
}

static void read_value(work_t *w, uint32_t v, uint32_t position, int is_view) {
  uint32_t r = w->root[v];
  if (r == GIVEN || r == MS_NONE) return;
  int is_member = !is_view && w->maker[v] != MS_NONE && r == v && w->g->space[w->run->nodes[w->maker[v]]] != MS_NONE &&
                  w->when[w->maker[v]] == w->when[position];
  if (!is_member) w->stored[r] = 1;
  if (!is_member && !is_view && w->when[position] > w->last[r]) w->last[r] = w->when[position];
}

static void find_lifetimes(work_t *w) {
  const ms_graph_t *g = w->g;
  for (uint32_t p = 0; p < w->run->n_nodes; p++) {
    uint32_t n = w->run->nodes[p];
    int is_view = is_view_node(g, n);
    for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++) {
      if (w->root[v] != v) continue;
      if (g->space[n] == MS_NONE) w->stored[v] = 1;
      if (w->when[p] > w->last[v]) w->last[v] = w->when[p];
    }
    for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) read_value(w, g->operands[k], p, is_view);
  }
}

/* First values that fill the memory they are in, which becomes the port's; what is left is copied at the end. */
static void find_outputs(work_t *w) {
  for (uint32_t i = 0; i < w->run->n_outputs; i++) {
    uint32_t v = w->run->outputs[i], r = v == MS_NONE ? MS_NONE : w->root[v];
    if (r != MS_NONE && r != GIVEN && w->g->nbytes[v] == w->g->nbytes[r]) w->handed[r] = 1;
  }
  for (uint32_t i = 0; i < w->run->n_outputs; i++) {
    uint32_t v = w->run->outputs[i], r = v == MS_NONE ? MS_NONE : w->root[v];
    if (r == MS_NONE || r == GIVEN || w->handed[r]) continue;
    w->stored[r] = 1;
    w->last[r] = w->run->n_nodes ? w->run->n_nodes - 1 : 0;
  }
}

/* ---- buffers ---- */

static int add_buffer(ms_arena_t *out, uint32_t capacity, ms_buffer_t b) {
  if (out->n_buffers == capacity) return -2;
  out->buffers[out->n_buffers++] = b;
  return 0;
}

/* An operand whose memory a loop may take over for result v: of its size, with memory of its own, read last by this
 * loop. */
static uint32_t find_takeover(const work_t *w, uint32_t n, uint32_t v, const uint32_t *buffer_of,
                              const ms_arena_t *out) {
  const ms_graph_t *g = w->g;
  if (!g->in_place || g->space[n] == MS_NONE) return MS_NONE;
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) {
    uint32_t o = g->operands[k];
    if (w->root[o] != o || g->nbytes[o] != g->nbytes[v] || buffer_of[o] == MS_NONE) continue;
    uint32_t now = w->when[w->maker[v]];
    if (w->maker[o] != MS_NONE && w->when[w->maker[o]] < now && out->buffers[buffer_of[o]].last == now) return o;
  }
  return MS_NONE;
}

static int put_result(work_t *w, uint32_t p, uint32_t v, uint32_t *buffer_of, ms_arena_t *out, uint32_t capacity) {
  uint32_t n = w->run->nodes[p];
  if (w->root[v] != v || !w->stored[v] || w->handed[v] || w->g->nbytes[v] == 0) return 0;
  AOT_ASSERT(w->last[v] >= w->when[p] && buffer_of[v] == MS_NONE);
  uint32_t from = find_takeover(w, n, v, buffer_of, out);
  if (from != MS_NONE) {
    buffer_of[v] = buffer_of[from];
    buffer_of[from] = MS_NONE;
    if (w->last[v] > out->buffers[buffer_of[v]].last) out->buffers[buffer_of[v]].last = w->last[v];
    return 0;
  }
  buffer_of[v] = out->n_buffers;
  return add_buffer(out, capacity, (ms_buffer_t){v, n, w->when[p], w->last[v], w->g->nbytes[v], 0});
}

static int list_buffers(work_t *w, ms_arena_t *out) {
  const ms_graph_t *g = w->g;
  uint32_t capacity = w->run->n_nodes, *buffer_of = malloc(((size_t)g->n_values + 1) * 4);
  for (uint32_t p = 0; p < w->run->n_nodes; p++)
    capacity += g->result_begin[w->run->nodes[p] + 1] - g->result_begin[w->run->nodes[p]];
  out->buffers = malloc(((size_t)capacity + 1) * sizeof *out->buffers);
  int status = out->buffers && buffer_of ? 0 : -2;
  if (status == 0) memset(buffer_of, 0xff, ((size_t)g->n_values + 1) * 4);
  for (uint32_t p = 0; status == 0 && p < w->run->n_nodes; p++) {
    uint32_t n = w->run->nodes[p];
    for (uint32_t v = g->result_begin[n]; status == 0 && v < g->result_begin[n + 1]; v++)
      status = put_result(w, p, v, buffer_of, out, capacity);
    if (status == 0 && g->scratch[n])
      status = add_buffer(out, capacity, (ms_buffer_t){MS_NONE, n, w->when[p], w->when[p], g->scratch[n], 0});
  }
  free(buffer_of);
  return status;
}

/* Bytes that come and go at each position; unsigned sums may pass through "less than nothing". */
static int most_alive(const work_t *w, ms_arena_t *out) {
  uint64_t *change = calloc((size_t)w->run->n_nodes + 2, sizeof *change), now = 0;
  if (!change) return -2;
  for (uint32_t i = 0; i < out->n_buffers; i++) {
    uint64_t nbytes = (out->buffers[i].nbytes + w->g->align - 1) & ~(w->g->align - 1);
    change[out->buffers[i].first] += nbytes;
    change[out->buffers[i].last + 1] -= nbytes;
  }
  for (uint32_t p = 0; p < w->run->n_nodes; p++) {
    now += change[p];
    if (now > out->live) out->live = now;
  }
  AOT_ASSERT(now + change[w->run->n_nodes] == 0); /* all that came is gone */
  free(change);
  return 0;
}

static int lay_out(work_t *w, ms_arena_t *out) {
  w->plan = malloc(((size_t)out->n_buffers + 1) * sizeof *w->plan);
  if (!w->plan) return -2;
  for (uint32_t i = 0; i < out->n_buffers; i++)
    w->plan[i] = (mp_buffer_t){out->buffers[i].nbytes, out->buffers[i].first, out->buffers[i].last, 0};
  if (mp_plan(w->plan, out->n_buffers, w->g->align, &out->nbytes) != 0) return -2;
  if (most_alive(w, out) != 0) return -2;
  AOT_ASSERT(out->live <= out->nbytes);
  out->peak = MS_NONE;
  for (uint32_t i = 0; i < out->n_buffers; i++) {
    ms_buffer_t *b = &out->buffers[i];
    uint64_t end = (w->plan[i].offset + b->nbytes + w->g->align - 1) & ~(w->g->align - 1);
    b->place = w->plan[i].offset;
    if (end == out->nbytes && b->first < out->peak) out->peak = b->first;
  }
  if (out->peak == MS_NONE) out->peak = 0;
  return 0;
}

int ms_simulate(const ms_graph_t *g, const ms_run_t *run, ms_arena_t *out) {
  work_t w;
  memset(out, 0, sizeof *out);
  int status = work_init(&w, g, run);
  if (status == 0) {
    find_roots(&w);
    status = find_times(&w);
  }
  if (status == 0) {
    find_lifetimes(&w);
    find_outputs(&w);
    status = list_buffers(&w, out);
  }
  if (status == 0) status = lay_out(&w, out);
  if (status == 0) { /* positions become times */
    for (uint32_t v = 0; v < g->n_values; v++)
      if (w.maker[v] != MS_NONE) w.maker[v] = w.when[w.maker[v]];
    out->made = w.maker;
    w.maker = NULL;
  }
  work_deinit(&w);
  return status;
}

void ms_arena_deinit(ms_arena_t *a) {
  free(a->buffers);
  free(a->made);
  memset(a, 0, sizeof *a);
}
