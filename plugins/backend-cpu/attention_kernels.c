#include "attention_kernels.h"

#include "attention_halves.h"
#include "exp_f32.h"
#include "half_kernels.h"
#include "tile_products.h"
#include <aot/inline.h>
#include <string.h>

enum {
  LANES = BC_TILE_LANES,
  MOST_QUERIES = BC_ATTENTION_QUERIES, /* of a block */
  KEYS = BC_ATTENTION_KEYS,
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- places ---- */

/* Offset of a head; share: how many heads in turn have the same. */
static int64_t place(const bc_attention_t *a, const int64_t *strides, int64_t head, int64_t share) {
  int64_t at = 0;
  for (int32_t d = a->n_lead - 1; d >= 0; d--) {
    const int64_t index = head % a->lead[d];
    at += (d == a->n_lead - 1 ? index / share : index) * strides[d];
    head /= a->lead[d];
  }
  return at;
}

static char *at_element(const bc_attention_t *a, void *data, int64_t at) {
  return (char *)data + at * (a->dtype == AOT_F32 ? 4 : 2);
}

typedef struct matrix { /* rows of one head */
  char *data;
  int64_t position, width;
} matrix_t;

static matrix_t of_head(const bc_attention_t *a, const bc_rows_t *r, int64_t head, int64_t share, int64_t width) {
  return (matrix_t){at_element(a, r->data, place(a, r->lead, head, share)), r->position, width};
}

static char *row_of(const bc_attention_t *a, matrix_t m, int64_t i) { return at_element(a, m.data, i * m.position); }

static void read_row(int32_t dtype, const void *x, int64_t n, float *y) {
  if (dtype == AOT_F32) memcpy(y, x, (size_t)n * sizeof *y);
  else bc_convert_to_f32(dtype, x, n, y);
}

static void write_row(int32_t dtype, const float *x, int64_t n, void *y) {
  if (dtype == AOT_F32) memcpy(y, x, (size_t)n * sizeof *x);
  else bc_narrow(dtype, x, n, y);
}

typedef struct rows { /* of floats; of bfloat16 where oneDNN multiplies */
  char *data;
  int64_t row, size; /* in elements; of one in bytes */
} rows_t;

static rows_t rows_from(rows_t r, int64_t first) {
  r.data += first * r.row * r.size;
  return r;
}

static const float *floats_of(rows_t r) { return (const float *)(const void *)r.data; }

/* Rows that a product can read: they themselves, or as floats in `buffer`, whose rows are whole vectors and end in
 * zeros. */
static int is_readable(const bc_attention_t *a, int64_t width) {
  return a->halves || (a->dtype == AOT_F32 && width % LANES == 0);
}

static rows_t read_rows(const bc_attention_t *a, matrix_t m, int64_t first, int64_t n, float *buffer) {
  const int64_t row = bc_tile_round(m.width);
  if (is_readable(a, m.width)) return (rows_t){row_of(a, m, first), m.position, a->halves ? 2 : 4};
  for (int64_t i = 0; i < n; i++) {
    read_row(a->dtype, row_of(a, m, first + i), m.width, buffer + i * row);
    memset(buffer + i * row + m.width, 0, (size_t)(row - m.width) * sizeof *buffer);
  }
  return (rows_t){(char *)buffer, row, sizeof *buffer};
}

/* Always in the buffer. */
static void copy_rows(const bc_attention_t *a, matrix_t m, int64_t first, int64_t n, float *buffer) {
  const int64_t row = bc_tile_round(m.width);
  for (int64_t i = 0; i < n; i++, buffer += row) {
    read_row(a->dtype, row_of(a, m, first + i), m.width, buffer);
    memset(buffer + m.width, 0, (size_t)(row - m.width) * sizeof *buffer);
  }
}

static void copy_halves(const bc_attention_t *a, matrix_t m, int64_t first, int64_t n, uint16_t *buffer) {
  for (int64_t i = 0; i < n; i++)
    memcpy(buffer + i * bc_tile_round(m.width), row_of(a, m, first + i), (size_t)m.width * sizeof *buffer);
}

/* rows x width into width x lanes; lanes that no row fills are zeros. */
static void turn(const float *x, int64_t rows, int64_t width, int64_t lanes, float *y) {
  const int64_t row = bc_tile_round(width);
  for (int64_t e = 0; e < width; e++)
    for (int64_t i = 0; i < lanes; i++) y[e * lanes + i] = i < rows ? x[i * row + e] : 0;
}

static void turn_halves(const uint16_t *x, int64_t rows, int64_t width, int64_t lanes, uint16_t *y) {
  const int64_t row = bc_tile_round(width);
  for (int64_t e = 0; e < width; e++)
    for (int64_t i = 0; i < lanes; i++) y[e * lanes + i] = i < rows ? x[i * row + e] : 0;
}

static void write_rows(const bc_attention_t *a, const float *x, int64_t n, matrix_t m, int64_t first) {
  const int64_t row = bc_tile_round(m.width);
  for (int64_t i = 0; i < n; i++) write_row(a->dtype, x + i * row, m.width, row_of(a, m, first + i));
}

/* ---- blocks of queries ---- */

typedef bc_attention_block_t block_t;

static void fill(float *x, int64_t n, float number) {
  for (int64_t i = 0; i < n; i++) x[i] = number;
}

/* ---- scores: a tile is keys x lanes ---- */

/* A block's rows of m as products read them: by rows, and turned. */
static void read_block(const bc_attention_t *a, const block_t *b, matrix_t m, float *by_row, float *turned) {
  if (a->halves) {
    copy_halves(a, m, b->first, b->rows, (uint16_t *)by_row);
    turn_halves((const uint16_t *)by_row, b->rows, m.width, b->lanes, (uint16_t *)turned);
    return;
  }
  copy_rows(a, m, b->first, b->rows, by_row);
  turn(by_row, b->rows, m.width, b->lanes, turned);
}

/* What a row of the mask adds to the scores of n keys. 0: nothing, and y is zeros. */
static int mask_row(const bc_attention_t *a, int64_t at, int64_t n, float *y) {
  const int64_t step = a->mask_key, size = a->mask_dtype == AOT_F32 ? 4 : 2;
  int adds = 0;
  if (a->mask_dtype == AOT_BOOL) {
    const uint8_t *seen = (const uint8_t *)a->mask + at;
    for (int64_t j = 0; j < n; j++) y[j] = seen[j * step] ? 0 : -INFINITY;
  } else if (step == 1) read_row(a->mask_dtype, (const char *)a->mask + at * size, n, y);
  else
    for (int64_t j = 0; j < n; j++) read_row(a->mask_dtype, (const char *)a->mask + (at + j * step) * size, 1, y + j);
  for (int64_t j = 0; j < n; j++) adds |= y[j] != 0;
  return adds;
}

/* Does a mask of booleans, which often hides padding alone, hide none of n keys from a query? */
static int sees_all(const bc_attention_t *a, int64_t at, int64_t n) {
  const uint8_t *seen = (const uint8_t *)a->mask + at;
  if (a->mask_dtype != AOT_BOOL || a->mask_key > 1) return 0;
  return a->mask_key == 0 ? seen[0] != 0 : !memchr(seen, 0, (size_t)n);
}

/* Rows of the mask are columns of the tile: 16 of them are turned at a time, where one of them adds something. */
static void mask_tile(const bc_attention_t *a, const block_t *b, int64_t first_key, int64_t n, float *s) {
  const int64_t base = place(a, a->mask_lead, b->head, 1) + b->first * a->mask_query + first_key * a->mask_key;
  float row[LANES][KEYS];
  for (int64_t from = 0; from < b->rows; from += LANES) {
    const int64_t rows = least(LANES, b->rows - from);
    int adds = 0;
    for (int64_t i = 0; i < rows; i++) {
      const int64_t at = base + (from + i) * a->mask_query;
      if (sees_all(a, at, n)) fill(row[i], n, 0);
      else adds |= mask_row(a, at, n, row[i]);
    }
    for (int64_t j = 0; j < n && adds; j++)
      for (int64_t i = 0; i < rows; i++) s[j * b->lanes + from + i] += row[i][j];
  }
}

/* Probabilities, or their gradients, but for those that are dropped. */
static void drop(const bc_attention_t *a, const block_t *b, int64_t first_key, int64_t n, float *tile) {
  float row[KEYS];
  for (int64_t i = 0; a->keep && i < b->rows; i++) {
    const int64_t at = (b->head * a->n_query + b->first + i) * a->n_key + first_key;
    read_row(a->dtype, (const char *)a->keep + at * (int64_t)aot_dtype_size(a->dtype), n, row);
    for (int64_t j = 0; j < n; j++) tile[j * b->lanes + i] *= row[j] != 0 ? a->keep_scale : 0;
  }
}

/* Keys after a query's own are not seen. */
static void hide_later_keys(const block_t *b, int64_t first_key, int64_t n, float *s) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < least(b->rows, first_key + j - b->first); i++) s[j * b->lanes + i] = -INFINITY;
}

static void multiply_halves(const bc_attention_t *a, int what, const block_t *b, int64_t n, const void *x,
                            const void *y, float *z) {
  void *const operands[] = {(void *)(uintptr_t)x, (void *)(uintptr_t)y, z};
  if (bc_attention_halves_run(a->halves, what, n, b->rows, a->lane, operands, b->work)) *a->failed = 1;
}

/* A tile from rows of n keys, or of their values, and the turned block. */
static void multiply_keys(const bc_attention_t *a, int what, const block_t *b, rows_t k, const float *turned, int64_t n,
                          int64_t width, float alpha, float *s) {
  const bc_tile_product_t p = {.m = n,
                               .n = b->lanes,
                               .k = width,
                               .a = floats_of(k),
                               .a_row = k.row,
                               .a_column = 1,
                               .b = turned,
                               .b_row = b->lanes,
                               .c = s,
                               .c_row = b->lanes,
                               .alpha = alpha};
  if (a->halves) multiply_halves(a, what, b, n, k.data, turned, s);
  else bc_tile_product(&p);
}

static void scores(const bc_attention_t *a, const block_t *b, const float *qt, rows_t k, int64_t first_key, int64_t n,
                   float *s) {
  multiply_keys(a, BC_SCORES, b, k, qt, n, a->width, (float)a->scale, s);
  if (a->mask) mask_tile(a, b, first_key, n, s);
  if (a->causal) hide_later_keys(b, first_key, n, s);
}

/* A tile of n keys as products read it; `half` has room for it. */
static const float *weights(const bc_attention_t *a, const block_t *b, const float *tile, int64_t n, float *half) {
  if (!a->halves) return tile;
  bc_narrow(a->dtype, tile, n * b->lanes, (uint16_t *)half);
  return half;
}

/* c += alpha tile^T v: c has a row a query, and the sum goes over keys. */
static void add_by_queries(const bc_attention_t *a, int what, const block_t *b, const float *tile, int64_t n, rows_t v,
                           float *c, int64_t width, float alpha) {
  const bc_tile_product_t p = {.m = b->rows,
                               .n = width,
                               .k = n,
                               .a = tile,
                               .a_row = 1,
                               .a_column = b->lanes,
                               .b = floats_of(v),
                               .b_row = v.row,
                               .c = c,
                               .c_row = width,
                               .alpha = alpha,
                               .adds = 1};
  if (a->halves) multiply_halves(a, what, b, n, tile, v.data, c);
  else bc_tile_product(&p);
}

/* The same with a row a key, from the block by rows. */
static void add_by_keys(const bc_attention_t *a, int what, const block_t *b, const float *tile, int64_t n,
                        const float *v, float *c, int64_t width, float alpha) {
  const bc_tile_product_t p = {.m = n,
                               .n = width,
                               .k = b->rows,
                               .a = tile,
                               .a_row = b->lanes,
                               .a_column = 1,
                               .b = v,
                               .b_row = width,
                               .c = c,
                               .c_row = width,
                               .alpha = alpha,
                               .adds = 1};
  if (a->halves) multiply_halves(a, what, b, n, tile, v, c);
  else bc_tile_product(&p);
}

/* Of all that are numbers: one that is none makes the sum NaN that the maximum is for. */
BC_WIDE static void column_maxima(const float *restrict s, int64_t n, int64_t lanes, float *restrict top) {
  for (int64_t j = 0; j < n; j++, s += lanes)
    for (int64_t i = 0; i < lanes; i++) top[i] = s[i] > top[i] ? s[i] : top[i];
}

/* s becomes exp(s - top), its sums by column are added to sum. A column that has seen -inf alone stays zeros. */
BC_WIDE static void exponentials(float *restrict s, int64_t n, int64_t lanes, const float *restrict top,
                                 float *restrict sum) {
  float base[MOST_QUERIES], add[MOST_QUERIES] = {0};
  for (int64_t i = 0; i < lanes; i++) base[i] = top[i] == -INFINITY ? 0 : top[i];
  for (int64_t j = 0; j < n; j++, s += lanes)
    for (int64_t i = 0; i < lanes; i++) {
      s[i] = exp_f32(s[i] - base[i]);
      add[i] += s[i];
    }
  for (int64_t i = 0; i < lanes; i++) sum[i] += add[i];
}

/* What was computed under an older maximum, to the newer one. */
static void rescale(const block_t *b, const float *older, const float *newer, float *sum, float *o, int64_t width) {
  for (int64_t i = 0; i < b->rows; i++) {
    if (older[i] == newer[i] || older[i] == -INFINITY) continue; /* -inf: zeros */
    const float factor = exp_f32(older[i] - newer[i]);
    sum[i] *= factor;
    for (int64_t e = 0; e < width; e++) o[i * width + e] *= factor;
  }
}

/* The next n floats of the work memory; work NULL: they are only counted. */
static float *take(float *work, uint64_t *at, int64_t n) {
  float *x = work ? work + *at : NULL;
  *at += (uint64_t)n;
  return x;
}

/* ---- forward ---- */

/* What oneDNN works in, and a tile as halves. */
static void carve_halves(const bc_attention_t *a, float *work, uint64_t *n, int64_t queries, void **own, float **half) {
  *own = take(work, n, a->halves ? (int64_t)((bc_attention_halves_work(a->halves) + 63) / 64 * 16) : 0);
  *half = take(work, n, a->halves ? least(KEYS, a->n_key) * queries / 2 : 0);
}

typedef struct forward_work {
  void *own;
  float *half, *q, *qt, *k, *v, *s, *o, *top, *older, *sum;
} forward_work_t;

static uint64_t carve_forward(const bc_attention_t *a, float *work, forward_work_t *w) {
  const int64_t width = bc_tile_round(a->width), width_v = bc_tile_round(a->width_v);
  const int64_t queries = bc_attention_queries(a, 0), keys = least(KEYS, a->n_key);
  uint64_t n = 0;
  carve_halves(a, work, &n, queries, &w->own, &w->half);
  w->q = take(work, &n, queries * width);
  w->qt = take(work, &n, queries * width);
  w->k = take(work, &n, is_readable(a, a->width) ? 0 : keys * width);
  w->v = take(work, &n, is_readable(a, a->width_v) ? 0 : keys * width_v);
  w->s = take(work, &n, keys * queries);
  w->o = take(work, &n, queries * width_v);
  w->top = take(work, &n, queries);
  w->older = take(work, &n, queries);
  w->sum = take(work, &n, queries);
  return (n + LANES - 1) / LANES * LANES;
}

uint64_t bc_attention_forward_work(const bc_attention_t *a) {
  forward_work_t w;
  return carve_forward(a, NULL, &w);
}

/* Blocks of causal attention take longer the later they are: early and late ones in turn, so that any range of them is
 * about as much work as another one. */
static int64_t in_turn(int64_t index, int64_t n) { return index % 2 ? n - 1 - index / 2 : index / 2; }

static void forward_block(const bc_attention_t *a, const block_t *b, bc_rows_t o, float *lse, const forward_work_t *w) {
  const int64_t width_v = bc_tile_round(a->width_v);
  const matrix_t k = of_head(a, &a->k, b->head, a->share, a->width);
  const matrix_t v = of_head(a, &a->v, b->head, a->share, a->width_v);
  read_block(a, b, of_head(a, &a->q, b->head, 1, a->width), w->q, w->qt);
  fill(w->top, b->lanes, -INFINITY);
  fill(w->sum, b->lanes, 0);
  fill(w->o, b->rows * width_v, 0);
  for (int64_t j = 0; j < b->seen; j += KEYS) {
    const int64_t n = least(KEYS, b->seen - j);
    scores(a, b, w->qt, read_rows(a, k, j, n, w->k), j, n, w->s);
    memcpy(w->older, w->top, (size_t)b->lanes * sizeof *w->top);
    column_maxima(w->s, n, b->lanes, w->top);
    rescale(b, w->older, w->top, w->sum, w->o, width_v);
    exponentials(w->s, n, b->lanes, w->top, w->sum);
    drop(a, b, j, n, w->s);
    add_by_queries(a, BC_OUTPUTS, b, weights(a, b, w->s, n, w->half), n, read_rows(a, v, j, n, w->v), w->o, width_v, 1);
  }
  for (int64_t i = 0; i < b->rows; i++) {
    const float inverse = w->sum[i] == 0 ? 0 : 1 / w->sum[i];
    for (int64_t e = 0; e < width_v; e++) w->o[i * width_v + e] *= inverse;
    if (lse) lse[b->head * a->n_query + b->first + i] = w->top[i] + logf(w->sum[i]);
  }
  write_rows(a, w->o, b->rows, of_head(a, &o, b->head, 1, a->width_v), b->first);
}

void bc_attention_forward(const bc_attention_t *a, bc_rows_t o, float *lse, int64_t begin, int64_t end, float *work) {
  const int64_t n = bc_attention_n_blocks(a, 0);
  forward_work_t w;
  carve_forward(a, work, &w);
  for (int64_t i = begin; i < end; i++) {
    block_t b = bc_attention_block(a, 0, i / n, in_turn(i % n, n));
    b.work = w.own;
    forward_block(a, &b, o, lse, &w);
  }
}

/* ---- backward ---- */

typedef struct backward_work {
  void *own;
  float *half;
  float *q, *qt, *g, *gt; /* of a block of queries */
  float *k, *v;           /* of all keys, where they cannot be read in its layout */
  float *p, *dp;          /* keys x lanes */
  float *dq, *top, *sum, *d;
} backward_work_t;

static uint64_t carve_backward(const bc_attention_t *a, float *work, backward_work_t *w) {
  const int64_t queries = bc_attention_queries(a, 1), width = bc_tile_round(a->width),
                width_v = bc_tile_round(a->width_v);
  uint64_t n = 0;
  carve_halves(a, work, &n, queries, &w->own, &w->half);
  w->q = take(work, &n, queries * width);
  w->qt = take(work, &n, queries * width);
  w->g = take(work, &n, queries * width_v);
  w->gt = take(work, &n, queries * width_v);
  w->k = take(work, &n, is_readable(a, a->width) ? 0 : a->n_key * width);
  w->v = take(work, &n, is_readable(a, a->width_v) ? 0 : a->n_key * width_v);
  w->p = take(work, &n, a->n_key * queries);
  w->dp = take(work, &n, a->n_key * queries);
  w->dq = take(work, &n, queries * width);
  w->top = take(work, &n, queries);
  w->sum = take(work, &n, queries);
  w->d = take(work, &n, queries);
  return (n + LANES - 1) / LANES * LANES;
}

uint64_t bc_attention_backward_work(const bc_attention_t *a) {
  backward_work_t w;
  return carve_backward(a, NULL, &w);
}

int64_t bc_attention_key_heads(const bc_attention_t *a) { return bc_attention_heads(a) / a->share; }

int64_t bc_attention_parts(const bc_attention_t *a, int64_t n_threads) {
  const int64_t heads = bc_attention_key_heads(a), wanted = (n_threads + heads - 1) / heads;
  return least(wanted, a->share * bc_attention_n_blocks(a, 1));
}

uint64_t bc_attention_sums(const bc_attention_t *a) {
  return (uint64_t)(a->n_key * (bc_tile_round(a->width) + bc_tile_round(a->width_v)));
}

/* d += the sums of p * dp by column */
BC_WIDE static void column_dots(const float *restrict p, const float *restrict dp, int64_t n, int64_t lanes,
                                float *restrict d) {
  float add[MOST_QUERIES] = {0};
  for (int64_t j = 0; j < n; j++, p += lanes, dp += lanes)
    for (int64_t i = 0; i < lanes; i++) add[i] += p[i] * dp[i];
  for (int64_t i = 0; i < lanes; i++) d[i] += add[i];
}

/* p becomes the probabilities p / sum, dp the gradient of the scores. */
BC_WIDE static void score_gradients(float *restrict p, float *restrict dp, int64_t n, int64_t lanes,
                                    const float *restrict inverse, const float *restrict d) {
  for (int64_t j = 0; j < n; j++, p += lanes, dp += lanes)
    for (int64_t i = 0; i < lanes; i++) {
      p[i] *= inverse[i];
      dp[i] = p[i] * (dp[i] - d[i]);
    }
}

/* Scores of the block in p as exponentials, dP in dp; sum and d of its queries. */
static void recompute(const bc_attention_t *a, const block_t *b, rows_t k, rows_t v, const backward_work_t *w) {
  fill(w->top, b->lanes, -INFINITY);
  fill(w->sum, b->lanes, 0);
  fill(w->d, b->lanes, 0);
  for (int64_t j = 0; j < b->seen; j += KEYS) {
    const int64_t n = least(KEYS, b->seen - j);
    scores(a, b, w->qt, rows_from(k, j), j, n, w->p + j * b->lanes);
    column_maxima(w->p + j * b->lanes, n, b->lanes, w->top);
  }
  for (int64_t j = 0; j < b->seen; j += KEYS) {
    const int64_t n = least(KEYS, b->seen - j);
    float *p = w->p + j * b->lanes, *dp = w->dp + j * b->lanes;
    exponentials(p, n, b->lanes, w->top, w->sum);
    multiply_keys(a, BC_SCORE_GRADIENTS, b, rows_from(v, j), w->gt, n, a->width_v, 1, dp);
    drop(a, b, j, n, dp);
    column_dots(p, dp, n, b->lanes, w->d);
  }
  for (int64_t i = 0; i < b->lanes; i++) {
    w->sum[i] = w->sum[i] == 0 ? 0 : 1 / w->sum[i];
    w->d[i] *= w->sum[i];
  }
}

static void backward_block(const bc_attention_t *a, const block_t *b, bc_rows_t go, bc_rows_t dq, rows_t k, rows_t v,
                           float *dk, float *dv, const backward_work_t *w) {
  const int64_t width = bc_tile_round(a->width), width_v = bc_tile_round(a->width_v);
  const float scale = (float)a->scale;
  read_block(a, b, of_head(a, &a->q, b->head, 1, a->width), w->q, w->qt);
  read_block(a, b, of_head(a, &go, b->head, 1, a->width_v), w->g, w->gt);
  recompute(a, b, k, v, w);
  fill(w->dq, b->rows * width, 0);
  for (int64_t j = 0; j < b->seen; j += KEYS) {
    const int64_t n = least(KEYS, b->seen - j);
    float *p = w->p + j * b->lanes, *ds = w->dp + j * b->lanes;
    score_gradients(p, ds, n, b->lanes, w->sum, w->d);
    drop(a, b, j, n, p);
    add_by_keys(a, BC_VALUE_GRADIENTS, b, weights(a, b, p, n, w->half), n, w->g, dv + j * width_v, width_v, 1);
    const float *gradients = weights(a, b, ds, n, w->half);
    add_by_keys(a, BC_KEY_GRADIENTS, b, gradients, n, w->q, dk + j * width, width, scale);
    add_by_queries(a, BC_QUERY_GRADIENTS, b, gradients, n, rows_from(k, j), w->dq, width, scale);
  }
  write_rows(a, w->dq, b->rows, of_head(a, &dq, b->head, 1, a->width), b->first);
}

void bc_attention_backward(const bc_attention_t *a, bc_rows_t go, bc_rows_t dq, int64_t key_head, int64_t part,
                           int64_t n_parts, float *sums, float *work) {
  const int64_t n = bc_attention_n_blocks(a, 1), head = key_head * a->share;
  float *dk = sums, *dv = sums + a->n_key * bc_tile_round(a->width);
  backward_work_t w;
  carve_backward(a, work, &w);
  const rows_t k = read_rows(a, of_head(a, &a->k, head, a->share, a->width), 0, a->n_key, w.k);
  const rows_t v = read_rows(a, of_head(a, &a->v, head, a->share, a->width_v), 0, a->n_key, w.v);
  fill(sums, (int64_t)bc_attention_sums(a), 0);
  for (int64_t i = part; i < a->share * n; i += n_parts) {
    block_t b = bc_attention_block(a, 1, head + i / n, i % n);
    b.work = w.own;
    backward_block(a, &b, go, dq, k, v, dk, dv, &w);
  }
}

void bc_attention_finish(const bc_attention_t *a, bc_rows_t dk, bc_rows_t dv, int64_t key_head, int64_t n_parts,
                         float *sums) {
  const int64_t head = key_head * a->share, n = (int64_t)bc_attention_sums(a);
  for (int64_t part = 1; part < n_parts; part++)
    for (int64_t i = 0; i < n; i++) sums[i] += sums[part * n + i];
  write_rows(a, sums, a->n_key, of_head(a, &dk, head, a->share, a->width), 0);
  write_rows(a, sums + a->n_key * bc_tile_round(a->width), a->n_key, of_head(a, &dv, head, a->share, a->width_v), 0);
}
