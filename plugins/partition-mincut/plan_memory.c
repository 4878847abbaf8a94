#include "plan_memory.h"

#include "kit/partition/apply.h"
#include "kit/graph/split.h"
#include "step_arena.h"
#include <aot/graph.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

#define NOT_TWICE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)

static uint64_t round_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

/* What is handed to the caller keeps its type. */
static uint64_t size_of(const mc_model_t *m, uint32_t v) {
  return v == JG_NONE ? 0 : round_up(m->extent ? m->extent[v] : m->j->nbytes[v], m->graph->align);
}

uint64_t mc_slot_nbytes(const mc_model_t *m, uint32_t v) {
  uint64_t nbytes = m->j->nbytes[v];
  if (m->one) return m->root[v] < m->j->n_inputs ? 0 : round_up(m->j->nbytes[m->root[v]], m->graph->align);
  return round_up(m->extent && m->extent[v] < nbytes ? m->extent[v] : nbytes, m->graph->align);
}

/* A tangent in one graph is a value that the backward begins with, and counted as if it were held all the time. */
static void count_fixed(mc_model_t *m) {
  const jg_joint_t *j = m->j;
  uint64_t tangents = 0;
  for (uint32_t v = 0; v < j->n_inputs; v++) {
    if (j->input_kind[v] != JG_INPUT_STATIC) m->fixed_nbytes += size_of(m, v);
    if (j->input_kind[v] == JG_INPUT_TANGENT) tangents += size_of(m, v);
  }
  for (uint32_t i = 0; i < j->n_forward_outputs; i++)
    if (!m->one || m->one->output[i] == MC_HANDED) m->fixed_nbytes += size_of(m, j->forward_outputs[i]);
  for (uint32_t i = 0; i < j->n_gradients && !m->one; i++) m->fixed_nbytes += size_of(m, j->gradients[i]);
  m->sure_nbytes = m->fixed_nbytes - (m->one ? tangents : 0);
}

int mc_model_init(mc_model_t *m, const jg_joint_t *j, const ms_graph_t *graph, const uint64_t *extent,
                  const uint8_t *needs_slot, const mc_work_t *work, const mc_one_graph_t *one) {
  *m = (mc_model_t){.j = j, .graph = graph, .extent = extent, .needs_slot = needs_slot, .one = one};
  m->cost = calloc((size_t)j->n_nodes + 1, sizeof *m->cost);
  m->is_fixed = calloc((size_t)j->n_nodes + 1, 1);
  m->root = calloc((size_t)j->n_values + 1, sizeof *m->root);
  if (!m->cost || !m->is_fixed || !m->root) return -2;
  for (uint32_t v = 0; v < j->n_values; v++) m->root[v] = graph->base[v] == v ? v : m->root[graph->base[v]];
  mc_recompute_cost(j, graph, work, m->cost);
  for (uint32_t n = 0; n < j->n_nodes; n++)
    m->is_fixed[n] = (j->op_flags[n] & NOT_TWICE) || (j->node_flags[n] & AOT_NODE_MUST_SAVE);
  count_fixed(m);
  return 0;
}

void mc_model_deinit(mc_model_t *m) {
  free(m->cost);
  free(m->is_fixed);
  free(m->root);
  memset(m, 0, sizeof *m);
}

/* ---- one plan ---- */

typedef struct sides {
  uint8_t *is_given, *is_read; /* by value */
  uint32_t *outputs;
  uint32_t n_outputs;
} sides_t;

static void mark_read(const jg_joint_t *j, const jg_split_t *s, uint8_t *is_read) {
  for (uint32_t i = 0; i < s->n_backward; i++)
    for (uint32_t k = j->operand_begin[s->backward[i]]; k < j->operand_begin[s->backward[i] + 1]; k++)
      is_read[j->operands[k]] = 1;
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE) is_read[j->gradients[i]] = 1;
}

/* Forward outputs, then slots: inputs that need one, and what is saved. */
static void list_forward_outputs(const mc_model_t *m, const jg_split_t *s, sides_t *w, mc_numbers_t *out) {
  const jg_joint_t *j = m->j;
  for (uint32_t i = 0; i < j->n_forward_outputs; i++) w->outputs[w->n_outputs++] = j->forward_outputs[i];
  for (uint32_t v = 0; v < j->n_inputs; v++)
    if (m->needs_slot[v] && w->is_read[v]) {
      out->saved += mc_slot_nbytes(m, v);
      w->outputs[w->n_outputs++] = v;
    }
  for (uint32_t i = 0; i < s->n_saved; i++) {
    if (j->def[s->saved[i]] == JG_NONE) continue;
    out->saved += mc_slot_nbytes(m, s->saved[i]);
    w->outputs[w->n_outputs++] = s->saved[i];
  }
}

static int simulate(const mc_model_t *m, const uint32_t *nodes, uint32_t n_nodes, const sides_t *w, uint64_t *out) {
  ms_arena_t a;
  ms_run_t run = {nodes, n_nodes, w->is_given, w->outputs, w->n_outputs};
  int status = ms_simulate(m->graph, &run, &a);
  *out = a.nbytes;
  ms_arena_deinit(&a);
  return status;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int run_sides(const mc_model_t *m, const jg_split_t *s, sides_t *w, mc_numbers_t *out) {
  const jg_joint_t *j = m->j;
  memset(w->is_given, 1, j->n_inputs);
  mark_read(j, s, w->is_read);
  list_forward_outputs(m, s, w, out);
  uint64_t forward, backward;
  if (simulate(m, s->forward, s->n_forward, w, &forward) != 0) return -2;
  for (uint32_t i = 0; i < s->n_saved; i++) w->is_given[s->saved[i]] = 1;
  w->n_outputs = 0;
  for (uint32_t i = 0; i < j->n_gradients; i++) w->outputs[w->n_outputs++] = j->gradients[i];
  if (simulate(m, s->backward, s->n_backward, w, &backward) != 0) return -2;
  out->arena = larger(forward, backward);
  return 0;
}

/* What is saved of one storage counts once. */
static int run_step(const mc_model_t *m, const jg_split_t *s, sides_t *w, mc_numbers_t *out) {
  for (uint32_t i = 0; i < s->n_saved; i++) {
    const uint32_t r = m->root[s->saved[i]];
    if (!w->is_given[r]) out->saved += mc_slot_nbytes(m, r);
    w->is_given[r] = 1;
  }
  return mc_step_arena(m, s, &out->arena);
}

static void add_up(const mc_model_t *m, const jg_split_t *s, mc_numbers_t *out) {
  out->bad = JG_NONE;
  out->n_saved = s->n_saved;
  out->n_recomputed = s->n_recomputed;
  for (uint32_t i = 0; i < s->n_recomputed; i++) {
    out->cost += m->cost[s->recomputed[i]];
    if (m->is_fixed[s->recomputed[i]]) out->bad = s->recomputed[i];
  }
  out->peak = m->fixed_nbytes + (m->one ? 0 : out->saved) + out->arena;
}

int mc_plan_measure(const mc_model_t *m, const uint32_t *saved, uint32_t n_saved, mc_numbers_t *out) {
  const jg_joint_t *j = m->j;
  jg_split_t s;
  uint32_t bad_value;
  memset(out, 0, sizeof *out);
  if (m->stop && m->stop->is_asked(m->stop->self)) return PT_STOPPED;
  sides_t w = {
      .is_given = calloc((size_t)j->n_values + 1, 1),
      .is_read = calloc((size_t)j->n_values + 1, 1),
      .outputs = calloc((size_t)j->n_values + j->n_forward_outputs + j->n_gradients + 1, 4),
  };
  int status = jg_split_init(&s, j, saved, n_saved, &bad_value);
  if (status == 0) status = w.is_given && w.is_read && w.outputs ? (m->one ? run_step : run_sides)(m, &s, &w, out) : -2;
  if (status == 0) add_up(m, &s, out);
  jg_split_deinit(&s);
  free(w.is_given);
  free(w.is_read);
  free(w.outputs);
  return status;
}

/* ---- graphs without a snapshot ---- */

static int by_size(const void *pa, const void *pb) {
  const uint64_t *a = pa, *b = pb;
  return a[0] != b[0] ? (a[0] < b[0] ? -1 : 1) : a[1] < b[1] ? -1 : a[1] > b[1];
}

/* Pointwise nodes whose results have as many bytes count as one space: the number of the first of them. */
static int number_spaces(const jg_joint_t *j, uint32_t *space) {
  uint64_t(*rows)[2] = malloc(((size_t)j->n_nodes + 1) * sizeof *rows);
  uint32_t n_rows = 0;
  if (!rows) return -2;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    space[n] = MS_NONE;
    if (!(j->op_flags[n] & AOT_OP_POINTWISE) || j->result_begin[n + 1] - j->result_begin[n] != 1) continue;
    rows[n_rows][0] = j->nbytes[j->result_begin[n]];
    rows[n_rows++][1] = n;
  }
  qsort(rows, n_rows, sizeof *rows, by_size);
  for (uint32_t i = 0; i < n_rows; i++)
    space[rows[i][1]] = i && rows[i][0] == rows[i - 1][0] ? space[rows[i - 1][1]] : (uint32_t)rows[i][1];
  free(rows);
  return 0;
}

int mc_plain_graph_init(ms_graph_t *g, const jg_joint_t *j) {
  uint32_t *base = malloc(((size_t)j->n_values + 1) * 4), *space = malloc(((size_t)j->n_nodes + 1) * 4);
  uint64_t *scratch = calloc((size_t)j->n_nodes + 1, 8);
  *g = (ms_graph_t){
      .n_nodes = j->n_nodes,
      .n_values = j->n_values,
      .operand_begin = j->operand_begin,
      .operands = j->operands,
      .result_begin = j->result_begin,
      .nbytes = j->nbytes,
      .base = base,
      .space = space,
      .scratch = scratch,
      .max_loop = 64,
      .align = 64,
  };
  if (!base || !space || !scratch) return -2;
  for (uint32_t v = 0; v < j->n_values; v++) {
    uint32_t d = j->def[v];
    int is_view = d != JG_NONE && (j->op_flags[d] & AOT_OP_VIEW) && j->operand_begin[d] < j->operand_begin[d + 1];
    base[v] = is_view ? j->operands[j->operand_begin[d]] : v;
  }
  return number_spaces(j, space);
}

void mc_plain_graph_deinit(ms_graph_t *g) {
  free((void *)(uintptr_t)g->base);
  free((void *)(uintptr_t)g->space);
  free((void *)(uintptr_t)g->scratch);
  memset(g, 0, sizeof *g);
}
