#include "forward_stash.h"

#include "kit/lowering/transaction.h"
#include <assert.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_ROWS = 16, MOST_TENSORS = 4 };

gc_kept_table_t *gc_kept_of(const lw_build_t *b, gc_kept_table_t **table, const aot_snap_graph_t **in) {
  if (*in != b->graph) *table = NULL;
  *in = b->graph;
  if (!*table) *table = lw_pool_alloc(b->pool, sizeof **table);
  return *table;
}

uint64_t gc_kept_hash(const lw_tensor_t *const *tensors, uint32_t n) {
  int64_t places[MOST_TENSORS][2];
  assert(n <= MOST_TENSORS);
  for (uint32_t k = 0; k < n; k++) places[k][0] = tensors[k]->storage, places[k][1] = tensors[k]->offset;
  return XXH3_64bits(places, n * sizeof *places);
}

static int has_hash(const void *newest, uint32_t row, const void *hash) {
  return ((gc_kept_t *const *)newest)[row]->hash == *(const uint64_t *)hash;
}

static void *from_pool(void *pool, uint64_t nbytes) { return lw_pool_alloc(pool, nbytes); }

/* Room for one more hash, in pool memory; the rows so far are kept. */
static int make_room(lw_build_t *b, gc_kept_table_t *t) {
  t->rows.alloc = from_pool;
  t->rows.pool = b->pool;
  if (!kit_map_reserve(&t->rows, t->rows.n + 1)) return 0;
  if (t->rows.n < t->capacity) return 1;
  const uint32_t capacity = t->capacity ? 2 * t->capacity : FIRST_ROWS;
  gc_kept_t **newest = lw_pool_alloc(b->pool, capacity * sizeof(gc_kept_t *));
  if (!newest) return 0;
  if (t->rows.n) memcpy(newest, t->newest, t->rows.n * sizeof(gc_kept_t *));
  t->newest = newest;
  t->capacity = capacity;
  return 1;
}

aot_status_t gc_keep(lw_build_t *b, gc_kept_table_t *t, gc_kept_t *item) {
  lw_save(b, t, sizeof *t);
  if (!make_room(b, t)) return AOT_E_EXHAUSTED;
  kit_map_cell_t *cell = kit_map_cell(&t->rows, item->hash, has_hash, t->newest, &item->hash);
  const uint32_t row = cell->item_plus_1 ? cell->item_plus_1 - 1 : t->rows.n;
  lw_save(b, cell, sizeof *cell);
  lw_save(b, &t->newest[row], sizeof t->newest[row]);
  item->before = cell->item_plus_1 ? t->newest[row] : NULL;
  t->newest[row] = item;
  if (!cell->item_plus_1) kit_map_add(&t->rows, item->hash, row); /* to that cell */
  return AOT_OK;
}

gc_kept_t *gc_kept_first(const gc_kept_table_t *t, uint64_t hash) {
  const uint32_t row = kit_map_find(&t->rows, hash, has_hash, t->newest, &hash);
  return row == KIT_MAP_NONE ? NULL : t->newest[row];
}
gc_kept_t *gc_kept_before(const gc_kept_t *item) { return item->before; }
