#include "kernel_constants.h"

#include "kit/loops/loop_print.h"

void gc_print_constants(lp_text_t *out, const gc_constant_t *constants, size_t n) {
  lp_print(out, "  enum {");
  for (size_t k = 0; k < n; k++)
    lp_print(out, "%s%s = %lld", k ? ", " : " ", constants[k].name, (long long)constants[k].value);
  lp_print(out, " };\n");
}

void gc_print_conversions(lp_text_t *out, int32_t dtype) {
  const char *half = lp_half_name(dtype);
  if (half)
    lp_print(out, "#define LP_VALUE(v) lp_from_%s(v)\n#define LP_ELEMENT(v) lp_to_%s(lp_round_%s(v))\n", half, half,
             half);
  else lp_print(out, "#define LP_VALUE(v) (v)\n#define LP_ELEMENT(v) (v)\n");
}
