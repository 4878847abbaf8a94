/* The silent errors of random numbers under recomputation, each as a test that would have caught it, named by the
 * thread that reports it: PyTorch issues by number, DeepSpeed 6811. Models with dropout run over lists of stages that
 * save everything, the least, what a budget of memory allows, or nothing (everything runs again in the backward), in
 * other orders; outputs and gradients must agree bit for bit. */
#include "replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof *(a))

/* ---- models and their inputs ---- */

static int64_t words[2][32];
static float images[4 * 3 * 8 * 8];
static int64_t classes[4];
static const int64_t words_sizes[2] = {4, 8}, images_sizes[4] = {4, 3, 8, 8}, classes_sizes[1] = {4};

static void make_inputs(const char *model, aot_tensor_t in[2]) {
  for (int i = 0; i < 32; i++) {
    words[0][i] = 1 + i * 7 % 31;
    words[1][i] = strstr(model, "bert") && i % 3 ? -100 : 1 + i * 11 % 31;
    if (strstr(model, "bert") && i % 8 >= 6) words[0][i] = 0;
  }
  for (size_t i = 0; i < N(images); i++) images[i] = (float)sin(0.37 * (double)i);
  for (int i = 0; i < 4; i++) classes[i] = i;
  if (strstr(model, "vit")) {
    in[0] = replay_tensor(images, AOT_F32, 4, images_sizes, NULL);
    in[1] = replay_tensor(classes, AOT_I64, 1, classes_sizes, NULL);
  } else {
    in[0] = replay_tensor(words[0], AOT_I64, 2, words_sizes, NULL);
    in[1] = replay_tensor(words[1], AOT_I64, 2, words_sizes, NULL);
  }
}

static const char *const models[] = {"tests/models/dropout_gpt/train.pt2", "tests/models/dropout_gpt/core.pt2",
                                     "tests/models/dropout_vit/train.pt2", "tests/models/dropout_vit/core.pt2",
                                     "tests/models/dropout_bert/train.pt2"};

#define ALL_SAVED "functionalize rng autograd partition-default backend-ref"

/* Forward and backward, n_steps times, from seed and offset 0. */
static void run(const char *model, const char *stages, int n_steps, replay_bits_t *bits, uint64_t *out_nbytes_saved) {
  aot_tensor_t in[2];
  aothost_t *h = replay_open(model, stages);
  make_inputs(model, in);
  assert_int_equal(aothost_seed(h, 11, 0), AOT_OK);
  for (int i = 0; i < n_steps; i++) {
    assert_int_equal(aothost_forward(h, in, 2), AOT_OK);
    assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK);
    replay_keep(h, bits);
  }
  if (out_nbytes_saved) *out_nbytes_saved = aoth_step_sizes(replay_step(h)).nbytes_saved;
  aothost_close(h);
}

static void same_as_all_saved(const char *model, const char *stages, uint64_t *out_saved, uint64_t *out_all) {
  replay_bits_t all = {0}, other = {0};
  run(model, ALL_SAVED, 3, &all, out_all);
  run(model, stages, 3, &other, out_saved);
  if (!replay_same(&all, &other)) fail_msg("%s over '%s' gives other bits than with everything saved", model, stages);
  replay_free(&all);
  replay_free(&other);
}

/* ---- threads ---- */

/* Dropout that runs again in the backward draws the forward's numbers: bytes decide, a budget of memory, or every node
 * has to run again. */
static void pytorch_190758_dropout_recomputed_under_a_budget(void **state) {
  static const struct {
    const char *stages;
    uint64_t part; /* of what saving everything saves, at most one of so many */
  } ways[] = {
      {"functionalize rng autograd partition-mincut backend-ref", 1},
      {"functionalize rng autograd partition-mincut:objective=memory,budget=0.9 backend-ref", 1},
      {"functionalize rng autograd partition-mincut:objective=memory,budget=0.8 backend-ref", 1},
      {"functionalize autograd rng partition-mincut:objective=memory,budget=0.8 backend-ref", 1},
      {"functionalize rng autograd tag-all partition-default backend-ref", 4},
      {"functionalize rng autograd tag-all partition-mincut backend-ref", 4},
      {"functionalize rng autograd "
       "partition-mincut:ban-expensive=false,ban-heavy=false,ban-materialized=false,ban-reductions=false,"
       "ban-far-apart=false backend-ref",
       4},
  };
  (void)state;
  for (size_t m = 0; m < N(models); m++)
    for (size_t w = 0; w < N(ways); w++) {
      uint64_t saved, all;
      same_as_all_saved(models[m], ways[w].stages, &saved, &all);
      if (saved > all / ways[w].part)
        fail_msg("%s over '%s': %llu of %llu bytes are saved still", models[m], ways[w].stages,
                 (unsigned long long)saved, (unsigned long long)all);
    }
}

/* The comparison can fail: with fresh numbers in the backward gradients are others, outputs the same. */
static void test_fresh_numbers_are_seen(void **state) {
  (void)state;
  for (size_t m = 0; m < N(models); m++) {
    replay_bits_t all = {0}, fresh = {0};
    run(models[m], ALL_SAVED, 1, &all, NULL);
    run(models[m], "functionalize rng autograd tag-all partition-default redraw backend-ref", 1, &fresh, NULL);
    assert_int_equal(all.size, fresh.size);
    assert_memory_equal(all.data, fresh.data, strlen("output.0") + sizeof(float));
    assert_false(replay_same(&all, &fresh));
    replay_free(&all);
    replay_free(&fresh);
  }
}

/* The same by another route: dropout has been differentiated before its numbers are explicit. */
static void pytorch_190717_joint_graph_recomputed(void **state) {
  static const char *const ways[] = {"functionalize autograd rng partition-default backend-ref",
                                     "functionalize autograd rng partition-mincut backend-ref",
                                     "functionalize autograd rng tag-all partition-default backend-ref"};
  (void)state;
  for (size_t m = 0; m < N(models); m++)
    for (size_t w = 0; w < N(ways); w++) same_as_all_saved(models[m], ways[w], NULL, NULL);
}

/* A mask goes by the index of an element, not by its place in memory: a transposed tensor is dropped as the contiguous
 * one, and no part of the mask repeats another. */
static void pytorch_198333_mask_of_strided_tensor(void **state) {
  enum { ROWS = 64, COLUMNS = 48, COUNT = ROWS * COLUMNS };
  static const int64_t sizes[2] = {ROWS, COLUMNS};
  static const char *const backends[] = {"functionalize rng backend-ref", "functionalize rng backend-cpu"};
  static const char *const programs[] = {"plugins/rng/tests/contiguous.ir", "plugins/rng/tests/strided.ir"};
  static float ones[COUNT];
  double *first = NULL;
  int64_t n;
  (void)state;
  for (int i = 0; i < COUNT; i++) ones[i] = 1;
  const aot_tensor_t in = replay_tensor(ones, AOT_F32, 2, sizes, NULL);
  for (size_t k = 0; k < 4; k++) {
    aothost_t *h = replay_open(programs[k / 2], backends[k % 2]);
    assert_int_equal(aothost_seed(h, 4, 9), AOT_OK);
    assert_int_equal(aothost_forward(h, &in, 1), AOT_OK);
    double *y = replay_numbers(h, "output.0", &n);
    assert_int_equal(n, COUNT);
    if (first) assert_memory_equal(y, first, COUNT * sizeof *y);
    if (first) free(y);
    else first = y;
    aothost_close(h);
  }
  for (int parts = 2; parts <= 8; parts *= 2) {
    const int part = COUNT / parts;
    int n_same = 0;
    for (int i = 0; i < part; i++) n_same += first[i] == first[i + part];
    assert_in_range(n_same, part / 2 - 4 * (int)sqrt(part), part / 2 + 4 * (int)sqrt(part));
  }
  free(first);
}

/* Independent nodes in another order draw what they drew. */
static void pytorch_192635_reorder_of_draws(void **state) {
  char stages[128];
  (void)state;
  for (int order = 1; order <= 4; order++)
    for (size_t m = 0; m < N(models); m += 2) {
      snprintf(stages, sizeof stages, "functionalize rng autograd shuffle:seed=%d partition-mincut backend-ref", order);
      same_as_all_saved(models[m], stages, NULL, NULL);
    }
}

/* A random operator that is to run again, but nothing in the backward needs it. */
static void pytorch_172730_recomputed_but_absent_in_backward(void **state) {
  static const char *const ways[] = {ALL_SAVED, "functionalize rng autograd tag-all partition-default backend-ref",
                                     "functionalize rng autograd tag-all partition-mincut backend-ref",
                                     "functionalize autograd rng tag-all partition-default backend-ref"};
  static const int64_t sizes[1] = {16};
  static float x[16];
  replay_bits_t bits[N(ways)] = {{0}};
  (void)state;
  for (int i = 0; i < 16; i++) x[i] = (float)(i + 1);
  for (size_t w = 0; w < N(ways); w++) {
    aothost_t *h = replay_open("plugins/rng/tests/absent.ir", ways[w]);
    const aot_tensor_t in = replay_tensor(x, AOT_F32, 1, sizes, NULL);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(aothost_forward(h, &in, 1), AOT_OK);
      assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK);
      replay_keep(h, &bits[w]);
    }
    aothost_close(h);
    assert_true(replay_same(&bits[0], &bits[w]));
  }
  for (size_t w = 0; w < N(ways); w++) replay_free(&bits[w]);
}

/* Attention with dropout, one executable run again and again: each run draws again, its backward draws what it drew,
 * and the same offset draws the same. */
static void pytorch_99905_attention_through_repeated_runs(void **state) {
  static const char *const ways[] = {ALL_SAVED, "functionalize rng autograd tag-all partition-default backend-ref",
                                     "functionalize rng autograd partition-mincut backend-cpu"};
  aot_tensor_t in[2];
  (void)state;
  make_inputs(models[0], in);
  for (size_t w = 0; w < N(ways); w++) {
    replay_bits_t runs[4] = {{0}}, again = {0}, twice = {0};
    int64_t offsets[4];
    aothost_t *h = replay_open(models[0], ways[w]);
    for (int i = 0; i < 4; i++) {
      offsets[i] = aothost_offset(h);
      assert_int_equal(aothost_forward(h, in, 2), AOT_OK);
      assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK);
      replay_keep(h, &runs[i]);
      for (int k = 0; k < i; k++) assert_false(replay_same(&runs[i], &runs[k]));
    }
    assert_int_equal(offsets[3] - offsets[2], offsets[1] - offsets[0]);
    assert_int_equal(aothost_seed(h, 0, offsets[2]), AOT_OK);
    assert_int_equal(aothost_forward(h, in, 2), AOT_OK);
    assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK);
    replay_keep(h, &again);
    assert_true(replay_same(&again, &runs[2]));
    assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK); /* again after the same forward */
    replay_keep(h, &twice);
    assert_true(replay_same(&twice, &again));
    for (int i = 0; i < 4; i++) replay_free(&runs[i]);
    replay_free(&again);
    replay_free(&twice);
    aothost_close(h);
  }
}

/* ---- masks ---- */

static double *masks_ir(const char *stages, int64_t seed, int64_t offset, const char *key) {
  static float ones[1000];
  static const int64_t sizes[1] = {1000};
  int64_t n;
  for (int i = 0; i < 1000; i++) ones[i] = 1;
  aothost_t *h = replay_open("plugins/rng/tests/masks.ir", stages);
  const aot_tensor_t in = replay_tensor(ones, AOT_F32, 1, sizes, NULL);
  const aot_tensor_t tangents[2] = {in, in};
  assert_int_equal(aothost_seed(h, seed, offset), AOT_OK);
  assert_int_equal(aothost_forward(h, &in, 1), AOT_OK);
  assert_int_equal(aothost_backward(h, tangents, 1), AOT_OK);
  double *numbers = replay_numbers(h, key, &n);
  assert_int_equal(n, 1000);
  aothost_close(h);
  return numbers;
}

/* y = dropout(w), w = 1: where y is not 0, the gradient of w is not 0 either. */
static void test_forward_and_backward_have_one_mask(void **state) {
  static const char *const ways[] = {ALL_SAVED, "functionalize rng autograd tag-all partition-default backend-ref",
                                     "functionalize rng autograd tag-all partition-mincut backend-cpu",
                                     "functionalize autograd rng partition-mincut backend-cpu"};
  (void)state;
  for (size_t w = 0; w < N(ways); w++) {
    double *y = masks_ir(ways[w], 3, 0, "output.0"), *g = masks_ir(ways[w], 3, 0, "grad.input.0");
    int n_kept = 0;
    for (int i = 0; i < 1000; i++) n_kept += y[i] != 0;
    assert_memory_equal(y, g, 1000 * sizeof *y);
    assert_in_range(n_kept, 750 - 60, 750 + 60);
    free(y);
    free(g);
  }
}

static int n_zeros(const double *a, int count) {
  int n = 0;
  for (int i = 0; i < count; i++) n += a[i] == 0;
  return n;
}

static int n_differ(const double *a, const double *b) {
  int n = 0;
  for (int i = 0; i < 1000; i++) n += (a[i] == 0) != (b[i] == 0);
  return n;
}

/* Two dropouts of one step, two seeds and two offsets: a quarter falls away each, so 0.375 of the places differ. */
static void test_draws_differ(void **state) {
  double *a = masks_ir(ALL_SAVED, 3, 0, "output.0"), *b = masks_ir(ALL_SAVED, 3, 0, "output.1");
  double *c = masks_ir(ALL_SAVED, 4, 0, "output.0"), *d = masks_ir(ALL_SAVED, 3, 2, "output.0");
  (void)state;
  assert_in_range(n_differ(a, b), 375 - 80, 375 + 80);
  assert_in_range(n_differ(a, c), 375 - 80, 375 + 80);
  assert_in_range(n_differ(a, d), 375 - 80, 375 + 80);
  free(a);
  free(b);
  free(c);
  free(d);
}

/* A state that leaves one program and enters another, as PyTorch's forward and backward hand it over. */
static void test_state_as_bytes(void **state) {
  static const char *const ways[] = {"rng backend-ref", "rng backend-cpu"};
  static const int64_t sizes[1] = {100};
  static float ones[100];
  int64_t n;
  (void)state;
  for (int i = 0; i < 100; i++) ones[i] = 1;
  for (size_t w = 0; w < N(ways); w++) {
    aothost_t *saves = replay_open("plugins/rng/tests/state_saved.ir", ways[w]);
    aothost_t *uses = replay_open("plugins/rng/tests/state_used.ir", ways[w]);
    aot_tensor_t in[2] = {replay_tensor(ones, AOT_F32, 1, sizes, NULL)};
    assert_int_equal(aothost_seed(saves, 21, 1000), AOT_OK);
    assert_int_equal(aothost_forward(saves, in, 1), AOT_OK);
    assert_int_equal(aothost_get(saves, "output.1", &in[1]), AOT_OK);
    assert_int_equal(aothost_forward(uses, in, 2), AOT_OK);
    double *first = replay_numbers(saves, "output.0", &n), *again = replay_numbers(uses, "output.0", &n);
    assert_int_equal(n, 100);
    assert_memory_equal(first, again, 100 * sizeof *first);
    assert_true(n_zeros(first, 100) > 20 && n_zeros(first, 100) < 80);
    free(first);
    free(again);
    aothost_close(saves);
    aothost_close(uses);
  }
}

static void set_parameters(aothost_t *h) {
  static const char *const keys[] = {"param.q", "param.k", "param.v"};
  static const int64_t sizes[4] = {2, 2, 5, 4};
  float data[80];
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 80; i++) data[i] = (float)sin(0.7 * i + k);
    const aot_tensor_t t = replay_tensor(data, AOT_F32, 4, sizes, NULL);
    assert_int_equal(aothost_set(h, keys[k], &t), AOT_OK);
  }
}

/* The backward kernel of a device drops what its forward dropped: outputs and gradients are those of the composite. */
static void test_attention_of_a_device(void **state) {
  static const char *const keys[] = {"output.0", "grad.q", "grad.k", "grad.v"};
  static const int64_t sizes[4] = {2, 2, 5, 4};
  static float tangent[80];
  (void)state;
  for (int i = 0; i < 80; i++) tangent[i] = (float)cos(0.9 * i);
  const aot_tensor_t t = replay_tensor(tangent, AOT_F32, 4, sizes, NULL);
  aothost_t *h[2] = {replay_open("plugins/rng/tests/attention_composite.ir", ALL_SAVED),
                     replay_open("plugins/rng/tests/attention_device.ir", "rng partition-mincut backend-ref")};
  for (int k = 0; k < 2; k++) {
    set_parameters(h[k]);
    assert_int_equal(aothost_seed(h[k], 6, 60), AOT_OK);
    assert_int_equal(aothost_forward(h[k], NULL, 0), AOT_OK);
    assert_int_equal(aothost_backward(h[k], &t, 1), AOT_OK);
  }
  for (size_t i = 0; i < N(keys); i++) {
    int64_t n;
    double *a = replay_numbers(h[0], keys[i], &n), *b = replay_numbers(h[1], keys[i], &n);
    for (int64_t j = 0; j < n; j++)
      if (!(fabs(a[j] - b[j]) <= 2e-5))
        fail_msg("%s[%d]: %g, from the device's kernel %g", keys[i], (int)j, a[j], b[j]);
    free(a);
    free(b);
  }
  aothost_close(h[0]);
  aothost_close(h[1]);
}

/* ---- finite differences at a fixed seed ---- */

static double loss_at(aothost_t *h, const aot_tensor_t *in, double *w, int i, double delta) {
  static const int64_t sizes[2] = {4, 6};
  const aot_tensor_t t = replay_tensor(w, AOT_F64, 2, sizes, NULL);
  int64_t n;
  w[i] += delta;
  assert_int_equal(aothost_set(h, "param.w", &t), AOT_OK);
  w[i] -= delta;
  assert_int_equal(aothost_seed(h, 8, 5), AOT_OK);
  assert_int_equal(aothost_forward(h, in, 1), AOT_OK);
  double *loss = replay_numbers(h, "output.0", &n), value = *loss;
  free(loss);
  return value;
}

static void test_finite_differences(void **state) {
  static const char *const ways[] = {ALL_SAVED, "functionalize rng autograd tag-all partition-default backend-ref",
                                     "functionalize rng autograd shuffle:seed=1 partition-mincut backend-ref"};
  static const int64_t sizes[2] = {4, 6};
  double w[24], x[24];
  (void)state;
  for (int i = 0; i < 24; i++) w[i] = sin(i + 1.0), x[i] = cos(0.3 * i);
  for (size_t k = 0; k < N(ways); k++) {
    int64_t n;
    int n_not_zero = 0;
    aothost_t *h = replay_open("plugins/rng/tests/differences.ir", ways[k]);
    const aot_tensor_t in = replay_tensor(x, AOT_F64, 2, sizes, NULL);
    loss_at(h, &in, w, 0, 0);
    assert_int_equal(aothost_backward(h, NULL, 0), AOT_OK);
    double *g = replay_numbers(h, "grad.w", &n);
    assert_int_equal(n, 24);
    for (int i = 0; i < 24; i++) {
      const double step = 1e-5, slope = (loss_at(h, &in, w, i, step) - loss_at(h, &in, w, i, -step)) / (2 * step);
      n_not_zero += g[i] != 0;
      if (!(fabs(slope - g[i]) <= 1e-6 * (1 + fabs(slope))))
        fail_msg("'%s': gradient %d is %.9g, the slope %.9g", ways[k], i, g[i], slope);
    }
    assert_true(n_not_zero > 8);
    free(g);
    aothost_close(h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pytorch_190758_dropout_recomputed_under_a_budget),
      cmocka_unit_test(test_fresh_numbers_are_seen),
      cmocka_unit_test(pytorch_190717_joint_graph_recomputed),
      cmocka_unit_test(pytorch_198333_mask_of_strided_tensor),
      cmocka_unit_test(pytorch_192635_reorder_of_draws),
      cmocka_unit_test(pytorch_172730_recomputed_but_absent_in_backward),
      cmocka_unit_test(pytorch_99905_attention_through_repeated_runs),
      cmocka_unit_test(test_forward_and_backward_have_one_mask),
      cmocka_unit_test(test_draws_differ),
      cmocka_unit_test(test_state_as_bytes),
      cmocka_unit_test(test_attention_of_a_device),
      cmocka_unit_test(test_finite_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
