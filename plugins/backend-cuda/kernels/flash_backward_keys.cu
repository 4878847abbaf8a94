/* The gradients of keys and values. A block has keys and iterates over tiles of queries, of all heads that share these
 * keys. Runs after flash_backward_queries. Rows of matrices are keys, columns queries. */
#include "tensor_cores.cuh"

LP_RESIDENT(flash_backward_keys, 8, THREADS, RESIDENT) {
#include "flash_threads.cuh"

  /* A tile's numbers in shared memory: words of bits of its rows, for each word of the block's keys; then R; then L. */
  const int blocks = (KEYS + OWN - 1) / OWN, first = blockIdx.x % blocks * OWN;
  const int64_t head = blockIdx.x / blocks, n = head / (HEADS / SHARE), h_key = head % (HEADS / SHARE);
  const char *k = LP_AT(1) + n * k_batch + h_key * k_head, *v = LP_AT(2) + n * v_batch + h_key * v_head;
  const float *rows = (const float *)LP_AT(4);
  const uint32_t *bits = (const uint32_t *)LP_AT(5);
  const int all_tiles = (QUERIES + TILE - 1) / TILE, first_tile = IS_CAUSAL ? first / TILE : 0;
  const int n_tiles = first_tile < all_tiles ? all_tiles - first_tile : 0, n_rounds = n_tiles * SHARE;
  float gk[SIXTEENS][COLUMNS][4], gv[SIXTEENS][COLUMNS][4];
  uint32_t held_k[SIXTEENS][STEPS][4], held_v[SIXTEENS][STEPS][4];
  lp_copy_tile(shared, k, k_row, first, KEYS - 1, OWN, ROW, THREADS);
  lp_copy_tile(shared + OWN_NBYTES, v, v_row, first, KEYS - 1, OWN, ROW, THREADS);
  lp_end_copies();
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int c = 0; c < COLUMNS; c++) {
      LP_UNROLL
      for (int e = 0; e < 4; e++) gk[m][c][e] = gv[m][c][e] = 0.0f;
    }
  }
  const uint32_t k_at = base + warp * SIXTEENS * 16 * ROW, v_at = k_at + OWN_NBYTES;

  for (int round = -1; round < n_rounds; round++) {
    const char *const stage = shared + PASSING + (round & 1) * STAGE;
    const uint32_t q_at = base + PASSING + (round & 1) * STAGE, go_at = q_at + TILE_NBYTES;
    const int from = round < 0 ? 0 : (first_tile + round % n_tiles) * TILE;
    LP_WAIT_COPIES(0);
    __syncthreads();
    if (round + 1 < n_rounds) {
      char *const to = shared + PASSING + (round + 1 & 1) * STAGE;
      const int64_t h = h_key * SHARE + (round + 1) / n_tiles, line = (n * HEADS + h) * QUERIES;
      const int next = (first_tile + (round + 1) % n_tiles) * TILE;
      lp_copy_tile(to, LP_AT(0) + n * q_batch + h * q_head, q_row, next, QUERIES - 1, TILE, ROW, THREADS);
      lp_copy_tile(to + TILE_NBYTES, LP_AT(3) + n * go_batch + h * go_head, go_row, next, QUERIES - 1, TILE, ROW,
                   THREADS);
      LP_UNROLL
      for (int i = IS_DROPPED ? 0 : 2 * GROUPS * TILE; i < (2 * GROUPS + 2) * TILE; i += THREADS) {
        const int at = i + (int)threadIdx.x, what = at / TILE, query = next + at % TILE;
        const int word = first / 64 * 2 + what;
        const int64_t of = line + (query < QUERIES ? query : QUERIES - 1);
        const void *const number = what < 2 * GROUPS
                                       ? (const void *)&bits[of * WORDS + (word < WORDS ? word : WORDS - 1)]
                                       : (const void *)&rows[(what - 2 * GROUPS) * ALL_ROWS + of];
        if (what < 2 * GROUPS + 2) lp_copy(to + 2 * TILE_NBYTES + at * 4, number, 4);
      }
      lp_end_copies();
    }
    if (round < 0) {
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        LP_UNROLL
        for (int step = 0; step < STEPS; step++) {
          const uint32_t at = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);
          if (IS_HELD) lp_load_matrices(held_k[m][step], k_at + at);
          if (IS_HELD) lp_load_matrices(held_v[m][step], v_at + at);
        }
      }
      continue;
    }
    const uint32_t *const words =
        (const uint32_t *)(stage + 2 * TILE_NBYTES) + (warp * SIXTEENS / 4 * 2 + row / 4) * TILE;
    const float *const rests = (const float *)(stage + 2 * TILE_NBYTES) + 2 * GROUPS * TILE, *const logs = rests + TILE;
    const int shift = warp * SIXTEENS % 4 * 8 + row % 4;
    const int is_edge = from + TILE > QUERIES || (IS_CAUSAL && from < first + OWN - 1);

    /* K Q^T and V dO^T, of sixteen queries. */
    LP_UNROLL_TILE
    for (int j = 0; j < TILE / 16; j++) {
      float s[SIXTEENS][2][4], gp[SIXTEENS][2][4];
      uint32_t p2[SIXTEENS][4], gs[SIXTEENS][4];
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        LP_UNROLL
        for (int e = 0; e < 8; e++) s[m][e / 4][e % 4] = gp[m][e / 4][e % 4] = 0.0f;
      }
      LP_UNROLL
      for (int step = 0; step < STEPS; step++) {
        const uint32_t right = j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW);
        uint32_t b[4], b_of_go[4];
        lp_load_matrices(b, q_at + right);
        lp_load_matrices(b_of_go, go_at + right);
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          const uint32_t left = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);
          uint32_t a[4], a_of_v[4];
          if (!IS_HELD) lp_load_matrices(a, k_at + left);
          if (!IS_HELD) lp_load_matrices(a_of_v, v_at + left);
          LP_PRODUCT_OF(s[m][0], IS_HELD ? held_k[m][step] : a, b);
          LP_PRODUCT_OF(s[m][1], IS_HELD ? held_k[m][step] : a, b + 2);
          LP_PRODUCT_OF(gp[m][0], IS_HELD ? held_v[m][step] : a_of_v, b_of_go);
          LP_PRODUCT_OF(gp[m][1], IS_HELD ? held_v[m][step] : a_of_v, b_of_go + 2);
        }
      }

      /* P D and dS. */
      LP_UNROLL
      for (int i = 0; i < 2; i++) {
        LP_ALIGN16 uint32_t kept[2] = {0, 0};
        LP_ALIGN16 float rest[2], log2[2];
        if (IS_DROPPED) lp_move(kept, words + j * 16 + i * 8 + two, 8);
        lp_move(rest, rests + j * 16 + i * 8 + two, 8);
        lp_move(log2, logs + j * 16 + i * 8 + two, 8);
        kept[0] >>= shift;
        kept[1] >>= shift;
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          float x[4], y[4];
          LP_UNROLL
          for (int e = 0; e < 4; e++) {
            const int key = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;
            const int query = from + j * 16 + i * 8 + two + e % 2;
            float p = lp_exp2_coarse(s[m][i][e] * scale2 - log2[e % 2]);
            if (is_edge && (query >= QUERIES || (IS_CAUSAL && key > query))) p = 0.0f;
            x[e] = !IS_DROPPED || (kept[e % 2] & (1u << (8 * m + e / 2 * 4))) ? p : 0.0f;
            y[e] = x[e] * gp[m][i][e] - p * rest[e % 2];
          }
          p2[m][2 * i] = LP_TWO_OF(x[0], x[1]);
          p2[m][2 * i + 1] = LP_TWO_OF(x[2], x[3]);
          gs[m][2 * i] = LP_TWO_OF(y[0], y[1]);
          gs[m][2 * i + 1] = LP_TWO_OF(y[2], y[3]);
        }
      }

      /* dV = (P D)^T dO, dK = dS^T Q. */
      LP_UNROLL
      for (int c = 0; c < COLUMNS / 2; c++) {
        const uint32_t turned = j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW);
        uint32_t b[4], b_of_go[4];
        lp_load_turned(b, q_at + turned);
        lp_load_turned(b_of_go, go_at + turned);
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          LP_PRODUCT_OF(gv[m][2 * c], p2[m], b_of_go);
          LP_PRODUCT_OF(gv[m][2 * c + 1], p2[m], b_of_go + 2);
          LP_PRODUCT_OF(gk[m][2 * c], gs[m], b);
          LP_PRODUCT_OF(gk[m][2 * c + 1], gs[m], b + 2);
        }
      }
    }
  }

  const float factor = scale * keep_scale;
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int r = 0; r < 2; r++) {
      const int key = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;
      if (key < KEYS) {
        char *const to_k = LP_AT(6) + n * gk_batch + h_key * gk_head + key * gk_row + two * 2;
        char *const to_v = LP_AT(7) + n * gv_batch + h_key * gv_head + key * gv_row + two * 2;
        LP_UNROLL
        for (int c = 0; c < COLUMNS; c++) {
          const uint32_t of_k = LP_TWO_OF(gk[m][c][2 * r] * factor, gk[m][c][2 * r + 1] * factor);
          const uint32_t of_v = LP_TWO_OF(gv[m][c][2 * r] * keep_scale, gv[m][c][2 * r + 1] * keep_scale);
          lp_move(to_k + c * 16, &of_k, 4);
          lp_move(to_v + c * 16, &of_v, 4);
        }
      }
    }
  }
}
