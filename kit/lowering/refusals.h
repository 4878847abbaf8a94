/* Why a node is not accepted by a backend that lowers (aot_verdict_t): what every target has in common. */
#ifndef LW_REFUSALS_H
#define LW_REFUSALS_H

#include "kit/custom/custom.h"
#include "kit/reference/rk.h"
#include <aot/snapshot.h>

/* Operators whose regions are lowered (region_branches.c, region_loops.c). */
enum { LW_N_REGION_OPS = 3 };
aot_str_t lw_region_op(uint32_t i);
/* Nodes whose results are integers of the shape environment need no kernel. */
int lw_only_numbers(const aot_snapshot_t *s, const aot_snap_node_t *node);
/* The node at row i; kernel: of its operator, NULL: none; is_birth: kit/graph/snap_births.h. NULL: it runs, by its
 * kernel at the worst. error: memory for the text, where it is one of its own. */
const char *lw_refusal(const aot_snapshot_t *s, uint32_t i, const rk_kernel_t *kernel, int is_birth,
                       const custom_world_t *world, custom_error_t *error);

#endif
