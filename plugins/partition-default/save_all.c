#include "save_all.h"

#include <aot/opset.h>

/* One past the last node that a forward output needs. */
static uint32_t forward_end(const pt_joint_t *j) {
  uint32_t end = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (j->early[n]) end = n + 1;
  return end;
}

static int is_forward(const pt_joint_t *j, uint32_t n, uint32_t end) { return n < end && !j->late[n]; }

static int backward_reads(const pt_joint_t *j, uint32_t v, uint32_t end) {
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (!is_forward(j, j->users[k], end)) return 1;
  return 0;
}

/* Values without bytes are made again, unless that would have an effect. */
static int is_worth_saving(const pt_joint_t *j, uint32_t v) {
  return j->nbytes[v] > 0 || (j->op_flags[j->def[v]] & AOT_OP_EFFECT);
}

uint32_t pd_save_all(const pt_joint_t *j, uint32_t *out_saved) {
  uint32_t n_saved = 0, end = forward_end(j);
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (is_forward(j, j->def[v], end) && is_worth_saving(j, v) && backward_reads(j, v, end)) out_saved[n_saved++] = v;
  for (uint32_t i = 0; i < j->n_gradients; i++) {
    uint32_t v = j->gradients[i];
    if (v != PT_NONE && j->def[v] != PT_NONE && is_forward(j, j->def[v], end) && !backward_reads(j, v, end))
      out_saved[n_saved++] = v;
  }
  return n_saved;
}
