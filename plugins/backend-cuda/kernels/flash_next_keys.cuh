/* The wait for a tile of keys and values, and the copy of the next. */
LP_WAIT_COPIES(0);
__syncthreads();
if (tile + 1 < n_tiles) {
  char *const to = shared + PASSING + (tile + 1) % 2 * STAGE;
  lp_copy_tile(to, k, k_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);
  lp_copy_tile(to + TILE_NBYTES, v, v_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);
  lp_end_copies();
}
