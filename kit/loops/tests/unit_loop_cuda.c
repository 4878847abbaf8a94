/* CUDA C of loops, run on the CPU (kit/cuda): against their C, and every operator against its reference kernel.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kit/reference/rk_core.h"
#include "kit/random/philox.h"
#include <aot/inline.h>
#include "loop_goldens.h"
#include "loop_library.h"
#include "loop_operators.h"
#include "loop_texts.h"
#include <math.h>

static const lp_gpu_machine_t machine = {90, 8, 227 << 10, 228 << 10};
enum { MOST_ACCESSES = 16, N_GUARD = 64 };

/* ---- memory of a loop ---- */

typedef struct memory {
  char *data[MOST_ACCESSES];
  size_t size[MOST_ACCESSES];
  int64_t wrong;
} memory_t;

static void fill(char *at, int32_t dtype, size_t n, uint32_t *state) {
  const size_t size = aot_dtype_size(dtype);
  for (size_t k = 0; k < n; k++) {
    const int64_t whole = (int64_t)(next(state) >> 16) % 9 - 4;
    const double v = (double)next(state) / 4294967296.0 * 4 - 2;
    if (dtype == AOT_BOOL) at[k] = whole > 0;
    else if (dtype == AOT_I32) memcpy(at + k * size, &(int32_t){(int32_t)whole}, size);
    else if (dtype == AOT_I64) memcpy(at + k * size, &whole, size);
    else rk_store_f(at + k * size, dtype, v);
  }
}

/* The number of elements that an access reaches. */
static size_t reach(const lp_loop_t *l, const lp_access_t *a) {
  int64_t last = 0;
  for (int32_t d = 0; d < l->rank; d++)
    last += ((a->bounded >> d & 1u ? a->end[d] - a->begin[d] : l->sizes[d]) - 1) * a->strides[d];
  for (uint32_t i = 0; i < a->n_indices; i++) last += (a->indices[i].size - 1) * a->indices[i].stride;
  return (size_t)(last < 0 ? 0 : last + 1);
}

/* Numbers of an index tensor are within range; but for the last one, which is beyond it. */
static void fill_indices(const lp_loop_t *l, memory_t *m) {
  uint32_t state = 9;
  for (uint32_t k = 0; k < l->n_loads; k++)
    for (uint32_t i = 0; i < l->accesses[k].n_indices; i++) {
      const lp_index_t *x = &l->accesses[k].indices[i];
      const size_t size = aot_dtype_size(l->accesses[x->load].dtype), n = m->size[x->load] / size;
      for (size_t at = 0; at < n; at++) {
        int64_t v = (int64_t)(next(&state) >> 8) % x->size;
        if (x->wraps && v % 2) v -= x->size;
        if (at + 1 == n) v = x->size;
        memcpy(m->data[x->load] + at * size, size == 8 ? (void *)&v : (void *)&(int32_t){(int32_t)v}, size);
      }
    }
}

static void allocate(const lp_loop_t *l, memory_t *m) {
  uint32_t state = 5;
  m->wrong = 0;
  for (uint32_t k = 0; k < l->n_loads + l->n_stores; k++) {
    assert_true(k < MOST_ACCESSES);
    m->size[k] = reach(l, &l->accesses[k]) * aot_dtype_size(l->accesses[k].dtype);
    m->data[k] = aligned_alloc(64, (m->size[k] + 2 * N_GUARD) / 64 * 64);
    assert_non_null(m->data[k]);
    memset(m->data[k], 0x5a, (m->size[k] + 2 * N_GUARD) / 64 * 64);
    if (k < l->n_loads && !l->accesses[k].draws)
      fill(m->data[k], l->accesses[k].dtype, m->size[k] / aot_dtype_size(l->accesses[k].dtype), &state);
  }
  fill_indices(l, m);
}

static void release(const lp_loop_t *l, memory_t *m) {
  for (uint32_t k = 0; k < l->n_loads + l->n_stores; k++) free(m->data[k]);
}

/* ---- both targets ---- */

static lp_draw_t draw_of(int32_t dtype) {
  lp_draw_t draw = {.draw = 4};
  draw.fill = dtype == AOT_U32   ? ph_run_words32
              : dtype == AOT_U64 ? ph_run_words64
              : dtype == AOT_F32 ? ph_run_normal32
                                 : ph_run_normal64;
  return draw;
}

static void run_c(loop_fn f, const lp_loop_t *l, memory_t *m) {
  static double kept[4][1 << 17];
  lp_draw_t draws[MOST_ACCESSES];
  char *pointers[MOST_ACCESSES + 5];
  int64_t numbers[MOST_ACCESSES * AOT_MAX_RANK * 2];
  const uint32_t n = l->n_loads + l->n_stores;
  for (uint32_t k = 0; k < n; k++) {
    draws[k] = draw_of(l->accesses[k].dtype);
    pointers[k] = l->accesses[k].draws ? (char *)&draws[k] : m->data[k];
  }
  assert_true(l->n_kept <= 4);
  for (uint32_t k = 0; k < l->n_kept; k++) pointers[n + k] = (char *)kept[k];
  pointers[n + l->n_kept] = (char *)&m->wrong;
  assert_true(lp_n_numbers(l) <= MOST_ACCESSES * AOT_MAX_RANK * 2);
  lp_numbers(l, numbers);
  f(pointers, l->sizes, numbers, 0, l->sizes[0]);
}

typedef int (*shim_run_fn)(void *kernel, uint32_t blocks, uint32_t threads, char *const *pointers);

static void run_kernel(void *handle, const char *name, uint32_t blocks, uint32_t threads, char *const *pointers) {
  char bounds[64];
  shim_run_fn run;
  void *symbol = dlsym(handle, "shim_run"), *kernel = dlsym(handle, name);
  assert_non_null(symbol);
  assert_non_null(kernel);
  memcpy(&run, &symbol, sizeof run);
  snprintf(bounds, sizeof bounds, "%s_bounds", name);
  assert_true(threads <= *(const uint32_t *)dlsym(handle, bounds));
  if (!run(kernel, blocks, threads, pointers)) fail_msg("%s: threads wait for ever", name);
}

/* The words of tensor t, whose first block this is. */
static void put_tensor(const lp_loop_t *l, uint32_t t, uint32_t block, const memory_t *m, char **pointers) {
  const uint32_t shared = lp_gpu_shared_words(l), row = t * lp_gpu_row_words(l);
  for (uint32_t k = 0; k < l->n_loads + l->n_stores; k++) {
    const uint32_t word = lp_gpu_word(l, k);
    pointers[word < shared ? word : word + row] = l->accesses[k].draws ? (char *)4 : m->data[k];
  }
  pointers[shared + row + LP_GPU_SIZE] = (char *)(intptr_t)l->sizes[0];
  pointers[shared + row + LP_GPU_FIRST_BLOCK] = (char *)(intptr_t)block;
}

static void run_cuda(void *handle, const char *name, const lp_loop_t *l, memory_t *m) {
  char *pointers[MOST_ACCESSES + 2], other[64], *scratch = NULL;
  const uint32_t n = l->n_loads + l->n_stores;
  for (uint32_t k = 0; k < n; k++) pointers[k] = l->accesses[k].draws ? (char *)4 : m->data[k];
  if (l->gpu.tensors) put_tensor(l, 0, 0, m, pointers);
  if (lp_has_indices(l)) pointers[n] = (char *)&m->wrong;
  if (lp_gpu_scratch(l))
    scratch = pointers[lp_gpu_n_pointers(l) - 1] = aligned_alloc(64, (size_t)(lp_gpu_scratch(l) + 63) / 64 * 64);
  snprintf(other, sizeof other, "%s_begin", name);
  if (lp_gpu_has_begin(l)) run_kernel(handle, other, lp_gpu_begin_blocks(l), LP_GPU_BEGIN_THREADS, pointers);
  snprintf(other, sizeof other, "%s_merge", name);
  if (lp_gpu_has_merge(l)) run_kernel(handle, other, lp_gpu_merge_blocks(l), LP_GPU_BEGIN_THREADS, pointers);
  run_kernel(handle, name, l->gpu.blocks, l->gpu.threads, pointers);
  snprintf(other, sizeof other, "%s_end", name);
  if (lp_gpu_has_end(l)) run_kernel(handle, other, lp_gpu_end_blocks(l), LP_GPU_END_THREADS, pointers);
  free(scratch);
}

static void parse(const loop_text_t *t, lp_parsed_t *out) {
  const uint32_t wrong = lp_parse(t->text, out);
  if (wrong) fail_msg("%s:%u", t->name, wrong);
  assert_true(lp_simplify(&out->loop));
}

/* Sums are in float there and in double here; exp, tanh are other approximations; halves may be neighbours. */
static int agrees(const lp_loop_t *l, double a, double b, int32_t dtype) {
  if (a != a || b != b) return a != a && b != b;
  if (a == b) return 1;
  const double most = dtype == AOT_F16 ? 0x1p-10 : dtype == AOT_BF16 ? 0x1p-7 : dtype == AOT_F64 ? 1e-13 : 4e-6;
  return lp_is_float(dtype) && fabs(a - b) <= most * (1 + fabs(b)) + (l->reduced && dtype == AOT_F32 ? 2e-5 : 0);
}

static double number(const char *at, int32_t dtype, size_t k) {
  int32_t whole;
  if (dtype == AOT_BOOL) return at[k];
  if (dtype == AOT_I64) return (double)((const int64_t *)(const void *)at)[k];
  if (dtype != AOT_I32) return rk_load_f(at + k * aot_dtype_size(dtype), dtype);
  memcpy(&whole, at + k * sizeof whole, sizeof whole);
  return whole;
}

/* Random numbers are the same bits on every target. */
static void compare(const char *name, const lp_loop_t *l, const memory_t *got, const memory_t *expected) {
  int is_exact = 0;
  if (!got->wrong != !expected->wrong) fail_msg("%s: an index out of range is told by one of both", name);
  for (uint32_t k = 0; k < l->n_loads; k++) is_exact |= l->accesses[k].draws && !l->reduced;
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    const int32_t dtype = l->accesses[s].dtype;
    const int is_across = l->insts[l->accesses[s].inst].reduce == LP_ACROSS; /* parts are sums in float */
    for (size_t k = 0; k < expected->size[s] / aot_dtype_size(dtype); k++) {
      const double a = number(got->data[s], dtype, k), b = number(expected->data[s], dtype, k);
      if (is_exact ? a != b : !agrees(l, a, b, is_across ? AOT_F32 : dtype))
        fail_msg("%s, store %u, element %zu: %.9g, C has %.9g", name, s - l->n_loads, k, a, b);
    }
    if (memcmp(got->data[s] + got->size[s], expected->data[s] + got->size[s], N_GUARD) != 0)
      fail_msg("%s writes beyond store %u", name, s - l->n_loads);
  }
}

/* Other schedules of loops whose rows pass through shared memory: by bulk copies, and of fewer stages. */
static void other_stages_agree_with_c(void **state) {
  enum { N_WAYS = 5 };
  static const struct {
    uint32_t stages, bulk, teams;
  } ways[N_WAYS] = {{1, 0, 1}, {2, 0, 4}, {1, 1, 1}, {2, 1, 1}, {3, 1, 4}};
  static lp_parsed_t on_cpu[N_LOOP_TEXTS], on_gpu[N_LOOP_TEXTS][N_WAYS];
  lp_text_t c = {0}, cuda = {0};
  char name[64];
  int n = 0, n_bulk = 0;
  (void)state;
  lp_prelude_add(&c);
  lp_prelude_cuda_add(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    parse(&loop_texts[k], &on_cpu[k]);
    lp_schedule(&on_cpu[k].loop);
    lp_gen_c(&on_cpu[k].loop, loop_texts[k].name, &c);
    for (int way = 0; way < N_WAYS; way++) {
      lp_loop_t *l = &on_gpu[k][way].loop;
      parse(&loop_texts[k], &on_gpu[k][way]);
      assert_true(lp_gpu_schedule(l, &machine));
      const int was_staged = l->gpu.stages != 0;
      l->gpu.stages = ways[way].stages;
      l->gpu.bulk = ways[way].bulk;
      l->gpu.threads = l->gpu.team * ways[way].teams;
      l->gpu.blocks = 0;
      if (!was_staged || !lp_gpu_fit(l, &machine)) {
        l->gpu.kind = 0;
        continue;
      }
      n++;
      n_bulk += l->gpu.bulk != 0;
      snprintf(name, sizeof name, "%s_%d", loop_texts[k].name, way);
      lp_gen_cuda(l, name, &cuda);
    }
  }
  assert_true(n >= 12 && n_bulk >= 6);
  void *of_c = build(&c), *of_cuda = build_cuda(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    memory_t expected = {.wrong = 0};
    int is_there = 0;
    for (int way = 0; way < N_WAYS; way++) {
      memory_t got;
      if (!on_gpu[k][way].loop.gpu.kind) continue;
      if (!is_there) {
        allocate(&on_cpu[k].loop, &expected);
        run_c(find(of_c, loop_texts[k].name), &on_cpu[k].loop, &expected);
        is_there = 1;
      }
      allocate(&on_cpu[k].loop, &got);
      snprintf(name, sizeof name, "%s_%d", loop_texts[k].name, way);
      run_cuda(of_cuda, name, &on_gpu[k][way].loop, &got);
      compare(name, &on_cpu[k].loop, &got, &expected);
      release(&on_cpu[k].loop, &got);
    }
    if (is_there) release(&on_cpu[k].loop, &expected);
    for (int way = 0; way < N_WAYS; way++) lp_parsed_deinit(&on_gpu[k][way]);
    lp_parsed_deinit(&on_cpu[k]);
  }
  dlclose(of_c);
  dlclose(of_cuda);
  lp_text_deinit(&c);
  lp_text_deinit(&cuda);
}

/* With indices of 32 bits, and of 64. */
static void cuda_of_every_kind_of_loop_agrees_with_c(void **state) {
  static lp_parsed_t on_cpu[N_LOOP_TEXTS], on_gpu[N_LOOP_TEXTS];
  lp_text_t c = {0}, cuda = {0};
  char wide[64];
  (void)state;
  lp_prelude_add(&c);
  lp_prelude_cuda_add(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    parse(&loop_texts[k], &on_cpu[k]);
    parse(&loop_texts[k], &on_gpu[k]);
    lp_schedule(&on_cpu[k].loop);
    assert_true(lp_gpu_schedule(&on_gpu[k].loop, &machine));
    lp_gen_c(&on_cpu[k].loop, loop_texts[k].name, &c);
    lp_gen_cuda(&on_gpu[k].loop, loop_texts[k].name, &cuda);
    on_gpu[k].loop.gpu.wide = 1;
    snprintf(wide, sizeof wide, "%s_wide", loop_texts[k].name);
    lp_gen_cuda(&on_gpu[k].loop, wide, &cuda);
  }
  void *of_c = build(&c), *of_cuda = build_cuda(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    memory_t expected;
    allocate(&on_cpu[k].loop, &expected);
    run_c(find(of_c, loop_texts[k].name), &on_cpu[k].loop, &expected);
    snprintf(wide, sizeof wide, "%s_wide", loop_texts[k].name);
    for (int is_wide = 0; is_wide < 2; is_wide++) {
      memory_t got;
      allocate(&on_gpu[k].loop, &got);
      run_cuda(of_cuda, is_wide ? wide : loop_texts[k].name, &on_gpu[k].loop, &got);
      compare(loop_texts[k].name, &on_cpu[k].loop, &got, &expected);
      release(&on_gpu[k].loop, &got);
    }
    release(&on_cpu[k].loop, &expected);
    lp_parsed_deinit(&on_cpu[k]);
    lp_parsed_deinit(&on_gpu[k]);
  }
  dlclose(of_c);
  dlclose(of_cuda);
  lp_text_deinit(&c);
  lp_text_deinit(&cuda);
}

/* The loops whose CUDA C is not compared with a file, as they are scheduled for an H100. */
static void cuda_of_goldens_agrees_with_c(void **state) {
  static lp_parsed_t on_cpu[N_GOLDENS], on_gpu[N_GOLDENS];
  lp_text_t c = {0}, cuda = {0};
  int n_run = 0;
  (void)state;
  lp_prelude_add(&c);
  lp_prelude_cuda_add(&cuda);
  for (int k = 0; k < N_GOLDENS; k++) {
    if (goldens[k].has_cuda) continue;
    parse_golden(goldens[k].name, &on_cpu[k]);
    parse_golden(goldens[k].name, &on_gpu[k]);
    assert_true(lp_simplify(&on_cpu[k].loop) && lp_simplify(&on_gpu[k].loop));
    lp_schedule(&on_cpu[k].loop);
    assert_true(lp_gpu_schedule(&on_gpu[k].loop, &lp_gpu_h100));
    lp_gen_c(&on_cpu[k].loop, goldens[k].name, &c);
    lp_gen_cuda(&on_gpu[k].loop, goldens[k].name, &cuda);
  }
  void *of_c = build(&c), *of_cuda = build_cuda(&cuda);
  for (int k = 0; k < N_GOLDENS; k++) {
    memory_t expected, got;
    if (goldens[k].has_cuda) continue;
    allocate(&on_cpu[k].loop, &expected);
    run_c(find(of_c, goldens[k].name), &on_cpu[k].loop, &expected);
    allocate(&on_gpu[k].loop, &got);
    run_cuda(of_cuda, goldens[k].name, &on_gpu[k].loop, &got);
    compare(goldens[k].name, &on_cpu[k].loop, &got, &expected);
    release(&on_gpu[k].loop, &got);
    release(&on_cpu[k].loop, &expected);
    lp_parsed_deinit(&on_cpu[k]);
    lp_parsed_deinit(&on_gpu[k]);
    n_run++;
  }
  assert_int_equal(n_run, 18);
  dlclose(of_c);
  dlclose(of_cuda);
  lp_text_deinit(&c);
  lp_text_deinit(&cuda);
}

/* ---- several tensors in one launch ---- */

enum { N_TENSORS = 3 };

/* Of sizes that are multiples of the same vector, or of none. What all share is the first one's. */
static void run_several(void *of_c, void *of_cuda, const char *name, lp_loop_t *on_cpu, lp_loop_t *on_gpu) {
  const int64_t size = on_gpu->sizes[0];
  memory_t got[N_TENSORS], expected[N_TENSORS];
  char *pointers[LP_GPU_MOST_POINTERS];
  uint32_t block = 0;
  assert_true(lp_gpu_n_pointers(on_gpu) <= LP_GPU_MOST_POINTERS);
  for (uint32_t t = on_gpu->gpu.tensors; t-- > 0;)
    pointers[lp_gpu_shared_words(on_gpu) + t * lp_gpu_row_words(on_gpu) + LP_GPU_FIRST_BLOCK] =
        (char *)(intptr_t)LP_GPU_NO_BLOCK;
  for (uint32_t t = 0; t < N_TENSORS; t++) {
    on_cpu->sizes[0] = on_gpu->sizes[0] = size + (int64_t)(t * 777 * on_gpu->gpu.vector);
    allocate(on_cpu, &expected[t]);
    allocate(on_gpu, &got[t]);
    for (uint32_t k = 0; k < on_gpu->n_loads; k++) {
      if (lp_gpu_word(on_gpu, k) >= lp_gpu_shared_words(on_gpu)) continue;
      memcpy(got[t].data[k], got[0].data[k], got[0].size[k]);
      memcpy(expected[t].data[k], got[0].data[k], got[0].size[k]);
    }
    run_c(find(of_c, name), on_cpu, &expected[t]);
    assert_true(lp_gpu_fit(on_gpu, &machine));
    put_tensor(on_gpu, t, block, &got[t], pointers);
    block += on_gpu->gpu.blocks;
  }
  run_kernel(of_cuda, name, block, on_gpu->gpu.threads, pointers);
  for (uint32_t t = 0; t < N_TENSORS; t++) {
    compare(name, on_gpu, &got[t], &expected[t]);
    release(on_gpu, &got[t]);
    release(on_cpu, &expected[t]);
  }
}

static void one_launch_goes_for_tensors_of_several_sizes(void **state) {
  static lp_parsed_t on_cpu[N_LOOP_TEXTS], on_gpu[N_LOOP_TEXTS];
  lp_text_t c = {0}, cuda = {0};
  int n_run = 0;
  (void)state;
  lp_prelude_add(&c);
  lp_prelude_cuda_add(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    parse(&loop_texts[k], &on_cpu[k]);
    parse(&loop_texts[k], &on_gpu[k]);
    lp_schedule(&on_cpu[k].loop);
    assert_true(lp_gpu_schedule(&on_gpu[k].loop, &machine));
    if (!on_gpu[k].loop.gpu.tensors) continue;
    on_gpu[k].loop.gpu.tensors = lp_gpu_most_tensors(&on_gpu[k].loop);
    assert_true(on_gpu[k].loop.gpu.tensors > N_TENSORS);
    lp_gen_c(&on_cpu[k].loop, loop_texts[k].name, &c);
    lp_gen_cuda(&on_gpu[k].loop, loop_texts[k].name, &cuda);
  }
  void *of_c = build(&c), *of_cuda = build_cuda(&cuda);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    if (on_gpu[k].loop.gpu.tensors) {
      run_several(of_c, of_cuda, loop_texts[k].name, &on_cpu[k].loop, &on_gpu[k].loop);
      n_run++;
    }
    lp_parsed_deinit(&on_cpu[k]);
    lp_parsed_deinit(&on_gpu[k]);
  }
  assert_true(n_run >= 5);
  dlclose(of_c);
  dlclose(of_cuda);
  lp_text_deinit(&c);
  lp_text_deinit(&cuda);
}

static void run_one(void *handle, const one_t *one, char *const *pointers) {
  memory_t m;
  for (uint32_t k = 0; k <= one->loop.n_loads; k++) m.data[k] = pointers[k];
  run_cuda(handle, one->name, &one->loop, &m);
}

static void every_operator_agrees_with_its_reference_kernel(void **state) {
  one_t *ones;
  operands_t o;
  lp_text_t source = {0};
  const int n = make_all(&ones);
  (void)state;
  randomize(&o);
  lp_prelude_cuda_add(&source);
  for (int k = 0; k < n; k++) {
    assert_true(lp_gpu_schedule(&ones[k].loop, &machine));
    lp_gen_cuda(&ones[k].loop, ones[k].name, &source);
  }
  void *handle = build_cuda(&source);
  for (int k = 0; k < n; k++) compare_one(&ones[k], run_one, handle, &o);
  dlclose(handle);
  lp_text_deinit(&source);
  free(ones);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cuda_of_every_kind_of_loop_agrees_with_c),
      cmocka_unit_test(cuda_of_goldens_agrees_with_c),
      cmocka_unit_test(one_launch_goes_for_tensors_of_several_sizes),
      cmocka_unit_test(other_stages_agree_with_c),
      cmocka_unit_test(every_operator_agrees_with_its_reference_kernel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
