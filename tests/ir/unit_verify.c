/* The verifier: what it accepts, and a table of what it rejects and how it says so. */
#include "tiny_opset.h"
#include <aot/contract.h>
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define HEAD                                                                                                           \
  "aot 1\nleaf 0 parameter \"w\" : f32[4] grad\nleaf 1 buffer \"m\" : f32[4]\nleaf 2 user_input 0 \"x\" : f32[4]\n"
#define FORWARD(body)                                                                                                  \
  HEAD "graph @f forward {\n  in %w = parameter 0 : f32[4] grad\n  in %m = buffer 1 : f32[4]\n  in %x = user_input 2 " \
       ": f32[4]\n" body "}\n"
#define JOINT(body)                                                                                                    \
  HEAD "graph @j joint {\n  in %w = parameter 0 : f32[4] grad\n  in %x = user_input 2 : f32[4]\n" body "}\n"
#define SPLIT(forward, backward)                                                                                       \
  HEAD "graph @f forward {\n  in %w = parameter 0 : f32[4] grad\n" forward "}\ngraph @b backward {\n" backward "}\n"

typedef struct verify_case {
  const char *text;
  uint32_t properties;
  const char *message; /* NULL: accepted */
} verify_case_t;

static const verify_case_t cases[] = {
    {FORWARD("%y = tiny.add.Tensor %w, %x\nout user_output 0 = %y\n"), AOTH_PROP_IMPORTED | AOTH_PROP_FUNCTIONAL, NULL},
    {HEAD, 0, NULL},
    {HEAD, AOTH_PROP_IMPORTED, "the program has no forward graph"},
    {HEAD "graph @f forward {\n  in %w = parameter 0 : f32[2]\n}\n", AOTH_PROP_IMPORTED,
     "input 0 has another dtype or shape than leaf 0 \"w\""},
    {HEAD "graph @f forward {\n  in %w = parameter 0 : f32[2]\n}\n", AOTH_PROP_IMPORTED | AOTH_PROP_SHARDED, NULL},
    /* ports */
    {FORWARD("in %v = parameter 1 : f32[4]\n"), 0, "input 3 has role parameter, leaf 1 is a buffer"},
    {FORWARD("in %v = buffer 1 : f32[4]\n"), 0, "inputs 1 and 3 are both buffer 1"},
    {FORWARD("out user_output 0 = %x\nout loss 0 = %w\n"), 0, "outputs 0 and 1 are both user_output 0"},
    {FORWARD("out update 1 = none\n"), 0, "output 0 (update 1) cannot be none"},
    {FORWARD("out user_output 0 = none\n"), 0, NULL},
    /* encodings */
    {"aot 1\nencoding 0 \"v.t\"\nleaf 0 parameter \"w\" : f32[4] encoding 0\ngraph @f forward {\n  in %w = parameter 0 "
     ": f32[4] encoding 0\n}\n",
     AOTH_PROP_IMPORTED, NULL},
    {"aot 1\nencoding 0 \"v.t\"\nleaf 0 parameter \"w\" : f32[4] encoding 0\ngraph @f forward {\n  in %w = parameter 0 "
     ": f32[4]\n}\n",
     0, "input 0 has another encoding than leaf 0"},
    {"aot 1\nleaf 0 parameter \"w\" : f32[4]\ngraph @f forward {\n  in %w = parameter 0 : f32[4] memory 1\n}\n", 0,
     "input 0 has another encoding than leaf 0"},
    {"aot 1\nencoding 0 \"v.t\"\nleaf 0 buffer \"m\" : f32[4]\nrule copy_back 0\ngraph @f forward {\n  in %m = buffer "
     "0 : f32[4]\n"
     "  %n : f32[4] encoding 0 = tiny.add.Tensor %m, %m\n  out update 0 = %n\n}\n",
     0, "output 0 has another encoding than leaf 0"},
    {"aot 1\nencoding 0 \"v.t\"\n"
     "leaf 0 parameter \"w\" : f32[4]\ngraph @f forward {\n  in %w = parameter 0 : f32[4]\n"
     "  %n : f32[4] encoding 0 = tiny.add.Tensor %w, %w\n  out saved 0 = %n\n}\ngraph @b backward {\n  in %n = saved 0 "
     ": f32[4]\n}\n",
     AOTH_PROP_PARTITIONED, "saved slot 0 leaves the forward with another type than it enters the backward with"},
    /* regions */
    {FORWARD("%y : f32[4] = tiny.call @r, %x\n") "graph @r region {\n}\n", 0, NULL},
    {FORWARD("%y : f32[4] = tiny.call @f, %x\n"), 0,
     "argument 0 names a forward graph; a node owns regions and parts only"},
    {FORWARD("") "graph @r region {\n%y : f32[4] = tiny.call @s\n}\ngraph @s region {\n%y : f32[4] = tiny.call @r\n}\n",
     0, "2 graphs contain each other as regions"},
    /* results */
    {FORWARD("%y : symint(4) = tiny.add.Tensor %w, %x\n"), 0, "result 0 is another kind of value than the schema says"},
    {FORWARD("%y : none = tiny.add.Tensor %w, %x\n"), 0, NULL},
    /* functional */
    {FORWARD("%y = tiny.add_.Tensor %x, %w\n"), AOTH_PROP_FUNCTIONAL, "tiny.add_.Tensor writes argument 0 (self)"},
    {FORWARD("%y = tiny.norm.default %x, %m, true\n"), AOTH_PROP_FUNCTIONAL,
     "tiny.norm.default writes argument 1 (running)"},
    {FORWARD("%y = tiny.norm.default %x, %m, false\n"), AOTH_PROP_FUNCTIONAL, NULL}, /* it only reads then */
    {FORWARD("") "graph @r region {\nin %x = region 0 : f32[4]\n%y = tiny.add_.Tensor %x, %x\n}\n",
     AOTH_PROP_FUNCTIONAL, "tiny.add_.Tensor writes"},
    {FORWARD("%n = tiny.add.Tensor %m, %x\nout update 1 = %n\n"), AOTH_PROP_FUNCTIONAL,
     "the new value of leaf 1 \"m\" has no copy_back rule"},
    {FORWARD("%n = tiny.add.Tensor %m, %x\nout update 1 = %n\n") "rule copy_back 1\n", AOTH_PROP_FUNCTIONAL, NULL},
    /* joint */
    {FORWARD(""), AOTH_PROP_JOINT, "the program has no joint graph"},
    {JOINT("in %t = tangent 0 : f32[4]\nout user_output 0 = %x\nout gradient 0 = %t\n"), AOTH_PROP_JOINT, NULL},
    {JOINT("in %t = tangent 0 : f32[4]\nout user_output 0 = %x\nout gradient 0 = none\n"), AOTH_PROP_JOINT, NULL},
    {JOINT("in %t = tangent 0 : f32[4]\nout user_output 0 = %x\n"), AOTH_PROP_JOINT,
     "leaf 0 \"w\" requires a gradient and has no gradient output"},
    {JOINT("in %t = tangent 0 : f32[5]\nout user_output 0 = %x\nout gradient 0 = %x\n"), AOTH_PROP_JOINT,
     "tangent 0 has another dtype or shape than user output 0"},
    {JOINT("in %t = tangent 1 : f32[4]\nout loss 0 = %x\nout gradient 0 = %x\n"), AOTH_PROP_JOINT,
     "tangent 1 belongs to no user output"},
    {JOINT("in %t = tangent 0 : f64[4]\nout gradient 0 = %t\nout user_output 0 = %t\n"), AOTH_PROP_JOINT,
     "the gradient of leaf 0 \"w\" has another dtype or shape than the leaf"},
    /* rng-explicit */
    {FORWARD("%y = tiny.rand.default [4]\n"), AOTH_PROP_RNG_EXPLICIT, "tiny.rand.default draws hidden random numbers"},
    {FORWARD("%y = tiny.rand.default [4]\n"), 0, NULL},
    /* partitioned */
    {SPLIT("out saved 0 = %w\n", "in %s = saved 0 : f32[4]\nin %t = tangent 0 : f32[4]\nout gradient 0 = %s\n"),
     AOTH_PROP_PARTITIONED, NULL},
    {SPLIT("out saved 0 = %w\n", ""), AOTH_PROP_PARTITIONED, "the forward saves 1 values, the backward reads 0"},
    {SPLIT("out saved 1 = %w\n", "in %s = saved 0 : f32[4]\n"), AOTH_PROP_PARTITIONED,
     "saved slot 0 is missing in the forward"},
    {SPLIT("out saved 0 = %w\n", "in %s = saved 0 : f32[4] strides [2]\n"), AOTH_PROP_PARTITIONED,
     "saved slot 0 leaves the forward with another type"},
    {SPLIT("", "in %s = parameter 0 : f32[4]\n"), AOTH_PROP_PARTITIONED,
     NULL}, /* a leaf that stays as it is needs no slot */
    {SPLIT("out update 0 = %w\n", "in %s = parameter 0 : f32[4]\n"), AOTH_PROP_PARTITIONED,
     "the backward reads parameter 0, which was not saved"},
    {SPLIT("", "in %s = gradient 0 : f32[4]\n"), AOTH_PROP_PARTITIONED,
     "the backward reads gradient 0, which was not saved"},
    {FORWARD(""), AOTH_PROP_PARTITIONED, "the program has no backward graph"},
    {SPLIT("", "") "graph @j joint {\n}\n", AOTH_PROP_PARTITIONED, "the joint graph is still there"}};

static void the_table(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    world_reset(&w);
    if (world_parse(&w, cases[i].text) != AOT_OK) print_message("%s\n%s", cases[i].text, aoth_sink_text(w.sink));
    assert_int_equal(w.ctx.n_diags, 0);
    aot_status_t status = aoth_verify(w.p, cases[i].properties);
    const char *said = aoth_sink_text(w.sink);
    if ((status == AOT_OK) != !cases[i].message || (cases[i].message && !strstr(said, cases[i].message)))
      print_message("%s\nwanted: %s\ngot: %s\n", cases[i].text, cases[i].message ? cases[i].message : "(accepted)",
                    said);
    assert_int_equal(status, cases[i].message ? AOT_E_INVALID : AOT_OK);
    if (cases[i].message) assert_non_null(strstr(said, cases[i].message));
  }
  world_deinit(&w);
}

static void values_are_defined_before_they_are_used(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  assert_int_equal(world_parse(&w, FORWARD("%a = tiny.add.Tensor %w, %x\n%b = tiny.add.Tensor %a, %x\n")), AOT_OK);
  aot_node_t first = aoth_graph_first(w.p, aoth_graph_graph_find(w.p, AOT_GRAPH_FORWARD)),
             second = aoth_graph_next(w.p, first);
  aot_node_info_t info = {.struct_size = sizeof info};
  assert_int_equal(aoth_graph_node_info(w.p, second, &info), AOT_OK);
  assert_int_equal(aoth_edit_operand_set(w.p, first, 0, info.first_result), AOT_OK);
  assert_int_equal(aoth_verify(w.p, 0), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(w.sink), "operand 0 is used before it is defined"));
  world_deinit(&w);
}

/* A forward graph of these nodes, made within a journal; what its check says. */
static aot_status_t check_types(fixture_t *w, const char *text) {
  assert_int_equal(aoth_journal_begin(w->p), AOT_OK);
  assert_int_equal(world_parse(w, text), AOT_OK);
  const aot_status_t status = aoth_verify_types(w->p);
  aoth_journal_commit(w->p);
  return status;
}

static void declared_types_are_compared_with_inferred_ones(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  assert_int_equal(check_types(&w, FORWARD("%a : f32[4] = tiny.add.Tensor %w, %x\n")), AOT_OK);
  world_reset(&w);
  assert_int_equal(
      check_types(&w, FORWARD("%a : f32[4], %b : i64[5] = tiny.max.dim %w\n%c : f32[8] = tiny.cat.default [%w, %x]\n")),
      AOT_E_CONTRACT);
  assert_non_null(strstr(aoth_sink_text(w.sink), "result 1 is declared i64[5], its operator gives f32[4]"));
  assert_int_equal(aoth_sink_count(w.sink, AOT_SEVERITY_ERROR), 1);
  world_deinit(&w);
}

/* A product of sizes in another form is the same size; the number that a size was at tracing is not. */
static void symbolic_sizes_are_compared_at_other_sizes_too(void **state) {
#define SYMBOLIC(type)                                                                                                 \
  "aot 1\nsymbol s0 in [0, inf] hint 4\nleaf 0 user_input 0 \"x\" : f32[s0]\n"                                         \
  "graph @f forward {\n  in %x = user_input 0 : f32[s0]\n  %a : " type " = tiny.add.Tensor %x, %x\n}\n"
  static const struct {
    const char *text, *message; /* NULL: agrees */
  } sizes[] = {{SYMBOLIC("f32[s0]"), NULL},
               {SYMBOLIC("f32[s0 * 2 // 2]"), NULL},
               {SYMBOLIC("f32[4]"), "result 0 is declared f32[4], its operator gives f32[s0]"},
               {SYMBOLIC("f32[8 - s0]"), "its operator gives f32[s0]"}};
  fixture_t w;
  (void)state;
  world_init(&w);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    world_reset(&w);
    assert_int_equal(check_types(&w, sizes[i].text), sizes[i].message ? AOT_E_CONTRACT : AOT_OK);
    if (sizes[i].message) assert_non_null(strstr(aoth_sink_text(w.sink), sizes[i].message));
  }
  world_deinit(&w);
}

static void only_what_was_set_is_compared(void **state) {
  fixture_t w;
  aot_type_t wide;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)state;
  world_init(&w);
  assert_int_equal(world_parse(&w, FORWARD("%a : f64[4] = tiny.add.Tensor %w, %x\n%b = tiny.add.Tensor %w, %x\n")),
                   AOT_OK);
  const aot_graph_t forward = aoth_graph_graph_find(w.p, AOT_GRAPH_FORWARD);
  const aot_node_t first = aoth_graph_first(w.p, forward), second = aoth_graph_next(w.p, first);
  assert_int_equal(aoth_graph_node_info(w.p, first, &info), AOT_OK);
  assert_int_equal(aoth_graph_value_type(w.p, info.first_result, &wide), AOT_OK);
  assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
  assert_int_equal(aoth_verify_types(w.p), AOT_OK); /* nothing was */
  info.struct_size = sizeof info;
  assert_int_equal(aoth_graph_node_info(w.p, second, &info), AOT_OK);
  assert_int_equal(aoth_edit_operand_set(w.p, second, 0, (aot_value_t){info.first_result.id - 1}), AOT_OK);
  assert_int_equal(aoth_verify_types(w.p), AOT_E_CONTRACT); /* an operand of another dtype */
  aoth_journal_undo(w.p);
  assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
  assert_int_equal(aoth_edit_type_set(w.p, info.first_result, &wide), AOT_OK);
  assert_int_equal(aoth_verify_types(w.p), AOT_E_CONTRACT); /* the type itself */
  aoth_journal_undo(w.p);
  world_deinit(&w);
}

static void at_most_twenty_complaints(void **state) {
  fixture_t w;
  kit_text_t t = {0};
  (void)state;
  world_init(&w);
  kit_text_z(&t, "aot 1\ngraph @f forward {\n");
  for (int i = 0; i < 50; i++) kit_text_f(&t, "%%v%d = tiny.rand.default [4]\n", i);
  kit_text_z(&t, "}\n");
  assert_int_equal(world_parse(&w, t.data), AOT_OK);
  assert_int_equal(aoth_verify(w.p, AOTH_PROP_RNG_EXPLICIT), AOT_E_INVALID);
  assert_int_equal(aoth_sink_count(w.sink, AOT_SEVERITY_ERROR), 20);
  kit_text_deinit(&t);
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_table),
                                     cmocka_unit_test(values_are_defined_before_they_are_used),
                                     cmocka_unit_test(declared_types_are_compared_with_inferred_ones),
                                     cmocka_unit_test(symbolic_sizes_are_compared_at_other_sizes_too),
                                     cmocka_unit_test(only_what_was_set_is_compared),
                                     cmocka_unit_test(at_most_twenty_complaints)};
  return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
