#include "attention_blocks.h"

#include "tile_products.h"

enum {
  QUERIES = 64,              /* of a block, at most; BC_ATTENTION_QUERIES where oneDNN multiplies */
  PANEL_FLOATS = 512 * 1024, /* scores of a block of queries and all keys, two of them: what stays in a cache */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t bc_attention_heads(const bc_attention_t *a) {
  int64_t n = 1;
  for (int32_t d = 0; d < a->n_lead; d++) n *= a->lead[d];
  return n;
}

/* Fewer than a block are no more than they are; backward, fewer at a time where there are many keys. */
int64_t bc_attention_queries(const bc_attention_t *a, int is_backward) {
  int64_t n = least(a->halves ? BC_ATTENTION_QUERIES : QUERIES, bc_tile_round(a->n_query));
  while (is_backward && n > BC_TILE_LANES && 2 * n * a->n_key > PANEL_FLOATS) n = bc_tile_round(n / 2);
  return n;
}

int64_t bc_attention_n_blocks(const bc_attention_t *a, int is_backward) {
  const int64_t queries = bc_attention_queries(a, is_backward);
  return (a->n_query + queries - 1) / queries;
}

bc_attention_block_t bc_attention_block(const bc_attention_t *a, int is_backward, int64_t head, int64_t index) {
  const int64_t queries = bc_attention_queries(a, is_backward);
  bc_attention_block_t b = {.head = head, .first = index * queries};
  b.rows = least(queries, a->n_query - b.first);
  b.lanes = bc_tile_round(b.rows);
  b.seen = a->causal ? least(a->n_key, b.first + b.rows) : a->n_key;
  return b;
}

int64_t bc_attention_blocks(const bc_attention_t *a) { return bc_attention_heads(a) * bc_attention_n_blocks(a, 0); }
