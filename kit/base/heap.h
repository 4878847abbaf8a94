/* Binary heaps in an array of the owner, the first in order on top (J. W. J. Williams, 1964). O(log n) an operation.
 *
 *     kit_heap_push(heap, n++, sizeof *heap, &item, is_before);      the array has room for n + 1 items
 *     kit_heap_pop(heap, n--, sizeof *heap, &first, is_before);      n > 0
 *
 * Items of which neither is before the other come in no particular order: let is_before be a total one. */
#ifndef KIT_HEAP_H
#define KIT_HEAP_H

#include <aot/assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int (*kit_before_fn)(const void *a, const void *b);

static inline char *kit_heap_at(void *heap, size_t item_size, uint32_t i) { return (char *)heap + i * item_size; }

static inline void kit_heap_push(void *heap, uint32_t n, size_t item_size, const void *item, kit_before_fn before) {
  uint32_t at = n;
  for (; at > 0 && before(item, kit_heap_at(heap, item_size, (at - 1) / 2)); at = (at - 1) / 2)
    memcpy(kit_heap_at(heap, item_size, at), kit_heap_at(heap, item_size, (at - 1) / 2), item_size);
  memcpy(kit_heap_at(heap, item_size, at), item, item_size);
}

/* *out: the first one, which leaves the heap of n. */
static inline void kit_heap_pop(void *heap, uint32_t n, size_t item_size, void *out, kit_before_fn before) {
  AOT_ASSERT(n > 0);
  const uint32_t left = n - 1;
  const char *last = kit_heap_at(heap, item_size, left);
  uint32_t at = 0;
  memcpy(out, heap, item_size);
  for (uint32_t child = 1; child < left; child = 2 * at + 1) {
    child += child + 1 < left && before(kit_heap_at(heap, item_size, child + 1), kit_heap_at(heap, item_size, child));
    if (!before(kit_heap_at(heap, item_size, child), last)) break;
    memcpy(kit_heap_at(heap, item_size, at), kit_heap_at(heap, item_size, child), item_size);
    at = child;
  }
  if (at != left) memcpy(kit_heap_at(heap, item_size, at), last, item_size);
}

#endif
