/* Views: a kernel that copies what its geometry function describes, and what those functions share. */
#ifndef RK_VIEW_H
#define RK_VIEW_H

#include "rk_core.h"

/* rk_run of a view kernel: the view, copied. Where the geometry answers AOT_E_UNIMPLEMENTED (no strides express it:
 * reshape of a transposed tensor, a cast that changes the dtype) the elements are copied in their order. */
aot_status_t rk_run_view(rk_ctx_t *c);
#define RK_VIEW(name, geometry)                                                                                        \
  { "aten." name, rk_run_view, geometry, NULL, 0 }

/* ---- for geometry functions ---- */
aot_status_t rk_view_begin(rk_ctx_t *c, const rk_tensor_t **out_self); /* every result starts as self, argument 0 */
aot_status_t rk_view_expect(rk_ctx_t *c, int64_t n);                   /* so many results are declared */
/* out, which is self so far or another element of it: without the marked dimensions, one mark a dimension. */
void rk_view_drop(const rk_tensor_t *self, const uint8_t *marks, rk_tensor_t *out);
/* A window on the storage of self shows elements of self alone: what else is in that storage is not what lay there
 * in PyTorch. */
aot_status_t rk_view_shown(rk_ctx_t *c, const rk_tensor_t *self, const rk_tensor_t *window);

#endif
