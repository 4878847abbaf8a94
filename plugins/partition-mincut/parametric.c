#include "parametric.h"

#include "kit/partition/tags.h"
#include "maxflow.h"
#include <aot/opset.h>
#include <stdlib.h>

enum { SOURCE, SINK, FIRST };
#define MOST 1.0e18 /* sum of all finite capacities, below 2^60 */

typedef struct network {
  const mc_model_t *m;
  const double *price;
  const uint8_t *decided; /* by node, or NULL */
  double scale;           /* capacities a ps */
  mc_flow_t flow;
  uint32_t *in, *out; /* by value: its vertices */
  int64_t infinite;
  int failed;
} network_t;

static void arc(network_t *w, uint32_t u, uint32_t v, int64_t capacity) {
  if (!w->failed && mc_flow_edge(&w->flow, u, v, capacity) != 0) w->failed = 1;
}

/* downwards: the bound stays one */
static int64_t capacity(const network_t *w, double ps) { return (int64_t)(ps * w->scale); }

static uint32_t number_vertices(network_t *w) {
  const jg_joint_t *j = w->m->j;
  uint32_t next = FIRST + j->n_nodes;
  for (uint32_t v = 0; v < j->n_values; v++) {
    uint32_t d = j->def[v];
    w->in[v] = d != JG_NONE && j->result_begin[d + 1] - j->result_begin[d] == 1 ? FIRST + d : next++;
    w->out[v] = next++;
  }
  return next;
}

/* What has no bytes is made again rather than saved, unless that would have an effect, and so is what the tags say. */
static int may_be_saved(const jg_joint_t *j, uint32_t v) {
  uint32_t d = j->def[v];
  if (d != JG_NONE && pt_must_recompute(j, d)) return 0;
  return d == JG_NONE || j->nbytes[v] > 0 || (j->op_flags[d] & (AOT_OP_EFFECT | AOT_OP_RANDOM | AOT_OP_COLLECTIVE));
}

static void add_value(network_t *w, uint32_t v) {
  const jg_joint_t *j = w->m->j;
  uint32_t d = j->def[v];
  int to_sink = 0;
  if (d == JG_NONE) arc(w, SOURCE, w->in[v], w->infinite);
  else if (w->in[v] != FIRST + d) arc(w, FIRST + d, w->in[v], w->infinite);
  arc(w, w->in[v], w->out[v], may_be_saved(j, v) ? capacity(w, w->price[v]) : w->infinite);
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++) {
    if (j->late[j->users[k]]) to_sink = 1;
    else arc(w, w->out[v], FIRST + j->users[k], w->infinite);
  }
  if (to_sink) arc(w, w->out[v], SINK, w->infinite);
}

static void add_nodes(network_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    if (j->late[n]) continue;
    if (w->m->is_fixed[n] || (w->decided && w->decided[n] == MC_NOT_AGAIN)) arc(w, SOURCE, FIRST + n, w->infinite);
    else if (j->early[n]) arc(w, SOURCE, FIRST + n, capacity(w, (double)w->m->cost[n]));
    if (w->decided && w->decided[n] == MC_AGAIN) arc(w, FIRST + n, SINK, w->infinite);
  }
}

static void add_gradients(network_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE && jg_is_forward_value(j, j->gradients[i]))
      arc(w, w->out[j->gradients[i]], SINK, w->infinite);
}

static double sum_of_finite(const network_t *w) {
  const jg_joint_t *j = w->m->j;
  double sum = 1;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (j->early[n]) sum += (double)w->m->cost[n];
  for (uint32_t v = 0; v < j->n_values; v++)
    if (jg_is_forward_value(j, v)) sum += w->price[v];
  return sum;
}

static void read_cut(const network_t *w, const uint8_t *side, uint32_t *out_saved, uint32_t *out_n_saved) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (!j->late[j->def[v]] && side[w->in[v]] && !side[w->out[v]]) out_saved[(*out_n_saved)++] = v;
}

static int solve(network_t *w, uint32_t n_vertices, uint32_t *out_saved, uint32_t *out_n_saved, double *out_value,
                 uint32_t *out_bad) {
  int64_t value = 0;
  uint8_t *side = calloc((size_t)n_vertices + 1, 1);
  int status = side && !w->failed ? mc_flow_solve(&w->flow, SOURCE, SINK, w->infinite, &value) : -2;
  if (status == 0 && value >= w->infinite) {
    *out_bad = 0;
    for (uint32_t v = w->m->j->n_inputs; v < w->m->j->n_values; v++)
      if (!may_be_saved(w->m->j, v) && w->m->is_fixed[w->m->j->def[v]]) *out_bad = v;
    status = -1;
  }
  if (status == 0) status = mc_flow_source_side(&w->flow, SOURCE, side);
  if (status == 0) read_cut(w, side, out_saved, out_n_saved);
  *out_value = (double)value / w->scale;
  free(side);
  return status;
}

static int build_and_solve(network_t *w, uint32_t *out_saved, uint32_t *out_n_saved, double *out_value,
                           uint32_t *out_bad) {
  const jg_joint_t *j = w->m->j;
  uint32_t n_vertices = number_vertices(w);
  w->scale = MOST / sum_of_finite(w);
  w->infinite = INT64_C(1) << 61;
  if (mc_flow_init(&w->flow, n_vertices,
                   j->operand_begin[j->n_nodes] + 3 * j->n_nodes + 3 * j->n_values + j->n_gradients) != 0)
    return -2;
  add_nodes(w);
  for (uint32_t v = 0; v < j->n_values; v++)
    if (jg_is_forward_value(j, v)) add_value(w, v);
  add_gradients(w);
  int status = solve(w, n_vertices, out_saved, out_n_saved, out_value, out_bad);
  mc_flow_deinit(&w->flow);
  return status;
}

int mc_parametric(const mc_model_t *m, const double *price, const uint8_t *decided, uint32_t *out_saved,
                  uint32_t *out_n_saved, double *out_value, uint32_t *out_bad) {
  const size_t values = (size_t)m->j->n_values + 1;
  network_t w = {.m = m, .price = price, .decided = decided, .in = calloc(values, 4), .out = calloc(values, 4)};
  *out_n_saved = 0;
  *out_value = 0;
  int status = w.in && w.out ? build_and_solve(&w, out_saved, out_n_saved, out_value, out_bad) : -2;
  free(w.in);
  free(w.out);
  return status;
}
