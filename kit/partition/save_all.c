#include "save_all.h"

#include "tags.h"
#include <aot/opset.h>
#include <stdlib.h>

/* One past the last node that a forward output needs. */
static uint32_t forward_end(const jg_joint_t *j) {
  uint32_t end = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (j->early[n]) end = n + 1;
  return end;
}

static int is_forward(const jg_joint_t *j, uint32_t n, uint32_t end) { return n < end && !j->late[n]; }

/* Values that the backward reads, as its nodes, as gradients, or as tagged nodes that it runs again. Against the order:
 * what reads a value follows it. */
static void mark_read(const jg_joint_t *j, uint32_t end, uint8_t *is_read) {
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE) is_read[j->gradients[i]] = 1;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    int runs = !is_forward(j, n, end);
    for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1] && pt_must_recompute(j, n); v++)
      runs |= is_read[v];
    for (uint32_t k = j->operand_begin[n]; runs && k < j->operand_begin[n + 1]; k++) is_read[j->operands[k]] = 1;
  }
}

/* Values without bytes are made again, unless what makes them may not run twice. */
static int is_worth_saving(const jg_joint_t *j, uint32_t v) {
  return j->nbytes[v] > 0 || (j->op_flags[j->def[v]] & (AOT_OP_EFFECT | AOT_OP_RANDOM | AOT_OP_COLLECTIVE));
}

int pt_save_all(const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved) {
  uint32_t end = forward_end(j);
  uint8_t *is_read = calloc((size_t)j->n_values + 1, 1);
  *out_n_saved = 0;
  if (!is_read) return -2;
  mark_read(j, end, is_read);
  for (uint32_t v = j->n_inputs; v < j->n_values; v++)
    if (is_read[v] && is_forward(j, j->def[v], end) && is_worth_saving(j, v) && !pt_must_recompute(j, j->def[v]))
      out_saved[(*out_n_saved)++] = v;
  free(is_read);
  return 0;
}
