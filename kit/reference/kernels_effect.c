/* Operators that are there for their effect: assertions, ranges of numbers, printing. */
#include "rk_core.h"
#include <aot/inline.h>
#include <string.h>

/* The model's own assertions about metadata hold by type inference; nothing is left to do at run time. */
static aot_status_t nothing(rk_ctx_t *c) {
  (void)c;
  return AOT_OK;
}

/* _assert_async(self), .msg(self, assert_msg), _assert_scalar(self, assert_msg): an assertion of the model's own */
static aot_status_t assert_true(rk_ctx_t *c) {
  const rk_arg_t *message = rk_has(c, 1) && c->call->args[1].kind == AOT_ARG_STR ? &c->call->args[1] : NULL;
  rk_array_t x;
  AOT_TRY(rk_need_f(c, 0, &x));
  for (int64_t k = 0; k < x.numel; k++)
    RK_CHECK(c, x.f[k] != 0, "the model's assertion failed: %.*s",
             message ? (int)(message->n < 200 ? message->n : 200) : 0, message ? message->u.chars : "");
  return AOT_OK;
}

/* The token of the functional forms, argument 2, is handed on. */
static aot_status_t assert_and_pass(rk_ctx_t *c) {
  const rk_tensor_t *token;
  AOT_TRY(assert_true(c));
  AOT_TRY(rk_need_tensor(c, 2, &token));
  return rk_put_tensor(c, 0, token);
}

static aot_status_t make_token(rk_ctx_t *c) {
  AOT_TRY(rk_check_result(c, 0, 0, NULL));
  rk_fill_f(rk_result(c, 0), 0);
  return AOT_OK;
}

/* sym_constrain_range(size, *, min, max) */
static aot_status_t in_range(rk_ctx_t *c, int64_t low) {
  int64_t size = rk_int(c, 0, 0), min = rk_int(c, 1, low), max = rk_int(c, 2, INT64_MAX);
  if (min < low) min = low;
  RK_CHECK(c, size >= min && size <= max,
           "the number %lld is not in the range that the model was exported for, %lld..%lld", (long long)size,
           (long long)min, (long long)max);
  return AOT_OK;
}
static aot_status_t constrain_range(rk_ctx_t *c) { return in_range(c, INT64_MIN); }
static aot_status_t constrain_size(rk_ctx_t *c) { return in_range(c, 0); }

/* _print(s) */
static aot_status_t print(rk_ctx_t *c) {
  const rk_arg_t *text = rk_has(c, 0) && c->call->args[0].kind == AOT_ARG_STR ? &c->call->args[0] : NULL;
  if (text && c->caller && c->caller->say) c->caller->say(c->caller->self, text->u.chars, text->n);
  return AOT_OK;
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_assert_tensor_metadata.default", nothing),
    ROW("_assert_async.default", assert_true),
    ROW("_assert_async.msg", assert_true),
    ROW("_assert_scalar.default", assert_true),
    ROW("_functional_assert_async.msg", assert_and_pass),
    ROW("_functional_assert_scalar.default", assert_and_pass),
    ROW("_make_dep_token.default", make_token),
    ROW("_print.default", print),
    ROW("sym_constrain_range.default", constrain_range),
    ROW("sym_constrain_range_for_size.default", constrain_size),
};
const rk_family_t rk_family_effect = RK_FAMILY(rows);
