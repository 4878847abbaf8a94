/* PyTorch's lists of operators, which its min-cut partitioner decides by.
 * Source: get_default_op_list (torch/_functorch/partitioners.py, 2.11), with the operators tagged `pointwise`
 * written out. */
#ifndef MC_OP_LISTS_H
#define MC_OP_LISTS_H

#include <aot/base.h>

#define OL_CHEAP 1u  /* may be computed again */
#define OL_VIEW 2u   /* costs nothing to compute again */
#define OL_RANDOM 4u /* fuses, but must not be drawn twice */
#define OL_HEAVY 8u  /* compute-intensive */
#define OL_JOINS 16u /* whatever it reads is fused into it */

/* OL_* of an operator by its full name, "aten.add.Tensor"; 0: in no list. O(log n). */
uint32_t mc_listed(aot_str_t name);

#endif
