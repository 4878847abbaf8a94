/* Reading einsum's equation: what the labels become, and what is wrong with the equations that are refused. */
#include "einsum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

/* Labels as letters; the dimensions of the ellipsis are 0, 1, .. */
static const char *text_of(const uint8_t *labels, int32_t n) {
  static char text[AOT_MAX_RANK + 1];
  int32_t i;
  for (i = 0; i < n; i++) {
    int l = labels[i];
    text[i] = (char)(l < 26 ? 'A' + l : l < 52 ? 'a' + l - 26 : '0' + l - 52);
  }
  text[n] = '\0';
  return text;
}

static void labels_are_spread(void **state) {
  static const struct {
    const char *equation;
    uint32_t n;
    int32_t ranks[3];
    const char *operands[3], *result;
  } cases[] = {
      {"ij,jk->ik", 2, {2, 2}, {"ij", "jk"}, "ik"},
      {" i j , j k -> i k ", 2, {2, 2}, {"ij", "jk"}, "ik"},
      {"ij,jk", 2, {2, 2}, {"ij", "jk"}, "ik"},
      {"ba", 1, {2}, {"ba"}, "ab"}, /* an implied result is in alphabetical order, capitals first */
      {"bA", 1, {2}, {"bA"}, "Ab"},
      {"ii", 1, {2}, {"ii"}, ""},
      {"...ij,...jk", 2, {4, 3}, {"01ij", "1jk"}, "01ik"}, /* ellipses are aligned at their ends */
      {"i...->...", 1, {3}, {"i01"}, "01"},
      {"...i->i", 1, {3}, {"01i"}, "i"}, /* an ellipsis that the result lacks is summed */
      {",->", 2, {0, 0}, {"", ""}, ""},
  };
  at_einsum_t e;
  size_t i;
  uint32_t k;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!at_einsum_read(&e, cases[i].equation, strlen(cases[i].equation), cases[i].n, cases[i].ranks))
      fail_msg("%s: %s", cases[i].equation, e.why);
    for (k = 0; k < cases[i].n; k++) assert_string_equal(text_of(e.label[k], e.rank[k]), cases[i].operands[k]);
    assert_string_equal(text_of(e.out, e.out_rank), cases[i].result);
  }
}

static void wrong_equations_are_told(void **state) {
  static const struct {
    const char *equation;
    uint32_t n;
    int32_t ranks[3];
    const char *why;
  } cases[] = {
      {"ij,jk->ik", 1, {2}, "more terms than the 1 operands"},
      {"ij->i", 2, {2, 2}, "1 terms for 2 operands"},
      {"ij->i", 1, {3}, "term 0 names 2 dimensions, its operand has 3"},
      {"ijk...->i", 1, {2}, "term 0 names 3 dimensions, its operand has 2"},
      {"ij->k", 1, {2}, "subscript 'k' of the result is in no operand"},
      {"ij->ii", 1, {2}, "subscript 'i' is twice in the result"},
      {"i1->i", 1, {2}, "'1' is no subscript; they are letters"},
      {"i..->i", 1, {2}, "a '.' that is no part of an ellipsis '...'"},
      {"...i...->i", 1, {2}, "two ellipses in one term"},
      {"i-", 1, {1}, "'-' is no subscript; they are letters"},
      {"", 0, {0}, "0 operands; there may be 1 to 32"},
  };
  at_einsum_t e;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_false(at_einsum_read(&e, cases[i].equation, strlen(cases[i].equation), cases[i].n, cases[i].ranks));
    assert_string_equal(e.why, cases[i].why);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(labels_are_spread), cmocka_unit_test(wrong_equations_are_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
