/* What rewriting rules work with: the common emitter (kit/emit/emit.h), which is the only way from them to the host,
 * and dimension arithmetic and layouts as shape rules have them.
 *
 *     em_x_t y = EM(e, "mul.Tensor", em_in(e, "self"), em_f(2.0));
 *     out_values[0] = em_value(e, EM(e, "exp", y));
 *
 * New nodes precedes the rewritten one and carry its origin, flags and region tag. */
#ifndef AT_EMIT_H
#define AT_EMIT_H

#include "at_row.h"
#include "kit/emit/emit.h"
#include "shape.h"

/* What rules know besides the emitter. */
typedef struct at_site {
  const at_row_t *row; /* of the rewritten node */
  at_infer_t *infer;   /* with its environment */
} at_site_t;

static inline at_site_t *at_of(const em_t *e) { return e->self; }
static inline at_infer_t *at_infer(const em_t *e) { return at_of(e)->infer; }
static inline const char *at_name(const em_t *e) { return at_of(e)->row->name; }

/* ---- the rewritten node ---- */
int at_in_has(em_t *e, const char *name);
int64_t at_in_int(em_t *e, const char *name, int64_t otherwise);
uint32_t at_in_ints(em_t *e, const char *name, const int64_t **out); /* a number represents a list of one */
int at_in_str_is(em_t *e, const char *name, const char *text);
aot_type_t at_result_type(em_t *e, uint32_t i);

aot_type_t at_type(em_t *e, em_x_t x); /* of a value; a number has rank 0 and its default dtype */

/* ---- small combinations ---- */
/* A view, of a copy where the layout allows none; x itself when it has that shape. */
em_x_t at_reshaped(em_t *e, em_x_t x, const int64_t *sizes, int32_t rank);
em_x_t at_expanded(em_t *e, em_x_t x, const int64_t *sizes, int32_t rank); /* x itself when it has that shape */
/* x in the memory order of `like`, without its gaps; x itself when it lies so. Both have the same sizes. */
em_x_t at_laid_out(em_t *e, em_x_t x, const aot_type_t *like);
/* x itself when n is 0. Dimensions that are no neighbours are summed one after another: rows of a loop are
 * neighbours. */
em_x_t at_summed(em_t *e, em_x_t x, const int64_t *dims, uint32_t n, int keep);
int at_same_shape(em_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank);     /* certainly */
int at_may_have_shape(em_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank); /* not certainly another */

#endif
