/* What alone would have a parameter gathered again.
 *
 * A parameter that ranks share out is gathered for the forward, and again for the backward where that reads it. A
 * lookup in a table reads it in the forward alone: to compute the lookup again would bring the whole table over the
 * links again, for rows that are fewer. So what reads a gathered parameter is not computed again if no node of the
 * backward reads that parameter, and it is no larger. What is made of parameters alone (a cast, a transpose) counts as
 * the parameter. */
#include "mincut.h"

#include "kit/partition/tags.h"
#include <aot/inline.h>
#include <stdlib.h>

static int is_gather(const jg_joint_t *j, uint32_t n) {
  return pt_must_recompute(j, n) &&
         (aot_str_eq(j->op_name[n], aot_str("_c10d_functional.all_gather_into_tensor.default")) ||
          aot_str_eq(j->op_name[n], aot_str("aot.all_gather_as.default")));
}

/* The gather that alone, with parameters and constants, makes node n; JG_NONE: there is none, or something else
 * does. */
static uint32_t gather_of(const jg_joint_t *j, uint32_t n, const uint32_t *gather) {
  uint32_t found = JG_NONE;
  if (is_gather(j, n)) return n;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
    const uint32_t v = j->operands[k];
    if (gather[v] == JG_NONE && (j->def[v] != JG_NONE || j->input_kind[v] != JG_INPUT_STATIC)) return JG_NONE;
    if (gather[v] != JG_NONE) found = gather[v];
  }
  return found;
}

static uint64_t nbytes_of(const jg_joint_t *j, uint32_t n) {
  uint64_t nbytes = 0;
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) nbytes += j->nbytes[v];
  return nbytes;
}

/* gather: by value. is_needed: by gather. */
static int gathers_anew(const mc_ruled_graph_t *m, uint32_t n, const uint32_t *gather, const uint8_t *is_needed) {
  const jg_joint_t *j = m->j;
  if (!j->early[n] || !mc_may_ban(m, n) || gather_of(j, n, gather) != JG_NONE) return 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
    const uint32_t g = gather[j->operands[k]];
    if (g != JG_NONE && !is_needed[g] && nbytes_of(j, n) <= nbytes_of(j, g)) return 1;
  }
  return 0;
}

int mc_ban_gathers(const mc_ruled_graph_t *m, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  uint32_t *gather = malloc(((size_t)j->n_values + 1) * sizeof *gather);
  uint8_t *is_needed = calloc((size_t)j->n_nodes + 1, 1);
  const int status = gather && is_needed ? 0 : -2;
  for (uint32_t v = 0; v < j->n_values && status == 0; v++) gather[v] = JG_NONE;
  for (uint32_t n = 0; n < j->n_nodes && status == 0; n++) {
    const uint32_t g = j->late[n] ? JG_NONE : gather_of(j, n, gather);
    for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) gather[v] = g;
    for (uint32_t k = j->operand_begin[n]; j->late[n] && k < j->operand_begin[n + 1]; k++)
      if (gather[j->operands[k]] != JG_NONE) is_needed[gather[j->operands[k]]] = 1;
  }
  for (uint32_t n = 0; n < j->n_nodes && status == 0; n++)
    if (gathers_anew(m, n, gather, is_needed)) banned[n] = 1;
  free(gather);
  free(is_needed);
  return status;
}
