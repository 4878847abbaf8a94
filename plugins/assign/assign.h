/* Which backend runs which nodes, and the program divided so.
 *
 *     query every backend -> claims          who would run a node, regions included              claims.c
 *     colour: the first that claims it       what is not worth a submission, or what has to be moved for it, goes
 *                                            to the next                                         worth.c, wires.c
 *     parts of one colour, in order          convex.c, by operands, effects and memory that is written over
 *     a graph PART each, and a call of it    outline.c
 *
 * Linear in the program, times the number of backends. */
#ifndef AS_ASSIGN_H
#define AS_ASSIGN_H

#include <aot/host.h>

typedef struct as_options {
  uint32_t least_nodes;
  aot_str_t devices; /* by backend, between commas; empty: where the run does */
  uint64_t move_delay, move_rate;
  aot_str_t withheld; /* "NAME=OPERATOR,OPERATOR;NAME=..": what these backends are not given */
} as_options_t;

aot_status_t as_assign(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const as_options_t *options);

#endif
