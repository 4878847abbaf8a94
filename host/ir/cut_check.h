/* A partitioner's choice comes from a plugin, or from a worker process that one may have damaged: its ids are checked
 * before anything follows them. */
#ifndef AOTH_CUT_CHECK_H
#define AOTH_CUT_CHECK_H

#include <aot/partition.h>
#include <ir/program.h>

/* NULL: the cut names values and nodes of the joint graph only; else what the unit did wrong, for a message that starts
 * with its name. O(program) */
const char *aoth_cut_wrong(aot_prog_t *p, const aot_cut_t *cut);

#endif
