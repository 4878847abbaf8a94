/* Which forward nodes must not run again in the backward. Rules 1 to 5 look at one node; rule 6 at how far apart its users
 * lie. Each rule has its option; tags of the user and side effects stand above the options. */
#include "mincut.h"

#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WALK 1024u /* nodes that rule 6 looks at from one start, so that the whole stays linear */

/* Uses outside the forward, followed through views: does any, does one that cannot be fused. One sweep against the order. */
static void find_late_uses(const pt_joint_t *j, uint8_t *any, uint8_t *unfusible) {
  for (uint32_t n = j->n_nodes; n-- > 0;)
    for (uint32_t k = j->user_begin[j->result_begin[n]]; k < j->user_begin[j->result_begin[n + 1]]; k++) {
      uint32_t u = j->users[k];
      if (mc_is_view(j, u)) {
        any[n] |= any[u];
        unfusible[n] |= unfusible[u];
      } else if (!j->early[u]) {
        any[n] = 1;
        if (!mc_is_fusible(j, u, u)) unfusible[n] = 1;
      }
    }
}

static int reads_much_more(const pt_joint_t *j, uint32_t n) {
  uint64_t in = 0, out = 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) in += j->nbytes[j->operands[k]];
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) out += j->nbytes[v];
  return 4 * out < in;
}

/* Views are free to compute again, but what the user wants kept is kept. */
static int may_ban(const pt_joint_t *j, uint32_t n) {
  return (j->node_flags[n] & AOT_NODE_MUST_SAVE) || (!mc_is_view(j, n) && !mc_must_recompute(j, n));
}

static int is_banned(const pt_joint_t *j, const mc_rules_t *rules, uint32_t n, int materialized) {
  if (j->op_flags[n] & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_RANDOM)) return 1;
  if (j->node_flags[n] & AOT_NODE_MUST_SAVE) return 1;
  if (rules->ban_expensive && !mc_is_recomputable(j, n)) return 1;
  if (rules->ban_materialized && materialized) return 1;
  return rules->ban_reductions && reads_much_more(j, n);
}

/* A walk over forward nodes in order of position: a binary heap of positions, each once. */
typedef struct walk {
  uint32_t *heap, n_heap;
  uint32_t *seen; /* by node: number of the walk that met it */
  uint8_t *fused; /* by node: met over fusible edges only, in this walk */
  uint32_t number;
} walk_t;

static void heap_push(walk_t *w, uint32_t x) {
  uint32_t i = w->n_heap++;
  for (; i > 0 && w->heap[(i - 1) / 2] > x; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = x;
}

static uint32_t heap_pop(walk_t *w) {
  uint32_t top = w->heap[0], x = w->heap[--w->n_heap], i = 0;
  for (uint32_t c = 1; c < w->n_heap; c = 2 * i + 1) {
    if (c + 1 < w->n_heap && w->heap[c + 1] < w->heap[c]) c++;
    if (w->heap[c] >= x) break;
    w->heap[i] = w->heap[c];
    i = c;
  }
  if (w->n_heap) w->heap[i] = x;
  return top;
}

static void visit(walk_t *w, uint32_t node, int fused) {
  if (w->seen[node] != w->number) {
    w->seen[node] = w->number;
    w->fused[node] = (uint8_t)fused;
    heap_push(w, node);
  } else if (!fused) {
    w->fused[node] = 0;
  }
}

/* The position of the first node, walking on from n's users, that fusion does not reach; UINT32_MAX when there is none
 * before n's last user. */
static uint32_t fusion_end(const pt_joint_t *j, walk_t *w, uint32_t n) {
  uint32_t begin = j->user_begin[j->result_begin[n]], end = j->user_begin[j->result_begin[n + 1]], last = 0;
  w->n_heap = 0;
  w->number++;
  for (uint32_t k = begin; k < end; k++)
    if (j->early[j->users[k]]) {
      visit(w, j->users[k], 1);
      if (j->users[k] > last) last = j->users[k];
    }
  for (uint32_t steps = 0; w->n_heap > 0; steps++) {
    uint32_t at = heap_pop(w);
    if (!w->fused[at]) return at;
    if (steps == MAX_WALK) return at;
    for (uint32_t k = j->user_begin[j->result_begin[at]]; k < j->user_begin[j->result_begin[at + 1]]; k++)
      if (j->early[j->users[k]] && j->users[k] <= last && w->n_heap < MAX_WALK)
        visit(w, j->users[k], mc_is_fusible(j, at, j->users[k]));
  }
  return UINT32_MAX;
}

/* Rule 6: users of one value that no fusion brings together; the later ones are not computed again for it. */
static int ban_far_apart(const pt_joint_t *j, uint8_t *banned) {
  size_t nodes = (size_t)j->n_nodes + 1;
  uint32_t most = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    uint32_t uses = j->user_begin[j->result_begin[n + 1]] - j->user_begin[j->result_begin[n]];
    if (uses > most) most = uses;
  }
  walk_t w = {.heap = calloc(MAX_WALK + most + 1, 4), .seen = calloc(nodes, 4), .fused = calloc(nodes, 1)};
  int status = w.heap && w.seen && w.fused ? 0 : -2;
  for (uint32_t n = 0; status == 0 && n < j->n_nodes; n++) {
    uint32_t begin = j->user_begin[j->result_begin[n]], stop = j->user_begin[j->result_begin[n + 1]];
    if (!j->early[n] || stop - begin < 2) continue;
    uint32_t position = fusion_end(j, &w, n);
    for (uint32_t k = begin; position != UINT32_MAX && k < stop; k++) {
      uint32_t u = j->users[k];
      if (j->early[u] && u > position && mc_is_fusible(j, n, u) && may_ban(j, u)) banned[u] = 1;
    }
  }
  free(w.heap);
  free(w.seen);
  free(w.fused);
  return status;
}

int mc_ban(const pt_joint_t *j, const mc_rules_t *rules, uint8_t *banned) {
  uint8_t *late = calloc((size_t)j->n_nodes + 1, 1), *unfusible = calloc((size_t)j->n_nodes + 1, 1);
  int status = late && unfusible ? 0 : -2;
  if (status == 0) {
    find_late_uses(j, late, unfusible);
    for (uint32_t n = 0; n < j->n_nodes; n++) {
      int materialized = mc_is_fusible(j, n, n) ? unfusible[n] : late[n];
      banned[n] = (uint8_t)(j->early[n] && may_ban(j, n) && is_banned(j, rules, n, materialized));
    }
    if (rules->ban_far_apart) status = ban_far_apart(j, banned);
  }
  free(late);
  free(unfusible);
  return status;
}
