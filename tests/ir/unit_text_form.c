/* The text form: what is printed parses back to the same program, errors are where they belong, and no text can
 * hurt. */
#include "tiny_opset.h"
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* One of everything, in the printer's own words: printing it back must give these bytes. */
static const char everything[] =
    "aot 1\n"
    "properties imported rng-explicit \"vendor.tiled\" \"other-vendor.a.b_2\"\n"
    "\n"
    "symbol s0 in [1, 64] hint 8\n"
    "symbol batch in [0, inf] hint 3\n"
    "symbol $s2 \"f32\" in [-5, 5] hint 0\n"
    "guard min(s0 <= 60, batch < 100) \"L['x'].size()[0] <= 60 and \\\"b\\\" < 100\"\n"
    "guard (batch == 5) * -1 + 1\n"
    "let $e0 = max(s0 * batch * batch * batch * batch * batch * batch * batch, s0 * s0 * batch * batch * batch * "
    "batch * batch)\n"
    "\n"
    "encoding 0 \"vendor.tiled\" \"2x\\\"2\\\"\"\n"
    "encoding 1 \"vendor.int4\"\n"
    "\n"
    "leaf 0 parameter \"wte.weight\" \"head.weight\" : f32[256, 64] grad\n"
    "leaf 1 buffer \"running \\\"mean\\\"\" : f64[64] {persistent}\n"
    "leaf 2 constant : i64[2] data \"01000000000000000200000000000000\"\n"
    "leaf 3 user_input 0 \"x\" : f32[s0, 4] strides [1, s0] offset 2 cuda:1\n"
    "leaf 4 user_input 1 : bool[] meta {flags(16)}\n"
    "leaf 5 constant : i8[4] cuda:0 memory 2 encoding 0 flags(64)\n"
    "leaf 6 buffer \"q\" : i8[4] memory 1 encoding 1\n"
    "\n"
    "rule copy_back 1\n"
    "rule restride 3 [4, s0] strides [1, 4] offset 1\n"
    "rule same_input 0 3\n"
    "rule view_input 1 3 [s0]\n"
    "rule same_output 2 0\n"
    "rule view_output 3 0 [2, 2]\n"
    "rule view_base 4 0 []\n"
    "\n"
    "graph @forward forward {\n"
    "  in %w = parameter 0 : f32[256, 64] grad\n"
    "  in %1 = buffer 1 : f64[64]\n"
    "  in %2 \"not a word\" = user_input 3 : f32[s0, 4] strides [1, s0] offset 2 cuda:1\n"
    "  in %twice = seed 0 : i64[]\n"
    "  in %4 = token 0 : token\n"
    "  in %n = hyper 0 : symint(s0 * 2 + 1) flags(64)\n"
    "  %6 \"dup\" : f32[] = tiny.every %w, none, [%w, %1], 1.0, 9223372036854775807, [s0, -1, s0 // 4, mod(batch, 3)], "
    "inf, "
    "none, true, [true, false], \"a\\n\\\"b\\\\\\x01\\xc3\303\244\", f32, strided, cuda:0, channels_last, none, "
    "op(tiny.cat.default), @body\n"
    "  %7 \"dup\" : none = tiny.every %w, %1, [], -1, 0, [], -0.0, [1.0, 1e-300, nan], false, [], \"\", dtype(99), "
    "layout(3), "
    "cpu, memory_format(77), none, op(tiny.add_.Tensor), @1 {backward must_save flags(512)} region 3 !1\n"
    "  %8 : f32[256, 64], %9 : i64[256, 64] = tiny.max.dim %w, -1 !0\n"
    "  tiny.print %w, \"hello\"\n"
    "  %10 : f32[256, 64] = tiny.add.Tensor %w, 2.5\n"
    "  %11 : f32[256, 64] = tiny.add.Tensor %w, 2, alpha=0.1\n"
    "  %12 : f32[2, 3] = tiny.rand.default [2, 3], device=cpu:0\n"
    "  %13 : f32[256, 64] = tiny.index.Tensor %w, [none, %1]\n"
    "  %14 : f32[256, 64], %15 : symbool(s0 == 4), %16 : symfloat = tiny.call @body, %w, 1, int[], [], bool[], "
    "float[], s0 // 2\n"
    "  %17 : f32[$e0] = tiny.rand.default [$e0]\n"
    "  %18 : f32[$s2 + 5] = tiny.rand.default [max(s0, 3) + min(s0, 3) * -1, where(batch < 3, batch, 3), 2 ** batch, "
    "s0 * "
    "-1 + 10]\n"
    "  out user_output 0 \"logits\" = %10\n"
    "  out loss 1 = %11\n"
    "  out user_output 2 = none\n"
    "  out update 1 = %1\n"
    "}\n"
    "\n"
    "graph @1 \"odd name\" region {\n"
    "}\n"
    "\n"
    "graph @body region {\n"
    "  in %0 = region 0 : f32[4]\n"
    "  out region 0 = %0\n"
    "}\n"
    "\n"
    "origin 0 \"gpt.py\":41 module \"transformer.h.0\" node \"add_3\"\n"
    "origin 1 node \"fused\" from 0\n";

/* Origins are numbered in order of appearance: !1 appears first above, and its parent comes before it. */
static void round_trip_of_everything(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  aot_status_t status = world_parse(&w, everything);
  if (status != AOT_OK) print_message("%s", aoth_sink_text(w.sink));
  assert_int_equal(status, AOT_OK);
  char *text = world_print(&w);
  assert_string_equal(text, everything);
  world_reset(&w);
  assert_int_equal(world_parse(&w, text), AOT_OK);
  char *again = world_print(&w);
  assert_string_equal(again, text);
  free(text);
  free(again);
  world_deinit(&w);
}

typedef struct short_case {
  const char *written, *full;
} short_case_t;

/* What may be left out: types that the operator gives, arguments at their defaults; lines may continue inside
 * brackets. */
static void input_may_be_short(void **state) {
  static const short_case_t cases[] = {
      {"%y = tiny.add.Tensor %x, %x", "%y : f32[4] = tiny.add.Tensor %x, %x"},
      /* the dot reports an operator from a symbol */
      {"%y : f32[4] = tiny.add.Tensor -2, %x", "%y : f32[4] = tiny.add.Tensor -2, %x"},
      {"%y : f32[4] = tiny.add.Tensor -inf, %x", "%y : f32[4] = tiny.add.Tensor -inf, %x"},
      {"%y = tiny.add.Tensor %x, other=%x", "%y : f32[4] = tiny.add.Tensor %x, %x"},
      {"%y = tiny.add.Tensor alpha=1.0, other=%x, self=%x", "%y : f32[4] = tiny.add.Tensor %x, %x, alpha=1.0"},
      {"%y = tiny.conv2d.default %x, %x", "%y : f32[4] = tiny.conv2d.default %x, %x, none, [1, 1], [0, 0]"},
      {"%y = tiny.conv2d.default %x, %x, padding=3", "%y : f32[4] = tiny.conv2d.default %x, %x, none, [1, 1], [3, 3]"},
      {"%y = tiny.cat.default [%x,\n ; a comment\n %x,]", "%y : f32[8] = tiny.cat.default [%x, %x], 0"},
      {"%y, %i = tiny.max.dim %x", "%y : f32[4], %i : f32[4] = tiny.max.dim %x, -1"},
      {"%y = tiny.rand.default [2 * 3, 0x]", NULL},
      {"%y = tiny.rand.default [2 * 3 + (1 - -1)]", "%y : f32[8] = tiny.rand.default [8]"},
      {"%y = tiny.rand.default [s + s, 1 + s + 1]", "%y : f32[s * 2, s + 2] = tiny.rand.default [s * 2, s + 2]"},
      {"%a, %b = tiny.split.default %x, 2\r", "%a : f32[4], %b : f32[4] = tiny.split.default %x, 2"}};
  fixture_t w;
  (void)state;
  world_init(&w);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "aot 1 ; head\nsymbol s in [1, inf] hint 4\ngraph @f forward {\n  in %%x = seed 0 : f32[4]\n%s\n}",
             cases[i].written);
    world_reset(&w);
    aot_status_t status = world_parse(&w, text);
    if (!cases[i].full) {
      assert_int_equal(status, AOT_E_INVALID);
      continue;
    }
    if (status != AOT_OK) print_message("%s\n%s", text, aoth_sink_text(w.sink));
    assert_int_equal(status, AOT_OK);
    char *printed = world_print(&w);
    if (!strstr(printed, cases[i].full)) print_message("wanted %s\nin %s", cases[i].full, printed);
    assert_non_null(strstr(printed, cases[i].full));
    free(printed);
  }
  world_deinit(&w);
}

typedef struct error_case {
  const char *line;    /* put into a graph, on line 5 */
  const char *message; /* the start of what is reported */
} error_case_t;

static void errors_stand_where_they_belong(void **state) {
  static const error_case_t cases[] = {
      {"%y = tiny.ad.Tensor %x, %x", "test.ir:5:6: error: there is no operator tiny.ad.Tensor"},
      {"%y = tiny.add.Tensor %x, %z", "test.ir:5:26: error: there is no value %z before this line"},
      {"%y = tiny.add.Tensor %x", "test.ir:5:6: error: argument 1 (other) of tiny.add.Tensor is missing"},
      {"%y = tiny.add.Tensor %x, %x, 1, 2", "test.ir:5:33: error: tiny.add.Tensor takes 3 arguments, 4 were given"},
      {"%y = tiny.add.Tensor %x, \"s\"",
       "test.ir:5:26: error: argument 1 (other) of tiny.add.Tensor is a string; it wants Tensor"},
      {"%y = tiny.add.Tensor %x, none",
       "test.ir:5:26: error: argument 1 (other) of tiny.add.Tensor is none; it wants Tensor"},
      {"%y = tiny.add.Tensor %x, %x, beta=1", "test.ir:5:30: error: tiny.add.Tensor has no argument beta"},
      {"%y = tiny.add.Tensor self=%x, %x",
       "test.ir:5:31: error: an argument without a name cannot follow one with a name"},
      {"%x = tiny.add.Tensor %x, %x", "test.ir:5:1: error: value %x is defined twice"},
      {"%y, %z = tiny.add.Tensor %x, %x", "test.ir:5:10: error: tiny.add.Tensor has 1 results here, 2 are named"},
      {"%y : f32[2], %z : f32[2] = tiny.add.Tensor %x, %x",
       "test.ir:5:28: error: tiny.add.Tensor has 1 results, 2 types"},
      {"%y, %z : f32[2] = tiny.max.dim %x", "test.ir:5:1: error: either every result has a type or none"},
      {"%y : f33[2] = tiny.add.Tensor %x, %x", "test.ir:5:6: error: expected a type, found f33"},
      {"%y : f32[-2] = tiny.add.Tensor %x, %x", "test.ir:5:"},
      {"%y : f32[q] = tiny.add.Tensor %x, %x", "test.ir:5:10: error: there is no symbol q"},
      {"%y : f32[1, 2] strides [1] = tiny.add.Tensor %x, %x", "test.ir:5:24: error: 1 strides for 2 dimensions"},
      {"%y : f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] = tiny.add.Tensor %x, %x", "test.ir:5:9: error: 17 dimensions"},
      {"%y = tiny.rand.default [1 // 0]", "test.ir:5:27: error: division by zero"},
      {"%y = tiny.rand.default [9223372036854775807 + 1]", "test.ir:5:45: error: the result"},
      {"%y = tiny.rand.default [9223372036854775808]", "test.ir:5:25: error: the number does not fit into 64 bits"},
      {"%y = tiny.rand.default [4611686018427387904]", "test.ir:5:25: error: numbers from 2^62"},
      {"%y = tiny.rand.default [(1 + 2]", "test.ir:5:31: error: expected `)`, found ]"},
      {"%y = tiny.rand.default [max(1)]", "test.ir:5:25: error: max takes 2 arguments"},
      {"%y = tiny.rand.default [1, true]", "test.ir:5:28: error: a list holds things of one kind"},
      {"%y = tiny.rand.default [1", "test.ir:6:1: error: expected `]`, found }"},
      {"tiny.print %x, \"abc", "test.ir:5:16: error: a string must end on its line"},
      {"tiny.print %x, \"a\\q\"", "test.ir:5:16: error: a backslash"},
      {"%y = tiny.add.Tensor %x, %x {backwards}", "test.ir:5:30: error: expected a node flag, found backwards"},
      {"%y = tiny.add.Tensor %x, %x !7", "test.ir:5:29: error: there is no origin 7"},
      {"%y = tiny.add.Tensor %x, %x %x", "test.ir:5:29: error: expected the end of the line"},
      {"%y = tiny.call @nowhere", "test.ir:5:16: error: there is no graph @nowhere"},
      {"%y = tiny.call @f", "test.ir:5:6: error: the results of a region must be declared"},
      {"in %y = parmeter 0 : f32[2]", "test.ir:5:9: error: expected a role, found parmeter"},
      {"in %y = parameter 0 : f32[2]", "test.ir:5:9: error: port parameter 0 names leaf 0; there are 0"},
      {"in %y = loss 0 : f32[2]", "test.ir:5:9: error: role loss is not one of inputs"},
      {"out loss 0 = %q", "test.ir:5:14: error: there is no value %q"},
      {"%y # 3", "test.ir:5:4: error: a character that means nothing here"},
      {"%y = tiny.rand.default [12ab]", "test.ir:5:25: error: not a number"}};
  fixture_t w;
  (void)state;
  world_init(&w);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, "aot 1\n\ngraph @f forward {\n  in %%x = seed 0 : f32[4]\n%s\n}\n", cases[i].line);
    world_reset(&w);
    aot_status_t status = world_parse(&w, text);
    const char *said = aoth_sink_text(w.sink);
    if (status == AOT_OK || strncmp(said, cases[i].message, strlen(cases[i].message)) != 0)
      print_message("for    %s\nwanted %s\ngot    %s\n", cases[i].line, cases[i].message, said);
    assert_int_not_equal(status, AOT_OK);
    assert_memory_equal(said, cases[i].message, strlen(cases[i].message));
    assert_int_equal(w.ctx.n_diags, 1);
  }
  world_deinit(&w);
}

static void errors_outside_graphs(void **state) {
  static const error_case_t cases[] = {
      {"", "test.ir:1:1: error: expected `aot 1`"},
      {"aot 2\n", "test.ir:1:5: error: text version 2 cannot be read"},
      {"aot 1\nproperties importd\n", "test.ir:2:12: error: there is no property importd"},
      {"aot 1\nproperties \"tiled\"\n", "test.ir:2:12: error: \"tiled\" is no name for a property"},
      {"aot 1\nsymbol s in [4, 2] hint 1\n", "test.ir:2:8: error: symbol s has the empty range"},
      {"aot 1\nsymbol f32 in [4, 8] hint 1\n", "test.ir:2:8: error: f32 means something else"},
      {"aot 1\nsymbol s in [0, 9] hint 1\nleaf 0 constant : f32[s]\nguard s == 3\n",
       "test.ir:4:7: error: guards are declared before the first leaf and the first node"},
      {"aot 1\nsymbol s in [0, 9] hint 1\nguard s == 10 \"s == 10\"\n",
       "test.ir:3:7: error: no sizes satisfy the guard s == 10"},
      {"aot 1\nlet $e1 = 4\n", "test.ir:2:5: error: lets are numbered in order: this one is $e0"},
      {"aot 1\nleaf 1 parameter : f32[2]\n", "test.ir:2:6: error: leaves are numbered in order: this one is 0"},
      {"aot 1\nleaf 0 parameter : f32[2] data \"00\"\n", "test.ir:2:8: error: the data of leaf"},
      {"aot 1\nleaf 0 parameter : f32[2] data \"0\"\n", "test.ir:2:32: error: bytes are pairs"},
      {"aot 1\nrule copy_back 0\n", "test.ir:2:6: error: rule copy_back names leaf 0; there are 0"},
      {"aot 1\ngraph @f forward {\n", "test.ir:3:1: error: expected `}`, found the end of the text"},
      {"aot 1\ngraph @f forward {\n}\ngraph @f region {\n}\n", "test.ir:4:7: error: graph @f is defined twice"},
      {"aot 1\ngraph @f forwards {\n}\n", "test.ir:2:10: error: expected a kind of graph, found forwards"},
      {"aot 1\norigin 0 from 0\n", "test.ir:2:15: error: origin 0 comes later or not at all"},
      {"aot 1\nencoding 1 \"v.t\"\n", "test.ir:2:10: error: encodings are numbered in order: this one is 0"},
      {"aot 1\nencoding 0 \"tiled\"\n", "test.ir:2:12: error: \"tiled\" is no name for an encoding"},
      {"aot 1\nencoding 0\n", "test.ir:2:11: error: expected the name of an encoding"},
      {"aot 1\nleaf 0 parameter : f32[2] encoding 0\n", "test.ir:2:36: error: encoding 0 comes later or not at all"},
      {"aot 1\nnonsense\n", "test.ir:2:1: error: expected properties, symbol"}};
  fixture_t w;
  (void)state;
  world_init(&w);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    world_reset(&w);
    aot_status_t status = world_parse(&w, cases[i].line);
    const char *said = aoth_sink_text(w.sink);
    if (status == AOT_OK || strncmp(said, cases[i].message, strlen(cases[i].message)) != 0)
      print_message("for    %s\nwanted %s\ngot    %s\n", cases[i].line, cases[i].message, said);
    assert_int_not_equal(status, AOT_OK);
    assert_memory_equal(said, cases[i].message, strlen(cases[i].message));
  }
  world_deinit(&w);
}

static void a_caret_and_a_hint(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  world_parse(&w, "aot 1\ngraph @f forward {\n\tin %x = seed 0 : f32[4]\n\t%y = tiny.ad.Tensor %x, %x\n}\n");
  assert_string_equal(aoth_sink_text(w.sink), "test.ir:4:7: error: there is no operator tiny.ad.Tensor [ir.syntax]\n"
                                              "    \t%y = tiny.ad.Tensor %x, %x\n"
                                              "    \t     ^~~~~~~~~~~~~~\n"
                                              "  hint: did you mean tiny.add.Tensor?\n");
  world_deinit(&w);
}

/* Deep nesting costs memory and no stack; shared expressions print in linear size. */
static void deep_and_shared_expressions(void **state) {
  fixture_t w;
  enum { DEPTH = 100000 };
  (void)state;
  world_init(&w);
  kit_text_t t = {0};
  kit_text_z(&t, "aot 1\nsymbol s in [1, inf] hint 2\nleaf 0 constant : f32[");
  for (int i = 0; i < DEPTH; i++) kit_text_z(&t, "(");
  kit_text_z(&t, "s");
  for (int i = 0; i < DEPTH; i++) kit_text_z(&t, ")");
  kit_text_z(&t, "]\n");
  assert_int_equal(aoth_parse(w.p, "deep", t.data, t.size), AOT_OK);
  kit_text_deinit(&t);
  int64_t d = AOT_DIM_SYM + 1;
  for (int i = 0; i < 2000; i++) { /* d = d * d + d, two thousand times */
    int64_t square;
    assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MUL, d, d, 0, &square), AOT_OK);
    assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_ADD, square, d, 0, &d), AOT_OK);
  }
  const aot_type_t type = f32_type(1, &d);
  const aot_leaf_info_t leaf = {.struct_size = sizeof leaf, .role = AOT_ROLE_CONSTANT, .type = type};
  aot_leaf_t l;
  assert_int_equal(aoth_edit_leaf_create(w.p, &leaf, &l), AOT_OK);
  char *text = world_print(&w);
  assert_true(strlen(text) < 400000);
  world_reset(&w);
  assert_int_equal(world_parse(&w, text), AOT_OK);
  char *again = world_print(&w);
  assert_string_equal(text, again);
  free(text);
  free(again);
  world_deinit(&w);
}

/* ---- fuzz: mutations of a valid text ---- */
static uint32_t next_random(uint32_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 17;
  *seed ^= *seed << 5;
  return *seed;
}

static const char *const splices[] = {"%w",
                                      "[",
                                      "]",
                                      "(",
                                      ")",
                                      "{",
                                      "}",
                                      "\n",
                                      "none",
                                      "@body",
                                      "$e0",
                                      "!0",
                                      "9223372036854775807",
                                      "-",
                                      "s0",
                                      "f32",
                                      "\"",
                                      "\\",
                                      "graph @f forward {\n",
                                      "tiny.cat.default",
                                      "1e999",
                                      ",",
                                      "=",
                                      ":",
                                      "out loss 0 = %w\n",
                                      "leaf 5 constant : f32[2]\n",
                                      "\0",
                                      "**",
                                      "in %q = seed 1 : f32[2]\n"};

static size_t line_at(const char *text, size_t size, size_t at, size_t *out_n) {
  size_t begin = at, end = at;
  while (begin && text[begin - 1] != '\n') begin--;
  while (end < size && text[end] != '\n') end++;
  *out_n = end - begin + (end < size);
  return begin;
}

static size_t mutate_line(char *text, size_t size, size_t capacity, uint32_t *seed) { /* drop, or repeat elsewhere */
  size_t n, m, at = line_at(text, size, next_random(seed) % size, &n),
               to = line_at(text, size, next_random(seed) % size, &m);
  char copy[1024];
  if (next_random(seed) % 2 || n > sizeof copy || size + n > capacity) {
    memmove(text + at, text + at + n, size - at - n);
    return size - n;
  }
  memcpy(copy, text + at, n);
  memmove(text + to + n, text + to, size - to);
  memcpy(text + to, copy, n);
  return size + n;
}

static size_t mutate(char *text, size_t size, size_t capacity, uint32_t *seed) {
  uint32_t at = next_random(seed) % (uint32_t)size, n = 1 + next_random(seed) % 24;
  switch (next_random(seed) % 6) {
    case 0: text[at] = (char)next_random(seed); return size;
    case 1: /* cut */
      if (at + n > size) n = (uint32_t)size - at;
      memmove(text + at, text + at + n, size - at - n);
      return size - n;
    case 2: { /* repeat */
      uint32_t from = next_random(seed) % (uint32_t)size;
      if (from + n > size || size + n > capacity) return size;
      char copy[32];
      memcpy(copy, text + from, n);
      memmove(text + at + n, text + at, size - at);
      memcpy(text + at, copy, n);
      return size + n;
    }
    case 3: return mutate_line(text, size, capacity, seed);
    default: { /* splice */
      const char *s = splices[next_random(seed) % (sizeof splices / sizeof *splices)];
      size_t k = strlen(s);
      if (size + k > capacity) return size;
      memmove(text + at + k, text + at, size - at);
      memcpy(text + at, s, k);
      return size + k;
    }
  }
}

static void mutated_texts_parse_or_complain(void **state) {
  fixture_t w;
  uint32_t seed = 20240607, n_good = 0;
  const size_t capacity = sizeof everything + 4096;
  char *text = malloc(capacity);
  (void)state;
  world_init(&w);
  for (int round = 0; round < 2000; round++) {
    size_t size = sizeof everything - 1;
    memcpy(text, everything, size);
    for (uint32_t k = 1 + next_random(&seed) % 3; k && size; k--) size = mutate(text, size, capacity, &seed);
    char *exact = malloc(size + 1); /* ASan sees a read past the end */
    memcpy(exact, text, size);
    world_reset(&w);
    aoth_journal_begin(w.p);
    aot_status_t status = aoth_parse(w.p, "fuzz.ir", exact, size);
    free(exact);
    if (status != AOT_OK) {
      assert_int_not_equal(aoth_sink_count(w.sink, AOT_SEVERITY_ERROR), 0);
      aoth_journal_undo(w.p); /* as if nothing had been read */
      /* the empty rows */
      assert_int_equal(aoth_graph_n_graphs(w.p) + aoth_graph_n_values(w.p) + aoth_graph_n_leaves(w.p), 3);
      assert_int_equal(aoth_exprs_count(w.p) + aoth_graph_n_symbols(w.p) + aoth_graph_n_rules(w.p), 1);
      continue;
    }
    n_good++;
    status = aoth_verify(w.p, aoth_prog_properties(w.p).known);
    assert_true(status == AOT_OK || aoth_sink_count(w.sink, AOT_SEVERITY_ERROR) > 0);
    char *once = world_print(&w);
    world_reset(&w);
    if (world_parse(&w, once) != AOT_OK) print_message("%s\n%s", once, aoth_sink_text(w.sink));
    assert_int_equal(aoth_sink_count(w.sink, AOT_SEVERITY_ERROR), 0);
    char *twice = world_print(&w);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
  }
  assert_true(n_good > 50); /* else the mutations teach nothing */
  free(text);
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip_of_everything),
                                     cmocka_unit_test(input_may_be_short),
                                     cmocka_unit_test(errors_stand_where_they_belong),
                                     cmocka_unit_test(errors_outside_graphs),
                                     cmocka_unit_test(a_caret_and_a_hint),
                                     cmocka_unit_test(deep_and_shared_expressions),
                                     cmocka_unit_test(mutated_texts_parse_or_complain)};
  return cmocka_run_group_tests_name("text form", tests, NULL, NULL);
}
