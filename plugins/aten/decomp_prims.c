/* prims in ATen's operators. Most are at_dc_same; these take their arguments otherwise (torch/_prims/__init__.py,
 * *_aten). */
#include "at_formula.h"

#include <aot/inline.h>
#include <string.h>

static int is(const em_t *e, const char *name) {
  const char *own = at_name(e) + sizeof "prims." - 1;
  size_t n = strlen(name);
  return strncmp(own, name, n) == 0 && strcmp(own + n, ".default") == 0;
}

static const em_x_t contiguous = {AOT_ARG_MEMORY_FORMAT, 0, {AOT_MEMORY_CONTIGUOUS}};

/* ---- pointwise ---- */

/* Integers are divided towards zero. */
aot_status_t at_dc_prims_div(em_t *e, aot_value_t *out) {
  em_x_t a = IN("self"), b = IN("other");
  if (!at_is_integral(TYPE(a).dtype)) return at_give(e, DIV(a, b), out);
  return at_give(e, EM(e, "div.Tensor_mode", a, b, aot_arg_str(aot_str("trunc"))), out);
}

/* sign(x) |x|^(1/3) */
aot_status_t at_dc_cbrt(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(EM(e, "sign", x), EM(e, "pow.Tensor_Scalar", ABS(x), em_f(1.0 / 3.0))), out);
}

/* ---- views ---- */

/* Every view that only regroups dimensions, by the sizes of its result. */
aot_status_t at_dc_prims_view(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, EM(e, "view", IN("a"), em_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_broadcast_in_dim(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "broadcast_dimensions", &dims), at = 0;
  em_x_t x = IN("a");
  int32_t d;
  for (d = 0; d < t.rank; d++) {
    if (at < n && dims[at] == d) at++;
    else x = at_unsqueeze(e, x, d);
  }
  return at_give(e, EM(e, "expand", x, em_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_prims_slice(em_t *e, aot_value_t *out) {
  const int64_t *start, *limit, *step;
  uint32_t n = at_in_ints(e, "start_indices", &start), k = at_in_ints(e, "strides", &step), d;
  em_x_t x = IN("a");
  at_in_ints(e, "limit_indices", &limit);
  if (is(e, "slice_in_dim"))
    return at_give(e, EM(e, "slice.Tensor", x, IN("axis"), IN("start_index"), IN("limit_index"), IN("stride")), out);
  for (d = 0; d < n; d++) x = EM(e, "slice.Tensor", x, em_i(d), em_i(start[d]), em_i(limit[d]), em_i(k ? step[d] : 1));
  return at_give(e, n ? x : EM(e, "alias", x), out);
}

/* The base with `updated` at the elements that the view shows. */
aot_value_t at_vi_shown(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = at_result_type(e, index), from = at_type(e, em_v(base));
  int32_t d;
  for (d = 0; d < t.rank; d++)
    if (t.strides[d] == 0 && at_hint(at_infer(e), t.sizes[d]) > 1)
      em_fail(e, AOT_E_UNIMPLEMENTED, "clone the tensor before writing it",
              "a write through %s: several elements are one in memory", at_name(e));
  if (t.dtype != from.dtype) updated = em_value(e, EM(e, "view.dtype", em_v(updated), em_dtype(from.dtype)));
  return em_value(e, EM(e, "as_strided_scatter", em_v(base), em_v(updated), em_list(e, t.sizes, (uint32_t)t.rank),
                        em_list(e, t.strides, (uint32_t)t.rank), em_i(t.offset)));
}

/* ---- copies ---- */

aot_status_t at_dc_prims_reshape(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, EM(e, "view", EM(e, "clone", IN("a"), contiguous), em_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_convert_element_type(em_t *e, aot_value_t *out) {
  const aot_type_t from = TYPE(IN("a")), to = at_result_type(e, 0);
  if (is(e, "device_put") && from.device == to.device && from.device_index == to.device_index)
    return at_give(e, IN("a"), out);
  if (is(e, "device_put")) return at_give(e, EM(e, "_to_copy", IN("a"), em_none(), em_none(), IN("device")), out);
  return at_give(e, EM(e, "_to_copy", IN("a"), IN("dtype")), out);
}

aot_status_t at_dc_prims_fill(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "full_like", IN("self"), IN("value")), out);
}

aot_status_t at_fn_prims_copy_to(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t y = EM(e, "copy", IN("a"), IN("b"));
  out_results[0] = out_written[0] = VAL(y);
  return e->status;
}

/* ---- reductions ---- */

static em_x_t reduced_over(em_t *e, em_x_t x, const int64_t *dims, uint32_t n) {
  em_x_t list = em_list(e, dims, n);
  int32_t rank = TYPE(x).rank, d;
  uint32_t mask = at_dim_mask(at_infer(e), dims, n, rank);
  if (is(e, "sum")) return EM(e, "sum.dim_IntList", x, list);
  if (is(e, "amax")) return EM(e, "amax", x, list);
  if (is(e, "amin")) return EM(e, "amin", x, list);
  if (is(e, "var")) return EM(e, "var.correction", x, list, IN("correction"));
  for (d = rank - 1; d >= 0; d--) /* prod */
    if (mask >> d & 1) x = EM(e, "prod.dim_int", x, em_i(d));
  return x;
}

aot_status_t at_dc_prims_reduce(em_t *e, aot_value_t *out) {
  em_x_t x = IN("inp");
  int64_t all[AOT_MAX_RANK];
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dims", &dims);
  int32_t d, rank = TYPE(x).rank, to = at_result_type(e, 0).dtype;
  int computes_in_result = is(e, "sum") || is(e, "prod");
  if (!at_in_has(e, "dims")) {
    for (d = 0; d < rank; d++) all[d] = d;
    dims = all;
    n = (uint32_t)rank;
  }
  if (computes_in_result) x = em_cast(e, x, to);
  if (n > 0 || is(e, "var")) x = reduced_over(e, x, dims, n);
  return at_give(e, em_cast(e, x, to), out);
}

/* ---- new tensors ---- */

/* `like` gives the device. */
static em_x_t filled(em_t *e, em_x_t value) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t device = em_device(t.device, t.device_index);
  return EM(e, "full", em_list(e, t.sizes, (uint32_t)t.rank), value, em_dtype(t.dtype), em_none(), device);
}

aot_status_t at_dc_prims_full(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t value = at_in_has(e, "fill_value") ? IN("fill_value") : at_in_has(e, "s") ? IN("s") : em_i(0);
  return at_give(e, at_laid_out(e, filled(e, value), &t), out);
}

/* start, start + step, .. */
aot_status_t at_dc_iota(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t device = em_device(t.device, t.device_index);
  int64_t start = at_in_int(e, "start", 0), step = at_in_int(e, "step", 1);
  int64_t end = at_add(at_infer(e), start, at_mul(at_infer(e), t.sizes[0], step));
  return at_give(
      e, EM(e, "arange.start_step", em_i(start), em_i(end), em_i(step), em_dtype(t.dtype), em_none(), device), out);
}
