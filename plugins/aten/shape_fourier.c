/* Fourier transforms: sizes and dtypes. Results are inferred contiguous, where PyTorch's libraries leave other
 * strides. */
#include "fourier.h"
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static int32_t to_complex(int32_t dtype) { return dtype == AOT_F64 || dtype == AOT_C128 ? AOT_C128 : AOT_C64; }
static int32_t to_real(int32_t dtype) { return dtype == AOT_F64 || dtype == AOT_C128 ? AOT_F64 : AOT_F32; }

static int check_transformed(at_infer_t *c, const aot_type_t *t) {
  if (t->dtype == AOT_F16 || t->dtype == AOT_BF16)
    at_fail(c, "transforms of %s are not supported", aot_dtype_name(t->dtype));
  if (t->rank == 0) at_fail(c, "a tensor without dimensions has no transform");
  return c->status == AOT_OK;
}

/* _fft_r2c, _fft_c2r, _fft_c2c */
void at_shape_fft_core(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dim", &dims);
  int64_t *sizes;
  int32_t last, real = strstr(c->row->name, "c2r") != NULL;
  if (!check_transformed(c, &t)) return;
  if (aot_dtype_is_complex(t.dtype) == (strstr(c->row->name, "r2c") != NULL)) {
    at_fail(c, "of dtype %s", aot_dtype_name(t.dtype));
    return;
  }
  sizes = at_dims_copy(c, t.sizes, t.rank);
  last = n ? at_wrap(c, dims[n - 1], t.rank) : 0;
  if (real) sizes[last] = at_int(c, "last_dim_size");
  else if (n && !aot_dtype_is_complex(t.dtype) && at_bool(c, "onesided"))
    sizes[last] = at_add(c, at_floordiv(c, sizes[last], 2), 1);
  at_put(c, real ? to_real(t.dtype) : to_complex(t.dtype), sizes, t.rank);
}

/* fft_fft .. fft_ihfftn */
void at_shape_fft(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_fft_plan_t plan;
  int64_t *sizes;
  uint32_t i;
  if (!check_transformed(c, &t)) return;
  plan = at_fft_plan(c, &t, at_arg(c, "n"), at_arg(c, "s"), at_arg(c, "dim"));
  if (c->status != AOT_OK) return;
  sizes = at_dims_copy(c, t.sizes, t.rank);
  for (i = 0; i < plan.n; i++) sizes[plan.dims[i]] = plan.points[i];
  if (plan.n && plan.kind->half_out)
    sizes[plan.dims[plan.n - 1]] = at_add(c, at_floordiv(c, plan.points[plan.n - 1], 2), 1);
  at_put(c, plan.kind->half_in ? to_real(t.dtype) : to_complex(t.dtype), sizes, t.rank);
}

void at_shape_fft_frequencies(at_infer_t *c) {
  int64_t n = at_int(c, "n"), size = strstr(c->row->name, "rfftfreq") ? at_add(c, at_floordiv(c, n, 2), 1) : n;
  if (at_has(c, "device")) {
    c->device = aot_device_of(at_int(c, "device"));
    c->device_index = aot_device_index_of(at_int(c, "device"));
  }
  at_put(c, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : AOT_F32, &size, 1);
}

/* [batch?, frequencies, frames], or with parts as a last dimension */
void at_shape_stft(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t n_fft = at_int(c, "n_fft"), hop = at_has(c, "hop_length") ? at_int(c, "hop_length") : n_fft / 4, length,
          *sizes;
  int complex_in, onesided, padded = strstr(c->row->name, "center") != NULL && at_bool(c, "center");
  int32_t rank = t.rank;
  if (rank < 1 || rank > 2) at_fail(c, "a signal has rank 1 or 2, not %d", (int)rank);
  if (n_fft < 1 || hop < 1) at_fail(c, "windows of %lld points every %lld", (long long)n_fft, (long long)hop);
  if (at_has(c, "align_to_window") && at_bool(c, "align_to_window")) at_fail(c, "align_to_window is not supported");
  if (c->status != AOT_OK) return;
  complex_in =
      aot_dtype_is_complex(t.dtype) || (at_has(c, "window") && aot_dtype_is_complex(at_tensor(c, "window").dtype));
  onesided = at_has(c, "onesided") ? at_bool(c, "onesided") : !complex_in;
  sizes = at_dims(c, rank + 2);
  memcpy(sizes, t.sizes, (size_t)(rank - 1) * sizeof *sizes);
  length = padded ? at_add(c, t.sizes[rank - 1], n_fft / 2 * 2) : t.sizes[rank - 1];
  if (at_below(c, length, n_fft))
    at_fail(c, "%lld points are less than a window of %lld", (long long)at_hint(c, length), (long long)n_fft);
  sizes[rank - 1] = onesided ? n_fft / 2 + 1 : n_fft;
  sizes[rank] = at_add(c, at_floordiv(c, at_sub(c, length, n_fft), hop), 1);
  sizes[rank + 1] = 2;
  if (at_has(c, "return_complex") && at_bool(c, "return_complex")) at_put(c, to_complex(t.dtype), sizes, rank + 1);
  else at_put(c, to_real(t.dtype), sizes, rank + 2);
}

void at_shape_istft(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t n_fft = at_int(c, "n_fft"), hop = at_has(c, "hop_length") ? at_int(c, "hop_length") : n_fft / 4, frames,
          *sizes;
  if (!aot_dtype_is_complex(t.dtype) || t.rank < 2 || t.rank > 3)
    at_fail(c, "it takes complex [batch?, frequencies, frames]");
  if (n_fft < 1 || hop < 1) at_fail(c, "windows of %lld points every %lld", (long long)n_fft, (long long)hop);
  if (c->status != AOT_OK) return;
  frames = t.sizes[t.rank - 1];
  sizes = at_dims(c, 2);
  sizes[0] = t.sizes[0];
  sizes[t.rank - 2] = at_has(c, "length") ? at_int(c, "length")
                                          : at_sub(c, at_add(c, at_mul(c, at_sub(c, frames, 1), hop), n_fft),
                                                   at_bool(c, "center") ? n_fft / 2 * 2 : 0);
  at_put(c, at_bool(c, "return_complex") ? t.dtype : to_real(t.dtype), sizes, t.rank - 1);
}
