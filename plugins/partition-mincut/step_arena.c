#include "step_arena.h"

#include <stdlib.h>
#include <string.h>

typedef struct work {
  const mc_model_t *m;
  const jg_split_t *s;
  uint32_t *copy[2];   /* by value of the joint graph: that of the forward, and what the backward reads for it */
  uint32_t *parameter; /* by value of the step: the input that it is a view of, JG_NONE: none */
  uint32_t *last_read; /* by input: the last node of the step that reads it or a view of it */
  uint32_t *behind;    /* by update: the node of the step that it follows */
  uint32_t *order, *outputs;
  uint8_t *is_given;
  uint32_t n_updates, n_outputs;
  /* the graph */
  uint32_t *operand_begin, *operands, *result_begin, *base, *space;
  uint64_t *nbytes, *scratch;
  uint32_t n_nodes, n_values, n_operands;
} work_t;

static int work_init(work_t *w, const mc_model_t *m, const jg_split_t *s) {
  const jg_joint_t *j = m->j;
  const size_t nodes = (size_t)s->n_forward + s->n_backward + j->n_gradients + 2;
  const size_t values = (size_t)j->n_values + 1, all_values = j->n_inputs + 2 * values;
  *w = (work_t){
      .m = m,
      .s = s,
      .copy = {calloc(values, 4), calloc(values, 4)},
      .parameter = calloc(all_values, 4),
      .last_read = calloc((size_t)j->n_inputs + 1, 4),
      .behind = calloc((size_t)j->n_gradients + 1, 4),
      .order = calloc(nodes, 4),
      .outputs = calloc((size_t)j->n_forward_outputs + 1, 4),
      .is_given = calloc(all_values, 1),
      .operand_begin = calloc(nodes, 4),
      .operands = calloc(2 * (size_t)j->operand_begin[j->n_nodes] + j->n_gradients + 1, 4),
      .result_begin = calloc(nodes, 4),
      .base = calloc(all_values, 4),
      .space = calloc(nodes, 4),
      .nbytes = calloc(all_values, 8),
      .scratch = calloc(nodes, 8),
  };
  return w->copy[0] && w->copy[1] && w->parameter && w->last_read && w->behind && w->order && w->outputs &&
                 w->is_given && w->operand_begin && w->operands && w->result_begin && w->base && w->space &&
                 w->nbytes && w->scratch
             ? 0
             : -2;
}

static void work_deinit(work_t *w) {
  void *arrays[] = {w->copy[0],      w->copy[1], w->parameter, w->last_read,     w->behind,
                    w->order,        w->outputs, w->is_given,  w->operand_begin, w->operands,
                    w->result_begin, w->base,    w->space,     w->nbytes,        w->scratch};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static void add_inputs(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t v = 0; v < j->n_inputs; v++) {
    w->copy[0][v] = w->copy[1][v] = w->base[v] = w->parameter[v] = v;
    w->nbytes[v] = j->nbytes[v];
    w->is_given[v] = 1;
  }
  w->n_values = w->result_begin[0] = j->n_inputs;
}

static void read_value(work_t *w, uint32_t v) {
  w->operands[w->n_operands++] = v;
  if (w->parameter[v] != JG_NONE) w->last_read[w->parameter[v]] = w->n_nodes;
}

static void end_node(work_t *w, uint32_t space, uint64_t scratch) {
  w->space[w->n_nodes] = space;
  w->scratch[w->n_nodes++] = scratch;
  w->operand_begin[w->n_nodes] = w->n_operands;
  w->result_begin[w->n_nodes] = w->n_values;
}

/* A node of the joint graph, of values as `copy` has them. What the backward makes of a saved value is not read. */
static void add_node(work_t *w, uint32_t node, uint32_t *copy, const uint8_t *is_saved) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t k = j->operand_begin[node]; k < j->operand_begin[node + 1]; k++) read_value(w, copy[j->operands[k]]);
  for (uint32_t v = j->result_begin[node]; v < j->result_begin[node + 1]; v++) {
    const uint32_t r = w->n_values++, b = w->m->graph->base[v];
    w->nbytes[r] = j->nbytes[v];
    w->base[r] = b == v ? r : copy[b];
    w->parameter[r] = b == v ? JG_NONE : w->parameter[w->base[r]];
    if (!is_saved || !is_saved[v]) copy[v] = r;
  }
  end_node(w, w->m->graph->space[node], w->m->graph->scratch[node]);
}

static void add_forward_and_backward(work_t *w, const uint8_t *is_saved) {
  for (uint32_t i = 0; i < w->s->n_forward; i++) add_node(w, w->s->forward[i], w->copy[0], NULL);
  memcpy(w->copy[1], w->copy[0], (size_t)w->m->j->n_values * 4);
  for (uint32_t i = 0; i < w->s->n_backward; i++) add_node(w, w->s->backward[i], w->copy[1], is_saved);
}

/* Appends the updates to the nodes so far; `behind` has where they run. */
static int add_updates(work_t *w) {
  const jg_joint_t *j = w->m->j;
  const uint32_t n = w->n_nodes;
  uint32_t *made = calloc((size_t)w->n_values + 1, 4); /* by value: the node that makes it */
  if (!made) return -2;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t v = w->result_begin[k]; v < w->result_begin[k + 1]; v++) made[v] = k;
  for (uint32_t i = 0; i < j->n_gradients; i++) {
    const uint32_t g = j->gradients[i], p = w->m->one->parameter[i];
    if (g == JG_NONE || p == JG_NONE || !n) continue;
    const uint32_t v = w->copy[1][g], ready = made[v] > w->last_read[p] ? made[v] : w->last_read[p];
    w->behind[w->n_updates++] = w->m->one->waits ? n - 1 : ready;
    w->operands[w->n_operands++] = v;
    end_node(w, MS_NONE, 0);
  }
  free(made);
  return 0;
}

/* Nodes in order, each with the updates that follows it: by counting. */
static int put_in_order(work_t *w) {
  const uint32_t n = w->n_nodes - w->n_updates;
  uint32_t *at = calloc((size_t)n + 2, 4);
  if (!at) return -2;
  for (uint32_t u = 0; u < w->n_updates; u++) at[w->behind[u] + 1]++;
  for (uint32_t k = 0; k < n; k++) {
    at[k + 1] += at[k];
    w->order[k + at[k]] = k;
  }
  for (uint32_t u = 0; u < w->n_updates; u++) {
    const uint32_t k = w->behind[u];
    w->order[k + ++at[k]] = n + u;
  }
  free(at);
  return 0;
}

static void list_outputs(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t i = 0; i < j->n_forward_outputs; i++) {
    const uint32_t v = j->forward_outputs[i];
    if (v != JG_NONE && w->m->one->output[i] != MC_DROPPED) w->outputs[w->n_outputs++] = w->copy[0][v];
  }
}

int mc_step_arena(const mc_model_t *m, const jg_split_t *s, uint64_t *out_nbytes) {
  work_t w;
  ms_arena_t arena = {0};
  uint8_t *is_saved = calloc((size_t)m->j->n_values + 1, 1);
  int status = work_init(&w, m, s);
  if (!is_saved) status = -2;
  if (status == 0) {
    for (uint32_t i = 0; i < s->n_saved; i++) is_saved[s->saved[i]] = 1;
    add_inputs(&w);
    add_forward_and_backward(&w, is_saved);
    list_outputs(&w);
    status = add_updates(&w);
  }
  if (status == 0) status = put_in_order(&w);
  if (status == 0) {
    ms_graph_t g = *m->graph;
    g.n_nodes = w.n_nodes;
    g.n_values = w.n_values;
    g.operand_begin = w.operand_begin;
    g.operands = w.operands;
    g.result_begin = w.result_begin;
    g.nbytes = w.nbytes;
    g.base = w.base;
    g.space = w.space;
    g.scratch = w.scratch;
    const ms_run_t run = {w.order, w.n_nodes, w.is_given, w.outputs, w.n_outputs};
    status = ms_simulate(&g, &run, &arena);
  }
  *out_nbytes = arena.nbytes;
  ms_arena_deinit(&arena);
  free(is_saved);
  work_deinit(&w);
  return status;
}
