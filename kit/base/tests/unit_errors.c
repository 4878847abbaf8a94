/* Diagnostics of kit/base/errors.h as a host receives them: what is given, and "none" for the rest. */
#include "kit/base/errors.h"

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct received {
  aot_host_t host;
  aot_diag_t d;
  char text[800];
  uint32_t n;
} received_t;

static aot_status_t AOT_CALL receive(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  received_t *r = (received_t *)(uintptr_t)h;
  (void)ctx;
  r->d = *d;
  memcpy(r->text, d->message.data, (size_t)d->message.size);
  r->text[d->message.size] = '\0';
  r->n++;
  return AOT_OK;
}

static void check(const received_t *r, int32_t severity, const char *code, const char *text) {
  assert_int_equal(r->n, 1);
  assert_int_equal(r->d.struct_size, sizeof r->d);
  assert_int_equal(r->d.severity, severity);
  assert_string_equal(r->d.code.data, code);
  assert_string_equal(r->text, text);
  assert_int_equal(r->d.hint.size + r->d.file.size + r->d.line + r->d.column + r->d.byte, 0);
  assert_int_equal(r->d.value.id, AOT_NO_ID);
}

static void what_is_given_arrives(void **state) {
  received_t r = {.host.diag = receive};
  char longest[700], text[16];
  (void)state;
  assert_int_equal(kit_fail(&r.host, NULL, AOT_E_OPTION, "unit.option", "%d of %s", 3, "four"), AOT_E_OPTION);
  check(&r, AOT_SEVERITY_ERROR, "unit.option", "3 of four");
  assert_int_equal(r.d.node.id, AOT_NO_ID);

  r.n = 0;
  assert_int_equal(kit_no_memory(&r.host, NULL, "unit.no-memory", (aot_node_t){7}, "for %s"), AOT_E_EXHAUSTED);
  check(&r, AOT_SEVERITY_ERROR, "unit.no-memory", "no memory for %s");
  assert_int_equal(r.d.node.id, 7);

  r.n = 0;
  aot_diag_t d = kit_diag(AOT_SEVERITY_NOTE, "unit.note", "a note");
  d.node.id = 9;
  assert_int_equal(kit_report(&r.host, NULL, AOT_OK, &d), AOT_OK);
  check(&r, AOT_SEVERITY_NOTE, "unit.note", "a note");
  assert_int_equal(r.d.node.id, 9);

  r.n = 0;
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  kit_fail(&r.host, NULL, AOT_E_OPTION, "unit.option", "%s", longest);
  assert_int_equal(strlen(r.text), 599);

  assert_int_equal(kit_no_memory_text(text, sizeof text, "for %u ranks", 12u), AOT_E_EXHAUSTED);
  assert_string_equal(text, "no memory for 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_given_arrives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
