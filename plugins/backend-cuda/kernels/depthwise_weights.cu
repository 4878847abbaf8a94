/* The gradient of the weights: a thread adds up two channels of a row of the window, over PART_ROWS rows of the
 * images. A loop adds the parts. */
#include "depthwise_pair.cuh"

LP_KERNEL(depthwise_weights, 4, THREADS) {
  const element_t *y = (const element_t *)LP_AT(2);
  float *parts = (float *)LP_AT(3);
  const int c = (int)blockIdx.x % (ALL_CHANNELS / CHANNELS) * CHANNELS + (int)threadIdx.x % (CHANNELS / 2) * 2;
  const int r = (int)threadIdx.x / (CHANNELS / 2), part = (int)blockIdx.x / (ALL_CHANNELS / CHANNELS);
  float sums[COLUMNS][2] = {{0, 0}};
  if (r >= ROWS) return;
  for (int row = part * PART_ROWS; row < (part + 1) * PART_ROWS && row < IMAGES * HEIGHT; row++) {
    const int n = row / HEIGHT, h = row % HEIGHT + r - PAD_ROWS;
    if (h < 0 || h >= FROM_HEIGHT) continue;
    const element_t *x_row = from + n * from_image + h * FROM_ROW + c;
    const element_t *y_row = y + n * image + row % HEIGHT * ROW + c;
    for (int column = 0; column < WIDTH; column += TILE_WIDTH) {
      float g[TILE_WIDTH][2], line[TILE_WIDTH + COLUMNS - 1][2];
#pragma unroll
      for (int j = 0; j < TILE_WIDTH; j++) LP_PAIR(g[j], column + j < WIDTH, &y_row[(column + j) * COLUMN])
#pragma unroll
      for (int j = 0; j < TILE_WIDTH + COLUMNS - 1; j++) {
        const int v = column + j - PAD_COLUMNS;
        LP_PAIR(line[j], v >= 0 && v < FROM_WIDTH, &x_row[v * FROM_COLUMN])
      }
#pragma unroll
      for (int s = 0; s < COLUMNS; s++) {
#pragma unroll
        for (int j = 0; j < TILE_WIDTH; j++) {
          sums[s][0] += g[j][0] * line[j + s][0];
          sums[s][1] += g[j][1] * line[j + s][1];
        }
      }
    }
  }
#pragma unroll
  for (int s = 0; s < COLUMNS; s++) {
    float *at = &parts[((part * ROWS + r) * COLUMNS + s) * ALL_CHANNELS + c];
    at[0] = sums[s][0], at[1] = sums[s][1];
  }
}
