/* What groups compute again instead of reading it.
 *
 * A value that a group makes and others read is written once and read by each of them. Where it is cheap to compute
 * from what these read anyway, or from what is smaller (a cast from f16 or bf16, a mean removed, a mask), each group
 * that reads it may have copies of its nodes. If nothing else reads it, it is not in memory at all.
 *
 * Values are looked at from the last to the first. What a reader has to compute, and what it reads for that, is found
 * by dynamic programming over the few nodes before the value (MOST_COPIES): each of their operands is there, or is
 * read, or is computed, too, whichever costs least. The value is copied into all its readers if that costs less than
 * writing and reading it, else into those where it costs less than reading it. So linear in values and readers; as
 * copies read only what precedes the value, nothing comes to depend on itself. It is the trade of
 * rematerialization (Briggs, Cooper, Torczon 1992) between loops and memory, as compilers of tensor programs have it
 * when they duplicate producers. */
#ifndef FU_RECOMPUTE_H
#define FU_RECOMPUTE_H

#include <stdint.h>

typedef struct fu_values {
  uint32_t n_nodes, n_values;
  const uint32_t *operand_begin; /* n_nodes + 1, into operands; nodes are in order */
  const uint32_t *operands;      /* values, FU_NONE: nothing that is in memory */
  const uint8_t *apart;          /* by operand: it must be in memory for this node */
  const uint32_t *maker;         /* by value: node, FU_NONE: an input */
  const uint32_t *group;         /* by node: the last one of its group; FU_NONE: it is no loop */
  const uint32_t *position;      /* by last node: the place in the order that groups run in */
  const uint32_t *space;         /* by node: what it has an element for */
  const uint32_t *group_space;   /* by last node: the same of the group's loop */
  const double *work;            /* by node: of computing it; below 0: it is not to be computed twice */
  const double *move;            /* by value: of writing it, and as much of reading it */
  const uint8_t *is_wanted;      /* by value: something that is no loop reads it */
  const uint32_t *lasts_until;   /* by value: the position from which on its memory may hold something else */
  uint32_t max_nodes, max_reads; /* of a group */
} fu_values_t;

typedef struct fu_copy {
  uint32_t group, node; /* the group, by its last node, computes this node for itself */
} fu_copy_t;

/* Sorted by group, then by node; the caller frees *out. 0, or -2 without memory. */
int fu_recompute(const fu_values_t *v, fu_copy_t **out, uint32_t *out_n);

#endif
