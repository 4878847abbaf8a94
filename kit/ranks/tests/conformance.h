/* What every communicator has to do, queried of one rank; all ranks of the group call it alike. */
#ifndef PLUGINS_COMMON_RANKS_CONFORMANCE_H
#define PLUGINS_COMMON_RANKS_CONFORMANCE_H

#include <aot/communicator.h>

/* NULL: all is well; else what is not. */
const char *rn_conformance(const aot_communicator_t *c, aot_group_t *g);
/* This rank alone says something else than the others: their answer has to be AOT_E_CONTRACT, or that one is gone. */
const char *rn_disagree(const aot_communicator_t *c, aot_group_t *g);

#endif
