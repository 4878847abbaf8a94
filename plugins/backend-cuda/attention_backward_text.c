#include "attention_kernel_texts.h"

#include <stddef.h>

/* ---- QUERIES ---- */

static const char queries_begin[] =
    "  const float *stats = (const float *)LP_AT(4);\n"
    "  const uint32_t *bits = (const uint32_t *)LP_AT(6);\n"
    "  float *rows = (float *)LP_AT(8);\n"
    "  const char *const of_o = LP_AT(3) + n * o_batch + h * o_head, *const go = LP_AT(5) + n * go_batch + h * "
    "go_head;\n"
    "  float gq[SIXTEENS][COLUMNS][4], rest[SIXTEENS][2], log2[SIXTEENS][2];\n"
    "  uint32_t held_q[SIXTEENS][STEPS][4], held_go[SIXTEENS][STEPS][4];\n"
    "  lp_copy_tile(shared, q, q_row, first, QUERIES - 1, OWN, ROW, THREADS);\n"
    "  lp_copy_tile(shared + OWN_NBYTES, go, go_row, first, QUERIES - 1, OWN, ROW, THREADS);\n"
    "  lp_end_copies();\n";

/* R and L; what is held. */
static const char queries_rows[] =
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int c = 0; c < COLUMNS; c++) gq[m][c][0] = gq[m][c][1] = gq[m][c][2] = gq[m][c][3] = 0.0f;\n"
    "    LP_UNROLL\n"
    "    for (int r = 0; r < 2; r++) {\n"
    "      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;\n"
    "      const int64_t of = query < QUERIES ? query : QUERIES - 1;\n"
    "      float total = 0.0f;\n"
    "      LP_UNROLL\n"
    "      for (int c = 0; c < WIDTH; c += 32) {\n"
    "        LP_ALIGN16 uint16_t x[8], g[8];\n"
    "        lp_move(x, of_o + of * o_row + c * 2 + two * 8, 16);\n"
    "        lp_move(g, go + of * go_row + c * 2 + two * 8, 16);\n"
    "        LP_UNROLL\n"
    "        for (int e = 0; e < 8; e++) total += LP_FROM(x[e]) * LP_FROM(g[e]);\n"
    "      }\n"
    "      total += lp_swap_f32(total, 1);\n"
    "      total += lp_swap_f32(total, 2);\n"
    "      rest[m][r] = total * (1.0f / keep_scale);\n"
    "      log2[m][r] = stats[head * QUERIES + of] * 1.44269504f;\n"
    "      if (two == 0 && query < QUERIES) {\n"
    "        rows[head * QUERIES + query] = rest[m][r];\n"
    "        rows[ALL_ROWS + head * QUERIES + query] = log2[m][r];\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  const uint32_t q_at = base + warp * SIXTEENS * 16 * ROW, go_at = q_at + OWN_NBYTES;\n"
    "  if (IS_HELD) {\n"
    "    LP_WAIT_COPIES(1);\n"
    "    __syncthreads();\n"
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS; m++) {\n"
    "      LP_UNROLL\n"
    "      for (int step = 0; step < STEPS; step++) {\n"
    "        const uint32_t at = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);\n"
    "        lp_load_matrices(held_q[m][step], q_at + at);\n"
    "        lp_load_matrices(held_go[m][step], go_at + at);\n"
    "      }\n"
    "    }\n"
    "  }\n";

static const char queries_tile[] =
    "  for (int tile = 0; tile < n_tiles; tile++) {\n"
    "    const uint32_t k_at = base + PASSING + tile % 2 * STAGE, v_at = k_at + TILE_NBYTES;\n"
    "    const int is_edge = (tile + 1) * TILE > KEYS || (IS_CAUSAL && (tile + 1) * TILE > first + 1);\n"
    "    uint32_t kept[SIXTEENS][2];\n"
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS; m++) {\n"
    "      LP_UNROLL\n"
    "      for (int r = 0; r < 2; r++) {\n"
    "        const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;\n"
    "        const int64_t of = query < QUERIES ? query : QUERIES - 1;\n"
    "        kept[m][r] = IS_DROPPED ? bits[(head * QUERIES + of) * WORDS + tile * 2 + lane / 2 % 2] >> two % 4 : 0;\n"
    "      }\n"
    "    }\n";

/* S and dO V^T, of sixteen keys. */
static const char queries_scores[] =
    "    LP_UNROLL_TILE\n"
    "    for (int j = 0; j < TILE / 16; j++) {\n"
    "      float s[SIXTEENS][2][4], gp[SIXTEENS][2][4];\n"
    "      uint32_t gs[SIXTEENS][4];\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        LP_UNROLL\n"
    "        for (int e = 0; e < 8; e++) s[m][e / 4][e % 4] = gp[m][e / 4][e % 4] = 0.0f;\n"
    "      }\n"
    "      LP_UNROLL\n"
    "      for (int step = 0; step < STEPS; step++) {\n"
    "        const uint32_t right = j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW);\n"
    "        uint32_t b[4], b_of_v[4];\n"
    "        lp_load_matrices(b, k_at + right);\n"
    "        lp_load_matrices(b_of_v, v_at + right);\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          const uint32_t left = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);\n"
    "          uint32_t a[4], a_of_go[4];\n"
    "          if (!IS_HELD) lp_load_matrices(a, q_at + left);\n"
    "          if (!IS_HELD) lp_load_matrices(a_of_go, go_at + left);\n"
    "          LP_PRODUCT_OF(s[m][0], IS_HELD ? held_q[m][step] : a, b);\n"
    "          LP_PRODUCT_OF(s[m][1], IS_HELD ? held_q[m][step] : a, b + 2);\n"
    "          LP_PRODUCT_OF(gp[m][0], IS_HELD ? held_go[m][step] : a_of_go, b_of_v);\n"
    "          LP_PRODUCT_OF(gp[m][1], IS_HELD ? held_go[m][step] : a_of_go, b_of_v + 2);\n"
    "        }\n"
    "      }\n";

/* dS. */
static const char queries_gradient[] =
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        LP_UNROLL\n"
    "        for (int i = 0; i < 2; i++) {\n"
    "          float x[4];\n"
    "          LP_UNROLL\n"
    "          for (int e = 0; e < 4; e++) {\n"
    "            const int key = tile * TILE + j * 16 + i * 8 + two + e % 2;\n"
    "            const int query = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;\n"
    "            float p = lp_exp2_coarse(s[m][i][e] * scale2 - log2[m][e / 2]);\n"
    "            if (is_edge && (key >= KEYS || (IS_CAUSAL && key > query))) p = 0.0f;\n"
    "            const int is_kept = !IS_DROPPED || (kept[m][e / 2] >> (4 * (2 * j + i) + e % 2) & 1u);\n"
    "            x[e] = p * ((is_kept ? gp[m][i][e] : 0.0f) - rest[m][e / 2]);\n"
    "          }\n"
    "          gs[m][2 * i] = LP_TWO_OF(x[0], x[1]);\n"
    "          gs[m][2 * i + 1] = LP_TWO_OF(x[2], x[3]);\n"
    "        }\n"
    "      }\n";

/* dQ = dS K. */
static const char queries_product[] =
    "      LP_UNROLL\n"
    "      for (int c = 0; c < COLUMNS / 2; c++) {\n"
    "        uint32_t b[4];\n"
    "        lp_load_turned(b, k_at + j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW));\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          LP_PRODUCT_OF(gq[m][2 * c], gs[m], b);\n"
    "          LP_PRODUCT_OF(gq[m][2 * c + 1], gs[m], b + 2);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n";

static const char queries_end[] =
    "  const float factor = scale * keep_scale;\n"
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int r = 0; r < 2; r++) {\n"
    "      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;\n"
    "      if (query < QUERIES) {\n"
    "        char *const to = LP_AT(7) + n * gq_batch + h * gq_head + query * gq_row + two * 2;\n"
    "        LP_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++) {\n"
    "          const uint32_t pair = LP_TWO_OF(gq[m][c][2 * r] * factor, gq[m][c][2 * r + 1] * factor);\n"
    "          lp_move(to + c * 16, &pair, 4);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n";

const char *const gc_attention_queries[] = {gc_attention_query_block,
                                            queries_begin,
                                            gc_attention_first_keys,
                                            queries_rows,
                                            queries_tile,
                                            gc_attention_next_keys,
                                            queries_scores,
                                            queries_gradient,
                                            queries_product,
                                            queries_end,
                                            NULL};

/* ---- KEYS ---- */

/* Rows of matrices are keys here, columns queries. A tile's numbers: words of its rows, one behind the other for each
 * word of the block's keys; R; L. */
static const char keys_begin[] =
    "  const int blocks = (KEYS + OWN - 1) / OWN, first = blockIdx.x % blocks * OWN;\n"
    "  const int64_t head = blockIdx.x / blocks, n = head / (HEADS / SHARE), h_key = head % (HEADS / SHARE);\n"
    "  const char *k = LP_AT(1) + n * k_batch + h_key * k_head, *v = LP_AT(2) + n * v_batch + h_key * v_head;\n"
    "  const float *rows = (const float *)LP_AT(4);\n"
    "  const uint32_t *bits = (const uint32_t *)LP_AT(5);\n"
    "  const int all_tiles = (QUERIES + TILE - 1) / TILE, first_tile = IS_CAUSAL ? first / TILE : 0;\n"
    "  const int n_tiles = first_tile < all_tiles ? all_tiles - first_tile : 0, n_rounds = n_tiles * SHARE;\n"
    "  float gk[SIXTEENS][COLUMNS][4], gv[SIXTEENS][COLUMNS][4];\n"
    "  uint32_t held_k[SIXTEENS][STEPS][4], held_v[SIXTEENS][STEPS][4];\n"
    "  lp_copy_tile(shared, k, k_row, first, KEYS - 1, OWN, ROW, THREADS);\n"
    "  lp_copy_tile(shared + OWN_NBYTES, v, v_row, first, KEYS - 1, OWN, ROW, THREADS);\n"
    "  lp_end_copies();\n"
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int c = 0; c < COLUMNS; c++) {\n"
    "      LP_UNROLL\n"
    "      for (int e = 0; e < 4; e++) gk[m][c][e] = gv[m][c][e] = 0.0f;\n"
    "    }\n"
    "  }\n"
    "  const uint32_t k_at = base + warp * SIXTEENS * 16 * ROW, v_at = k_at + OWN_NBYTES;\n";

static const char keys_tile[] =
    "  for (int round = -1; round < n_rounds; round++) {\n"
    "    const char *const stage = shared + PASSING + (round & 1) * STAGE;\n"
    "    const uint32_t q_at = base + PASSING + (round & 1) * STAGE, go_at = q_at + TILE_NBYTES;\n"
    "    const int from = round < 0 ? 0 : (first_tile + round % n_tiles) * TILE;\n"
    "    LP_WAIT_COPIES(0);\n"
    "    __syncthreads();\n"
    "    if (round + 1 < n_rounds) {\n"
    "      char *const to = shared + PASSING + (round + 1 & 1) * STAGE;\n"
    "      const int64_t h = h_key * SHARE + (round + 1) / n_tiles, line = (n * HEADS + h) * QUERIES;\n"
    "      const int next = (first_tile + (round + 1) % n_tiles) * TILE;\n"
    "      lp_copy_tile(to, LP_AT(0) + n * q_batch + h * q_head, q_row, next, QUERIES - 1, TILE, ROW, THREADS);\n"
    "      lp_copy_tile(to + TILE_NBYTES, LP_AT(3) + n * go_batch + h * go_head, go_row, next, QUERIES - 1, TILE, "
    "ROW,\n"
    "                   THREADS);\n"
    "      LP_UNROLL\n"
    "      for (int i = IS_DROPPED ? 0 : 2 * GROUPS * TILE; i < (2 * GROUPS + 2) * TILE; i += THREADS) {\n"
    "        const int at = i + (int)threadIdx.x, what = at / TILE, query = next + at % TILE;\n"
    "        const int word = first / 64 * 2 + what;\n"
    "        const int64_t of = line + (query < QUERIES ? query : QUERIES - 1);\n"
    "        const void *const number = what < 2 * GROUPS ? (const void *)&bits[of * WORDS + (word < WORDS ? word : "
    "WORDS - 1)]\n"
    "                                                     : (const void *)&rows[(what - 2 * GROUPS) * ALL_ROWS + of];\n"
    "        if (what < 2 * GROUPS + 2) lp_copy(to + 2 * TILE_NBYTES + at * 4, number, 4);\n"
    "      }\n"
    "      lp_end_copies();\n"
    "    }\n"
    "    if (round < 0) {\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        LP_UNROLL\n"
    "        for (int step = 0; step < STEPS; step++) {\n"
    "          const uint32_t at = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);\n"
    "          if (IS_HELD) lp_load_matrices(held_k[m][step], k_at + at);\n"
    "          if (IS_HELD) lp_load_matrices(held_v[m][step], v_at + at);\n"
    "        }\n"
    "      }\n"
    "      continue;\n"
    "    }\n"
    "    const uint32_t *const words = (const uint32_t *)(stage + 2 * TILE_NBYTES) + (warp * SIXTEENS / 4 * 2 + row / "
    "4) * TILE;\n"
    "    const float *const rests = (const float *)(stage + 2 * TILE_NBYTES) + 2 * GROUPS * TILE, *const logs = rests "
    "+ TILE;\n"
    "    const int shift = warp * SIXTEENS % 4 * 8 + row % 4;\n"
    "    const int is_edge = from + TILE > QUERIES || (IS_CAUSAL && from < first + OWN - 1);\n";

/* K Q^T and V dO^T, of sixteen queries. */
static const char keys_scores[] =
    "    LP_UNROLL_TILE\n"
    "    for (int j = 0; j < TILE / 16; j++) {\n"
    "      float s[SIXTEENS][2][4], gp[SIXTEENS][2][4];\n"
    "      uint32_t p2[SIXTEENS][4], gs[SIXTEENS][4];\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        LP_UNROLL\n"
    "        for (int e = 0; e < 8; e++) s[m][e / 4][e % 4] = gp[m][e / 4][e % 4] = 0.0f;\n"
    "      }\n"
    "      LP_UNROLL\n"
    "      for (int step = 0; step < STEPS; step++) {\n"
    "        const uint32_t right = j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW);\n"
    "        uint32_t b[4], b_of_go[4];\n"
    "        lp_load_matrices(b, q_at + right);\n"
    "        lp_load_matrices(b_of_go, go_at + right);\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          const uint32_t left = m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, ROW);\n"
    "          uint32_t a[4], a_of_v[4];\n"
    "          if (!IS_HELD) lp_load_matrices(a, k_at + left);\n"
    "          if (!IS_HELD) lp_load_matrices(a_of_v, v_at + left);\n"
    "          LP_PRODUCT_OF(s[m][0], IS_HELD ? held_k[m][step] : a, b);\n"
    "          LP_PRODUCT_OF(s[m][1], IS_HELD ? held_k[m][step] : a, b + 2);\n"
    "          LP_PRODUCT_OF(gp[m][0], IS_HELD ? held_v[m][step] : a_of_v, b_of_go);\n"
    "          LP_PRODUCT_OF(gp[m][1], IS_HELD ? held_v[m][step] : a_of_v, b_of_go + 2);\n"
    "        }\n"
    "      }\n";

/* P D and dS. */
static const char keys_gradient[] =
    "      LP_UNROLL\n"
    "      for (int i = 0; i < 2; i++) {\n"
    "        LP_ALIGN16 uint32_t kept[2] = {0, 0};\n"
    "        LP_ALIGN16 float rest[2], log2[2];\n"
    "        if (IS_DROPPED) lp_move(kept, words + j * 16 + i * 8 + two, 8);\n"
    "        lp_move(rest, rests + j * 16 + i * 8 + two, 8);\n"
    "        lp_move(log2, logs + j * 16 + i * 8 + two, 8);\n"
    "        kept[0] >>= shift;\n"
    "        kept[1] >>= shift;\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          float x[4], y[4];\n"
    "          LP_UNROLL\n"
    "          for (int e = 0; e < 4; e++) {\n"
    "            const int key = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;\n"
    "            const int query = from + j * 16 + i * 8 + two + e % 2;\n"
    "            float p = lp_exp2_coarse(s[m][i][e] * scale2 - log2[e % 2]);\n"
    "            if (is_edge && (query >= QUERIES || (IS_CAUSAL && key > query))) p = 0.0f;\n"
    "            x[e] = !IS_DROPPED || (kept[e % 2] & (1u << (8 * m + e / 2 * 4))) ? p : 0.0f;\n"
    "            y[e] = x[e] * gp[m][i][e] - p * rest[e % 2];\n"
    "          }\n"
    "          p2[m][2 * i] = LP_TWO_OF(x[0], x[1]);\n"
    "          p2[m][2 * i + 1] = LP_TWO_OF(x[2], x[3]);\n"
    "          gs[m][2 * i] = LP_TWO_OF(y[0], y[1]);\n"
    "          gs[m][2 * i + 1] = LP_TWO_OF(y[2], y[3]);\n"
    "        }\n"
    "      }\n";

/* dV = (P D)^T dO, dK = dS^T Q. */
static const char keys_products[] =
    "      LP_UNROLL\n"
    "      for (int c = 0; c < COLUMNS / 2; c++) {\n"
    "        const uint32_t turned = j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW);\n"
    "        uint32_t b[4], b_of_go[4];\n"
    "        lp_load_turned(b, q_at + turned);\n"
    "        lp_load_turned(b_of_go, go_at + turned);\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          LP_PRODUCT_OF(gv[m][2 * c], p2[m], b_of_go);\n"
    "          LP_PRODUCT_OF(gv[m][2 * c + 1], p2[m], b_of_go + 2);\n"
    "          LP_PRODUCT_OF(gk[m][2 * c], gs[m], b);\n"
    "          LP_PRODUCT_OF(gk[m][2 * c + 1], gs[m], b + 2);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n";

static const char keys_end[] =
    "  const float factor = scale * keep_scale;\n"
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int r = 0; r < 2; r++) {\n"
    "      const int key = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;\n"
    "      if (key < KEYS) {\n"
    "        char *const to_k = LP_AT(6) + n * gk_batch + h_key * gk_head + key * gk_row + two * 2;\n"
    "        char *const to_v = LP_AT(7) + n * gv_batch + h_key * gv_head + key * gv_row + two * 2;\n"
    "        LP_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++) {\n"
    "          const uint32_t of_k = LP_TWO_OF(gk[m][c][2 * r] * factor, gk[m][c][2 * r + 1] * factor);\n"
    "          const uint32_t of_v = LP_TWO_OF(gv[m][c][2 * r] * keep_scale, gv[m][c][2 * r + 1] * keep_scale);\n"
    "          lp_move(to_k + c * 16, &of_k, 4);\n"
    "          lp_move(to_v + c * 16, &of_v, 4);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n";

const char *const gc_attention_keys[] = {keys_begin,    keys_tile, keys_scores, keys_gradient,
                                         keys_products, keys_end,  NULL};
