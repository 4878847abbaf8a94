/* Shape rules against PyTorch 2.11: what eager PyTorch gave for recorded calls, and the TensorMeta of exported
 * models. */
#include "infer_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that differ on purpose. */
static const char *const exempt[] = {
    /* an empty argument whose strides the recording does not report */
    "aten.transpose.int f32(0,3) i-2 i-1",
    "aten.transpose.int f32(0,5) i-2 i-1",
    /* the result's size depends on the data */
    "aten.index.Tensor f32(5,5,5) {bool(5)}",
    "aten.masked_select.default ",
    "aten.nonzero.default ",
    /* recorded inside an autocast region, which casts the operands first */
    "aten.linear.default input=f32(5,4) weight=f32(6,4) -> bf16",
    NULL,
};

static int is_exempt(const char *line) {
  size_t i;
  for (i = 0; exempt[i] != NULL; i++)
    if (strncmp(line, exempt[i], strlen(exempt[i])) == 0) return 1;
  return 0;
}

static void report(const infer_case_t *c, const at_infer_t *infer, aot_status_t status) {
  uint32_t i;
  char text[300];
  print_message("differs: %s", c->text);
  if (status != AOT_OK) print_message("    %s\n", infer->message);
  for (i = 0; status == AOT_OK && i < c->n_got; i++) {
    case_print_type(&c->got[i], text, sizeof text);
    print_message("    got %s\n", text);
  }
}

typedef struct tally {
  unsigned passed, failed, unknown, exempted;
} tally_t;

static tally_t run_file(const char *name, int offsets) {
  static infer_case_t c;
  static at_infer_t infer;
  static char line[1 << 16];
  char path[1024];
  FILE *f;
  tally_t t = {0, 0, 0, 0};
  snprintf(path, sizeof path, "%s/%s", AT_TEST_DIR, name);
  f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f) != NULL) {
    aot_status_t status;
    assert_true(case_read(&c, line));
    if (c.row == AT_N_OPS) {
      t.unknown++;
      if (getenv("AT_UNKNOWN")) print_message("unknown: %.*s\n", (int)strcspn(line, " "), line);
      continue;
    }
    status = case_run(&c, &infer);
    if (status == AOT_OK && case_agrees(&c, offsets)) {
      t.passed++;
    } else if (is_exempt(line)) {
      t.exempted++;
    } else {
      t.failed++;
      report(&c, &infer, status);
    }
  }
  fclose(f);
  print_message("%s: %u agree, %u differ, %u exempt, %u of operators not in the set\n", name, t.passed, t.failed,
                t.exempted, t.unknown);
  return t;
}

static void recorded_calls(void **state) {
  tally_t t = run_file("infer_cases.txt", 0);
  (void)state;
  assert_int_equal(t.failed, 0);
  assert_true(t.passed > 2600);
}

static void operators_that_draw(void **state) {
  tally_t t = run_file("random_cases.txt", 0);
  (void)state;
  assert_int_equal(t.failed, 0);
  assert_int_equal(t.unknown, 0);
}

/* What lies channels last: make_layout_cases.py. */
static void layouts(void **state) {
  tally_t t = run_file("channels_last_cases.txt", 0);
  (void)state;
  assert_int_equal(t.failed, 0);
  assert_true(t.passed > 200);
}

static void exported_models(void **state) {
  tally_t t = run_file("archive_cases.txt", 1);
  (void)state;
  assert_int_equal(t.failed, 0);
  assert_int_equal(t.unknown, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_calls), cmocka_unit_test(operators_that_draw),
                                     cmocka_unit_test(layouts), cmocka_unit_test(exported_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
