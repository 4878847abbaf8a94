/* The training loop over a pretended executable: losses, checkpoints, exact resume, Ctrl-C, a loss that is no
 * number. */
#include "pretend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <trainer/checkpoint.h>
#include <trainer/tensors/safetensors.h>
#include <trainer/train.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "aothost-train-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}
static char *in_folder(const char *name) { /* one of eight, so that a few can live side by side */
  static char paths[8][160];
  static int turn;
  char *path = paths[turn++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static aoth_train_spec_t spec_of(int64_t steps) {
  return (aoth_train_spec_t){
      .present = 1,
      .steps = steps,
      .optimizer = {.use = "pretend"},
      .lr = 0.01,
      .data = {.kind = AOTH_DATA_RANDOM},
      .seed = 3,
      .where = {.file = "train.yaml", .line = 5, .column = 3},
  };
}

typedef struct scene {
  pretend_t p;
  aoth_step_t *step;
  aoth_train_result_t r;
} scene_t;

static const aoth_feed_ranks_t alone = {.n = 1};

static aot_status_t train(scene_t *s, const aoth_train_spec_t *spec) {
  pretend_init(&s->p);
  s->step = pretend_step(&s->p);
  return aoth_train(s->step, s->p.world.p, spec, &alone, NULL, NULL, s->p.world.sink, NULL, &s->r);
}

static void done(scene_t *s) {
  aoth_train_deinit(&s->r);
  aoth_step_destroy(s->step);
  pretend_deinit(&s->p);
}

static void same_tensor(const scene_t *a, const scene_t *b, const char *key) {
  aoth_tensor_t x, y;
  assert_true(aoth_step_get(a->step, key, &x) && aoth_step_get(b->step, key, &y));
  assert_int_equal(x.nbytes, y.nbytes);
  assert_memory_equal(x.data, y.data, x.nbytes);
}

static void test_a_run(void **state) {
  (void)state;
  scene_t s;
  aoth_train_spec_t spec = spec_of(25);
  spec.log_every = 10;
  assert_int_equal(train(&s, &spec), AOT_OK);
  assert_int_equal(s.r.done, 25);
  assert_int_equal(s.p.n_calls, 25);
  assert_int_equal(s.r.n_log, 4); /* 1, 10, 20, 25 */
  assert_int_equal(s.r.log[0].step, 1);
  assert_int_equal(s.r.log[2].step, 20);
  assert_true(s.r.log[3].loss == s.r.last_loss && s.r.log[0].loss == s.r.first_loss);
  assert_true(s.r.log[3].lr == 0.01);
  done(&s);
}

/* Three steps, a checkpoint, four more: bit for bit the same as seven in one go. */
static void test_resume_is_exact(void **state) {
  (void)state;
  scene_t whole, first, second;
  aoth_train_spec_t spec = spec_of(7), part = spec_of(3), rest = spec_of(7);
  part.checkpoint_path = in_folder("c.safetensors");
  rest.resume = part.checkpoint_path;
  assert_int_equal(train(&whole, &spec), AOT_OK);
  assert_int_equal(train(&first, &part), AOT_OK);
  assert_int_equal(train(&second, &rest), AOT_OK);
  assert_int_equal(second.r.first, 3);
  assert_int_equal(second.r.done, 7);
  assert_true(second.r.last_loss == whole.r.last_loss);
  same_tensor(&whole, &second, "param.w");
  same_tensor(&whole, &second, "state.m.w");
  same_tensor(&whole, &second, "buffer.calls");
  done(&whole);
  done(&first);
  done(&second);
}

static void test_resume_of_a_finished_run(void **state) {
  (void)state;
  scene_t a, b;
  aoth_train_spec_t spec = spec_of(4);
  spec.checkpoint_path = in_folder("f.safetensors");
  assert_int_equal(train(&a, &spec), AOT_OK);
  spec.resume = spec.checkpoint_path;
  assert_int_equal(train(&b, &spec), AOT_OK);
  assert_int_equal(b.r.first, 4);
  assert_int_equal(b.r.done, 4);
  assert_int_equal(b.p.n_calls, 0);
  same_tensor(&a, &b, "param.w");
  done(&a);
  done(&b);
}

static char *read_bytes(const char *path, size_t *out_size) {
  FILE *f = fopen(path, "rb");
  char *bytes = malloc(1 << 16);
  assert_non_null(f);
  assert_non_null(bytes);
  *out_size = fread(bytes, 1, 1 << 16, f);
  assert_true(*out_size > 0 && *out_size < 1 << 16);
  fclose(f);
  return bytes;
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, size, f), size);
  fclose(f);
}

static size_t data_begins(const char *bytes) {
  uint64_t n = 0;
  for (int i = 7; i >= 0; i--) n = n << 8 | (unsigned char)bytes[i];
  return (size_t)n + 8;
}

/* One bit of a checkpoint is another one, wherever it is: the run does not continue with it, and one in a tensor names
 * it. */
static void test_damage_is_found_at_resume(void **state) {
  (void)state;
  scene_t a;
  size_t size, n_named = 0, n_harmless = 0;
  aoth_train_spec_t spec = spec_of(4), rest = spec_of(4);
  char *path = in_folder("whole.safetensors"), *damaged = in_folder("damaged.safetensors");
  spec.checkpoint_path = path;
  assert_int_equal(train(&a, &spec), AOT_OK);
  char *bytes = read_bytes(path, &size);
  const size_t data = data_begins(bytes);
  rest.resume = damaged;
  for (size_t at = 0; at < size; at++) {
    scene_t b;
    bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
    write_bytes(damaged, bytes, size);
    bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
    memset(&b.r, 0, sizeof b.r);
    if (train(&b, &rest) == AOT_OK) { /* a blank of the header has become another one */
      assert_true(at >= 8 && at < data);
      assert_int_equal(b.r.first, 4);
      same_tensor(&a, &b, "param.w");
      same_tensor(&a, &b, "state.m.w");
      n_harmless++;
    } else {
      assert_non_null(strstr(pretend_said(&b.p), "error: "));
      assert_non_null(strstr(pretend_said(&b.p), "damaged.safetensors"));
    }
    if (at >= data) {
      assert_non_null(strstr(pretend_said(&b.p), "damaged.safetensors: error: tensor \""));
      assert_non_null(strstr(pretend_said(&b.p), "\" changed after it was saved"));
      n_named++;
    }
    done(&b);
  }
  assert_int_equal(n_named, size - data);
  assert_true(n_harmless < 8);
  free(bytes);
  done(&a);
}

/* Files of earlier versions have no digests: they are read as they are, and that is said. */
static void test_a_checkpoint_without_digests(void **state) {
  static const char *const keys[] = {"format", "step", "seed", "offset", "random", "optimizer"};
  (void)state;
  scene_t a, b;
  aoth_st_t *file;
  aoth_st_meta_t meta[6];
  aoth_train_spec_t spec = spec_of(3), rest = spec_of(3);
  spec.checkpoint_path = in_folder("new.safetensors");
  assert_int_equal(train(&a, &spec), AOT_OK);
  assert_int_equal(aoth_st_open(spec.checkpoint_path, a.p.world.sink, &file), AOT_OK);
  for (int i = 0; i < 6; i++) meta[i] = (aoth_st_meta_t){keys[i], aoth_st_meta(file, keys[i])};
  rest.resume = in_folder("old.safetensors");
  assert_int_equal(aoth_st_write(rest.resume, aoth_st_entries(file), aoth_st_count(file), meta, 6, a.p.world.sink),
                   AOT_OK);
  assert_int_equal(train(&b, &rest), AOT_OK);
  assert_int_equal(b.r.first, 3);
  same_tensor(&a, &b, "param.w");
  assert_non_null(strstr(pretend_said(&b.p), "old.safetensors: note: an earlier version wrote this checkpoint"));
  aoth_st_close(file);
  done(&a);
  done(&b);
}

/* The loss is NaN at step 5: the run stops there, and the checkpoint is the one of step 4. */
static void test_diverged(void **state) {
  (void)state;
  scene_t s;
  aoth_train_spec_t spec = spec_of(9);
  spec.checkpoint_path = in_folder("d.safetensors");
  spec.checkpoint_every = 2;
  pretend_init(&s.p);
  s.p.poison_at = 5;
  s.step = pretend_step(&s.p);
  assert_int_equal(aoth_train(s.step, s.p.world.p, &spec, &alone, NULL, NULL, s.p.world.sink, NULL, &s.r), AOT_OK);
  assert_true(s.r.diverged);
  assert_int_equal(s.r.done, 4);
  assert_non_null(strstr(pretend_said(&s.p), "train.yaml:5:3: error: loss is NaN at step 5"));
  aoth_st_t *file;
  assert_int_equal(aoth_st_open(spec.checkpoint_path, s.p.world.sink, &file), AOT_OK);
  assert_string_equal(aoth_st_meta(file, "step"), "4");
  aoth_st_close(file);
  done(&s);
}

/* ---- Ctrl-C ---- */

static aoth_exec_t inner;
static int calls_left;
static aot_status_t interrupting(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                                 uint64_t *known) {
  if (--calls_left == 0) raise(SIGINT);
  return inner.run(self, what, symbols, open, known);
}

/* The signal comes in the middle of step 3: the step is finished, the checkpoint written, and going on is exact. */
static void test_interrupted(void **state) {
  (void)state;
  scene_t whole, s, rest;
  aoth_train_spec_t spec = spec_of(6);
  assert_int_equal(train(&whole, &spec), AOT_OK);
  spec.checkpoint_path = in_folder("i.safetensors");
  pretend_init(&s.p);
  inner = s.p.exec;
  s.p.exec.run = interrupting;
  calls_left = 2 * 3 + 2; /* the backward of step 3 */
  s.step = pretend_step(&s.p);
  assert_int_equal(aoth_train(s.step, s.p.world.p, &spec, &alone, NULL, NULL, s.p.world.sink, NULL, &s.r), AOT_OK);
  assert_true(s.r.interrupted);
  assert_int_equal(s.r.done, 3);
  spec.resume = spec.checkpoint_path;
  assert_int_equal(train(&rest, &spec), AOT_OK);
  assert_int_equal(rest.r.first, 3);
  assert_false(rest.r.interrupted);
  same_tensor(&whole, &rest, "param.w");
  done(&whole);
  done(&s);
  done(&rest);
}

/* ---- what is refused before the first step ---- */

static void refused(const aoth_train_spec_t *spec, const char *says) {
  scene_t s;
  memset(&s.r, 0, sizeof s.r);
  assert_int_not_equal(train(&s, spec), AOT_OK);
  if (!strstr(pretend_said(&s.p), says)) fail_msg("says %s", pretend_said(&s.p));
  assert_int_equal(s.p.n_calls, 0);
  done(&s);
}

static void test_refused(void **state) {
  (void)state;
  aoth_train_spec_t spec = spec_of(3);
  spec.loss = 7;
  refused(&spec, "loss index 7 is out of range; the model has 2 outputs");
  spec.loss = 0;
  spec.checkpoint_path = in_folder("absent/c.safetensors");
  refused(&spec, "the checkpoint cannot be written to aothost-train-");
  spec.checkpoint_path = NULL;
  spec.resume = in_folder("absent.safetensors");
  refused(&spec, "cannot open");
}

/* Output 1 is no single number; that is known once the first forward has run. */
static void test_loss_that_is_a_matrix(void **state) {
  (void)state;
  scene_t s;
  aoth_train_spec_t spec = spec_of(3);
  spec.loss = 1;
  assert_int_equal(train(&s, &spec), AOT_E_INVALID);
  assert_non_null(strstr(pretend_said(&s.p), "output 1 cannot be the loss; expected one floating-point element"));
  done(&s);
}

/* A checkpoint of something else is refused, and leaves the leaves alone. */
static void test_foreign_checkpoints(void **state) {
  (void)state;
  static float w[3] = {9, 9, 9}, two[2] = {9, 9};
  static int64_t calls = 5;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  const char *random = "0000000000000001000000000000000200000000000000030000000000000004";
  aoth_st_meta_t meta[] = {{"format", "aothost-checkpoint/1"},
                           {"step", "3"},
                           {"seed", "0"},
                           {"offset", "0"},
                           {"random", random},
                           {"optimizer", "pretend"}};
  aoth_st_entry_t rows[4] = {{.name = "param.w", .tensor = aoth_tensor_make(w, AOT_F32, 1, (int64_t[]){3})},
                             {.name = "buffer.calls", .tensor = aoth_tensor_scalar(&calls, AOT_I64)},
                             {.name = "state.m.w", .tensor = aoth_tensor_make(w, AOT_F32, 1, (int64_t[]){3})},
                             {.name = "param.v", .tensor = aoth_tensor_make(w, AOT_F32, 1, (int64_t[]){3})}};
  aoth_train_spec_t spec = spec_of(9);
  char *path = in_folder("foreign.safetensors");
  spec.resume = path;
  assert_int_equal(aoth_st_write(path, rows, 4, meta, 6, sink), AOT_OK);
  refused(&spec, "the program has no \"param.v\"");
  assert_int_equal(aoth_st_write(path, rows, 2, meta, 6, sink), AOT_OK);
  refused(&spec, "the checkpoint lacks \"state.m.w\"");
  rows[2].tensor = aoth_tensor_make(two, AOT_F32, 1, (int64_t[]){2});
  assert_int_equal(aoth_st_write(path, rows, 3, meta, 6, sink), AOT_OK);
  refused(&spec, "\"state.m.w\" is f32[2] in the checkpoint, but f32[3] in the program");
  rows[2].tensor = rows[0].tensor;
  meta[5].value = "adamw";
  assert_int_equal(aoth_st_write(path, rows, 3, meta, 6, sink), AOT_OK);
  refused(&spec, "made with optimizer adamw, the run uses pretend");
  meta[4].value = "zz";
  meta[5].value = "pretend";
  assert_int_equal(aoth_st_write(path, rows, 3, meta, 6, sink), AOT_OK);
  refused(&spec, "no state of the random numbers");
  assert_int_equal(aoth_st_write(path, rows, 3, NULL, 0, sink), AOT_OK);
  refused(&spec, "this is no checkpoint of aothost");
  aoth_sink_destroy(sink);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_run),       cmocka_unit_test(test_resume_is_exact),
      cmocka_unit_test(test_resume_of_a_finished_run), cmocka_unit_test(test_damage_is_found_at_resume),
      cmocka_unit_test(test_a_checkpoint_without_digests),
      cmocka_unit_test(test_diverged),    cmocka_unit_test(test_interrupted),     cmocka_unit_test(test_refused),
      cmocka_unit_test(test_loss_that_is_a_matrix), cmocka_unit_test(test_foreign_checkpoints),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
