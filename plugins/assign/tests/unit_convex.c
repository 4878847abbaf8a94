/* Division into convex parts, against brute force: on random small graphs every order of the nodes is tried. */
#include "convex.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 9 };

typedef struct example {
  uint32_t n, n_colours, colour[MOST];
  uint8_t before[MOST][MOST]; /* [a][b]: an edge from a to b */
  uint32_t begin[MOST + 1], edges[MOST * MOST];
} example_t;

static example_t draw(uint64_t *seed, uint32_t n_colours) {
  example_t x = {.n = 1 + (uint32_t)(kit_splitmix64(seed) % MOST), .n_colours = n_colours};
  const uint64_t percent = kit_splitmix64(seed) % 70;
  uint32_t n_edges = 0;
  for (uint32_t a = 0; a < x.n; a++) {
    x.colour[a] = (uint32_t)(kit_splitmix64(seed) % n_colours);
    x.begin[a] = n_edges;
    for (uint32_t b = a + 1; b < x.n; b++) {
      x.before[a][b] = kit_splitmix64(seed) % 100 < percent;
      if (x.before[a][b]) x.edges[n_edges++] = b;
    }
  }
  x.begin[x.n] = n_edges;
  return x;
}

/* The fewest changes of colour of all topological orders: by the set of nodes that have run, and the colour of the
 * last. */
static uint32_t fewest(const example_t *x) {
  static uint8_t best[1 << MOST][3];
  uint32_t least = 255;
  memset(best, 255, sizeof best);
  for (uint32_t done = 0; done < 1u << x->n; done++)
    for (uint32_t n = 0; n < x->n; n++) {
      int is_ready = !(done >> n & 1);
      for (uint32_t a = 0; a < x->n; a++) is_ready &= !x->before[a][n] || (done >> a & 1);
      for (uint32_t last = 0; is_ready && last < x->n_colours; last++) {
        const uint32_t so_far = done ? best[done][last] : 0, c = x->colour[n];
        if (so_far == 255) continue;
        const uint32_t parts = so_far + (!done || last != c);
        uint8_t *then = &best[done | 1u << n][c];
        if (parts < *then) *then = (uint8_t)parts;
      }
    }
  for (uint32_t c = 0; c < x->n_colours; c++)
    least = best[(1u << x->n) - 1][c] < least ? best[(1u << x->n) - 1][c] : least;
  return least;
}

static uint32_t check(const example_t *x) {
  uint32_t part[MOST], n_parts, colour_of[MOST];
  assert_int_equal(as_divide(&(as_graph_t){x->n, x->begin, x->edges}, x->colour, x->n_colours, part, &n_parts), 0);
  memset(colour_of, 0xff, sizeof colour_of);
  for (uint32_t n = 0; n < x->n; n++) {
    assert_true(part[n] < n_parts);
    if (colour_of[part[n]] == AS_NONE) colour_of[part[n]] = x->colour[n];
    assert_int_equal(colour_of[part[n]], x->colour[n]); /* one colour a part .. */
    for (uint32_t b = 0; b < x->n; b++)
      assert_true(!x->before[n][b] || part[n] <= part[b]); /* .. that can run in order */
  }
  for (uint32_t p = 0; p < n_parts; p++) assert_true(colour_of[p] != AS_NONE);
  return n_parts;
}

static void two_colours_have_the_fewest_parts_there_are(void **state) {
  uint64_t seed = 1;
  (void)state;
  for (int round = 0; round < 2000; round++) {
    const example_t x = draw(&seed, 2);
    assert_int_equal(check(&x), fewest(&x));
  }
}

/* Parts in order: a path that leaves one never comes back, since it goes up only. */
static void three_colours_are_convex_too(void **state) {
  uint64_t seed = 7;
  (void)state;
  for (int round = 0; round < 2000; round++) {
    const example_t x = draw(&seed, 3);
    assert_true(check(&x) >= fewest(&x));
  }
}

static void a_long_chain_takes_no_longer_than_its_nodes(void **state) {
  enum { N = 200000 };
  uint32_t *memory = malloc((4 * (size_t)N + 1) * sizeof *memory), n_parts;
  uint32_t *begin = memory, *edges = begin + N + 1, *colour = edges + N, *part = colour + N;
  (void)state;
  for (uint32_t n = 0; n < N; n++) begin[n] = n, edges[n] = n + 1, colour[n] = n % 2;
  begin[N - 1] = begin[N] = N - 1;
  assert_int_equal(as_divide(&(as_graph_t){N, begin, edges}, colour, 2, part, &n_parts), 0);
  assert_int_equal(n_parts, N);
  free(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_colours_have_the_fewest_parts_there_are),
      cmocka_unit_test(three_colours_are_convex_too),
      cmocka_unit_test(a_long_chain_takes_no_longer_than_its_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
