#include "split.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
  uint8_t *is_saved;    /* by value */
  uint8_t *is_read;     /* by value: the backward reads it as an input */
  uint8_t *in_forward;  /* by node */
  uint8_t *in_backward; /* by node */
  uint8_t *emitted;     /* by node */
  uint32_t *stack;      /* nodes */
  uint32_t *cursor;     /* by node: next operand to look at */
} work_t;

static int work_init(work_t *w, const jg_joint_t *j) {
  size_t nodes = (size_t)j->n_nodes + 1, values = (size_t)j->n_values + 1;
  w->is_saved = calloc(values, 1);
  w->is_read = calloc(values, 1);
  w->in_forward = calloc(nodes, 1);
  w->in_backward = calloc(nodes, 1);
  w->emitted = calloc(nodes, 1);
  w->stack = calloc(nodes, 4);
  w->cursor = calloc(nodes, 4);
  return w->is_saved && w->is_read && w->in_forward && w->in_backward && w->emitted && w->stack && w->cursor ? 0 : -2;
}

static void work_deinit(work_t *w) {
  void *arrays[] = {w->is_saved, w->is_read, w->in_forward, w->in_backward, w->emitted, w->stack, w->cursor};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* Which nodes the gradients need: one sweep against the order, since operands precedes their users. */
static void reach_backward(work_t *w, const jg_joint_t *j) {
  for (uint32_t i = 0; i < j->n_gradients; i++) {
    uint32_t v = j->gradients[i];
    if (v == JG_NONE) continue;
    if (w->is_saved[v] || j->def[v] == JG_NONE) w->is_read[v] = 1;
    else w->in_backward[j->def[v]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if ((j->op_flags[n] & AOT_OP_EFFECT) && j->late[n]) w->in_backward[n] = 1;
    if (!w->in_backward[n]) continue;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
      uint32_t v = j->operands[k];
      if (w->is_saved[v] || j->def[v] == JG_NONE) w->is_read[v] = 1;
      else w->in_backward[j->def[v]] = 1;
    }
  }
}

static void reach_forward(work_t *w, const jg_joint_t *j) {
  memcpy(w->in_forward, j->early, j->n_nodes);
  for (uint32_t v = 0; v < j->n_values; v++)
    if (w->is_saved[v] && w->is_read[v] && j->def[v] != JG_NONE) w->in_forward[j->def[v]] = 1;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (!w->in_forward[n]) continue;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != JG_NONE) w->in_forward[j->def[j->operands[k]]] = 1;
  }
}

/* Emit root after the backward nodes it needs, depth first with an explicit stack. */
static void emit_with_needs(work_t *w, const jg_joint_t *j, uint32_t root, jg_split_t *s) {
  uint32_t depth = 0;
  w->stack[depth++] = root;
  w->cursor[root] = j->operand_begin[root];
  while (depth > 0) {
    uint32_t n = w->stack[depth - 1], need = JG_NONE;
    while (w->cursor[n] < j->operand_begin[n + 1] && need == JG_NONE) {
      uint32_t v = j->operands[w->cursor[n]++], d = j->def[v];
      if (d != JG_NONE && !w->is_saved[v] && w->in_backward[d] && !w->emitted[d]) need = d;
    }
    if (need == JG_NONE) {
      AOT_ASSERT(!w->emitted[n] && s->n_backward < j->n_nodes);
      w->emitted[n] = 1;
      s->backward[s->n_backward++] = n;
      depth--;
    } else {
      w->cursor[need] = j->operand_begin[need];
      AOT_ASSERT(depth < j->n_nodes);
      w->stack[depth++] = need;
    }
  }
}

/* Late nodes first in joint order, each after its needs; then what only gradients need directly. */
static void order_backward(work_t *w, const jg_joint_t *j, jg_split_t *s) {
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t n = 0; n < j->n_nodes; n++)
      if (w->in_backward[n] && !w->emitted[n] && (pass == 1 || j->late[n])) emit_with_needs(w, j, n, s);
}

static int collect(work_t *w, const jg_joint_t *j, const uint32_t *saved, uint32_t n_saved, jg_split_t *s) {
  s->saved = calloc((size_t)n_saved + 1, 4);
  s->forward = calloc((size_t)j->n_nodes + 1, 4);
  s->backward = calloc((size_t)j->n_nodes + 1, 4);
  s->recomputed = calloc((size_t)j->n_nodes + 1, 4);
  if (!s->saved || !s->forward || !s->backward || !s->recomputed) return -2;
  for (uint32_t i = 0; i < n_saved; i++) {
    if (!w->is_read[saved[i]]) continue;
    s->saved[s->n_saved++] = saved[i];
    if (j->def[saved[i]] != JG_NONE) s->nbytes_saved += j->nbytes[saved[i]];
  }
  order_backward(w, j, s);
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    AOT_ASSERT(!w->in_backward[n] || w->emitted[n]);
    if (w->in_forward[n]) s->forward[s->n_forward++] = n;
    if (w->in_forward[n] && w->in_backward[n]) s->recomputed[s->n_recomputed++] = n;
  }
  return 0;
}

int jg_split_init(jg_split_t *s, const jg_joint_t *j, const uint32_t *saved, uint32_t n_saved, uint32_t *out_value) {
  work_t w;
  memset(s, 0, sizeof *s);
  int status = work_init(&w, j);
  for (uint32_t i = 0; status == 0 && i < n_saved; i++) {
    AOT_ASSERT(saved[i] < j->n_values);
    if (!jg_is_forward_value(j, saved[i])) {
      *out_value = saved[i];
      status = -1;
    }
    w.is_saved[saved[i]] = 1;
  }
  if (status == 0) {
    reach_backward(&w, j);
    reach_forward(&w, j);
    status = collect(&w, j, saved, n_saved, s);
  }
  work_deinit(&w);
  if (status != 0) jg_split_deinit(s);
  return status;
}

void jg_split_deinit(jg_split_t *s) {
  free(s->saved);
  free(s->forward);
  free(s->backward);
  free(s->recomputed);
  memset(s, 0, sizeof *s);
}
