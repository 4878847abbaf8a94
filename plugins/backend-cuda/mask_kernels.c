#include "mask_kernels.h"

#include "kernel_constants.h"
#include "kit/loops/loop_print.h"
#include <aot/base.h>
#include <string.h>

enum { THREADS = 128 };

static int64_t n_rows(const gc_mask_kernel_t *m) { return m->sizes[0] * m->sizes[1] * m->sizes[2]; }

/* BIAS: a block a row. HIDE: a thread a row. WEIGH: a thread an element. */
void gc_mask_launch(const gc_mask_kernel_t *m, uint32_t *out_blocks, uint32_t *out_threads) {
  const int64_t n = m->kind == GC_MASK_WEIGH ? n_rows(m) * m->sizes[3] : n_rows(m);
  *out_threads = THREADS;
  *out_blocks = (uint32_t)(m->kind == GC_MASK_BIAS ? n : (n + THREADS - 1) / THREADS);
}

static const char bias[] = {
#include "embedded/mask_bias.cu.inc"
};
static const char hide[] = {
#include "embedded/mask_hide.cu.inc"
};
static const char weigh[] = {
#include "embedded/mask_weigh.cu.inc"
};

static const char *loaded_mask(int32_t dtype) {
  switch (dtype) {
    case AOT_BOOL: return "((v) ? 0.0f : -INFINITY)";
    case AOT_BF16: return "lp_from_bf16(v)";
    case AOT_F16: return "lp_from_f16(v)";
    default: return "(v)";
  }
}

/* The constants of kernels/mask_*.cu. */
static void print_constants(lp_text_t *out, const gc_mask_kernel_t *m) {
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {
      {"ALL_ROWS", n_rows(m)},       {"HEADS", m->sizes[1]},           {"QUERIES", m->sizes[2]},
      {"COLUMNS", m->sizes[3]},      {"BATCH_STRIDE", m->strides[0]},  {"HEAD_STRIDE", m->strides[1]},
      {"ROW_STRIDE", m->strides[2]}, {"COLUMN_STRIDE", m->strides[3]}, {"MASK_BATCHES", m->of_batch},
      {"MASK_HEADS", m->of_head},
  };
  gc_print_constants(out, &(gc_constant_t){"THREADS", THREADS}, 1);
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
    lp_print(out, "  const int64_t %s = %lldLL;\n", numbers[k].name, (long long)numbers[k].value);
}

void gc_print_mask(const void *self, const char *name, lp_text_t *out) {
  const gc_mask_kernel_t *m = self;
  const int is_bias = m->kind == GC_MASK_BIAS;
  const char *text = is_bias ? bias : m->kind == GC_MASK_HIDE ? hide : weigh;
  const int32_t element = is_bias ? m->bias_dtype : m->dtype;
  gc_print_conversions(out, element);
  if (is_bias) lp_print(out, "#define LP_MASK(v) %s\n", loaded_mask(m->dtype));
  lp_print(out, "LP_KERNEL(%s, %d, %d) {\n", name, GC_MASK_N_POINTERS, THREADS);
  if (is_bias) lp_print(out, "  typedef %s mask_t;\n", lp_c_type(m->dtype));
  lp_print(out, "  typedef %s element_t;\n", lp_c_type(element));
  print_constants(out, m);
  lp_text_add(out, text, strlen(text));
  lp_print(out, "#undef LP_VALUE\n#undef LP_ELEMENT\n%s", is_bias ? "#undef LP_MASK\n" : "");
}
