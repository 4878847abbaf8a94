#include "common/fusion/group.h"

#include <stdlib.h>

typedef struct forest {
  uint32_t *parent; /* by node */
  uint32_t *size;   /* by root */
  uint32_t *last;   /* by root: its last member */
  uint32_t *reads;  /* by root: operands that no member makes */
  uint8_t *closed;  /* by root */
} forest_t;

static uint32_t find(forest_t *f, uint32_t n) {
  while (f->parent[n] != n) {
    f->parent[n] = f->parent[f->parent[n]]; /* path halving */
    n = f->parent[n];
  }
  return n;
}

static void join(forest_t *f, uint32_t a, uint32_t b) {
  if (f->size[a] < f->size[b]) {
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  f->parent[b] = a;
  f->size[a] += f->size[b];
  f->reads[a] += f->reads[b];
  if (f->last[b] > f->last[a]) f->last[a] = f->last[b];
}

static int may_join(forest_t *f, const fu_graph_t *g, uint32_t n, uint32_t producer) {
  uint32_t p = find(f, producer), own = find(f, n);
  return p != own && g->space[n] != FU_NONE && g->space[producer] == g->space[n] && !f->closed[p] &&
         f->size[p] + f->size[own] <= g->max_nodes && f->reads[p] + f->reads[own] <= FU_MAX_READS;
}

/* n joins every producer's group that takes it; the groups that it only reads are closed. */
static void place(forest_t *f, const fu_graph_t *g, uint32_t n) {
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++)
    if (g->producers[k] != FU_NONE && may_join(f, g, n, g->producers[k])) join(f, find(f, n), find(f, g->producers[k]));
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) {
    uint32_t p = g->producers[k] == FU_NONE ? FU_NONE : find(f, g->producers[k]);
    if (p != FU_NONE && p != find(f, n)) f->closed[p] = 1;
    if (p == find(f, n)) f->reads[p]--;
  }
}

int fu_group(const fu_graph_t *g, uint32_t *out_group) {
  size_t n_nodes = (size_t)g->n_nodes + 1;
  forest_t f = {malloc(n_nodes * 4), malloc(n_nodes * 4), malloc(n_nodes * 4), malloc(n_nodes * 4), calloc(n_nodes, 1)};
  int status = f.parent && f.size && f.last && f.reads && f.closed ? 0 : -2;
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) {
    f.parent[n] = f.last[n] = n;
    f.size[n] = 1;
    f.reads[n] = g->operand_begin[n + 1] - g->operand_begin[n];
  }
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) place(&f, g, n);
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) out_group[n] = f.last[find(&f, n)];
  free(f.parent);
  free(f.size);
  free(f.last);
  free(f.reads);
  free(f.closed);
  return status;
}
