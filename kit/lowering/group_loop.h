/* A group of nodes in loop IR, with the tensors that its accesses reach: what a target makes a function of. */
#ifndef LW_GROUP_LOOP_H
#define LW_GROUP_LOOP_H

#include "group_member.h"
#include "group_read.h"

typedef struct lw_group {
  const uint32_t *members;
  uint32_t n;
  const uint8_t *is_copy; /* by member: others make it, too, for those that read it from memory */
  lw_member_t *infos;     /* by member */
  uint32_t *first;        /* by member: its first instruction */
  const lw_tensor_t *space;
  lp_loop_t loop;
  lp_inst_t *insts;
  lp_access_t *accesses; /* loads and stores: LP_ARGS and its results a member at most */
  lw_tensor_t *tensors;  /* that they reach */
  uint32_t *rows;        /* value rows of the loads, LW_NONE for draws, reads and class numbers; of the stores */
  uint32_t *makers;  /* of the stores: the member; of class numbers (lw_target_t.classes): the one that requests it */
  lp_draw_t **draws; /* of the loads, NULL for memory */
  uint32_t *nodes;   /* by access: id of the node that has index tensors for it */
  lw_write_t write;  /* of a group whose only member writes by index tensors */
} lw_group_t;

/* Is it a sum across rows, of which every part of the loop has its own? */
int lw_is_across(const lw_group_t *g, uint32_t store);
/* Where a step finds access k, which it uses; nothing for a draw, and for what lw_is_across. */
lw_ref_t lw_use_access(lw_build_t *b, const lw_group_t *g, uint32_t k);
/* Memory for what the loop stores, and steps that make class numbers: before its step is added. */
aot_status_t lw_store_results(lw_build_t *b, lw_group_t *g);
/* AOT_OK: done; LW_SPLIT: its members do not fit one loop, each is a group of its own; LW_DECLINED: no function; run
 * its members one by one. Unless it is done, nothing has changed (transaction.h). members: node numbers in the graph;
 * is_copy: NULL: none is one */
aot_status_t lw_lower_group(lw_build_t *b, const uint32_t *members, const uint8_t *is_copy, uint32_t n_members);

#endif
