#include "group.h"

#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct forest {
  uint32_t *parent;                   /* by node */
  uint32_t *size;                     /* by root */
  uint32_t *last;                     /* by root: its last member */
  uint32_t *reads;                    /* by root: operands that no member makes */
  uint8_t *closed;                    /* by root */
  uint32_t *space, *rows, *row_space; /* by root, as fu_graph_t has them by node */
  uint32_t *reader;                   /* by tensor: the node that read it last */
} forest_t;

static uint32_t find(forest_t *f, uint32_t n) {
  while (f->parent[n] != n) {
    f->parent[n] = f->parent[f->parent[n]]; /* path halving */
    n = f->parent[n];
  }
  return n;
}

static void join(forest_t *f, uint32_t a, uint32_t b) {
  AOT_ASSERT(a != b && f->parent[a] == a && f->parent[b] == b); /* two groups, by their roots */
  AOT_ASSERT(!f->rows[a] || !f->rows[b] || f->rows[a] == f->rows[b]);
  if (f->size[a] < f->size[b]) {
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  f->parent[b] = a;
  f->size[a] += f->size[b];
  f->reads[a] += f->reads[b];
  if (f->last[b] > f->last[a]) f->last[a] = f->last[b];
  if (f->rows[a] || !f->rows[b]) return;
  f->space[a] = f->space[b];
  f->rows[a] = f->rows[b];
  f->row_space[a] = f->row_space[b];
}

/* Does the group of `inner` hold one element for each row of the other? */
static int is_of_rows(const forest_t *f, uint32_t inner, uint32_t group) {
  return f->rows[group] && !f->rows[inner] && f->row_space[group] == f->space[inner];
}

static int fits(const forest_t *f, uint32_t a, uint32_t b) {
  if (f->space[a] == FU_NONE || f->space[b] == FU_NONE) return 0;
  if (f->space[a] == f->space[b]) return !f->rows[a] || !f->rows[b] || f->rows[a] == f->rows[b];
  return is_of_rows(f, a, b) || is_of_rows(f, b, a);
}

static uint32_t counts(const fu_graph_t *g, uint32_t operand) { return !g->is_small || !g->is_small[operand]; }

/* Reads of n that the group has in registers. */
static uint32_t n_made(forest_t *f, const fu_graph_t *g, uint32_t n, uint32_t group) {
  uint32_t made = 0;
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++)
    made += counts(g, k) && g->producers[k] != FU_NONE && find(f, g->producers[k]) == group;
  return made;
}

static int may_join(forest_t *f, const fu_graph_t *g, uint32_t n, uint32_t producer) {
  uint32_t p = find(f, producer), own = find(f, n);
  return p != own && fits(f, own, p) && !f->closed[p] && f->size[p] + f->size[own] <= g->max_nodes &&
         f->reads[p] + f->reads[own] - n_made(f, g, n, p) <= FU_MAX_READS;
}

/* n joins the groups that read what it reads. */
static void share(forest_t *f, const fu_graph_t *g, uint32_t n) {
  for (uint32_t k = g->operand_begin[n]; g->tensors && k < g->operand_begin[n + 1]; k++) {
    const uint32_t t = g->tensors[k];
    if (t == FU_NONE) continue;
    if (f->reader[t] != FU_NONE && may_join(f, g, n, f->reader[t])) join(f, find(f, n), find(f, f->reader[t]));
    AOT_ASSERT(f->reader[t] == FU_NONE || f->reader[t] <= n); /* nodes come in order */
    const int is_made = g->producers[k] != FU_NONE && find(f, g->producers[k]) == find(f, n);
    if (!is_made && f->reader[t] != FU_NONE && find(f, f->reader[t]) == find(f, n))
      f->reads[find(f, n)] -= counts(g, k); /* one for both */
    f->reader[t] = n;
  }
}

/* n joins every producer's group that takes it; the groups that it only reads are closed. So nothing that reads n can
 * join what n must have in memory. */
static void place(forest_t *f, const fu_graph_t *g, uint32_t n) {
  AOT_ASSERT(f->parent[n] == n && f->size[n] == 1); /* groups take nodes in order */
  for (uint32_t k = g->operand_begin[n]; g->apart && k < g->operand_begin[n + 1]; k++)
    if (g->apart[k] && g->producers[k] != FU_NONE) f->closed[find(f, g->producers[k])] = 1;
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++)
    if (g->producers[k] != FU_NONE && may_join(f, g, n, g->producers[k])) join(f, find(f, n), find(f, g->producers[k]));
  for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) {
    uint32_t p = g->producers[k] == FU_NONE ? FU_NONE : find(f, g->producers[k]);
    if (p != FU_NONE && p != find(f, n)) f->closed[p] = 1;
    AOT_ASSERT(p != find(f, n) || f->reads[p] >= counts(g, k)); /* n counted it as a read */
    if (p == find(f, n) && counts(g, k)) f->reads[p]--;
  }
  share(f, g, n);
}

static int allocate(forest_t *f, size_t n, size_t n_tensors) {
  uint32_t *words = malloc(n * 7 * sizeof *words);
  f->closed = calloc(n, 1);
  f->reader = malloc((n_tensors + 1) * sizeof *f->reader);
  f->parent = words;
  if (!words || !f->closed || !f->reader) return -2;
  memset(f->reader, 0xFF, n_tensors * sizeof *f->reader); /* FU_NONE */
  f->size = words + n;
  f->last = words + 2 * n;
  f->reads = words + 3 * n;
  f->space = words + 4 * n;
  f->rows = words + 5 * n;
  f->row_space = words + 6 * n;
  return 0;
}

int fu_group(const fu_graph_t *g, uint32_t *out_group) {
  forest_t f;
  int status = allocate(&f, (size_t)g->n_nodes + 1, g->tensors ? g->n_tensors : 0);
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) {
    f.parent[n] = f.last[n] = n;
    f.size[n] = 1;
    f.reads[n] = 0;
    for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) f.reads[n] += counts(g, k);
    f.space[n] = g->space[n];
    f.rows[n] = g->rows ? g->rows[n] : 0;
    f.row_space[n] = f.rows[n] && f.rows[n] != FU_NO_ROWS ? g->row_space[n] : FU_NONE;
  }
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) place(&f, g, n);
  for (uint32_t n = 0; status == 0 && n < g->n_nodes; n++) out_group[n] = f.last[find(&f, n)];
  free(f.parent);
  free(f.closed);
  free(f.reader);
  return status;
}
