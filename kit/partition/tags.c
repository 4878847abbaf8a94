#include "tags.h"

#include <aot/graph.h>

#define RECOMPUTE (AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE)

int pt_must_recompute(const jg_joint_t *j, uint32_t node) { return (j->node_flags[node] & RECOMPUTE) != 0; }

static void must_save(jg_joint_t *j, uint32_t node) {
  j->node_flags[node] = (j->node_flags[node] & ~(uint32_t)RECOMPUTE) | AOT_NODE_MUST_SAVE;
}

/* A user in a later region that is computed again. Users still have the user's tags: they follows the node. */
static int crosses_into_later_region(const jg_joint_t *j, const uint32_t *region, uint32_t node) {
  for (uint32_t k = j->user_begin[j->result_begin[node]]; k < j->user_begin[j->result_begin[node + 1]]; k++)
    if (pt_must_recompute(j, j->users[k]) && region[j->users[k]] > region[node]) return 1;
  return 0;
}

void pt_tags_resolve(jg_joint_t *j, const uint32_t *region, uint32_t *out_n_kept_random) {
  *out_n_kept_random = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    if (!pt_must_recompute(j, n)) continue;
    if (j->op_flags[n] & (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)) {
      must_save(j, n);
      ++*out_n_kept_random;
    } else if (region && region[n] && crosses_into_later_region(j, region, n)) {
      must_save(j, n);
    }
  }
}
