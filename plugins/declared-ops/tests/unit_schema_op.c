/* Operators out of schema texts: names, flags, and what is refused, each with its byte. */
#include "schema_op.h"

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char pool[1 << 16];
static size_t used;

static void *take(void *self, uint64_t align, uint64_t nbytes) {
  (void)self;
  used = (used + (size_t)align - 1) / (size_t)align * (size_t)align;
  void *at = pool + used;
  used += (size_t)nbytes;
  assert_true(used <= sizeof pool);
  memset(at, 0, (size_t)nbytes);
  return at;
}

static aot_status_t declare(const char *text, aot_op_desc_t *out, aot_declare_error_t *error) {
  static const sch_memory_t memory = {NULL, take};
  used = 0;
  memset(error, 0, sizeof *error);
  return dc_declare(aot_str(text), &memory, out, error);
}

static void names_and_flags(void **state) {
  aot_op_desc_t op;
  aot_declare_error_t error;
  (void)state;
  assert_int_equal(declare("mylib::add_one_out(Tensor x, Tensor(a!) out) -> ()", &op, &error), AOT_OK);
  assert_true(aot_str_eq(op.name, aot_str("mylib.add_one_out.default")));
  assert_true(aot_str_eq(op.schema, aot_str("(Tensor x, Tensor(a!) out) -> ()")));
  assert_int_equal(op.flags, AOT_OP_WRITES | AOT_OP_NO_GRAD);
  assert_int_equal(op.n_args, 2);
  assert_int_equal(op.n_results, 0);
  assert_int_equal(
      declare("a::b.out(Tensor x, *, Tensor(a!)[] outs, Tensor(b!)? t=None) -> (Tensor, Tensor[])", &op, &error),
      AOT_OK);
  assert_true(aot_str_eq(op.name, aot_str("a.b.out")));
  assert_true(op.args[1].flags & AOT_SARG_LIST && op.args[1].flags & AOT_SARG_WRITE);
  assert_true(op.args[2].flags & AOT_SARG_OPTIONAL && op.args[2].flags & AOT_SARG_WRITE);
  assert_int_equal(declare("a::twice(Tensor x) -> Tensor", &op, &error), AOT_OK);
  assert_int_equal(op.flags, AOT_OP_NO_GRAD);
  assert_int_equal(declare("a::fill_(Tensor(a!) self, float v=0.5) -> Tensor(a!)", &op, &error), AOT_OK);
}

static void refusals(void **state) {
  static const struct {
    const char *text, *message;
    uint32_t byte;
  } rows[] = {
      {"(Tensor x) -> Tensor", "begins with the operator's name", 0},
      {"add_one(Tensor x) -> Tensor", "has no namespace", 0},
      {"mylib::f(Tesnor x) -> Tensor", "unknown type 'Tesnor'", 9},
      {"mylib::f(Tensor x -> Tensor", "expected ')'", 18},
      {"mylib::f(Tensor(a) x) -> Tensor(a)", "is a view", 22},
      {"mylib::f(Tensor x) -> int", "is no tensor", 19},
      {"mylib::f(int(a!) n) -> ()", "is written and no tensor", 17},
  };
  aot_op_desc_t op;
  aot_declare_error_t error;
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(declare(rows[i].text, &op, &error), AOT_E_INVALID);
    if (!strstr(error.message, rows[i].message) || error.byte != rows[i].byte)
      fail_msg("%s: byte %u: %s", rows[i].text, error.byte, error.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_flags), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
