/* A hash table of indices into an array of the owner, which holds keys and values:
 *
 *     hash of a key -> index of the row with an equal key
 *
 *     const uint32_t same = kit_map_find_or_add(&map, hash, is_equal, rows, &key, n_rows);
 *     if (same == KIT_MAP_NONE) return no_memory;       the map is as it was
 *     if (same == n_rows) rows[n_rows++] = key;         else: row `same` is equal
 *
 * So it also finds equal nodes for value numbering. Open addressing with linear probing; at most half of the cells are
 * used; capacities double, so that n items cost O(n) expected. Cells keep hashes: growing compares and calls nothing.
 * There is no iteration: an order of hashes cannot show. A map of zeros is empty. */
#ifndef KIT_MAP_H
#define KIT_MAP_H

#include <aot/assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KIT_MAP_NONE UINT32_MAX

typedef struct kit_map_cell {
  uint32_t hash;
  uint32_t item_plus_1; /* 0: the cell is free */
} kit_map_cell_t;

typedef struct kit_map {
  kit_map_cell_t *cells;
  uint32_t n;        /* items */
  uint32_t capacity; /* cells: a power of two, or 0 */
  /* NULL: calloc, and free. Otherwise zeroed memory of a pool, which frees it: kit_map_deinit does not. */
  void *(*alloc)(void *pool, uint64_t nbytes);
  void *pool;
} kit_map_t;

/* Does this item of the owner have this key? Called only for items of an equal hash. */
typedef int (*kit_map_equal_fn)(const void *owner, uint32_t item, const void *key);

static inline void kit_map_deinit(kit_map_t *m) {
  if (!m->alloc) free(m->cells);
  m->cells = NULL;
  m->n = m->capacity = 0;
}

/* Empty, with the room that it has. */
static inline void kit_map_clear(kit_map_t *m) {
  if (m->n) memset(m->cells, 0, m->capacity * sizeof *m->cells);
  m->n = 0;
}

static inline uint32_t kit_map_fold(uint64_t hash) { return (uint32_t)(hash ^ hash >> 32); }

static inline uint32_t kit_map_next(const kit_map_t *m, uint32_t at) { return (at + 1) & (m->capacity - 1); }

static inline kit_map_cell_t *kit_map_free_cell(const kit_map_t *m, uint32_t hash) {
  AOT_ASSERT(m->n < m->capacity); /* a probe ends at a free cell */
  uint32_t at = hash & (m->capacity - 1);
  while (m->cells[at].item_plus_1) at = kit_map_next(m, at);
  return &m->cells[at];
}

/* Room for n items altogether. 0: out of memory; the map is as it was. */
static inline int kit_map_reserve(kit_map_t *m, uint32_t n) {
  enum { FIRST = 16 };
  uint64_t capacity = m->capacity ? m->capacity : FIRST;
  while (capacity < 2 * (uint64_t)n) capacity *= 2;
  if (capacity == m->capacity) return 1;
  if (capacity > UINT32_MAX) return 0;
  kit_map_t grown = *m;
  grown.capacity = (uint32_t)capacity;
  grown.cells =
      m->alloc ? m->alloc(m->pool, capacity * sizeof *grown.cells) : calloc((size_t)capacity, sizeof *grown.cells);
  if (!grown.cells) return 0;
  for (uint32_t i = 0; i < m->capacity; i++)
    if (m->cells[i].item_plus_1) *kit_map_free_cell(&grown, m->cells[i].hash) = m->cells[i];
  if (!m->alloc) free(m->cells);
  *m = grown;
  return 1;
}

/* The cell of the item with this key, or the free one where it belongs. The map has room. */
static inline kit_map_cell_t *kit_map_cell(const kit_map_t *m, uint64_t hash, kit_map_equal_fn equal, const void *owner,
                                           const void *key) {
  const uint32_t folded = kit_map_fold(hash);
  AOT_ASSERT(m->n < m->capacity);
  for (uint32_t at = folded & (m->capacity - 1);; at = kit_map_next(m, at)) {
    kit_map_cell_t *cell = &m->cells[at];
    if (!cell->item_plus_1) return cell;
    if (cell->hash == folded && equal(owner, cell->item_plus_1 - 1, key)) return cell;
  }
}

/* The item with this key; KIT_MAP_NONE: there is none. */
static inline uint32_t kit_map_find(const kit_map_t *m, uint64_t hash, kit_map_equal_fn equal, const void *owner,
                                    const void *key) {
  return m->n ? kit_map_cell(m, hash, equal, owner, key)->item_plus_1 - 1 : KIT_MAP_NONE;
}

/* An item whose key is not in the map. 0: out of memory; the map is as it was. */
static inline int kit_map_add(kit_map_t *m, uint64_t hash, uint32_t item) {
  AOT_ASSERT(item != KIT_MAP_NONE);
  if (!kit_map_reserve(m, m->n + 1)) return 0;
  *kit_map_free_cell(m, kit_map_fold(hash)) = (kit_map_cell_t){kit_map_fold(hash), item + 1};
  m->n++;
  return 1;
}

/* The item with this key, or `item` as one, which was added. KIT_MAP_NONE: out of memory. */
static inline uint32_t kit_map_find_or_add(kit_map_t *m, uint64_t hash, kit_map_equal_fn equal, const void *owner,
                                           const void *key, uint32_t item) {
  const uint32_t found = kit_map_find(m, hash, equal, owner, key);
  if (found != KIT_MAP_NONE) return found;
  return kit_map_add(m, hash, item) ? item : KIT_MAP_NONE;
}

/* Removes an item, if it is in the map. Later cells of the run move back, so that no probe ends before its item. */
static inline void kit_map_remove(kit_map_t *m, uint64_t hash, uint32_t item) {
  if (!m->n) return;
  uint32_t hole = kit_map_fold(hash) & (m->capacity - 1);
  while (m->cells[hole].item_plus_1 && m->cells[hole].item_plus_1 != item + 1) hole = kit_map_next(m, hole);
  if (!m->cells[hole].item_plus_1) return;
  for (uint32_t at = kit_map_next(m, hole); m->cells[at].item_plus_1; at = kit_map_next(m, at)) {
    const uint32_t mask = m->capacity - 1, home = m->cells[at].hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its probe begins after the hole */
    m->cells[hole] = m->cells[at];
    hole = at;
  }
  m->cells[hole].item_plus_1 = 0;
  m->n--;
}

#endif
