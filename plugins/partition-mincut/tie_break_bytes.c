#include "tie_break_bytes.h"

#include <stdlib.h>

enum { SOURCE, SINK, FIRST };

/* number: by vertex of f, its vertex in the second network. */
static uint32_t number_open(const mc_flow_t *f, const uint8_t *near_source, const uint8_t *near_sink,
                            uint32_t *number) {
  uint32_t next = FIRST;
  for (uint32_t v = 0; v < f->n_vertices; v++) number[v] = near_source[v] ? SOURCE : near_sink[v] ? SINK : next++;
  return next;
}

/* Arcs between open vertices. Others bind nothing: those from the sink's side or into the source's may be in any
 * minimum cut, and by what the sides are none leads from the source's side or from an open vertex to the sink's. */
static int add_left(const mc_flow_t *f, const uint32_t *number, int64_t infinite, mc_flow_t *second) {
  int status = 0;
  for (uint32_t e = 0; e < f->n_edges && status == 0; e++) {
    const uint32_t u = number[f->to[e ^ 1]], v = number[f->to[e]];
    if (f->cap[e] > 0 && u >= FIRST && v >= FIRST) status = mc_flow_edge(second, u, v, infinite);
  }
  return status;
}

static int add_choices(const mc_choice_t *choices, uint32_t n, const uint32_t *number, mc_flow_t *second) {
  int status = 0;
  for (uint32_t i = 0; i < n && status == 0; i++) {
    const uint32_t u = number[choices[i].from], v = number[choices[i].to];
    if (u != SINK && v != SOURCE && (u >= FIRST || v >= FIRST)) status = mc_flow_edge(second, u, v, choices[i].nbytes);
  }
  return status;
}

static int solve_second(const mc_flow_t *f, const mc_choice_t *choices, uint32_t n_choices, const uint32_t *number,
                        uint32_t n_second, uint8_t *out_side) {
  mc_flow_t second;
  int64_t infinite = 1, value = 0;
  uint8_t *side = malloc((size_t)n_second + 1);
  for (uint32_t i = 0; i < n_choices; i++) infinite += choices[i].nbytes;
  if (!side || mc_flow_init(&second, n_second, n_second) != 0) {
    free(side);
    return -2;
  }
  int status = add_left(f, number, infinite, &second);
  if (status == 0) status = add_choices(choices, n_choices, number, &second);
  if (status == 0) status = mc_flow_solve(&second, SOURCE, SINK, infinite, &value);
  if (status == 0) status = mc_flow_source_side(&second, SOURCE, side);
  for (uint32_t v = 0; v < f->n_vertices && status == 0; v++) out_side[v] = side[number[v]];
  mc_flow_deinit(&second);
  free(side);
  return status;
}

int mc_fewest_bytes(const mc_flow_t *f, uint32_t source, uint32_t sink, const mc_choice_t *choices, uint32_t n_choices,
                    uint8_t *out_side) {
  uint32_t *number = malloc(((size_t)f->n_vertices + 1) * sizeof *number);
  uint8_t *near_sink = malloc((size_t)f->n_vertices + 1);
  int status = number && near_sink ? mc_flow_source_side(f, source, out_side) : -2;
  if (status == 0) status = mc_flow_sink_side(f, sink, near_sink);
  if (status == 0) {
    const uint32_t n_second = number_open(f, out_side, near_sink, number);
    status = solve_second(f, choices, n_choices, number, n_second, out_side);
  }
  free(number);
  free(near_sink);
  return status;
}
