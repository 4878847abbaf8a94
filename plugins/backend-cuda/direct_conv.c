#include "direct_conv.h"

#include "kit/loops/loop_print.h"
#include <aot/base.h>

enum { THREADS = 256, TEAM = 128 }; /* of a block: one an element; all for one */

static int is_team(const gc_conv_kernel_t *c) { return c->kind == GC_DNN_CONV_WEIGHTS; }

static int result_of(const gc_conv_kernel_t *c) {
  return c->kind == GC_DNN_CONV_FORWARD ? GC_CONV_Y : c->kind == GC_DNN_CONV_DATA ? GC_CONV_X : GC_CONV_W;
}

static int64_t n_results(const gc_conv_kernel_t *c) {
  int64_t n = 1;
  for (int32_t d = 0; d < c->conv.rank + 2; d++) n *= c->conv.sizes[result_of(c)][d];
  return n;
}

static double elements(const gc_conv_t *c, int what) {
  double n = 1;
  for (int32_t d = 0; d < c->rank + 2; d++) n *= (double)c->sizes[what][d];
  return n;
}

double gc_conv_flops(const gc_conv_kernel_t *c) {
  const double n = elements(&c->conv, GC_CONV_Y);
  return 2 * n * elements(&c->conv, GC_CONV_W) / (double)c->conv.sizes[GC_CONV_W][0];
}

void gc_conv_launch(const gc_conv_kernel_t *c, uint32_t *out_blocks, uint32_t *out_threads) {
  const int64_t n = n_results(c);
  *out_threads = is_team(c) ? TEAM : THREADS;
  *out_blocks = (uint32_t)(is_team(c) ? n : (n + THREADS - 1) / THREADS);
}

/* ---- elements ---- */

static const char *const tensor_names[] = {"x", "w", "y"};
static const char *sum_type(const gc_conv_t *c) { return c->dtype == AOT_F64 ? "double" : "float"; }

/* "[offset]" of the element whose coordinates are variables: the first two by name, then PREFIX0, PREFIX1, .. */
static void print_place(lp_text_t *out, const gc_conv_t *c, int tensor, const char *first, const char *second,
                        const char *prefix) {
  const int64_t *strides = c->strides[tensor];
  lp_print(out, "%s[%s * %lldLL + (%s) * %lldLL", tensor_names[tensor], first, (long long)strides[0], second,
           (long long)strides[1]);
  for (int32_t d = 0; d < c->rank; d++) lp_print(out, " + %s%d * %lldLL", prefix, d, (long long)strides[2 + d]);
  lp_print(out, "]");
}

static void print_load(lp_text_t *out, const gc_conv_t *c, int tensor, const char *first, const char *second,
                       const char *prefix) {
  const char *half = lp_half_name(c->dtype);
  if (half) lp_print(out, "lp_from_%s(", half);
  print_place(out, c, tensor, first, second, prefix);
  if (half) lp_print(out, ")");
}

static void print_stored(lp_text_t *out, const gc_conv_t *c) {
  const char *half = lp_half_name(c->dtype);
  if (half) lp_print(out, " = lp_to_%s(lp_round_%s(sum));\n", half, half);
  else lp_print(out, " = sum;\n");
}

/* Coordinates out of a number, the last dimension first: NAMEd, down to what is left in `rest`. */
static void print_coordinates(lp_text_t *out, const gc_conv_t *c, int tensor, const char *number, const char *name) {
  for (int32_t d = c->rank; d-- > 0;)
    lp_print(out, "  const int64_t %s%d = %s %% %lld; %s /= %lld;\n", name, d, number,
             (long long)c->sizes[tensor][2 + d], number, (long long)c->sizes[tensor][2 + d]);
}

static void print_window_loops(lp_text_t *out, const gc_conv_t *c) {
  for (int32_t d = 0; d < c->rank; d++)
    lp_print(out, "  for (int64_t r%d = 0; r%d < %lld; r%d++) {\n", d, d, (long long)c->sizes[GC_CONV_W][2 + d], d);
}
static void print_ends(lp_text_t *out, int32_t n) {
  for (int32_t d = 0; d < n; d++) lp_print(out, "  }\n");
}

/* i0, .. of the image that an output's o0, .. and a window's r0, .. meet at; one outside is passed over. */
static void print_image_place(lp_text_t *out, const gc_conv_t *c) {
  for (int32_t d = 0; d < c->rank; d++)
    lp_print(out,
             "  const int64_t i%d = o%d * %lld + r%d * %lld - %lld;\n"
             "  if (i%d < 0 || i%d >= %lld) continue;\n",
             d, d, (long long)c->window.stride[d], d, (long long)c->window.dilation[d], (long long)c->window.pad[d], d,
             d, (long long)c->sizes[GC_CONV_X][2 + d]);
}

/* ---- kernels ---- */

static void print_forward(lp_text_t *out, const gc_conv_t *c, int64_t c_group, int64_t k_group) {
  print_coordinates(out, c, GC_CONV_Y, "at", "o");
  lp_print(out, "  const int64_t k = at %% %lld, n = at / %lld;\n", (long long)c->sizes[GC_CONV_Y][1],
           (long long)c->sizes[GC_CONV_Y][1]);
  lp_print(out, "  for (int64_t c = 0; c < %lld; c++) {\n", (long long)c_group);
  print_window_loops(out, c);
  print_image_place(out, c);
  lp_print(out, "  const int64_t c_image = k / %lld * %lld + c;\n  sum += ", (long long)k_group, (long long)c_group);
  print_load(out, c, GC_CONV_X, "n", "c_image", "i");
  lp_print(out, " * ");
  print_load(out, c, GC_CONV_W, "k", "c", "r");
  lp_print(out, ";\n");
  print_ends(out, c->rank + 1);
  lp_print(out, "  ");
  print_place(out, c, GC_CONV_Y, "n", "k", "o");
}

static void print_data(lp_text_t *out, const gc_conv_t *c, int64_t c_group, int64_t k_group) {
  print_coordinates(out, c, GC_CONV_X, "at", "i");
  lp_print(out, "  const int64_t c = at %% %lld, n = at / %lld, c_weight = c %% %lld, k0 = c / %lld * %lld;\n",
           (long long)c->sizes[GC_CONV_X][1], (long long)c->sizes[GC_CONV_X][1], (long long)c_group, (long long)c_group,
           (long long)k_group);
  lp_print(out, "  for (int64_t k = k0; k < k0 + %lld; k++) {\n", (long long)k_group);
  print_window_loops(out, c);
  for (int32_t d = 0; d < c->rank; d++)
    lp_print(out,
             "  const int64_t t%d = i%d + %lld - r%d * %lld, o%d = t%d / %lld;\n"
             "  if (t%d < 0 || t%d %% %lld || o%d >= %lld) continue;\n",
             d, d, (long long)c->window.pad[d], d, (long long)c->window.dilation[d], d, d,
             (long long)c->window.stride[d], d, d, (long long)c->window.stride[d], d,
             (long long)c->sizes[GC_CONV_Y][2 + d]);
  lp_print(out, "  sum += ");
  print_load(out, c, GC_CONV_Y, "n", "k", "o");
  lp_print(out, " * ");
  print_load(out, c, GC_CONV_W, "k", "c_weight", "r");
  lp_print(out, ";\n");
  print_ends(out, c->rank + 1);
  lp_print(out, "  ");
  print_place(out, c, GC_CONV_X, "n", "c", "i");
}

/* The output's images and positions, divided among the threads of a block: `at` has their number. */
static void print_team_loop(lp_text_t *out, const gc_conv_t *c) {
  int64_t n = c->sizes[GC_CONV_Y][0];
  for (int32_t d = 0; d < c->rank; d++) n *= c->sizes[GC_CONV_Y][2 + d];
  lp_print(out, "  for (int64_t next = threadIdx.x; next < %lld; next += %d) {\n  int64_t n = next;\n", (long long)n,
           TEAM);
  print_coordinates(out, c, GC_CONV_Y, "n", "o");
}

static void print_team_sum(lp_text_t *out, const gc_conv_t *c) {
  lp_print(out,
           "  __shared__ %s sums[%d];\n"
           "  sums[threadIdx.x] = sum;\n"
           "  __syncthreads();\n"
           "  for (uint32_t half = %d; half > 0; half /= 2) {\n"
           "    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];\n"
           "    __syncthreads();\n"
           "  }\n"
           "  if (threadIdx.x) return;\n"
           "  sum = sums[0];\n  ",
           sum_type(c), TEAM, TEAM / 2);
}

static void print_weights(lp_text_t *out, const gc_conv_t *c, int64_t c_group, int64_t k_group) {
  print_coordinates(out, c, GC_CONV_W, "at", "r");
  lp_print(out, "  const int64_t c = at %% %lld, k = at / %lld, c_image = k / %lld * %lld + c;\n", (long long)c_group,
           (long long)c_group, (long long)k_group, (long long)c_group);
  print_team_loop(out, c);
  print_image_place(out, c);
  lp_print(out, "  sum += ");
  print_load(out, c, GC_CONV_Y, "n", "k", "o");
  lp_print(out, " * ");
  print_load(out, c, GC_CONV_X, "n", "c_image", "i");
  lp_print(out, ";\n  }\n");
  print_team_sum(out, c);
  print_place(out, c, GC_CONV_W, "k", "c", "r");
}

void gc_print_conv(const void *self, const char *name, lp_text_t *out) {
  const gc_conv_kernel_t *kernel = self;
  const gc_conv_t *c = &kernel->conv;
  const int64_t c_group = c->sizes[GC_CONV_W][1], groups = c->sizes[GC_CONV_X][1] / c_group;
  const int64_t k_group = c->sizes[GC_CONV_Y][1] / groups;
  uint32_t blocks, threads;
  gc_conv_launch(kernel, &blocks, &threads);
  lp_print(out, "LP_KERNEL(%s, %d, %u) {\n", name, GC_CONV_N_TENSORS, threads);
  for (int t = 0; t < GC_CONV_N_TENSORS; t++)
    lp_print(out, "  %s *%s = (%s *)LP_AT(%d);\n", lp_c_type(c->dtype), tensor_names[t], lp_c_type(c->dtype), t);
  if (is_team(kernel)) lp_print(out, "  int64_t at = blockIdx.x;\n");
  else
    lp_print(out, "  int64_t at = (int64_t)blockIdx.x * %d + threadIdx.x;\n  if (at >= %lld) return;\n", THREADS,
             (long long)n_results(kernel));
  lp_print(out, "  %s sum = 0;\n", sum_type(c));
  switch (kernel->kind) {
    case GC_DNN_CONV_FORWARD: print_forward(out, c, c_group, k_group); break;
    case GC_DNN_CONV_DATA: print_data(out, c, c_group, k_group); break;
    default: print_weights(out, c, c_group, k_group);
  }
  print_stored(out, c);
  lp_print(out, "}\n");
}
