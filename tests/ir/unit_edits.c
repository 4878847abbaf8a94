/* Edits and the journal: each edit does what it says, bad ones change nothing, and undo restores everything, ids
 * included. */
#include "tiny_opset.h"
#include <aot/contract.h>
#include <aot/inline.h>
#include <ir/digest.h>
#include <ir/program_store.h>
#include <ir/redo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char base_text[] = "aot 1\n"
                                "symbol s in [1, inf] hint 4\n"
                                "leaf 0 parameter \"w\" : f32[4] grad\n"
                                "graph @f forward {\n"
                                "  in %x = parameter 0 : f32[4]\n"
                                "  in %y = seed 0 : f32[4]\n"
                                "  %a : f32[4] = tiny.add.Tensor %x, %y !0\n"
                                "  %b : f32[4] = tiny.cat.default [%a, %x, %a], 0\n"
                                "  %c : f32[4] = tiny.index.Tensor %b, [%a, none]\n"
                                "  out user_output 0 = %c\n"
                                "  out user_output 1 = %a\n"
                                "}\n"
                                "graph @body region {\n"
                                "  in %x = region 0 : f32[4]\n"
                                "  out region 0 = %x\n"
                                "}\n"
                                "origin 0 \"m.py\":3 module \"a.b\" node \"n\"\n";

static void begin(fixture_t *w) {
  world_init(w);
  if (world_parse(w, base_text) != AOT_OK) print_message("%s", aoth_sink_text(w->sink));
  assert_int_equal(aoth_verify(w->p, 0), AOT_OK);
}

static aot_value_t value_named(fixture_t *w, const char *name) {
  aot_value_t v = {1};
  for (; v.id < aoth_graph_n_values(w->p); v.id++)
    if (aot_str_eq(aoth_graph_value_name(w->p, v), aot_str(name))) return v;
  fail_msg("no value %s", name);
  return v;
}

static aot_node_t node_named(fixture_t *w, const char *name) {
  return aoth_graph_value_def(w->p, value_named(w, name));
}

static aot_graph_t forward(fixture_t *w) { return aoth_graph_graph_find(w->p, AOT_GRAPH_FORWARD); }

static aot_status_t add_node(fixture_t *w, aot_value_t a, aot_value_t b, aot_node_t before, aot_value_t *out) {
  const aot_arg_t args[2] = {aot_arg_value(a), aot_arg_value(b)};
  const aot_node_spec_t s = {
      .struct_size = sizeof s,
      .op = tiny_op(w, "tiny.add.Tensor"),
      .n_args = 2,
      .args = args,
      .origin = aot_no_origin(),
  };
  aot_node_t n;
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(aoth_edit_node_create(w->p, forward(w), &s, before, &n));
  AOT_TRY(aoth_graph_node_info(w->p, n, &info));
  *out = info.first_result;
  return AOT_OK;
}

static void nodes_get_defaults_types_and_origin(void **state) {
  fixture_t w;
  aot_value_t sum;
  aot_type_t t;
  aot_node_info_t info = {.struct_size = sizeof info}, a = {.struct_size = sizeof a};
  (void)state;
  begin(&w);
  assert_int_equal(add_node(&w, value_named(&w, "x"), value_named(&w, "x"), node_named(&w, "a"), &sum), AOT_OK);
  aot_node_t n = aoth_graph_value_def(w.p, sum);
  assert_int_equal(aoth_graph_node_info(w.p, n, &info), AOT_OK);
  assert_int_equal(aoth_graph_node_info(w.p, node_named(&w, "a"), &a), AOT_OK);
  assert_int_equal(info.n_args, 3);
  assert_int_equal(info.args[2].kind, AOT_ARG_INT); /* alpha=1 */
  assert_int_equal(info.args[2].u.i, 1);
  assert_int_equal(info.n_operands, 2);
  assert_int_equal(info.origin.id, a.origin.id);
  assert_int_equal(aoth_graph_value_type(w.p, sum, &t), AOT_OK);
  assert_int_equal(t.rank, 1);
  assert_int_equal(t.sizes[0], 4);
  assert_int_equal(aoth_graph_next(w.p, n).id, node_named(&w, "a").id);
  assert_int_equal(aoth_graph_first(w.p, forward(&w)).id, n.id);
  assert_int_equal(w.ctx.last_node, n.id); /* the breadcrumb */
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  world_deinit(&w);
}

static void equal_types_share_their_arrays(void **state) {
  fixture_t w;
  aot_type_t a, b;
  (void)state;
  begin(&w);
  aoth_graph_value_type(w.p, value_named(&w, "a"), &a);
  aoth_graph_value_type(w.p, value_named(&w, "c"), &b);
  assert_ptr_equal(a.sizes, b.sizes);
  assert_ptr_equal(a.strides, b.strides);
  world_deinit(&w);
}

static void uses_follow_every_edit(void **state) {
  fixture_t w;
  aot_node_t users[8];
  (void)state;
  begin(&w);
  aot_value_t a = value_named(&w, "a"), x = value_named(&w, "x"), y = value_named(&w, "y");
  assert_int_equal(aoth_graph_n_uses(w.p, a), 4); /* twice in cat, once in index, one output */
  assert_int_equal(aoth_graph_users(w.p, a, users, 8), 3);
  assert_int_equal(aoth_graph_users(w.p, a, users, 2), 2);
  assert_int_equal(aoth_edit_uses_replace(w.p, a, y), AOT_OK);
  assert_int_equal(aoth_graph_n_uses(w.p, a), 0);
  assert_int_equal(aoth_graph_n_uses(w.p, y), 5);
  assert_int_equal(aoth_graph_outputs(w.p, forward(&w))[1].value.id, y.id);
  aot_node_info_t cat = {.struct_size = sizeof cat};
  aoth_graph_node_info(w.p, node_named(&w, "b"), &cat);
  assert_int_equal(cat.operands[0], y.id);
  assert_ptr_equal(cat.args[0].u.ids, cat.operands); /* lists are views of the operands */
  assert_int_equal(aoth_edit_operand_set(w.p, node_named(&w, "b"), 1, y), AOT_OK);
  assert_int_equal(aoth_graph_n_uses(w.p, x), 1);
  assert_int_equal(aoth_edit_node_erase(w.p, node_named(&w, "a")), AOT_OK);
  assert_int_equal(aoth_graph_n_uses(w.p, x), 0);
  assert_int_equal(aoth_edit_input_erase(w.p, forward(&w), 0), AOT_OK);
  assert_int_equal(aoth_graph_value_index(w.p, y), 0);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  world_deinit(&w);
}

/* Every refused edit: its status, a diagnostic, and the program as it was. */
static void bad_edits_change_nothing(void **state) {
  fixture_t w;
  aot_value_t v, out;
  aot_node_t n, none = aot_no_node();
  aot_arg_t arg;
  (void)state;
  begin(&w);
  char *before = world_print(&w);
  aot_value_t a = value_named(&w, "a"), x = value_named(&w, "x"), absent = aot_no_value(), unknown = {12345};
  aot_node_t add = node_named(&w, "a"), cat = node_named(&w, "b");
  aot_graph_t body = aoth_graph_graph_find(w.p, AOT_GRAPH_REGION), f = forward(&w);
  aot_value_t other = aoth_graph_inputs(w.p, body)[0].value;
  aot_node_t nowhere = {777};
  aot_graph_t no_graph = {9};
  const aot_node_spec_t no_op = {.struct_size = sizeof no_op, .op = {999}, .origin = aot_no_origin()};
  const aot_node_spec_t no_args = {
      .struct_size = sizeof no_args,
      .op = tiny_op(&w, "tiny.add.Tensor"),
      .origin = aot_no_origin(),
  };
  uint32_t n_diags = w.ctx.n_diags;
#define REFUSED(status, call)                                                                                          \
  do {                                                                                                                 \
    assert_int_equal(call, status);                                                                                    \
    assert_int_equal(w.ctx.n_diags, ++n_diags);                                                                        \
  } while (0)
  REFUSED(AOT_E_RANGE, aoth_edit_node_create(w.p, f, &no_op, none, &n));
  REFUSED(AOT_E_INVALID, aoth_edit_node_create(w.p, f, &no_args, none, &n));
  REFUSED(AOT_E_RANGE, aoth_edit_node_create(w.p, no_graph, &no_args, none, &n));
  REFUSED(AOT_E_INVALID, add_node(&w, a, unknown, none, &out));
  REFUSED(AOT_E_INVALID, add_node(&w, a, other, none, &out));
  REFUSED(AOT_E_RANGE, add_node(&w, a, a, nowhere, &out));
  REFUSED(AOT_E_PRECONDITION, aoth_edit_node_erase(w.p, add));
  REFUSED(AOT_E_RANGE, aoth_edit_node_erase(w.p, nowhere));
  REFUSED(AOT_E_RANGE, aoth_edit_operand_set(w.p, cat, 3, a));
  REFUSED(AOT_E_INVALID, aoth_edit_operand_set(w.p, cat, 0, other));
  REFUSED(AOT_E_INVALID, aoth_edit_operand_set(w.p, cat, 0, absent));
  REFUSED(AOT_E_INVALID, aoth_edit_operand_set(w.p, add, 0, absent));
  arg = aot_arg_str(aot_str("text"));
  REFUSED(AOT_E_INVALID, aoth_edit_arg_set(w.p, cat, 1, &arg));
  REFUSED(AOT_E_RANGE, aoth_edit_arg_set(w.p, cat, 2, &arg));
  arg = aot_arg_int(AOT_DIM_SYM + 77);
  REFUSED(AOT_E_INVALID, aoth_edit_arg_set(w.p, cat, 1, &arg));
  REFUSED(AOT_E_INVALID, aoth_edit_uses_replace(w.p, a, other));
  REFUSED(AOT_E_RANGE, aoth_edit_uses_replace(w.p, unknown, a));
  REFUSED(AOT_E_PRECONDITION, aoth_edit_input_erase(w.p, f, 0));
  REFUSED(AOT_E_RANGE, aoth_edit_input_erase(w.p, f, 2));
  REFUSED(AOT_E_RANGE, aoth_edit_output_set(w.p, f, 2, a));
  REFUSED(AOT_E_INVALID, aoth_edit_output_set(w.p, f, 0, other));
  REFUSED(AOT_E_RANGE, aoth_edit_output_add(w.p, f, AOT_ROLE_UPDATE, 3, a, aot_str("")));
  REFUSED(AOT_E_INVALID, aoth_edit_output_add(w.p, f, AOT_ROLE_PARAMETER, 0, a, aot_str("")));
  const int64_t negative = -1;
  const aot_type_t t = f32_type(1, &negative), too_deep = f32_type(17, &negative);
  REFUSED(AOT_E_RANGE, aoth_edit_type_set(w.p, a, &t));
  REFUSED(AOT_E_RANGE, aoth_edit_input_add(w.p, f, AOT_ROLE_SEED, 1, &too_deep, aot_str("s"), &v));
  REFUSED(AOT_E_RANGE, aoth_edit_graph_create(w.p, 8, aot_str("g"), &f));
#undef REFUSED
  (void)x;
  char *after = world_print(&w);
  assert_string_equal(before, after);
  free(before);
  free(after);
  world_deinit(&w);
}

static void erased_things_are_stale(void **state) {
  fixture_t w;
  aot_value_t sum;
  (void)state;
  begin(&w);
  aot_value_t x = value_named(&w, "x");
  assert_int_equal(add_node(&w, x, x, aot_no_node(), &sum), AOT_OK);
  aot_node_t n = aoth_graph_value_def(w.p, sum);
  assert_int_equal(aoth_edit_node_erase(w.p, n), AOT_OK);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_type_t t;
  assert_int_equal(aoth_graph_node_info(w.p, n, &info), AOT_E_STALE);
  assert_int_equal(aoth_graph_value_type(w.p, sum, &t), AOT_E_STALE);
  assert_int_equal(aoth_graph_next(w.p, n).id, AOT_NO_ID);
  assert_int_equal(aoth_graph_value_def(w.p, sum).id, AOT_NO_ID);
  assert_int_equal(aoth_graph_n_uses(w.p, sum), 0);
  assert_int_equal(aoth_edit_node_erase(w.p, n), AOT_E_STALE);
  assert_int_equal(aoth_edit_uses_replace(w.p, sum, x), AOT_E_STALE);
  aot_graph_t f = forward(&w);
  assert_int_equal(aoth_edit_graph_erase(w.p, f), AOT_OK);
  assert_int_equal(aoth_graph_graph_info(w.p, f, NULL, NULL), AOT_E_STALE);
  assert_int_equal(aoth_graph_value_type(w.p, x, &t), AOT_E_STALE);
  assert_int_equal(aoth_graph_first(w.p, f).id, AOT_NO_ID);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  world_deinit(&w);
}

/* Id 0 is nothing, everywhere: a zeroed struct names nothing. */
static void zero_names_nothing(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  const aot_graph_t no_graph = {0};
  const aot_node_t no_node = {0};
  const aot_value_t no_value = {0};
  aot_node_info_t node = {.struct_size = sizeof node};
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  aot_origin_info_t origin = {.struct_size = sizeof origin};
  aot_expr_info_t expr;
  aot_type_t type;
  assert_int_equal(AOT_NO_ID, 0);
  assert_int_equal(aoth_graph_graph_info(w.p, no_graph, NULL, NULL), AOT_E_RANGE);
  assert_int_equal(aoth_graph_node_info(w.p, no_node, &node), AOT_E_RANGE);
  assert_int_equal(aoth_graph_value_type(w.p, no_value, &type), AOT_E_RANGE);
  assert_int_equal(aoth_graph_leaf_info(w.p, (aot_leaf_t){0}, &leaf), AOT_E_RANGE);
  assert_int_equal(aoth_graph_origin_info(w.p, (aot_origin_t){0}, &origin), AOT_E_RANGE);
  assert_int_equal(aoth_graph_expr_info(w.p, 0, &expr), AOT_E_RANGE);
  assert_null(aoth_graph_op_desc(w.p, (aot_op_t){0}));
  assert_true(aoth_graph_first(w.p, no_graph).id == 0 && aoth_graph_next(w.p, no_node).id == 0);
  assert_true(aoth_graph_value_def(w.p, no_value).id == 0 && aoth_graph_n_uses(w.p, no_value) == 0);
  assert_true(forward(&w).id && node_named(&w, "a").id && value_named(&w, "x").id);
  assert_int_equal(aoth_graph_value_type(w.p, value_named(&w, "x"), &type), AOT_OK);
  assert_true(type.device == AOT_DEVICE_CPU && type.device_index == 0); /* a tensor that says no device */
  assert_int_equal(aoth_edit_node_erase(w.p, no_node), AOT_E_RANGE);
  assert_int_equal(aoth_edit_uses_replace(w.p, value_named(&w, "x"), no_value), AOT_E_RANGE);
  assert_int_equal(aoth_edit_graph_erase(w.p, no_graph), AOT_E_RANGE);
  assert_int_equal(aoth_edit_output_add(w.p, forward(&w), AOT_ROLE_UPDATE, 0, no_value, aot_str("")), AOT_E_RANGE);
  assert_int_equal(aoth_edit_rule_add(w.p, &(aot_rule_t){.kind = AOT_RULE_COPY_BACK}), AOT_E_RANGE);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  world_deinit(&w);
}

/* An older plugin's shorter struct gets what it can hold, a longer one zeros for what this host does not know. */
static void answers_fit_the_callers_struct(void **state) {
  fixture_t w;
  struct {
    aot_node_info_t info;
    uint64_t later;
  } longer;
  (void)state;
  begin(&w);
  aot_node_info_t shorter = {.struct_size = 8, .n_args = 77};
  assert_int_equal(aoth_graph_node_info(w.p, node_named(&w, "a"), &shorter), AOT_OK);
  assert_int_equal(shorter.n_args, 77);
  memset(&longer, 0xff, sizeof longer);
  longer.info.struct_size = sizeof longer;
  assert_int_equal(aoth_graph_node_info(w.p, node_named(&w, "a"), &longer.info), AOT_OK);
  assert_int_equal(longer.info.n_args, 3);
  assert_int_equal(longer.later, 0);
  longer.info.struct_size = 0;
  assert_int_equal(aoth_graph_node_info(w.p, node_named(&w, "a"), &longer.info), AOT_E_INVALID);
  struct {
    aot_node_spec_t spec;
    uint64_t later;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.spec.struct_size = sizeof newer;
  newer.later = 1; /* something this host does not know and must not ignore */
  aot_node_t n;
  assert_int_equal(aoth_edit_node_create(w.p, forward(&w), &newer.spec, aot_no_node(), &n), AOT_E_TOO_NEW);
  world_deinit(&w);
}

/* An encoding is one row however often it is made; types that name another one are other types; undo takes it back. */
static void encodings_are_interned(void **state) {
  fixture_t w;
  aot_encoding_t tiled, again, other, one_more;
  aot_type_t plain, t;
  (void)state;
  begin(&w);
  aot_encoding_info_t e = {.struct_size = sizeof e, .name = AOT_STR_INIT("vendor.tiled"), .value = AOT_STR_INIT("2x2")};
  assert_int_equal(aoth_edit_encoding_create(w.p, &e, &tiled), AOT_OK);
  aoth_journal_begin(w.p);
  assert_int_equal(aoth_edit_encoding_create(w.p, &e, &again), AOT_OK);
  assert_true(tiled.id == 1 && again.id == tiled.id && aoth_journal_count(w.p) == 0);
  e.value = aot_str("4x4");
  assert_int_equal(aoth_edit_encoding_create(w.p, &e, &other), AOT_OK);
  assert_true(other.id == 2 && aoth_graph_n_encodings(w.p) == 3);
  const aot_value_t a = value_named(&w, "a");
  assert_int_equal(aoth_graph_value_type(w.p, a, &plain), AOT_OK);
  t = plain;
  t.encoding = other;
  assert_int_equal(aoth_edit_type_set(w.p, a, &t), AOT_OK);
  assert_int_equal(aoth_journal_count(w.p), 2); /* made, and set: another type than before */
  assert_int_equal(aoth_graph_value_type(w.p, a, &t), AOT_OK);
  assert_int_equal(t.encoding.id, other.id);
  t.memory = 3;
  assert_int_equal(aoth_edit_type_set(w.p, a, &t), AOT_OK);
  assert_int_equal(aoth_journal_count(w.p), 3);
  aoth_journal_undo(w.p);
  assert_int_equal(aoth_graph_n_encodings(w.p), 2);
  assert_int_equal(aoth_graph_value_type(w.p, a, &t), AOT_OK);
  assert_true(t.encoding.id == AOT_NO_ID && t.memory == 0);
  aot_encoding_info_t said = {.struct_size = sizeof said};
  assert_int_equal(aoth_graph_encoding_info(w.p, tiled, &said), AOT_OK);
  assert_true(aot_str_eq(said.name, aot_str("vendor.tiled")) && aot_str_eq(said.value, aot_str("2x2")));
  assert_int_equal(aoth_graph_encoding_info(w.p, other, &said), AOT_E_RANGE);
  assert_int_equal(aoth_graph_encoding_info(w.p, (aot_encoding_t){0}, &said), AOT_E_RANGE);
  t.encoding.id = 2;
  assert_int_equal(aoth_edit_type_set(w.p, a, &t), AOT_E_RANGE);
  t = plain;
  t.reserved[1] = 1; /* something that this host does not know */
  assert_int_equal(aoth_edit_type_set(w.p, a, &t), AOT_E_TOO_NEW);
  static const char *const bad[] = {"", "tiled", ".tiled", "vendor.", "a..b", "Vendor.tiled", "vendor.ti led"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    e.name = aot_str(bad[i]);
    assert_int_equal(aoth_edit_encoding_create(w.p, &e, &one_more), AOT_E_INVALID);
  }
  world_deinit(&w);
}

static void opsets_are_asked(void **state) {
  fixture_t w;
  aot_value_t out, none;
  (void)state;
  begin(&w);
  assert_int_equal(aoth_edit_decompose(w.p, node_named(&w, "a"), &out), AOT_OK);
  assert_int_equal(aoth_graph_next(w.p, aoth_graph_value_def(w.p, out)).id, node_named(&w, "a").id);
  uint32_t n_diags = w.ctx.n_diags;
  assert_int_equal(aoth_edit_decompose(w.p, node_named(&w, "b"), &out), AOT_E_UNIMPLEMENTED);
  assert_int_equal(aoth_edit_functional_form(w.p, node_named(&w, "b"), &out, &none), AOT_E_NOT_FOUND);
  assert_int_equal(w.ctx.n_diags, n_diags); /* "there is none" is no complaint */
  world_deinit(&w);
}

/* ---- the journal ---- */
static void undo_takes_ids_back(void **state) {
  fixture_t w;
  aot_value_t first, second;
  (void)state;
  begin(&w);
  char *before = world_print(&w);
  aot_value_t x = value_named(&w, "x");
  aoth_journal_begin(w.p);
  assert_int_equal(add_node(&w, x, x, aot_no_node(), &first), AOT_OK);
  assert_int_equal(aoth_journal_count(w.p), 1);
  aoth_journal_undo(w.p);
  assert_int_equal(aoth_journal_count(w.p), 0);
  char *after = world_print(&w);
  assert_string_equal(before, after);
  aoth_journal_begin(w.p);
  assert_int_equal(add_node(&w, x, x, aot_no_node(), &second), AOT_OK);
  aoth_journal_commit(w.p);
  assert_int_equal(first.id, second.id);
  free(before);
  free(after);
  world_deinit(&w);
}

static void journals_nest(void **state) {
  fixture_t w;
  aot_value_t v;
  (void)state;
  begin(&w);
  char *before = world_print(&w);
  aot_value_t x = value_named(&w, "x");
  aoth_journal_begin(w.p);
  assert_int_equal(add_node(&w, x, x, aot_no_node(), &v), AOT_OK);
  char *outer = world_print(&w);
  aoth_journal_begin(w.p);
  assert_int_equal(add_node(&w, v, x, aot_no_node(), &v), AOT_OK);
  aoth_journal_undo(w.p);
  char *inner = world_print(&w);
  assert_string_equal(inner, outer);
  aoth_journal_begin(w.p);
  assert_int_equal(add_node(&w, x, x, aot_no_node(), &v), AOT_OK);
  aoth_journal_commit(w.p);
  assert_int_equal(aoth_journal_count(w.p), 2);
  aoth_journal_undo(w.p);
  char *after = world_print(&w);
  assert_string_equal(before, after);
  free(before);
  free(outer);
  free(inner);
  free(after);
  world_deinit(&w);
}

static void the_journal_prints_each_edit(void **state) {
  fixture_t w;
  aot_value_t v;
  kit_text_t t = {0};
  (void)state;
  begin(&w);
  aot_value_t x = value_named(&w, "x"), y = value_named(&w, "y");
  aoth_journal_begin(w.p);
  add_node(&w, x, y, aot_no_node(), &v);
  aoth_edit_note(w.p, aoth_graph_value_def(w.p, v), aot_str("because"));
  aoth_edit_uses_replace(w.p, x, y);
  aoth_journal_print(w.p, &t);
  assert_non_null(strstr(t.data, "node_create 4: %7 : f32[4] = tiny.add.Tensor %y, %y\n"));
  assert_non_null(strstr(t.data, "note node 4 tiny.add.Tensor: because\n"));
  assert_non_null(strstr(t.data, "uses_replace value 1 by value 2, 3 uses\n"));
  kit_text_deinit(&t);
  world_deinit(&w);
}

static void contracts_are_checked(void **state) {
  static const aot_str_t adds[] = {AOT_STR_INIT("tiny.add.*")}, cats[] = {AOT_STR_INIT("tiny.cat.default")};
  const aoth_contract_t may_add = {.creates = adds, .n_creates = 1};
  const aoth_contract_t may_cat = {.creates = cats, .n_creates = 1};
  const aoth_contract_t removes = {.removes = cats, .n_removes = 1};
  fixture_t w;
  aot_value_t v;
  (void)state;
  begin(&w);
  aot_value_t x = value_named(&w, "x");
  aoth_journal_begin(w.p);
  add_node(&w, x, x, aot_no_node(), &v);
  assert_int_equal(aoth_journal_check(w.p, &may_add), AOT_OK);
  assert_int_equal(aoth_journal_check(w.p, &may_cat), AOT_E_CONTRACT);
  assert_non_null(
      strstr(aoth_sink_text(w.sink), "operator tiny.add.Tensor was created, which the contract does not allow"));
  aoth_edit_node_erase(w.p, aoth_graph_value_def(w.p, v));
  assert_int_equal(aoth_journal_check(w.p, &may_cat), AOT_OK); /* gone again: nothing was added to the program */
  assert_int_equal(aoth_journal_check(w.p, &removes), AOT_E_CONTRACT);
  world_deinit(&w);
}

static void complaints_point_home(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  w.ctx.stage = "decompose";
  w.ctx.where_file = "train.yaml";
  w.ctx.where_line = 7;
  aoth_prog_set_model(w.p, "m.pt2");
  aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str("x.bad"),
      .message = aot_str("it broke"),
      .hint = aot_str("mend it"),
      .node = aot_no_node(),
      .value = value_named(&w, "a"),
  };
  assert_int_equal(aoth_report_diag(&w.ctx, &d), AOT_OK);
  assert_string_equal(aoth_sink_text(w.sink), "m.py:3: error: it broke [x.bad]\n"
                                              "  node %a : f32[4] = tiny.add.Tensor %x, %y\n"
                                              "  from module a.b, node n of m.pt2\n"
                                              "  in stage decompose (train.yaml:7)\n"
                                              "  hint: mend it\n");
  assert_int_equal(w.ctx.n_diags, 1);
  world_deinit(&w);
}

/* ---- a property: any sequence of edits is undone ---- */
static uint32_t seed_state;
static uint32_t below(uint32_t n) {
  seed_state = seed_state * 1664525u + 1013904223u;
  return n ? (seed_state >> 8) % n : 0;
}

static void random_edit(fixture_t *w) {
  aot_prog_t *p = w->p;
  aot_value_t v = {below(aoth_graph_n_values(p) + 2)}, u = {below(aoth_graph_n_values(p) + 1)}, made;
  aot_node_t n = {below(aoth_graph_n_nodes(p) + 1)}, before = {below(4) ? AOT_NO_ID : below(aoth_graph_n_nodes(p))};
  aot_graph_t g = {below(aoth_graph_n_graphs(p))}, made_graph;
  const int64_t sizes[2] = {below(5), AOT_DIM_SYM + below(3)};
  aot_type_t t = f32_type(2, sizes);
  uint32_t ids[3] = {v.id, u.id, v.id};
  aot_arg_t args[2];
  int64_t dim;
  switch (below(20)) {
    case 0: aoth_edit_graph_create(p, 1 + (int32_t)below(5), aot_str("g"), &made_graph); break;
    case 1:
      if (!below(6)) aoth_edit_graph_erase(p, g);
      break;
    case 2: aoth_edit_input_add(p, g, AOT_ROLE_SEED, below(9), &t, aot_str(below(2) ? "in" : ""), &made); break;
    case 3: aoth_edit_input_erase(p, g, below(4)); break;
    case 4: aoth_edit_output_add(p, g, AOT_ROLE_USER_OUTPUT, below(9), v, aot_str("o")); break;
    case 5: aoth_edit_output_set(p, g, below(4), v); break;
    case 6:
      if (!below(4)) aoth_edit_outputs_clear(p, g);
      break;
    case 7: aoth_edit_node_erase(p, n); break;
    case 8: aoth_edit_operand_set(p, n, below(4), v); break;
    case 9:
      args[0] = aot_arg_values(ids, below(4));
      aoth_edit_arg_set(p, n, below(2), &args[0]);
      break;
    case 10:
      args[0] = aot_arg_int(below(9));
      aoth_edit_arg_set(p, n, below(3), &args[0]);
      break;
    case 11: aoth_edit_uses_replace(p, v, u); break;
    case 12: aoth_edit_type_set(p, v, &t); break;
    case 13: aoth_edit_flags_set(p, n, below(64)); break;
    case 14: aoth_edit_name_set(p, v, aot_str(below(2) ? "name" : "other")); break;
    case 15:
      aoth_edit_dim_make(p, AOT_EXPR_ADD + (int32_t)below(12), AOT_DIM_SYM + below(3), 1 + below(6), 1, &dim);
      break;
    case 16: {
      const aot_symbol_info_t s = {.struct_size = sizeof s, .name = aot_str("t"), .min = 1, .max = 9, .hint = 2};
      aoth_edit_symbol_create(p, &s, &dim);
      break;
    }
    case 17: {
      const aot_origin_info_t o = {
          .struct_size = sizeof o,
          .line = below(3),
          .node_name = aot_str("k"),
          .parent = {below(2)},
      };
      const aot_rule_t r = {.kind = AOT_RULE_SAME_INPUT, .a = below(3)};
      const aot_leaf_info_t l = {
          .struct_size = sizeof l, .role = below(2) ? AOT_ROLE_BUFFER : AOT_ROLE_PARAMETER, .type = t};
      aot_origin_t origin;
      aot_leaf_t leaf;
      aoth_edit_origin_create(p, &o, &origin);
      aoth_edit_rule_add(p, &r);
      aoth_edit_leaf_create(p, &l, &leaf);
      aoth_edit_leaf_part(p, (aot_leaf_t){below(aoth_graph_n_leaves(p) + 1)}, &t, NULL, 0);
      break;
    }
    default: {
      int cat = (int)below(2);
      args[0] = cat ? aot_arg_values(ids, 1 + below(3)) : aot_arg_value(v);
      args[1] = cat ? aot_arg_int(0) : aot_arg_value(u);
      const aot_node_spec_t s = {
          .struct_size = sizeof s,
          .op = tiny_op(w, cat ? "tiny.cat.default" : "tiny.add.Tensor"),
          .n_args = 2,
          .args = args,
          .n_types = below(2),
          .types = &t,
          .origin = aot_no_origin(),
      };
      aoth_edit_node_create(p, g, &s, before, &n);
    }
  }
}

/* What printing does not show: ids, and the order of use lists. */
static void print_internals(fixture_t *w, kit_text_t *out) {
  aot_prog_t *p = w->p;
  aot_node_t users[64];
  kit_text_f(out, "%u %u %u %u %u %u\n", aoth_graph_n_graphs(p), aoth_graph_n_nodes(p), aoth_graph_n_values(p),
             aoth_graph_n_symbols(p), aoth_exprs_count(p), aoth_graph_n_leaves(p));
  for (aot_value_t v = {1}; v.id < aoth_graph_n_values(p); v.id++) {
    uint32_t n = aoth_graph_users(p, v, users, 64);
    kit_text_f(out, "%u:%u/%u@%u", v.id, aoth_graph_n_uses(p, v), aoth_graph_value_index(p, v),
               aoth_graph_value_graph(p, v).id);
    for (uint32_t i = 0; i < n; i++) kit_text_f(out, " %u", users[i].id);
    kit_text_z(out, "\n");
  }
  aoth_print(p, out);
}

static void random_edits_are_undone(void **state) {
  fixture_t w;
  (void)state;
  seed_state = 42;
  begin(&w);
  aoth_sink_min(w.sink, AOT_SEVERITY_ERROR + 1);
  for (int round = 0; round < 150; round++) {
    kit_text_t before = {0}, after = {0};
    print_internals(&w, &before);
    aoth_journal_begin(w.p);
    for (uint32_t k = 1 + below(120); k; k--) random_edit(&w);
    if (round % 5 == 4) { /* the program moves on now and then */
      aoth_journal_commit(w.p);
    } else {
      aoth_journal_undo(w.p);
      print_internals(&w, &after);
      assert_string_equal(before.data, after.data);
    }
    kit_text_deinit(&before);
    kit_text_deinit(&after);
    if (round % 30 == 29) { /* not too large */
      world_reset(&w);
      assert_int_equal(world_parse(&w, base_text), AOT_OK);
      aoth_sink_min(w.sink, AOT_SEVERITY_ERROR + 1);
    }
  }
  world_deinit(&w);
}

/* ---- edits as data ---- */
static void assert_same(fixture_t *w, const kit_text_t *text, aoth_digest_t digest) {
  kit_text_t now = {0};
  const aoth_digest_t d = aoth_prog_digest(w->p);
  print_internals(w, &now);
  assert_string_equal(now.data, text->data);
  assert_true(d.lo == digest.lo && d.hi == digest.hi);
  kit_text_deinit(&now);
}

/* Out of the program, which is then as before; back into it; and into another one that is as it was before: ids, orders
 * of use lists, dead rows and all. */
static void random_edits_are_made_again(void **state) {
  fixture_t w, other;
  (void)state;
  seed_state = 17;
  for (int round = 0; round < 100; round++) {
    kit_text_t before = {0}, after = {0};
    aoth_edits_t edits;
    begin(&w);
    begin(&other);
    aoth_sink_min(w.sink, AOT_SEVERITY_ERROR + 1);
    print_internals(&w, &before);
    const aoth_digest_t d_before = aoth_prog_digest(w.p);
    assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
    for (uint32_t k = 1 + below(150); k; k--) random_edit(&w);
    if (round % 3 == 0) { /* what was tried and undone leaves no row */
      assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
      for (uint32_t k = below(30); k; k--) random_edit(&w);
      aoth_journal_undo(w.p);
    }
    const uint64_t n = aoth_journal_count(w.p);
    print_internals(&w, &after);
    const aoth_digest_t d_after = aoth_prog_digest(w.p);
    assert_int_equal(aoth_edits_take(w.p, &edits), AOT_OK);
    assert_int_equal(edits.n, n);
    assert_same(&w, &before, d_before);
    assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
    assert_int_equal(aoth_edits_replay(w.p, &edits), AOT_OK);
    assert_int_equal(aoth_journal_count(w.p), n); /* the same journal, too: it is undone again */
    assert_same(&w, &after, d_after);
    aoth_journal_undo(w.p);
    assert_same(&w, &before, d_before);
    world_deinit(&w); /* the rows need nothing of it */
    assert_int_equal(aoth_edits_replay(other.p, &edits), AOT_OK);
    assert_same(&other, &after, d_after);
    aoth_edits_deinit(&edits);
    kit_text_deinit(&before);
    kit_text_deinit(&after);
    world_deinit(&other);
  }
}

/* Every kind of edit, those that random_edit leaves out among them. */
/* A guard, what it says of sums, and the quotient that it makes are undone, and made again. */
static void guards_are_made_again(void **state) {
  const aot_symbol_info_t s = {.struct_size = sizeof s, .name = AOT_STR_INIT("q"), .min = 2, .max = 90, .hint = 4};
  fixture_t w;
  aoth_edits_t edits;
  int64_t q, even, half;
  (void)state;
  world_init(&w);
  assert_int_equal(aoth_edit_symbol_create(w.p, &s, &q), AOT_OK);
  const aoth_digest_t before = aoth_prog_digest(w.p);
  assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MOD, q, 2, 0, &even), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_EQ, even, 0, 0, &even), AOT_OK);
  const aot_guard_info_t g = {.struct_size = sizeof g, .condition = even, .text = AOT_STR_INIT("q % 2 == 0")};
  assert_int_equal(aoth_edit_guard_add(w.p, &g), AOT_OK);
  const aoth_digest_t after = aoth_prog_digest(w.p);
  assert_int_equal(aoth_edits_take(w.p, &edits), AOT_OK);
  assert_int_equal(aoth_prog_digest(w.p).lo, before.lo);
  assert_int_equal(aoth_graph_n_guards(w.p), 0);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_FLOORDIV, q, 2, 0, &half), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MUL, half, 2, 0, &half), AOT_OK);
  assert_int_not_equal(half, q); /* nothing says so now */
  world_reset(&w);
  assert_int_equal(aoth_edit_symbol_create(w.p, &s, &q), AOT_OK);
  assert_int_equal(aoth_edits_replay(w.p, &edits), AOT_OK);
  assert_int_equal(aoth_prog_digest(w.p).lo, after.lo);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_FLOORDIV, q, 2, 0, &half), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MUL, half, 2, 0, &half), AOT_OK);
  assert_int_equal(half, q);
  aoth_edits_deinit(&edits);
  world_deinit(&w);
}

static void each_edit_is_made_again(void **state) {
  fixture_t w;
  kit_text_t after = {0};
  aoth_edits_t edits;
  (void)state;
  begin(&w);
  const int64_t sizes[] = {3, 5}, strides[] = {1, 3};
  aot_graph_t f = forward(&w), g;
  aot_value_t v, a = value_named(&w, "a"), x = value_named(&w, "x");
  aot_leaf_t leaf;
  aot_origin_t origin;
  aot_encoding_t encoding;
  int64_t symbol, dim;
  const aot_str_t names[] = {AOT_STR_INIT("state"), AOT_STR_INIT("tied")};
  const float data[15] = {1, 2, 3};
  aot_type_t t = f32_type(2, sizes);
  t.strides = strides;
  const aot_leaf_info_t l = {.struct_size = sizeof l,
                             .role = AOT_ROLE_STATE,
                             .n_names = 2,
                             .names = names,
                             .type = t,
                             .data = data,
                             .nbytes = 60};
  const aot_rule_t rule = {.kind = AOT_RULE_VIEW_INPUT, .a = 0, .b = 1, .rank = 2, .sizes = sizes, .strides = strides};
  const aot_origin_info_t o = {.struct_size = sizeof o, .line = 9, .source_file = AOT_STR_INIT("m.py"), .parent = {1}};
  const aot_symbol_info_t s = {.struct_size = sizeof s, .name = AOT_STR_INIT("q"), .min = 2, .max = 9, .hint = 3};
  const aot_encoding_info_t e = {.struct_size = sizeof e, .name = AOT_STR_INIT("v.t"), .value = AOT_STR_INIT("x\0y")};
  assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
  assert_int_equal(aoth_edit_symbol_create(w.p, &s, &symbol), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MUL, symbol, 7, 0, &dim), AOT_OK);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_FLOORDIV, dim, 2, 0, &dim), AOT_OK);
  assert_int_equal(aoth_edit_encoding_create(w.p, &e, &encoding), AOT_OK);
  assert_int_equal(aoth_edit_leaf_create(w.p, &l, &leaf), AOT_OK);
  assert_int_equal(aoth_edit_rule_add(w.p, &rule), AOT_OK);
  assert_int_equal(aoth_edit_origin_create(w.p, &o, &origin), AOT_OK);
  t.encoding = encoding;
  t.sizes = &dim;
  t.rank = 1;
  t.strides = NULL;
  assert_int_equal(aoth_edit_type_set(w.p, a, &t), AOT_OK);
  assert_int_equal(aoth_edit_graph_create(w.p, AOT_GRAPH_REGION, aot_str("r"), &g), AOT_OK);
  assert_int_equal(aoth_edit_input_add(w.p, g, AOT_ROLE_REGION, 0, &t, aot_str("in"), &v), AOT_OK);
  assert_int_equal(aoth_edit_output_add(w.p, g, AOT_ROLE_REGION, 0, v, aot_str("o")), AOT_OK);
  assert_int_equal(aoth_edit_outputs_clear(w.p, g), AOT_OK);
  assert_int_equal(aoth_edit_input_erase(w.p, g, 0), AOT_OK);
  assert_int_equal(aoth_edit_graph_erase(w.p, g), AOT_OK);
  assert_int_equal(aoth_edit_name_set(w.p, x, aot_str("other name")), AOT_OK);
  assert_int_equal(aoth_edit_flags_set(w.p, node_named(&w, "b"), AOT_NODE_MUST_SAVE), AOT_OK);
  assert_int_equal(aoth_edit_note(w.p, node_named(&w, "b"), aot_str("why")), AOT_OK);
  assert_int_equal(aoth_edit_output_set(w.p, f, 0, x), AOT_OK);
  aot_arg_t one = aot_arg_int(1);
  assert_int_equal(aoth_edit_arg_set(w.p, node_named(&w, "b"), 1, &one), AOT_OK);
  print_internals(&w, &after);
  const aoth_digest_t digest = aoth_prog_digest(w.p);
  assert_int_equal(aoth_edits_take(w.p, &edits), AOT_OK);
  assert_int_equal(aoth_edits_replay(w.p, &edits), AOT_OK);
  assert_same(&w, &after, digest);
  assert_int_equal(aoth_edit_flags_set(w.p, node_named(&w, "b"), 0), AOT_OK);
  assert_int_not_equal(aoth_prog_digest(w.p).lo, digest.lo);
  aoth_sink_min(w.sink, AOT_SEVERITY_ERROR);
  assert_int_equal(aoth_edits_replay(w.p, &edits), AOT_E_PRECONDITION); /* not as it was before */
  assert_non_null(strstr(aoth_sink_text(w.sink), "this is another program"));
  for (uint32_t kind = EDIT_GRAPH_CREATE; kind <= EDIT_GUARD_ADD; kind++)
    assert_string_not_equal(aoth_edit_name(kind), "?");
  assert_string_equal(aoth_edit_name(EDIT_GUARD_ADD + 1), "?");
  aoth_edits_deinit(&edits);
  kit_text_deinit(&after);
  world_deinit(&w);
}

/* ---- no memory ---- */
/* The linker sends every allocation of this test here: number `failing` of them, counted from 1, finds no memory. */
static uint32_t n_allocations, failing;

static int is_refused(void) { return ++n_allocations == failing; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_malloc(size_t size) { return is_refused() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return is_refused() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *at, size_t size) { return is_refused() ? NULL : __real_realloc(at, size); }

typedef struct edited {
  kit_text_t before, made, undone;
  aot_status_t begun;
  int is_whole;
  uint32_t n_allocations;
} edited_t;

/* Two hundred edits by someone who looks at no status, while allocation n_fail finds no memory. */
static void edit_without_looking(uint32_t n_fail, edited_t *out) {
  fixture_t w;
  memset(out, 0, sizeof *out);
  seed_state = 11;
  begin(&w);
  print_internals(&w, &out->before);
  n_allocations = 0;
  failing = n_fail;
  out->begun = aoth_journal_begin(w.p);
  for (uint32_t k = 0; k < 200 && out->begun == AOT_OK; k++) random_edit(&w);
  failing = 0;
  out->n_allocations = n_allocations;
  out->is_whole = aoth_journal_is_whole(w.p);
  print_internals(&w, &out->made);
  if (out->begun == AOT_OK) aoth_journal_undo(w.p);
  print_internals(&w, &out->undone);
  world_deinit(&w);
}

static void edited_deinit(edited_t *e) {
  kit_text_deinit(&e->before);
  kit_text_deinit(&e->made);
  kit_text_deinit(&e->undone);
}

/* Whichever allocation fails: all edits are undone, and either the journal says that it is not whole or nothing was
 * lost. */
static void an_edit_without_memory_is_not_forgotten(void **state) {
  (void)state;
  edited_t all, one;
  uint32_t n_told = 0;
  edit_without_looking(0, &all);
  assert_true(all.is_whole && all.begun == AOT_OK);
  for (uint32_t n = 1; n <= all.n_allocations; n++) {
    edit_without_looking(n, &one);
    assert_string_equal(one.before.data, one.undone.data);
    if (one.is_whole && strcmp(one.made.data, all.made.data) != 0)
      fail_msg("allocation %u of %u failed, an edit is missing, and the journal counts as whole", n, all.n_allocations);
    n_told += !one.is_whole;
    edited_deinit(&one);
  }
  assert_true(n_told > 10); /* most of the others are messages */
  edited_deinit(&all);
}

static aot_status_t add_cat(fixture_t *w, aot_graph_t graph, int64_t dim, aot_node_t before) {
  const uint32_t x = value_named(w, "x").id;
  const aot_arg_t args[2] = {{.kind = AOT_ARG_VALUES, .n = 1, .u = {.ids = &x}}, aot_arg_int(dim)};
  const aot_node_spec_t s = {.struct_size = sizeof s, .op = tiny_op(w, "tiny.cat.default"), .n_args = 2, .args = args};
  aot_node_t made;
  return aoth_edit_node_create(w->p, graph, &s, before, &made);
}

/* A node that cannot be made is named by its operator and arguments, and by the origin that it would have had: of the
 * node before which it was to be inserted, or of the node that an opset decomposes. */
static void refused_nodes_are_located(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  const aot_node_t a = node_named(&w, "a");
  w.ctx.stage = "dense";
  assert_int_equal(add_cat(&w, forward(&w), 5, a), AOT_E_INVALID);
  assert_string_equal(aoth_sink_text(w.sink), "m.py:3: error: cat has no such dimension [tiny.infer]\n"
                                              "  node tiny.cat.default [%x], 5\n"
                                              "  from module a.b, node n\n"
                                              "  in stage dense\n");
  assert_null(w.p->making);
  const uint32_t x = value_named(&w, "x").id;
  const aot_arg_t args[2] = {{.kind = AOT_ARG_VALUES, .n = 1, .u = {.ids = &x}}, aot_arg_int(7)};
  const aot_type_sink_t none = {.head = {.struct_size = sizeof none}};
  assert_int_equal(aoth_edit_infer(w.p, tiny_op(&w, "tiny.cat.default"), args, 2, &none), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(w.sink), "error: cat has no such dimension [tiny.infer]\n"
                                                 "  node tiny.cat.default [%x], 7\n"));
  world_deinit(&w);
}

/* Edits may break SSA order, which the verifier says; the lists under them stay whole. */
static void random_edits_keep_lists_whole(void **state) {
  fixture_t w;
  (void)state;
  seed_state = 7;
  for (int round = 0; round < 40; round++) {
    begin(&w);
    for (int k = 0; k < 200; k++) random_edit(&w);
    aoth_verify(w.p, 0);
    const char *said = aoth_sink_text(w.sink);
    assert_null(strstr(said, "verify.uses"));
    assert_null(strstr(said, "verify.order"));
    assert_null(strstr(said, "verify.dead-operand"));
    assert_null(strstr(said, "verify.arguments"));
    world_deinit(&w);
  }
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_get_defaults_types_and_origin), cmocka_unit_test(equal_types_share_their_arrays),
      cmocka_unit_test(uses_follow_every_edit),              cmocka_unit_test(bad_edits_change_nothing),
      cmocka_unit_test(erased_things_are_stale), cmocka_unit_test(zero_names_nothing),
                  cmocka_unit_test(answers_fit_the_callers_struct),
      cmocka_unit_test(encodings_are_interned), cmocka_unit_test(opsets_are_asked),
                         cmocka_unit_test(undo_takes_ids_back),
      cmocka_unit_test(journals_nest),                       cmocka_unit_test(the_journal_prints_each_edit),
      cmocka_unit_test(contracts_are_checked),               cmocka_unit_test(complaints_point_home),
      cmocka_unit_test(random_edits_are_made_again),         cmocka_unit_test(guards_are_made_again), cmocka_unit_test(each_edit_is_made_again),
      cmocka_unit_test(random_edits_are_undone),             cmocka_unit_test(an_edit_without_memory_is_not_forgotten),
      cmocka_unit_test(random_edits_keep_lists_whole), cmocka_unit_test(refused_nodes_are_located)};
  /* clang-format on */
  return cmocka_run_group_tests_name("edits", tests, NULL, NULL);
}
