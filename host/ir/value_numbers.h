/* Do a forward and a backward together compute what their joint graph did?
 *
 * Value numbering: values get one number when the same operator makes them, with the same arguments, of values of one number. Inputs
 * are numbered by role and index, a saved slot of the backward as what the forward saves in it, an exact copy as what it copies (slots may
 * hold dense copies). An operator that draws hidden random numbers or acts is equal to another call of itself only as the k-th with
 * these operands, so that one which is left out or runs twice is seen. Regions count by what they hold. Numbers are 128-bit hashes.
 * Source: J. Cocke and J. T. Schwartz, Programming Languages and their Compilers, 1970 (value numbers). */
#ifndef AOTH_VALUE_NUMBERS_H
#define AOTH_VALUE_NUMBERS_H

#include <ir/program.h>

typedef struct aoth_joint_record aoth_joint_record_t;

/* The ports of the joint graph and the numbers of its outputs. NULL: no memory (told). O(program). */
aoth_joint_record_t *aoth_joint_record_create(aot_prog_t *p, aot_graph_t joint);
void aoth_joint_record_destroy(aoth_joint_record_t *r);

/* The forward gives the joint's forward outputs in their order, the backward the rest, each of its number and type; neither has
 * inputs, but saved slots, that the joint had not. AOT_E_INVALID: told, with port and node. O(program). */
aot_status_t aoth_halves_check(aot_prog_t *p, const aoth_joint_record_t *r);

#endif
