#include "mask_text.h"

#include "common/loops/loop_print.h"
#include <aot/base.h>

enum { THREADS = 128 };

static int64_t n_rows(const gc_mask_kernel_t *m) { return m->sizes[0] * m->sizes[1] * m->sizes[2]; }

/* BIAS: a block a row. HIDE: a thread a row. WEIGH: a thread an element. */
void gc_mask_launch(const gc_mask_kernel_t *m, uint32_t *out_blocks, uint32_t *out_threads) {
  const int64_t n = m->kind == GC_MASK_WEIGH ? n_rows(m) * m->sizes[3] : n_rows(m);
  *out_threads = THREADS;
  *out_blocks = (uint32_t)(m->kind == GC_MASK_BIAS ? n : (n + THREADS - 1) / THREADS);
}

static const char *load(int32_t dtype) {
  switch (dtype) {
    case AOT_BOOL: return "(mask[at] ? 0.0f : -INFINITY)";
    case AOT_BF16: return "lp_from_bf16(mask[at])";
    case AOT_F16: return "lp_from_f16(mask[at])";
    default: return "mask[at]";
  }
}

/* "const int64_t i = .., h = .., n = ..;" out of a row's number, and where the row lies. */
static void print_row(lp_text_t *out, const gc_mask_kernel_t *m) {
  const long long heads = m->sizes[1], queries = m->sizes[2];
  lp_print(out, "  const int64_t i = row %% %lldLL, h = row / %lldLL %% %lldLL, n = row / %lldLL;\n", queries, queries,
           heads, queries * heads);
  lp_print(out, "  const int64_t first = n * %lldLL + h * %lldLL + i * %lldLL;\n", (long long)m->strides[0],
           (long long)m->strides[1], (long long)m->strides[2]);
}

static void print_weight(lp_text_t *out, const gc_mask_kernel_t *m) {
  lp_print(out, "  const float weight = weights[(%s * %lldLL + %s) * %lldLL + i];\n", m->of_batch > 1 ? "n" : "0",
           (long long)m->of_head, m->of_head > 1 ? "h" : "0", (long long)m->sizes[2]);
}

/* What is least is -2^123, so that its product with log2(e) is exact: engines take exp2 of that, less the same of a log sum
 * of such numbers. */
static void print_bias(lp_text_t *out, const gc_mask_kernel_t *m) {
  const long long n_keys = m->sizes[3];
  const char *half = lp_half_name(m->bias_dtype);
  lp_print(out,
           "  const %s *mask = (const %s *)LP_AT(0);\n  %s *bias = (%s *)LP_AT(1);\n"
           "  float *weights = (float *)LP_AT(2);\n"
           "  const float least = -0x1p123f, hidden = -1e30f;\n"
           "  __shared__ int levels[%d]; /* 2: it sees a key; 1: what it adds to some is finite */\n"
           "  const int64_t row = blockIdx.x;\n  int level = 0;\n",
           lp_c_type(m->dtype), lp_c_type(m->dtype), lp_c_type(m->bias_dtype), lp_c_type(m->bias_dtype), THREADS);
  print_row(out, m);
  lp_print(out,
           "  for (int64_t k = threadIdx.x; k < %lldLL; k += %d) {\n"
           "    const int64_t at = first + k * %lldLL;\n    const float x = %s;\n"
           "    const int of_key = !(x <= hidden) ? 2 : x > -INFINITY;\n"
           "    level = of_key > level ? of_key : level;\n    bias[row * %lldLL + k] = ",
           n_keys, THREADS, (long long)m->strides[3], load(m->dtype), n_keys);
  if (half) lp_print(out, "lp_to_%s(lp_round_%s(x < least ? least : x));\n  }\n", half, half);
  else lp_print(out, "x < least ? least : x;\n  }\n");
  lp_print(out,
           "  levels[threadIdx.x] = level;\n  __syncthreads();\n"
           "  for (uint32_t half = %d; half > 0; half /= 2) {\n"
           "    if (threadIdx.x < half && levels[threadIdx.x + half] > levels[threadIdx.x])\n"
           "      levels[threadIdx.x] = levels[threadIdx.x + half];\n"
           "    __syncthreads();\n  }\n"
           "  if (threadIdx.x == 0) weights[row] = levels[0] == 2 ? 1.0f : levels[0] ? 1.0f / %lld : 0.0f;\n",
           THREADS / 2, n_keys);
}

static void print_hide(lp_text_t *out, const gc_mask_kernel_t *m) {
  lp_print(out,
           "  const float *weights = (const float *)LP_AT(0);\n  %s *o = (%s *)LP_AT(1);\n"
           "  float *sums = (float *)LP_AT(2);\n"
           "  const int64_t row = (int64_t)blockIdx.x * %d + threadIdx.x;\n  if (row >= %lldLL) return;\n",
           lp_c_type(m->dtype), lp_c_type(m->dtype), THREADS, (long long)n_rows(m));
  print_row(out, m);
  print_weight(out, m);
  lp_print(out,
           "  if (weight != 0.0f) return;\n  sums[row] = 3e38f;\n"
           "  for (int64_t e = 0; e < %lldLL; e++) o[first + e * %lldLL] = 0;\n",
           (long long)m->sizes[3], (long long)m->strides[3]);
}

static void print_weigh(lp_text_t *out, const gc_mask_kernel_t *m) {
  const char *half = lp_half_name(m->dtype);
  lp_print(out,
           "  const float *weights = (const float *)LP_AT(0);\n  const %s *from = (const %s *)LP_AT(1);\n"
           "  %s *to = (%s *)LP_AT(2);\n"
           "  const int64_t at = (int64_t)blockIdx.x * %d + threadIdx.x, row = at / %lldLL;\n"
           "  if (row >= %lldLL) return;\n",
           lp_c_type(m->dtype), lp_c_type(m->dtype), lp_c_type(m->dtype), lp_c_type(m->dtype), THREADS,
           (long long)m->sizes[3], (long long)n_rows(m));
  print_row(out, m);
  print_weight(out, m);
  lp_print(out, "  to[at] = lp_to_%s(lp_round_%s(weight * lp_from_%s(from[first + at %% %lldLL * %lldLL])));\n", half,
           half, half, (long long)m->sizes[3], (long long)m->strides[3]);
}

void gc_print_mask(const void *self, const char *name, lp_text_t *out) {
  const gc_mask_kernel_t *m = self;
  lp_print(out, "LP_KERNEL(%s, %d, %d) {\n", name, GC_MASK_N_POINTERS, THREADS);
  if (m->kind == GC_MASK_BIAS) print_bias(out, m);
  else if (m->kind == GC_MASK_HIDE) print_hide(out, m);
  else print_weigh(out, m);
  lp_print(out, "}\n");
}
