/* Advanced indexing (index.Tensor, index_put): which element of self is at each place of the result. */
#ifndef RK_INDEXING_H
#define RK_INDEXING_H

#include "rk_core.h"

typedef struct rk_places {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK], numel;
  int64_t *at; /* numel row-major element numbers of self */
} rk_places_t;

/* The indices are the Tensor?[] argument `arg`; self has the given sizes. clamp: out-of-range indices are clamped
 * instead of refused (the _unsafe_masked forms). */
aot_status_t rk_places_of(rk_ctx_t *c, const rk_array_t *self, uint32_t arg, int clamp, rk_places_t *out);

/* The row number `value` of dimension dim (size n) of self, negative ones wrapped; an error names operator, index,
 * bound. */
aot_status_t rk_check_index(rk_ctx_t *c, int64_t value, int64_t n, int32_t dim, int wrap, int64_t *out);

#endif
