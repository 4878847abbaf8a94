#include "program_points.h"

#include "kit/partition/tags.h"
#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD };

typedef struct work {
  const mc_model_t *m;
  mc_moments_t *out;
  uint8_t *runs[2];       /* by node: early; late, and a gradient depends on it */
  uint8_t *is_certain[2]; /* by node: when it runs is known: after the side's node before it, before the one after */
  uint32_t *n_together, *rides_on; /* by node: see below */
  uint8_t *is_handed[2];           /* by value: an output of this side, or a view of it is one: not in the arena */
  uint64_t *least[2];              /* by value with memory of its own: bytes that holding it takes at least */
  uint32_t *root, *part; /* by value: whose memory it is in; the first view of as many bytes on the way to there */
  /* by value with memory of its own: how many parts of it could be saved, JG_NONE: not to be reported */
  uint32_t *n_parts;
} work_t;

static int is_loop(const work_t *w, uint32_t n) { return w->m->graph->space[n] != MS_NONE; }
static int has_memory(const work_t *w, uint32_t v) { return w->m->graph->base[v] == v; }

static void mark_handed(work_t *w, const uint32_t *outputs, uint32_t n_outputs, int side) {
  for (uint32_t i = 0; i < n_outputs; i++)
    if (outputs[i] != JG_NONE) w->is_handed[side][outputs[i]] = 1;
  for (uint32_t v = w->m->j->n_values; v-- > 0;) /* against the order: views follows what they are views of */
    if (w->is_handed[side][v]) w->is_handed[side][w->m->graph->base[v]] = 1;
}

/* What a step graph's outputs need of the forward: nothing requests the other outputs. */
static void find_step_nodes(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t i = 0; i < j->n_forward_outputs; i++) {
    const uint32_t v = j->forward_outputs[i];
    if (v != JG_NONE && j->def[v] != JG_NONE && w->m->one->output[i] != MC_DROPPED) w->runs[FORWARD][j->def[v]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;)
    for (uint32_t k = j->operand_begin[n]; w->runs[FORWARD][n] && k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != JG_NONE) w->runs[FORWARD][j->def[j->operands[k]]] = 1;
}

static void find_nodes(work_t *w) {
  const jg_joint_t *j = w->m->j;
  if (w->m->one) find_step_nodes(w);
  else memcpy(w->runs[FORWARD], j->early, j->n_nodes);
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE && j->def[j->gradients[i]] != JG_NONE)
      w->runs[BACKWARD][j->def[j->gradients[i]]] = 1;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (!j->late[n]) w->runs[BACKWARD][n] = 0;
    for (uint32_t k = j->operand_begin[n]; w->runs[BACKWARD][n] && k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != JG_NONE) w->runs[BACKWARD][j->def[j->operands[k]]] = 1;
  }
}

static int reads_result_of(const jg_joint_t *j, uint32_t reader, uint32_t n) {
  for (uint32_t k = j->operand_begin[reader]; k < j->operand_begin[reader + 1]; k++)
    if (j->def[j->operands[k]] == n) return 1;
  return 0;
}

/* No node of the forward is run again on its account. */
static int reads_backward_alone(const jg_joint_t *j, uint32_t n) {
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
    if (j->def[j->operands[k]] != JG_NONE && !j->late[j->def[j->operands[k]]]) return 0;
  return 1;
}

/* A loop ends where a node outside reads from it (kit/loops/group.h). When that is the side's next node, the loop
 * runs before it; when until there nothing can join it, the loop runs where it is. */
static int ends_in_time(const work_t *w, uint32_t n, int side) {
  enum { MOST = 16 };
  const jg_joint_t *j = w->m->j;
  uint32_t seen = 0, alone = 1;
  for (uint32_t m = n + 1; m < j->n_nodes && seen < MOST && !(seen && side == FORWARD); m++) {
    if (!w->runs[side][m]) continue;
    alone = alone && reads_backward_alone(j, m);
    if (is_loop(w, m) || (seen && !alone)) return 0;
    if (reads_result_of(j, m, n)) return 1;
    seen++;
  }
  return 0;
}

static void find_certain(work_t *w, int side) {
  for (uint32_t n = 0; n < w->m->j->n_nodes; n++)
    w->is_certain[side][n] = w->runs[side][n] && (!is_loop(w, n) || ends_in_time(w, n, side));
}

/* Loop nodes of the backward that certainly run where their only reader does: both pointwise over one space, nothing
 * else joins them or reads from them before, and all pointwise nodes that hang together fit into a loop. Forward in
 * order: a rider may have riders. */
static int rides(const work_t *w, uint32_t n, uint32_t reader) {
  const jg_joint_t *j = w->m->j;
  const uint32_t *space = w->m->graph->space;
  if (!w->runs[BACKWARD][reader] || space[reader] != space[n] || w->n_together[n] > w->m->graph->max_loop) return 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
    const uint32_t d = j->def[j->operands[k]];
    if (d != JG_NONE && is_loop(w, d) && (!j->late[d] || w->rides_on[d] != n)) return 0;
  }
  return 1;
}

static void find_riders(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    const uint32_t begin = j->user_begin[j->result_begin[n]], end = j->user_begin[j->result_begin[n + 1]];
    int is_one = begin < end;
    w->rides_on[n] = n;
    for (uint32_t k = begin; k < end; k++) is_one = is_one && j->users[k] == j->users[begin];
    if (is_one && is_loop(w, n) && w->runs[BACKWARD][n] && rides(w, n, j->users[begin]))
      w->rides_on[n] = j->users[begin];
  }
  for (uint32_t n = j->n_nodes; n-- > 0;) w->rides_on[n] = w->rides_on[w->rides_on[n]]; /* to the last one */
}

static uint32_t find_set(uint32_t *parent, uint32_t n) {
  while (parent[n] != n) n = parent[n] = parent[parent[n]];
  return n;
}

/* By node: how many pointwise nodes over one space hang together with it: no loop that it is in has more. */
static void count_together(work_t *w) {
  const jg_joint_t *j = w->m->j;
  uint32_t *parent = w->rides_on; /* not yet in use */
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    parent[n] = n;
    for (uint32_t k = j->operand_begin[n]; is_loop(w, n) && k < j->operand_begin[n + 1]; k++) {
      const uint32_t d = j->def[j->operands[k]];
      if (d != JG_NONE && w->m->graph->space[d] == w->m->graph->space[n])
        parent[find_set(parent, d)] = find_set(parent, n);
    }
  }
  for (uint32_t n = 0; n < j->n_nodes; n++) w->n_together[find_set(parent, n)]++;
  for (uint32_t n = 0; n < j->n_nodes; n++) w->n_together[n] = w->n_together[find_set(parent, n)];
}

static uint64_t padded(const work_t *w, uint64_t nbytes) {
  return (nbytes + w->m->graph->align - 1) & ~(w->m->graph->align - 1);
}

/* A view of less than all: saved, it is copied when the forward ends, and what it is a part of stays in the arena until
 * then. In a step graph nothing is copied. */
static int is_part(const work_t *w, uint32_t v) {
  return !w->m->one && w->m->j->nbytes[v] != w->m->j->nbytes[w->root[v]];
}

/* In the arena, or saved, itself or as a view of it; a part of it saved is there in the backward, and besides it in
 * the forward. */
static void find_least(work_t *w) {
  for (uint32_t v = 0; v < w->m->j->n_values; v++) {
    const uint32_t r = w->root[v] = has_memory(w, v) ? v : w->root[w->m->graph->base[v]];
    const uint64_t slot = mc_slot_nbytes(w->m, v), arena = padded(w, w->m->j->nbytes[v]),
                   least = slot < arena ? slot : arena;
    for (int side = FORWARD; side <= BACKWARD; side++)
      if (v == r || (least < w->least[side][r] && (side == BACKWARD || !is_part(w, v)))) w->least[side][r] = least;
  }
}

/* A view reads nothing when it is made; its readers are those of what it is a view of. */
static int makes_view(const work_t *w, uint32_t n) {
  for (uint32_t r = w->m->j->result_begin[n]; r < w->m->j->result_begin[n + 1]; r++)
    if (!has_memory(w, r)) return 1;
  return 0;
}

static void widen(mc_span_t *to, const mc_span_t *by) {
  if (by->first < to->first) to->first = by->first;
  if (by->last > to->last) to->last = by->last;
}

/* Is v, which a loop of this side reads, made before and not in it? */
static int is_made_before(const work_t *w, uint32_t v, int side) {
  const uint32_t d = w->m->j->def[v];
  return d != JG_NONE && has_memory(w, v) && (!is_loop(w, d) || w->is_certain[side][d]);
}

/* Readers of values on their sides; first: what is certain to find them in memory. Against the order: then bases get
 * the readers of their views. */
static void find_readers(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t n = j->n_nodes; n-- > 0;)
    for (int side = FORWARD; side <= BACKWARD; side++) {
      if (!w->runs[side][n] || makes_view(w, n)) continue;
      for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
        const uint32_t v = j->operands[k];
        mc_span_t reads = {n, side == BACKWARD ? w->rides_on[n] : n};
        if (is_loop(w, n) && !is_made_before(w, v, side)) reads.first = JG_NONE;
        widen(&w->out->spans[v][side], &reads);
      }
    }
  for (uint32_t v = j->n_values; v-- > 0;)
    for (int side = FORWARD; side <= BACKWARD; side++)
      if (!has_memory(w, v)) widen(&w->out->spans[w->m->graph->base[v]][side], &w->out->spans[v][side]);
}

/* From readers to what is held: by the side that makes it for itself from where it is made. */
static void close_spans(work_t *w) {
  static const mc_span_t none = {JG_NONE, 0};
  const jg_joint_t *j = w->m->j;
  for (uint32_t v = 0; v < j->n_values; v++)
    for (int side = FORWARD; side <= BACKWARD; side++) {
      mc_span_t *s = &w->out->spans[v][side];
      const uint32_t d = j->def[v];
      if (d == JG_NONE || w->is_handed[side][v]) *s = none;
      else if (!has_memory(w, v)) *s = w->out->spans[w->root[v]][side];
      else if (w->is_certain[side][d]) {
        s->first = d;
        if (s->last < d) s->last = d;
      }
      if (side == FORWARD && is_part(w, v)) *s = none; /* in addition to what it is a part of */
    }
}

/* Views that are as large as what they are views of are the same part, known by the first of them. */
static uint32_t first_of_part(const work_t *w, uint32_t v) {
  const uint32_t base = w->m->graph->base[v];
  return base != v && w->m->j->nbytes[base] == w->m->j->nbytes[v] ? w->part[base] : v;
}

/* Views for nothing, and as cheap to save at the front as after: then of a part and the whole, or of two values of one
 * part, a plan that saves both gains by saving the front one alone. */
static int may_be_replaced(const work_t *w, uint32_t v) {
  const uint32_t d = w->m->j->def[v];
  if (v == w->root[v]) return d != JG_NONE && !w->is_handed[FORWARD][v] && !pt_must_recompute(w->m->j, d);
  return w->m->cost[d] == 0 && !w->m->is_fixed[d] && !pt_must_recompute(w->m->j, d) &&
         mc_slot_nbytes(w->m, v) >= mc_slot_nbytes(w->m, w->part[v]);
}

/* By value: the first node of the backward that reads it, itself or what runs again before that. */
static void find_first_needs(const work_t *w, uint32_t *out) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t v = 0; v < j->n_values; v++) out[v] = j->n_nodes;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    uint32_t at = j->late[n] ? (w->runs[BACKWARD][n] ? n : j->n_nodes) : j->n_nodes;
    for (uint32_t r = j->result_begin[n]; r < j->result_begin[n + 1] && !j->late[n]; r++)
      if (out[r] < at) at = out[r];
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
      if (at < out[j->operands[k]]) out[j->operands[k]] = at;
  }
}

/* Of a storage and views of it a plan that saves several is no better than the one that saves the storage alone, which
 * all of them pay for; where that one is no plan, nothing is said of any of them. */
static int find_across(work_t *w) {
  const jg_joint_t *j = w->m->j;
  mc_across_t *across = w->out->across = calloc((size_t)j->n_values + 1, sizeof *across);
  uint32_t *needs = malloc(((size_t)j->n_values + 1) * 4);
  if (!across || !needs) {
    free(needs);
    return -2;
  }
  find_first_needs(w, needs);
  for (uint32_t v = 0; v < j->n_values; v++) {
    const uint32_t r = w->root[v], d = j->def[v];
    if (!jg_is_forward_value(j, v)) continue;
    if (d == JG_NONE || pt_must_recompute(j, d) || (v != r && (w->m->cost[d] != 0 || w->m->is_fixed[d])))
      w->n_parts[r] = JG_NONE;
  }
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) {
    const uint32_t r = w->root[v];
    const mc_span_t *s = &w->out->spans[r][FORWARD];
    if (!jg_is_forward_value(j, v) || w->n_parts[r] == JG_NONE || w->is_handed[FORWARD][r]) continue;
    across[v] = (mc_across_t){padded(w, j->nbytes[r]), s->first <= s->last ? s->last + 1 : j->n_nodes + 1, needs[v]};
  }
  free(needs);
  return 0;
}

/* So in the plans to be bounded a part that is saved keeps the whole in the arena. Parts of one storage share its
 * bytes. */
static void find_kept(work_t *w) {
  const jg_joint_t *j = w->m->j;
  for (uint32_t v = 0; v < j->n_values; v++) {
    const uint32_t r = w->root[v];
    w->part[v] = first_of_part(w, v);
    if (!jg_is_forward_value(j, v) || w->n_parts[r] == JG_NONE) continue;
    if (!may_be_replaced(w, v)) w->n_parts[r] = JG_NONE;
    else w->n_parts[r] += is_part(w, v) && w->part[v] == v;
  }
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) {
    const uint32_t r = w->root[v];
    const mc_span_t *s = &w->out->spans[r][FORWARD];
    if (!jg_is_forward_value(j, v) || !is_part(w, v) || w->n_parts[r] == JG_NONE) continue;
    w->out->kept[v] = padded(w, j->nbytes[r]) / w->n_parts[r];
    w->out->kept_from[v] = s->first <= s->last && s->last >= j->def[v] ? s->last + 1 : j->def[v];
  }
}

/* Differences first, then their sums. A side's values are held at its own nodes only. */
static int add_up(work_t *w, int side) {
  const jg_joint_t *j = w->m->j;
  mc_moments_t *out = w->out;
  uint64_t now = 0, *change = calloc((size_t)j->n_nodes + 2, sizeof *change);
  if (!change) return -2;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) {
    const mc_span_t *s = &out->spans[v][side];
    if (!has_memory(w, v) || s->first > s->last) continue;
    change[s->first] += w->least[side][v];
    change[s->last + 1] -= w->least[side][v]; /* may pass through "less than nothing" */
  }
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    now += change[n];
    if (!w->is_certain[side][n] || w->runs[!side][n]) continue;
    out->side[n] = (uint8_t)side;
    out->held[n] = now + w->m->graph->scratch[n];
    if (out->held[n] > out->least) out->least = out->held[n];
  }
  free(change);
  return 0;
}

static int work_init(work_t *w, const mc_model_t *m, mc_moments_t *out) {
  const size_t nodes = (size_t)m->j->n_nodes + 2, values = (size_t)m->j->n_values + 1;
  *w = (work_t){
      .m = m,
      .out = out,
      .root = calloc(values, 4),
      .part = calloc(values, 4),
      .n_parts = calloc(values, 4),
      .n_together = calloc(nodes, 4),
      .rides_on = calloc(nodes, 4),
  };
  *out = (mc_moments_t){
      .m = m,
      .held = calloc(nodes, 8),
      .side = malloc(nodes),
      .spans = malloc(values * sizeof *out->spans),
      .kept = calloc(values, 8),
      .kept_from = calloc(values, 4),
  };
  int is_there = w->root && w->part && w->n_together && w->rides_on && w->n_parts && out->held && out->side &&
                 out->spans && out->kept && out->kept_from;
  for (int side = FORWARD; side <= BACKWARD; side++) {
    w->runs[side] = calloc(nodes, 1);
    w->is_certain[side] = calloc(nodes, 1);
    w->is_handed[side] = calloc(values, 1);
    w->least[side] = calloc(values, 8);
    is_there = is_there && w->runs[side] && w->is_certain[side] && w->is_handed[side] && w->least[side];
  }
  if (is_there) memset(out->side, MC_NO_MOMENT, nodes);
  for (size_t v = 0; is_there && v < values; v++)
    for (int side = FORWARD; side <= BACKWARD; side++) out->spans[v][side] = (mc_span_t){JG_NONE, 0};
  return is_there ? 0 : -2;
}

static void work_deinit(work_t *w) {
  for (int side = FORWARD; side <= BACKWARD; side++) {
    free(w->runs[side]);
    free(w->is_certain[side]);
    free(w->is_handed[side]);
    free(w->least[side]);
  }
  free(w->root);
  free(w->part);
  free(w->n_together);
  free(w->rides_on);
  free(w->n_parts);
}

int mc_moments_init(mc_moments_t *h, const mc_model_t *m) {
  work_t w;
  int status = work_init(&w, m, h);
  if (status == 0) h->side[m->j->n_nodes] = FORWARD; /* its end: nothing is held for certain but what kept says */
  if (status == 0 && !m->graph->in_place) {
    find_nodes(&w);
    for (int side = FORWARD; side <= BACKWARD; side++) find_certain(&w, side);
    mark_handed(&w, m->j->forward_outputs, m->j->n_forward_outputs, FORWARD);
    if (m->one) mark_handed(&w, m->j->forward_outputs, m->j->n_forward_outputs, BACKWARD); /* read where it lies */
    else mark_handed(&w, m->j->gradients, m->j->n_gradients, BACKWARD);
    count_together(&w);
    find_riders(&w);
    find_least(&w);
    find_readers(&w);
    close_spans(&w);
    if (m->one) status = find_across(&w);
    else find_kept(&w);
    for (int side = FORWARD; side <= BACKWARD && status == 0; side++) status = add_up(&w, side);
  }
  work_deinit(&w);
  return status;
}

void mc_moments_deinit(mc_moments_t *h) {
  free(h->held);
  free(h->side);
  free(h->spans);
  free(h->kept);
  free(h->kept_from);
  free(h->across);
  memset(h, 0, sizeof *h);
}
