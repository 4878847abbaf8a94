/* Pipeline files as trees: positions, the core schema, what is refused; and thousands of mutated files, which must end
 * in a pipeline or in complaints, and never in anything else. */
#include <math.h>
#include "kit/base/byte_size.h"
#include <config/options.h>
#include <config/pipeline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
  kit_arena_t *arena;
  aoth_sink_t *sink;
} fixture_t;

static int setup(void **state) {
  fixture_t *w = calloc(1, sizeof *w);
  w->arena = kit_arena_create();
  w->sink = aoth_sink_create(NULL);
  *state = w;
  return 0;
}

static int teardown(void **state) {
  fixture_t *w = *state;
  kit_arena_destroy(w->arena);
  aoth_sink_destroy(w->sink);
  free(w);
  return 0;
}

static aoth_yaml_t *parse(fixture_t *w, const char *text) {
  aoth_yaml_t *tree = NULL;
  aoth_yaml_parse(w->arena, "t.yaml", ".", text, strlen(text), NULL, 0, w->sink, &tree);
  return tree;
}

static void assert_at(const aoth_yaml_t *node, uint32_t line, uint32_t column, uint32_t end) {
  assert_non_null(node);
  assert_int_equal(node->line, line);
  assert_int_equal(node->column, column);
  assert_int_equal(node->end_column, end);
}

static void positions_are_bytes_from_one(void **state) {
  const aoth_yaml_t *t = parse(*state, "a: 1\nbee:\n  - {x: \"\xC3\xB6\", y: zed}\n");
  assert_at(t, 1, 1, 2);
  assert_at(aoth_yaml_get(t, "a"), 1, 4, 5);
  const aoth_yaml_t *item = aoth_yaml_get(t, "bee")->items[0];
  assert_at(item, 3, 5, 6);
  assert_at(aoth_yaml_get(item, "y"), 3, 18, 21); /* two bytes of o-umlaut count */
}

static void line_breaks_of_all_kinds_count(void **state) {
  const aoth_yaml_t *t = parse(*state, "a: 1\r\nb: 2\rc: 3\n");
  assert_at(aoth_yaml_get(t, "c"), 3, 4, 5);
  const aoth_where_t where = aoth_yaml_where(((fixture_t *)*state)->arena, aoth_yaml_get(t, "b"));
  assert_string_equal(where.source, "b: 2");
}

static void a_byte_order_mark_is_no_column(void **state) {
  assert_at(aoth_yaml_get(parse(*state, "\xEF\xBB\xBF"
                                        "a: x"),
                          "a"),
            1, 4, 5);
}

static const char *kind_of(fixture_t *w, const char *text) {
  const aoth_yaml_t *t = parse(w, text);
  return t ? aoth_yaml_kind(t) : "none";
}

static void scalars_follow_the_core_schema(void **state) {
  static const struct {
    const char *text, *kind;
  } rows[] = {{"~", "nothing"},
              {"null", "nothing"},
              {"NULL", "nothing"},
              {"nUll", "a string"},
              {"true", "a boolean"},
              {"False", "a boolean"},
              {"yes", "a string"},
              {"on", "a string"},
              {"0", "an integer"},
              {"-17", "an integer"},
              {"+3", "an integer"},
              {"0x1F", "an integer"},
              {"0o17", "a string"},
              {"1_000", "a string"},
              {"1.", "a number"},
              {".5", "a number"},
              {"1e3", "a number"},
              {"-1.5E-3", "a number"},
              {".inf", "a number"},
              {"-.Inf", "a number"},
              {".nan", "a number"},
              {".", "a string"},
              {"1e", "a string"},
              {"\"1\"", "a string"},
              {"'true'", "a string"},
              {"12:30", "a string"},
              {"2001-01-01", "a string"},
              {"010", "an integer with a leading zero"},
              {"9223372036854775807", "an integer"},
              {"9223372036854775808", "an integer of more than 64 bits"},
              {"1e999", "a number out of range"},
              {"[1]", "a list"},
              {"{a: 1}", "a map"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(kind_of(*state, rows[i].text), rows[i].kind) != 0)
      fail_msg("%s is %s, not %s", rows[i].text, kind_of(*state, rows[i].text), rows[i].kind);
}

static void values_come_out_exactly(void **state) {
  int64_t i;
  double d;
  int b;
  assert_true(aoth_yaml_i64(parse(*state, "-9223372036854775808"), &i) && i == INT64_MIN);
  assert_true(aoth_yaml_i64(parse(*state, "0xff"), &i) && i == 255);
  assert_true(aoth_yaml_f64(parse(*state, "3e-4"), &d) && d == 3e-4);
  assert_true(aoth_yaml_f64(parse(*state, "7"), &d) && d == 7);
  assert_true(aoth_yaml_f64(parse(*state, "-.inf"), &d) && isinf(d) && d < 0);
  assert_true(aoth_yaml_bool(parse(*state, "TRUE"), &b) && b == 1);
}

/* A printed text reads back as the same text, whatever it looks like. */
static void printed_texts_read_back(void **state) {
  fixture_t *w = *state;
  static const char *const texts[] = {"",      "a",          "true",     "No",   "1",   "0x1",          ".5",   "~",
                                      "null",  "a b",        "- a",      "a: b", "# x", "\"q\"",        "it's", "\\",
                                      "tab\t", "two\nlines", "\xC3\xA4", "-1",   "a#b", "{x}",          "[",    "&a",
                                      "*a",    "!t",         "%",        "@",    "`",   "path/to.x-1_2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    kit_text_t out = {0};
    aoth_yaml_print_text(&out, (aot_str_t){texts[i], strlen(texts[i])});
    const aoth_yaml_t *t = parse(w, out.data);
    assert_non_null(t);
    assert_string_equal(t->text.data, texts[i]);
    assert_string_equal(aoth_yaml_kind(t), "a string");
    kit_text_deinit(&out);
  }
}

static void aliases_are_copies_and_bounded(void **state) {
  fixture_t *w = *state;
  const aoth_yaml_t *t = parse(w, "a: &x {k: 1}\nb: *x\n");
  assert_ptr_not_equal(aoth_yaml_get(t, "a"), aoth_yaml_get(t, "b"));
  assert_string_equal(aoth_yaml_get(aoth_yaml_get(t, "b"), "k")->text.data, "1");
  kit_text_t bomb = {0}; /* nine levels of nine aliases each: 9^9 values if it were let */
  kit_text_z(&bomb, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
  for (int i = 1; i < 9; i++) {
    kit_text_f(&bomb, "a%d: &a%d [", i, i);
    for (int k = 0; k < 9; k++) kit_text_f(&bomb, "%s*a%d", k ? ", " : "", i - 1);
    kit_text_z(&bomb, "]\n");
  }
  assert_null(parse(w, bomb.data));
  assert_non_null(strstr(aoth_sink_text(w->sink), "file too large after alias expansion"));
  assert_true(kit_arena_nbytes(w->arena) < 64u << 20);
  kit_text_deinit(&bomb);
}

static void depth_is_bounded(void **state) {
  fixture_t *w = *state;
  char deep[201];
  memset(deep, '[', 200);
  deep[200] = 0;
  assert_null(parse(w, deep));
  assert_non_null(strstr(aoth_sink_text(w->sink), "nested too deeply"));
}

static void sizes_in_bytes_have_suffixes(void **state) {
  int64_t n;
  (void)state;
  assert_true(kit_byte_size("4096", &n) && n == 4096);
  assert_true(kit_byte_size("64MiB", &n) && n == 64 << 20);
  assert_true(kit_byte_size("64 MB", &n) && n == 64000000);
  assert_true(kit_byte_size("1.5GiB", &n) && n == (INT64_C(3) << 29));
  assert_true(kit_byte_size("2K", &n) && n == 2048);
  static const char *const bad[] = {"", "MiB", "1.2.3K", "64mib", "-1", "1e3", "0.3B", "99999999TiB", "1 000", ".5K"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (kit_byte_size(bad[i], &n)) fail_msg("%s was taken as %lld bytes", bad[i], (long long)n);
}

/* ---- fuzz ---- */

static uint64_t random_state;
static uint32_t draw(uint32_t n) { /* xorshift64*, Vigna 2016 */
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (uint32_t)((random_state * UINT64_C(2685821657736338717)) >> 33) % n;
}

static const char seed_text[] = "# in: a model; out: a trained one\n"
                                "aot: 1\n"
                                "vars: {budget: 0.5, name: &n gpt}\n"
                                "model: {import: pt2, path: \"${name}.pt2\"}\n"
                                "opsets: [aten]\n"
                                "stages:\n"
                                "  - use: functionalize\n"
                                "  - use: partition-mincut\n"
                                "    as: cut\n"
                                "    with: {memory-budget: \"${budget}\", label: 'a b', list: [1, 2.5, true, ~]}\n"
                                "  - use: backend-cpu\n"
                                "run:\n"
                                "  inputs: random\n"
                                "  outputs: out.safetensors\n"
                                "  train:\n"
                                "    steps: 200\n"
                                "    optimizer-with: {betas: \"${b:-0.9}\", again: *n}\n"
                                "    lr: 3e-4\n"
                                "    schedule: cosine\n"
                                "    data: {tokens: text.bin, dtype: u8, batch: 16, block: 64, inputs: [0, 1]}\n"
                                "    checkpoint: {path: c.safetensors, every: 100}\n";

static const char *const pieces[] = {"${",
                                     "}",
                                     "$$",
                                     "- ",
                                     ": ",
                                     "{",
                                     "[",
                                     "]",
                                     "&a ",
                                     "*a",
                                     "!x ",
                                     "\n",
                                     "\n  ",
                                     "\"",
                                     "'",
                                     "#",
                                     "|\n",
                                     ">-\n",
                                     "---\n",
                                     "<<: *n",
                                     "include: fuzz.yaml\n",
                                     "aot: 1\n",
                                     "~",
                                     "\x01",
                                     "\xff",
                                     "\xE2\x80\xA8",
                                     "999999999999999999999",
                                     "? "};

static size_t mutate(char *text, size_t size, size_t capacity) {
  for (uint32_t n = 1 + draw(4); n > 0; n--) {
    const size_t at = size ? draw((uint32_t)size) : 0, left = size - at;
    const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
    size_t k;
    switch (draw(5)) {
      case 0:
        if (size) text[at] = (char)draw(256);
        break;
      case 1:
        k = left ? draw((uint32_t)(left < 40 ? left : 40)) : 0;
        memmove(text + at, text + at + k, left - k);
        size -= k;
        break;
      case 2: size = at; break;
      default:
        k = strlen(piece);
        if (size + k > capacity) break;
        memmove(text + at + k, text + at, left);
        memcpy(text + at, piece, k);
        size += k;
    }
  }
  return size;
}

static void write_all(const char *path, const char *text, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, size, f), size);
  fclose(f);
}

/* Loaded without a complaint: then its print loads as well, and prints the same. */
static void assert_prints_back(const aoth_pipeline_t *p) {
  kit_text_t first = {0}, second = {0};
  aoth_sink_t *sink = aoth_sink_create(NULL);
  aoth_pipeline_t *again = NULL;
  aoth_pipeline_print(p, &first);
  write_all("printed.yaml", first.data, first.size);
  if (aoth_pipeline_load("printed.yaml", NULL, sink, &again) != AOT_OK)
    fail_msg("%s\n%s", aoth_sink_text(sink), first.data);
  aoth_pipeline_print(again, &second);
  assert_string_equal(first.data, second.data);
  aoth_pipeline_destroy(again);
  aoth_sink_destroy(sink);
  kit_text_deinit(&first);
  kit_text_deinit(&second);
}

static void mutated_files_end_in_a_pipeline_or_in_complaints(void **state) {
  char folder[] = TEST_PLUGINS "/yaml-XXXXXX", text[8192];
  uint32_t n_good = 0, n_located = 0, n_bad = 0;
  (void)state;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  random_state = 20260921;
  for (int round = 0; round < 4000; round++) {
    memcpy(text, seed_text, sizeof seed_text);
    const size_t size = round ? mutate(text, sizeof seed_text - 1, sizeof text) : sizeof seed_text - 1;
    aoth_sink_t *sink = aoth_sink_create(NULL);
    aoth_pipeline_t *p = NULL;
    write_all("fuzz.yaml", text, size);
    const aot_status_t status = aoth_pipeline_load("fuzz.yaml", NULL, sink, &p);
    assert_true((status == AOT_OK) == (aoth_sink_count(sink, AOT_SEVERITY_ERROR) == 0));
    if (status == AOT_OK) {
      n_good++;
      assert_prints_back(p);
    } else {
      n_bad++;
      n_located += strstr(aoth_sink_text(sink), "fuzz.yaml:") != NULL;
    }
    aoth_pipeline_destroy(p);
    aoth_sink_destroy(sink);
  }
  print_message("%u pipelines, %u refused, %u of them with a line\n", n_good, n_bad, n_located);
  assert_true(n_good > 100 && n_bad > 1000);
  assert_int_equal(n_located, n_bad);
  unlink("fuzz.yaml");
  unlink("printed.yaml");
  assert_int_equal(chdir("/"), 0);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(positions_are_bytes_from_one, setup, teardown),
      cmocka_unit_test_setup_teardown(line_breaks_of_all_kinds_count, setup, teardown),
      cmocka_unit_test_setup_teardown(a_byte_order_mark_is_no_column, setup, teardown),
      cmocka_unit_test_setup_teardown(scalars_follow_the_core_schema, setup, teardown),
      cmocka_unit_test_setup_teardown(values_come_out_exactly, setup, teardown),
      cmocka_unit_test_setup_teardown(printed_texts_read_back, setup, teardown),
      cmocka_unit_test_setup_teardown(aliases_are_copies_and_bounded, setup, teardown),
      cmocka_unit_test_setup_teardown(depth_is_bounded, setup, teardown),
      cmocka_unit_test(sizes_in_bytes_have_suffixes),
      cmocka_unit_test(mutated_files_end_in_a_pipeline_or_in_complaints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
