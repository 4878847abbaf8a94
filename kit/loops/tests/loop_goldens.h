/* The loops NAME.loop of this folder. NAME.expect has the schedule and the C of each, NAME.cu the CUDA C of one loop
 * for each kind of kernel. The CUDA C of the others is run, against their C. */
#ifndef LOOP_GOLDENS_H
#define LOOP_GOLDENS_H

#include "kit/loops/loop.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct golden {
  const char *name;
  int has_cuda;
} golden_t;

/* clang-format off */
static const golden_t goldens[] = {
    {"pointwise", 1}, {"halves", 0}, {"integers", 0}, {"doubles", 0}, {"bounds", 0}, {"embedding", 1}, {"gather", 0},
    {"dropout", 1},
    {"dropout_mask", 0}, {"draws", 0}, {"adamw", 1}, {"softmax", 1}, {"layer_norm", 0}, {"layer_norm_backward", 1},
    {"cross_entropy", 1}, {"odd_rows", 0}, {"reductions", 0}, {"argmax", 0}, {"norm", 1}, {"cumsum", 1}, {"scans", 0},
    {"columns", 1}, {"column_scan", 1}, {"column_extremes", 0}, {"bias_gradient", 1}, {"bias_gradient_permuted", 0},
    {"relu_bias", 1}, {"gelu_backward", 0}, {"scatter", 1}, {"scatter_row", 0}, {"scatter_expanded", 0},
    {"index_copy", 1},
    {"count", 0}};
/* clang-format on */
enum { N_GOLDENS = sizeof goldens / sizeof *goldens };

/* Owned by the caller; "" if there is no such file. */
static char *read_golden(const char *name, const char *ending) {
  char path[512];
  snprintf(path, sizeof path, LP_TEST_DIR "/%s.%s", name, ending);
  FILE *f = fopen(path, "r");
  char *text = calloc(1, 65536);
  assert_non_null(text);
  if (f) {
    assert_true(fread(text, 1, 65535, f) < 65535);
    fclose(f);
  }
  return text;
}

static void parse_golden(const char *name, lp_parsed_t *out) {
  char *text = read_golden(name, "loop");
  const uint32_t wrong = lp_parse(text, out);
  if (wrong) fail_msg("%s.loop:%u", name, wrong);
  free(text);
}

#endif
