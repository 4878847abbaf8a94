/* Where inputs come from: made-up numbers, safetensors, windows of tokens. */
#include "pretend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <trainer/feed.h>
#include <trainer/tensors/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];
static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "aothost-feed-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}
static const char *in_folder(const char *name) {
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
static void write_bytes(const char *path, const void *data, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, n, f), n);
  fclose(f);
}

/* A model that takes tokens and the next tokens. */
static const char tokens_text[] = "aot 1\n"
                                  "properties imported functional\n"
                                  "symbol b in [1, 64] hint 2\n"
                                  "leaf 0 user_input 0 \"tokens\" : i64[b, 4]\n"
                                  "leaf 1 user_input 1 \"targets\" : i32[b, 4]\n"
                                  "graph @forward forward {\n"
                                  "  in %x = user_input 0 : i64[b, 4]\n"
                                  "  in %y = user_input 1 : i32[b, 4]\n"
                                  "  %z : f32[] = tiny.add.Tensor %x, %y\n"
                                  "  out loss 0 = %z\n"
                                  "}\n";
/* Integers whose sample says 5..7, a bool, a 16-bit float. */
static const char mixed_text[] =
    "aot 1\n"
    "properties imported functional\n"
    "leaf 0 user_input 0 \"n\" : i64[3] data \"050000000000000007000000000000000600000000000000\"\n"
    "leaf 1 user_input 1 \"mask\" : bool[50]\n"
    "leaf 2 user_input 2 \"h\" : bf16[50]\n"
    "leaf 3 user_input 3 \"k\" : i32[50]\n"
    "graph @forward forward {\n"
    "  in %n = user_input 0 : i64[3]\n"
    "  %z : f32[] = tiny.add.Tensor %n, 1\n"
    "  out loss 0 = %z\n"
    "}\n";

typedef struct scene {
  pretend_t p;
  aoth_step_t *step;
  aoth_feed_t *feed;
  aoth_random_t random;
  aoth_data_spec_t spec;
} scene_t;

static aot_status_t open_feed_of(scene_t *s, const char *text, aoth_data_spec_t spec, aoth_feed_ranks_t ranks) {
  pretend_init(&s->p);
  world_reset(&s->p.world);
  if (world_parse(&s->p.world, text) != AOT_OK) fail_msg("%s", pretend_said(&s->p));
  s->step = pretend_step(&s->p);
  s->spec = spec;
  s->spec.where = (aoth_where_t){.file = "train.yaml", .line = 7, .column = 3};
  aoth_random_seed(&s->random, 5);
  return aoth_feed_open(&s->spec, &ranks, s->step, s->p.world.p, s->p.world.sink, &s->feed);
}

static aot_status_t open_feed(scene_t *s, const char *text, aoth_data_spec_t spec) {
  return open_feed_of(s, text, spec, (aoth_feed_ranks_t){.n = 1});
}

static const aoth_tensor_t *next(scene_t *s, int64_t step) {
  const aoth_tensor_t *t;
  uint32_t n;
  assert_int_equal(aoth_feed_next(s->feed, &s->random, step, &t, &n), AOT_OK);
  assert_int_equal(n, aoth_step_n_inputs(s->step));
  return t;
}

static void close_feed(scene_t *s) {
  aoth_feed_close(s->feed);
  aoth_step_destroy(s->step);
  pretend_deinit(&s->p);
}

static void refused(const char *text, aoth_data_spec_t spec, const char *says) {
  scene_t s;
  assert_int_not_equal(open_feed(&s, text, spec), AOT_OK);
  if (!strstr(pretend_said(&s.p), says)) fail_msg("says %s", pretend_said(&s.p));
  close_feed(&s);
}

/* ---- tokens ---- */

static void test_tokens(void **state) {
  (void)state;
  unsigned char bytes[200];
  for (int i = 0; i < 200; i++) bytes[i] = (unsigned char)i; /* a token says where it stands */
  write_bytes(in_folder("t.bin"), bytes, sizeof bytes);
  scene_t s;
  aoth_data_spec_t spec = {
      .kind = AOTH_DATA_TOKENS, .dtype = AOT_U8, .path = in_folder("t.bin"), .batch = 16, .inputs = {0, 1}};
  assert_int_equal(open_feed(&s, tokens_text, spec), AOT_OK);
  assert_int_equal(aoth_feed_items(s.feed), 64);
  assert_string_equal(aoth_feed_unit(s.feed), "tokens");
  unsigned char seen[200] = {0};
  for (int64_t step = 0; step < 500; step++) {
    const aoth_tensor_t *t = next(&s, step);
    for (int row = 0; row < 16; row++) {
      const int64_t *x = (const int64_t *)t[0].data + 4 * row;
      const int32_t *y = (const int32_t *)t[1].data + 4 * row;
      for (int i = 0; i < 4; i++) {
        assert_int_equal(x[i], x[0] + i);
        assert_int_equal(y[i], x[0] + i + 1);
      }
      seen[x[0]] = 1;
    }
  }
  for (int i = 0; i < 200; i++) assert_int_equal(seen[i], i < 196); /* every start, the last one with its next token */
  close_feed(&s);
}

static void test_tokens_of_16_bits(void **state) {
  (void)state;
  const uint16_t five[5] = {50000, 50001, 50002, 50003, 50004};
  write_bytes(in_folder("u16.bin"), five, sizeof five);
  scene_t s;
  aoth_data_spec_t spec = {
      .kind = AOTH_DATA_TOKENS, .dtype = AOT_U16, .path = in_folder("u16.bin"), .batch = 1, .inputs = {0, 1}};
  assert_int_equal(open_feed(&s, tokens_text, spec), AOT_OK);
  const aoth_tensor_t *t = next(&s, 0);
  assert_int_equal(((const int64_t *)t[0].data)[3], 50003);
  assert_int_equal(((const int32_t *)t[1].data)[3], 50004);
  close_feed(&s);
}

static void test_equal_seeds_give_equal_batches(void **state) {
  (void)state;
  unsigned char bytes[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (unsigned char)(i * 7);
  write_bytes(in_folder("s.bin"), bytes, sizeof bytes);
  aoth_data_spec_t spec = {
      .kind = AOTH_DATA_TOKENS, .dtype = AOT_U8, .path = in_folder("s.bin"), .batch = 8, .inputs = {0, 1}};
  scene_t a, b;
  assert_int_equal(open_feed(&a, tokens_text, spec), AOT_OK);
  assert_int_equal(open_feed(&b, tokens_text, spec), AOT_OK);
  for (int i = 0; i < 5; i++) {
    const aoth_tensor_t *x = next(&a, i);
    assert_memory_equal(x->data, next(&b, i)->data, x->nbytes);
  }
  aoth_random_seed(&b.random, 6);
  const aoth_tensor_t *x = next(&a, 5);
  assert_memory_not_equal(x->data, next(&b, 5)->data, x->nbytes);
  close_feed(&a);
  close_feed(&b);
}

/* Of a batch of 6 rows each of 3 ranks has two, in order; all draw alike, so that they continue from the same place. */
static void test_ranks_share_a_batch(void **state) {
  (void)state;
  unsigned char bytes[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (unsigned char)(i * 7);
  write_bytes(in_folder("s.bin"), bytes, sizeof bytes);
  aoth_data_spec_t spec = {
      .kind = AOTH_DATA_TOKENS, .dtype = AOT_U8, .path = in_folder("s.bin"), .batch = 6, .inputs = {0, 1}};
  scene_t whole, part[3];
  assert_int_equal(open_feed(&whole, tokens_text, spec), AOT_OK);
  for (uint32_t r = 0; r < 3; r++)
    assert_int_equal(open_feed_of(&part[r], tokens_text, spec, (aoth_feed_ranks_t){r, 3, 0}), AOT_OK);
  for (int step = 0; step < 3; step++) {
    const aoth_tensor_t *all = next(&whole, step);
    for (uint32_t r = 0; r < 3; r++) {
      const aoth_tensor_t *own = next(&part[r], step);
      assert_int_equal(own->sizes[0], 2);
      assert_memory_equal(own->data, (const char *)all->data + r * own->nbytes, own->nbytes);
      assert_memory_equal(&part[r].random, &whole.random, sizeof whole.random);
    }
  }
  assert_int_equal(aoth_feed_items(part[1].feed), aoth_feed_items(whole.feed));
  close_feed(&whole);
  for (uint32_t r = 0; r < 3; r++) close_feed(&part[r]);
  spec.batch = 4;
  assert_int_equal(open_feed_of(&whole, tokens_text, spec, (aoth_feed_ranks_t){0, 3, 0}), AOT_E_INVALID);
  assert_non_null(strstr(pretend_said(&whole.p), "batch size 4 is not divisible by the 3 ranks"));
  close_feed(&whole);
}

static void test_refused_tokens(void **state) {
  (void)state;
  char path[160];
  strcpy(path, in_folder("short.bin"));
  write_bytes(path, "abcd", 4);
  aoth_data_spec_t spec = {.kind = AOTH_DATA_TOKENS, .dtype = AOT_U8, .path = path, .batch = 2, .inputs = {0, 1}};
  refused(tokens_text, spec, "train.yaml:7:3: error: ");
  refused(tokens_text, spec, "has 4 tokens; a window of 4 and the token after it need 5");
  spec.batch = 0;
  refused(tokens_text, spec, "batch dimension is symbolic; set 'batch: N'");
  spec.batch = 2;
  spec.block = 5;
  refused(tokens_text, spec, "block is 5, but the model was exported for 4");
  spec.block = 0;
  spec.inputs[1] = 2;
  refused(tokens_text, spec, "token input 2 is out of range; the model has 2 inputs");
  refused(pretend_text, spec, "the model takes 1");
  spec.inputs[1] = 1;
  char absent[160];
  strcpy(absent, in_folder("absent.bin"));
  spec.path = absent;
  refused(tokens_text, spec, "cannot open ");
  write_bytes(path, "abcde", 5);
  spec.path = path;
  spec.dtype = AOT_U16;
  refused(tokens_text, spec, "5 bytes, which is no whole number of u16 tokens");
}

/* ---- random ---- */

static void test_random_inputs(void **state) {
  (void)state;
  scene_t s;
  aoth_data_spec_t spec = {.kind = AOTH_DATA_RANDOM};
  assert_int_equal(open_feed(&s, mixed_text, spec), AOT_OK);
  const aoth_tensor_t *t = next(&s, 0);
  int trues = 0, ones = 0;
  for (int i = 0; i < 3; i++) assert_in_range(((const int64_t *)t[0].data)[i], 5, 7);
  for (int i = 0; i < 50; i++) {
    assert_in_range(((const unsigned char *)t[1].data)[i], 0, 1);
    trues += ((const unsigned char *)t[1].data)[i];
    assert_in_range(((const int32_t *)t[3].data)[i], 0, 1); /* no sample: 0 and 1 */
    ones += ((const int32_t *)t[3].data)[i];
  }
  assert_in_range(trues, 10, 40);
  assert_in_range(ones, 10, 40);
  double first = kit_element_load(AOT_BF16, t[2].data);
  t = next(&s, 1);
  assert_true(kit_element_load(AOT_BF16, t[2].data) != first);
  close_feed(&s);
}

/* A symbolic batch takes the size of the export. */
static void test_random_symbolic(void **state) {
  (void)state;
  scene_t s;
  aoth_data_spec_t spec = {.kind = AOTH_DATA_RANDOM};
  assert_int_equal(open_feed(&s, pretend_text, spec), AOT_OK);
  assert_int_equal(next(&s, 0)->sizes[0], 2);
  assert_int_equal(aoth_feed_items(s.feed), 2);
  assert_string_equal(aoth_feed_unit(s.feed), "rows");
  close_feed(&s);
}

/* ---- safetensors ---- */

static void test_batches_in_a_file(void **state) {
  (void)state;
  float data[18];
  for (int i = 0; i < 18; i++) data[i] = (float)i;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  aoth_st_entry_t row = {.name = "input.0", .tensor = aoth_tensor_make(data, AOT_F32, 3, (int64_t[]){3, 2, 3})};
  assert_int_equal(aoth_st_write(in_folder("b.safetensors"), &row, 1, NULL, 0, sink), AOT_OK);
  scene_t s;
  aoth_data_spec_t spec = {.kind = AOTH_DATA_SAFETENSORS, .path = in_folder("b.safetensors")};
  assert_int_equal(open_feed(&s, pretend_text, spec), AOT_OK);
  for (int64_t step = 0; step < 7; step++) {
    const aoth_tensor_t *t = next(&s, step);
    assert_int_equal(t->rank, 2);
    assert_true(kit_element_load(AOT_F32, t->data) == (double)(step % 3 * 6));
  }
  close_feed(&s);

  row.name = "0"; /* plain order */
  row.tensor = aoth_tensor_make(data, AOT_F32, 2, (int64_t[]){2, 3});
  assert_int_equal(aoth_st_write(in_folder("p.safetensors"), &row, 1, NULL, 0, sink), AOT_OK);
  spec.path = in_folder("p.safetensors");
  assert_int_equal(open_feed(&s, pretend_text, spec), AOT_OK);
  assert_true(next(&s, 9)->sizes[0] == 2);
  close_feed(&s);

  row.name = "x";
  assert_int_equal(aoth_st_write(in_folder("x.safetensors"), &row, 1, NULL, 0, sink), AOT_OK);
  spec.path = in_folder("x.safetensors");
  refused(pretend_text, spec, "missing tensor \"input.0\"");
  spec.kind = AOTH_DATA_NONE;
  refused(pretend_text, spec, "the run has no inputs");
  aoth_sink_destroy(sink);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_tokens_of_16_bits),
      cmocka_unit_test(test_equal_seeds_give_equal_batches),
      cmocka_unit_test(test_ranks_share_a_batch),
      cmocka_unit_test(test_refused_tokens),
      cmocka_unit_test(test_random_inputs),
      cmocka_unit_test(test_random_symbolic),
      cmocka_unit_test(test_batches_in_a_file),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
