#include "maxflow.h"

#include "kit/base/vector.h"
#include <stdlib.h>
#include <string.h>

#define NO_EDGE UINT32_MAX

int mc_flow_init(mc_flow_t *f, uint32_t n_vertices, uint32_t n_edges_hint) {
  memset(f, 0, sizeof *f);
  f->n_vertices = n_vertices;
  f->edge_capacity = n_edges_hint * 2 + 2;
  f->head = malloc((size_t)(n_vertices + 1) * sizeof *f->head);
  f->next = malloc((size_t)f->edge_capacity * sizeof *f->next);
  f->to = malloc((size_t)f->edge_capacity * sizeof *f->to);
  f->cap = malloc((size_t)f->edge_capacity * sizeof *f->cap);
  if (!f->head || !f->next || !f->to || !f->cap) {
    mc_flow_deinit(f);
    return -2;
  }
  memset(f->head, 0xff, (size_t)(n_vertices + 1) * sizeof *f->head);
  return 0;
}

void mc_flow_deinit(mc_flow_t *f) {
  free(f->head);
  free(f->next);
  free(f->to);
  free(f->cap);
  memset(f, 0, sizeof *f);
}

static int grow(mc_flow_t *f) {
  const uint64_t needed = (uint64_t)f->edge_capacity + 2;
  uint32_t of_next = f->edge_capacity, of_to = f->edge_capacity, of_cap = f->edge_capacity;
  void *next = kit_grow(f->next, &of_next, needed, sizeof *f->next);
  if (next) f->next = next;
  void *to = kit_grow(f->to, &of_to, needed, sizeof *f->to);
  if (to) f->to = to;
  void *cap = kit_grow(f->cap, &of_cap, needed, sizeof *f->cap);
  if (cap) f->cap = cap;
  if (!next || !to || !cap) return -2;
  f->edge_capacity = of_cap; /* that of all three */
  return 0;
}

static void push_edge(mc_flow_t *f, uint32_t u, uint32_t v, int64_t c) {
  uint32_t e = f->n_edges++;
  f->to[e] = v;
  f->cap[e] = c;
  f->next[e] = f->head[u];
  f->head[u] = e;
}

int mc_flow_edge(mc_flow_t *f, uint32_t u, uint32_t v, int64_t c) {
  if (u == v || c <= 0) return 0;
  if (f->n_edges + 2 > f->edge_capacity && grow(f) != 0) return -2;
  push_edge(f, u, v, c);
  push_edge(f, v, u, 0);
  return 0;
}

/* Levels from the source over arcs with capacity left; stops when the sink is met. */
static int find_levels(const mc_flow_t *f, uint32_t source, uint32_t sink, uint32_t *level, uint32_t *queue) {
  uint32_t first = 0, last = 0;
  memset(level, 0, (size_t)f->n_vertices * sizeof *level);
  level[source] = 1;
  queue[last++] = source;
  while (first < last) {
    uint32_t u = queue[first++];
    for (uint32_t e = f->head[u]; e != NO_EDGE; e = f->next[e]) {
      uint32_t v = f->to[e];
      if (f->cap[e] <= 0 || level[v]) continue;
      level[v] = level[u] + 1;
      if (v == sink) return 1;
      queue[last++] = v;
    }
  }
  return 0;
}

static int64_t augment(mc_flow_t *f, const uint32_t *path, uint32_t length, uint32_t *out_first_full) {
  int64_t amount = f->cap[path[0]];
  for (uint32_t i = 1; i < length; i++)
    if (f->cap[path[i]] < amount) amount = f->cap[path[i]];
  *out_first_full = length;
  for (uint32_t i = length; i-- > 0;) {
    f->cap[path[i]] -= amount;
    f->cap[path[i] ^ 1] += amount;
    if (f->cap[path[i]] == 0) *out_first_full = i;
  }
  return amount;
}

/* All of one phase: walk forward along admissible arcs, retreat from dead ends, augment at the sink. */
static int64_t blocking_flow(mc_flow_t *f, uint32_t source, uint32_t sink, int64_t limit, uint32_t *level,
                             uint32_t *arc, uint32_t *path) {
  int64_t total = 0;
  uint32_t length = 0, u = source;
  memcpy(arc, f->head, (size_t)f->n_vertices * sizeof *arc);
  for (;;) {
    if (u == sink) {
      uint32_t keep;
      total += augment(f, path, length, &keep);
      if (total >= limit) return total;
      length = keep;
      u = f->to[path[keep] ^ 1];
      continue;
    }
    uint32_t e = arc[u];
    while (e != NO_EDGE && (f->cap[e] <= 0 || level[f->to[e]] != level[u] + 1)) e = f->next[e];
    arc[u] = e;
    if (e != NO_EDGE) {
      path[length++] = e;
      u = f->to[e];
    } else if (length > 0) {
      level[u] = 0; /* no way on from here in this phase */
      u = f->to[path[--length] ^ 1];
    } else {
      return total;
    }
  }
}

int mc_flow_solve(mc_flow_t *f, uint32_t source, uint32_t sink, int64_t limit, int64_t *out_value) {
  size_t n = (size_t)f->n_vertices + 1;
  uint32_t *level = malloc(n * 4), *arc = malloc(n * 4), *work = malloc(n * 4);
  int status = level && arc && work ? 0 : -2;
  *out_value = 0;
  while (status == 0 && *out_value < limit && find_levels(f, source, sink, level, work))
    *out_value += blocking_flow(f, source, sink, limit - *out_value, level, arc, work);
  free(level);
  free(arc);
  free(work);
  return status;
}

/* What hangs together with start over arcs with capacity left; against: walked from head to tail, by the twins. */
static int reach(const mc_flow_t *f, uint32_t start, uint32_t against, uint8_t *out_side) {
  uint32_t *queue = malloc(((size_t)f->n_vertices + 1) * sizeof *queue);
  uint32_t first = 0, last = 0;
  if (!queue) return -2;
  memset(out_side, 0, f->n_vertices);
  out_side[start] = 1;
  queue[last++] = start;
  while (first < last) {
    uint32_t u = queue[first++];
    for (uint32_t e = f->head[u]; e != NO_EDGE; e = f->next[e])
      if (f->cap[e ^ against] > 0 && !out_side[f->to[e]]) {
        out_side[f->to[e]] = 1;
        queue[last++] = f->to[e];
      }
  }
  free(queue);
  return 0;
}

int mc_flow_source_side(const mc_flow_t *f, uint32_t source, uint8_t *out_side) {
  return reach(f, source, 0, out_side);
}
int mc_flow_sink_side(const mc_flow_t *f, uint32_t sink, uint8_t *out_side) { return reach(f, sink, 1, out_side); }
