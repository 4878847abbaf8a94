#include "attention_halves.h"

#include "onednn_kernels.h"
#include "tile_products.h"
#include <stdlib.h>

enum { LEAST_LENGTH = 32, MOST_SIZES = 8 };

typedef struct sizes {
  int64_t n, rows;
  bc_dnn_t *kernels[BC_ATTENTION_PRODUCTS]; /* of one direction */
} sizes_t;

struct bc_attention_halves {
  sizes_t sizes[MOST_SIZES];
  int32_t n_sizes;
  uint64_t work;
};

static bc_matrix_t matrix(int64_t rows, int64_t columns, int64_t ld, int32_t transposed) {
  return (bc_matrix_t){.rows = rows, .columns = columns, .ld = ld, .transposed = transposed};
}

static bc_product_t describe(const bc_attention_t *a, int what, int64_t n, int64_t rows) {
  const int64_t lanes = bc_tile_round(rows), width = bc_tile_round(a->width), width_v = bc_tile_round(a->width_v);
  const bc_matrix_t keys = matrix(n, a->width, a->k.position, 0), values = matrix(n, a->width_v, a->v.position, 0);
  const bc_matrix_t scores = matrix(n, lanes, lanes, 0), tile = matrix(n, rows, lanes, 0);
  const bc_matrix_t tile_turned = matrix(rows, n, lanes, 1);
  const bc_product_t products[] = {
      [BC_SCORES] = {.alpha = a->scale, .a = keys, .b = matrix(a->width, lanes, lanes, 0), .c = scores},
      [BC_SCORE_GRADIENTS] = {.alpha = 1, .a = values, .b = matrix(a->width_v, lanes, lanes, 0), .c = scores},
      [BC_OUTPUTS] = {.alpha = 1, .beta = 1, .a = tile_turned, .b = values, .c = matrix(rows, a->width_v, width_v, 0)},
      [BC_QUERY_GRADIENTS] =
          {.alpha = a->scale, .beta = 1, .a = tile_turned, .b = keys, .c = matrix(rows, a->width, width, 0)},
      [BC_KEY_GRADIENTS] = {.alpha = a->scale,
                            .beta = 1,
                            .a = tile,
                            .b = matrix(rows, a->width, width, 0),
                            .c = matrix(n, a->width, width, 0)},
      [BC_VALUE_GRADIENTS] = {.alpha = 1,
                              .beta = 1,
                              .a = tile,
                              .b = matrix(rows, a->width_v, width_v, 0),
                              .c = matrix(n, a->width_v, width_v, 0)},
  };
  bc_product_t p = products[what];
  p.dtype = AOT_BF16;
  return p;
}

static const sizes_t *find(const bc_attention_halves_t *h, int64_t n, int64_t rows) {
  for (int32_t i = 0; i < h->n_sizes; i++)
    if (h->sizes[i].n == n && h->sizes[i].rows == rows) return &h->sizes[i];
  return NULL;
}

/* 0: they cannot be had. */
static int add_sizes(bc_attention_halves_t *h, const bc_attention_t *a, int is_backward, int64_t n, int64_t rows,
                     int32_t n_lanes) {
  if (n == 0 || find(h, n, rows)) return 1;
  if (h->n_sizes == MOST_SIZES) return 0;
  sizes_t *s = &h->sizes[h->n_sizes++];
  *s = (sizes_t){.n = n, .rows = rows};
  for (int what = 0; what < BC_ATTENTION_PRODUCTS; what++) {
    if (is_backward ? what == BC_OUTPUTS : what != BC_SCORES && what != BC_OUTPUTS) continue;
    const bc_product_t p = describe(a, what, n, rows);
    s->kernels[what] = bc_dnn_tile_product(&p, n_lanes);
    if (!s->kernels[what]) return 0;
    if (h->work < bc_dnn_work(s->kernels[what])) h->work = bc_dnn_work(s->kernels[what]);
  }
  return 1;
}

bc_attention_halves_t *bc_attention_halves_create(const bc_attention_t *a, int is_backward, int32_t n_lanes) {
  if (a->dtype != AOT_BF16 || a->n_query < LEAST_LENGTH || a->n_key < LEAST_LENGTH) return NULL;
  bc_attention_halves_t *h = calloc(1, sizeof *h);
  bc_attention_t with = *a;
  int ok = h != NULL;
  with.halves = h;
  for (int64_t i = 0; ok && i < bc_attention_n_blocks(&with, is_backward); i++) {
    const bc_attention_block_t b = bc_attention_block(&with, is_backward, 0, i);
    if (b.seen >= BC_ATTENTION_KEYS) ok = add_sizes(h, a, is_backward, BC_ATTENTION_KEYS, b.rows, n_lanes);
    ok = ok && add_sizes(h, a, is_backward, b.seen % BC_ATTENTION_KEYS, b.rows, n_lanes);
  }
  if (ok) return h;
  bc_attention_halves_destroy(h);
  return NULL;
}

void bc_attention_halves_destroy(void *halves) {
  bc_attention_halves_t *h = halves;
  for (int32_t i = 0; h && i < h->n_sizes; i++)
    for (int what = 0; what < BC_ATTENTION_PRODUCTS; what++) bc_dnn_destroy(h->sizes[i].kernels[what]);
  free(h);
}

uint64_t bc_attention_halves_work(const bc_attention_halves_t *h) { return h->work; }

int bc_attention_halves_run(const bc_attention_halves_t *h, int what, int64_t n, int64_t rows, int32_t lane,
                            void *const *operands, void *work) {
  return bc_dnn_run(find(h, n, rows)->kernels[what], lane, operands, work);
}
