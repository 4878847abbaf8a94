#include "recompute.h"

#include "kit/base/vector.h"
#include "group.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COPIES = 24, MOST_READERS = 32 /* that are looked through */ };

/* Pairs (group, what), chained by `what`. */
typedef struct pair {
  uint32_t group, what, next;
} pair_t;
typedef struct pairs {
  pair_t *rows;
  uint32_t n, capacity;
  uint32_t *first; /* by what */
} pairs_t;

typedef struct state {
  const fu_values_t *v;
  pairs_t readers; /* by value: groups that read it from memory */
  pairs_t copies;  /* by node */
  uint32_t *n_reads, *n_members;
  int failed;
} state_t;

/* The nodes that give one value to one reader. */
typedef struct cone {
  uint32_t nodes[MOST_COPIES], n;
  double cost[MOST_COPIES]; /* with what it reads */
  uint8_t is_copied[MOST_COPIES];
  uint32_t n_new; /* values that the reader did not read before */
  double total;
} cone_t;

static int add_pair(pairs_t *p, uint32_t group, uint32_t what) {
  pair_t *rows = kit_grow(p->rows, &p->capacity, (uint64_t)p->n + 1, sizeof *rows);
  if (!rows) return -2;
  p->rows = rows;
  p->rows[p->n] = (pair_t){group, what, p->first[what]};
  p->first[what] = p->n++;
  return 0;
}

static pair_t *find_pair(const pairs_t *p, uint32_t group, uint32_t what) {
  uint32_t left = MOST_READERS;
  for (uint32_t k = p->first[what]; k != FU_NONE && left--; k = p->rows[k].next)
    if (p->rows[k].group == group) return &p->rows[k];
  return NULL;
}

static void add_reader(state_t *s, uint32_t group, uint32_t value) {
  if (find_pair(&s->readers, group, value)) return;
  s->failed |= add_pair(&s->readers, group, value);
  s->n_reads[group]++;
}

static uint32_t group_of(const fu_values_t *v, uint32_t value) {
  return v->maker[value] == FU_NONE ? FU_NONE : v->group[v->maker[value]];
}

/* The group has it in a register, or reads it. */
static int is_there(const state_t *s, uint32_t group, uint32_t value) {
  const uint32_t maker = s->v->maker[value];
  if (maker != FU_NONE && (s->v->group[maker] == group || find_pair(&s->copies, group, maker))) return 1;
  return find_pair(&s->readers, group, value) != NULL;
}

static int is_in_memory(const state_t *s, uint32_t value) {
  if (s->v->maker[value] == FU_NONE || s->v->is_wanted[value]) return 1;
  for (uint32_t k = s->readers.first[value]; k != FU_NONE; k = s->readers.rows[k].next)
    if (s->readers.rows[k].group != FU_NONE) return 1;
  return 0;
}

static const double never = 1e30;

/* For one more group that reads it; what is not in memory yet is written for it. */
static double cost_of_reading(const state_t *s, uint32_t group, uint32_t value) {
  if (s->v->lasts_until[value] <= s->v->position[group]) return never;
  return s->v->move[value] * (is_in_memory(s, value) ? 1 : 2);
}

static uint32_t place_in(const cone_t *c, uint32_t node) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->nodes[i] == node) return i;
  return FU_NONE;
}

static int can_copy(const fu_values_t *v, uint32_t group, uint32_t node) {
  return node != FU_NONE && v->work[node] >= 0 && v->space[node] == v->group_space[group];
}

/* The nodes before `node` that the group could compute, it among them; sorted. */
static void collect(const state_t *s, uint32_t group, uint32_t node, cone_t *c) {
  const fu_values_t *v = s->v;
  c->nodes[0] = node;
  c->n = 1;
  for (uint32_t i = 0; i < c->n; i++)
    for (uint32_t k = v->operand_begin[c->nodes[i]]; k < v->operand_begin[c->nodes[i] + 1]; k++) {
      const uint32_t value = v->operands[k], maker = value == FU_NONE ? FU_NONE : v->maker[value];
      if (c->n < MOST_COPIES && can_copy(v, group, maker) && place_in(c, maker) == FU_NONE &&
          !is_there(s, group, value))
        c->nodes[c->n++] = maker;
    }
  AOT_ASSERT(c->n <= MOST_COPIES);
  for (uint32_t i = 1; i < c->n; i++)
    for (uint32_t k = i; k > 0 && c->nodes[k] < c->nodes[k - 1]; k--) {
      const uint32_t kept = c->nodes[k];
      c->nodes[k] = c->nodes[k - 1];
      c->nodes[k - 1] = kept;
    }
}

/* Is operand k of its node the first of that value? */
static int is_first(const fu_values_t *v, uint32_t node, uint32_t k) {
  for (uint32_t e = v->operand_begin[node]; e < k; e++)
    if (v->operands[e] == v->operands[k]) return 0;
  return v->operands[k] != FU_NONE;
}

/* The cheaper way to an operand; *out_place: among the cone's nodes, FU_NONE: it is read, or there. */
static double cost_of_operand(const state_t *s, uint32_t group, const cone_t *c, uint32_t value, uint32_t *out_place) {
  *out_place = FU_NONE;
  if (is_there(s, group, value)) return 0;
  const double reading = cost_of_reading(s, group, value);
  const uint32_t place = s->v->maker[value] == FU_NONE ? FU_NONE : place_in(c, s->v->maker[value]);
  if (place == FU_NONE || c->cost[place] > reading) return reading;
  AOT_ASSERT(place < c->n && c->cost[place] >= 0);
  *out_place = place;
  return c->cost[place];
}

/* The cone of the value's maker for the group: which of its nodes are copied, and at what cost. */
static void find_cone(const state_t *s, uint32_t group, uint32_t value, cone_t *c) {
  const fu_values_t *v = s->v;
  uint32_t read[MOST_COPIES * 4], n_read = 0, place;
  collect(s, group, v->maker[value], c);
  for (uint32_t i = 0; i < c->n; i++) {
    const uint32_t node = c->nodes[i];
    c->is_copied[i] = node == v->maker[value];
    c->cost[i] = v->work[node];
    for (uint32_t k = v->operand_begin[node]; k < v->operand_begin[node + 1]; k++)
      if (is_first(v, node, k)) c->cost[i] += cost_of_operand(s, group, c, v->operands[k], &place);
  }
  c->total = 0;
  for (uint32_t i = c->n; i-- > 0;) {
    const uint32_t node = c->nodes[i];
    if (!c->is_copied[i]) continue;
    c->total += v->work[node];
    for (uint32_t k = v->operand_begin[node]; k < v->operand_begin[node + 1]; k++) {
      if (v->operands[k] == FU_NONE || is_there(s, group, v->operands[k])) continue;
      const double cost = cost_of_operand(s, group, c, v->operands[k], &place);
      AOT_ASSERT(place == FU_NONE || place < i); /* makers precedes readers */
      if (place != FU_NONE) {
        c->is_copied[place] = 1;
        continue;
      }
      uint32_t seen = 0;
      while (seen < n_read && read[seen] != v->operands[k]) seen++;
      if (seen < n_read) continue;
      if (n_read == MOST_COPIES * 4) c->total = never;
      else read[n_read++] = v->operands[k];
      c->total += cost;
    }
  }
  c->n_new = n_read;
}

static uint32_t n_copied(const cone_t *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n; i++) n += c->is_copied[i];
  return n;
}

/* Has the group room for it? One read fewer makes room for another. */
static int has_room(const state_t *s, uint32_t group, const cone_t *c) {
  return s->n_members[group] + n_copied(c) <= s->v->max_nodes &&
         (c->n_new <= 1 || s->n_reads[group] + c->n_new <= s->v->max_reads + 1);
}

static void copy(state_t *s, uint32_t group, uint32_t value, const cone_t *c) {
  const fu_values_t *v = s->v;
  AOT_ASSERT(find_pair(&s->readers, group, value) && s->n_reads[group] > 0); /* it reads the value */
  find_pair(&s->readers, group, value)->group = FU_NONE;
  s->n_reads[group]--;
  for (uint32_t i = 0; i < c->n; i++) {
    if (!c->is_copied[i]) continue;
    s->failed |= add_pair(&s->copies, group, c->nodes[i]);
    s->n_members[group]++;
  }
  for (uint32_t i = 0; i < c->n; i++)
    for (uint32_t k = v->operand_begin[c->nodes[i]]; c->is_copied[i] && k < v->operand_begin[c->nodes[i] + 1]; k++)
      if (v->operands[k] != FU_NONE && !is_there(s, group, v->operands[k])) add_reader(s, group, v->operands[k]);
}

static void decide(state_t *s, uint32_t value) {
  const fu_values_t *v = s->v;
  uint32_t readers[MOST_READERS], n = 0;
  int are_all = !v->is_wanted[value];
  double saved = v->move[value], cost = 0;
  cone_t c;
  for (uint32_t k = s->readers.first[value]; k != FU_NONE; k = s->readers.rows[k].next) {
    if (s->readers.rows[k].group == FU_NONE) continue;
    if (n == MOST_READERS) return;
    readers[n++] = s->readers.rows[k].group;
  }
  for (uint32_t i = 0; i < n && are_all; i++) {
    are_all = can_copy(v, readers[i], v->maker[value]);
    if (!are_all) break;
    find_cone(s, readers[i], value, &c);
    are_all = has_room(s, readers[i], &c);
    AOT_ASSERT(c.n > 0 && c.total >= 0);
    saved += v->move[value];
    cost += c.total;
  }
  for (uint32_t i = 0; i < n && !s->failed; i++) {
    if (!can_copy(v, readers[i], v->maker[value])) continue;
    find_cone(s, readers[i], value, &c);
    if ((are_all && cost < saved) || (c.total < v->move[value] && has_room(s, readers[i], &c)))
      copy(s, readers[i], value, &c);
  }
}

static int compare(const void *a, const void *b) {
  const fu_copy_t *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static void begin(state_t *s) {
  const fu_values_t *v = s->v;
  memset(s->readers.first, 0xFF, ((size_t)v->n_values + 1) * sizeof *s->readers.first);
  memset(s->copies.first, 0xFF, ((size_t)v->n_nodes + 1) * sizeof *s->copies.first);
  for (uint32_t i = 0; i < v->n_nodes; i++) {
    if (v->group[i] == FU_NONE) continue;
    s->n_members[v->group[i]]++;
    for (uint32_t k = v->operand_begin[i]; k < v->operand_begin[i + 1]; k++)
      if (v->operands[k] != FU_NONE && !v->apart[k] && group_of(v, v->operands[k]) != v->group[i])
        add_reader(s, v->group[i], v->operands[k]);
  }
}

int fu_recompute(const fu_values_t *v, fu_copy_t **out, uint32_t *out_n) {
  state_t s = {.v = v};
  s.readers.first = malloc(((size_t)v->n_values + 1) * sizeof *s.readers.first);
  s.copies.first = malloc(((size_t)v->n_nodes + 1) * sizeof *s.copies.first);
  s.n_reads = calloc((size_t)v->n_nodes + 1, sizeof *s.n_reads);
  s.n_members = calloc((size_t)v->n_nodes + 1, sizeof *s.n_members);
  s.failed = !s.readers.first || !s.copies.first || !s.n_reads || !s.n_members;
  if (!s.failed) begin(&s);
  for (uint32_t value = v->n_values; value-- > 0 && !s.failed;)
    if (v->maker[value] != FU_NONE && v->work[v->maker[value]] >= 0) decide(&s, value);
  *out = s.failed ? NULL : malloc(((size_t)s.copies.n + 1) * sizeof **out);
  *out_n = *out ? s.copies.n : 0;
  for (uint32_t k = 0; k < *out_n; k++) (*out)[k] = (fu_copy_t){s.copies.rows[k].group, s.copies.rows[k].what};
  if (*out_n) qsort(*out, *out_n, sizeof **out, compare);
  free(s.readers.first);
  free(s.readers.rows);
  free(s.copies.first);
  free(s.copies.rows);
  free(s.n_reads);
  free(s.n_members);
  return *out ? 0 : -2;
}
