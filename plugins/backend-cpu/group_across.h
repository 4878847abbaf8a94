/* Sums across the rows of a loop (LP_ACROSS). Each part of the rows leaves its own, in float64; then they are added in
 * the order of the parts, so that the result depends on the number of threads and on nothing else. */
#ifndef BC_GROUP_ACROSS_H
#define BC_GROUP_ACROSS_H

#include "kit/lowering/lower.h"

typedef struct bc_across {
  uint32_t store; /* access of the loop */
  lw_tensor_t type, memory;
  lw_ref_t out, parts;
  int64_t n, pitch; /* sums of a part, elements from one part to the next */
} bc_across_t;

/* Memory for the parts of the sums that become `result`; then, in the step that was added last, its references. */
aot_status_t bc_across_add(lw_build_t *b, uint32_t store, uint32_t n_parts, const lw_tensor_t *result,
                           bc_across_t *out);
void bc_across_use(lw_build_t *b, bc_across_t *a);
/* When it runs: where a part leaves its sums, and what becomes of those of the first n_parts. */
char *bc_across_part(const lw_frame_t *f, const bc_across_t *a, int32_t part);
void bc_across_join(const lw_frame_t *f, const bc_across_t *a, int32_t n_parts);

#endif
