/* Every rewriting rule, by the name that ops.def gives it: decompositions (at_dc_), functional forms (at_fn_), inverses of
 * views (at_vi_). */
#ifndef AT_REWRITES_H
#define AT_REWRITES_H

#include "at_emit.h"

at_functional_fn at_functional_twin; /* of rows that name their twin */
at_functional_fn at_fn_batch_norm;
at_functional_fn at_fn_copy;
at_functional_fn at_fn_fill;
at_functional_fn at_fn_zero;

at_inverse_fn at_vi_alias;
at_inverse_fn at_vi_as_strided;
at_inverse_fn at_vi_diagonal;
at_inverse_fn at_vi_expand;
at_inverse_fn at_vi_maybe_copy;
at_inverse_fn at_vi_movedim;
at_inverse_fn at_vi_mT;
at_inverse_fn at_vi_narrow;
at_inverse_fn at_vi_numpy_T;
at_inverse_fn at_vi_permute;
at_inverse_fn at_vi_reshape;
at_inverse_fn at_vi_select;
at_inverse_fn at_vi_slice;
at_inverse_fn at_vi_split;
at_inverse_fn at_vi_squeeze;
at_inverse_fn at_vi_t;
at_inverse_fn at_vi_transpose;
at_inverse_fn at_vi_unbind;
at_inverse_fn at_vi_unfold;
at_inverse_fn at_vi_view_dtype;

#endif
