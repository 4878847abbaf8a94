/* Windows of signal processing: n places t from 0 to 2 pi, without the end where the window is periodic
 * (aten/src/ATen/native/TensorFactories.cpp). */
#include "at_formula.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

static em_x_t cosine(em_t *e, em_x_t t, double times, double factor) {
  return MUL(EM(e, "cos", MUL(t, em_f(times))), em_f(factor));
}

/* I0(beta sqrt(1 - u^2)) / I0(beta), u from -1 to 1 */
static em_x_t kaiser(em_t *e, em_x_t u, double beta) {
  em_x_t inside = EM(e, "clamp", SUB(em_f(1.0), MUL(u, u)), em_f(0.0));
  em_x_t middle = EM(e, "i0", EM(e, "full_like", u, em_f(beta)));
  return DIV(EM(e, "i0", MUL(SQRT(inside), em_f(beta))), middle);
}

aot_status_t at_dc_signal_window(em_t *e, aot_value_t *out) {
  const char *name = at_name(e);
  aot_type_t to = at_result_type(e, 0);
  const int32_t dtype = at_accumulate_dtype(to.dtype);
  const int64_t n = to.sizes[0], last = at_in_int(e, "periodic", 1) ? n : n - 1;
  em_x_t device = em_device(to.device, to.device_index), t, u, window;
  if (n <= 1) {
    window = EM(e, "full", em_list(e, to.sizes, 1), em_f(1.0), em_dtype(to.dtype), em_none(), device);
    return at_give(e, window, out);
  }
  t = EM(e, "arange.start_step", em_i(0), em_i(n), em_i(1), em_dtype(dtype), em_none(), device);
  u = SUB(MUL(t, em_f(2.0 / (double)last)), em_f(1.0));
  t = MUL(t, em_f(2.0 * PI / (double)last));
  if (strstr(name, "hann_")) {
    window = SUB(em_f(0.5), cosine(e, t, 1, 0.5));
  } else if (strstr(name, "hamming_")) {
    window = SUB(em_f(em_in_float(e, "alpha", 0.54)), cosine(e, t, 1, em_in_float(e, "beta", 0.46)));
  } else if (strstr(name, "blackman_")) {
    window = ADD(SUB(em_f(0.42), cosine(e, t, 1, 0.5)), cosine(e, t, 2, 0.08));
  } else if (strstr(name, "bartlett_")) {
    window = SUB(em_f(1.0), ABS(u));
  } else {
    window = kaiser(e, u, em_in_float(e, "beta", 12.0));
  }
  return at_give_cast(e, window, out);
}
