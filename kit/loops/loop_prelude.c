/* What generated C and CUDA C begin with: the texts of prelude/, embedded at build time. */
#include "loop_print.h"

#include <string.h>

static const char c[] = {
#include "embedded/c_prelude.h.inc"
};
static const char c_halves[] = {
#include "embedded/c_halves.h.inc"
};
static const char cuda[] = {
#include "embedded/cuda_prelude.cuh.inc"
};

void lp_prelude_add(lp_text_t *t) { lp_text_add(t, c, strlen(c)); }
void lp_halves_add(lp_text_t *t) { lp_text_add(t, c_halves, strlen(c_halves)); }
void lp_prelude_cuda_add(lp_text_t *t) { lp_text_add(t, cuda, strlen(cuda)); }
