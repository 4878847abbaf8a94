/* The exit rules of the boundary, one by one and together, on small storages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <step/boundary.h>
#include <string.h>

#define N_LEAVES 3 /* row 0 is empty */
#define N_OUTPUTS 3

typedef struct scene {
  aoth_sink_t *sink;
  float storage[N_LEAVES][6], result[N_OUTPUTS][6], hidden[6];
  aoth_tensor_t leaves[N_LEAVES], outputs[N_OUTPUTS], bases[1], update[N_LEAVES];
  const aoth_tensor_t *updates[N_LEAVES];
  aot_rule_t rules[8];
  aoth_boundary_t b;
} scene_t;

static aot_status_t copy(void *self, const aoth_tensor_t *to, const aoth_tensor_t *from) {
  (void)self;
  aoth_tensor_copy(to, from);
  return AOT_OK;
}

/* Leaves and outputs are [2, 3]: leaf i counts from 10*(i - 1), output i from 100*i, the base from 1000. */
static void set_up(scene_t *s) {
  static const int64_t sizes[2] = {2, 3};
  memset(s, 0, sizeof *s);
  s->sink = aoth_sink_create(NULL);
  for (int i = 0; i < 6; i++) {
    for (int k = 1; k < N_LEAVES; k++) s->storage[k][i] = (float)(10 * (k - 1) + i);
    for (int k = 0; k < N_OUTPUTS; k++) s->result[k][i] = (float)(100 * k + i);
    s->hidden[i] = (float)(1000 + i);
  }
  for (int k = 1; k < N_LEAVES; k++) s->leaves[k] = aoth_tensor_make(s->storage[k], AOT_F32, 2, sizes);
  for (int k = 0; k < N_OUTPUTS; k++) s->outputs[k] = aoth_tensor_make(s->result[k], AOT_F32, 2, sizes);
  s->bases[0] = aoth_tensor_make(s->hidden, AOT_F32, 2, sizes);
  s->b = (aoth_boundary_t){
      .rules = s->rules,
      .n_leaves = N_LEAVES,
      .n_outputs = N_OUTPUTS,
      .n_bases = 1,
      .leaves = s->leaves,
      .updates = s->updates,
      .outputs = s->outputs,
      .bases = s->bases,
      .copy = copy,
      .sink = s->sink,
  };
}

static void add_rule(scene_t *s, int32_t kind, uint32_t a, uint32_t b, int32_t rank, const int64_t *sizes,
                     const int64_t *strides, int64_t offset) {
  s->rules[s->b.n_rules++] =
      (aot_rule_t){.kind = kind, .a = a, .b = b, .rank = rank, .sizes = sizes, .strides = strides, .offset = offset};
}

static aot_status_t leave(scene_t *s) {
  AOT_TRY(aoth_boundary_copy_back(&s->b));
  AOT_TRY(aoth_boundary_restride(&s->b));
  return aoth_boundary_outputs(&s->b);
}

static float at(const aoth_tensor_t *t, int64_t i, int64_t j) {
  return ((const float *)t->data)[t->offset + i * t->strides[0] + j * t->strides[1]];
}

static const int64_t tall[2] = {3, 2}, by_column[2] = {1, 3}, six[1] = {6}, one[1] = {1};

/* x.t_(); x.mul_(10) : the new value arrives in the shape of the leaf. */
static void test_copy_back_then_restride(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  float fresh[6] = {0, 10, 20, 30, 40, 50}; /* [2, 3] */
  s.update[1] = aoth_tensor_make(fresh, AOT_F32, 2, (int64_t[]){2, 3});
  s.updates[1] = &s.update[1];
  add_rule(&s, AOT_RULE_COPY_BACK, 1, 0, 0, NULL, NULL, 0);
  add_rule(&s, AOT_RULE_RESTRIDE, 1, 0, 2, tall, by_column, 0);
  assert_int_equal(leave(&s), AOT_OK);
  assert_int_equal(s.leaves[1].sizes[0], 3);
  assert_true(at(&s.leaves[1], 1, 0) == 10 && at(&s.leaves[1], 1, 1) == 40);
  const float storage[6] = {0, 10, 20, 30, 40, 50};
  assert_memory_equal(s.storage[1], storage, sizeof storage);
  aoth_sink_destroy(s.sink);
}

/* A rule whose update is in another graph does nothing here. */
static void test_copy_back_of_another_graph(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  add_rule(&s, AOT_RULE_COPY_BACK, 2, 0, 0, NULL, NULL, 0);
  assert_int_equal(leave(&s), AOT_OK);
  assert_true(s.storage[2][0] == 10);
  aoth_sink_destroy(s.sink);
}

/* Outputs that are inputs show what the call wrote into them, and share their storage. */
static void test_outputs_that_are_inputs(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  float fresh[6] = {7, 7, 7, 7, 7, 8};
  s.update[1] = aoth_tensor_make(fresh, AOT_F32, 2, (int64_t[]){2, 3});
  s.updates[1] = &s.update[1];
  add_rule(&s, AOT_RULE_SAME_INPUT, 0, 1, 0, NULL, NULL, 0);
  add_rule(&s, AOT_RULE_VIEW_INPUT, 1, 1, 2, tall, by_column, 0);
  add_rule(&s, AOT_RULE_COPY_BACK, 1, 0, 0, NULL, NULL, 0);
  assert_int_equal(leave(&s), AOT_OK);
  assert_ptr_equal(s.outputs[0].data, s.storage[1]);
  assert_ptr_equal(s.outputs[1].data, s.storage[1]);
  assert_true(at(&s.outputs[0], 1, 2) == 8 && at(&s.outputs[1], 2, 1) == 8);
  aoth_sink_destroy(s.sink);
}

/* Output 0 is output 1, which looks into output 2, which looks into the hidden base. */
static void test_chain_of_outputs(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  add_rule(&s, AOT_RULE_SAME_OUTPUT, 0, 1, 0, NULL, NULL, 0);
  add_rule(&s, AOT_RULE_VIEW_OUTPUT, 1, 2, 2, tall, by_column, 0);
  add_rule(&s, AOT_RULE_VIEW_BASE, 2, 0, 1, six, one, 0);
  assert_int_equal(leave(&s), AOT_OK);
  for (int k = 0; k < 3; k++) assert_ptr_equal(s.outputs[k].data, s.hidden);
  assert_int_equal(s.outputs[2].rank, 1);
  assert_true(at(&s.outputs[0], 2, 1) == 1005);
  aoth_sink_destroy(s.sink);
}

static void test_broken_rules(void **state) {
  (void)state;
  static const int64_t seven[1] = {7};
  static const struct {
    int32_t kind;
    uint32_t a, b;
    const int64_t *sizes;
    int64_t offset;
    const char *says;
  } rows[] = {
      {AOT_RULE_COPY_BACK, 9, 0, six, 0, "no such leaf"},
      {AOT_RULE_RESTRIDE, 9, 0, six, 0, "no such leaf"},
      {AOT_RULE_COPY_BACK, 0, 0, six, 0, "no such leaf"},
      {AOT_RULE_RESTRIDE, 1, 0, seven, 0, "outside the storage"},
      {AOT_RULE_VIEW_INPUT, 0, 1, six, 1, "outside the storage"},
      {AOT_RULE_VIEW_INPUT, 0, 1, six, -1, "outside the storage"},
      {AOT_RULE_VIEW_INPUT, 0, 5, six, 0, "does not exist"},
      {AOT_RULE_VIEW_INPUT, 0, 0, six, 0, "does not exist"},
      {AOT_RULE_SAME_OUTPUT, 0, 5, six, 0, "does not exist"},
      {AOT_RULE_VIEW_BASE, 0, 1, six, 0, "does not exist"},
      {AOT_RULE_SAME_INPUT, 5, 1, six, 0, "no such user output"},
      {AOT_RULE_SAME_OUTPUT, 0, 0, six, 0, "circle"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    scene_t s;
    set_up(&s);
    add_rule(&s, rows[i].kind, rows[i].a, rows[i].b, 1, rows[i].sizes, one, rows[i].offset);
    assert_int_equal(leave(&s), AOT_E_CONTRACT);
    if (!strstr(aoth_sink_text(s.sink), rows[i].says)) fail_msg("row %zu says %s", i, aoth_sink_text(s.sink));
    aoth_sink_destroy(s.sink);
  }
}

static void test_two_rules_for_one_output(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  add_rule(&s, AOT_RULE_SAME_INPUT, 0, 1, 0, NULL, NULL, 0);
  add_rule(&s, AOT_RULE_SAME_INPUT, 0, 2, 0, NULL, NULL, 0);
  assert_int_equal(leave(&s), AOT_E_CONTRACT);
  aoth_sink_destroy(s.sink);
}

static void test_update_of_another_shape(void **state) {
  (void)state;
  scene_t s;
  set_up(&s);
  s.update[1] = aoth_tensor_make(s.hidden, AOT_F32, 2, tall);
  s.updates[1] = &s.update[1];
  add_rule(&s, AOT_RULE_COPY_BACK, 1, 0, 0, NULL, NULL, 0);
  assert_int_equal(leave(&s), AOT_E_CONTRACT);
  assert_true(s.storage[1][1] == 1);
  aoth_sink_destroy(s.sink);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copy_back_then_restride), cmocka_unit_test(test_copy_back_of_another_graph),
      cmocka_unit_test(test_outputs_that_are_inputs), cmocka_unit_test(test_chain_of_outputs),
      cmocka_unit_test(test_broken_rules),            cmocka_unit_test(test_two_rules_for_one_output),
      cmocka_unit_test(test_update_of_another_shape),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
