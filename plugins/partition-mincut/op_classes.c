/* What operators are to the rules: from their flags, or from PyTorch's lists. */
#include "mincut.h"
#include "op_lists.h"

#include "kit/base/splitmix.h"
#include "kit/partition/tags.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

#define NEVER (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_REGION)

static uint8_t class_by_flags(uint32_t flags) {
  const uint32_t cheap = AOT_OP_POINTWISE | AOT_OP_VIEW | AOT_OP_CREATION | AOT_OP_MOVEMENT | AOT_OP_REDUCTION;
  uint8_t c = 0;
  if ((flags & cheap) && !(flags & (AOT_OP_HEAVY | AOT_OP_RANDOM | NEVER))) c |= MC_CHEAP | MC_FUSES;
  if (flags & AOT_OP_RANDOM) c |= MC_FUSES;
  if (flags & AOT_OP_HEAVY) c |= MC_HEAVY;
  if (flags & AOT_OP_VIEW) c |= MC_VIEW;
  return c;
}

/* What the lists said of names lately: a program has thousands of nodes and some forty operators. */
#define N_KNOWN 256u
typedef struct known {
  struct {
    aot_str_t name;
    uint32_t listed;
  } at[N_KNOWN];
} known_t;

static uint32_t look_up(known_t *known, aot_str_t name) {
  const uint64_t slot = kit_mix_bytes(name.size, name.data, (size_t)name.size) % N_KNOWN;
  if (!known->at[slot].name.data || !aot_str_eq(known->at[slot].name, name)) {
    known->at[slot].name = name;
    known->at[slot].listed = mc_listed(name);
  }
  return known->at[slot].listed;
}

/* The lists speak of ATen and prims; other operators have their flags alone. */
static int is_pytorch(aot_str_t name) {
  static const aot_str_t heads[] = {AOT_STR_INIT("aten."), AOT_STR_INIT("prims."), AOT_STR_INIT("<built-in function ")};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
    if (name.size >= heads[i].size && memcmp(name.data, heads[i].data, (size_t)heads[i].size) == 0) return 1;
  return 0;
}

/* A view that PyTorch has rewritten before its partitioner runs (transpose) is in no list; its flag reports. */
static uint8_t class_by_lists(uint32_t listed, uint32_t flags) {
  uint8_t c = 0;
  if (listed & OL_CHEAP || flags & AOT_OP_VIEW) c |= MC_CHEAP | MC_FUSES;
  if (listed & OL_RANDOM) c |= MC_FUSES;
  if (listed & OL_HEAVY) c |= MC_HEAVY;
  if (listed & OL_VIEW || flags & AOT_OP_VIEW) c |= MC_VIEW;
  if (listed & OL_JOINS) c |= MC_JOINS;
  if (flags & (AOT_OP_RANDOM | NEVER)) c &= (uint8_t)~MC_CHEAP;
  return c;
}

void mc_classify(const jg_joint_t *j, const mc_rules_t *rules, uint8_t *out_classes) {
  known_t known = {0};
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    const int several = j->result_begin[n + 1] - j->result_begin[n] > 1;
    const int listed = rules->operators == MC_PYTORCH && is_pytorch(j->op_name[n]);
    out_classes[n] =
        listed ? class_by_lists(look_up(&known, j->op_name[n]), j->op_flags[n]) : class_by_flags(j->op_flags[n]);
    if (several && rules->operators == MC_PYTORCH)
      out_classes[n] |= MC_PARTS | (out_classes[n] & MC_VIEW ? MC_ALONE : 0);
  }
}

int mc_fuses_into(const mc_ruled_graph_t *m, uint32_t v, uint32_t u) {
  const uint32_t d = m->j->def[v];
  if (m->classes[u] & MC_JOINS) return 1;
  return d != JG_NONE && (m->classes[d] & (MC_FUSES | MC_PARTS)) && (m->classes[u] & MC_FUSES);
}

int mc_may_ban(const mc_ruled_graph_t *m, uint32_t n) {
  if (m->j->node_flags[n] & AOT_NODE_MUST_SAVE) return 1;
  return !(m->classes[n] & MC_VIEW) && !pt_must_recompute(m->j, n);
}
