/* kit_map_t against a plain array: every item is found, no other one, through growth, removals and clashing hashes; a
 * map that gets no memory is as it was. */
#include "kit/base/map.h"

#include "kit/base/splitmix.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000 };

typedef struct owner {
  uint64_t keys[N];
  int n_compared;
} owner_t;

static int is_equal(const void *owner, uint32_t item, const void *key) {
  owner_t *o = (owner_t *)(uintptr_t)owner;
  o->n_compared++;
  return o->keys[item] == *(const uint64_t *)key;
}

static uint64_t good_hash(uint64_t key) {
  uint64_t state = key;
  return kit_splitmix64(&state);
}
static uint64_t bad_hash(uint64_t key) { return key % 7; } /* runs of hundreds of cells */
static uint64_t high_hash(uint64_t key) { return good_hash(key) << 40; }

static void check(const owner_t *o, const kit_map_t *m, uint64_t (*hash)(uint64_t), const uint8_t *is_in, uint32_t n) {
  uint32_t n_in = 0;
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(kit_map_find(m, hash(o->keys[i]), is_equal, o, &o->keys[i]), is_in[i] ? i : KIT_MAP_NONE);
    n_in += is_in[i];
  }
  assert_int_equal(m->n, n_in);
  assert_true(2 * m->n <= m->capacity);
}

static void add_and_remove(uint64_t (*hash)(uint64_t), uint32_t n) {
  owner_t *o = calloc(1, sizeof *o);
  uint8_t is_in[N] = {0};
  kit_map_t m = {0};
  uint64_t random = 1;
  for (uint32_t i = 0; i < n; i++) o->keys[i] = i * UINT64_C(0x10001);
  for (uint32_t step = 0; step < 4 * n; step++) {
    const uint32_t i = kit_splitmix32(&random) % n;
    const uint64_t h = hash(o->keys[i]);
    if (is_in[i] && step % 3 == 0) {
      kit_map_remove(&m, h, i);
      is_in[i] = 0;
    } else {
      assert_int_equal(kit_map_find_or_add(&m, h, is_equal, o, &o->keys[i], i), i);
      is_in[i] = 1;
    }
    kit_map_remove(&m, h, N); /* not there: nothing happens */
    if (step % (n / 4) == 0) check(o, &m, hash, is_in, n);
  }
  check(o, &m, hash, is_in, n);
  for (uint32_t i = 0; i < n; i++) kit_map_remove(&m, hash(o->keys[i]), i);
  for (uint32_t k = 0; k < m.capacity; k++) assert_int_equal(m.cells[k].item_plus_1, 0);
  kit_map_deinit(&m);
  assert_int_equal(m.capacity, 0);
  free(o);
}

static void items_are_found_whatever_their_hashes(void **state) {
  (void)state;
  add_and_remove(good_hash, N);
  add_and_remove(high_hash, N); /* the low half of a hash alone would put all in one run */
  add_and_remove(bad_hash, 300);
}

static void an_equal_key_gives_the_first_item(void **state) {
  owner_t *o = calloc(1, sizeof *o);
  kit_map_t m = {0};
  (void)state;
  assert_int_equal(kit_map_find(&m, 1, is_equal, o, &o->keys[0]), KIT_MAP_NONE);
  for (uint32_t i = 0; i < N; i++) {
    o->keys[i] = i % 10;
    assert_int_equal(kit_map_find_or_add(&m, good_hash(o->keys[i]), is_equal, o, &o->keys[i], i), i % 10);
  }
  assert_int_equal(m.n, 10);
  assert_true(o->n_compared < N + 10); /* equal hashes alone are compared */
  kit_map_deinit(&m);
  free(o);
}

typedef struct pool {
  kit_map_cell_t cells[1024];
  uint64_t used, limit;
} pool_t;

static void *pool_alloc(void *pool, uint64_t nbytes) {
  pool_t *p = pool;
  if (p->used + nbytes > p->limit) return NULL;
  p->used += nbytes;
  return (char *)p->cells + p->used - nbytes;
}

static void without_memory_it_is_as_it_was(void **state) {
  owner_t *o = calloc(1, sizeof *o);
  pool_t *p = calloc(1, sizeof *p);
  uint8_t is_in[N] = {0};
  uint32_t n = 0;
  (void)state;
  kit_map_t m = {.alloc = pool_alloc, .pool = p};
  assert_int_equal(kit_map_add(&m, 1, 0), 0);
  assert_int_equal(m.n + m.capacity, 0);
  p->limit = (16 + 32 + 64) * sizeof *p->cells;
  for (; n < N; n++) {
    o->keys[n] = n;
    if (!kit_map_add(&m, good_hash(n), n)) break;
    is_in[n] = 1;
  }
  assert_int_equal(n, 32);
  assert_int_equal(m.capacity, 64);
  check(o, &m, good_hash, is_in, n + 1);
  kit_map_deinit(&m); /* the pool's cells are not freed */
  kit_map_t own = {0};
  assert_int_equal(kit_map_reserve(&own, UINT32_MAX), 0);
  assert_int_equal(kit_map_reserve(&own, 1000), 1);
  const uint32_t capacity = own.capacity;
  assert_true(capacity >= 2000);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(kit_map_add(&own, i, i), 1);
  assert_int_equal(own.capacity, capacity);
  kit_map_clear(&own);
  assert_int_equal(own.capacity, capacity);
  assert_int_equal(kit_map_find(&own, 7, is_equal, o, &o->keys[7]), KIT_MAP_NONE);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(kit_map_add(&own, i, i), 1);
  assert_int_equal(own.n, 1000);
  kit_map_deinit(&own);
  free(p);
  free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_are_found_whatever_their_hashes),
      cmocka_unit_test(an_equal_key_gives_the_first_item),
      cmocka_unit_test(without_memory_it_is_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
