/* Grouping of pointwise nodes, and of such that reduce rows, into loops that are run as one.
 *
 * Nodes come in schedule order. A fusible node joins the groups of its producers when they iterate over the same space,
 * and all of them are still open. A group closes when a node outside reads one of its results: whatever joined later
 * would have to run before that reader and after it. So a group can be run at the position of its last member:
 * everything it reads is ready there, and nothing outside has read it yet. One sweep with a union-find forest:
 * O((nodes + operands) * alpha).
 *
 * A node joins the group that read the same tensor last, too, when that is open yet: one read serves both, though
 * neither needs the other.
 *
 * Nodes that reduce rows of their space share a loop when their rows are the same; what has one element a row of a
 * group may join it, too. */
#ifndef FU_GROUP_H
#define FU_GROUP_H

#include <stdint.h>

#define FU_NONE UINT32_MAX
#define FU_NO_ROWS UINT32_MAX
/* Operands from outside that a group may read. A sum of a hundred terms is a loop for every sixteen: more streams than
 * that gain nothing at run time, each length would be a loop of its own, and compilers take far more than twice as
 * long for twice as many. */
#define FU_MAX_READS 16u

typedef struct fu_graph {
  uint32_t n_nodes;
  const uint32_t *operand_begin; /* n_nodes + 1, into producers */
  const uint32_t *producers;     /* node that makes each operand, FU_NONE: an input */
  const uint32_t *space;         /* by node: number of its iteration space; FU_NONE: not fusible */
  uint32_t max_nodes;            /* of one group */
  /* by node: a number for the rows of its space that it reduces; 0: none, FU_NO_ROWS: nor may its group. NULL: nothing
   * does */
  const uint32_t *rows;
  const uint32_t *row_space; /* by node with rows: the space that has an element for each */
  /* by operand: it is read elsewhere than at the element at hand, so it must be in memory: its producer is no member of
   * the same group. NULL: none is */
  const uint8_t *apart;
  /* by operand: number of the tensor, where one read fewer is worth a common loop; FU_NONE: it is not. NULL: none is */
  const uint32_t *tensors;
  uint32_t n_tensors;
  const uint8_t *is_small; /* by operand: it is in a cache, and is none of FU_MAX_READS. NULL: none is */
} fu_graph_t;

/* out_group[n]: the last node of n's group (n itself when alone or not fusible). 0, or -2 without memory. */
int fu_group(const fu_graph_t *g, uint32_t *out_group);

#endif
