/* The network, and reading the cut back.
 *
 *   source --inf--> n        n may not run twice (banned), or is a graph input
 *   n -----price--> n_out    keep its result; several results: n --inf--> r_in --price--> r_out each
 *   v_out ---inf--> u        u reads v, and runs before the backward starts or in it
 *   v_out ---inf--> sink     a tangent's descendant reads v, or v is a gradient
 *   n -------inf--> sink     the user's tag: always run again */
#include "tie_break_bytes.h"
#include "maxflow.h"
#include "mincut.h"

#include "kit/partition/tags.h"
#include <stdlib.h>

enum { SOURCE, SINK, FIRST };

typedef struct network {
  const jg_joint_t *j;
  int32_t ties;
  mc_flow_t flow;
  uint32_t *in, *out; /* by value: its vertices */
  int64_t *price;
  uint8_t *banned;
  int64_t infinite;
  int failed;
} network_t;

static void arc(network_t *w, uint32_t u, uint32_t v, int64_t c) {
  if (!w->failed && mc_flow_edge(&w->flow, u, v, c) != 0) w->failed = 1;
}

/* Vertex FIRST + n is node n; results of single-result nodes enter there. Returns the number of vertices. */
static uint32_t number_vertices(network_t *w) {
  const jg_joint_t *j = w->j;
  uint32_t next = FIRST + j->n_nodes;
  for (uint32_t v = 0; v < j->n_values; v++) {
    uint32_t d = j->def[v];
    int single = d != JG_NONE && j->result_begin[d + 1] - j->result_begin[d] == 1;
    w->in[v] = single ? FIRST + d : next++;
    w->out[v] = next++;
  }
  return next;
}

static void add_value(network_t *w, uint32_t v) {
  const jg_joint_t *j = w->j;
  uint32_t d = j->def[v];
  int to_sink = 0;
  if (d == JG_NONE) arc(w, SOURCE, w->in[v], w->infinite);
  else if (w->in[v] != FIRST + d) arc(w, FIRST + d, w->in[v], w->infinite);
  if (d != JG_NONE && pt_must_recompute(j, d)) return;
  arc(w, w->in[v], w->out[v], w->price[v] < 0 ? w->infinite : w->price[v]);
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++) {
    if (j->late[j->users[k]]) to_sink = 1;
    else arc(w, w->out[v], FIRST + j->users[k], w->infinite);
  }
  if (to_sink) arc(w, w->out[v], SINK, w->infinite);
}

static void add_nodes(network_t *w) {
  for (uint32_t n = 0; n < w->j->n_nodes; n++) {
    if (w->j->late[n]) continue;
    if (pt_must_recompute(w->j, n)) arc(w, FIRST + n, SINK, w->infinite);
    else if (w->banned[n]) arc(w, SOURCE, FIRST + n, w->infinite);
  }
}

static void add_gradients(network_t *w) {
  for (uint32_t i = 0; i < w->j->n_gradients; i++) {
    uint32_t v = w->j->gradients[i];
    if (v != JG_NONE && jg_is_forward_value(w->j, v)) arc(w, w->out[v], SINK, w->infinite);
  }
}

static void read_cut(const network_t *w, const uint8_t *side, uint32_t *out_saved, uint32_t *out_n_saved) {
  const jg_joint_t *j = w->j;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (!j->late[j->def[v]] && side[w->in[v]] && !side[w->out[v]]) out_saved[(*out_n_saved)++] = v;
}

/* A value for the message when no finite cut exists: the first one that may not be stored, of a node that may not run
 * twice. */
static uint32_t find_culprit(const network_t *w) {
  for (uint32_t v = w->j->n_inputs; v < w->j->n_values; v++)
    if (w->price[v] < 0 && w->banned[w->j->def[v]]) return v;
  return w->j->n_inputs < w->j->n_values ? w->j->n_inputs : 0;
}

/* Bytes of memory that a value of the cut takes: none that is there anyway. */
static int pick_fewest(const network_t *w, uint8_t *side) {
  const jg_joint_t *j = w->j;
  mc_choice_t *choices = malloc(((size_t)j->n_values + 1) * sizeof *choices);
  double sum = 0;
  uint64_t unit = 1;
  uint32_t n = 0;
  if (!choices) return -2;
  for (uint32_t v = 0; v < j->n_values; v++) sum += (double)j->nbytes[v];
  while (sum / (double)unit > 4e18) unit *= 2; /* a sum of them is an int64 */
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (!j->late[j->def[v]] && w->price[v] > 0)
      choices[n++] = (mc_choice_t){w->in[v], w->out[v], (int64_t)(j->nbytes[v] / unit)};
  const int status = mc_fewest_bytes(&w->flow, SOURCE, SINK, choices, n, side);
  free(choices);
  return status;
}

static int find_side(const network_t *w, uint8_t *side) {
  if (w->ties == MC_NEAREST_SOURCE) return mc_flow_source_side(&w->flow, SOURCE, side);
  if (w->ties == MC_FEWEST_BYTES) return pick_fewest(w, side);
  if (mc_flow_sink_side(&w->flow, SINK, side) != 0) return -2;
  for (uint32_t v = 0; v < w->flow.n_vertices; v++) side[v] = !side[v];
  return 0;
}

static int solve(network_t *w, uint32_t n_vertices, uint32_t *out_saved, uint32_t *out_n_saved, uint32_t *out_value) {
  int64_t value = 0;
  uint8_t *side = calloc((size_t)n_vertices + 1, 1);
  int status = side && !w->failed ? mc_flow_solve(&w->flow, SOURCE, SINK, w->infinite, &value) : -2;
  if (status == 0 && value >= w->infinite) {
    *out_value = find_culprit(w);
    status = -1;
  }
  if (status == 0) status = find_side(w, side);
  if (status == 0) read_cut(w, side, out_saved, out_n_saved);
  free(side);
  return status;
}

static int build_and_solve(network_t *w, uint32_t *out_saved, uint32_t *out_n_saved, uint32_t *out_value) {
  const jg_joint_t *j = w->j;
  uint32_t n_vertices = number_vertices(w);
  uint32_t n_arcs = j->operand_begin[j->n_nodes] + 2 * j->n_nodes + 3 * j->n_values + j->n_gradients;
  w->infinite = 1;
  for (uint32_t v = 0; v < j->n_values; v++)
    if (w->price[v] > 0) w->infinite += w->price[v];
  if (mc_flow_init(&w->flow, n_vertices, n_arcs) != 0) return -2;
  add_nodes(w);
  for (uint32_t v = 0; v < j->n_values; v++)
    if (jg_is_forward_value(j, v)) add_value(w, v);
  add_gradients(w);
  int status = solve(w, n_vertices, out_saved, out_n_saved, out_value);
  mc_flow_deinit(&w->flow);
  return status;
}

int mc_weigh(const jg_joint_t *j, const mc_rules_t *rules, uint8_t *banned, int64_t *price) {
  uint8_t *classes = calloc((size_t)j->n_nodes + 1, 1);
  uint32_t *of_value = calloc((size_t)j->n_values + 1, 4), *of_node = calloc((size_t)j->n_nodes + 1, 4);
  const mc_ruled_graph_t m = {j, rules, classes};
  int status = classes && of_value && of_node ? 0 : -2;
  if (status == 0) {
    mc_classify(j, rules, classes);
    status = mc_measure(j, of_value, of_node);
  }
  if (status == 0) status = mc_ban(&m, of_node, banned);
  if (status == 0 && rules->ban_far_apart) status = mc_ban_far_apart(&m, banned);
  if (status == 0 && rules->ban_long_chains) status = mc_ban_long_chains(&m, banned);
  if (status == 0 && rules->ban_gathers) status = mc_ban_gathers(&m, banned);
  if (status == 0) status = mc_price(&m, of_value, price);
  free(classes);
  free(of_value);
  free(of_node);
  return status;
}

int mc_choose(const jg_joint_t *j, const mc_rules_t *rules, uint32_t *out_saved, uint32_t *out_n_saved,
              uint32_t *out_value) {
  network_t w = {
      .j = j,
      .ties = rules->ties,
      .in = calloc((size_t)j->n_values + 1, 4),
      .out = calloc((size_t)j->n_values + 1, 4),
      .price = calloc((size_t)j->n_values + 1, sizeof *w.price),
      .banned = calloc((size_t)j->n_nodes + 1, 1),
  };
  int status = w.banned && w.price && w.in && w.out ? 0 : -2;
  *out_n_saved = 0;
  if (status == 0) status = mc_weigh(j, rules, w.banned, w.price);
  if (status == 0) status = build_and_solve(&w, out_saved, out_n_saved, out_value);
  free(w.banned);
  free(w.price);
  free(w.in);
  free(w.out);
  return status;
}
