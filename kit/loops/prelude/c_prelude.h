/* What generated C begins with. Functions have no branches, so that a compiler vectorises the loops that call them. */
#include <math.h>
#include <stdint.h>
#define LP static inline __attribute__((always_inline, unused))
#include "c_halves.h"
#include "c_functions.h"
#include "formulas.h"
#include "c_draws.h"
#include "c_reductions.h"
