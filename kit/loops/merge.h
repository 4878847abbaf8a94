/* Groups that become one although they do not be next to each other: whichever gain most first.
 *
 * fu_group goes through nodes in order, so what is between two groups in the schedule keeps them apart even if they
 * do not need each other: the sum over images of one channel's sum is between that sum and another over the same
 * tensor. Here groups are merged by what that saves: reads of what the other has, a store that nothing needs any more,
 * a step. Candidates (a group and one that reads what it makes, two that read the same) wait in a queue by gain; one
 * whose groups have changed meanwhile is weighed again. This is fusion as weighted merging of a graph's nodes (Kennedy
 * and McKinley 1993; Darte 2000 on its hardness, hence greedy).
 *
 * Nothing comes to depend on itself: two groups merge if no way leads from one to the other through a third. Groups
 * keep an order in which all run after what they need, and a merge moves what follows the earlier one after the later
 * one, as Pearce and Kelly (2006) keep a topological order of a graph that grows. Only groups at most FU_WINDOW places
 * apart merge: so all is O(nodes log nodes), and memory is not held for long. */
#ifndef FU_MERGE_H
#define FU_MERGE_H

#include "group.h"

enum { FU_WINDOW = 64, FU_NEAR = 24 };
enum { FU_FIRST = 1, FU_REMAT = 2 };

typedef struct fu_moves {
  const uint32_t *values;   /* by operand: what it reads, FU_NONE: nothing that is in memory */
  const double *move;       /* by value: of writing it, and as much of reading it */
  const uint8_t *is_wanted; /* by value: it is in memory anyway */
  uint32_t n_values;
  double step;               /* of one step */
  const uint8_t *is_ordered; /* by node that is no loop: these stay in the order that they are in; NULL: none is */
  /* by node: FU_FIRST, FU_REMAT or 0. What is computed again, so that it is not held until then, is not computed
   * together with what comes first, unless they are at most FU_NEAR places apart. NULL: nothing is */
  const uint8_t *turn;
} fu_moves_t;

/* group: as fu_group has left it. position[n]: of the group whose last node is n, its place in the order that groups
 * run in; of others undefined. 0, or -2 without memory. */
int fu_merge(const fu_graph_t *g, const fu_moves_t *m, uint32_t *group, uint32_t *position);

#endif
