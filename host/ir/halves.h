/* Do a forward and a backward together compute what their joint graph did? Values are compared by their numbers
 * (value_numbers.h). */
#ifndef AOTH_HALVES_H
#define AOTH_HALVES_H

#include <ir/value_numbers.h>

typedef struct aoth_joint_record aoth_joint_record_t;

/* The ports of the joint graph and the numbers of its outputs. NULL: no memory (reported). O(program). */
aoth_joint_record_t *aoth_joint_record_create(aot_prog_t *p, aot_graph_t joint);
void aoth_joint_record_destroy(aoth_joint_record_t *r);

/* The forward gives the joint's forward outputs in their order, the backward the rest, each of its number and type;
 * neither has inputs, but saved slots, that the joint had not. AOT_E_INVALID: reported, with port and node.
 * O(program). */
aot_status_t aoth_halves_check(aot_prog_t *p, const aoth_joint_record_t *r);

/* The values of both, the backward's slots as what the forward saves, which of_slot has then. 0: no memory. */
int aoth_halves_number(aoth_numbering_t *n, aot_graph_t forward, aot_graph_t backward);

#endif
