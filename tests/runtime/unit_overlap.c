/* Which inputs of a call share memory, and which of that matters: patterns as text, for small tensors over one
 * storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <step/overlap.h>
#include <string.h>

#define W AOTH_INPUT_WRITTEN
#define S AOTH_INPUT_RESHAPED
#define G (AOTH_INPUT_GRADIENT | AOTH_INPUT_REQUIRES)

static float storage[64];

static aoth_tensor_t tensor(int32_t rank, int64_t n0, int64_t n1, int64_t s0, int64_t s1, int64_t offset) {
  aoth_tensor_t t = {.data = storage, .nbytes = sizeof storage, .dtype = AOT_F32, .rank = rank, .offset = offset};
  t.sizes[0] = n0;
  t.sizes[1] = n1;
  t.strides[0] = s0;
  t.strides[1] = s1;
  return t;
}
static aoth_tensor_t row(int64_t n, int64_t offset) { return tensor(1, n, 0, 1, 0, offset); }

static aot_status_t find(const aoth_tensor_t *t, const uint32_t *traits, uint32_t n, char *out, size_t size) {
  kit_arena_t *arena = kit_arena_create();
  aoth_sink_t *sink = aoth_sink_create(NULL);
  aoth_call_input_t inputs[8];
  aoth_aliasing_t a;
  kit_text_t text = {0};
  for (uint32_t k = 0; k < n; k++) inputs[k] = (aoth_call_input_t){&t[k], &t[k], traits[k]};
  aot_status_t status = aoth_overlap_find(inputs, n, arena, sink, &a);
  if (status == AOT_OK) aoth_aliasing_print(&a, &text);
  strncpy(out, status == AOT_OK ? (text.data ? text.data : "") : aoth_sink_text(sink), size - 1);
  out[size - 1] = '\0';
  kit_text_deinit(&text);
  aoth_sink_destroy(sink);
  kit_arena_destroy(arena);
  return status;
}

static void expect(const char *wanted, uint32_t n, const aoth_tensor_t *t, const uint32_t *traits) {
  char text[400];
  assert_int_equal(find(t, traits, n, text, sizeof text), AOT_OK);
  assert_string_equal(text, wanted);
}

static void duplicates_matter_when_they_change_or_have_a_gradient(void **state) {
  (void)state;
  const aoth_tensor_t t[3] = {row(4, 0), row(4, 8), row(4, 0)};
  expect("", 3, t, (uint32_t[]){0, W, 0});
  expect("input.2 = input.0", 3, t, (uint32_t[]){W, 0, 0});
  expect("input.2 = input.0", 3, t, (uint32_t[]){0, 0, W});
  expect("input.2 = input.0", 3, t, (uint32_t[]){S, 0, 0});
  expect("input.2 = input.0", 3, t, (uint32_t[]){G, 0, G});
}

static void a_member_without_gradient_is_another_tensor(void **state) {
  (void)state;
  const aoth_tensor_t t[2] = {row(4, 0), row(4, 0)};
  expect("", 2, t, (uint32_t[]){0, G});
  expect("base.0 f32[4]: input.0 = [4], input.1 = [4]", 2, t, (uint32_t[]){W, G});
}

static void overlaps_matter_when_they_are_written(void **state) {
  (void)state;
  const aoth_tensor_t t[3] = {row(4, 2), row(4, 0), row(2, 6)};
  expect("", 3, t, (uint32_t[]){G, G, 0});
  expect("", 3, t, (uint32_t[]){S, S, W});
  expect("base.0 f32[6]: input.0 = [4] offset 2, input.1 = [4]", 3, t, (uint32_t[]){0, W, 0});
}

static void bases_are_numbered_by_their_first_input(void **state) {
  (void)state;
  const aoth_tensor_t t[5] = {row(4, 32), row(4, 0), row(2, 33), row(3, 1), row(4, 32)};
  expect("base.0 f32[4]: input.0 = [4], input.2 = [2] offset 1; base.1 f32[4]: input.1 = [4], input.3 = [3] offset 1; "
         "input.4 = input.0",
         5, t, (uint32_t[]){W, W, 0, 0, 0});
}

/* Ranges that interleave are not overlaps; one common element is. */
static void elements_count_not_ranges(void **state) {
  (void)state;
  const aoth_tensor_t halves[2] = {tensor(2, 4, 2, 4, 1, 0), tensor(2, 4, 2, 4, 1, 2)};
  expect("", 2, halves, (uint32_t[]){W, W});
  const aoth_tensor_t steps[2] = {tensor(1, 5, 0, 3, 0, 0), tensor(1, 4, 0, 4, 0, 0)}; /* 0 3 6 9 12 and 0 4 8 12 */
  expect("base.0 f32[13]: input.0 = [5] strides [3], input.1 = [4] strides [4]", 2, steps, (uint32_t[]){W, 0});
  const aoth_tensor_t apart[2] = {tensor(1, 4, 0, 3, 0, 0), tensor(1, 2, 0, 4, 0, 4)}; /* 0 3 6 9 and 4 8 */
  expect("", 2, apart, (uint32_t[]){W, W});
  const aoth_tensor_t cross[2] = {row(3, 3), tensor(1, 3, 0, 3, 0, 1)}; /* a row and a column */
  expect("base.0 f32[7]: input.0 = [3] offset 2, input.1 = [3] strides [3]", 2, cross, (uint32_t[]){W, 0});
}

/* Two readers belong together when both meet the same writer. */
static void groups_are_joined_through_their_members(void **state) {
  (void)state;
  const aoth_tensor_t t[3] = {row(2, 0), row(2, 2), row(2, 1)};
  expect("base.0 f32[4]: input.0 = [2], input.1 = [2] offset 2, input.2 = [2] offset 1", 3, t, (uint32_t[]){0, 0, W});
}

static void nothing_is_shared_without_elements(void **state) {
  (void)state;
  const aoth_tensor_t t[2] = {row(0, 0), row(0, 0)};
  expect("", 2, t, (uint32_t[]){W | S | G, W | S | G});
  const aoth_tensor_t scalars[2] = {tensor(0, 0, 0, 0, 0, 5), tensor(0, 0, 0, 0, 0, 5)};
  expect("input.1 = input.0", 2, scalars, (uint32_t[]){W, 0});
}

static void what_one_base_cannot_hold_is_refused(void **state) {
  (void)state;
  char text[400];
  aoth_tensor_t t[2] = {row(4, 0), row(4, 1)};
  t[1].dtype = AOT_I32;
  assert_int_equal(find(t, (uint32_t[]){W, 0}, 2, text, sizeof text), AOT_E_UNIMPLEMENTED);
  assert_non_null(strstr(text, "inputs 0 and 1 alias memory that the program writes, but they have different dtypes"));
  expect("", 2, t, (uint32_t[]){0, 0});
  t[1].offset = 4;
  expect("", 2, t, (uint32_t[]){W, W});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(duplicates_matter_when_they_change_or_have_a_gradient),
      cmocka_unit_test(a_member_without_gradient_is_another_tensor),
      cmocka_unit_test(overlaps_matter_when_they_are_written),
      cmocka_unit_test(bases_are_numbered_by_their_first_input),
      cmocka_unit_test(elements_count_not_ranges),
      cmocka_unit_test(groups_are_joined_through_their_members),
      cmocka_unit_test(nothing_is_shared_without_elements),
      cmocka_unit_test(what_one_base_cannot_hold_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
