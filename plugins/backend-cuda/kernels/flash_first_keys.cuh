/* The copy of the first tile of keys and values. */
lp_copy_tile(shared + PASSING, k, k_row, 0, KEYS - 1, TILE, ROW, THREADS);
lp_copy_tile(shared + PASSING + TILE_NBYTES, v, v_row, 0, KEYS - 1, TILE, ROW, THREADS);
lp_end_copies();
