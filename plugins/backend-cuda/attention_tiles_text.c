#include "attention_kernel_texts.h"

/* Where a thread stands in a warp's matrices: row `row` (and that + 8) and columns `two`, `two` + 1 of products. Of
 * four matrices that are loaded, its row and piece: as a left operand, or turned as a right one; and as a right
 * operand. */
const char gc_attention_threads[] =
    "  LP_SHARED(shared);\n"
    "  const uint32_t base = lp_shared_at(shared);\n"
    "  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, two = lane % 4 * 2;\n"
    "  const int left_row = lane % 16, left_piece = lane / 16;\n"
    "  const int right_row = lane % 8 + lane / 16 * 8, right_piece = lane / 8 % 2;\n";

/* Blocks that see most keys go first. */
const char gc_attention_query_block[] =
    "  const int blocks = (QUERIES + OWN - 1) / OWN, block = blockIdx.x % blocks;\n"
    "  const int first = (IS_CAUSAL ? blocks - 1 - block : block) * OWN;\n"
    "  const int64_t head = blockIdx.x / blocks, n = head / HEADS, h = head % HEADS, h_key = h / SHARE;\n"
    "  const char *q = LP_AT(0) + n * q_batch + h * q_head, *k = LP_AT(1) + n * k_batch + h_key * k_head;\n"
    "  const char *v = LP_AT(2) + n * v_batch + h_key * v_head;\n"
    "  const int seen = IS_CAUSAL && first + OWN < KEYS ? first + OWN : KEYS, n_tiles = (seen + TILE - 1) / TILE;\n";

const char gc_attention_first_keys[] =
    "  lp_copy_tile(shared + PASSING, k, k_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_copy_tile(shared + PASSING + TILE_NBYTES, v, v_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_end_copies();\n";

const char gc_attention_next_keys[] =
    "    LP_WAIT_COPIES(0);\n"
    "    __syncthreads();\n"
    "    if (tile + 1 < n_tiles) {\n"
    "      char *const to = shared + PASSING + (tile + 1) % 2 * STAGE;\n"
    "      lp_copy_tile(to, k, k_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_copy_tile(to + TILE_NBYTES, v, v_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_end_copies();\n"
    "    }\n";
