/* The two rules that look further than one node and its uses.
 *
 * Far apart: a value is used near and far, and fusion does not reach from the near use to the far one; then the far one
 * is not computed again from it. Where fusion ends after the uses s of a value is the first node x that some node
 * reachable from them reads without fusing. PyTorch walks to x from every value again (the compile time of issue
 * 145081); but since x is the first in order, it is the least of
 *
 *     end(s) = min over early users u of s:  end(u) if s fuses into u, else u
 *
 * which one sweep against the order finds for all nodes.
 *
 * Long chains: from every node on, walk through what fuses; where the walk has come more than 100 nodes far and
 * everything hangs on one node, that node is not computed again. A node is walked over once. */
#include "mincut.h"

#include "kit/base/heap.h"
#include <stdlib.h>

#define CHAIN 100u

static void find_fusion_ends(const mc_ruled_graph_t *m, uint32_t *end) {
  const jg_joint_t *j = m->j;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    end[n] = JG_NONE;
    for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++)
      for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++) {
        const uint32_t u = j->users[k];
        if (!j->early[u]) continue;
        const uint32_t e = mc_fuses_into(m, v, u) ? end[u] : u;
        if (e < end[n]) end[n] = e;
      }
  }
}

int mc_ban_far_apart(const mc_ruled_graph_t *m, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  uint32_t *end = malloc(((size_t)j->n_nodes + 1) * sizeof *end);
  if (!end) return -2;
  find_fusion_ends(m, end);
  for (uint32_t v = 0; v < j->n_values; v++) {
    if (j->def[v] != JG_NONE && !j->early[j->def[v]]) continue;
    uint32_t first = JG_NONE;
    for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
      if (j->early[j->users[k]] && end[j->users[k]] < first) first = end[j->users[k]];
    for (uint32_t k = j->user_begin[v]; first != JG_NONE && k < j->user_begin[v + 1]; k++) {
      const uint32_t u = j->users[k];
      if (j->early[u] && u > first && mc_fuses_into(m, v, u) && mc_may_ban(m, u)) banned[u] = 1;
    }
  }
  free(end);
  return 0;
}

/* ---- chains ---- */

typedef struct distance_state {
  uint32_t *heap, n_heap; /* nodes by position, the first on top */
  uint32_t *place;        /* by node: position among the forward's, the elements of tuples counted */
  uint8_t *seen;
} distance_state_t;

static int is_before(const void *a, const void *b) { return *(const uint32_t *)a < *(const uint32_t *)b; }

static void heap_push(distance_state_t *w, uint32_t x) {
  kit_heap_push(w->heap, w->n_heap++, sizeof *w->heap, &x, is_before);
}

static uint32_t heap_pop(distance_state_t *w) {
  uint32_t top;
  kit_heap_pop(w->heap, w->n_heap--, sizeof *w->heap, &top, is_before);
  return top;
}

static void number_places(const jg_joint_t *j, uint32_t *place) {
  uint32_t next = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    const uint32_t results = j->result_begin[n + 1] - j->result_begin[n];
    place[n] = next;
    if (j->early[n]) next += results > 1 ? results + 1 : 1;
  }
}

static void walk_chain(const mc_ruled_graph_t *m, distance_state_t *w, uint32_t start, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  w->n_heap = 0;
  heap_push(w, start);
  while (w->n_heap > 0) {
    const uint32_t at = heap_pop(w);
    if (w->seen[at]) continue;
    w->seen[at] = 1;
    if (w->place[at] > w->place[start] + CHAIN && w->n_heap == 0) {
      if (mc_may_ban(m, at)) banned[at] = 1;
      return;
    }
    for (uint32_t v = j->result_begin[at]; v < j->result_begin[at + 1]; v++)
      for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++) {
        const uint32_t u = j->users[k];
        if (j->early[u] && !w->seen[u] && !banned[u] && mc_fuses_into(m, v, u)) heap_push(w, u);
      }
  }
}

int mc_ban_long_chains(const mc_ruled_graph_t *m, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  distance_state_t w = {
      .heap = malloc(((size_t)j->operand_begin[j->n_nodes] + 2) * 4),
      .place = malloc(((size_t)j->n_nodes + 1) * 4),
      .seen = calloc((size_t)j->n_nodes + 1, 1),
  };
  const int status = w.heap && w.place && w.seen ? 0 : -2;
  if (status == 0) {
    number_places(j, w.place);
    for (uint32_t n = 0; n < j->n_nodes; n++)
      if (j->early[n]) walk_chain(m, &w, n, banned);
  }
  free(w.heap);
  free(w.place);
  free(w.seen);
  return status;
}
