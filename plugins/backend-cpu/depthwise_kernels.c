/* Two ways, by how images is laid out. Images that lie channels last go by blocks of channels, each a vector: the block
 * of an image is laid out with its padding, and an element of the window is a sum of products of vectors.
 *
 * Else planes are laid out so that every element of the window is a sum of products of two arrays that lie side by
 * side: the input with its padding, divided into one plane for each phase of the strides, and the gradient with lines
 * of the same length, zeros after each. Element (i, j) of the window then begins (i * dilation) / stride lines and (j
 * * dilation) / stride places into the plane of the phases that are left over. */
#include "depthwise_kernels.h"

#include "simd_dispatch.h"
#include <string.h>

enum { LANES = 16, BLOCK = 7 }; /* elements of a line of the window that are summed at a time */
typedef float lanes_t __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct layout {
  int64_t pitch, n; /* length of a line; of the gradient's plane, in whole vectors */
  int64_t phase;    /* floats of the plane of one phase */
} layout_t;

static int64_t reach(const bc_conv_t *c, int d) { return c->dilation[d] * (c->kernel[d] - 1) / c->stride[d]; }

static layout_t layout_of(const bc_conv_t *c) {
  layout_t l = {.pitch = c->out[BC_WIDTH] + reach(c, BC_WIDTH)};
  l.n = (c->out[BC_HEIGHT] * l.pitch + LANES - 1) / LANES * LANES;
  l.phase = l.n + reach(c, BC_HEIGHT) * l.pitch + reach(c, BC_WIDTH);
  return l;
}

uint64_t bc_depthwise_work(const bc_conv_t *c) {
  const layout_t l = layout_of(c);
  const int64_t n_sums = c->kernel[BC_HEIGHT] * c->kernel[BC_WIDTH];
  return (uint64_t)n_sums * sizeof(lanes_t) +
         (uint64_t)(l.n + c->stride[BC_HEIGHT] * c->stride[BC_WIDTH] * l.phase) * sizeof(float);
}

/* ---- planes: laying out ---- */

static void lay_gradient(const bc_conv_t *c, const layout_t *l, const float *gy, float *out) {
  memset(out, 0, (size_t)l->n * sizeof *out);
  for (int64_t h = 0; h < c->out[BC_HEIGHT]; h++)
    memcpy(out + h * l->pitch, gy + h * c->out[BC_WIDTH], (size_t)c->out[BC_WIDTH] * sizeof *out);
}

/* Input (ih, iw) is needed at (ih + pad) / stride, in the plane of what is left over; what no window reaches is left
 * out. */
static void lay_input(const bc_conv_t *c, const layout_t *l, const float *x, float *out) {
  const int64_t lines = c->out[BC_HEIGHT] + reach(c, BC_HEIGHT), s = c->stride[BC_WIDTH];
  memset(out, 0, (size_t)(c->stride[BC_HEIGHT] * s * l->phase) * sizeof *out);
  for (int64_t ih = 0; ih < c->in[BC_HEIGHT]; ih++) {
    const int64_t h = ih + c->pad[BC_HEIGHT], line = h / c->stride[BC_HEIGHT];
    if (line >= lines) break;
    float *phases = out + h % c->stride[BC_HEIGHT] * s * l->phase + line * l->pitch;
    const float *from = x + ih * c->in[BC_WIDTH];
    for (int64_t phase = 0; phase < s; phase++) {
      const int64_t first = (c->pad[BC_WIDTH] - phase + s - 1) / s > 0 ? (c->pad[BC_WIDTH] - phase + s - 1) / s : 0;
      const int64_t shift = phase - c->pad[BC_WIDTH], past = (c->in[BC_WIDTH] - shift + s - 1) / s;
      const int64_t end = past < l->pitch ? past : l->pitch;
      float *to = phases + phase * l->phase;
      if (s == 1 && first < end) memcpy(to + first, from + first + shift, (size_t)(end - first) * sizeof *to);
      else
        for (int64_t at = first; at < end; at++) to[at] = from[at * s + shift];
    }
  }
}

/* ---- planes: sums ---- */

/* By address: such a vector is not handed over in the same way everywhere. */
static float join(const lanes_t *sums) {
  const lanes_t v = *sums;
  double sum[LANES];
  for (int k = 0; k < LANES; k++) sum[k] = (double)v[k];
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) sum[k] += sum[k + half];
  return (float)sum[0];
}

BC_INLINE void add_block(const float *g, const float *const *x, int64_t n, const int size, lanes_t *sums) {
  lanes_t sum[BLOCK];
  for (int k = 0; k < size; k++) sum[k] = sums[k];
  for (int64_t i = 0; i < n; i += LANES) {
    const lanes_t v = *(const lanes_t *)(g + i);
    for (int k = 0; k < size; k++) sum[k] += v * *(const lanes_t *)(x[k] + i);
  }
  for (int k = 0; k < size; k++) sums[k] = sum[k];
}

BC_INLINE void add_line(const float *g, const float *const *x, int64_t n, int size, lanes_t *sums) {
  switch (size) {
    case 1: add_block(g, x, n, 1, sums); break;
    case 2: add_block(g, x, n, 2, sums); break;
    case 3: add_block(g, x, n, 3, sums); break;
    case 4: add_block(g, x, n, 4, sums); break;
    case 5: add_block(g, x, n, 5, sums); break;
    case 6: add_block(g, x, n, 6, sums); break;
    default: add_block(g, x, n, BLOCK, sums); break;
  }
}

typedef void (*add_line_fn)(const float *g, const float *const *x, int64_t n, int size, lanes_t *sums);

static void add_line_any(const float *g, const float *const *x, int64_t n, int size, lanes_t *sums) {
  add_line(g, x, n, size, sums);
}

#if defined(__x86_64__)
static __attribute__((target("avx512f"))) void add_line_avx512(const float *g, const float *const *x, int64_t n,
                                                               int size, lanes_t *sums) {
  add_line(g, x, n, size, sums);
}
static __attribute__((target("avx2,fma"))) void add_line_avx2(const float *g, const float *const *x, int64_t n,
                                                              int size, lanes_t *sums) {
  add_line(g, x, n, size, sums);
}

static add_line_fn choose_line(void) {
  if (__builtin_cpu_supports("avx512f")) return add_line_avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? add_line_avx2 : add_line_any;
}
#else
static add_line_fn choose_line(void) { return add_line_any; }
#endif

static void add_plane(const bc_conv_t *c, const layout_t *l, add_line_fn add, const float *g, const float *x,
                      lanes_t *sums) {
  for (int64_t i = 0; i < c->kernel[BC_HEIGHT]; i++) {
    const int64_t h = i * c->dilation[BC_HEIGHT];
    const float *phases =
        x + h % c->stride[BC_HEIGHT] * c->stride[BC_WIDTH] * l->phase + h / c->stride[BC_HEIGHT] * l->pitch;
    for (int64_t j = 0; j < c->kernel[BC_WIDTH]; j += BLOCK) {
      const int size = c->kernel[BC_WIDTH] - j < BLOCK ? (int)(c->kernel[BC_WIDTH] - j) : BLOCK;
      const float *at[BLOCK];
      for (int k = 0; k < size; k++) {
        const int64_t w = (j + k) * c->dilation[BC_WIDTH];
        at[k] = phases + w % c->stride[BC_WIDTH] * l->phase + w / c->stride[BC_WIDTH];
      }
      add(g, at, l->n, size, sums + i * c->kernel[BC_WIDTH] + j);
    }
  }
}

void bc_depthwise_weights(const bc_conv_t *c, const float *gy, const float *x, float *gw, int64_t begin, int64_t end,
                          void *work) {
  const layout_t l = layout_of(c);
  const int64_t n_sums = c->kernel[BC_HEIGHT] * c->kernel[BC_WIDTH], in = c->in[BC_HEIGHT] * c->in[BC_WIDTH],
                out = c->out[BC_HEIGHT] * c->out[BC_WIDTH];
  const add_line_fn add = choose_line();
  lanes_t *sums = work;
  float *g = (float *)(sums + n_sums), *input = g + l.n;
  for (int64_t k = begin; k < end; k++) {
    memset(sums, 0, (size_t)n_sums * sizeof *sums);
    for (int64_t n = 0; n < c->n_batch; n++) {
      lay_gradient(c, &l, gy + (n * c->c_out + k) * out, g);
      lay_input(c, &l, x + (n * c->c_in + k) * in, input);
      add_plane(c, &l, add, g, input, sums);
    }
    for (int64_t i = 0; i < n_sums; i++) gw[k * n_sums + i] = join(&sums[i]);
  }
}

/* ---- channels last ---- */

int64_t bc_depthwise_blocks(const bc_conv_t *c) { return (c->groups + LANES - 1) / LANES; }

/* Lines and places of a block with its padding, as far as windows reach. */
static void padded_size(const bc_conv_t *c, int64_t out[2]) {
  for (int d = BC_HEIGHT; d <= BC_WIDTH; d++)
    out[d - BC_HEIGHT] = (c->out[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1;
}

uint64_t bc_depthwise_last_work(const bc_conv_t *c) {
  int64_t size[2];
  padded_size(c, size);
  const int64_t n_vectors = size[0] * size[1] + c->out[BC_HEIGHT] * c->out[BC_WIDTH] + BLOCK;
  return (uint64_t)n_vectors * sizeof(lanes_t) +
         (uint64_t)(c->kernel[BC_HEIGHT] * c->kernel[BC_WIDTH] * LANES) * sizeof(double);
}

/* `n` channels of a line of `width` places, at a vector each; what the others hold is not looked at. */
static void lay_channels(const float *from, int64_t channels, int64_t n, int64_t width, float *to) {
  for (int64_t w = 0; w < width; w++, from += channels, to += LANES)
    if (n == LANES) memcpy(to, from, LANES * sizeof *to);
    else memcpy(to, from, (size_t)n * sizeof *to);
}

static void lay_image(const bc_conv_t *c, const int64_t size[2], const float *x, int64_t n, float *out) {
  const int64_t end = c->in[BC_WIDTH] + c->pad[BC_WIDTH] < size[1] ? c->in[BC_WIDTH] + c->pad[BC_WIDTH] : size[1];
  memset(out, 0, (size_t)(size[0] * size[1]) * sizeof(lanes_t));
  for (int64_t ih = 0; ih < c->in[BC_HEIGHT] && ih + c->pad[BC_HEIGHT] < size[0]; ih++)
    lay_channels(x + ih * c->in[BC_WIDTH] * c->c_in, c->c_in, n, end - c->pad[BC_WIDTH],
                 out + ((ih + c->pad[BC_HEIGHT]) * size[1] + c->pad[BC_WIDTH]) * LANES);
}

/* Elements of one line of the window, `tap` floats of x apart, over all positions. */
BC_INLINE void add_taps(const float *g, const float *x, const int64_t n[2], const int64_t step[2], int64_t tap,
                        const int size, lanes_t *sums) {
  lanes_t sum[BLOCK];
  memset(sum, 0, sizeof sum);
  for (int64_t h = 0; h < n[0]; h++)
    for (int64_t w = 0; w < n[1]; w++, g += LANES) {
      const lanes_t v = *(const lanes_t *)g;
      const float *at = x + h * step[0] + w * step[1];
      for (int k = 0; k < size; k++) sum[k] += v * *(const lanes_t *)(at + k * tap);
    }
  memcpy(sums, sum, sizeof sum);
}

BC_INLINE void add_taps_of(const float *g, const float *x, const int64_t n[2], const int64_t step[2], int64_t tap,
                           int size, lanes_t *sums) {
  switch (size) {
    case 1: add_taps(g, x, n, step, tap, 1, sums); break;
    case 2: add_taps(g, x, n, step, tap, 2, sums); break;
    case 3: add_taps(g, x, n, step, tap, 3, sums); break;
    case 4: add_taps(g, x, n, step, tap, 4, sums); break;
    case 5: add_taps(g, x, n, step, tap, 5, sums); break;
    case 6: add_taps(g, x, n, step, tap, 6, sums); break;
    default: add_taps(g, x, n, step, tap, BLOCK, sums); break;
  }
}

typedef void (*add_taps_fn)(const float *g, const float *x, const int64_t n[2], const int64_t step[2], int64_t tap,
                            int size, lanes_t *sums);

static void add_taps_any(const float *g, const float *x, const int64_t n[2], const int64_t step[2], int64_t tap,
                         int size, lanes_t *sums) {
  add_taps_of(g, x, n, step, tap, size, sums);
}

#if defined(__x86_64__)
static __attribute__((target("avx512f"))) void add_taps_avx512(const float *g, const float *x, const int64_t n[2],
                                                               const int64_t step[2], int64_t tap, int size,
                                                               lanes_t *sums) {
  add_taps_of(g, x, n, step, tap, size, sums);
}
static __attribute__((target("avx2,fma"))) void add_taps_avx2(const float *g, const float *x, const int64_t n[2],
                                                              const int64_t step[2], int64_t tap, int size,
                                                              lanes_t *sums) {
  add_taps_of(g, x, n, step, tap, size, sums);
}

static add_taps_fn choose_taps(void) {
  if (__builtin_cpu_supports("avx512f")) return add_taps_avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? add_taps_avx2 : add_taps_any;
}
#else
static add_taps_fn choose_taps(void) { return add_taps_any; }
#endif

static void add_image(const bc_conv_t *c, int64_t pitch, add_taps_fn add, const float *g, const float *x, lanes_t *sums,
                      double *total) {
  const int64_t step[2] = {c->stride[BC_HEIGHT] * pitch * LANES, c->stride[BC_WIDTH] * LANES},
                tap = c->dilation[BC_WIDTH] * LANES;
  for (int64_t i = 0; i < c->kernel[BC_HEIGHT]; i++)
    for (int64_t j = 0; j < c->kernel[BC_WIDTH]; j += BLOCK) {
      const int size = c->kernel[BC_WIDTH] - j < BLOCK ? (int)(c->kernel[BC_WIDTH] - j) : BLOCK;
      const float *sum = (const float *)sums;
      add(g, x + (i * c->dilation[BC_HEIGHT] * pitch + j * c->dilation[BC_WIDTH]) * LANES, c->out + BC_HEIGHT, step,
          tap, size, sums);
      for (int64_t k = 0; k < size * LANES; k++) total[(i * c->kernel[BC_WIDTH] + j) * LANES + k] += (double)sum[k];
    }
}

void bc_depthwise_weights_last(const bc_conv_t *c, const float *gy, const float *x, float *gw, int64_t begin,
                               int64_t end, void *work) {
  const int64_t n_sums = c->kernel[BC_HEIGHT] * c->kernel[BC_WIDTH], out = c->out[BC_HEIGHT] * c->out[BC_WIDTH],
                channels = c->groups;
  const add_taps_fn add = choose_taps();
  int64_t size[2];
  padded_size(c, size);
  lanes_t *sums = work, *g = sums + BLOCK, *image = g + out;
  double *total = (double *)(image + size[0] * size[1]);
  for (int64_t block = begin; block < end; block++) {
    const int64_t first = block * LANES, n_channels = channels - first < LANES ? channels - first : LANES;
    memset(total, 0, (size_t)(n_sums * LANES) * sizeof *total);
    memset(g, 0, (size_t)out * sizeof *g);
    for (int64_t n = 0; n < c->n_batch; n++) {
      lay_channels(gy + n * out * channels + first, channels, n_channels, out, (float *)g);
      lay_image(c, size, x + n * c->in[BC_HEIGHT] * c->in[BC_WIDTH] * channels + first, n_channels, (float *)image);
      add_image(c, size[1], add, (const float *)g, (const float *)image, sums, total);
    }
    for (int64_t k = 0; k < n_channels; k++)
      for (int64_t i = 0; i < n_sums; i++) gw[(first + k) * n_sums + i] = (float)total[i * LANES + k];
  }
}
