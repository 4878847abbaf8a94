/* The functions that scalar.def's formulas name and libm has not, in double. */
#ifndef SCALAR_FUNCTIONS_H
#define SCALAR_FUNCTIONS_H

#include <math.h>

/* Without overflow on either side. */
static inline double sigmoid(double a) { return a >= 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a)); }
static inline double softplus(double a) { return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }
static inline double larger(double a, double b) { return a != a ? a : b != b ? b : a < b ? b : a; }
static inline double lesser(double a, double b) { return a != a ? a : b != b ? b : a > b ? b : a; }

#endif
