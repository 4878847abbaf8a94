/* The simulated run of a graph: rules by example, then random runs against a recount that looks at every step by
 * itself. */
#include "kit/model/simulate.h"
#include "kit/base/splitmix.h"

#include "kit/loops/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_NODES = 24, MAX_OPERANDS = 3, N_INPUTS = 2, MAX_VALUES = N_INPUTS + MAX_NODES };

/* A graph whose nodes have one result each: value N_INPUTS + n. */
typedef struct sample {
  uint32_t n_nodes;
  uint32_t operand_begin[MAX_NODES + 1], operands[MAX_NODES * MAX_OPERANDS], result_begin[MAX_NODES + 1];
  uint32_t base[MAX_VALUES], space[MAX_NODES], nodes[MAX_NODES];
  uint64_t nbytes[MAX_VALUES], scratch[MAX_NODES];
  uint8_t is_given[MAX_VALUES];
  ms_graph_t graph;
} sample_t;

static void begin(sample_t *s) {
  memset(s, 0, sizeof *s);
  for (uint32_t i = 0; i < N_INPUTS; i++) {
    s->base[i] = i;
    s->nbytes[i] = 64;
    s->is_given[i] = 1;
  }
}

#define ALONE MS_NONE
/* A node with up to two operands; view: its result is a view of the first. Returns its value. */
static uint32_t node(sample_t *s, uint64_t nbytes, uint32_t space, int view, uint32_t a, uint32_t b) {
  uint32_t n = s->n_nodes++, at = s->operand_begin[n], v = N_INPUTS + n;
  s->operands[at++] = a;
  if (b != MS_NONE) s->operands[at++] = b;
  s->operand_begin[n + 1] = at;
  s->result_begin[n] = v;
  s->result_begin[n + 1] = v + 1;
  s->nbytes[v] = nbytes;
  s->space[n] = space;
  s->base[v] = view ? a : v;
  s->nodes[n] = n;
  return v;
}

static void run(sample_t *s, const uint32_t *outputs, uint32_t n_outputs, int in_place, ms_arena_t *out) {
  s->graph = (ms_graph_t){s->n_nodes,
                          N_INPUTS + s->n_nodes,
                          s->operand_begin,
                          s->operands,
                          s->result_begin,
                          s->nbytes,
                          s->base,
                          s->space,
                          s->scratch,
                          64,
                          64,
                          in_place};
  ms_run_t r = {s->nodes, s->n_nodes, s->is_given, outputs, n_outputs};
  assert_int_equal(ms_simulate(&s->graph, &r, out), 0);
}

static uint64_t arena_of(sample_t *s, uint32_t output, int in_place) {
  ms_arena_t a;
  run(s, &output, 1, in_place, &a);
  uint64_t nbytes = a.nbytes;
  ms_arena_deinit(&a);
  return nbytes;
}

/* a -> b -> c, handed over: while b is made a is there, while c is made b is; c is in the caller's memory. */
static void a_value_lives_until_its_last_reader(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), b = node(&s, 256, ALONE, 0, a, MS_NONE),
           c = node(&s, 512, ALONE, 0, b, MS_NONE);
  assert_int_equal(arena_of(&s, c, 0), 384);
}

static void a_view_keeps_its_base_and_takes_nothing(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), view = node(&s, 128, ALONE, 1, a, MS_NONE);
  uint32_t b = node(&s, 256, ALONE, 0, 1, MS_NONE), c = node(&s, 64, ALONE, 0, view, b),
           d = node(&s, 64, ALONE, 0, c, MS_NONE);
  assert_int_equal(arena_of(&s, d, 0), 128 + 256 + 64);
}

/* Two pointwise nodes of one space: what is between them is in a register; what they read lives until the second. */
static void a_loop_holds_what_only_it_reads_in_registers(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), b = node(&s, 128, 7, 0, a, MS_NONE),
           c = node(&s, 128, 7, 0, b, MS_NONE);
  uint32_t d = node(&s, 64, ALONE, 0, c, MS_NONE);
  assert_int_equal(arena_of(&s, d, 0), 256); /* a and c */
}

/* Handed over in its layout, or, where it is a part of something, copied when the run ends. */
static void a_part_of_a_value_is_copied_at_the_end(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), whole = node(&s, 128, ALONE, 1, a, MS_NONE),
           part = node(&s, 64, ALONE, 1, a, MS_NONE);
  uint32_t b = node(&s, 256, ALONE, 0, 1, MS_NONE);
  node(&s, 64, ALONE, 0, b, MS_NONE);
  assert_int_equal(arena_of(&s, whole, 0), 256 + 64); /* b and its reader */
  assert_int_equal(arena_of(&s, part, 0), 128 + 256 + 64);
}

static void a_loop_may_write_over_what_nobody_reads_later(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), b = node(&s, 128, 7, 0, a, MS_NONE),
           c = node(&s, 64, ALONE, 0, b, MS_NONE);
  assert_int_equal(arena_of(&s, c, 0), 256);
  assert_int_equal(arena_of(&s, c, 1), 128);
}

static void work_space_is_counted_while_its_node_runs(void **state) {
  (void)state;
  sample_t s;
  begin(&s);
  uint32_t a = node(&s, 128, ALONE, 0, 0, MS_NONE), b = node(&s, 64, ALONE, 0, a, MS_NONE);
  s.scratch[1] = 100; /* 128 with its padding */
  assert_int_equal(arena_of(&s, b, 0), 256);
}

/* ---- against a recount ---- */

static void make_random(sample_t *s, uint64_t *seed) {
  begin(s);
  uint32_t n = 3 + (uint32_t)(kit_splitmix64(seed) % (MAX_NODES - 3));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t a = (uint32_t)(kit_splitmix64(seed) % (N_INPUTS + i)),
             b = (uint32_t)(kit_splitmix64(seed) % (N_INPUTS + i));
    uint32_t kind = (uint32_t)(kit_splitmix64(seed) % 4);
    node(s, 64 * (1 + kit_splitmix64(seed) % 6), kind == 1 ? (uint32_t)(kit_splitmix64(seed) % 2) : ALONE, kind == 2, a,
         kit_splitmix64(seed) % 2 ? b : MS_NONE);
    if (kind == 3) s->scratch[i] = 64 * (kit_splitmix64(seed) % 4);
  }
}

static uint32_t root_of(const sample_t *s, uint32_t v) {
  while (s->base[v] != v) v = s->base[v];
  return v;
}

/* Is value v's memory used at time t? Straight from the rules: from when its maker runs to when the last reader does,
 * seen through views; never, if only members of its maker's loop read it, or if it is handed over. */
static int takes_memory(const sample_t *s, const uint32_t *when, uint32_t v, uint32_t output, uint32_t t) {
  uint32_t first = when[v - N_INPUTS], last = first;
  int read_outside = s->space[v - N_INPUTS] == MS_NONE;
  if (root_of(s, output) == v && s->nbytes[output] == s->nbytes[v]) return 0;
  for (uint32_t n = 0; n < s->n_nodes; n++)
    for (uint32_t k = s->operand_begin[n]; k < s->operand_begin[n + 1]; k++) {
      uint32_t o = s->operands[k];
      if (root_of(s, o) != v) continue;
      int is_view = s->base[N_INPUTS + n] != N_INPUTS + n;
      int member = o == v && !is_view && s->space[v - N_INPUTS] != MS_NONE && when[n] == when[v - N_INPUTS];
      if (member) continue;
      read_outside = 1;
      if (!is_view && when[n] > last) last = when[n];
    }
  if (root_of(s, output) == v) {
    read_outside = 1;
    last = s->n_nodes - 1;
  }
  return read_outside && t >= first && t <= last;
}

static uint64_t recount(const sample_t *s, uint32_t output) {
  uint32_t producers[MAX_NODES * MAX_OPERANDS], when[MAX_NODES];
  uint64_t most = 0;
  for (uint32_t k = 0; k < s->operand_begin[s->n_nodes]; k++)
    producers[k] = s->operands[k] < N_INPUTS ? FU_NONE : s->operands[k] - N_INPUTS;
  fu_graph_t g = {s->n_nodes, s->operand_begin, producers, s->space, 64, NULL, NULL, NULL, NULL, 0, NULL};
  assert_int_equal(fu_group(&g, when), 0);
  for (uint32_t t = 0; t < s->n_nodes; t++) {
    uint64_t sum = 0;
    for (uint32_t v = N_INPUTS; v < N_INPUTS + s->n_nodes; v++)
      if (root_of(s, v) == v && takes_memory(s, when, v, output, t)) sum += s->nbytes[v];
    for (uint32_t n = 0; n < s->n_nodes; n++)
      if (when[n] == t) sum += s->scratch[n];
    if (sum > most) most = sum;
  }
  return most;
}

static void check_places(const ms_arena_t *a) {
  for (uint32_t i = 0; i < a->n_buffers; i++) {
    const ms_buffer_t *x = &a->buffers[i];
    assert_true(x->place + x->nbytes <= a->nbytes);
    assert_true(x->first <= x->last);
    for (uint32_t k = 0; k < i; k++) {
      const ms_buffer_t *y = &a->buffers[k];
      int together = x->first <= y->last && y->first <= x->last;
      assert_false(together && x->place < y->place + y->nbytes && y->place < x->place + x->nbytes);
    }
  }
}

static void every_step_adds_up(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int round = 0; round < 3000; round++) {
    sample_t s;
    ms_arena_t a, in_place;
    make_random(&s, &seed);
    uint32_t output = N_INPUTS + (uint32_t)(kit_splitmix64(&seed) % s.n_nodes);
    run(&s, &output, 1, 0, &a);
    assert_int_equal(a.live, recount(&s, output));
    assert_true(a.nbytes >= a.live);
    check_places(&a);
    run(&s, &output, 1, 1, &in_place);
    assert_true(in_place.live <= a.live);
    check_places(&in_place);
    ms_arena_deinit(&a);
    ms_arena_deinit(&in_place);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_value_lives_until_its_last_reader),
      cmocka_unit_test(a_view_keeps_its_base_and_takes_nothing),
      cmocka_unit_test(a_loop_holds_what_only_it_reads_in_registers),
      cmocka_unit_test(a_part_of_a_value_is_copied_at_the_end),
      cmocka_unit_test(a_loop_may_write_over_what_nobody_reads_later),
      cmocka_unit_test(work_space_is_counted_while_its_node_runs),
      cmocka_unit_test(every_step_adds_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
