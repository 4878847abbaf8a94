#include "attention_text.h"

#include "common/loops/loop_print.h"
#include "matrix_text.h"
#include <aot/base.h>
#include <string.h>

enum { WARP = 32, SIXTEEN = 16, GROUP = 64 /* keys of two words of bits */ };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int is_odd(int64_t step) { return step % 8 != 0; } /* halves: 16 bytes */

int gc_own_takes(const gc_attention_t *a) {
  const int64_t longest = a->n_query > a->n_key ? a->n_query : a->n_key;
  if (a->dtype != AOT_BF16 && a->dtype != AOT_F16) return 0;
  if ((a->width != 64 && a->width != 128) || a->width_v != a->width || a->bias_dtype || !(a->scale > 0)) return 0;
  if (longest < 1 || longest > 1 << 24 || a->n_batch * a->n_head * (longest / GROUP + 1) > INT32_MAX) return 0;
  if (a->n_batch * a->n_head * a->n_query >= (INT64_C(1) << 34) / a->n_key)
    return 0; /* blocks are numbered in 32 bits */
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++)
    if (what != GC_ATT_KEEP && what != GC_ATT_STATS && what != GC_ATT_SUMS &&
        (is_odd(a->strides[what].batch) || is_odd(a->strides[what].head) || is_odd(a->strides[what].position)))
      return 0;
  return 1;
}

/* The fastest of those that own_attention_bench had an H200 run. */
void gc_own_choose(gc_own_attention_t *o) {
  const int is_wide = o->call.width > 64;
  o->cut[GC_OWN_OUTPUT] = (gc_own_cut_t){1, 4, is_wide ? 2 : 3, 64, 1, 0};
  o->cut[GC_OWN_QUERIES] = (gc_own_cut_t){1, 4, is_wide ? 2 : 3, 64, 1, 0};
  o->cut[GC_OWN_KEYS] = (gc_own_cut_t){is_wide ? 1 : 2, 4, 2, 64, 0, 1};
}

static int64_t own_rows(const gc_own_attention_t *o) {
  const gc_own_cut_t *c = &o->cut[o->kind];
  return (int64_t)SIXTEEN * c->sixteens * c->warps;
}
static int64_t n_words(const gc_attention_t *a) { return 2 * divide_up(a->n_key, GROUP); }
static int64_t n_rows(const gc_attention_t *a) { return a->n_batch * a->n_head * a->n_query; }

uint64_t gc_own_bits_nbytes(const gc_attention_t *a) { return (uint64_t)(n_rows(a) * n_words(a)) * sizeof(uint32_t); }
uint64_t gc_own_rows_nbytes(const gc_attention_t *a) { return 2 * (uint64_t)n_rows(a) * sizeof(float); }

int gc_own_n_pointers(const gc_own_attention_t *o) {
  return o->kind == GC_OWN_KEYS ? GC_OWN_N_POINTERS - 1 : GC_OWN_N_POINTERS;
}

/* What lies in shared memory of a block, in its order. KEYS: numbers of a tile's rows: their bits, R and L. */
typedef struct layout {
  int64_t own, passing, numbers; /* bytes: of each of the block's matrices; of each that passes by; beside these */
  int64_t n_own;
} layout_t;

static layout_t layout_of(const gc_own_attention_t *o) {
  const gc_own_cut_t *c = &o->cut[o->kind];
  layout_t l = {.own = own_rows(o) * o->call.width * 2, .passing = (int64_t)c->tile * o->call.width * 2};
  l.n_own = o->kind == GC_OWN_OUTPUT ? 1 : 2;
  if (o->kind == GC_OWN_KEYS) l.numbers = c->tile * (divide_up(own_rows(o), GROUP) * 2 + 2) * 4;
  return l;
}

void gc_own_launch(const gc_own_attention_t *o, uint32_t *out_blocks, uint32_t *out_threads, uint32_t *out_shared) {
  const gc_attention_t *a = &o->call;
  const layout_t l = layout_of(o);
  const int64_t heads = a->n_batch * (o->kind == GC_OWN_KEYS ? a->n_head / a->share : a->n_head);
  *out_blocks = (uint32_t)(heads * divide_up(o->kind == GC_OWN_KEYS ? a->n_key : a->n_query, own_rows(o)));
  *out_threads = (uint32_t)(WARP * o->cut[o->kind].warps);
  *out_shared = (uint32_t)(l.n_own * l.own + 2 * (2 * l.passing + l.numbers));
}

/* ---- text ---- */

static void print_strides(lp_text_t *out, const gc_attention_t *a, int what, const char *name) {
  lp_print(out, "  const int64_t %s_batch = %lldLL, %s_head = %lldLL, %s_row = %lldLL;\n", name,
           (long long)a->strides[what].batch * 2, name, (long long)a->strides[what].head * 2, name,
           (long long)a->strides[what].position * 2);
}

/* What the texts below call by name: sizes; strides in bytes; factors. */
static void print_numbers(lp_text_t *out, const gc_own_attention_t *o) {
  static const char *const names[GC_ATT_N_IN_MEMORY] = {
      [GC_ATT_Q] = "q",   [GC_ATT_K] = "k",   [GC_ATT_V] = "v",   [GC_ATT_O] = "o",
      [GC_ATT_GO] = "go", [GC_ATT_GQ] = "gq", [GC_ATT_GK] = "gk", [GC_ATT_GV] = "gv"};
  const gc_attention_t *a = &o->call;
  const gc_own_cut_t *c = &o->cut[o->kind];
  const layout_t l = layout_of(o);
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {
      {"WARPS", c->warps},
      {"THREADS", WARP * c->warps},
      {"SIXTEENS", c->sixteens},
      {"OWN", own_rows(o)},
      {"TILE", c->tile},
      {"IS_HELD", c->is_held},
      {"WIDTH", a->width},
      {"ROW", a->width * 2},
      {"STEPS", a->width / 16},
      {"COLUMNS", a->width / 8},
      {"HEADS", a->n_head},
      {"SHARE", a->share},
      {"QUERIES", a->n_query},
      {"KEYS", a->n_key},
      {"IS_CAUSAL", a->is_causal},
      {"IS_DROPPED", a->keep_dtype != 0},
      {"WORDS", n_words(a)},
      {"GROUPS", divide_up(own_rows(o), GROUP)},
      {"OWN_NBYTES", l.own},
      {"PASSING", l.n_own * l.own},
      {"STAGE", 2 * l.passing + l.numbers},
      {"TILE_NBYTES", l.passing},
  };
  lp_print(out, "  enum {");
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
    lp_print(out, "%s%s = %lld", k ? ", " : " ", numbers[k].name, (long long)numbers[k].value);
  lp_print(out, " };\n  const int64_t ALL_ROWS = %lldLL;\n", (long long)n_rows(a));
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++)
    if (names[what]) print_strides(out, a, what, names[what]);
  lp_print(out, "  const float scale = %.9ef, scale2 = %.9ef, keep_scale = %.9ef;\n", a->scale,
           a->scale * 1.4426950408889634, a->keep_dtype ? a->keep_scale : 1.0);
  lp_print(out, "  const uint32_t last_kept = %uu;\n", (o->n_kept << 8) - 1);
}

/* Where a thread stands in a warp's matrices: row `row` (and that + 8) and columns `two`, `two` + 1 of products. Of four
 * matrices that are loaded, its row and piece: as a left operand, or turned as a right one; and as a right operand. */
static const char common_text[] =
    "  LP_SHARED(shared);\n"
    "  const uint32_t base = lp_shared_at(shared);\n"
    "  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, two = lane % 4 * 2;\n"
    "  const int left_row = lane % 16, left_piece = lane / 16;\n"
    "  const int right_row = lane % 8 + lane / 16 * 8, right_piece = lane / 8 % 2;\n";

/* OUTPUT and QUERIES: the block's queries, and the tiles of keys that they see. Those that see most go first. */
static const char of_queries[] =
    "  const int blocks = (QUERIES + OWN - 1) / OWN, block = blockIdx.x % blocks;\n"
    "  const int first = (IS_CAUSAL ? blocks - 1 - block : block) * OWN;\n"
    "  const int64_t head = blockIdx.x / blocks, n = head / HEADS, h = head % HEADS, h_key = h / SHARE;\n"
    "  const char *q = LP_AT(0) + n * q_batch + h * q_head, *k = LP_AT(1) + n * k_batch + h_key * k_head;\n"
    "  const char *v = LP_AT(2) + n * v_batch + h_key * v_head;\n"
    "  const int seen = IS_CAUSAL && first + OWN < KEYS ? first + OWN : KEYS, n_tiles = (seen + TILE - 1) / TILE;\n";

static const char output_begin[] =
    "  float *stats = (float *)LP_AT(4);\n"
    "  uint32_t *bits = (uint32_t *)LP_AT(5);\n"
    "  uint64_t seed = 0, counter = 0;\n"
    "  if (IS_DROPPED) {\n"
    "    seed = *(const uint64_t *)LP_AT(6);\n"
    "    counter = *(const uint64_t *)LP_AT(7) + (uint64_t)LP_AT(8);\n"
    "  }\n"
    "  float o[SIXTEENS][COLUMNS][4], most[SIXTEENS][2], sum[SIXTEENS][2];\n"
    "  uint32_t held[SIXTEENS][STEPS][4];\n"
    "  lp_copy_tile(shared, q, q_row, first, QUERIES - 1, OWN, ROW, THREADS);\n"
    "  lp_end_copies();\n"
    "  lp_copy_tile(shared + PASSING, k, k_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_copy_tile(shared + PASSING + TILE_NBYTES, v, v_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_end_copies();\n"
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int c = 0; c < COLUMNS; c++) o[m][c][0] = o[m][c][1] = o[m][c][2] = o[m][c][3] = 0.0f;\n"
    "    most[m][0] = most[m][1] = -INFINITY;\n"
    "    sum[m][0] = sum[m][1] = 0.0f;\n"
    "  }\n"
    "  const uint32_t own_at = base + warp * SIXTEENS * 16 * ROW;\n"
    "  if (IS_HELD) {\n"
    "    LP_WAIT_COPIES(1);\n"
    "    __syncthreads();\n"
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS; m++) {\n"
    "      LP_UNROLL\n"
    "      for (int step = 0; step < STEPS; step++)\n"
    "        lp_load_matrices(held[m][step], own_at + m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, "
    "ROW));\n"
    "    }\n"
    "  }\n";

static const char output_tile[] =
    "  for (int tile = 0; tile < n_tiles; tile++) {\n"
    "    const uint32_t k_at = base + PASSING + tile % 2 * STAGE, v_at = k_at + TILE_NBYTES;\n"
    "    float s[SIXTEENS][TILE / 8][4];\n"
    "    uint32_t keeps[SIXTEENS][2];\n";

static const char output_draws[] =
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS && IS_DROPPED; m++) {\n"
    /* this thread draws for row `of` and four keys of each eight; the other threads of its row have the rest */
    "      const int of = first + (warp * SIXTEENS + m) * 16 + row + lane % 2 * 8, part = lane / 2 % 2;\n"
    "      const uint64_t line = (uint64_t)head * QUERIES + of;\n"
    "      uint32_t kept = 0;\n"
    "      if (KEYS % 4 == 0) {\n"
    "        lp_block_t drawn[TILE / 8];\n"
    "        lp_philox_of(drawn, TILE / 8, 2, seed, counter, (uint32_t)(line * (KEYS / 4)) + tile * (TILE / 4) + "
    "part);\n"
    "        LP_UNROLL\n"
    "        for (int j = 0; j < TILE / 2; j++) kept |= (uint32_t)(drawn[j / 4].w[j % 4] <= last_kept) << j;\n"
    "      } else {\n"
    "        for (int j = 0; j < TILE / 2; j++) {\n"
    "          const uint64_t element = line * KEYS + tile * TILE + j / 4 * 8 + 4 * part + j % 4;\n"
    "          const lp_block_t drawn = lp_philox(seed, counter, element / 4);\n"
    "          kept |= (uint32_t)(lp_word(&drawn, (uint32_t)(element % 4)) <= last_kept) << j;\n"
    "        }\n"
    "      }\n"
    "      if (of < QUERIES) bits[line * WORDS + tile * 2 + part] = kept;\n"
    "      keeps[m][0] = lp_lane_u32(kept, lane & ~1) >> two % 4;\n"
    "      keeps[m][1] = lp_lane_u32(kept, lane | 1) >> two % 4;\n"
    "    }\n";

static const char output_wait[] =
    "    LP_WAIT_COPIES(0);\n"
    "    __syncthreads();\n"
    "    if (tile + 1 < n_tiles) {\n"
    "      char *const to = shared + PASSING + (tile + 1) % 2 * STAGE;\n"
    "      lp_copy_tile(to, k, k_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_copy_tile(to + TILE_NBYTES, v, v_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_end_copies();\n"
    "    }\n";

static const char output_scores[] =
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS; m++) {\n"
    "      LP_UNROLL\n"
    "      for (int j = 0; j < TILE / 8; j++) s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f;\n"
    "    }\n"
    "    LP_UNROLL\n"
    "    for (int step = 0; step < STEPS; step++) {\n"
    "      uint32_t a[SIXTEENS][4];\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        if (!IS_HELD) lp_load_matrices(a[m], own_at + m * 16 * ROW + lp_piece_at(left_row, 2 * step + left_piece, "
    "ROW));\n"
    "      }\n"
    "      LP_UNROLL\n"
    "      for (int j = 0; j < TILE / 16; j++) {\n"
    "        uint32_t b[4];\n"
    "        lp_load_matrices(b, k_at + j * 16 * ROW + lp_piece_at(right_row, 2 * step + right_piece, ROW));\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          LP_PRODUCT_OF(s[m][2 * j], IS_HELD ? held[m][step] : a[m], b);\n"
    "          LP_PRODUCT_OF(s[m][2 * j + 1], IS_HELD ? held[m][step] : a[m], b + 2);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "    if ((tile + 1) * TILE > KEYS || (IS_CAUSAL && (tile + 1) * TILE > first + 1)) {\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        LP_UNROLL\n"
    "        for (int j = 0; j < TILE / 8; j++) {\n"
    "          LP_UNROLL\n"
    "          for (int e = 0; e < 4; e++) {\n"
    "            const int key = tile * TILE + j * 8 + two + e % 2;\n"
    "            const int query = first + (warp * SIXTEENS + m) * 16 + row + e / 2 * 8;\n"
    "            if (key >= KEYS || (IS_CAUSAL && key > query)) s[m][j][e] = -INFINITY;\n"
    "          }\n"
    "        }\n"
    "      }\n"
    "    }\n";

/* Probabilities of the rows as far as they are known: what came before shrinks where there is a larger score now. */
static const char output_probabilities[] =
    "    LP_UNROLL\n"
    "    for (int m = 0; m < SIXTEENS; m++) {\n"
    "      LP_UNROLL\n"
    "      for (int r = 0; r < 2; r++) {\n"
    "        float high = most[m][r], total = 0.0f;\n"
    "        LP_UNROLL\n"
    "        for (int j = 0; j < TILE / 8; j++) {\n"
    "          high = fmaxf(high, fmaxf(s[m][j][2 * r], s[m][j][2 * r + 1]));\n"
    "        }\n"
    "        high = fmaxf(high, lp_swap_f32(high, 1));\n"
    "        high = fmaxf(high, lp_swap_f32(high, 2));\n"
    "        const float shift = high == -INFINITY ? 0.0f : high * scale2;\n"
    "        const float factor = lp_exp2_coarse(most[m][r] * scale2 - shift);\n"
    "        most[m][r] = high;\n"
    "        LP_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++) {\n"
    "          o[m][c][2 * r] *= factor;\n"
    "          o[m][c][2 * r + 1] *= factor;\n"
    "        }\n"
    "        LP_UNROLL\n"
    "        for (int j = 0; j < TILE / 8; j++) {\n"
    "          LP_UNROLL\n"
    "          for (int e = 0; e < 2; e++) {\n"
    "            const float p = lp_exp2_coarse(s[m][j][2 * r + e] * scale2 - shift);\n"
    "            total += p;\n"
    "            s[m][j][2 * r + e] = IS_DROPPED && !(keeps[m][r] >> (4 * j + e) & 1u) ? 0.0f : p;\n"
    "          }\n"
    "        }\n"
    "        sum[m][r] = sum[m][r] * factor + total;\n"
    "      }\n"
    "    }\n";

static const char output_end[] =
    "    LP_UNROLL\n"
    "    for (int j = 0; j < TILE / 16; j++) {\n"
    "      uint32_t p[SIXTEENS][4];\n"
    "      LP_UNROLL\n"
    "      for (int m = 0; m < SIXTEENS; m++) {\n"
    "        p[m][0] = LP_TWO_OF(s[m][2 * j][0], s[m][2 * j][1]);\n"
    "        p[m][1] = LP_TWO_OF(s[m][2 * j][2], s[m][2 * j][3]);\n"
    "        p[m][2] = LP_TWO_OF(s[m][2 * j + 1][0], s[m][2 * j + 1][1]);\n"
    "        p[m][3] = LP_TWO_OF(s[m][2 * j + 1][2], s[m][2 * j + 1][3]);\n"
    "      }\n"
    "      LP_UNROLL\n"
    "      for (int c = 0; c < COLUMNS / 2; c++) {\n"
    "        uint32_t b[4];\n"
    "        lp_load_turned(b, v_at + j * 16 * ROW + lp_piece_at(left_row, 2 * c + left_piece, ROW));\n"
    "        LP_UNROLL\n"
    "        for (int m = 0; m < SIXTEENS; m++) {\n"
    "          LP_PRODUCT_OF(o[m][2 * c], p[m], b);\n"
    "          LP_PRODUCT_OF(o[m][2 * c + 1], p[m], b + 2);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  LP_UNROLL\n"
    "  for (int m = 0; m < SIXTEENS; m++) {\n"
    "    LP_UNROLL\n"
    "    for (int r = 0; r < 2; r++) {\n"
    "      const int query = first + (warp * SIXTEENS + m) * 16 + row + 8 * r;\n"
    "      float total = sum[m][r];\n"
    "      total += lp_swap_f32(total, 1);\n"
    "      total += lp_swap_f32(total, 2);\n"
    "      const float factor = keep_scale / total;\n"
    "      if (query < QUERIES) {\n"
    "        char *const to = LP_AT(3) + n * o_batch + h * o_head + query * o_row + two * 2;\n"
    "        if (two == 0) stats[head * QUERIES + query] = most[m][r] * scale + logf(total);\n"
    "        LP_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++) {\n"
    "          const uint32_t pair = LP_TWO_OF(o[m][c][2 * r] * factor, o[m][c][2 * r + 1] * factor);\n"
    "          lp_move(to + c * 16, &pair, 4);\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n";

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
    "  lp_end_copies();\n"
    "  lp_copy_tile(shared + PASSING, k, k_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_copy_tile(shared + PASSING + TILE_NBYTES, v, v_row, 0, KEYS - 1, TILE, ROW, THREADS);\n"
    "  lp_end_copies();\n"
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
    "    }\n"
    "    LP_WAIT_COPIES(0);\n"
    "    __syncthreads();\n"
    "    if (tile + 1 < n_tiles) {\n"
    "      char *const to = shared + PASSING + (tile + 1) % 2 * STAGE;\n"
    "      lp_copy_tile(to, k, k_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_copy_tile(to + TILE_NBYTES, v, v_row, (tile + 1) * TILE, KEYS - 1, TILE, ROW, THREADS);\n"
    "      lp_end_copies();\n"
    "    }\n";

static const char queries_end[] =
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
    "      }\n"
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
    "      }\n"
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
    "  }\n"
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
    "      }\n"
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

static const char keys_end[] =
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
    "  }\n"
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

/* A draw stands before the wait for its tile, whose copies it covers; behind it was no faster. */
static const char *const output[] = {of_queries,    output_begin,         output_tile, output_draws, output_wait,
                                     output_scores, output_probabilities, output_end,  NULL};
static const char *const queries[] = {of_queries, queries_begin, queries_tile, queries_end, NULL};
static const char *const keys[] = {keys_begin, keys_tile, keys_scores, keys_end, NULL};

void gc_print_own_attention(const void *self, const char *name, lp_text_t *out) {
  static const char *const *const parts[] = {output, queries, keys};
  const gc_own_attention_t *o = self;
  const gc_own_cut_t *c = &o->cut[o->kind];
  const char *half = lp_half_name(o->call.dtype);
  const char *const *part = parts[o->kind];
  gc_print_matrices(out);
  lp_print(out,
           "#undef LP_PRODUCT_OF\n#undef LP_TWO_OF\n#undef LP_FROM\n#undef LP_UNROLL_TILE\n"
           "#define LP_PRODUCT_OF lp_product_%s\n#define LP_TWO_OF lp_two_%s\n#define LP_FROM lp_from_%s\n",
           half, half, half);
  lp_print(out, "#define LP_UNROLL_TILE _Pragma(\"unroll %d\")\n", c->unrolled ? c->unrolled : c->tile / SIXTEEN);
  lp_print(out, "LP_RESIDENT(%s, %d, %d, %d) {\n", name, gc_own_n_pointers(o), WARP * c->warps, c->resident);
  print_numbers(out, o);
  lp_text_add(out, common_text, strlen(common_text));
  for (; *part; part++) lp_text_add(out, *part, strlen(*part));
  lp_print(out, "}\n");
}
