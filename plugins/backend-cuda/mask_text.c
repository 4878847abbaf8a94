#include "mask_text.h"

#include "kit/loops/loop_print.h"
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

/* Keys that add -inf get -2^124, others at least -2^123: where all drown the latter share the row. As powers of two
 * they have exact products with log2(e): engines take exp2 of that, less the same of a log sum of such numbers. */
static void print_bias(lp_text_t *out, const gc_mask_kernel_t *m) {
  const long long n_keys = m->sizes[3];
  const char *half = lp_half_name(m->bias_dtype);
  lp_print(
      out,
      "  const %s *mask = (const %s *)LP_AT(0);\n  %s *bias = (%s *)LP_AT(1);\n"
      "  float *weights = (float *)LP_AT(2);\n"
      "  const float least = -0x1p123f, hidden = -1e30f;\n"
      "  __shared__ uint64_t keys[%d]; /* the upper half: that it sees; the lower: to which it adds what is finite */\n"
      "  const int64_t row = blockIdx.x;\n  uint64_t seen = 0;\n",
      lp_c_type(m->dtype), lp_c_type(m->dtype), lp_c_type(m->bias_dtype), lp_c_type(m->bias_dtype), THREADS);
  print_row(out, m);
  lp_print(out,
           "  for (int64_t k = threadIdx.x; k < %lldLL; k += %d) {\n"
           "    const int64_t at = first + k * %lldLL;\n    const float x = %s;\n"
           "    const float added = x == -INFINITY ? 2 * least : x < least ? least : x;\n"
           "    seen += !(x <= hidden) ? (uint64_t)1 << 32 : x > -INFINITY;\n    bias[row * %lldLL + k] = ",
           n_keys, THREADS, (long long)m->strides[3], load(m->dtype), n_keys);
  if (half) lp_print(out, "lp_to_%s(lp_round_%s(added));\n  }\n", half, half);
  else lp_print(out, "added;\n  }\n");
  lp_print(out,
           "  keys[threadIdx.x] = seen;\n  __syncthreads();\n"
           "  for (uint32_t half = %d; half > 0; half /= 2) {\n"
           "    if (threadIdx.x < half) keys[threadIdx.x] += keys[threadIdx.x + half];\n"
           "    __syncthreads();\n  }\n"
           "  if (threadIdx.x == 0) weights[row] = keys[0] >> 32 ? 1.0f : keys[0] ? 1.0f / keys[0] : 0.0f;\n",
           THREADS / 2);
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
