/* The table of processors: their features as Linux lists them (shortened to words that the choice could look at), what
 * a release of OpenBLAS took, and what must become of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kit/blas/blas_kernels.h"
#include "kit/blas/openblas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SSE42 "fpu sse sse2 ssse3 sse4_1 sse4_2 popcnt"
#define AVX_ONLY SSE42 " avx xsave"
#define AVX2_FMA AVX_ONLY " f16c fma avx2 bmi1 bmi2"
#define SKYLAKE AVX2_FMA " avx512f avx512dq avx512cd avx512bw avx512vl"

static const struct {
  const char *processor, *flags, *taken, *better;
} rows[] = {
    {"Core 2 (Penryn)", "fpu sse sse2 ssse3 sse4_1", "Penryn", NULL},
    {"Nehalem", SSE42, "Nehalem", NULL},
    {"Sandy Bridge", AVX_ONLY, "Sandybridge", NULL},
    {"Sandy Bridge, unknown to the release", AVX_ONLY, "Prescott", "SANDYBRIDGE"},
    {"Ivy Bridge under Nehalem's kernels", AVX_ONLY " f16c", "Nehalem", "SANDYBRIDGE"},
    {"Haswell", AVX2_FMA, "Haswell", NULL},
    {"Alder Lake, 0.3.21", AVX2_FMA " avx_vnni vaes", "Haswell", NULL},
    {"Arrow Lake, 0.3.21", AVX2_FMA " avx_vnni vaes", "Prescott", "HASWELL"},
    {"Skylake SP", SKYLAKE, "SkylakeX", NULL},
    {"Skylake SP, no AVX512 in the build", SKYLAKE, "Haswell", "SKYLAKEX"},
    {"Knights Landing", AVX2_FMA " avx512f avx512pf avx512er avx512cd", "Haswell", NULL},
    {"Cooper Lake", SKYLAKE " avx512_vnni avx512_bf16", "Cooperlake", NULL},
    {"Ice Lake SP", SKYLAKE " avx512_vnni avx512vbmi", "SkylakeX", NULL},
    {"Sapphire Rapids, 0.3.21", SKYLAKE " avx512_bf16 avx512_fp16 amx_bf16 amx_tile", "Prescott", "SKYLAKEX"},
    {"Sapphire Rapids, a later release", SKYLAKE " avx512_bf16 amx_bf16", "SapphireRapids", NULL},
    {"Granite Rapids, 0.3.21", SKYLAKE " avx512_bf16 avx512_fp16 amx_fp16", "Prescott", "SKYLAKEX"},
    {"a guest without AVX512VL", AVX2_FMA " avx512f avx512dq avx512cd avx512bw", "Prescott", "HASWELL"},
    {"Bulldozer", AVX_ONLY " fma4 xop", "Bulldozer", NULL},
    {"Excavator", AVX2_FMA " fma4 xop", "Excavator", NULL},
    {"Zen 2", AVX2_FMA " sse4a clzero", "Zen", NULL},
    {"Zen 3, unknown to the release", AVX2_FMA " sse4a clzero vaes", "Prescott", "HASWELL"},
    {"Zen 4", SKYLAKE " sse4a avx512_bf16", "Cooperlake", NULL},
    {"Zen 4 under Zen's kernels", SKYLAKE " sse4a avx512_bf16", "Zen", "SKYLAKEX"},
    {"Zen 5, unknown to the release", SKYLAKE " sse4a avx512_bf16 avx_vnni", "Prescott", "SKYLAKEX"},
    {"names that begin alike", SSE42 " avx512f avx2x xavx", "Prescott", NULL},
    {"a name nobody knows", SKYLAKE, "DiamondRapids", NULL},
};

static void every_processor_has_its_kernels(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const char *better = bl_better_kernels(rows[k].flags, rows[k].taken);
    if (!rows[k].better != !better || (better && strcmp(better, rows[k].better) != 0))
      fail_msg("%s: %s instead of %s", rows[k].processor, better ? better : "nothing",
               rows[k].better ? rows[k].better : "nothing");
  }
}

static void here_the_library_needs_no_better_ones(void **state) {
  char flags[8192] = "";
  (void)state;
  assert_string_equal(bl_library()->failure, "");
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(flags, sizeof flags, f) && strncmp(flags, "flags", 5) != 0) continue;
  if (f) fclose(f);
  assert_null(bl_better_kernels(flags, bl_library()->openblas_get_corename()));
  assert_null(getenv("OPENBLAS_CORETYPE"));
  assert_null(getenv("OPENBLAS_NUM_THREADS"));
}

static void as_many_callers_as_asked_for(void **state) {
  float a[64 * 64], c[64 * 64];
  (void)state;
  for (int i = 0; i < 64 * 64; i++) a[i] = (float)(i % 5);
  for (int32_t n = 1; n < 5; n += 3) {
    assert_int_equal(bl_set_callers(n), n);
    bl_library()->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 64, 64, 64, 1, a, 64, a, 64, 0, c, 64);
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[3 * 64 + k] * a[k * 64 + 7];
    assert_true(c[3 * 64 + 7] == sum);
  }
}

static int count_threads(void) {
  char line[256];
  int n = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "Threads: %d", &n) == 1) break;
  if (f) fclose(f);
  return n;
}

/* Threads of the library's own would spin next to the callers. */
static void it_computes_in_the_thread_that_calls(void **state) {
  enum { N = 512 };
  float *a = calloc(N * N, sizeof *a), *c = malloc(N * N * sizeof *c);
  const int before = count_threads();
  (void)state;
  assert_non_null(a);
  assert_non_null(c);
  assert_int_equal(bl_set_callers(4), 4);
  bl_library()->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, a, N, 0, c, N);
  assert_int_equal(count_threads(), before);
  free(a);
  free(c);
}

int main(void) {
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_NUM_THREADS");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_processor_has_its_kernels), cmocka_unit_test(here_the_library_needs_no_better_ones),
      cmocka_unit_test(as_many_callers_as_asked_for), cmocka_unit_test(it_computes_in_the_thread_that_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
