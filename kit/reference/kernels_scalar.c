/* The formulas of scalar.def, evaluated in double and stored with one rounding: for float inputs the result is the
 * correctly rounded one up to libm's own error. */
#include "rk_pointwise.h"
#include "scalar_functions.h"

#define T(x) ((double)(x))
#define OPERANDS_1 const double a = x[0]
#define OPERANDS_2 const double a = x[0], b = x[1]
#define OPERANDS_3 const double a = x[0], b = x[1], c = x[2]
#define OPERANDS_4 const double a = x[0], b = x[1], c = x[2], d = x[3]

/* clang-format off */
#define SCALAR(id, name, n, formula) \
  static double of_##id(const double *x, const pw_par_t *p) { OPERANDS_##n; (void)p; return formula; }
#include "scalar.def"
#undef SCALAR
#undef SCALAR_CAST
#undef SCALAR_BOUND
#define SCALAR(id, name, n, formula) {name, pw_run, NULL, &(const pw_row_t){PW_RESULT, of_##id, NULL, NULL}, 0},
#define SCALAR_CAST(id, name, n, formula) {name, pw_run, NULL, &(const pw_row_t){PW_CAST, of_##id, NULL, NULL}, 0},
static const rk_kernel_t rows[] = {
#include "scalar.def"
};
/* clang-format on */
const rk_family_t rk_family_scalar = RK_FAMILY(rows);
