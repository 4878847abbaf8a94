#include "depthwise_text.h"

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

/* What the texts below call by name. */
static void print_numbers(lp_text_t *out, const gc_depthwise_t *d) {
  const int to = made(d), from = of_weights(d) || to == GC_CONV_Y ? GC_CONV_X : GC_CONV_Y;
  const int64_t *w = sizes(d, GC_CONV_W), *steps = d->conv.strides[GC_CONV_W], *pad = d->conv.window.pad;
  const int is_turned = d->kind == GC_DNN_CONV_DATA;
  uint32_t blocks, threads;
  gc_depthwise_launch(d, &blocks, &threads);
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {
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
  lp_print(out, "  enum {");
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
    lp_print(out, "%s%s = %lld", k ? ", " : " ", numbers[k].name, (long long)numbers[k].value);
  lp_print(out, " };\n");
  lp_print(out, "  const int64_t from_image = %lldLL, image = %lldLL;\n", (long long)d->conv.strides[from][0],
           (long long)d->conv.strides[to][0]);
  lp_print(out, "  const element_t *from = (const element_t *)LP_AT(%d), *w = (const element_t *)LP_AT(%d);\n", from,
           GC_CONV_W);
}

/* Two neighbours, 0 outside of the line. */
static const char pair_text[] = "#define LP_PAIR(to, is_inside, at) { \\\n"
                                "    LP_ALIGN16 element_t two[2] = {0, 0}; \\\n"
                                "    if (is_inside) lp_move(two, at, 2 * sizeof(element_t)); \\\n"
                                "    to[0] = LP_VALUE(two[0]), to[1] = LP_VALUE(two[1]); }\n";

static const char image_text[] =
    "  element_t *to = (element_t *)LP_AT(IS_TURNED ? 0 : 2);\n"
    "  __shared__ float weights[ROWS * COLUMNS * CHANNELS];\n"
    "  const int first = (int)blockIdx.x % (ALL_CHANNELS / CHANNELS) * CHANNELS;\n"
    "  for (int i = threadIdx.x; i < ROWS * COLUMNS * CHANNELS; i += THREADS) {\n"
    "    const int place = IS_TURNED ? ROWS * COLUMNS - 1 - i / CHANNELS : i / CHANNELS;\n"
    "    weights[i] = LP_VALUE(w[(first + i % CHANNELS) * WEIGHT_CHANNEL + place / COLUMNS * WEIGHT_ROW +\n"
    "                            place % COLUMNS * WEIGHT_COLUMN]);\n"
    "  }\n"
    "  __syncthreads();\n"
    "  const int tiles = (WIDTH + TILE_WIDTH - 1) / TILE_WIDTH, tile_rows = (HEIGHT + TILE_HEIGHT - 1) / TILE_HEIGHT;\n"
    "  const int c = (int)threadIdx.x % (CHANNELS / 2) * 2;\n"
    "  const int tile = (int)blockIdx.x / (ALL_CHANNELS / CHANNELS) * (2 * THREADS / CHANNELS) +\n"
    "                   (int)threadIdx.x / (CHANNELS / 2);\n"
    "  const int column = tile % tiles * TILE_WIDTH, row = tile / tiles % tile_rows * TILE_HEIGHT;\n"
    "  const int n = tile / (tiles * tile_rows);\n"
    "  if (n >= IMAGES) return;\n"
    "  from += n * from_image + first + c;\n"
    "  to += n * image + first + c;\n"
    "  float sums[TILE_HEIGHT][TILE_WIDTH][2];\n"
    "#pragma unroll\n"
    "  for (int k = 0; k < TILE_HEIGHT * TILE_WIDTH; k++) {\n"
    "    sums[k / TILE_WIDTH][k % TILE_WIDTH][0] = LP_BIAS(first + c);\n"
    "    sums[k / TILE_WIDTH][k % TILE_WIDTH][1] = LP_BIAS(first + c + 1);\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < TILE_HEIGHT + ROWS - 1; i++) {\n"
    "    float line[TILE_WIDTH + COLUMNS - 1][2];\n"
    "    const int h = row + i - PAD_ROWS;\n"
    "    if (h < 0 || h >= FROM_HEIGHT) continue;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < TILE_WIDTH + COLUMNS - 1; j++) {\n"
    "      const int v = column + j - PAD_COLUMNS;\n"
    "      LP_PAIR(line[j], v >= 0 && v < FROM_WIDTH, &from[h * FROM_ROW + v * FROM_COLUMN])\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int t = 0; t < TILE_HEIGHT; t++) {\n"
    "      const int r = i - t;\n"
    "      if (r < 0 || r >= ROWS) continue;\n"
    "#pragma unroll\n"
    "      for (int s = 0; s < COLUMNS; s++) {\n"
    "        const float *weight = &weights[(r * COLUMNS + s) * CHANNELS + c];\n"
    "        const float a = weight[0], b = weight[1];\n"
    "#pragma unroll\n"
    "        for (int j = 0; j < TILE_WIDTH; j++) {\n"
    "          sums[t][j][0] += line[j + s][0] * a;\n"
    "          sums[t][j][1] += line[j + s][1] * b;\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < TILE_HEIGHT; t++) {\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < TILE_WIDTH; j++) {\n"
    "      LP_ALIGN16 element_t two[2] = {LP_ELEMENT(sums[t][j][0]), LP_ELEMENT(sums[t][j][1])};\n"
    "      if (row + t < HEIGHT && column + j < WIDTH)\n"
    "        lp_move(&to[(row + t) * ROW + (column + j) * COLUMN], two, 2 * sizeof(element_t));\n"
    "    }\n"
    "  }\n"
    "}\n";

static const char parts_text[] =
    "  const element_t *y = (const element_t *)LP_AT(2);\n"
    "  float *parts = (float *)LP_AT(3);\n"
    "  const int c = (int)blockIdx.x % (ALL_CHANNELS / CHANNELS) * CHANNELS + (int)threadIdx.x % (CHANNELS / 2) * 2;\n"
    "  const int r = (int)threadIdx.x / (CHANNELS / 2), part = (int)blockIdx.x / (ALL_CHANNELS / CHANNELS);\n"
    "  float sums[COLUMNS][2] = {{0, 0}};\n"
    "  if (r >= ROWS) return;\n"
    "  for (int row = part * PART_ROWS; row < (part + 1) * PART_ROWS && row < IMAGES * HEIGHT; row++) {\n"
    "    const int n = row / HEIGHT, h = row % HEIGHT + r - PAD_ROWS;\n"
    "    if (h < 0 || h >= FROM_HEIGHT) continue;\n"
    "    const element_t *x_row = from + n * from_image + h * FROM_ROW + c;\n"
    "    const element_t *y_row = y + n * image + row % HEIGHT * ROW + c;\n"
    "    for (int column = 0; column < WIDTH; column += TILE_WIDTH) {\n"
    "      float g[TILE_WIDTH][2], line[TILE_WIDTH + COLUMNS - 1][2];\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < TILE_WIDTH; j++)\n"
    "        LP_PAIR(g[j], column + j < WIDTH, &y_row[(column + j) * COLUMN])\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < TILE_WIDTH + COLUMNS - 1; j++) {\n"
    "        const int v = column + j - PAD_COLUMNS;\n"
    "        LP_PAIR(line[j], v >= 0 && v < FROM_WIDTH, &x_row[v * FROM_COLUMN])\n"
    "      }\n"
    "#pragma unroll\n"
    "      for (int s = 0; s < COLUMNS; s++) {\n"
    "#pragma unroll\n"
    "        for (int j = 0; j < TILE_WIDTH; j++) {\n"
    "          sums[s][0] += g[j][0] * line[j + s][0];\n"
    "          sums[s][1] += g[j][1] * line[j + s][1];\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int s = 0; s < COLUMNS; s++) {\n"
    "    float *at = &parts[((part * ROWS + r) * COLUMNS + s) * ALL_CHANNELS + c];\n"
    "    at[0] = sums[s][0], at[1] = sums[s][1];\n"
    "  }\n"
    "}\n";

static void add_text(lp_text_t *out, const char *text) { lp_text_add(out, text, strlen(text)); }

void gc_print_depthwise(const void *self, const char *name, lp_text_t *out) {
  const gc_depthwise_t *d = self;
  const char *half = lp_half_name(d->conv.dtype);
  uint32_t blocks, threads;
  gc_depthwise_launch(d, &blocks, &threads);
  if (half)
    lp_print(out, "#define LP_VALUE(v) lp_from_%s(v)\n#define LP_ELEMENT(v) lp_to_%s(lp_round_%s(v))\n", half, half,
             half);
  else lp_print(out, "#define LP_VALUE(v) (v)\n#define LP_ELEMENT(v) (v)\n");
  if (d->has_bias) lp_print(out, "#define LP_BIAS(c) LP_VALUE(((const element_t *)LP_AT(%d))[c])\n", GC_DEPTHWISE_MORE);
  else lp_print(out, "#define LP_BIAS(c) 0\n");
  add_text(out, pair_text);
  lp_print(out, "LP_KERNEL(%s, %d, %u) {\n", name, GC_DEPTHWISE_N_POINTERS, threads);
  lp_print(out, "  typedef %s element_t;\n", lp_c_type(d->conv.dtype));
  print_numbers(out, d);
  add_text(out, of_weights(d) ? parts_text : image_text);
  lp_print(out, "#undef LP_VALUE\n#undef LP_ELEMENT\n#undef LP_BIAS\n#undef LP_PAIR\n");
}
