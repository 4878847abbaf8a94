#include "tile_products.h"

#include "simd_dispatch.h"

/* A block of c is in registers while k goes by: each step takes one row of b and adds its multiples by a column of a
 * (Goto and van de Geijn 2008, section 4; nothing is packed, since the operands are few enough for a cache). How many
 * rows and vectors fill the registers is one line for each instruction set at the bottom. */
typedef float lanes_t __attribute__((vector_size(4 * BC_TILE_LANES), aligned(4), may_alias));

enum { MOST_ROWS = 8, MOST_VECTORS = 2 };

BC_INLINE void block(const bc_tile_product_t *p, int64_t row, int64_t column, const int rows, const int vectors) {
  lanes_t sum[MOST_ROWS][MOST_VECTORS];
  const float *a = p->a + row * p->a_row, *b = p->b + column;
  float *c = p->c + row * p->c_row + column;
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) sum[r][v] = (lanes_t){0};
  for (int64_t k = 0; k < p->k; k++, a += p->a_column, b += p->b_row)
    for (int r = 0; r < rows; r++)
      for (int v = 0; v < vectors; v++) sum[r][v] += a[r * p->a_row] * *(const lanes_t *)(b + v * BC_TILE_LANES);
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      lanes_t *to = (lanes_t *)(c + r * p->c_row + v * BC_TILE_LANES);
      *to = p->adds ? *to + p->alpha * sum[r][v] : p->alpha * sum[r][v];
    }
}

BC_INLINE void columns(const bc_tile_product_t *p, int64_t column, const int rows, const int vectors) {
  int64_t row = 0;
  for (; row + rows <= p->m; row += rows) block(p, row, column, rows, vectors);
  for (; row + 4 <= p->m && rows > 4; row += 4) block(p, row, column, 4, vectors);
  for (; row + 2 <= p->m && rows > 2; row += 2) block(p, row, column, 2, vectors);
  for (; row < p->m; row++) block(p, row, column, 1, vectors);
}

BC_INLINE void product(const bc_tile_product_t *p, const int rows, const int vectors) {
  int64_t column = 0;
  for (; column + vectors * BC_TILE_LANES <= p->n; column += vectors * BC_TILE_LANES) columns(p, column, rows, vectors);
  for (; column < p->n; column += BC_TILE_LANES) columns(p, column, rows, 1);
}

static void product_any(const bc_tile_product_t *p) { product(p, 3, 1); }

#if defined(__x86_64__)
static __attribute__((target("avx512f"))) void product_avx512(const bc_tile_product_t *p) { product(p, 8, 2); }
static __attribute__((target("avx2,fma"))) void product_avx2(const bc_tile_product_t *p) { product(p, 6, 1); }

void bc_tile_product(const bc_tile_product_t *p) {
  if (__builtin_cpu_supports("avx512f")) product_avx512(p);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) product_avx2(p);
  else product_any(p);
}
#else
void bc_tile_product(const bc_tile_product_t *p) { product_any(p); }
#endif
