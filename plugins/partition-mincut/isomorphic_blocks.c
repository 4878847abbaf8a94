#include "isomorphic_blocks.h"

#include "kit/base/splitmix.h"
#include "kit/partition/tags.h"
#include <stdlib.h>
#include <string.h>

static uint64_t number_of_node(const mc_model_t *m, uint32_t n) {
  const jg_joint_t *j = m->j;
  uint64_t h = kit_mix64(j->op_flags[n], (uint64_t)m->cost[n]);
  h = kit_mix64(h, (uint64_t)j->late[n] << 1 | j->early[n]);
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) h = kit_mix64(h, j->nbytes[v]);
  return h;
}

/* Operands in order; readers in any. */
static void one_round(const mc_model_t *m, const uint64_t *old, uint64_t *now) {
  const jg_joint_t *j = m->j;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    uint64_t h = old[n], readers = 0;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
      uint32_t v = j->operands[k], d = j->def[v];
      h = kit_mix64(h, d == JG_NONE ? kit_mix64(j->input_kind[v], j->nbytes[v])
                                    : kit_mix64(old[d], v - j->result_begin[d]));
    }
    for (uint32_t k = j->user_begin[j->result_begin[n]]; k < j->user_begin[j->result_begin[n + 1]]; k++)
      readers += kit_mix64(old[j->users[k]], 1);
    now[n] = kit_mix64(h, readers);
  }
}

typedef struct member {
  uint64_t number, nbytes; /* nbytes: of the class, once it is known */
  uint32_t value;
} member_t;

static int by_number(const void *pa, const void *pb) {
  const member_t *a = pa, *b = pb;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return (a->value > b->value) - (a->value < b->value);
}

static int by_nbytes(const void *pa, const void *pb) {
  const member_t *a = pa, *b = pb;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  return by_number(pa, pb);
}

static uint32_t list_members(const mc_model_t *m, const uint64_t *number, member_t *out) {
  const jg_joint_t *j = m->j;
  uint32_t n = 0;
  for (uint32_t v = j->n_inputs; v < j->n_values; v++) {
    uint32_t d = j->def[v];
    if (j->early[d] && !m->is_fixed[d] && !pt_must_recompute(j, d) && j->nbytes[v] && m->graph->base[v] == v)
      out[n++] = (member_t){kit_mix64(number[d], v - j->result_begin[d]), 0, v};
  }
  qsort(out, n, sizeof *out, by_number);
  for (uint32_t i = 0, end; i < n; i = end) {
    uint64_t sum = 0;
    for (end = i; end < n && out[end].number == out[i].number; end++) sum += j->nbytes[out[end].value];
    for (uint32_t k = i; k < end; k++) out[k].nbytes = sum;
  }
  qsort(out, n, sizeof *out, by_nbytes);
  return n;
}

static void fill(mc_layers_t *l, const member_t *members, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (i == 0 || members[i].number != members[i - 1].number) l->begin[l->n_classes++] = i;
    l->members[i] = members[i].value;
  }
  l->begin[l->n_classes] = n;
}

int mc_layers_init(mc_layers_t *l, const mc_model_t *m) {
  const jg_joint_t *j = m->j;
  uint64_t *number = malloc(((size_t)j->n_nodes + 1) * 8), *next = malloc(((size_t)j->n_nodes + 1) * 8);
  member_t *members = malloc(((size_t)j->n_values + 1) * sizeof *members);
  memset(l, 0, sizeof *l);
  l->begin = calloc((size_t)j->n_values + 2, 4);
  l->members = calloc((size_t)j->n_values + 1, 4);
  int status = number && next && members && l->begin && l->members ? 0 : -2;
  for (uint32_t n = 0; status == 0 && n < j->n_nodes; n++) number[n] = number_of_node(m, n);
  for (int round = 0; status == 0 && round < MC_LAYER_ROUNDS; round++) {
    one_round(m, number, next);
    uint64_t *swap = number;
    number = next;
    next = swap;
  }
  if (status == 0) fill(l, members, list_members(m, number, members));
  free(number);
  free(next);
  free(members);
  return status;
}

void mc_layers_deinit(mc_layers_t *l) {
  free(l->begin);
  free(l->members);
  memset(l, 0, sizeof *l);
}
