/* Fourier transforms in terms of _fft_r2c, _fft_c2r and _fft_c2c; frames of a signal as windows of a view. */
#include "at_formula.h"
#include "fourier.h"

#include <string.h>

enum { NOT_SCALED, BY_ROOT_N, BY_N }; /* normalization, as the core transforms count it */

/* The signal with n points along dim: cut, or zeros after it. */
static em_x_t resized(em_t *e, em_x_t x, int32_t dim, int64_t n) {
  aot_type_t t = TYPE(x);
  int64_t have = t.sizes[dim], pad[2 * AOT_MAX_RANK] = {0};
  if (at_same(at_infer(e), have, n)) return x;
  if (at_hint(at_infer(e), n) < at_hint(at_infer(e), have))
    return EM(e, "slice.Tensor", x, em_i(dim), em_i(0), em_i(n), em_i(1));
  pad[2 * (t.rank - 1 - dim) + 1] = at_sub(at_infer(e), n, have);
  return EM(e, "constant_pad_nd", x, em_list(e, pad, (uint32_t)(2 * (t.rank - dim))), em_i(0));
}

static em_x_t floating(em_t *e, em_x_t x) { return at_is_integral(TYPE(x).dtype) ? em_cast(e, x, AOT_F32) : x; }

static em_x_t as_complex(em_t *e, em_x_t x) {
  int32_t dtype = TYPE(x).dtype;
  return aot_dtype_is_complex(dtype) ? x : em_cast(e, x, dtype == AOT_F64 ? AOT_C128 : AOT_C64);
}

static em_x_t conjugate(em_t *e, em_x_t x) {
  return aot_dtype_is_complex(TYPE(x).dtype) ? EM(e, "conj_physical", x) : x;
}

static em_x_t list_of(em_t *e, const int32_t *dims, uint32_t n) {
  int64_t list[AOT_MAX_RANK];
  uint32_t i;
  for (i = 0; i < n; i++) list[i] = dims[i];
  return em_list(e, list, n);
}

static em_x_t c2c(em_t *e, em_x_t x, em_x_t dims, int64_t scale, int backward) {
  return dims.n ? EM(e, "_fft_c2c", as_complex(e, x), dims, em_i(scale), em_b(!backward)) : as_complex(e, x);
}

/* "backward", the default, divides the inverse by n; "forward" the other; "ortho" both by sqrt(n) */
static int64_t scale_of(em_t *e, int backward) {
  if (at_in_str_is(e, "norm", "ortho")) return BY_ROOT_N;
  if (at_in_str_is(e, "norm", "forward")) return backward ? NOT_SCALED : BY_N;
  return backward ? BY_N : NOT_SCALED;
}

aot_status_t at_dc_fft(em_t *e, aot_value_t *out) {
  em_x_t x = floating(e, IN("self")), n = IN("n"), s = IN("s"), dim = IN("dim"), all, others, last;
  aot_type_t t = TYPE(x);
  at_fft_plan_t p = at_fft_plan(at_infer(e), &t, &n, &s, &dim);
  int64_t scale = scale_of(e, p.kind ? p.kind->backward : 0), points, half;
  uint32_t i;
  if (at_infer(e)->status != AOT_OK || p.n == 0)
    return at_infer(e)->status != AOT_OK ? at_infer(e)->status : at_give(e, as_complex(e, x), out);
  points = p.points[p.n - 1];
  half = at_add(at_infer(e), at_floordiv(at_infer(e), points, 2), 1);
  for (i = 0; i < p.n; i++) x = resized(e, x, p.dims[i], p.kind->half_in && i + 1 == p.n ? half : p.points[i]);
  all = list_of(e, p.dims, p.n);
  others = list_of(e, p.dims, p.n - 1);
  last = list_of(e, p.dims + p.n - 1, 1);
  if (p.kind->half_in && p.kind->hermitian) /* backward of the conjugate is forward */
    x = EM(e, "_fft_c2r", conjugate(e, c2c(e, x, others, scale, 0)), last, em_i(scale), em_i(points));
  else if (p.kind->half_in) x = EM(e, "_fft_c2r", as_complex(e, x), all, em_i(scale), em_i(points));
  else if (p.kind->half_out && p.kind->hermitian)
    x = c2c(e, conjugate(e, EM(e, "_fft_r2c", x, last, em_i(scale), em_b(1))), others, scale, 1);
  else if (p.kind->half_out) x = EM(e, "_fft_r2c", x, all, em_i(scale), em_b(1));
  else x = c2c(e, x, all, scale, p.kind->backward);
  return at_give(e, x, out);
}

/* fftshift rolls by half a dimension, rounded down; ifftshift back. */
aot_status_t at_dc_fft_shift(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  const int64_t *given;
  int64_t dims[AOT_MAX_RANK], shifts[AOT_MAX_RANK];
  uint32_t n = at_in_has(e, "dim") ? at_in_ints(e, "dim", &given) : (uint32_t)t.rank, i;
  for (i = 0; i < n && i < AOT_MAX_RANK; i++) {
    dims[i] = at_in_has(e, "dim") ? at_wrap(at_infer(e), given[i], t.rank) : (int32_t)i;
    shifts[i] =
        at_floordiv(at_infer(e), at_add(at_infer(e), t.sizes[dims[i]], strstr(at_name(e), "ifftshift") ? 1 : 0), 2);
  }
  if (n == 0) return at_give(e, EM(e, "clone", IN("self")), out);
  return at_give(e, EM(e, "roll", IN("self"), em_list(e, shifts, n), em_list(e, dims, n)), out);
}

/* k / (n d) for k = 0, 1, .. and the negative ones after them */
aot_status_t at_dc_fft_frequencies(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  int64_t n = at_in_int(e, "n", 1), positive = strstr(at_name(e), "rfftfreq") ? n / 2 + 1 : (n + 1) / 2;
  em_x_t dtype = em_dtype(t.dtype), device = IN("device"), k, negative;
  k = EM(e, "arange.start_step", em_i(0), em_i(positive), em_i(1), dtype, em_none(), device);
  if (!strstr(at_name(e), "rfftfreq") && n > 1) {
    negative = EM(e, "arange.start_step", em_i(-(n / 2)), em_i(0), em_i(1), dtype, em_none(), device);
    if (e->status != AOT_OK) return e->status;
    k = EM(e, "cat", aot_arg_values((const uint32_t[]){VAL(k).id, VAL(negative).id}, 2), em_i(0));
  }
  return at_give(e, EM(e, "mul.Scalar", k, em_f(1.0 / ((double)n * em_in_float(e, "d", 1)))), out);
}

/* ---- short-time transforms ---- */

/* The window in the middle of n_fft points, zeros around it; None: ones. */
static em_x_t window_of(em_t *e, int64_t n_fft, em_x_t like, int32_t dtype) {
  int64_t size = at_in_int(e, "win_length", n_fft), pad[2];
  em_x_t w = IN("window");
  if (em_is_none(w) && size == n_fft) return w;
  if (em_is_none(w)) w = at_filled(e, &size, 1, em_i(1), dtype, like);
  pad[0] = (n_fft - size) / 2;
  pad[1] = n_fft - size - pad[0];
  return size == n_fft ? w : EM(e, "constant_pad_nd", w, em_list(e, pad, 2), em_i(0));
}

/* Points before the first and after the last are made up, so that windows stand centered on points of the signal. */
static em_x_t padded_signal(em_t *e, em_x_t x, int64_t n_fft) {
  aot_type_t t = TYPE(x);
  int64_t pad[2] = {n_fft / 2, n_fft / 2}, sizes[3] = {1, 1, 0};
  if (t.rank == 2) sizes[1] = t.sizes[0];
  sizes[2] = t.sizes[t.rank - 1];
  x = EM(e, "pad", at_reshaped(e, x, sizes, 3), em_list(e, pad, 2), IN("pad_mode"));
  sizes[0] = t.rank == 2 ? sizes[1] : at_add(at_infer(e), sizes[2], 2 * pad[0]);
  sizes[1] = at_add(at_infer(e), sizes[2], 2 * pad[0]);
  return at_reshaped(e, x, sizes, t.rank);
}

aot_status_t at_dc_stft(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), window;
  int64_t n_fft = at_in_int(e, "n_fft", 1), hop = at_in_int(e, "hop_length", n_fft / 4), last[1] = {-1};
  int64_t scale = at_in_int(e, "normalized", 0) ? BY_ROOT_N : NOT_SCALED;
  int onesided, full;
  if (strstr(at_name(e), "center") && at_in_int(e, "center", 1)) x = padded_signal(e, x, n_fft);
  window = window_of(e, n_fft, x, TYPE(x).dtype);
  x = EM(e, "unfold", x, em_i(-1), em_i(n_fft), em_i(hop)); /* [.., frames, n_fft] */
  if (!em_is_none(window)) x = MUL(x, window);
  if (e->status != AOT_OK) return e->status;
  full = aot_dtype_is_complex(TYPE(x).dtype);
  onesided = at_in_has(e, "onesided") ? (int)at_in_int(e, "onesided", 0) : !full;
  if (full) x = EM(e, "_fft_c2c", x, em_list(e, last, 1), em_i(scale), em_b(1));
  else x = EM(e, "_fft_r2c", x, em_list(e, last, 1), em_i(scale), em_b(onesided));
  x = EM(e, "transpose.int", x, em_i(-2), em_i(-1));
  return at_give(e, at_in_int(e, "return_complex", 0) ? x : EM(e, "view_as_real", x), out);
}

/* Frames [.., frames, n_fft] added up where they are in the signal. */
static em_x_t overlapped(em_t *e, em_x_t frames, int64_t n_fft, int64_t hop) {
  aot_type_t t = TYPE(frames);
  int64_t sizes[3];
  int32_t rank = t.rank - 1;
  if (e->status != AOT_OK) return frames;
  sizes[0] = t.sizes[0];
  sizes[rank - 1] = at_add(at_infer(e), at_mul(at_infer(e), at_sub(at_infer(e), t.sizes[rank - 1], 1), hop), n_fft);
  return EM(e, "unfold_backward", frames, em_list(e, sizes, (uint32_t)rank), em_i(rank - 1), em_i(n_fft), em_i(hop));
}

/* Griffin and Lim 1984: windowed frames added up, divided by the squares of the windows added up. */
aot_status_t at_dc_istft(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), window, weight;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t n_fft = at_in_int(e, "n_fft", 1), hop = at_in_int(e, "hop_length", n_fft / 4), last[1] = {-1}, start, end,
          sizes[2], have;
  int64_t scale = at_in_int(e, "normalized", 0) ? BY_ROOT_N : BY_N;
  int32_t real = t.dtype == AOT_C128 ? AOT_F64 : AOT_F32;
  int complex_out = aot_dtype_is_complex(to.dtype);
  int onesided =
      at_in_has(e, "onesided") ? (int)at_in_int(e, "onesided", 0) : !at_same(at_infer(e), t.sizes[t.rank - 2], n_fft);
  window = window_of(e, n_fft, x, real);
  if (em_is_none(window)) window = at_filled(e, &n_fft, 1, em_i(1), real, x);
  x = EM(e, "transpose.int", x, em_i(-2), em_i(-1));
  if (complex_out) x = EM(e, "_fft_c2c", x, em_list(e, last, 1), em_i(scale), em_b(0));
  else {
    if (!onesided) x = EM(e, "slice.Tensor", x, em_i(-1), em_i(0), em_i(n_fft / 2 + 1), em_i(1));
    x = EM(e, "_fft_c2r", x, em_list(e, last, 1), em_i(scale), em_i(n_fft));
  }
  x = overlapped(e, MUL(x, window), n_fft, hop);
  sizes[0] = t.sizes[t.rank - 1];
  sizes[1] = n_fft;
  weight = overlapped(e, at_expanded(e, MUL(window, window), sizes, 2), n_fft, hop);
  if (e->status != AOT_OK) return e->status;
  have = TYPE(weight).sizes[0];
  start = at_in_int(e, "center", 1) ? n_fft / 2 : 0;
  end = at_add(at_infer(e), start, to.sizes[to.rank - 1]);
  if (at_hint(at_infer(e), end) > at_hint(at_infer(e), have)) end = have;
  x = EM(e, "slice.Tensor", x, em_i(-1), em_i(start), em_i(end), em_i(1));
  weight = EM(e, "slice.Tensor", weight, em_i(-1), em_i(start), em_i(end), em_i(1));
  x = resized(e, DIV(x, weight), to.rank - 1, to.sizes[to.rank - 1]);
  return at_give(e, x, out);
}
