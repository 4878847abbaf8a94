#include "segments.h"

#include <stdlib.h>
#include <string.h>

/* A use of a view is a use of what it is a view of. Against the order: users stand after. */
static void find_uses(mc_segments_t *s, const mc_model_t *m, const uint32_t *node_position) {
  const jg_joint_t *j = m->j;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (!j->early[n]) continue;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
      uint32_t v = j->operands[k], at = node_position[n];
      for (uint32_t r = j->result_begin[n]; r < j->result_begin[n + 1]; r++)
        if (m->graph->base[r] == v && s->last_use[r] > at) at = s->last_use[r];
      if (at > s->last_use[v]) s->last_use[v] = at;
    }
  }
}

static int is_counted(const mc_segments_t *s, const mc_model_t *m, uint32_t v) {
  return s->position[v] != JG_NONE && m->graph->base[v] == v && m->j->nbytes[v] > 0;
}

/* Differences first, then their sums. */
static void count_bytes(mc_segments_t *s, const mc_model_t *m) {
  for (uint32_t v = m->j->n_inputs; v < m->j->n_values; v++) {
    if (!is_counted(s, m, v)) continue;
    s->made[s->position[v] + 1] += m->j->nbytes[v];
    if (s->last_use[v] <= s->position[v]) continue;
    s->crossing[s->position[v]] += m->j->nbytes[v];
    s->crossing[s->last_use[v]] -= m->j->nbytes[v];
  }
  for (uint32_t p = 0; p < s->n_early; p++) {
    s->made[p + 1] += s->made[p];
    if (p) s->crossing[p] += s->crossing[p - 1];
  }
}

int mc_segments_init(mc_segments_t *s, const mc_model_t *m) {
  const jg_joint_t *j = m->j;
  memset(s, 0, sizeof *s);
  uint32_t *node_position = calloc((size_t)j->n_nodes + 1, 4);
  s->position = malloc(((size_t)j->n_values + 1) * 4);
  s->last_use = calloc((size_t)j->n_values + 1, 4);
  s->made = calloc((size_t)j->n_nodes + 2, 8);
  s->crossing = calloc((size_t)j->n_nodes + 2, 8);
  int status = node_position && s->position && s->last_use && s->made && s->crossing ? 0 : -2;
  if (status == 0) {
    memset(s->position, 0xff, ((size_t)j->n_values + 1) * 4);
    for (uint32_t n = 0; n < j->n_nodes; n++) {
      if (!j->early[n]) continue;
      for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) s->position[v] = s->n_early;
      node_position[n] = s->n_early++;
    }
    find_uses(s, m, node_position);
    count_bytes(s, m);
  }
  free(node_position);
  return status;
}

void mc_segments_deinit(mc_segments_t *s) {
  free(s->position);
  free(s->last_use);
  free(s->made);
  free(s->crossing);
  memset(s, 0, sizeof *s);
}

/* The first position by whose end so many bytes are made. */
static uint32_t position_of(const mc_segments_t *s, uint64_t nbytes) {
  uint32_t low = 0, high = s->n_early;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (s->made[middle + 1] < nbytes) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Windows of neighbouring boundaries do not overlap: half a segment each. */
uint32_t mc_segments_place(const mc_segments_t *s, uint32_t k, uint32_t *out) {
  uint64_t all = s->n_early ? s->made[s->n_early] : 0;
  uint32_t n = 0;
  for (uint32_t i = 1; i < k; i++) {
    double part = (double)all / k;
    uint32_t begin = position_of(s, (uint64_t)(part * (i - 0.45))), end = position_of(s, (uint64_t)(part * (i + 0.45)));
    uint32_t best = begin, middle = position_of(s, (uint64_t)(part * i));
    for (uint32_t p = begin; p < end; p++) {
      uint32_t far = p > middle ? p - middle : middle - p, best_far = best > middle ? best - middle : middle - best;
      if (s->crossing[p] < s->crossing[best] || (s->crossing[p] == s->crossing[best] && far < best_far)) best = p;
    }
    if (best + 1 < s->n_early && (n == 0 || best > out[n - 1])) out[n++] = best;
  }
  return n;
}

void mc_segments_mark(const mc_segments_t *s, const mc_model_t *m, const uint32_t *boundaries, uint32_t n,
                      uint32_t from, uint32_t to, uint8_t *is_boundary) {
  for (uint32_t v = m->j->n_inputs; v < m->j->n_values; v++) {
    uint32_t low = 0, high = n;
    if (!is_counted(s, m, v) || s->last_use[v] <= s->position[v]) continue;
    while (low < high) { /* the first boundary after the value */
      uint32_t middle = (low + high) / 2;
      if (boundaries[middle] < s->position[v]) low = middle + 1;
      else high = middle;
    }
    if (low < n && boundaries[low] < s->last_use[v] && boundaries[low] >= from && boundaries[low] < to)
      is_boundary[v] = 1;
  }
}
