/* Binding symbols from the sizes of inputs: bare, solved, checked, left open. */
#include "tiny_opset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ir/tables.h>
#include <step/sizes.h>
#include <string.h>

static const char text[] = "aot 1\n"
                           "properties imported\n"
                           "symbol s0 in [1, 100] hint 3\n"
                           "symbol s1 in [2, inf] hint 4\n"
                           "symbol u0 in [0, inf] hint 7\n"
                           "leaf 0 user_input 0 \"a\" : f32[s0 * 2 + 1, 5]\n"
                           "leaf 1 user_input 1 \"b\" : f32[s1, s0 + s1]\n"
                           "leaf 2 user_input 2 \"n\" : f32[10 - s0]\n"
                           "leaf 3 buffer \"c\" : f32[s0 * s1, u0 + 1]\n"
                           "graph @forward forward {\n"
                           "}\n";

typedef struct scene {
  fixture_t w;
  aoth_sizes_t sizes;
  aot_leaf_info_t leaf[4];
} scene_t;

static void set_up(scene_t *s) {
  world_init(&s->w);
  if (world_parse(&s->w, text) != AOT_OK) fail_msg("%s", aoth_sink_text(s->w.sink));
  assert_true(aoth_sizes_init(&s->sizes, s->w.p));
  for (uint32_t i = 0; i < 4; i++) {
    s->leaf[i].struct_size = sizeof s->leaf[i];
    assert_int_equal(aoth_graph_leaf_info(s->w.p, (aot_leaf_t){i + 1}, &s->leaf[i]), AOT_OK);
  }
}

static void tear_down(scene_t *s) {
  aoth_sizes_deinit(&s->sizes);
  world_deinit(&s->w);
}

static aot_status_t bind(scene_t *s, int64_t a, int64_t b0, int64_t b1, int64_t n) {
  const aoth_tensor_t t[3] = {aoth_tensor_make(NULL, AOT_F32, 2, (int64_t[]){a, 5}),
                              aoth_tensor_make(NULL, AOT_F32, 2, (int64_t[]){b0, b1}),
                              aoth_tensor_make(NULL, AOT_F32, 1, (int64_t[]){n})};
  aoth_given_t given[3];
  for (uint32_t i = 0; i < 3; i++)
    given[i] = (aoth_given_t){.ordinal = i, .name = s->leaf[i].names[0], .type = &s->leaf[i].type, .tensor = &t[i]};
  return aoth_sizes_bind(&s->sizes, s->w.p, given, 3, s->w.sink);
}

static void refused(int64_t a, int64_t b0, int64_t b1, int64_t n, const char *says) {
  scene_t s;
  set_up(&s);
  assert_int_equal(bind(&s, a, b0, b1, n), AOT_E_INVALID);
  if (!strstr(aoth_sink_text(s.w.sink), says)) fail_msg("says %s", aoth_sink_text(s.w.sink));
  tear_down(&s);
}

static void test_solved(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  assert_int_equal(bind(&s, 9, 6, 10, 6), AOT_OK); /* 2*4 + 1; s1 = 6; 4 + 6; 10 - 4 */
  assert_int_equal(s.sizes.value[0], 4);
  assert_int_equal(s.sizes.value[1], 6);
  assert_int_equal(bind(&s, 3, 2, 3, 9), AOT_OK); /* again, with others */
  assert_int_equal(s.sizes.value[0], 1);
  tear_down(&s);
}

static void test_refused(void **state) {
  (void)state;
  /* s0 comes from n */
  refused(8, 6, 10, 6,
          "input 0 (a): expected f32[s0 * 2 + 1, 5], got f32[8, 5]: dimension 0: expected 9, got 8, it is s0 * 2 + 1");
  refused(9, 6, 11, 6, "input 1 (b): expected f32[s1, s0 + s1], got f32[6, 11]: dimension 1: expected 10, got 11");
  refused(9, 6, 10, 5, "dimension 0: expected 6, got 5");
  refused(9, 1, 5, 6,
          "input 1 (b): expected f32[s1, s0 + s1], got f32[1, 5]: dimension 0 makes size s1 = 1, but the model was "
          "exported for "
          "s1 in 2..unbounded");
  refused(
      303, 6, 157, -141,
      "input 0 (a): expected f32[s0 * 2 + 1, 5], got f32[303, 5]: dimension 0 makes size s0 = 151, but the model was "
      "exported for s0 in 1..100");
}

/* A size that no input determines is named when something at the boundary needs it, and not before. */
static void test_open(void **state) {
  (void)state;
  scene_t s;
  aoth_tensor_t t;
  int64_t size;
  set_up(&s);
  assert_int_equal(bind(&s, 9, 6, 10, 6), AOT_OK);
  assert_int_equal(aoth_sizes_dim(&s.sizes, s.w.p, s.leaf[3].type.sizes[0], "c", s.w.sink, &size), AOT_OK);
  assert_int_equal(size, 24);
  assert_int_equal(aoth_sizes_tensor(&s.sizes, s.w.p, &s.leaf[3].type, "a saved value", s.w.sink, &t),
                   AOT_E_UNIMPLEMENTED);
  assert_non_null(strstr(aoth_sink_text(s.w.sink), "unbound size symbol u0 of a saved value"));
  tear_down(&s);
}

/* More elements than memory can hold are refused by number, not by a crash. */
static void test_too_large(void **state) {
  (void)state;
  scene_t s;
  aoth_tensor_t t;
  const int64_t sizes[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
  aot_type_t type = f32_type(2, sizes);
  set_up(&s);
  assert_int_equal(aoth_sizes_tensor(&s.sizes, s.w.p, &type, "a gradient", s.w.sink, &t), AOT_E_EXHAUSTED);
  assert_non_null(strstr(aoth_sink_text(s.w.sink), "a gradient, f32[1099511627776, 1099511627776], is larger"));
  tear_down(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_solved), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_open), cmocka_unit_test(test_too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
