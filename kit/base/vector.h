/* Arrays that grow. The array, its length and its capacity are the owner's:
 *
 *     item_t *items = kit_grow(v->items, &v->capacity, v->n + 1, sizeof *items);
 *     if (!items) return no_memory(v);
 *     v->items = items;
 *     v->items[v->n++] = item;
 *
 * The capacity doubles, so that n items cost O(n). kit_grow64 is for what may be larger than 4 G elements: texts. */
#ifndef KIT_VECTOR_H
#define KIT_VECTOR_H

#include <stdint.h>
#include <stdlib.h>

/* Room for `needed` elements, at least 1: the array, which may have moved. NULL: no memory; the array is as it was. */
static inline void *kit_grow64(void *array, uint64_t *capacity, uint64_t needed, size_t element_size) {
  enum { FIRST = 64 };
  if (needed <= *capacity) return array;
  uint64_t wanted = *capacity > UINT64_MAX / 2 ? UINT64_MAX : *capacity ? 2 * *capacity : FIRST;
  if (wanted < needed) wanted = needed;
  if (wanted > SIZE_MAX / element_size) return NULL;
  void *grown = realloc(array, (size_t)wanted * element_size);
  if (grown) *capacity = wanted;
  return grown;
}

static inline void *kit_grow(void *array, uint32_t *capacity, uint64_t needed, size_t element_size) {
  if (needed <= *capacity) return array;
  if (needed > UINT32_MAX || *capacity > UINT32_MAX / 2) return NULL;
  uint64_t grown_capacity = *capacity;
  void *grown = kit_grow64(array, &grown_capacity, needed, element_size);
  if (grown) *capacity = (uint32_t)grown_capacity;
  return grown;
}

#endif
