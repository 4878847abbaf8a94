/* Whole archives through the real host and operator set: every fixture imports and verifies, the flat layout of older
 * PyTorch gives the same program, and damaged archives end in a diagnostic. */
#include "test_env.h"
#include <aot/import.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <aot/plugin.h>
#include <bridge.h>
#include <dlfcn.h>
#include <ir/program.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct fixture { /* what outlives a program */
  kit_arena_t *session;
  aoth_ops_t *ops;
  const aot_import_t *importer;
} fixture_t;

typedef struct run {
  aot_ctx_t ctx;
  aot_prog_t *prog;
  aot_status_t status;
} run_t;

static fixture_t world;

static const void *create(const char *file) {
  static const aot_opt_value_t no_text;
  aot_opts_t opts = {sizeof opts, 1, &no_text};
  aot_ctx_t ctx;
  const aot_table_t *table = NULL;
  aot_str_t why = {NULL, 0};
  const aot_plugin_t *(*entry)(uint32_t, uint32_t, aot_str_t *);
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  *(void **)&entry = dlsym(library, "aot_plugin_entry");
  const aot_plugin_t *plugin = entry(AOT_ABI_EPOCH, AOT_ABI_MINOR, &why);
  assert_non_null(plugin);
  memset(&ctx, 0, sizeof ctx);
  ctx.session = world.session;
  const aot_host_t *host = aoth_bridge_host(world.session, AOT_ABI_MINOR);
  assert_int_equal(plugin->units[0]->create(plugin->units[0], &ctx, host, &opts, &table), AOT_OK);
  return (const void *)table;
}

static int start(void **state) {
  aoth_sink_t *sink = aoth_sink_create(NULL);
  (void)state;
  world.session = kit_arena_create();
  world.ops = aoth_ops_create();
  assert_int_equal(aoth_ops_add(world.ops, create(ATEN_PLUGIN), "aten", sink), AOT_OK);
  world.importer = create(IMPORT_PLUGIN);
  aoth_sink_destroy(sink);
  return 0;
}

static void run_begin(run_t *r, const uint8_t *bytes, uint64_t n) {
  aot_file_t file = {sizeof file, 0, AOT_STR_INIT("model.pt2"), bytes, n};
  memset(r, 0, sizeof *r);
  r->ctx.session = world.session;
  r->ctx.graph = kit_arena_create();
  r->ctx.scratch = kit_arena_create();
  r->ctx.sink = aoth_sink_create(NULL);
  r->ctx.stage = "import";
  r->prog = aoth_prog_create(world.ops, &r->ctx);
  r->ctx.prog = r->prog;
  aoth_journal_begin(r->prog);
  r->status = world.importer->read(world.importer, &r->ctx, &file, r->prog);
  if (r->status == AOT_OK) aoth_journal_commit(r->prog);
  else aoth_journal_undo(r->prog);
}

static void run_end(run_t *r) {
  aoth_prog_destroy(r->prog);
  aoth_sink_destroy(r->ctx.sink);
  kit_arena_destroy(r->ctx.graph);
  kit_arena_destroy(r->ctx.scratch);
}

static void every_fixture_imports_and_verifies(void **state) {
  /* clang-format off */
  static const char *const paths[] = {
      "models/mlp/train", "models/mlp/core", "models/gpt_tiny/train", "models/gpt_tiny/core",
      "models/resnet_tiny/train",
      "models/resnet_tiny/core", "models/vit_tiny/train", "models/vit_tiny/core", "models/bert_tiny/train",
      "models/bert_tiny/core", "scenarios/empty_mut/train", "scenarios/inner_batch_norm/train",
      "scenarios/inner_masked_assign/train", "scenarios/mut_metadata_t/train", "scenarios/mut_no_grad/train",
      "scenarios/out_same_twice/train", "scenarios/out_input_itself/train", "scenarios/scalar_mut/train"};
  /* clang-format on */
  (void)state;
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    char path[400];
    test_env_t t;
    run_t r;
    uint64_t n;
    test_env_init(&t);
    snprintf(path, sizeof path, FIXTURES "/%s.pt2", paths[i]);
    uint8_t *bytes = test_read(&t, path, &n);
    run_begin(&r, bytes, n);
    if (r.status != AOT_OK || aoth_verify(r.prog, AOTH_PROP_IMPORTED) != AOT_OK)
      fail_msg("%s: %s", paths[i], aoth_sink_text(r.ctx.sink));
    run_end(&r);
    test_env_deinit(&t);
  }
}

static void the_flat_layout_gives_the_same_program(void **state) {
  aot_graph_api_t g;
  kit_text_t a = {0}, b = {0};
  test_env_t t;
  run_t x, y;
  uint64_t n, m;
  (void)state;
  test_env_init(&t);
  uint8_t *now = test_read(&t, FIXTURES "/models/mlp/train.pt2", &n),
          *flat = test_read(&t, TEST_DATA "/data/flat_mlp.pt2", &m);
  run_begin(&x, now, n);
  run_begin(&y, flat, m);
  if (x.status != AOT_OK || y.status != AOT_OK) fail_msg("%s", aoth_sink_text(y.ctx.sink));
  aoth_print(x.prog, &a);
  aoth_print(y.prog, &b);
  assert_true(a.size > 500);
  assert_string_equal(a.data, b.data);
  aoth_fill_graph_api(&g);
  assert_int_equal(g.n_leaves(x.prog), 1 + 8); /* 6 parameters, 2 inputs */
  for (uint32_t i = 1; i <= 8; i++) {          /* the text leaves large data out: compare the bytes */
    aot_leaf_info_t p = {.struct_size = sizeof p}, q = {.struct_size = sizeof q};
    aot_leaf_t leaf = {i};
    g.leaf_info(x.prog, leaf, &p);
    g.leaf_info(y.prog, leaf, &q);
    assert_int_equal(p.nbytes, q.nbytes);
    if (p.nbytes) assert_memory_equal(p.data, q.data, p.nbytes);
  }
  kit_text_deinit(&a);
  kit_text_deinit(&b);
  run_end(&x);
  run_end(&y);
  test_env_deinit(&t);
}

static uint32_t next_random(uint32_t *s) { return *s = *s * 1664525u + 1013904223u; }

/* Change bytes of a JSON member and set its checksum right, so that the damage reaches the decoder and the builder. */
static void damage_json(uint8_t *zip, uint64_t n, uint64_t at, uint64_t size, const char *name, uint32_t *seed) {
  static const char likely[] = "0123456789-\"{}[],:eas";
  uint32_t crc, k = 1 + next_random(seed) / 16 % 4;
  while (k--) zip[at + next_random(seed) / 16 % size] = (uint8_t)likely[next_random(seed) / 16 % (sizeof likely - 1)];
  crc = (uint32_t)crc32(crc32(0, NULL, 0), zip + at, (uInt)size);
  for (uint64_t i = 0; i + 46 + strlen(name) < n; i++)
    if (memcmp(zip + i, "PK\1\2", 4) == 0 && memcmp(zip + i + 46, name, strlen(name)) == 0)
      for (int b = 0; b < 4; b++) zip[i + 16 + (uint64_t)b] = (uint8_t)(crc >> (8 * b));
}

static void damaged_archives_end_in_a_diagnostic(void **state) {
  static const char name[] = "train/models/model.json";
  test_env_t t;
  uint64_t n, at = 0, size = 0;
  uint32_t seed = 20240611, imported = 0;
  (void)state;
  test_env_init(&t);
  uint8_t *good = test_read(&t, FIXTURES "/models/mlp/train.pt2", &n), *copy = malloc(n);
  for (uint64_t i = 0; i + 46 + sizeof name < n; i++)
    if (memcmp(good + i, "PK\1\2", 4) == 0 && memcmp(good + i + 46, name, sizeof name - 1) == 0) {
      uint32_t local;
      memcpy(&local, good + i + 42, 4);
      memcpy(&size, good + i + 24, 4);
      at = local + 30u + good[local + 26] + 256u * good[local + 27] + good[local + 28] + 256u * good[local + 29];
    }
  assert_true(size > 1000);
  for (uint32_t i = 0; i < 3000; i++) {
    uint64_t length = n;
    run_t r;
    memcpy(copy, good, n);
    if (i % 3) damage_json(copy, n, at, size, name, &seed);
    else copy[next_random(&seed) / 16 % n] = (uint8_t)(next_random(&seed) >> 24);
    if (i % 11 == 0) length = next_random(&seed) / 16 % n;
    run_begin(&r, copy, length);
    if (r.status == AOT_OK) imported++;
    else if (aoth_sink_count(r.ctx.sink, AOT_SEVERITY_ERROR) == 0)
      fail_msg("round %u: status %d without a word", i, r.status);
    run_end(&r);
  }
  assert_true(imported > 0 && imported < 3000); /* some damage is harmless, most is not */
  free(copy);
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_fixture_imports_and_verifies),
                                     cmocka_unit_test(the_flat_layout_gives_the_same_program),
                                     cmocka_unit_test(damaged_archives_end_in_a_diagnostic)};
  return cmocka_run_group_tests(tests, start, NULL);
}
