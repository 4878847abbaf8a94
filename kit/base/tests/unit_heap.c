/* Heaps against sorting: whatever goes in comes out in order, also when pushes and pops alternate. */
#include "kit/base/heap.h"

#include "kit/base/splitmix.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 2000 };

typedef struct item {
  uint32_t key, number; /* equal keys: by number */
} item_t;

static int is_before(const void *a, const void *b) {
  const item_t *x = a, *y = b;
  return x->key != y->key ? x->key < y->key : x->number < y->number;
}
static int compare(const void *a, const void *b) { return is_before(a, b) ? -1 : is_before(b, a); }

static void items_come_in_order(void **state) {
  item_t heap[N], sorted[N], first;
  uint64_t random = 3;
  (void)state;
  for (uint32_t n = 0; n < N; n++) {
    sorted[n] = (item_t){kit_splitmix32(&random) % 50, n};
    kit_heap_push(heap, n, sizeof *heap, &sorted[n], is_before);
  }
  qsort(sorted, N, sizeof *sorted, compare);
  for (uint32_t n = N; n > 0; n--) {
    kit_heap_pop(heap, n, sizeof *heap, &first, is_before);
    assert_memory_equal(&first, &sorted[N - n], sizeof first);
  }
}

static void the_first_is_the_least_of_those_left(void **state) {
  item_t heap[N], first;
  uint8_t is_in[N] = {0};
  uint32_t n = 0, key_of[N];
  uint64_t random = 4;
  (void)state;
  for (uint32_t i = 0; i < N; i++) {
    key_of[i] = kit_splitmix32(&random) % 100;
    is_in[i] = 1;
    kit_heap_push(heap, n++, sizeof *heap, &(item_t){key_of[i], i}, is_before);
    if (i % 3 == 0) continue;
    kit_heap_pop(heap, n--, sizeof *heap, &first, is_before);
    assert_true(is_in[first.number]);
    is_in[first.number] = 0;
    for (uint32_t k = 0; k <= i; k++) assert_true(!is_in[k] || is_before(&first, &(item_t){key_of[k], k}));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_come_in_order),
      cmocka_unit_test(the_first_is_the_least_of_those_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
