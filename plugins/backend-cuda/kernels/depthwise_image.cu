/* Forward, and the gradient of the image (IS_TURNED: windows turned by 180 degrees). A thread computes two channels
 * of a tile of TILE_HEIGHT x TILE_WIDTH outputs, so that a value it reads serves several; weights are in shared
 * memory. */
#include "depthwise_pair.cuh"

LP_KERNEL(depthwise_image, 4, THREADS) {
  element_t *to = (element_t *)LP_AT(IS_TURNED ? 0 : 2);
  __shared__ float weights[ROWS * COLUMNS * CHANNELS];
  const int first = (int)blockIdx.x % (ALL_CHANNELS / CHANNELS) * CHANNELS;
  for (int i = threadIdx.x; i < ROWS * COLUMNS * CHANNELS; i += THREADS) {
    const int place = IS_TURNED ? ROWS * COLUMNS - 1 - i / CHANNELS : i / CHANNELS;
    weights[i] = LP_VALUE(
        w[(first + i % CHANNELS) * WEIGHT_CHANNEL + place / COLUMNS * WEIGHT_ROW + place % COLUMNS * WEIGHT_COLUMN]);
  }
  __syncthreads();
  const int tiles = (WIDTH + TILE_WIDTH - 1) / TILE_WIDTH, tile_rows = (HEIGHT + TILE_HEIGHT - 1) / TILE_HEIGHT;
  const int c = (int)threadIdx.x % (CHANNELS / 2) * 2;
  const int tile =
      (int)blockIdx.x / (ALL_CHANNELS / CHANNELS) * (2 * THREADS / CHANNELS) + (int)threadIdx.x / (CHANNELS / 2);
  const int column = tile % tiles * TILE_WIDTH, row = tile / tiles % tile_rows * TILE_HEIGHT;
  const int n = tile / (tiles * tile_rows);
  if (n >= IMAGES) return;
  from += n * from_image + first + c;
  to += n * image + first + c;
  float sums[TILE_HEIGHT][TILE_WIDTH][2];
#pragma unroll
  for (int k = 0; k < TILE_HEIGHT * TILE_WIDTH; k++) {
    sums[k / TILE_WIDTH][k % TILE_WIDTH][0] = LP_BIAS(first + c);
    sums[k / TILE_WIDTH][k % TILE_WIDTH][1] = LP_BIAS(first + c + 1);
  }
#pragma unroll
  for (int i = 0; i < TILE_HEIGHT + ROWS - 1; i++) {
    float line[TILE_WIDTH + COLUMNS - 1][2];
    const int h = row + i - PAD_ROWS;
    if (h < 0 || h >= FROM_HEIGHT) continue;
#pragma unroll
    for (int j = 0; j < TILE_WIDTH + COLUMNS - 1; j++) {
      const int v = column + j - PAD_COLUMNS;
      LP_PAIR(line[j], v >= 0 && v < FROM_WIDTH, &from[h * FROM_ROW + v * FROM_COLUMN])
    }
#pragma unroll
    for (int t = 0; t < TILE_HEIGHT; t++) {
      const int r = i - t;
      if (r < 0 || r >= ROWS) continue;
#pragma unroll
      for (int s = 0; s < COLUMNS; s++) {
        const float *weight = &weights[(r * COLUMNS + s) * CHANNELS + c];
        const float a = weight[0], b = weight[1];
#pragma unroll
        for (int j = 0; j < TILE_WIDTH; j++) {
          sums[t][j][0] += line[j + s][0] * a;
          sums[t][j][1] += line[j + s][1] * b;
        }
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TILE_HEIGHT; t++) {
#pragma unroll
    for (int j = 0; j < TILE_WIDTH; j++) {
      LP_ALIGN16 element_t two[2] = {LP_ELEMENT(sums[t][j][0]), LP_ELEMENT(sums[t][j][1])};
      if (row + t < HEIGHT && column + j < WIDTH)
        lp_move(&to[(row + t) * ROW + (column + j) * COLUMN], two, 2 * sizeof(element_t));
    }
  }
}
