/* Complex numbers: decompositions of their operators, inverses of their views, and which decompositions hold for
 * them. */
#include "at_formula.h"
#include "lazy_bits.h"

#include <string.h>

aot_status_t at_dc_polar(em_t *e, aot_value_t *out) {
  em_x_t size = IN("abs"), angle = IN("angle");
  return at_give(e, EM(e, "complex", MUL(size, EM(e, "cos", angle)), MUL(size, EM(e, "sin", angle))), out);
}

aot_status_t at_dc_conj(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  return at_give(e, aot_dtype_is_complex(TYPE(x).dtype) ? EM(e, "_conj", x) : x, out);
}

aot_status_t at_dc_resolved(em_t *e, aot_value_t *out) {
  at_infer(e)->args = e->info.args;
  at_infer(e)->n_args = e->info.n_args;
  return at_give(e, at_is_unresolved(at_infer(e)) ? EM(e, "clone", IN("self")) : IN("self"), out);
}

/* ---- inverses of views ---- */

aot_value_t at_vi_as_other(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return em_value(e, EM(e, strstr(at_name(e), "as_real") ? "view_as_complex" : "view_as_real", em_v(updated)));
}

aot_value_t at_vi_part(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  em_x_t pairs;
  (void)index;
  if (!aot_dtype_is_complex(TYPE(em_v(base)).dtype)) return updated;
  pairs = EM(e, "select_scatter", EM(e, "view_as_real", em_v(base)), em_v(updated), em_i(-1),
             em_i(strstr(at_name(e), "imag") ? 1 : 0));
  return em_value(e, EM(e, "view_as_complex", pairs));
}

aot_value_t at_vi_conj(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return aot_dtype_is_complex(TYPE(em_v(base)).dtype) ? em_value(e, EM(e, "_conj_physical", em_v(updated))) : updated;
}

aot_value_t at_vi_neg(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return em_value(e, NEG(em_v(updated)));
}

/* ---- which decompositions hold for complex numbers ---- */

/* Most decompositions are made for real numbers: a square represents an absolute one, a transpose for an adjoint. These
 * hold for complex numbers too. */
int at_decomposes_complex(const at_row_t *row) {
  /* clang-format off */
  static at_decompose_fn *const hold[] = {
      at_dc_addbmm, at_dc_addcmul, at_dc_addmm, at_dc_addmv, at_dc_addr, at_dc_atleast, at_dc_atleast_each,
      at_dc_axis_split,
      at_dc_baddbmm, at_dc_broadcast_in_dim, at_dc_broadcast_tensors, at_dc_conj, at_dc_conj_physical,
      at_dc_constant_pad, at_dc_contiguous, at_dc_conv,
      at_dc_convert_element_type, at_dc_convolution, at_dc_copy, at_dc_diag, at_dc_diagflat, at_dc_diagonal_backward,
      at_dc_diff,
      at_dc_dot, at_dc_each, at_dc_einsum, at_dc_expand, at_dc_fft, at_dc_fft_shift, at_dc_fill, at_dc_identity,
      at_dc_index_dim,
      at_dc_index_select, at_dc_istft, at_dc_kron, at_dc_lerp, at_dc_lift_fresh_copy, at_dc_linalg_diagonal,
      at_dc_linear,
      at_dc_masked_fill, at_dc_matmul, at_dc_mean, at_dc_meshgrid, at_dc_mirror, at_dc_movedim, at_dc_multi_dot,
      at_dc_mv,
      at_dc_narrow, at_dc_numpy_T, at_dc_outer, at_dc_pad, at_dc_pad_circular, at_dc_pad_enum, at_dc_polar,
      at_dc_prims_reshape,
      at_dc_prims_slice, at_dc_prims_view, at_dc_renamed, at_dc_repeat, at_dc_repeat_interleave, at_dc_reshape,
      at_dc_resolved,
      at_dc_roll, at_dc_rsub, at_dc_same, at_dc_select_backward, at_dc_select_scatter, at_dc_slice_backward,
      at_dc_split, at_dc_square,
      at_dc_stack, at_dc_stack_deep, at_dc_stack_rows, at_dc_stft, at_dc_sum_to_size, at_dc_take_along_dim,
      at_dc_tensordot,
      at_dc_to, at_dc_transpose, at_dc_trapezoid, at_dc_tri, at_dc_unbind, at_dc_view_copy, at_dc_where,
      at_dc_with_effects,
      at_dc_with_history, at_dc_invoke_subgraph, at_dc_full, at_dc_l1_loss, at_dc_reduce_all,
  };
  /* clang-format on */
  size_t i;
  for (i = 0; i < sizeof hold / sizeof hold[0]; i++)
    if (row->decompose == hold[i]) return 1;
  return 0;
}
