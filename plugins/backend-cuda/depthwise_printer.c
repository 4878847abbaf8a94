#include "depthwise_printer.h"

#include "kernel_constants.h"
#include "kit/loops/loop_print.h"
#include <aot/base.h>
#include <string.h>

enum {
  WARP = 32,
  THREADS = 256,      /* of a block that makes images */
  MOST_CHANNELS = 64, /* of a block */
  FEWEST_CHANNELS = 8,
  MOST_WINDOW = 7,
  TILE_HEIGHT = 2,
  WANTED_THREADS = 1 << 18 /* of those that add weights' gradients up: as many as a large GPU has at once */
};

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static const int64_t *sizes(const gc_depthwise_t *d, int what) { return d->conv.sizes[what]; }
static int64_t channels(const gc_depthwise_t *d) { return sizes(d, GC_CONV_X)[1]; }
static int of_weights(const gc_depthwise_t *d) { return d->kind == GC_DNN_CONV_WEIGHTS; }

static int64_t block_channels(const gc_depthwise_t *d) {
  int64_t n = MOST_CHANNELS;
  while (channels(d) % n) n /= 2;
  return n;
}

/* The image that is made of the other one; of weights' gradients y, whose tiles are rows. */
static int made(const gc_depthwise_t *d) { return d->kind == GC_DNN_CONV_DATA ? GC_CONV_X : GC_CONV_Y; }

static int64_t tile_width(const gc_depthwise_t *d) {
  const int64_t width = sizes(d, made(d))[3];
  return width % 7 == 0 ? 7 : width % 8 == 0 || width > 16 ? 8 : 4;
}

static int64_t n_rows(const gc_depthwise_t *d) { return sizes(d, GC_CONV_Y)[0] * sizes(d, GC_CONV_Y)[2]; }

static int64_t part_rows(const gc_depthwise_t *d) {
  const int64_t parts = divide_up(WANTED_THREADS, channels(d) / 2 * sizes(d, GC_CONV_W)[2]), rows = n_rows(d);
  return divide_up(rows, parts < rows ? parts : rows);
}

int64_t gc_depthwise_parts(const gc_depthwise_t *d) { return divide_up(n_rows(d), part_rows(d)); }

int gc_is_depthwise(const gc_conv_t *c) {
  const int64_t n = c->sizes[GC_CONV_X][1], *w = c->sizes[GC_CONV_W];
  if (c->rank != 2 || w[1] != 1 || w[0] != n || n % FEWEST_CHANNELS || n < FEWEST_CHANNELS) return 0;
  if (c->dtype != AOT_F32 && c->dtype != AOT_F16 && c->dtype != AOT_BF16) return 0;
  for (int d = 0; d < 2; d++)
    if (w[2 + d] > MOST_WINDOW || c->window.stride[d] != 1 || c->window.dilation[d] != 1 ||
        c->window.pad[d] >= w[2 + d])
      return 0;
  for (int what = GC_CONV_X; what <= GC_CONV_Y; what += GC_CONV_Y - GC_CONV_X) {
    const int64_t *size = c->sizes[what], *stride = c->strides[what];
    if (stride[1] != 1 || size[1] * size[2] * size[3] < 1 || size[0] < 1) return 0;
    for (int d = 0; d < 4; d++)
      if (d != 1 && size[d] > 1 && (stride[d] % 2 || stride[d] < n)) return 0;
    if (size[2] * stride[2] > INT32_MAX) return 0;
  }
  return 1;
}

void gc_depthwise_launch(const gc_depthwise_t *d, uint32_t *out_blocks, uint32_t *out_threads) {
  const int64_t chunk = block_channels(d), *to = sizes(d, made(d));
  const int64_t tiles = to[0] * divide_up(to[2], TILE_HEIGHT) * divide_up(to[3], tile_width(d));
  *out_threads = (uint32_t)(of_weights(d) ? divide_up(chunk / 2 * sizes(d, GC_CONV_W)[2], WARP) * WARP : THREADS);
  *out_blocks =
      (uint32_t)(channels(d) / chunk * (of_weights(d) ? gc_depthwise_parts(d) : divide_up(tiles, 2 * THREADS / chunk)));
}

/* ---- text ---- */

/* The constants of kernels/depthwise_*.cu. */
static void print_constants(lp_text_t *out, const gc_depthwise_t *d) {
  const int to = made(d), from = of_weights(d) || to == GC_CONV_Y ? GC_CONV_X : GC_CONV_Y;
  const int64_t *w = sizes(d, GC_CONV_W), *steps = d->conv.strides[GC_CONV_W], *pad = d->conv.window.pad;
  const int is_turned = d->kind == GC_DNN_CONV_DATA;
  uint32_t blocks, threads;
  gc_depthwise_launch(d, &blocks, &threads);
  const gc_constant_t constants[] = {
      {"ALL_CHANNELS", channels(d)},
      {"CHANNELS", block_channels(d)},
      {"THREADS", threads},
      {"ROWS", w[2]},
      {"COLUMNS", w[3]},
      {"WEIGHT_CHANNEL", steps[0]},
      {"WEIGHT_ROW", steps[2]},
      {"WEIGHT_COLUMN", steps[3]},
      {"IS_TURNED", is_turned},
      {"PAD_ROWS", is_turned ? w[2] - 1 - pad[0] : pad[0]},
      {"PAD_COLUMNS", is_turned ? w[3] - 1 - pad[1] : pad[1]},
      {"IMAGES", sizes(d, to)[0]},
      {"FROM_HEIGHT", sizes(d, from)[2]},
      {"FROM_WIDTH", sizes(d, from)[3]},
      {"FROM_ROW", d->conv.strides[from][2]},
      {"FROM_COLUMN", d->conv.strides[from][3]},
      {"HEIGHT", sizes(d, to)[2]},
      {"WIDTH", sizes(d, to)[3]},
      {"ROW", d->conv.strides[to][2]},
      {"COLUMN", d->conv.strides[to][3]},
      {"TILE_HEIGHT", TILE_HEIGHT},
      {"TILE_WIDTH", tile_width(d)},
      {"PART_ROWS", part_rows(d)},
  };
  gc_print_constants(out, constants, sizeof constants / sizeof *constants);
  lp_print(out, "  const int64_t from_image = %lldLL, image = %lldLL;\n", (long long)d->conv.strides[from][0],
           (long long)d->conv.strides[to][0]);
  lp_print(out, "  const element_t *from = (const element_t *)LP_AT(%d), *w = (const element_t *)LP_AT(%d);\n", from,
           GC_CONV_W);
}

static const char pair_text[] = {
#include "embedded/depthwise_pair.cuh.inc"
};
static const char image_text[] = {
#include "embedded/depthwise_image.cu.inc"
};
static const char weights_text[] = {
#include "embedded/depthwise_weights.cu.inc"
};

static void add_text(lp_text_t *out, const char *text) { lp_text_add(out, text, strlen(text)); }

void gc_print_depthwise(const void *self, const char *name, lp_text_t *out) {
  const gc_depthwise_t *d = self;
  uint32_t blocks, threads;
  gc_depthwise_launch(d, &blocks, &threads);
  gc_print_conversions(out, d->conv.dtype);
  if (d->has_bias) lp_print(out, "#define LP_BIAS(c) LP_VALUE(((const element_t *)LP_AT(%d))[c])\n", GC_DEPTHWISE_MORE);
  else lp_print(out, "#define LP_BIAS(c) 0\n");
  add_text(out, pair_text);
  lp_print(out, "LP_KERNEL(%s, %d, %u) {\n", name, GC_DEPTHWISE_N_POINTERS, threads);
  lp_print(out, "  typedef %s element_t;\n", lp_c_type(d->conv.dtype));
  print_constants(out, d);
  add_text(out, of_weights(d) ? weights_text : image_text);
  lp_print(out, "#undef LP_VALUE\n#undef LP_ELEMENT\n#undef LP_BIAS\n#undef LP_PAIR\n");
}
