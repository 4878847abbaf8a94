#include "least_arena.h"

#include <stdlib.h>
#include <string.h>

typedef struct work {
  const mc_model_t *m;
  uint8_t *is_needed; /* by node: late, and a gradient depends on it */
  uint8_t *is_handed; /* by value: a gradient, or a view of it is one: not in the arena */
  uint32_t *first;    /* by value: node from which on it is certainly in memory, PT_NONE: not certain */
  uint32_t *last;     /* by value: last node that reads it or a view of it */
  uint64_t *begins, *ends; /* by node: bytes that are there from it on; whose last reader it is */
} work_t;

static void find_needed(work_t *w) {
  const pt_joint_t *j = w->m->j;
  for (uint32_t i = 0; i < j->n_gradients; i++) {
    if (j->gradients[i] == PT_NONE) continue;
    w->is_handed[j->gradients[i]] = 1;
    if (j->def[j->gradients[i]] != PT_NONE) w->is_needed[j->def[j->gradients[i]]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (!j->late[n]) w->is_needed[n] = 0;
    for (uint32_t k = j->operand_begin[n]; w->is_needed[n] && k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != PT_NONE) w->is_needed[j->def[j->operands[k]]] = 1;
  }
}

/* Whatever a gradient is a view of may be the gradient's memory. Against the order: views stand behind what they are views of. */
static void spread_handed(work_t *w) {
  for (uint32_t v = w->m->j->n_values; v-- > 0;)
    if (w->is_handed[v]) w->is_handed[w->m->graph->base[v]] = 1;
}

static int views_operand(const work_t *w, uint32_t n, uint32_t v, uint32_t *out_view) {
  for (uint32_t r = w->m->j->result_begin[n]; r < w->m->j->result_begin[n + 1]; r++)
    if (w->m->graph->base[r] == v) {
      *out_view = r;
      return 1;
    }
  return 0;
}

/* Against the order, so that readers of views are known when what they are views of comes. */
static void find_readers(work_t *w) {
  const pt_joint_t *j = w->m->j;
  memset(w->first, 0xff, ((size_t)j->n_values + 1) * 4);
  for (uint32_t n = j->n_nodes; n-- > 0;)
    for (uint32_t k = j->operand_begin[n]; w->is_needed[n] && k < j->operand_begin[n + 1]; k++) {
      uint32_t v = j->operands[k], view;
      if (views_operand(w, n, v, &view)) {
        if (w->last[view] > w->last[v]) w->last[v] = w->last[view];
        if (w->first[view] < w->first[v]) w->first[v] = w->first[view];
        continue;
      }
      if (n > w->last[v]) w->last[v] = n;
      if (w->m->graph->space[n] == MS_NONE && n < w->first[v]) w->first[v] = n;
    }
}

static uint64_t padded(const work_t *w, uint32_t v) {
  return (w->m->j->nbytes[v] + w->m->graph->align - 1) & ~(w->m->graph->align - 1);
}

static void list_intervals(work_t *w) {
  const pt_joint_t *j = w->m->j;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) {
    uint32_t d = j->def[v], first = w->m->graph->space[d] == MS_NONE ? d : w->first[v];
    if (!w->is_needed[d] || w->m->graph->base[v] != v || w->is_handed[v] || first == PT_NONE) continue;
    w->begins[first] += padded(w, v);
    w->ends[w->last[v] > first ? w->last[v] : first] += padded(w, v);
  }
}

/* The least that value v of the forward takes: saved, as what it is a view of saved, or with its storage computed again. 0 for inputs. */
static uint64_t least_of(const work_t *w, uint32_t v, uint32_t *out_root) {
  uint64_t least = mc_slot_nbytes(w->m, v);
  while (w->m->graph->base[v] != v) {
    v = w->m->graph->base[v];
    if (mc_slot_nbytes(w->m, v) < least) least = mc_slot_nbytes(w->m, v);
  }
  *out_root = v;
  if (padded(w, v) < least) least = padded(w, v);
  return w->m->j->def[v] == PT_NONE ? 0 : least;
}

/* Of the forward, read by node n. Two views of one storage count once; only the first operands are looked at closely, there are few. */
static uint64_t read_of_forward(const work_t *w, uint32_t n) {
  enum { MOST = 16 };
  const pt_joint_t *j = w->m->j;
  uint32_t roots[MOST], n_roots = 0;
  uint64_t sum = 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1] && n_roots < MOST; k++) {
    uint32_t v = j->operands[k], root, seen = 0;
    if (!pt_is_forward_value(j, v)) continue;
    uint64_t nbytes = least_of(w, v, &root);
    for (uint32_t i = 0; i < n_roots; i++) seen |= roots[i] == root;
    if (seen) continue;
    roots[n_roots++] = root;
    sum += nbytes;
  }
  return sum;
}

static uint32_t root_of(const work_t *w, uint32_t v) {
  while (w->m->graph->base[v] != v) v = w->m->graph->base[v];
  return v;
}

static void mark_moment(work_t *w, uint32_t n, uint8_t *in_moment) {
  const pt_joint_t *j = w->m->j;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
    if (pt_is_forward_value(j, j->operands[k])) in_moment[root_of(w, j->operands[k])] = 1;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) /* views stand behind what they are views of */
    if (in_moment[w->m->graph->base[v]]) in_moment[v] = 1;
}

static void sweep(work_t *w, mc_least_t *out) {
  const pt_joint_t *j = w->m->j;
  const ms_graph_t *g = w->m->graph;
  uint64_t now = 0;
  uint32_t fullest = PT_NONE;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    now += w->begins[n];
    if (w->is_needed[n] && g->space[n] == MS_NONE) {
      uint64_t own = now + g->scratch[n], all = own + read_of_forward(w, n);
      uint32_t view;
      int is_view = j->operand_begin[n] < j->operand_begin[n + 1] && views_operand(w, n, j->operands[j->operand_begin[n]], &view);
      if (own > out->arena) out->arena = own;
      if (!is_view && all > out->moment) {
        out->moment = all;
        fullest = n;
      }
    }
    now -= w->ends[n];
  }
  if (out->moment < out->arena) out->moment = out->arena; /* then nothing of the forward is read there */
  else if (fullest != PT_NONE) mark_moment(w, fullest, out->in_moment);
}

int mc_least_init(mc_least_t *l, const mc_model_t *m) {
  const pt_joint_t *j = m->j;
  size_t nodes = (size_t)j->n_nodes + 1, values = (size_t)j->n_values + 1;
  work_t w = {m, calloc(nodes, 1), calloc(values, 1), calloc(values, 4), calloc(values, 4), calloc(nodes, 8), calloc(nodes, 8)};
  memset(l, 0, sizeof *l);
  l->in_moment = calloc(values, 1);
  int status = l->in_moment && w.is_needed && w.is_handed && w.first && w.last && w.begins && w.ends ? 0 : -2;
  if (status == 0 && !m->graph->in_place) {
    find_needed(&w);
    spread_handed(&w);
    find_readers(&w);
    list_intervals(&w);
    sweep(&w, l);
  }
  free(w.is_needed);
  free(w.is_handed);
  free(w.first);
  free(w.last);
  free(w.begins);
  free(w.ends);
  return status;
}

void mc_least_deinit(mc_least_t *l) {
  free(l->in_moment);
  memset(l, 0, sizeof *l);
}
