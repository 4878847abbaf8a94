/* Products by cuBLASLt against naive ones, and which algorithm computes them, on the doubles of the driver and the
 * library (tests/cuda-double) or on a GPU. */
#include "kit/reference/rk_core.h"
#include "cuda_device.h"
#include "drawn.h"
#include "product_algorithms.h"

#include <aot/inline.h>
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static aot_status_t AOT_CALL diag(const aot_host_t *host, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)host, (void)ctx;
  fprintf(stderr, "%.*s\n", (int)d->message.size, d->message.data);
  return AOT_OK;
}
static const aot_host_t host = {.head = {.struct_size = sizeof host}, .diag = diag};

typedef struct fixture {
  gc_device_t *device;
  gc_cublaslt_t cublaslt;
  char folder[64];
} fixture_t;

static int begin(void **state) {
  fixture_t *w = calloc(1, sizeof *w);
  aot_status_t status;
  char why[256];
  w->device = gc_device_create(&host, NULL, 0, 600, &status);
  if (!w->device || gc_device_enter(w->device, NULL) != AOT_OK) return -1;
  if (gc_cublaslt_open(&w->cublaslt, why, sizeof why) || gc_cublaslt_start(&w->cublaslt, why, sizeof why)) return -1;
  strcpy(w->folder, "/tmp/algorithms-XXXXXX");
  *state = w;
  return mkdtemp(w->folder) ? 0 : -1;
}

/* The path of one of the files in the folder; how many there are. */
static int kept_files(const fixture_t *w, char *path, size_t size) {
  DIR *d = opendir(w->folder);
  int n = 0;
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.') n += snprintf(path, size, "%s/%s", w->folder, e->d_name) > 0;
  closedir(d);
  return n;
}

/* The path of the only one. 0: there is none. */
static int kept_file(const fixture_t *w, char *path, size_t size) {
  const int n = kept_files(w, path, size);
  assert_true(n <= 1);
  return n;
}

static int end(void **state) {
  fixture_t *w = *state;
  char path[512];
  while (kept_files(w, path, sizeof path)) unlink(path);
  const int failed = rmdir(w->folder);
  gc_cublaslt_close(&w->cublaslt);
  w->device->table.head.destroy(&w->device->table.head);
  free(w);
  return failed;
}

static int is_double(const fixture_t *w) { return strncmp(w->device->name, "a double", 8) == 0; }

/* ---- results ---- */

enum { MOST = 4096 };

static int64_t place(const gc_product_t *p, int i, int64_t batch, int64_t row, int64_t column) {
  const gc_matrix_t *m = &p->matrices[i];
  return batch * m->batch_stride + (m->transposed ? column * m->leading + row : row * m->leading + column);
}
static double element(const float *x, const gc_product_t *p, int i, int64_t batch, int64_t row, int64_t column) {
  return (double)x[place(p, i, batch, row, column)];
}

static void check(const gc_product_t *p, float (*x)[MOST], const float *got) {
  for (int64_t batch = 0; batch < p->n_batch; batch++)
    for (int64_t r = 0; r < p->m; r++)
      for (int64_t c = 0; c < p->n; c++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
          sum += element(x[GC_A], p, GC_A, batch, r, k) * element(x[GC_B], p, GC_B, batch, k, c);
        sum *= p->alpha;
        if (p->beta != 0) sum += p->beta * element(x[GC_C], p, GC_C, batch, r, c);
        if (p->has_bias) sum += (double)x[GC_BIAS][c];
        assert_float_equal(element(got, p, GC_D, batch, r, c), sum, 1e-4);
      }
}

/* On the device, with its operands in buffers of MOST elements. */
static void run_and_check(const fixture_t *w, gc_product_t *p) {
  const gc_driver_t *cu = &w->device->driver;
  static float x[GC_N_OPERANDS][MOST], got[MOST];
  gc_address_t block, at[GC_N_OPERANDS];
  gc_algorithms_t a;
  assert_int_equal(cu->mem_alloc(&block, sizeof x + p->workspace_nbytes), 0);
  for (int i = 0; i < GC_N_OPERANDS; i++) {
    for (int k = 0; k < MOST; k++) x[i][k] = (float)((k * 7 + i * 13) % 17 - 8) / 8;
    at[i] = block + (gc_address_t)i * sizeof *x;
  }
  assert_int_equal(cu->memcpy_to_device(block, x, sizeof x, w->device->setup), 0);
  gc_algorithms_init(&a, cu, &w->cublaslt, w->device->setup, NULL, "a device", GC_ALGORITHMS_TIME);
  assert_int_equal(gc_algorithms_choose(&a, p), 0);
  assert_int_equal(gc_product_init(&w->cublaslt, p), 0);
  assert_int_equal(gc_product_run(&w->cublaslt, p, at, w->device->setup), 0);
  gc_product_deinit(&w->cublaslt, p);
  gc_algorithms_deinit(&a);
  assert_int_equal(cu->memcpy_to_host(got, at[GC_D], sizeof got, w->device->setup), 0);
  assert_int_equal(cu->stream_synchronize(w->device->setup), 0);
  check(p, x, got);
  cu->mem_free(block);
}

static gc_product_t small(void) {
  return (gc_product_t){
      .dtype = AOT_F32,
      .result = AOT_F32,
      .m = 5,
      .n = 7,
      .k = 6,
      .n_batch = 3,
      .matrices = {{8, 64, 0}, {9, 100, 0}, {7, 50, 0}, {10, 60, 0}},
      .align = {16, 16, 16, 16},
      .alpha = 1,
      .workspace_nbytes = 1 << 16,
  };
}

static void operands_are_read_as_they_lie(void **state) {
  for (int form = 0; form < 16; form++) {
    gc_product_t p = small();
    p.matrices[GC_A].transposed = form & 1;
    p.matrices[GC_B].transposed = form >> 1 & 1;
    p.beta = form & 4 ? 0.5 : 0;
    p.has_bias = form >> 3;
    if (form & 1) p.alpha = 2;
    run_and_check(*state, &p);
  }
}

/* Lines of c begin at multiples of 16 bytes, and those of d do not. */
static void a_result_may_lie_less_evenly_than_what_is_added(void **state) {
  for (int64_t leading = 8; leading < 13; leading++) {
    gc_product_t p = small();
    p.beta = 0.5;
    p.matrices[GC_C] = (gc_matrix_t){8, 64, 0};
    p.matrices[GC_D] = (gc_matrix_t){leading, 5 * leading, 0};
    run_and_check(*state, &p);
  }
}

/* ---- drawn forms ---- */

enum { ROOM = 1 << 15 /* elements of an operand */ };

/* Operands begin `offset` elements into theirs. */
static gc_product_t drawn_form(int64_t offset[GC_N_OPERANDS]) {
  static const int32_t dtypes[] = {AOT_F32, AOT_F64, AOT_F16, AOT_BF16};
  gc_product_t p = {.dtype = dtypes[drawn(0, 3)], .m = drawn(1, 90), .n = drawn(1, 90), .k = drawn(1, 90)};
  const int64_t rows[] = {p.m, p.k, p.m, p.m}, columns[] = {p.k, p.n, p.n, p.n};
  p.result = aot_dtype_size(p.dtype) == 2 && drawn(0, 1) ? AOT_F32 : p.dtype;
  p.n_batch = drawn(0, 1) ? 1 : drawn(2, 3);
  p.alpha = (double)drawn(1, 2);
  p.has_bias = (int)drawn(0, 1);
  p.beta = p.has_bias ? (double)drawn(0, 1) : (double)drawn(0, 2) / 2;
  p.workspace_nbytes = 1 << 16;
  for (int i = 0; i < GC_N_MATRICES; i++) {
    gc_matrix_t *m = &p.matrices[i];
    m->transposed = i < GC_C && drawn(0, 1);
    const int64_t line = m->transposed ? rows[i] : columns[i], n_lines = m->transposed ? columns[i] : rows[i];
    m->leading = line + (drawn(0, 1) ? drawn(0, 3) : (8 - line % 8) % 8);
    m->batch_stride = p.n_batch > 1 ? n_lines * m->leading + (drawn(0, 1) ? drawn(0, 8) : 0) : 0;
    offset[i] = drawn(0, 1) ? 0 : drawn(0, 8);
    const int64_t size = (int64_t)aot_dtype_size(i < GC_C ? p.dtype : p.result);
    p.align[i] = 16;
    while (offset[i] * size % p.align[i] || m->batch_stride * size % p.align[i]) p.align[i] /= 2;
  }
  return p;
}

/* The largest difference, of the sum of its terms' absolute values. */
static double worst_of(const gc_product_t *p, double (*x)[ROOM], const char *got) {
  const int64_t size = (int64_t)aot_dtype_size(p->result);
  double worst = 0;
  for (int64_t batch = 0; batch < p->n_batch; batch++)
    for (int64_t r = 0; r < p->m; r++)
      for (int64_t c = 0; c < p->n; c++) {
        double sum = 0, all = 1;
        for (int64_t k = 0; k < p->k; k++) {
          const double term = p->alpha * x[GC_A][place(p, GC_A, batch, r, k)] * x[GC_B][place(p, GC_B, batch, k, c)];
          sum += term;
          all += fabs(term);
        }
        const double added = p->beta != 0 ? p->beta * x[GC_C][place(p, GC_C, batch, r, c)] : 0;
        const double bias = p->has_bias ? x[GC_BIAS][c] : 0;
        sum += added + bias;
        all += fabs(added) + fabs(bias);
        const double v = rk_load_f(got + place(p, GC_D, batch, r, c) * size, p->result), e = fabs(v - sum) / all;
        if (!(e <= worst)) worst = e; /* a NaN is one, too */
      }
  return worst;
}

/* Every algorithm that is named for a form, since any may be the fastest. */
static void drawn_forms_are_right_with_every_algorithm(void **state) {
  const fixture_t *w = *state;
  const gc_driver_t *cu = &w->device->driver;
  static double x[GC_N_OPERANDS][ROOM];
  static char bytes[GC_N_OPERANDS][ROOM * sizeof(double)], got[ROOM * sizeof(double)];
  gc_address_t block, at[GC_N_OPERANDS];
  assert_int_equal(cu->mem_alloc(&block, sizeof bytes), 0);
  for (int round = 0; round < (is_double(w) ? 40 : 600); round++) {
    int64_t offset[GC_N_OPERANDS] = {0};
    gc_product_t p = drawn_form(offset);
    gc_candidate_t candidates[GC_MOST_CANDIDATES];
    int n = 0;
    for (int i = 0; i < GC_N_OPERANDS; i++) {
      const int32_t dtype = i < GC_C ? p.dtype : p.result;
      const int64_t size = (int64_t)aot_dtype_size(dtype);
      at[i] = block + (gc_address_t)i * sizeof *bytes + (gc_address_t)(offset[i] * size);
      for (int64_t k = 0; k + offset[i] < ROOM; k++) {
        rk_store_f(bytes[i] + (k + offset[i]) * size, dtype, random_number());
        x[i][k] = rk_load_f(bytes[i] + (k + offset[i]) * size, dtype);
      }
    }
    assert_int_equal(cu->memcpy_to_device(block, bytes, sizeof bytes, w->device->setup), 0);
    assert_int_equal(gc_product_init(&w->cublaslt, &p), 0);
    const int failed = gc_product_candidates(&w->cublaslt, &p, candidates, GC_MOST_CANDIDATES, &n);
    for (int k = 0; k < n && !failed; k++) {
      p.algo = &candidates[k].algo;
      assert_int_equal(gc_product_run(&w->cublaslt, &p, at, w->device->setup), 0);
      assert_int_equal(cu->memcpy_to_host(got, block + GC_D * sizeof *bytes, sizeof got, w->device->setup), 0);
      assert_int_equal(cu->stream_synchronize(w->device->setup), 0);
      const double worst = worst_of(&p, x, got + offset[GC_D] * (int64_t)aot_dtype_size(p.result));
      const double most = p.result == AOT_F64 ? 1e-14 : p.result == AOT_F32 ? 2e-6 : p.result == AOT_F16 ? 1e-3 : 8e-3;
      if (!(worst <= most))
        fail_msg("%s to %s, %d x %d x %d, %d times, lines of %d, %d, %d, %d, algorithm %d: off by %g",
                 aot_dtype_name(p.dtype), aot_dtype_name(p.result), (int)p.m, (int)p.n, (int)p.k, (int)p.n_batch,
                 (int)p.matrices[GC_A].leading, (int)p.matrices[GC_B].leading, (int)p.matrices[GC_C].leading,
                 (int)p.matrices[GC_D].leading, k, worst);
    }
    gc_product_deinit(&w->cublaslt, &p);
  }
  cu->mem_free(block);
}

/* ---- algorithms ---- */

enum { DOUBLE_ALGORITHM = 0xA16000 }; /* the first of the library's double, then two more */

typedef struct choice {
  uint32_t n_timed, n_found;
  int number; /* of the algorithm */
} choice_t;

static choice_t choose(const fixture_t *w, const char *device, int how) {
  gc_algorithms_t a;
  gc_product_t p = small();
  gc_algorithms_init(&a, &w->device->driver, &w->cublaslt, w->device->setup, w->folder, device, how);
  for (int layer = 0; layer < 3; layer++) assert_int_equal(gc_algorithms_choose(&a, &p), 0);
  const choice_t c = {a.n_timed, a.n_found, (int)(p.algo->words[0] - DOUBLE_ALGORITHM)};
  gc_algorithms_deinit(&a);
  return c;
}

static void expect(choice_t c, uint32_t n_timed, uint32_t n_found) {
  assert_int_equal(c.n_timed, n_timed);
  assert_int_equal(c.n_found, n_found);
}

static void the_first_is_taken_where_none_is_timed(void **state) {
  char path[512];
  const choice_t c = choose(*state, "a device", GC_ALGORITHMS_FIRST);
  expect(c, 0, 0);
  if (is_double(*state)) assert_int_equal(c.number, 0);
  assert_false(kept_file(*state, path, sizeof path));
}

static void a_faster_one_is_found_once(void **state) {
  if (!is_double(*state)) skip();
  setenv("AOT_CUDA_DOUBLE", "slow-algorithm=0", 1);
  const choice_t first = choose(*state, "a device", GC_ALGORITHMS_TIME);
  expect(first, 1, 0);
  assert_int_not_equal(first.number, 0);
  setenv("AOT_CUDA_DOUBLE", first.number == 1 ? "slow-algorithm=1" : "slow-algorithm=2", 1);
  const choice_t second = choose(*state, "a device", GC_ALGORITHMS_TIME);
  expect(second, 0, 1);
  assert_int_equal(second.number, first.number);
  unsetenv("AOT_CUDA_DOUBLE");
}

static void of_another_device_or_library_is_none(void **state) {
  const fixture_t *w = *state;
  char path[512], aside[3][128];
  if (!is_double(w)) skip();
  for (int k = 0; k < 3; k++) {
    if (k == 2) setenv("AOT_CUDA_DOUBLE", "cublaslt-version=130100", 1);
    expect(choose(w, k == 1 ? "another" : "a device", GC_ALGORITHMS_TIME), 1, 0);
    unsetenv("AOT_CUDA_DOUBLE");
    assert_true(kept_file(w, path, sizeof path));
    snprintf(aside[k], sizeof aside[k], "%s/.%d", w->folder, k);
    rename(path, aside[k]);
  }
  for (int k = 0; k < 3; k++) unlink(aside[k]);
}

/* Lowering requests a form three times and gets its place; nothing runs before those that wait are chosen. */
static void a_form_waits_until_it_is_chosen(void **state) {
  const fixture_t *w = *state;
  for (uint32_t start = 0; start < 2; start++) {
    gc_algorithms_t a;
    gc_product_t p = small();
    gc_algorithms_init(&a, &w->device->driver, &w->cublaslt, w->device->setup, w->folder, "a device",
                       GC_ALGORITHMS_TIME);
    a.is_gathering = 1;
    for (int layer = 0; layer < 3; layer++) assert_int_equal(gc_algorithms_choose(&a, &p), 0);
    const gc_algo_t *place = p.algo;
    assert_int_equal(a.n_timed, 0);
    assert_int_equal(a.n_found, start); /* the second start has it from the folder */
    assert_int_equal(a.n_waiting, start == 0);
    a.is_gathering = 0;
    assert_int_equal(gc_algorithms_choose_waiting(&a), 0);
    assert_int_equal(a.n_waiting, 0);
    assert_int_equal(a.n_timed, start == 0);
    assert_int_equal(gc_algorithms_choose(&a, &p), 0);
    assert_ptr_equal(p.algo, place);
    assert_int_equal(a.n_timed, start == 0);
    if (is_double(w)) assert_in_range(place->words[0], DOUBLE_ALGORITHM, DOUBLE_ALGORITHM + 2);
    gc_algorithms_deinit(&a);
  }
}

static void that_a_form_has_none_is_told_when_it_is_chosen(void **state) {
  const fixture_t *w = *state;
  gc_algorithms_t a;
  gc_product_t plain = small(), biased = small();
  if (!is_double(w)) skip();
  setenv("AOT_CUDA_DOUBLE", "no-bias=1", 1);
  biased.has_bias = 1;
  gc_algorithms_init(&a, &w->device->driver, &w->cublaslt, w->device->setup, NULL, "a device", GC_ALGORITHMS_TIME);
  a.is_gathering = 1;
  assert_int_equal(gc_algorithms_choose(&a, &plain), 0);
  assert_int_equal(gc_algorithms_choose(&a, &biased), 0);
  assert_int_equal(gc_algorithms_choose_waiting(&a), 1);
  assert_int_equal(gc_algorithms_choose(&a, &plain), 0);
  assert_int_not_equal(gc_algorithms_choose(&a, &biased), 0);
  a.is_gathering = 0;
  assert_int_not_equal(gc_algorithms_choose(&a, &biased), 0);
  gc_algorithms_deinit(&a);
  unsetenv("AOT_CUDA_DOUBLE");
}

/* The first of the double's is the fastest, until it has run some thirty times. */
static void under_load_another_may_be_the_fastest(void **state) {
  char path[512];
  if (!is_double(*state)) skip();
  setenv("AOT_CUDA_DOUBLE", "tires=0", 1);
  const choice_t burst = choose(*state, "a device", GC_ALGORITHMS_TIME);
  expect(burst, 1, 0);
  assert_int_equal(burst.number, 0);
  const choice_t load = choose(*state, "a device", GC_ALGORITHMS_LOAD); /* what a burst found is not enough */
  expect(load, 1, 0);
  assert_int_not_equal(load.number, 0);
  assert_int_equal(kept_files(*state, path, sizeof path), 2);
  for (int how = GC_ALGORITHMS_TIME; how <= GC_ALGORITHMS_LOAD; how++) { /* .. and goes after what load found */
    const choice_t again = choose(*state, "a device", how);
    expect(again, 0, 1);
    assert_int_equal(again.number, load.number);
  }
  unsetenv("AOT_CUDA_DOUBLE");
}

typedef struct listener {
  int n_told, goes_on;
} listener_t;

static int listen_to(void *self, const char *text, int is_for_all) {
  listener_t *l = self;
  (void)is_for_all;
  l->n_told += text != NULL;
  return l->goes_on;
}

static void timing_under_load_is_told_and_can_be_stopped(void **state) {
  const fixture_t *w = *state;
  char path[512];
  for (int goes_on = 0; goes_on < 2; goes_on++) {
    listener_t l = {.goes_on = goes_on};
    gc_algorithms_t a;
    gc_product_t small_one = small(), large_one = small();
    large_one.m = 6;
    gc_algorithms_init(&a, &w->device->driver, &w->cublaslt, w->device->setup, w->folder, "a device",
                       GC_ALGORITHMS_LOAD);
    a.go_on = listen_to;
    a.listener = &l;
    a.is_gathering = 1;
    assert_int_equal(gc_algorithms_choose(&a, &small_one), 0);
    assert_int_equal(gc_algorithms_choose(&a, &large_one), 0);
    assert_int_equal(l.n_told, 0);
    assert_int_equal(gc_algorithms_choose_waiting(&a), 0);
    assert_int_equal(a.n_timed, goes_on ? 2 : 0);
    assert_int_equal(l.n_told, 2); /* the begin, and the end */
    assert_int_equal(kept_files(w, path, sizeof path), goes_on ? 2 : 0);
    if (is_double(w) && !goes_on) assert_int_equal(small_one.algo->words[0], DOUBLE_ALGORITHM);
    gc_algorithms_deinit(&a);
  }
}

static kf_key_t key_of_file(const char *path) {
  unsigned long long high = 0, low = 0;
  assert_int_equal(sscanf(strrchr(path, '/'), "/cuda-%16llx%16llx.algorithm", &high, &low), 2);
  return (kf_key_t){.low64 = low, .high64 = high};
}

static void what_is_damaged_or_not_taken_is_timed_again(void **state) {
  const fixture_t *w = *state;
  const gc_algo_t unknown = {{1, 2, 3}};
  char path[512];
  expect(choose(w, "a device", GC_ALGORITHMS_TIME), 1, 0);
  assert_true(kept_file(w, path, sizeof path));
  assert_int_equal(truncate(path, 20), 0);
  expect(choose(w, "a device", GC_ALGORITHMS_TIME), 1, 0);
  assert_int_equal(kf_write(w->folder, path, key_of_file(path), &unknown, sizeof unknown), 0);
  if (is_double(w)) expect(choose(w, "a device", GC_ALGORITHMS_TIME), 1, 0);
  assert_int_equal(kf_write(w->folder, path, key_of_file(path), &unknown, 8), 0);
  expect(choose(w, "a device", GC_ALGORITHMS_TIME), 1, 0);
  expect(choose(w, "a device", GC_ALGORITHMS_TIME), 0, 1);
}

static void without_memory_to_measure_the_first_is_taken(void **state) {
  const fixture_t *w = *state;
  const gc_driver_t *cu = &w->device->driver;
  gc_address_t all;
  size_t left, total;
  char path[512];
  if (!is_double(w)) skip();
  assert_int_equal(cu->mem_get_info(&left, &total), 0);
  assert_int_equal(cu->mem_alloc(&all, left - 4096), 0);
  const choice_t c = choose(w, "a device", GC_ALGORITHMS_TIME);
  expect(c, 0, 0);
  assert_int_equal(c.number, 0);
  assert_false(kept_file(w, path, sizeof path));
  cu->mem_free(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(operands_are_read_as_they_lie, begin, end),
      cmocka_unit_test_setup_teardown(a_result_may_lie_less_evenly_than_what_is_added, begin, end),
      cmocka_unit_test_setup_teardown(drawn_forms_are_right_with_every_algorithm, begin, end),
      cmocka_unit_test_setup_teardown(the_first_is_taken_where_none_is_timed, begin, end),
      cmocka_unit_test_setup_teardown(a_faster_one_is_found_once, begin, end),
      cmocka_unit_test_setup_teardown(a_form_waits_until_it_is_chosen, begin, end),
      cmocka_unit_test_setup_teardown(that_a_form_has_none_is_told_when_it_is_chosen, begin, end),
      cmocka_unit_test_setup_teardown(of_another_device_or_library_is_none, begin, end),
      cmocka_unit_test_setup_teardown(under_load_another_may_be_the_fastest, begin, end),
      cmocka_unit_test_setup_teardown(timing_under_load_is_told_and_can_be_stopped, begin, end),
      cmocka_unit_test_setup_teardown(what_is_damaged_or_not_taken_is_timed_again, begin, end),
      cmocka_unit_test_setup_teardown(without_memory_to_measure_the_first_is_taken, begin, end),
  };
  setenv("AOT_CUDA_DOUBLE", "memory=4194304 own-clock=1", 1); /* of the double, which reads it once */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
