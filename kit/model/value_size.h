/* Bytes of a snapshot's values, from their types. dims: values of the snapshot's expressions (sn_exprs_eval); what has
 * no value counts as 0, and sizes that cannot be as NC_MOST, so that sums of them stay far from wrapping around. */
#ifndef NC_VALUE_SIZE_H
#define NC_VALUE_SIZE_H

#include <aot/snapshot.h>
#include <stdint.h>

#define NC_MOST (UINT64_C(1) << 50)

typedef struct nc_shape {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
  uint64_t numel, width; /* width: bytes an element; all is 0 of what is no tensor */
} nc_shape_t;

nc_shape_t nc_shape(const aot_snapshot_t *s, uint32_t value, const int64_t *dims);
uint64_t nc_nbytes(const aot_snapshot_t *s, uint32_t value, const int64_t *dims); /* dense; of a number 8 */
/* From the begin of its storage, as the type is in it, to its last element. */
uint64_t nc_extent(const aot_snapshot_t *s, uint32_t value, const int64_t *dims);

#endif
