#include "merge.h"

#include "kit/base/heap.h"
#include "kit/base/vector.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 4 /* of weighing a candidate again */ };

typedef struct candidate {
  double gain;
  uint32_t a, b; /* nodes of the two groups */
  uint32_t versions, tries;
} candidate_t;

/* Groups by their root, a node. */
typedef struct merge_state {
  const fu_graph_t *g;
  const fu_moves_t *m;
  uint32_t *parent, *last, *size, *version; /* by node; the last three by root */
  uint32_t *space, *rows, *row_space;       /* by root, as fu_graph_t has them */
  uint32_t *next, *tail;                    /* members of a root, chained from it on */
  uint32_t *place, *order;                  /* by root: its place; and the root there, FU_NONE: none any more */
  uint32_t *reader_begin, *readers;         /* by node: those that read its results */
  uint32_t *mark, stamp;                    /* by root: seen in this search */
  uint32_t *seen[2], *n_here, weighing;     /* by value: read by the first, by the second; how often by both */
  uint32_t *n_readers;                      /* by value */
  uint8_t *turns;                           /* by root: of its members */
  candidate_t *heap;
  uint32_t n_heap, capacity;
} merge_state_t;

static uint32_t find(merge_state_t *s, uint32_t n) {
  while (s->parent[n] != n) {
    s->parent[n] = s->parent[s->parent[n]];
    n = s->parent[n];
  }
  return n;
}

/* ---- the queue: a binary heap, greatest gain first; of equal ones the first in the program ---- */

static int is_before(const void *a, const void *b) {
  const candidate_t *x = a, *y = b;
  if (x->gain != y->gain) return x->gain > y->gain;
  return x->b != y->b ? x->b < y->b : x->a < y->a;
}

static int push(merge_state_t *s, candidate_t c) {
  candidate_t *heap = kit_grow(s->heap, &s->capacity, (uint64_t)s->n_heap + 1, sizeof *heap);
  if (!heap) return -2;
  s->heap = heap;
  kit_heap_push(s->heap, s->n_heap++, sizeof *s->heap, &c, is_before);
  return 0;
}

static candidate_t pop(merge_state_t *s) {
  candidate_t top;
  kit_heap_pop(s->heap, s->n_heap--, sizeof *s->heap, &top, is_before);
  return top;
}

/* ---- what a merge saves ---- */

static int is_read(const merge_state_t *s, uint32_t k) {
  return s->m->values[k] != FU_NONE && (!s->g->is_small || !s->g->is_small[k]);
}

static int fits(const merge_state_t *s, uint32_t a, uint32_t b) {
  if (s->space[a] == FU_NONE || s->space[b] == FU_NONE) return 0;
  if (s->space[a] == s->space[b]) return !s->rows[a] || !s->rows[b] || s->rows[a] == s->rows[b];
  if (s->rows[a] && s->rows[b]) return 0;
  return (s->rows[a] && s->row_space[a] == s->space[b]) || (s->rows[b] && s->row_space[b] == s->space[a]);
}

/* What the members of a root read: seen[value] and, of what `other` makes, how often. Counts tensors that neither
 * makes. */
static uint32_t look(merge_state_t *s, uint32_t root, uint32_t other, uint32_t *seen, double *saved) {
  const fu_graph_t *g = s->g;
  uint32_t n = 0;
  for (uint32_t i = root; i != FU_NONE; i = s->next[i])
    for (uint32_t k = g->operand_begin[i]; k < g->operand_begin[i + 1]; k++) {
      const uint32_t value = s->m->values[k];
      const uint32_t maker = g->producers[k] == FU_NONE ? FU_NONE : find(s, g->producers[k]);
      if (!is_read(s, k) || maker == root) continue;
      if (seen[value] != s->weighing) {
        const int is_saved = maker == other || s->seen[0][value] == s->weighing;
        s->n_here[value] = 0;
        if (is_saved && seen != s->seen[0]) *saved += s->m->move[value];
        n += !is_saved;
        seen[value] = s->weighing;
      }
      /* written for nothing else */
      if (maker == other && ++s->n_here[value] == s->n_readers[value] && !s->m->is_wanted[value])
        *saved += s->m->move[value];
    }
  return n;
}

static int reads_apart(merge_state_t *s, uint32_t a, uint32_t b) {
  const fu_graph_t *g = s->g;
  for (uint32_t i = b; g->apart && i != FU_NONE; i = s->next[i])
    for (uint32_t k = g->operand_begin[i]; k < g->operand_begin[i + 1]; k++)
      if (g->apart[k] && g->producers[k] != FU_NONE && find(s, g->producers[k]) == a) return 1;
  return 0;
}

/* What would be computed again is made with what comes first, and waits. */
static int holds_long(const merge_state_t *s, uint32_t a, uint32_t b) {
  return s->place[b] - s->place[a] > FU_NEAR && (s->turns[a] | s->turns[b]) == (FU_FIRST | FU_REMAT);
}

/* Of a and b, where a runs first; below 0: they cannot be one. */
static double weigh(merge_state_t *s, uint32_t a, uint32_t b) {
  double saved = s->m->step;
  if (!fits(s, a, b) || s->size[a] + s->size[b] > s->g->max_nodes || s->place[b] - s->place[a] > FU_WINDOW ||
      reads_apart(s, a, b) || holds_long(s, a, b))
    return -1;
  s->weighing++;
  uint32_t n = look(s, a, b, s->seen[0], &saved);
  n += look(s, b, a, s->seen[1], &saved);
  return n <= FU_MAX_READS ? saved : -1;
}

/* ---- order ---- */

/* Of those that are ordered, what is marked goes after b: none that is not may be between. */
static int keeps_order(const merge_state_t *s, uint32_t a, uint32_t b) {
  int goes_behind = 0;
  for (uint32_t at = s->place[a] + 1; s->m->is_ordered && at < s->place[b]; at++) {
    const uint32_t r = s->order[at];
    if (r == FU_NONE || !s->m->is_ordered[r]) continue;
    if (s->mark[r] == s->stamp) goes_behind = 1;
    else if (goes_behind) return 0;
  }
  return 1;
}

/* Marks what follows a in the order before b because it needs a. 0: b is among it, by way of a third, or what it would
 * go past. */
static int search(merge_state_t *s, uint32_t a, uint32_t b) {
  uint32_t found[FU_WINDOW + 1], n = 1;
  s->stamp++;
  found[0] = a;
  for (uint32_t at = 0; at < n; at++)
    for (uint32_t i = found[at]; i != FU_NONE; i = s->next[i])
      for (uint32_t k = s->reader_begin[i]; k < s->reader_begin[i + 1]; k++) {
        const uint32_t to = find(s, s->readers[k]);
        if (to == a || to == found[at] || (to == b && at == 0)) continue;
        AOT_ASSERT(s->place[to] > s->place[found[at]]); /* groups run after what they need */
        if (to == b) return 0;
        if (s->place[to] > s->place[b] || s->mark[to] == s->stamp) continue;
        s->mark[to] = s->stamp;
        AOT_ASSERT(n <= FU_WINDOW); /* all are between a and b */
        found[n++] = to;
      }
  return keeps_order(s, a, b);
}

/* b's place becomes that of both; what needs a goes after it. */
static void reorder(merge_state_t *s, uint32_t a, uint32_t b, uint32_t root) {
  uint32_t behind[FU_WINDOW + 1], n = 0, to = s->place[a];
  const uint32_t end = s->place[b];
  for (uint32_t at = to; at <= end; at++) {
    const uint32_t r = s->order[at];
    if (r == FU_NONE || r == a || r == b) continue;
    if (s->mark[r] == s->stamp) {
      behind[n++] = r;
      continue;
    }
    s->order[to] = r;
    s->place[r] = to++;
  }
  s->order[to] = root;
  s->place[root] = to++;
  for (uint32_t i = 0; i < n; i++) {
    s->order[to] = behind[i];
    s->place[behind[i]] = to++;
  }
  AOT_ASSERT(to <= end);                          /* two became one */
  for (; to <= end; to++) s->order[to] = FU_NONE; /* one fewer, and what was none before */
}

/* ---- merging ---- */

static void join(merge_state_t *s, uint32_t a, uint32_t b) {
  AOT_ASSERT(s->parent[a] == a && s->parent[b] == b && s->place[a] < s->place[b]);
  const uint32_t root = a, gone = b;
  if (!s->rows[a] && s->rows[b]) {
    s->space[a] = s->space[b];
    s->rows[a] = s->rows[b];
    s->row_space[a] = s->row_space[b];
  }
  reorder(s, a, b, root);
  s->parent[gone] = root;
  s->next[s->tail[root]] = gone;
  s->tail[root] = s->tail[gone];
  s->size[root] += s->size[gone];
  s->turns[root] |= s->turns[gone];
  if (s->last[gone] > s->last[root]) s->last[root] = s->last[gone];
  s->version[root]++;
}

static uint32_t versions(const merge_state_t *s, uint32_t a, uint32_t b) { return s->version[a] + s->version[b]; }

static int offer(merge_state_t *s, uint32_t node_a, uint32_t node_b, uint32_t tries) {
  uint32_t a = find(s, node_a), b = find(s, node_b);
  if (a == b || s->space[a] == FU_NONE || s->space[b] == FU_NONE) return 0;
  if (s->place[a] > s->place[b]) {
    const uint32_t swap = a;
    a = b;
    b = swap;
  }
  const double gain = weigh(s, a, b);
  return gain <= 0 ? 0 : push(s, (candidate_t){gain, a, b, versions(s, a, b), tries});
}

/* Groups that read what another makes, and neighbours among those that read the same. */
static int offer_all(merge_state_t *s, uint32_t *last_reader) {
  const fu_graph_t *g = s->g;
  int failed = 0;
  memset(last_reader, 0xFF, ((size_t)s->m->n_values + 1) * sizeof *last_reader);
  for (uint32_t i = 0; i < g->n_nodes && !failed; i++)
    for (uint32_t k = g->operand_begin[i]; k < g->operand_begin[i + 1] && !failed; k++) {
      const uint32_t value = s->m->values[k];
      if (g->space[i] == FU_NONE || value == FU_NONE) continue;
      if (g->producers[k] != FU_NONE) failed |= offer(s, g->producers[k], i, 0);
      if (!is_read(s, k)) continue;
      if (last_reader[value] != FU_NONE) failed |= offer(s, last_reader[value], i, 0);
      last_reader[value] = i;
    }
  return failed;
}

static int merge_all(merge_state_t *s) {
  int failed = 0;
  while (s->n_heap > 0 && !failed) {
    const candidate_t c = pop(s);
    uint32_t a = find(s, c.a), b = find(s, c.b);
    if (a == b) continue;
    if (versions(s, a, b) != c.versions || a != c.a || b != c.b || s->place[a] > s->place[b]) {
      if (c.tries < MOST_TRIES) failed = offer(s, a, b, c.tries + 1);
      continue;
    }
    if (weigh(s, a, b) > 0 && search(s, a, b)) join(s, a, b);
  }
  return failed;
}

static void find_readers(merge_state_t *s) {
  const fu_graph_t *g = s->g;
  const uint32_t n_operands = g->operand_begin[g->n_nodes];
  for (uint32_t k = 0; k < n_operands; k++) {
    if (g->producers[k] != FU_NONE) s->reader_begin[g->producers[k] + 2]++;
    if (s->m->values[k] != FU_NONE) s->n_readers[s->m->values[k]]++;
  }
  for (uint32_t i = 0; i < g->n_nodes; i++) s->reader_begin[i + 2] += s->reader_begin[i + 1];
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = g->operand_begin[i]; k < g->operand_begin[i + 1]; k++)
      if (g->producers[k] != FU_NONE) s->readers[s->reader_begin[g->producers[k] + 1]++] = i;
  AOT_ASSERT(s->reader_begin[g->n_nodes] <= n_operands); /* each operand is in one list */
}

/* One root a group: its first node. */
static void begin(merge_state_t *s, const uint32_t *group) {
  const fu_graph_t *g = s->g;
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) s->mark[i] = FU_NONE; /* by last node: the root */
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    AOT_ASSERT(group[i] >= i && group[i] < g->n_nodes && group[group[i]] == group[i]); /* a last member is its own */
    const int is_root = s->mark[group[i]] == FU_NONE;
    if (is_root) s->mark[group[i]] = i;
    const uint32_t root = s->mark[group[i]], rows = g->rows ? g->rows[i] : 0;
    s->parent[i] = root;
    s->next[i] = FU_NONE;
    if (is_root) {
      s->last[i] = group[i];
      s->space[i] = g->space[i];
      s->rows[i] = 0;
    } else {
      s->next[s->tail[root]] = i;
    }
    s->tail[root] = i;
    s->size[root]++;
    s->turns[root] |= s->m->turn ? s->m->turn[i] : 0;
    if (rows && !s->rows[root]) {
      s->rows[root] = rows;
      s->space[root] = g->space[i];
      s->row_space[root] = rows == FU_NO_ROWS ? FU_NONE : g->row_space[i];
    }
  }
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (group[i] == i) s->order[n] = s->mark[i], s->place[s->mark[i]] = n++;
  for (uint32_t i = 0; i < g->n_nodes; i++) s->mark[i] = 0;
}

int fu_merge(const fu_graph_t *g, const fu_moves_t *m, uint32_t *group, uint32_t *position) {
  merge_state_t s = {.g = g, .m = m};
  const size_t n = (size_t)g->n_nodes + 1, n_values = (size_t)m->n_values + 1;
  uint32_t *nodes = calloc(n, 12 * sizeof *nodes), *values = calloc(n_values, 5 * sizeof *values);
  s.reader_begin = calloc(n + 2, sizeof *s.reader_begin);
  s.readers = malloc(((size_t)g->operand_begin[g->n_nodes] + 1) * sizeof *s.readers);
  s.turns = calloc(n, 1);
  int failed = !nodes || !values || !s.reader_begin || !s.readers || !s.turns;
  if (!failed) {
    uint32_t **const by_node[] = {&s.parent,    &s.last, &s.size, &s.version, &s.space, &s.rows,
                                  &s.row_space, &s.next, &s.tail, &s.place,   &s.order, &s.mark};
    for (size_t k = 0; k < sizeof by_node / sizeof *by_node; k++) *by_node[k] = nodes + k * n;
    s.seen[0] = values, s.seen[1] = values + n_values;
    s.n_here = values + 2 * n_values, s.n_readers = values + 3 * n_values;
    begin(&s, group);
    find_readers(&s);
    failed = offer_all(&s, values + 4 * n_values) || merge_all(&s);
  }
  for (uint32_t i = 0; i < g->n_nodes && !failed; i++) {
    group[i] = s.last[find(&s, i)];
    position[group[i]] = s.place[find(&s, i)];
    AOT_ASSERT(s.order[position[group[i]]] == find(&s, i));
  }
  free(s.heap);
  free(nodes);
  free(values);
  free(s.reader_begin);
  free(s.readers);
  free(s.turns);
  return failed ? -2 : 0;
}
