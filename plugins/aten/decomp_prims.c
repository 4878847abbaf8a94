/* prims in ATen's operators. Most are at_dc_same; these take their arguments otherwise (torch/_prims/__init__.py, *_aten). */
#include "at_formula.h"

#include <aot/inline.h>
#include <string.h>

static int is(const at_emit_t *e, const char *name) {
  const char *own = e->row->name + sizeof "prims." - 1;
  size_t n = strlen(name);
  return strncmp(own, name, n) == 0 && strcmp(own + n, ".default") == 0;
}

static const at_x contiguous = {AOT_ARG_MEMORY_FORMAT, 0, {AOT_MEMORY_CONTIGUOUS}};

/* ---- pointwise ---- */

/* Integers are divided towards zero. */
aot_status_t at_dc_prims_div(at_emit_t *e, aot_value_t *out) {
  at_x a = IN("self"), b = IN("other");
  if (!at_is_integral(TYPE(a).dtype)) return at_give(e, DIV(a, b), out);
  return at_give(e, AT(e, "div.Tensor_mode", a, b, aot_arg_str(aot_str("trunc"))), out);
}

/* sign(x) |x|^(1/3) */
aot_status_t at_dc_cbrt(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(AT(e, "sign", x), AT(e, "pow.Tensor_Scalar", ABS(x), at_f(1.0 / 3.0))), out);
}

/* ---- views ---- */

/* Every view that only regroups dimensions, by the sizes of its result. */
aot_status_t at_dc_prims_view(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, AT(e, "view", IN("a"), at_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_broadcast_in_dim(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "broadcast_dimensions", &dims), at = 0;
  at_x x = IN("a");
  int32_t d;
  for (d = 0; d < t.rank; d++) {
    if (at < n && dims[at] == d) at++;
    else x = at_unsqueeze(e, x, d);
  }
  return at_give(e, AT(e, "expand", x, at_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_prims_slice(at_emit_t *e, aot_value_t *out) {
  const int64_t *start, *limit, *step;
  uint32_t n = at_in_ints(e, "start_indices", &start), k = at_in_ints(e, "strides", &step), d;
  at_x x = IN("a");
  at_in_ints(e, "limit_indices", &limit);
  if (is(e, "slice_in_dim"))
    return at_give(e, AT(e, "slice.Tensor", x, IN("axis"), IN("start_index"), IN("limit_index"), IN("stride")), out);
  for (d = 0; d < n; d++) x = AT(e, "slice.Tensor", x, at_i(d), at_i(start[d]), at_i(limit[d]), at_i(k ? step[d] : 1));
  return at_give(e, n ? x : AT(e, "alias", x), out);
}

/* The base with `updated` at the elements that the view shows. */
aot_value_t at_vi_shown(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = at_result_type(e, index), from = at_type(e, at_v(base));
  int32_t d;
  for (d = 0; d < t.rank; d++)
    if (t.strides[d] == 0 && at_hint(e->infer, t.sizes[d]) > 1)
      at_emit_fail(e, "clone the tensor before writing it", "a write through %s: several elements are one in memory",
                   e->row->name);
  if (t.dtype != from.dtype) updated = at_value(e, AT(e, "view.dtype", at_v(updated), at_dtype_of(from.dtype)));
  return at_value(e, AT(e, "as_strided_scatter", at_v(base), at_v(updated), at_list(e, t.sizes, (uint32_t)t.rank),
                        at_list(e, t.strides, (uint32_t)t.rank), at_i(t.offset)));
}

/* ---- copies ---- */

aot_status_t at_dc_prims_reshape(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, AT(e, "view", AT(e, "clone", IN("a"), contiguous), at_list(e, t.sizes, (uint32_t)t.rank)), out);
}

aot_status_t at_dc_convert_element_type(at_emit_t *e, aot_value_t *out) {
  const aot_type_t from = TYPE(IN("a")), to = at_result_type(e, 0);
  if (is(e, "device_put") && from.device == to.device && from.device_index == to.device_index) return at_give(e, IN("a"), out);
  if (is(e, "device_put")) return at_give(e, AT(e, "_to_copy", IN("a"), at_none(), at_none(), IN("device")), out);
  return at_give(e, AT(e, "_to_copy", IN("a"), IN("dtype")), out);
}

aot_status_t at_dc_prims_fill(at_emit_t *e, aot_value_t *out) {
  return at_give(e, AT(e, "full_like", IN("self"), IN("value")), out);
}

aot_status_t at_fn_prims_copy_to(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  at_x y = AT(e, "copy", IN("a"), IN("b"));
  out_results[0] = out_written[0] = VAL(y);
  return e->status;
}

/* ---- reductions ---- */

static at_x reduced_over(at_emit_t *e, at_x x, const int64_t *dims, uint32_t n) {
  at_x list = at_list(e, dims, n);
  int32_t rank = TYPE(x).rank, d;
  uint32_t mask = at_dim_mask(e->infer, dims, n, rank);
  if (is(e, "sum")) return AT(e, "sum.dim_IntList", x, list);
  if (is(e, "amax")) return AT(e, "amax", x, list);
  if (is(e, "amin")) return AT(e, "amin", x, list);
  if (is(e, "var")) return AT(e, "var.correction", x, list, IN("correction"));
  for (d = rank - 1; d >= 0; d--) /* prod */
    if (mask >> d & 1) x = AT(e, "prod.dim_int", x, at_i(d));
  return x;
}

aot_status_t at_dc_prims_reduce(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("inp");
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
  if (computes_in_result) x = at_cast(e, x, to);
  if (n > 0 || is(e, "var")) x = reduced_over(e, x, dims, n);
  return at_give(e, at_cast(e, x, to), out);
}

/* ---- new tensors ---- */

/* `like` gives the device. */
static at_x filled(at_emit_t *e, at_x value) {
  aot_type_t t = at_result_type(e, 0);
  at_x device = aot_arg_int_kind(AOT_ARG_DEVICE, t.device + 256 * ((int64_t)t.device_index + 1));
  return AT(e, "full", at_list(e, t.sizes, (uint32_t)t.rank), value, at_dtype_of(t.dtype), at_none(), device);
}

aot_status_t at_dc_prims_full(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  at_x value = at_in_has(e, "fill_value") ? IN("fill_value") : at_in_has(e, "s") ? IN("s") : at_i(0);
  return at_give(e, at_laid_out(e, filled(e, value), &t), out);
}

/* start, start + step, .. */
aot_status_t at_dc_iota(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  at_x device = aot_arg_int_kind(AOT_ARG_DEVICE, t.device + 256 * ((int64_t)t.device_index + 1));
  int64_t start = at_in_int(e, "start", 0), step = at_in_int(e, "step", 1);
  int64_t end = at_add(e->infer, start, at_mul(e->infer, t.sizes[0], step));
  return at_give(e, AT(e, "arange.start_step", at_i(start), at_i(end), at_i(step), at_dtype_of(t.dtype), at_none(), device),
                 out);
}
