/* Attention's output and logsumexp. A block has queries of one head and iterates over tiles of keys. It writes a bit
 * for each score, set if dropout keeps it, for the gradients: a draw costs more than reading the bits. */
#include "tensor_cores.cuh"

LP_RESIDENT(flash_forward, 9, THREADS, RESIDENT) {
#include "flash_threads.cuh"

#include "flash_query_block.cuh"

  float *stats = (float *)LP_AT(4);
  uint32_t *bits = (uint32_t *)LP_AT(5);
  uint64_t seed = 0, counter = 0;
  if (IS_DROPPED) {
    seed = *(const uint64_t *)LP_AT(6);
    counter = *(const uint64_t *)LP_AT(7) + (uint64_t)LP_AT(8);
  }
  float o[SIXTEENS][COLUMNS][4], most[SIXTEENS][2], sum[SIXTEENS][2];
  uint32_t held[SIXTEENS][STEPS][4];
  lp_copy_tile(shared, q, q_row, first, QUERIES - 1, OWN, ROW, THREADS);
  lp_end_copies();

#include "flash_first_keys.cuh"

  /* Sums of no keys yet; the rows held in registers. */
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int c = 0; c < COLUMNS; c++) o[m][c][0] = o[m][c][1] = o[m][c][2] = o[m][c][3] = 0.0f;
    most[m][0] = most[m][1] = -INFINITY;
    sum[m][0] = sum[m][1] = 0.0f;
  }
  const uint32_t own_at = base + warp * SIXTEENS * 16 * ROW;
  if (IS_HELD) {
    LP_WAIT_COPIES(1);
    __syncthreads();
    LP_UNROLL
    for (int m = 0; m < SIXTEENS; m++) {
      LP_UNROLL
      for (int step = 0; step < STEPS; step++)
        lp_load_matrices(held[m][step], own_at + m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW));
    }
  }

  for (int tile = 0; tile < n_tiles; tile++) {
    const uint32_t k_at = base + PASSING + tile % 2 * STAGE, v_at = k_at + TILE_NBYTES;
    float s[SIXTEENS][TILE / 8][4];
    uint32_t keeps[SIXTEENS][2];

    LP_UNROLL
    for (int m = 0; m < SIXTEENS && IS_DROPPED; m++) {
      /* This thread draws for row `of` and four keys of each eight; the other threads of the row draw the rest. The
       * draw comes before the wait for its tile, whose copies it hides; after the wait it was no faster. */
      const int of = first + (warp * SIXTEENS + m) * 16 + row + lane % 2 * 8, part = lane / 2 % 2;
      const uint64_t line = (uint64_t)head * QUERIES + of;
      uint32_t kept = 0;
      if (KEYS % 4 == 0) {
        lp_block_t drawn[TILE / 8];
        lp_philox_of(drawn, TILE / 8, 2, seed, counter, (uint32_t)(line * (KEYS / 4)) + tile * (TILE / 4) + part);
        LP_UNROLL
        for (int j = 0; j < TILE / 2; j++) kept |= (uint32_t)(drawn[j / 4].w[j % 4] <= last_kept) << j;
      } else {
        for (int j = 0; j < TILE / 2; j++) {
          const uint64_t element = line * KEYS + tile * TILE + j / 4 * 8 + 4 * part + j % 4;
          const lp_block_t drawn = lp_philox(seed, counter, element / 4);
          kept |= (uint32_t)(lp_word(&drawn, (uint32_t)(element % 4)) <= last_kept) << j;
        }
      }
      if (of < QUERIES) bits[line * WORDS + tile * 2 + part] = kept;
      keeps[m][0] = lp_lane_u32(kept, lane & ~1) >> two % 4;
      keeps[m][1] = lp_lane_u32(kept, lane | 1) >> two % 4;
    }

#include "flash_next_keys.cuh"

    /* S; hidden keys get -inf. */
    LP_UNROLL
    for (int m = 0; m < SIXTEENS; m++) {
      LP_UNROLL
      for (int j = 0; j < TILE / 8; j++) s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f;
    }
    LP_UNROLL
    for (int step = 0; step < STEPS; step++) {
      uint32_t a[SIXTEENS][4];
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        if (!IS_HELD) lp_load_matrices(a[m], own_at + m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW));
      }
      LP_UNROLL
      for (int j = 0; j < TILE / 16; j++) {
        uint32_t b[4];
        lp_load_matrices(b, k_at + j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW));
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          LP_PRODUCT_OF(s[m][2 * j], IS_HELD ? held[m][step] : a[m], b);
          LP_PRODUCT_OF(s[m][2 * j + 1], IS_HELD ? held[m][step] : a[m], b + 2);
        }
      }
    }
    if ((tile + 1) * TILE > KEYS || (IS_CAUSAL && (tile + 1) * TILE > first + 1)) {
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        LP_UNROLL
        for (int j = 0; j < TILE / 8; j++) {
          LP_UNROLL
          for (int e = 0; e < 4; e++) {
            const int key = tile * TILE + j * 8 + two + e % 2;
            const int query = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;
            if (key >= KEYS || (IS_CAUSAL && key > query)) s[m][j][e] = -INFINITY;
          }
        }
      }
    }

    /* Probabilities by the maximum so far: earlier sums are scaled down if a larger score occurs. */
    LP_UNROLL
    for (int m = 0; m < SIXTEENS; m++) {
      LP_UNROLL
      for (int r = 0; r < 2; r++) {
        float high = most[m][r], total = 0.0f;
        LP_UNROLL
        for (int j = 0; j < TILE / 8; j++) { high = fmaxf(high, fmaxf(s[m][j][2 * r], s[m][j][2 * r + 1])); }
        high = fmaxf(high, lp_swap_f32(high, 1));
        high = fmaxf(high, lp_swap_f32(high, 2));
        const float shift = high == -INFINITY ? 0.0f : high * scale2;
        const float factor = lp_exp2_coarse(most[m][r] * scale2 - shift);
        most[m][r] = high;
        LP_UNROLL
        for (int c = 0; c < COLUMNS; c++) {
          o[m][c][2 * r] *= factor;
          o[m][c][2 * r + 1] *= factor;
        }
        LP_UNROLL
        for (int j = 0; j < TILE / 8; j++) {
          LP_UNROLL
          for (int e = 0; e < 2; e++) {
            const float p = lp_exp2_coarse(s[m][j][2 * r + e] * scale2 - shift);
            total += p;
            s[m][j][2 * r + e] = IS_DROPPED && !(keeps[m][r] >> (4 * j + e) & 1u) ? 0.0f : p;
          }
        }
        sum[m][r] = sum[m][r] * factor + total;
      }
    }

    /* O = (P D) V. */
    LP_UNROLL
    for (int j = 0; j < TILE / 16; j++) {
      uint32_t p[SIXTEENS][4];
      LP_UNROLL
      for (int m = 0; m < SIXTEENS; m++) {
        p[m][0] = LP_TWO_OF(s[m][2 * j][0], s[m][2 * j][1]);
        p[m][1] = LP_TWO_OF(s[m][2 * j][2], s[m][2 * j][3]);
        p[m][2] = LP_TWO_OF(s[m][2 * j + 1][0], s[m][2 * j + 1][1]);
        p[m][3] = LP_TWO_OF(s[m][2 * j + 1][2], s[m][2 * j + 1][3]);
      }
      LP_UNROLL
      for (int c = 0; c < COLUMNS / 2; c++) {
        uint32_t b[4];
        lp_load_turned(b, v_at + j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW));
        LP_UNROLL
        for (int m = 0; m < SIXTEENS; m++) {
          LP_PRODUCT_OF(o[m][2 * c], p[m], b);
          LP_PRODUCT_OF(o[m][2 * c + 1], p[m], b + 2);
        }
      }
    }
  }

  /* O and L of whole rows. */
  LP_UNROLL
  for (int m = 0; m < SIXTEENS; m++) {
    LP_UNROLL
    for (int r = 0; r < 2; r++) {
      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;
      float total = sum[m][r];
      total += lp_swap_f32(total, 1);
      total += lp_swap_f32(total, 2);
      const float factor = keep_scale / total;
      if (query < QUERIES) {
        char *const to = LP_AT(3) + n * o_batch + h * o_head + query * o_row + two * 2;
        if (two == 0) stats[head * QUERIES + query] = most[m][r] * scale + logf(total);
        LP_UNROLL
        for (int c = 0; c < COLUMNS; c++) {
          const uint32_t pair = LP_TWO_OF(o[m][c][2 * r] * factor, o[m][c][2 * r + 1] * factor);
          lp_move(to + c * 16, &pair, 4);
        }
      }
    }
  }
}
