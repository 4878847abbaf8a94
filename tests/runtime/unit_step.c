/* Steps of a pretended executable: sizes, geometry, order, results by key, what is refused. */
#include "pretend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float numbers[24];

static aoth_tensor_t batch(int64_t rows) {
  for (int i = 0; i < 24; i++) numbers[i] = (float)(i + 1);
  return aoth_tensor_make(numbers, AOT_F32, 2, (int64_t[]){rows, 3});
}

static const float *floats(const aoth_step_t *s, const char *key) {
  static aoth_tensor_t t;
  if (!aoth_step_get(s, key, &t)) fail_msg("there is no %s", key);
  return (const float *)t.data + t.offset;
}

static aot_status_t backward_of_loss(aoth_step_t *s) {
  float one = 1;
  aoth_tensor_t t = aoth_tensor_scalar(&one, AOT_F32);
  const aoth_tensor_t *tangents[1] = {&t};
  return aoth_step_backward(s, tangents, 1);
}

static void test_one_step(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(2), t; /* 1 2 3 / 4 5 6, w = 1 2 3 */
  assert_int_equal(aoth_step_n_inputs(s), 1);
  assert_int_equal(aoth_step_n_outputs(s), 2);
  assert_int_equal(aoth_step_loss(s), 0);
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_true(*floats(s, "output.0") == 46);
  assert_true(floats(s, "output.1")[5] == 18);
  assert_false(aoth_step_get(s, "grad.w", &t));
  assert_int_equal(backward_of_loss(s), AOT_OK);
  assert_true(floats(s, "grad.w")[0] == 5 && floats(s, "grad.w")[2] == 9);
  assert_true(floats(s, "grad.tied.w")[1] == 7); /* any of its names */
  assert_true(floats(s, "grad.input.0")[4] == 2);
  assert_int_equal(aoth_step_update(s, 0.5), AOT_OK);
  assert_true(floats(s, "param.w")[0] == -1.5f && floats(s, "param.tied.w")[2] == -1.5f);
  assert_true(floats(s, "state.m.w")[1] == 7);
  assert_true(aoth_step_get(s, "buffer_after.calls", &t));
  assert_int_equal(kit_element_load_int(AOT_I64, t.data), 1);
  assert_true(*floats(s, "output.0") == 46); /* still readable after the update took the saved values' place */
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

/* The second step starts from what the first left, reset from the model again. */
static void test_steps_follow_each_other(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(1), t;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
    assert_int_equal(backward_of_loss(s), AOT_OK);
    assert_int_equal(aoth_step_update(s, 1), AOT_OK);
  }
  assert_true(floats(s, "param.w")[0] == 1 - 1 - 2 - 3);
  assert_int_equal(aoth_step_reset(s), AOT_OK);
  assert_false(aoth_step_get(s, "output.0", &t));
  assert_true(floats(s, "param.w")[0] == 1 && floats(s, "state.m.w")[0] == 0);
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

static void test_sizes_change(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  static const int64_t rows[] = {1, 8, 3, 3};
  for (int i = 0; i < 4; i++) {
    aoth_tensor_t x = batch(rows[i]), t;
    assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
    assert_true(aoth_step_get(s, "output.1", &t));
    assert_int_equal(t.sizes[0], rows[i]);
    assert_int_equal(backward_of_loss(s), AOT_OK);
    assert_true(floats(s, "grad.w")[0] == (float)(rows[i] * (3 * rows[i] - 1) / 2)); /* 1 + 4 + 7 + .. */
  }
  assert_int_equal(aoth_step_sizes(s).nbytes_saved, 3 * 3 * 4);
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

/* Inputs may come with any strides; the executable sees those that it was compiled for. */
static void test_strided_input(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(2);
  x.strides[0] = 1; /* columns 1 2 / 3 4 / 5 6 */
  x.strides[1] = 2;
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_true(floats(s, "output.1")[1] == 6 && floats(s, "output.1")[3] == 2);
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

static void test_wrong_inputs(void **state) {
  (void)state;
  static const struct {
    int32_t dtype, rank;
    int64_t sizes[3];
    uint32_t n;
    const char *says;
  } rows[] = {
      {AOT_F64, 2, {2, 3, 0}, 1, "input 0 (x): expected f32[s0, 3], got f64[2, 3]: the dtype differs"},
      {AOT_F32, 1, {3, 0, 0}, 1, "expected f32[s0, 3], got f32[3]: the number of dimensions differs"},
      {AOT_F32, 2, {2, 4, 0}, 1, "got f32[2, 4]: dimension 1: expected 3, got 4"},
      {AOT_F32, 2, {9, 3, 0}, 1, "size s0 = 9, but the model was exported for s0 in 1..8"},
      {AOT_F32, 2, {0, 3, 0}, 1, "size s0 = 0"},
      {AOT_F32, 2, {2, 3, 0}, 2, "the model takes 1 input, 2 are given"},
      {AOT_F32, 2, {2, 3, 0}, 0, "the model takes 1 input, 0 are given"},
  };
  static double storage[64];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pretend_t p;
    pretend_init(&p);
    aoth_step_t *s = pretend_step(&p);
    aoth_tensor_t x[2];
    x[0] = x[1] = aoth_tensor_make(storage, rows[i].dtype, rows[i].rank, rows[i].sizes);
    assert_int_equal(aoth_step_forward(s, x, rows[i].n), AOT_E_INVALID);
    if (!strstr(pretend_said(&p), rows[i].says)) fail_msg("row %zu says %s", i, pretend_said(&p));
    assert_int_equal(p.n_calls, 0);
    aoth_step_destroy(s);
    pretend_deinit(&p);
  }
}

static void test_wrong_order(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(2);
  assert_int_equal(backward_of_loss(s), AOT_E_PRECONDITION);
  assert_int_equal(aoth_step_update(s, 1), AOT_E_PRECONDITION);
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_int_equal(aoth_step_update(s, 1), AOT_E_PRECONDITION);
  assert_int_equal(backward_of_loss(s), AOT_OK);
  assert_int_equal(backward_of_loss(s), AOT_OK); /* again, with other tangents: fine */
  assert_int_equal(aoth_step_update(s, 1), AOT_OK);
  assert_int_equal(backward_of_loss(s), AOT_E_PRECONDITION); /* the saved values are gone */
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

static void test_wrong_tangent(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(2), bad = batch(2);
  const aoth_tensor_t *tangents[2] = {&bad, NULL};
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_int_equal(aoth_step_backward(s, tangents, 2), AOT_E_INVALID);
  assert_non_null(strstr(pretend_said(&p), "tangent 0: expected f32[], got f32[2, 3]"));
  tangents[0] = NULL;
  tangents[1] = &bad;
  assert_int_equal(aoth_step_backward(s, tangents, 2), AOT_OK);
  assert_true(floats(s, "grad.w")[0] == 17); /* 1*1 + 4*4 */
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

static void test_setting_leaves(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  float w[3] = {10, 20, 30};
  aoth_tensor_t value = aoth_tensor_make(w, AOT_F32, 1, (int64_t[]){3}), x = batch(1);
  assert_int_equal(aoth_step_set(s, "param.tied.w", &value), AOT_OK);
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_true(*floats(s, "output.0") == 140);
  assert_int_equal(aoth_step_set(s, "param.v", &value), AOT_E_NOT_FOUND);
  assert_int_equal(aoth_step_set(s, "output.0", &value), AOT_E_NOT_FOUND);
  value.sizes[0] = 2;
  assert_int_equal(aoth_step_set(s, "param.w", &value), AOT_E_INVALID);
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

static aot_status_t note_key(void *self, const char *key, const aoth_tensor_t *t) {
  (void)t;
  strcat(self, key);
  strcat(self, " ");
  return AOT_OK;
}

static void test_keys(void **state) {
  (void)state;
  pretend_t p;
  pretend_init(&p);
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = batch(2);
  char keys[300] = "";
  assert_int_equal(aoth_step_keys(s, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS, note_key, keys), AOT_OK);
  assert_string_equal(keys, "");
  assert_int_equal(aoth_step_forward(s, &x, 1), AOT_OK);
  assert_int_equal(backward_of_loss(s), AOT_OK);
  aoth_step_keys(s, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS | AOTH_KEYS_LEAVES, note_key, keys);
  assert_string_equal(keys, "output.0 output.1 grad.w grad.input.0 param.w buffer.calls state.m.w ");
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

/* Programs that cannot be run are refused before anything runs. */
static void test_refused_programs(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *says;
  } rows[] = {
      {"graph @backward backward", "graph @backward joint", "joint graph that was not divided"},
      {"rule copy_back 3\n", "", "no boundary rule copies it back"},
      {"out saved 0 = %s", "out saved 1 = %s", "saved slot 0, which the forward does not save"},
      {"out gradient 0 = %gw", "out gradient 0 = none", "reads the gradient of w, which the backward does not compute"},
      {"in %tl = tangent 0", "in %tl = tangent 7", "tangent of output 7"},
      {"in %lr = hyper 0", "in %lr = hyper 3", "hyper-parameter 3"},
      {"graph @forward forward", "graph @forward region", "no forward graph"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pretend_t p;
    pretend_init(&p);
    char *text = malloc(strlen(pretend_text) + 64), *at;
    const char *hit = strstr(pretend_text, rows[i].from);
    assert_non_null(text);
    assert_non_null(hit);
    strcpy(text, pretend_text);
    at = text + (hit - pretend_text);
    sprintf(at, "%s%s", rows[i].to, hit + strlen(rows[i].from));
    world_reset(&p.world);
    aot_status_t status = world_parse(&p.world, text);
    aoth_step_t *s = NULL;
    if (status == AOT_OK) status = aoth_step_create(p.world.p, &p.exec, p.world.sink, &s);
    if (status == AOT_OK || s) fail_msg("row %zu was accepted", i);
    if (!strstr(pretend_said(&p), rows[i].says)) fail_msg("row %zu says %s", i, pretend_said(&p));
    free(text);
    pretend_deinit(&p);
  }
}

/* ---- an output whose size the run reports ---- */

static const char open_text[] = "aot 1\n"
                                "properties imported functional partitioned\n"
                                "symbol u0 in [0, 8] hint 2\n"
                                "leaf 0 user_input 0 \"x\" : f32[3]\n"
                                "graph @forward forward {\n"
                                "  in %x = user_input 0 : f32[3]\n"
                                "  %y : f32[u0] = tiny.add.Tensor %x, 1\n"
                                "  out user_output 0 = %y\n"
                                "}\n";

/* Reports the size it is set to, and fills the output with it. */
static aot_status_t run_open(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                             uint64_t *known) {
  const int64_t *size = self;
  aot_tensor_t y;
  (void)known;
  assert_int_equal(what->outputs[0].rank, AOT_RANK_OPEN);
  symbols[0] = *size;
  const aot_status_t status = open->allocate(open, 0, symbols, 1, &y);
  for (int64_t i = 0; status == AOT_OK && i < *size; i++) ((float *)y.data)[i] = (float)*size;
  return status;
}

/* A forward that fails before its output has a size, or memory, leaves a step that can run again. */
static void test_open_output(void **state) {
  (void)state;
  const int64_t sizes[] = {AOT_SYMBOL_UNKNOWN, 2, AOT_SYMBOL_UNKNOWN, 9, 5};
  int64_t size;
  pretend_t p;
  pretend_init(&p);
  world_deinit(&p.world);
  world_init(&p.world);
  if (world_parse(&p.world, open_text) != AOT_OK) fail_msg("%s", pretend_said(&p));
  p.exec.self = &size;
  p.exec.run = run_open;
  aoth_step_t *s = pretend_step(&p);
  aoth_tensor_t x = aoth_tensor_make(numbers, AOT_F32, 1, (int64_t[]){3}), y;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size = sizes[i];
    const aot_status_t status = aoth_step_forward(s, &x, 1);
    if (size == AOT_SYMBOL_UNKNOWN) {
      assert_int_equal(status, AOT_E_UNIMPLEMENTED);
      assert_non_null(strstr(pretend_said(&p), "unbound size symbol u0 of a user output"));
    } else if (size > 8) {
      assert_int_equal(status, AOT_E_INVALID);
    } else {
      assert_int_equal(status, AOT_OK);
      assert_true(aoth_step_get(s, "output.0", &y));
      assert_int_equal(y.sizes[0], size);
      assert_true(floats(s, "output.0")[size - 1] == (float)size);
    }
  }
  aoth_step_destroy(s);
  pretend_deinit(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_step),      cmocka_unit_test(test_steps_follow_each_other),
      cmocka_unit_test(test_sizes_change),  cmocka_unit_test(test_strided_input),
      cmocka_unit_test(test_wrong_inputs),  cmocka_unit_test(test_wrong_order),
      cmocka_unit_test(test_wrong_tangent), cmocka_unit_test(test_setting_leaves),
      cmocka_unit_test(test_keys),          cmocka_unit_test(test_refused_programs),
      cmocka_unit_test(test_open_output),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
