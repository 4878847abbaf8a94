/* Loops as text: read, printed, scheduled and turned into C and CUDA C as the files of this folder expect (LP_SAVE=1
 * writes them), and run on rows of many lengths against the same formulas in double. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kit/reference/rk_core.h"
#include "loop_goldens.h"
#include "loop_library.h"
#include <math.h>

static void save(const char *name, const char *ending, const char *text) {
  char path[512];
  snprintf(path, sizeof path, LP_TEST_DIR "/%s.%s", name, ending);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void what_is_printed_is_read_again(void **state) {
  (void)state;
  for (int k = 0; k < N_GOLDENS; k++) {
    lp_parsed_t once, twice;
    lp_text_t first = {0}, second = {0};
    parse_golden(goldens[k].name, &once);
    lp_schedule(&once.loop); /* comments, to the parser */
    lp_print_loop(&once.loop, &first);
    assert_int_equal(lp_parse(first.data, &twice), 0);
    lp_schedule(&twice.loop);
    lp_print_loop(&twice.loop, &second);
    assert_string_equal(first.data, second.data);
    lp_text_deinit(&first);
    lp_text_deinit(&second);
    lp_parsed_deinit(&once);
    lp_parsed_deinit(&twice);
  }
}

static void is_expected(const char *name, const char *ending, const lp_text_t *text) {
  if (getenv("LP_SAVE")) save(name, ending, text->data);
  char *expected = read_golden(name, ending);
  if (strcmp(text->data, expected) != 0) fail_msg("%s.%s differs from:\n%s", name, ending, text->data);
  free(expected);
}

static void schedules_and_c_are_the_expected_ones(void **state) {
  (void)state;
  for (int k = 0; k < N_GOLDENS; k++) {
    lp_parsed_t p;
    lp_text_t out = {0};
    parse_golden(goldens[k].name, &p);
    assert_true(lp_simplify(&p.loop));
    lp_schedule(&p.loop);
    lp_print_loop(&p.loop, &out);
    lp_print(&out, "\n");
    lp_gen_c(&p.loop, goldens[k].name, &out);
    is_expected(goldens[k].name, "expect", &out);
    lp_text_deinit(&out);
    lp_parsed_deinit(&p);
  }
}

/* What a loop can say, as bits of the goldens that say it. */
typedef struct said {
  uint32_t of_rows, of_columns, scans, indices, bounds, stores;
  uint64_t dtypes, draws; /* by AOT_F32, .. */
} said_t;

static uint64_t bit(int32_t dtype) { return UINT64_C(1) << dtype; }

static void note_insts(const lp_loop_t *loop, said_t *said) {
  for (uint32_t i = 0; i < loop->n_insts; i++) {
    const lp_inst_t *inst = &loop->insts[i];
    *(loop->columns ? &said->of_columns : &said->of_rows) |= 1u << inst->reduce;
    said->scans |= inst->scan ? 1u << inst->scan : 0;
    said->dtypes |= bit(inst->dtype);
  }
}

static void note_accesses(const lp_loop_t *loop, said_t *said) {
  for (uint32_t i = 0; i < loop->n_loads + loop->n_stores; i++) {
    const lp_access_t *a = &loop->accesses[i];
    if (a->draws) said->draws |= bit(a->dtype);
    if (a->bounded) said->bounds |= 1u << a->outside.kind;
    if (i >= loop->n_loads) said->stores |= a->n_indices ? a->adds ? 4 : 2 : 1;
    else
      for (uint32_t k = 0; k < a->n_indices; k++) said->indices |= a->indices[k].wraps ? 2 : 1;
  }
}

static void every_kind_is_a_golden(void **state) {
  (void)state;
  const uint32_t reductions = 1u << LP_SUM | 1u << LP_PROD | 1u << LP_MAX | 1u << LP_MIN;
  said_t said = {0};
  for (int k = 0; k < N_GOLDENS; k++) {
    lp_parsed_t p;
    parse_golden(goldens[k].name, &p);
    assert_true(lp_simplify(&p.loop));
    lp_schedule(&p.loop);
    note_insts(&p.loop, &said);
    note_accesses(&p.loop, &said);
    lp_parsed_deinit(&p);
  }
  assert_int_equal(said.of_rows, 1u << LP_EACH | reductions | 1u << LP_ACROSS);
  assert_int_equal(said.of_columns, 1u << LP_EACH | reductions);
  assert_int_equal(said.scans, reductions | 1u << LP_LOG_ADD);
  assert_true(said.draws == (bit(AOT_U32) | bit(AOT_U64) | bit(AOT_F32) | bit(AOT_F64)));
  assert_int_equal(said.bounds, 1u << LP_FLOAT | 1u << LP_INT | 1u << LP_LOAD);
  assert_int_equal(said.indices, 1 | 2);
  assert_int_equal(said.stores, 1 | 2 | 4);
  for (int32_t dtype = 1; dtype < 64; dtype++)
    if (lp_dtype_supported(dtype) && !(said.dtypes & bit(dtype))) fail_msg("no golden gives dtype %d", (int)dtype);
}

static void schedules_and_cuda_are_the_expected_ones(void **state) {
  (void)state;
  for (int k = 0; k < N_GOLDENS; k++) {
    lp_parsed_t p;
    lp_text_t out = {0};
    if (!goldens[k].has_cuda) continue;
    parse_golden(goldens[k].name, &p);
    assert_true(lp_simplify(&p.loop));
    assert_true(lp_gpu_schedule(&p.loop, &lp_gpu_h100));
    lp_print_loop(&p.loop, &out);
    lp_print(&out, "\n");
    lp_gen_cuda(&p.loop, goldens[k].name, &out);
    if (p.loop.gpu.tensors) {
      char several[64];
      snprintf(several, sizeof several, "%s_of_several", goldens[k].name);
      p.loop.gpu.tensors = lp_gpu_most_tensors(&p.loop);
      lp_print(&out, "\n");
      lp_gen_cuda(&p.loop, several, &out);
    }
    is_expected(goldens[k].name, "cu", &out);
    lp_text_deinit(&out);
    lp_parsed_deinit(&p);
  }
}

/* The hash knows what a loop computes, and nothing of how. */
static void hashes_stay_and_differ(void **state) {
  uint64_t seen[N_GOLDENS];
  lp_parsed_t p;
  (void)state;
  for (int k = 0; k < N_GOLDENS; k++) {
    parse_golden(goldens[k].name, &p);
    seen[k] = lp_hash(&p.loop);
    p.loop.gpu.kind = LP_GPU_ROWS;
    lp_schedule(&p.loop);
    assert_true(lp_hash(&p.loop) == seen[k]);
    p.loop.sizes[0]++;
    assert_true(lp_hash(&p.loop) != seen[k]);
    lp_parsed_deinit(&p);
    for (int other = 0; other < k; other++) assert_true(seen[other] != seen[k]);
  }
  assert_int_equal(
      lp_parse("loop 4 ; four\nload f32 [1]\neach f32 f32 \"a + b\" a=x0 b=1.0 ; one more\nstore f32 [1] v0\n", &p), 0);
  if (lp_hash(&p.loop) != UINT64_C(0x18b5ad8f2039d8f5)) fail_msg("%016llx", (unsigned long long)lp_hash(&p.loop));
  lp_parsed_deinit(&p);
}

static void what_is_wrong_is_told_by_its_line(void **state) {
  static const struct {
    const char *text;
    uint32_t line;
  } table[] = {
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" a=x0\nstore f32 [1] v0\n", 0},
      {"loop 4 x\n", 1},
      {"loop 4 reduced 1\n", 1},
      {"loop 4\nload f33 [1]\n", 2},
      {"loop 4\nload f32 [1, 2]\n", 2},
      {"loop 4\n\nload f32 [1]\neach f32 f32 \"a a=x0\n", 4},
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" a=x1\n", 3},
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" a=v0\n", 3},
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" a=d0\n", 3},
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" %10=x0\n", 3},
      {"loop 4\nload f32 [1]\nmean f32 f32 \"a\" a=x0\n", 3},
      {"loop 4\nload f32 [1]\neach f32 f32 \"a\" a=x0\nstore f32 [1] v1\n", 4},
      {"loop 4\nload f32 [1]\n", 3},
      {"loop 4\nload f32 [1]\nload f32 [0] at x0 * 1 of 3\n", 3}, /* no whole number */
      {"loop 4\nload i64 [1]\nload f32 [0] at x1 * 1 of 3\n", 3},
      {"loop 4\nload i64 [1]\nload f32 [0] at x0 * 1 of 0\n", 3},
      {"loop 4 reduced 0\nload f32 [1]\nrunning each f32 f32 \"a\" a=x0\n", 3},
      {"loop 4 reduced 0\nload f32 [1]\nlog-add f32 f32 \"a\" a=x0\n", 3},
      {"loop 4\nload f32 [1] in 1: 0..3 else 0.0\n", 2},
      {"loop 4\nload f32 [1] in 0: 0..3\n", 2},
      {"loop 4\nload f32 [1] in 0: 0..3 else x0\n", 2},
  };
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    lp_parsed_t p;
    const uint32_t line = lp_parse(table[k].text, &p);
    lp_parsed_deinit(&p);
    if (line != table[k].line) fail_msg("line %u is wrong, not %u:\n%s", table[k].line, line, table[k].text);
  }
}

/* ---- run ---- */

enum { MOST = 1300, ROWS = 3 };

static float at_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)((double)*state / 4294967296.0 * 4 - 2);
}

static void run_softmax(loop_fn f, int64_t n, const float *x, const float *b, const float *c, float *y, float *kept) {
  char *pointers[5] = {(char *)x, (char *)b, (char *)c, (char *)y, (char *)kept};
  const int64_t sizes[2] = {ROWS, n}, strides[8] = {MOST, 1, 0, 1, MOST, 1, n, 1};
  f(pointers, sizes, strides, 0, 1); /* in two parts, as threads would */
  f(pointers, sizes, strides, 1, ROWS);
}

static void run_columns(loop_fn f, int64_t n, const float *g, const float *x, float *y, float *sum) {
  char *pointers[4] = {(char *)g, (char *)x, (char *)y, (char *)sum};
  const int64_t sizes[2] = {n, ROWS}, strides[8] = {1, MOST, 1, MOST, 1, MOST, 1, 0};
  f(pointers, sizes, strides, 0, n / 2);
  f(pointers, sizes, strides, n / 2, n);
}

static void *library(void) {
  lp_text_t source = {0};
  lp_prelude_add(&source);
  for (int k = 0; k < N_GOLDENS; k++) {
    lp_parsed_t p;
    parse_golden(goldens[k].name, &p);
    lp_simplify(&p.loop);
    lp_schedule(&p.loop);
    lp_gen_c(&p.loop, goldens[k].name, &source);
    lp_parsed_deinit(&p);
  }
  void *handle = build(&source);
  lp_text_deinit(&source);
  return handle;
}

static void close_to(double a, double b) {
  if (!(fabs(a - b) <= 2e-6 * (1 + fabs(b)))) fail_msg("%.9g, not %.9g", a, b);
}

static void rows_and_columns_of_every_length(void **state) {
  static const int64_t lengths[] = {1, 2, 15, 16, 17, 511, 512, 513, 1024, MOST};
  static float x[ROWS * MOST], b[MOST], c[ROWS * MOST], y[ROWS * MOST], again[ROWS * MOST], kept[MOST], sum[MOST];
  uint32_t seed = 3;
  void *handle = library();
  (void)state;
  for (int i = 0; i < ROWS * MOST; i++) x[i] = at_random(&seed), c[i] = at_random(&seed);
  for (int i = 0; i < MOST; i++) b[i] = at_random(&seed);
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    const int64_t n = lengths[k];
    run_softmax(find(handle, "softmax"), n, x, b, c, y, kept);
    for (int r = 0; r < ROWS; r++) {
      double total = 0;
      for (int64_t i = 0; i < n; i++) total += exp((double)x[r * MOST + i] * 0.5 + (double)b[i]);
      for (int64_t i = 0; i < n; i++)
        close_to(y[r * n + i], exp((double)x[r * MOST + i] * 0.5 + (double)b[i]) / total * (double)c[r * MOST + i]);
    }
    run_softmax(find(handle, "softmax"), n, x, b, c, again, kept);
    assert_memory_equal(y, again, (size_t)(ROWS * n) * sizeof *y);
    run_columns(find(handle, "columns"), n, c, x, y, sum);
    for (int64_t i = 0; i < n; i++) {
      double total = 0;
      for (int r = 0; r < ROWS; r++) {
        const double one = x[r * MOST + i] <= 0 ? 0 : (double)c[r * MOST + i];
        assert_true((double)y[r * MOST + i] == one);
        total += one;
      }
      close_to(sum[i], total);
    }
  }
  dlclose(handle);
}

/* ---- sums across rows ---- */

static void layer_norm_s_gradients_in_two_parts(void **state) {
  static float g[ROWS * MOST], x[ROWS * MOST], w[MOST], y[ROWS * MOST];
  static double across[2][2][MOST];
  float mean[ROWS], rstd[ROWS];
  uint32_t seed = 5;
  void *handle = library();
  (void)state;
  for (int i = 0; i < ROWS * MOST; i++) g[i] = at_random(&seed), x[i] = at_random(&seed);
  for (int i = 0; i < MOST; i++) w[i] = at_random(&seed);
  for (int r = 0; r < ROWS; r++) mean[r] = at_random(&seed), rstd[r] = 1.5f + at_random(&seed) / 2;
  for (int64_t n = 1; n <= MOST; n += 433) {
    const int64_t sizes[2] = {ROWS, n}, strides[16] = {MOST, 1, MOST, 1, 1, 0, 1, 0, 0, 1, MOST, 1, 0, 1, 0, 1};
    for (int part = 0; part < 2; part++) {
      char *pointers[] = {(char *)g,
                          (char *)x,
                          (char *)mean,
                          (char *)rstd,
                          (char *)w,
                          (char *)y,
                          (char *)across[part][0],
                          (char *)across[part][1]};
      find(handle, "layer_norm_backward")(pointers, sizes, strides, part, part ? ROWS : 1);
    }
    for (int64_t i = 0; i < n; i++) {
      double gw = 0, gb = 0;
      for (int r = 0; r < ROWS; r++) {
        gw += (double)(g[r * MOST + i] * (x[r * MOST + i] - mean[r]) * rstd[r]);
        gb += (double)g[r * MOST + i];
      }
      close_to(across[0][0][i] + across[1][0][i], gw);
      close_to(across[0][1][i] + across[1][1][i], gb);
    }
    for (int r = 0; r < ROWS; r++) {
      double sum = 0, sum_h = 0;
      for (int64_t i = 0; i < n; i++) {
        const double gh = (double)g[r * MOST + i] * (double)w[i];
        sum += gh;
        sum_h += gh * ((double)x[r * MOST + i] - (double)mean[r]) * (double)rstd[r];
      }
      for (int64_t i = 0; i < n; i++) {
        const double h = ((double)x[r * MOST + i] - (double)mean[r]) * (double)rstd[r];
        close_to(y[r * MOST + i],
                 (double)rstd[r] * ((double)g[r * MOST + i] * (double)w[i] - sum / (double)n - h * sum_h / (double)n));
      }
    }
  }
  dlclose(handle);
}

static void a_loss_and_its_gradient_in_one_loop(void **state) {
  static float x[ROWS * MOST], y[ROWS * MOST];
  static const int64_t classes[ROWS] = {MOST - 1, -100, 3};
  const double number = 0.5;
  const float g = 1.25f;
  uint32_t seed = 6;
  double sum = 0, expected = 0;
  static char kept[MOST * sizeof(float)];
  const int64_t sizes[2] = {ROWS, MOST}, strides[12] = {MOST, 1, 1, 0, 0, 0, 0, 0, 0, 0, MOST, 1};
  char *pointers[] = {
      (char *)x, (char *)(uintptr_t)classes, (char *)(uintptr_t)&number, (char *)(uintptr_t)&g, (char *)&sum, (char *)y,
      kept};
  void *handle = library();
  (void)state;
  for (int i = 0; i < ROWS * MOST; i++) x[i] = at_random(&seed);
  find(handle, "cross_entropy")(pointers, sizes, strides, 0, ROWS);
  for (int r = 0; r < ROWS; r++) {
    double total = 0;
    for (int i = 0; i < MOST; i++) total += exp((double)x[r * MOST + i]);
    if (classes[r] >= 0) expected += number * (log(total) - (double)x[r * MOST + classes[r]]);
    for (int i = 0; i < MOST; i++) {
      const double p = exp((double)x[r * MOST + i]) / total - (i == classes[r]);
      close_to(y[r * MOST + i], classes[r] < 0 ? 0 : p * (double)g * number);
    }
  }
  close_to(sum, expected);
  dlclose(handle);
}

/* ---- loads by places ---- */

static double bf16_at(const uint16_t *x, int64_t i) { return rk_load_f(&x[i], AOT_BF16); }

static void rows_of_a_table_by_their_numbers(void **state) {
  enum { ROWS_OF_TABLE = 11, MANY = 6, WIDTH = 700 };
  static float table[ROWS_OF_TABLE * WIDTH], add[MANY * WIDTH];
  static uint16_t y[MANY * WIDTH];
  int64_t index[MANY] = {3, 0, 10, 3, 7, 1}, wrong = 0;
  uint32_t seed = 5;
  void *handle = library();
  (void)state;
  for (int i = 0; i < ROWS_OF_TABLE * WIDTH; i++) table[i] = at_random(&seed);
  for (int i = 0; i < MANY * WIDTH; i++) add[i] = at_random(&seed);
  char *pointers[] = {(char *)index, (char *)table, (char *)add, (char *)y, (char *)&wrong};
  const int64_t sizes[2] = {MANY, WIDTH}, numbers[] = {1, 0, 0, 1, WIDTH, 1, WIDTH, 1, WIDTH, ROWS_OF_TABLE};
  find(handle, "embedding")(pointers, sizes, numbers, 0, MANY);
  assert_int_equal(wrong, 0);
  for (int r = 0; r < MANY; r++)
    for (int i = 0; i < WIDTH; i++) {
      const double sum = (double)(table[index[r] * WIDTH + i] + add[r * WIDTH + i]);
      assert_true(fabs(bf16_at(y, r * WIDTH + i) - sum) <= 0x1p-8 * fabs(sum));
    }
  for (int k = 0; k < 2; k++) { /* neither reads memory that is not the table's */
    index[4] = k ? ROWS_OF_TABLE : -1;
    wrong = 0;
    find(handle, "embedding")(pointers, sizes, numbers, 0, 4);
    assert_int_equal(wrong, 0);
    find(handle, "embedding")(pointers, sizes, numbers, 4, MANY);
    assert_int_equal(wrong, 1);
    assert_true(fabs(bf16_at(y, 4 * WIDTH) - (double)(table[0] + add[4 * WIDTH])) <= 0.02);
  }
  dlclose(handle);
}

static void elements_by_two_numbers(void **state) {
  enum { MANY = 5, WIDTH = 600 };
  static int64_t first[MANY * WIDTH];
  static float b[MANY * WIDTH], y[MANY * WIDTH], sum[MANY];
  float table[7 * 3];
  int32_t second[WIDTH];
  int64_t wrong = 0;
  uint32_t seed = 9;
  void *handle = library();
  (void)state;
  for (int i = 0; i < 7 * 3; i++) table[i] = at_random(&seed);
  for (int i = 0; i < WIDTH; i++) second[i] = i % 3;
  for (int i = 0; i < MANY * WIDTH; i++) b[i] = at_random(&seed), first[i] = i % 14 - 7;
  char *pointers[] = {(char *)first, (char *)second, (char *)table, (char *)b, (char *)y, (char *)sum, (char *)&wrong};
  const int64_t sizes[2] = {MANY, WIDTH}, numbers[] = {WIDTH, 1, 0, 1, 0, 0, WIDTH, 1, WIDTH, 1, 1, 0, 3, 7, 1, 3};
  find(handle, "gather")(pointers, sizes, numbers, 0, MANY);
  assert_int_equal(wrong, 0);
  for (int r = 0; r < MANY; r++) {
    double total = 0;
    for (int i = 0; i < WIDTH; i++) {
      const int64_t at = first[r * WIDTH + i];
      const float one = table[(at < 0 ? at + 7 : at) * 3 + second[i]] * b[r * WIDTH + i];
      assert_true(y[r * WIDTH + i] == one);
      total += (double)one;
    }
    close_to(sum[r], total);
  }
  first[WIDTH + 13] = -8;
  find(handle, "gather")(pointers, sizes, numbers, 0, MANY);
  assert_int_equal(wrong, 1);
  dlclose(handle);
}

/* In two parts, as threads would: columns side by side, or rows. */
static void elements_added_by_numbers(void **state) {
  enum { MANY = 600, WIDTH = 700, ROWS_OF_TABLE = 11 };
  static int64_t index[MANY];
  static int32_t places[5 * MANY];
  static float from[MANY * WIDTH], table[ROWS_OF_TABLE * WIDTH], expected[ROWS_OF_TABLE * WIDTH];
  float sums[5 * 7] = {0}, expected_sums[5 * 7] = {0};
  int64_t wrong = 0;
  uint32_t seed = 13;
  void *handle = library();
  (void)state;
  for (int i = 0; i < MANY; i++) index[i] = i * 7 % ROWS_OF_TABLE;
  for (int i = 0; i < 5 * MANY; i++) places[i] = i % 14 - 7;
  for (int i = 0; i < MANY * WIDTH; i++) from[i] = at_random(&seed);
  char *pointers[] = {(char *)index, (char *)from, (char *)table, (char *)&wrong};
  const int64_t sizes[2] = {WIDTH, MANY}, numbers[] = {0, 1, 1, WIDTH, 1, 0, WIDTH, ROWS_OF_TABLE};
  find(handle, "scatter")(pointers, sizes, numbers, 0, 99);
  find(handle, "scatter")(pointers, sizes, numbers, 99, WIDTH);
  for (int r = 0; r < MANY; r++)
    for (int i = 0; i < WIDTH && index[r] != 3; i++) expected[index[r] * WIDTH + i] += from[r * WIDTH + i];
  assert_memory_equal(table, expected, sizeof table);
  char *of_rows[] = {(char *)places, (char *)from, (char *)sums, (char *)&wrong};
  const int64_t row_sizes[2] = {5, MANY}, row_numbers[] = {MANY, 1, MANY, 1, 7, 0, 1, 7};
  find(handle, "scatter_row")(of_rows, row_sizes, row_numbers, 0, 2);
  find(handle, "scatter_row")(of_rows, row_sizes, row_numbers, 2, 5);
  for (int r = 0; r < 5; r++)
    for (int i = 0; i < MANY; i++) {
      const int32_t at = places[r * MANY + i];
      expected_sums[r * 7 + (at < 0 ? at + 7 : at)] += from[r * MANY + i] * 0.5f;
    }
  assert_memory_equal(sums, expected_sums, sizeof sums);
  assert_int_equal(wrong, 0);
  index[77] = ROWS_OF_TABLE;
  find(handle, "scatter")(pointers, sizes, numbers, 0, WIDTH);
  assert_int_equal(wrong, 1);
  dlclose(handle);
}

static void parts_within_bounds(void **state) {
  float part[4 * 5], rows[6 * 10], left[6 * 4], y[6 * 10];
  uint32_t seed = 11;
  void *handle = library();
  (void)state;
  for (int i = 0; i < 4 * 5; i++) part[i] = at_random(&seed);
  for (int i = 0; i < 6 * 10; i++) rows[i] = at_random(&seed);
  for (int i = 0; i < 6 * 4; i++) left[i] = at_random(&seed);
  char *pointers[] = {(char *)part, (char *)rows, (char *)left, (char *)y};
  const int64_t sizes[2] = {6, 10}, numbers[] = {5, 1, 10, 1, 4, 1, 10, 1, 1, 5, 3, 8, -1, 5, 0, 4};
  find(handle, "bounds")(pointers, sizes, numbers, 0, 6);
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 10; c++) {
      const float from_part = r >= 1 && r < 5 && c >= 3 && c < 8 ? part[(r - 1) * 5 + c - 3] : 0;
      const float from_rows = r < 5 ? rows[(r + 1) * 10 + c] : -1, other = c < 4 ? left[r * 4 + c] : from_rows;
      assert_true(y[r * 10 + c] == from_part + other);
    }
  dlclose(handle);
}

/* Rows of which some are inside become one dimension with their elements; an inner dimension that has bounds does
 * not. */
static void bounds_of_outer_dimensions_merge(void **state) {
  static const char text[] =
      "loop 2 x 6 x 5 x 1\nload f32 [0, 5, 1, 0] in 1: 2..4 else 0.0\nload f32 [30, 5, 1, 1] in 3: 0..2 else 0.0\n"
      "each f32 f32 \"a + b\" a=x0 b=x1\nstore f32 [30, 5, 1, 1] v0\n";
  lp_text_t out = {0};
  lp_parsed_t p;
  (void)state;
  assert_int_equal(lp_parse(text, &p), 0);
  assert_true(lp_simplify(&p.loop));
  lp_print_loop(&p.loop, &out);
  assert_string_equal(out.data, "loop 2 x 30 x 1\nload f32 [0, 1, 0] in 1: 10..20 else 0.0\n"
                                "load f32 [30, 1, 1] in 2: 0..2 else 0.0\neach f32 f32 \"a + b\" a=x0 b=x1\n"
                                "store f32 [30, 1, 1] v0\n");
  lp_text_deinit(&out);
  lp_parsed_deinit(&p);
}

/* A row of AOT_MAX_RANK dimensions that do not merge: an outer dimension would be one more. */
static void a_row_of_all_dimensions_has_none_around_it(void **state) {
  lp_text_t text = {0};
  lp_parsed_t p;
  (void)state;
  for (int d = 0; d < AOT_MAX_RANK; d++) lp_print(&text, d ? " x 2" : "loop 2");
  for (int d = 0; d < AOT_MAX_RANK; d++) lp_print(&text, d ? " %d" : " reduced %d", d);
  for (int d = 0; d < AOT_MAX_RANK; d++)
    lp_print(&text, d ? ", %d" : "\nload f32 [%d", 1 << (2 * (AOT_MAX_RANK - 1 - d)));
  lp_print(&text, "]\nsum f32 f32 \"a\" a=x0\n");
  for (int d = 0; d < AOT_MAX_RANK; d++) lp_print(&text, d ? ", 0" : "store f32 [0");
  lp_print(&text, "] row v0\n");
  assert_false(text.failed);
  assert_int_equal(lp_parse(text.data, &p), 0);
  assert_false(lp_simplify(&p.loop));
  lp_parsed_deinit(&p);
  lp_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_printed_is_read_again),
      cmocka_unit_test(schedules_and_c_are_the_expected_ones),
      cmocka_unit_test(schedules_and_cuda_are_the_expected_ones),
      cmocka_unit_test(every_kind_is_a_golden),
      cmocka_unit_test(hashes_stay_and_differ),
      cmocka_unit_test(what_is_wrong_is_told_by_its_line),
      cmocka_unit_test(rows_and_columns_of_every_length),
      cmocka_unit_test(layer_norm_s_gradients_in_two_parts),
      cmocka_unit_test(a_loss_and_its_gradient_in_one_loop),
      cmocka_unit_test(rows_of_a_table_by_their_numbers),
      cmocka_unit_test(elements_by_two_numbers),
      cmocka_unit_test(elements_added_by_numbers),
      cmocka_unit_test(parts_within_bounds),
      cmocka_unit_test(bounds_of_outer_dimensions_merge),
      cmocka_unit_test(a_row_of_all_dimensions_has_none_around_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
