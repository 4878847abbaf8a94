#include "convex.h"

#include <stdlib.h>
#include <string.h>

/* Nodes that are ready, by colour: lists through `next`. */
typedef struct ready {
  uint32_t *first, *last; /* by colour, AS_NONE: none */
  uint32_t *next;         /* by node */
} ready_t;

static void put(ready_t *r, uint32_t colour, uint32_t node) {
  r->next[node] = AS_NONE;
  if (r->first[colour] == AS_NONE) r->first[colour] = node;
  else r->next[r->last[colour]] = node;
  r->last[colour] = node;
}

static uint32_t take(ready_t *r, uint32_t colour) {
  const uint32_t node = r->first[colour];
  if (node != AS_NONE) r->first[colour] = r->next[node];
  return node;
}

/* From `colour` on; part[n] for every node. Answers how many parts. waits: by node, how many precedes it. */
static uint32_t run(const as_graph_t *g, const uint32_t *colours, uint32_t n_colours, uint32_t colour, ready_t *ready,
                    uint32_t *waits, uint32_t *part) {
  uint32_t n_done = 0, n_parts = 0;
  memset(waits, 0, (size_t)g->n_nodes * sizeof *waits);
  memset(ready->first, 0xff, (size_t)n_colours * sizeof *ready->first);
  for (uint32_t e = 0; e < g->edge_begin[g->n_nodes]; e++) waits[g->edges[e]]++;
  for (uint32_t n = 0; n < g->n_nodes; n++)
    if (!waits[n]) put(ready, colours[n], n);
  while (n_done < g->n_nodes) {
    const uint32_t before = n_done;
    for (uint32_t n = take(ready, colour); n != AS_NONE; n = take(ready, colour)) {
      part[n] = n_parts;
      n_done++;
      for (uint32_t e = g->edge_begin[n]; e < g->edge_begin[n + 1]; e++)
        if (--waits[g->edges[e]] == 0) put(ready, colours[g->edges[e]], g->edges[e]);
    }
    n_parts += n_done > before;
    colour = (colour + 1) % n_colours;
  }
  return n_parts;
}

int as_divide(const as_graph_t *g, const uint32_t *colour, uint32_t n_colours, uint32_t *out_part,
              uint32_t *out_n_parts) {
  const size_t n = (size_t)g->n_nodes + 1, k = (size_t)n_colours + 1;
  uint32_t *memory = malloc((3 * n + 2 * k) * sizeof *memory);
  *out_n_parts = AS_NONE;
  if (!memory) return -2;
  uint32_t *waits = memory, *part = waits + n;
  ready_t ready = {.next = part + n, .first = part + 2 * n, .last = part + 2 * n + k};
  for (uint32_t first = 0; first < n_colours; first++) {
    const uint32_t n_parts = run(g, colour, n_colours, first, &ready, waits, part);
    if (n_parts >= *out_n_parts) continue;
    *out_n_parts = n_parts;
    memcpy(out_part, part, (size_t)g->n_nodes * sizeof *part);
  }
  free(memory);
  return 0;
}
