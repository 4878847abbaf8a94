/* Prints the C of the loops that cuda_loops measures: its references, compiled into it. */
#include "kit/loops/loop.h"
#include "gpt2_loops.h"
#include <stdio.h>

int main(void) {
  lp_text_t out = {0};
  lp_prelude_add(&out);
  for (int k = 0; k < N_GPT2_LOOPS; k++) {
    lp_parsed_t p;
    const uint32_t wrong = lp_parse(gpt2_loops[k].text, &p);
    if (wrong || !lp_simplify(&p.loop)) {
      fprintf(stderr, "%s:%u\n", gpt2_loops[k].name, wrong);
      return 1;
    }
    lp_schedule(&p.loop);
    lp_print(&out, "static ");
    lp_gen_c(&p.loop, gpt2_loops[k].name, &out);
    lp_parsed_deinit(&p);
  }
  lp_print(&out, "void (*const references[])(char *const *, const int64_t *, const int64_t *, int64_t, int64_t) = {");
  for (int k = 0; k < N_GPT2_LOOPS; k++) lp_print(&out, "%s, ", gpt2_loops[k].name);
  lp_print(&out, "};\n");
  const int failed = out.failed || fputs(out.data, stdout) < 0;
  lp_text_deinit(&out);
  return failed;
}
