#include "forward_stash.h"

#include "kit/lowering/transaction.h"
#include <assert.h>
#include <xxhash.h>

enum { LEAST_BUCKETS = 16, MOST_TENSORS = 4 };

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

static gc_kept_t **bucket_of(const gc_kept_table_t *t, uint64_t hash) { return &t->buckets[hash & (t->n_buckets - 1)]; }

/* Items of one new bucket come from one old bucket, in its order. */
static aot_status_t grow(lw_build_t *b, gc_kept_table_t *t) {
  gc_kept_table_t more = {.n_buckets = t->n_buckets ? 2 * t->n_buckets : LEAST_BUCKETS, .n = t->n};
  more.buckets = lw_pool_alloc(b->pool, more.n_buckets * sizeof(gc_kept_t *));
  if (!more.buckets) return AOT_E_EXHAUSTED;
  for (uint32_t k = 0; k < t->n_buckets; k++) {
    gc_kept_t **ends[2] = {&more.buckets[k], &more.buckets[k + t->n_buckets]};
    for (gc_kept_t *item = t->buckets[k]; item; item = item->next) {
      gc_kept_t ***end = &ends[(item->hash & t->n_buckets) != 0];
      **end = item;
      *end = &item->next;
    }
    *ends[0] = *ends[1] = NULL;
  }
  *t = more;
  return AOT_OK;
}

aot_status_t gc_keep(lw_build_t *b, gc_kept_table_t *t, gc_kept_t *item) {
  lw_save(b, t, sizeof *t);
  if (t->n == t->n_buckets) {
    const aot_status_t status = grow(b, t);
    if (status != AOT_OK) return status;
  }
  gc_kept_t **bucket = bucket_of(t, item->hash);
  lw_save(b, bucket, sizeof *bucket);
  item->next = *bucket;
  *bucket = item;
  t->n++;
  return AOT_OK;
}

static gc_kept_t *find(gc_kept_t *item, uint64_t hash) {
  while (item && item->hash != hash) item = item->next;
  return item;
}
gc_kept_t *gc_kept_first(const gc_kept_table_t *t, uint64_t hash) {
  return t->n ? find(*bucket_of(t, hash), hash) : NULL;
}
gc_kept_t *gc_kept_before(const gc_kept_t *item) { return find(item->next, item->hash); }
