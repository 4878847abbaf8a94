/* A group of nodes in loop IR, with the tensors that its accesses reach: what a target makes a function of. */
#ifndef BC_GROUP_LOOP_H
#define BC_GROUP_LOOP_H

#include "group_member.h"
#include "group_read.h"

typedef struct bc_group {
  const uint32_t *members;
  uint32_t n;
  bc_member_t *infos; /* by member */
  uint32_t *first;    /* by member: its first instruction */
  const bc_tensor_t *space;
  lp_loop_t loop;
  lp_inst_t *insts;
  lp_access_t *accesses; /* loads and stores: LP_ARGS and its results a member at most */
  bc_tensor_t *tensors;  /* that they reach */
  uint32_t *rows;        /* value rows of the loads, BC_NONE for draws, reads and class numbers; of the stores */
  uint32_t *makers;  /* of the stores: the member; of class numbers (bc_target_t.classes): the one that asks for it */
  lp_draw_t **draws; /* of the loads, NULL for memory */
  uint32_t *nodes;   /* by access: id of the node that has index tensors for it */
  bc_write_t write;  /* of a group whose only member writes by index tensors */
} bc_group_t;

/* Is it a sum across rows, of which every part of the loop has its own? */
int bc_is_across(const bc_group_t *g, uint32_t store);
/* Where a step finds access k, which it uses; nothing for a draw, and for what bc_is_across. */
bc_ref_t bc_use_access(bc_build_t *b, const bc_group_t *g, uint32_t k);
/* Memory for what the loop stores, and steps that make class numbers: before its step is added. */
aot_status_t bc_store_results(bc_build_t *b, bc_group_t *g);
/* AOT_OK: done; BC_APART: its members do not fit one loop, each is a group of its own; BC_DECLINED: no function; run
 * its members one by one. members: node numbers in the graph */
aot_status_t bc_lower_group(bc_build_t *b, const uint32_t *members, uint32_t n_members);

#endif
