/* The gradient of the queries. A block has queries of one head and iterates over tiles of keys. First it computes R,
 * and writes it with L in base 2 for flash_backward_keys. */
#include "tensor_cores.cuh"

LP_RESIDENT(flash_backward_queries, 9, THREADS, RESIDENT) {
#include "flash_threads.cuh"

#include "flash_query_block.cuh"

  const float *stats = (const float *)LP_AT(4);
  const uint32_t *bits = (const uint32_t *)LP_AT(6);
  float *rows = (float *)LP_AT(8);
  const char *const of_o = LP_AT(3) + n * o_batch + h * o_head, *const go = LP_AT(5) + n * go_batch + h * go_head;
  float gq[SIXTEENS][COLUMNS][4], rest[SIXTEENS][2], log2[SIXTEENS][2];
  uint32_t held_q[SIXTEENS][STEPS][4], held_go[SIXTEENS][STEPS][4];
  lp_copy_tile(shared, q, q_row, first, QUERIES - 1, OWN, ROW, THREADS);
  lp_copy_tile(shared + OWN_NBYTES, go, go_row, first, QUERIES - 1, OWN, ROW, THREADS);
  lp_end_copies();

#include "flash_first_keys.cuh"

  /* R and L of the rows; the rows held in registers. */
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int c = 0; c < COLUMNS; c++) gq[m][c][0] = gq[m][c][1] = gq[m][c][2] = gq[m][c][3] = 0.0f;
    LP_UNROLL
    for (int r = 0; r < 2; r++) {
      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;
      const int64_t of = query < QUERIES ? query : QUERIES - 1;
      float total = 0.0f;
      LP_UNROLL
      for (int c = 0; c < WIDTH; c += 32) {
        LP_ALIGN16 uint16_t x[8], g[8];
        lp_move(x, of_o + of * o_row + c * 2 + two * 8, 16);
        lp_move(g, go + of * go_row + c * 2 + two * 8, 16);
        LP_UNROLL
        for (int e = 0; e < 8; e++) total += LP_FROM(x[e]) * LP_FROM(g[e]);
      }
      total += lp_swap_f32(total, 1);
      total += lp_swap_f32(total, 2);
      rest[m][r] = total * (1.0f / keep_scale);
      log2[m][r] = stats[head * QUERIES + of] * 1.44269504f;
      if (two == 0 && query < QUERIES) {
        rows[head * QUERIES + query] = rest[m][r];
        rows[ALL_ROWS + head * QUERIES + query] = log2[m][r];
      }
    }
  }
  const uint32_t q_at = base + warp * SIXTEENS * 16 * ROW, go_at = q_at + OWN_NBYTES;
  if (IS_HELD) {
    LP_WAIT_COPIES(1);
    __syncthreads();
    LP_UNROLL
    for (int m = 0; m < SIXTEENS; m++) {
      LP_UNROLL
      for (int step = 0; step < STEPS; step++) {
        const uint32_t at = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);
        lp_load_matrices(held_q[m][step], q_at + at);
        lp_load_matrices(held_go[m][step], go_at + at);
      }
    }
  }

  for (int tile = 0; tile < n_tiles; tile++) {
    const uint32_t k_at = base + PASSING + tile % 2 * STAGE, v_at = k_at + TILE_NBYTES;
    const int is_edge = (tile + 1) * TILE > KEYS || (IS_CAUSAL && (tile + 1) * TILE > first + 1);
    uint32_t kept[SIXTEENS][2];
    LP_UNROLL
    for (int m = 0; m < SIXTEENS; m++) {
      LP_UNROLL
      for (int r = 0; r < 2; r++) {
        const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;
        const int64_t of = query < QUERIES ? query : QUERIES - 1;
        kept[m][r] = IS_DROPPED ? bits[(head * QUERIES + of) * WORDS + tile * 2 + lane / 2 % 2] >> two % 4 : 0;
      }
    }

#include "flash_next_keys.cuh"

    /* S and dO V^T, of sixteen keys. */
    LP_UNROLL_TILE
    for (int j = 0; j < TILE / 16; j++) {
      float s[SIXTEENS][2][4], gp[SIXTEENS][2][4];
      uint32_t gs[SIXTEENS][4];
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        LP_UNROLL
        for (int e = 0; e < 8; e++) s[m][e / 4][e % 4] = gp[m][e / 4][e % 4] = 0.0f;
      }
      LP_UNROLL
      for (int step = 0; step < STEPS; step++) {
        const uint32_t right = j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW);
        uint32_t b[4], b_of_v[4];
        lp_load_matrices(b, k_at + right);
        lp_load_matrices(b_of_v, v_at + right);
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          const uint32_t left = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);
          uint32_t a[4], a_of_go[4];
          if (!IS_HELD) lp_load_matrices(a, q_at + left);
          if (!IS_HELD) lp_load_matrices(a_of_go, go_at + left);
          LP_PRODUCT_OF(s[m][0], IS_HELD ? held_q[m][step] : a, b);
          LP_PRODUCT_OF(s[m][1], IS_HELD ? held_q[m][step] : a, b + 2);
          LP_PRODUCT_OF(gp[m][0], IS_HELD ? held_go[m][step] : a_of_go, b_of_v);
          LP_PRODUCT_OF(gp[m][1], IS_HELD ? held_go[m][step] : a_of_go, b_of_v + 2);
        }
      }

      /* dS. */
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        LP_UNROLL
        for (int i = 0; i < 2; i++) {
          float x[4];
          LP_UNROLL
          for (int e = 0; e < 4; e++) {
            const int key = tile * TILE + j * 16 + i * 8 + two + e % 2;
            const int query = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;
            float p = lp_exp2_coarse(s[m][i][e] * scale2 - log2[m][e / 2]);
            if (is_edge && (key >= KEYS || (IS_CAUSAL && key > query))) p = 0.0f;
            const int is_kept = !IS_DROPPED || (kept[m][e / 2] >> (4 * (2 * j + i) + e % 2) & 1u);
            x[e] = p * ((is_kept ? gp[m][i][e] : 0.0f) - rest[m][e / 2]);
          }
          gs[m][2 * i] = LP_TWO_OF(x[0], x[1]);
          gs[m][2 * i + 1] = LP_TWO_OF(x[2], x[3]);
        }
      }

      /* dQ = dS K. */
      LP_UNROLL
      for (int c = 0; c < COLUMNS / 2; c++) {
        uint32_t b[4];
        lp_load_turned(b, k_at + j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW));
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          LP_PRODUCT_OF(gq[m][2 * c], gs[m], b);
          LP_PRODUCT_OF(gq[m][2 * c + 1], gs[m], b + 2);
        }
      }
    }
  }

  const float factor = scale * keep_scale;
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int r = 0; r < 2; r++) {
      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;
      if (query < QUERIES) {
        char *const to = LP_AT(7) + n * gq_batch + h * gq_head + query * gq_row + two * 2;
        LP_UNROLL
        for (int c = 0; c < COLUMNS; c++) {
          const uint32_t pair = LP_TWO_OF(gq[m][c][2 * r] * factor, gq[m][c][2 * r + 1] * factor);
          lp_move(to + c * 16, &pair, 4);
        }
      }
    }
  }
}
