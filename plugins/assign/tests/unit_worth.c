/* Which parts are worth their submission: by what they compute, by the times that backends report, and not where
 * nothing else can. */
#include "worth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 6 };

/* Memory of the test: returned at its end. */
static void *blocks[64];
static int n_blocks;
void *as_alloc(const as_stage_t *s, uint64_t n, uint64_t size) {
  (void)s;
  return blocks[n_blocks++] = calloc((size_t)(n ? n : 1), (size_t)size);
}

static int forget(void **state) {
  (void)state;
  while (n_blocks) free(blocks[--n_blocks]);
  return 0;
}

/* A chain of six nodes and two backends: the first claims `first`, the second everything. */
typedef struct fixture {
  as_stage_t s;
  uint8_t is_claimed[2 * N], is_view[2 * N];
  uint64_t nanoseconds[2 * N], at_most[2 * N], launch[2];
  uint32_t begin[N + 1], edges[N], ids[N], colour[N], part[N];
  as_division_t d;
} fixture_t;

static void make(fixture_t *w, const char *first) {
  *w = (fixture_t){.s = {.n_backends = 2, .n_nodes = N, .least_nodes = 1}};
  for (uint32_t i = 0; i < N; i++) {
    w->is_claimed[i] = first[i] == 'x';
    w->is_claimed[N + i] = 1;
    w->ids[i] = i;
    w->colour[i] = first[i] != 'x';
    w->begin[i] = i;
    w->edges[i] = i + 1;
  }
  w->begin[N] = N - 1;
  w->s.is_claimed = w->is_claimed;
  w->s.is_view = w->is_view;
  w->s.nanoseconds = w->nanoseconds;
  w->s.at_most = w->at_most;
  w->s.launch = w->launch;
  w->d = (as_division_t){.order = {N, w->begin, w->edges}, .nodes = w->ids, .colour = w->colour, .part = w->part};
}

static uint32_t divide(fixture_t *w) {
  uint32_t n_moved = 0;
  assert_int_equal(as_divide_worthily(&w->s, &w->d, &n_moved), AOT_OK);
  return n_moved;
}

static void what_computes_is_worth_it_where_no_times_are_told(void **state) {
  fixture_t w;
  (void)state;
  make(&w, "--x-x-");
  assert_int_equal(divide(&w), 0);
  assert_int_equal(w.d.n_parts, 5);
}

static void views_alone_are_not(void **state) {
  fixture_t w;
  (void)state;
  make(&w, "--x-xx");
  w.is_view[2] = w.is_view[4] = 1;
  assert_int_equal(divide(&w), 1);
  assert_int_equal(w.d.n_parts, 2);
  assert_true(w.colour[2] == 1 && w.colour[4] == 0 && w.colour[5] == 0);
}

static void fewer_nodes_than_asked_for_are_not(void **state) {
  fixture_t w;
  (void)state;
  make(&w, "x--xx-");
  w.s.least_nodes = 2;
  assert_int_equal(divide(&w), 1);
  assert_int_equal(w.d.n_parts, 3);
}

static void times_decide_where_both_tell_them(void **state) {
  fixture_t w;
  (void)state;
  make(&w, "-x--x-");
  w.launch[0] = 100;
  w.nanoseconds[1] = w.nanoseconds[4] = 50;
  w.nanoseconds[N + 1] = 251; /* saves 201, two launches are 200 */
  w.nanoseconds[N + 4] = 250;
  assert_int_equal(divide(&w), 1);
  assert_int_equal(w.d.n_parts, 3);
  assert_true(w.colour[1] == 0 && w.colour[4] == 1);
}

/* What a part reads and makes is moved when it is on another device than those around it. */
static void moving_is_part_of_the_price(void **state) {
  const uint64_t saves[] = {1199, 1201};
  (void)state;
  for (int i = 0; i < 2; i++) {
    fixture_t w;
    as_wire_t wire[N] = {{0}};
    uint32_t readers[N], device_of[2] = {1, 0};
    as_wires_t wires = {.n = N - 1, .wire = wire, .readers = readers};
    make(&w, "--x---");
    for (uint32_t n = 0; n + 1 < N; n++) {
      wire[n] = (as_wire_t){.maker = n + 1, .begin = n, .end = n + 1, .nbytes = 1000};
      readers[n] = n + 1;
    }
    w.d.wires = &wires;
    w.s.device_of = device_of;
    w.s.n_devices = 2;
    w.s.move_delay = 500;
    w.s.move_rate = 10000; /* 100 nanoseconds a wire; two are moved */
    w.nanoseconds[2] = 10;
    w.nanoseconds[N + 2] = 10 + saves[i];
    assert_int_equal(divide(&w), i == 0);
    /* no times are reported: it saves at most what it could take elsewhere */
    w.nanoseconds[2] = w.nanoseconds[N + 2] = 0;
    w.colour[2] = 0;
    w.at_most[N + 2] = saves[i];
    assert_int_equal(divide(&w), i == 0);
    w.s.n_devices = 1; /* nothing is moved on one device */
    w.colour[2] = 0;
    assert_int_equal(divide(&w), 0);
  }
}

static void what_nobody_else_claims_stays(void **state) {
  fixture_t w;
  (void)state;
  make(&w, "--x---");
  w.is_view[2] = 1;
  w.is_claimed[N + 2] = 0;
  assert_int_equal(divide(&w), 0);
  assert_int_equal(w.d.n_parts, 3);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, forget)
  const struct CMUnitTest tests[] = {
      TEST(what_computes_is_worth_it_where_no_times_are_told),
      TEST(views_alone_are_not),
      TEST(fewer_nodes_than_asked_for_are_not),
      TEST(times_decide_where_both_tell_them),
      TEST(moving_is_part_of_the_price),
      TEST(what_nobody_else_claims_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
