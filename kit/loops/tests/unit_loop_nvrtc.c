/* The CUDA C of every loop of the tests, compiled by NVRTC for two architectures, and of every operator in every dtype,
 * for the newer one: for both with AOT_SWEEPS=whole (tools/nightly).
 * AOT_NVRTC: a folder where it is looked for first. Without NVRTC the program ends with 77: skipped. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kit/cuda/nvrtc.h"
#include "loop_operators.h"
#include "loop_texts.h"
#include <dirent.h>

static nv_nvrtc_t nvrtc;

static void compiles_for(const lp_text_t *text, const char *name, int architecture) {
  char *out;
  size_t size = 0;
  const int is_done = nv_nvrtc_compile(&nvrtc, text->data, name, architecture, &out, &size);
  if (!is_done) fail_msg("%s for sm_%d: %.2000s", name, architecture, out ? out : "no memory");
  assert_true(size > 1000);
  free(out);
}

static void compiles(const lp_text_t *text, const char *name) {
  compiles_for(text, name, 80);
  compiles_for(text, name, 90);
}

static void add(const char *name, const char *text, lp_text_t *out) {
  lp_parsed_t p;
  const uint32_t wrong = lp_parse(text, &p);
  if (wrong) fail_msg("%s:%u", name, wrong);
  assert_true(lp_simplify(&p.loop));
  assert_true(lp_gpu_schedule(&p.loop, &lp_gpu_h100));
  lp_gen_cuda(&p.loop, name, out);
  if (p.loop.gpu.tensors) {
    char several[80];
    snprintf(several, sizeof several, "%s_of_several", name);
    p.loop.gpu.tensors = lp_gpu_most_tensors(&p.loop);
    lp_gen_cuda(&p.loop, several, out);
  }
  lp_parsed_deinit(&p);
}

static void add_file(const char *file, lp_text_t *out) {
  char path[512], name[64], text[16384] = "";
  snprintf(path, sizeof path, LP_TEST_DIR "/%s", file);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_true(fread(text, 1, sizeof text - 1, f) < sizeof text - 1);
  fclose(f);
  snprintf(name, sizeof name, "file_%.*s", (int)strcspn(file, "."), file);
  add(name, text, out);
}

static void loops_of_the_tests_compile(void **state) {
  lp_text_t out = {0};
  int n = 0;
  DIR *folder = opendir(LP_TEST_DIR);
  (void)state;
  assert_non_null(folder);
  lp_prelude_cuda_add(&out);
  for (struct dirent *entry; (entry = readdir(folder));) {
    const char *ending = strrchr(entry->d_name, '.');
    if (!ending || strcmp(ending, ".loop") != 0) continue;
    add_file(entry->d_name, &out);
    n++;
  }
  closedir(folder);
  assert_true(n >= 4);
  for (int k = 0; k < N_LOOP_TEXTS; k++) add(loop_texts[k].name, loop_texts[k].text, &out);
  compiles(&out, "loops.cu");
  lp_text_deinit(&out);
}

static void rows_in_bulk_compile(void **state) {
  lp_text_t out = {0};
  int n = 0;
  (void)state;
  lp_prelude_cuda_add(&out);
  for (int k = 0; k < N_LOOP_TEXTS; k++) {
    lp_parsed_t p;
    assert_int_equal(lp_parse(loop_texts[k].text, &p), 0);
    assert_true(lp_simplify(&p.loop) && lp_gpu_schedule(&p.loop, &lp_gpu_h100));
    p.loop.gpu.bulk = p.loop.gpu.stages != 0;
    p.loop.gpu.blocks = 0;
    if (p.loop.gpu.bulk && lp_gpu_fit(&p.loop, &lp_gpu_h100)) {
      lp_gen_cuda(&p.loop, loop_texts[k].name, &out);
      n++;
    }
    lp_parsed_deinit(&p);
  }
  assert_true(n >= 1);
  compiles_for(&out, "bulk.cu", 90);
  lp_text_deinit(&out);
}

/* Operators of a dtype are instructions of one loop, which stores them all: kernels cost NVRTC more than
 * instructions. */
static void operators_compile(void **state) {
  static const int32_t dtypes[] = {AOT_F32, AOT_F64, AOT_I64, AOT_F16, AOT_BF16};
  static lp_inst_t insts[LP_INSTS];
  static lp_access_t accesses[LP_INSTS];
  lp_text_t out = {0};
  one_t *ones;
  const int n = make_all(&ones);
  (void)state;
  lp_prelude_cuda_add(&out);
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    char name[16];
    lp_loop_t l = {.rank = 1, .sizes = {1000}, .accesses = accesses, .n_loads = 4, .insts = insts};
    for (int k = 0; k < 4; k++) accesses[k] = (lp_access_t){.dtype = dtypes[d], .strides = {1}, .align = 16};
    for (int k = 0; k < n; k++) {
      if (ones[k].dtype != dtypes[d]) continue;
      lp_inst_t *inst = &insts[l.n_insts];
      *inst = ones[k].inst;
      for (uint32_t a = 0; a < 4; a++)
        if (inst->args[a].kind == LP_LOAD) inst->args[a].index = a;
      accesses[4 + l.n_stores++] = (lp_access_t){.dtype = dtypes[d], .strides = {1}, .inst = l.n_insts++};
    }
    assert_true(l.n_stores > 50);
    assert_true(lp_gpu_schedule(&l, &lp_gpu_h100));
    snprintf(name, sizeof name, "of_%s", aot_dtype_name(dtypes[d]));
    lp_gen_cuda(&l, name, &out);
  }
  const char *sweeps = getenv("AOT_SWEEPS");
  if (sweeps && strcmp(sweeps, "whole") == 0) compiles_for(&out, "operators.cu", 80);
  compiles_for(&out, "operators.cu", 90);
  lp_text_deinit(&out);
  free(ones);
}

int main(void) {
  char why[256];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_of_the_tests_compile),
      cmocka_unit_test(rows_in_bulk_compile),
      cmocka_unit_test(operators_compile),
  };
  if (!nv_nvrtc_open(&nvrtc, getenv("AOT_NVRTC"), why, sizeof why)) {
    printf("skipped: no CUDA C is compiled, for %s\n", why);
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
