/* Damaged artifacts: whatever bytes are changed, cut or exchanged, loading answers a status; what still loads is a
 * block that can be walked to its last row. Repeatable: the seed is fixed. */
#include "kit/graph/snap_check.h"
#include "kit/graph/hand_snapshot.h"
#include "ref_exec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const custom_world_t no_kernels; /* no kernels but the reference ones */

#define DIMS(...) ((int64_t[]){__VA_ARGS__})
#define ROUNDS 60000

/* One graph with every kind of row: symbols, lists, regions, strings, several results. */
static void build(hs_snapshot_t *h) {
  int64_t s = hs_symbol(h), twice = hs_expr(h, AOT_EXPR_MUL, s, 2, 0);
  uint32_t region, x, y, parts[2];
  region = hs_graph(h, AOT_GRAPH_REGION);
  x = hs_input(h, AOT_F32, 2, DIMS(s, 2));
  hs_node(h, "aten.gelu.default");
  hs_arg_value(h, x);
  hs_arg(h, AOT_ARG_STR, h->n_chars)->n = 4;
  hs_text(h, "tanh");
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(s, 2)));
  hs_graph(h, AOT_GRAPH_FORWARD);
  x = hs_input(h, AOT_F32, 2, DIMS(s, 2));
  hs_node(h, "higher_order.invoke_subgraph");
  hs_arg_graph(h, region);
  hs_arg_none(h);
  hs_arg_value(h, x);
  y = hs_result(h, AOT_F32, 2, DIMS(s, 2));
  hs_node(h, "aten.split.Tensor");
  hs_arg_value(h, y);
  hs_arg_int(h, 1);
  hs_arg_int(h, 1);
  parts[0] = hs_result(h, AOT_F32, 2, DIMS(s, 1));
  parts[1] = hs_result(h, AOT_F32, 2, DIMS(s, 1));
  hs_node(h, "aten.cat.default");
  hs_arg_values(h, parts, 2);
  hs_arg_int(h, 1);
  y = hs_result(h, AOT_F32, 2, DIMS(s, 2));
  hs_node(h, "aten.view.default");
  hs_arg_value(h, y);
  hs_arg_ints(h, DIMS(twice), 1);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(twice)));
  hs_output(h, AOT_NO_ID);
}

static uint64_t next_random(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* Change a few places: a byte, a word by a little, a word to a telling value, or two words exchanged. */
static void damage(unsigned char *block, uint64_t nbytes, uint64_t *seed) {
  static const uint64_t telling[] = {
      0, 1, UINT32_MAX, UINT64_MAX, 1u << 30, (uint64_t)1 << 62, ((uint64_t)1 << 62) + 1000, INT64_MAX};
  uint64_t times = 1 + next_random(seed) % 3;
  while (times--) {
    uint64_t at = next_random(seed) % nbytes, word = at / 4 * 4;
    uint32_t w, other;
    switch (next_random(seed) % 4) {
      case 0: block[at] = (unsigned char)next_random(seed); break;
      case 1:
        memcpy(&w, block + word, 4);
        w += (uint32_t)(next_random(seed) % 7) - 3;
        memcpy(block + word, &w, 4);
        break;
      case 2:
        if (word + 8 <= nbytes) memcpy(block + word, &telling[next_random(seed) % 8], 8);
        break;
      default: {
        uint64_t second = next_random(seed) % nbytes / 4 * 4;
        memcpy(&w, block + word, 4);
        memcpy(&other, block + second, 4);
        memcpy(block + word, &other, 4);
        memcpy(block + second, &w, 4);
      }
    }
  }
}

/* Run what loaded, when its sizes are small: kernels must not believe declared shapes either. */
static void try_run(const rf_program_t *p, const aot_snapshot_t *s) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args);
  float in_data[64] = {0.5f}, out_data[64];
  int64_t sizes[2] = {3, 2}, strides[2] = {2, 1}, out_sizes[1] = {6}, out_strides[1] = {1}, symbol = 3;
  aot_tensor_t in = {
      .data = in_data, .nbytes = sizeof in_data, .dtype = AOT_F32, .rank = 2, .sizes = sizes, .strides = strides};
  /* clang-format off */
  aot_tensor_t out[2] = {
      {.data = out_data, .nbytes = sizeof out_data, .dtype = AOT_F32, .rank = 1, .sizes = out_sizes,
       .strides = out_strides},
      {.data = NULL}};
  /* clang-format on */
  rf_error_t error;
  for (uint32_t i = 0; i < s->ints.count; i++)
    if (!AOT_DIM_IS_SYM(ints[i]) && (ints[i] > 1000 || ints[i] < -1000)) return;
  for (uint32_t i = 0; i < s->args.count; i++)
    if (args[i].kind == AOT_ARG_INT && !AOT_DIM_IS_SYM(args[i].i) && (args[i].i > 1000 || args[i].i < -1000)) return;
  for (uint32_t i = 0; i < s->exprs.count; i++)
    if (AOT_SNAP_ROWS(s, aot_snap_expr_t, exprs)[i].op == AOT_EXPR_POW) return;
  for (uint32_t g = 0; g < s->graphs.count; g++)
    if (graphs[g].kind == AOT_GRAPH_FORWARD && (graphs[g].n_inputs != 1 || graphs[g].n_outputs != 2)) return;
  rf_run(p,
         &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                     .inputs = &in,
                     .n_inputs = 1,
                     .outputs = out,
                     .n_outputs = 2,
                     .symbols = &symbol,
                     .n_symbols = 1},
         NULL, NULL, &error);
}

static void test_damaged_blocks_never_crash(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *good;
  uint64_t seed = 88172645463325252u, nbytes, loaded = 0;
  unsigned char *copy;
  (void)state;
  build(h);
  good = hs_finish(h);
  nbytes = good->nbytes;
  for (int round = 0; round < ROUNDS; round++) {
    rf_program_t *p = NULL;
    rf_error_t error;
    copy = malloc(nbytes); /* of the exact size: reading past the end is seen by AddressSanitizer */
    assert_non_null(copy);
    memcpy(copy, good, nbytes);
    damage(copy, nbytes, &seed);
    if (rf_load(copy, nbytes, &no_kernels, &p, &error) == AOT_OK) {
      loaded++;
      for (uint32_t n = 0; n < ((const aot_snapshot_t *)(const void *)copy)->nodes.count; n++)
        rf_refuse((const aot_snapshot_t *)(const void *)copy, n, &no_kernels, &error);
      try_run(p, (const aot_snapshot_t *)(const void *)copy);
      rf_destroy(p);
    } else {
      assert_true(error.text[0] != 0);
    }
    free(copy);
  }
  assert_true(loaded > 0 && loaded < ROUNDS);
  hs_destroy(h);
}

static void test_cut_blocks_are_refused(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *good;
  (void)state;
  build(h);
  good = hs_finish(h);
  for (uint64_t n = 0; n < good->nbytes; n++) {
    void *copy = malloc(n ? n : 1);
    rf_program_t *p;
    rf_error_t error;
    assert_non_null(copy);
    memcpy(copy, good, n);
    assert_int_not_equal(rf_load(copy, n, &no_kernels, &p, &error), AOT_OK);
    free(copy);
  }
  hs_destroy(h);
}

/* Misaligned bytes are copied; the good block loads from any address. */
static void test_loads_from_any_address(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *good;
  (void)state;
  build(h);
  good = hs_finish(h);
  for (int offset = 0; offset < 8; offset++) {
    unsigned char *copy = malloc(good->nbytes + 8);
    rf_program_t *p;
    rf_error_t error;
    assert_non_null(copy);
    memcpy(copy + offset, good, good->nbytes);
    assert_int_equal(rf_load(copy + offset, good->nbytes, &no_kernels, &p, &error), AOT_OK);
    rf_destroy(p);
    free(copy);
  }
  hs_destroy(h);
}

/* A program that calls itself runs into the depth limit, not into the end of memory. */
static void test_recursive_region_is_an_error(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s;
  rf_program_t *p;
  rf_error_t error;
  float x = 1, y;
  aot_tensor_t in = {.data = &x, .nbytes = 4, .dtype = AOT_F32}, out = {.data = &y, .nbytes = 4, .dtype = AOT_F32};
  uint32_t v;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  v = hs_input(h, AOT_F32, 0, NULL);
  hs_node(h, "higher_order.invoke_subgraph");
  hs_arg_graph(h, 1);
  hs_arg_none(h);
  hs_arg_value(h, v);
  hs_output(h, hs_result(h, AOT_F32, 0, NULL));
  s = hs_finish(h);
  assert_int_equal(rf_load(s, s->nbytes, &no_kernels, &p, &error), AOT_OK);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_EXHAUSTED);
  rf_destroy(p);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_damaged_blocks_never_crash),
      cmocka_unit_test(test_cut_blocks_are_refused),
      cmocka_unit_test(test_loads_from_any_address),
      cmocka_unit_test(test_recursive_region_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
