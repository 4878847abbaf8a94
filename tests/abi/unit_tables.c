/* Tables of units of every kind, shorter and longer than this host has them: an older plugin's and a newer one's. What
 * a plugin's descriptor, units, options and contracts may be is in tests/pipeline/check_loader.sh. */
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <sandbox/session.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
  const char *kind;
  uint32_t size, last; /* of the table; offset of the last function that must be there, 0: none */
} kinds[] = {
    {"import/1", sizeof(aot_import_t), offsetof(aot_import_t, read)},
    {"opset/1", sizeof(aot_opset_t), 0},
    {"pass/1", sizeof(aot_pass_t), offsetof(aot_pass_t, run)},
    {"partition/1", sizeof(aot_partition_t), offsetof(aot_partition_t, choose)},
    {"backend/2", sizeof(aot_backend_t), offsetof(aot_backend_t, load)},
    {"device/1", sizeof(aot_device_t), offsetof(aot_device_t, value)},
    {"communicator/1", sizeof(aot_communicator_t), offsetof(aot_communicator_t, abort)},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)
#define MORE 24u /* bytes of members to come */

/* What create hands out. The functions are never called, and are none. */
static char bytes[4096];
static aot_table_t *const table = (aot_table_t *)(void *)bytes;

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self, (void)ctx, (void)host, (void)opts;
  *out_table = table;
  return AOT_OK;
}

/* A table of so many bytes, of which those from `from` to `to` are functions, or members that this host does not
 * know. */
static void make(uint32_t size, uint32_t from, uint32_t to) {
  memset(bytes, 0, sizeof bytes);
  memset(bytes + from, 0x5A, to - from);
  table->struct_size = size;
}

/* NULL: it is used, and functions that it lacks are NULL. */
static void expect(const char *kind, const char *complaint) {
  aoth_sink_t *sink = aoth_sink_create(NULL);
  const aoth_session_config_t config = {.sink = sink};
  aoth_session_t *s = aoth_session_create(&config);
  aoth_plugin_t plugin = {.path = "/odd.so", .from = "test", .note = {.id = "odd", .version = "1"}};
  aoth_unit_t unit = {.plugin = &plugin, .kind = kind, .id = "odd", .version = "1", .desc = {.create = create}};
  const aoth_stage_t stage = {.use = "odd", .name = "odd", .unit = &unit};
  aoth_instance_t made;
  assert_non_null(s);
  const aot_status_t status = aoth_instance_try(s, &stage, &made);
  if (complaint) {
    assert_int_equal(status, AOTH_E_PLUGIN);
    assert_non_null(strstr(aoth_sink_text(sink), complaint));
  } else {
    const uint32_t end = table->struct_size < sizeof made.table ? table->struct_size : (uint32_t)sizeof made.table;
    assert_int_equal(status, AOT_OK);
    for (uint32_t at = end; at < sizeof made.table; at++) assert_int_equal(((const char *)&made.table)[at], 0);
    aoth_instance_destroy(s, &stage, &made);
  }
  aoth_session_destroy(s);
  aoth_sink_destroy(sink);
}

static void one_of_todays_is_taken(void **state) {
  (void)state;
  for (size_t i = 0; i < N_KINDS; i++) {
    make(kinds[i].size, sizeof *table, kinds[i].size);
    expect(kinds[i].kind, NULL);
  }
}

static void a_longer_one_is_taken_where_nothing_is_said_there(void **state) {
  (void)state;
  for (size_t i = 0; i < N_KINDS; i++) {
    make(kinds[i].size + MORE, sizeof *table, kinds[i].size);
    expect(kinds[i].kind, NULL);
    make(kinds[i].size + MORE, sizeof *table, kinds[i].size + MORE);
    expect(kinds[i].kind, "returned a table for a newer host");
  }
}

static void a_shorter_one_has_what_must_be_there(void **state) {
  (void)state;
  for (size_t i = 0; i < N_KINDS; i++) {
    const uint32_t least = kinds[i].last ? kinds[i].last + (uint32_t)sizeof(void *) : (uint32_t)sizeof *table;
    make(least, sizeof *table, least);
    expect(kinds[i].kind, NULL);
    if (!kinds[i].last) continue;
    make(kinds[i].last, sizeof *table, kinds[i].last);
    expect(kinds[i].kind, "returned a table that lacks a function");
  }
}

static void one_of_no_size_is_none(void **state) {
  (void)state;
  for (size_t i = 0; i < N_KINDS; i++) {
    make(8, sizeof *table, kinds[i].size);
    expect(kinds[i].kind, "returned a table of an invalid size");
    make(UINT32_MAX, sizeof *table, kinds[i].size);
    expect(kinds[i].kind, "returned a table of an invalid size");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_of_todays_is_taken),
      cmocka_unit_test(a_longer_one_is_taken_where_nothing_is_said_there),
      cmocka_unit_test(a_shorter_one_has_what_must_be_there),
      cmocka_unit_test(one_of_no_size_is_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
