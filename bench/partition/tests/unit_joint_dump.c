/* The reader of dumped joint graphs: what it makes of one, what it says of a damaged one, and that none makes it
 * crash. */
#include "joint_dump.h"
#include "kit/base/splitmix.h"

#include "partition-mincut/mincut.h"
#include <aot/graph.h>
#include <aot/opset.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A parameter, an input, a tangent; split gives a tuple of two; the second element is tagged. */
static const char sample[] =
    "{\"num_fwd_outputs\": 1, \"nodes\": [\n"
    "[\"primals_1\", \"placeholder\", \"primals_1\", [], [\"float32\", [4, 2], [2, 1]], null],\n"
    "[\"primals_2\", \"placeholder\", \"primals_2\", [], [\"bfloat16\", [4, 2], [2, 1]], null],\n"
    "[\"tangents_1\", \"placeholder\", \"tangents_1\", [], [\"float32\", [2, 2], [2, 1]], null],\n"
    "[\"mm\", \"call_function\", \"aten.mm.default\", [0, 1], [\"float32\", [4, 2], [2, 1]], null],\n"
    "[\"split\", \"call_function\", \"aten.split.Tensor\", [3], null, null],\n"
    "[\"a\", \"call_function\", \"<built-in function getitem>\", [4], [\"float32\", [2, 2], [2, 1]], null],\n"
    "[\"b\", \"call_function\", \"<built-in function getitem>\", [4], [\"float32\", [1, 2], [2, 1]], \"MUST_SAVE\"],\n"
    "[\"mine\", \"call_function\", \"mylib.mine.default\", [5, 6], [\"float32\", [2, 2], [2, 1]], 2],\n"
    "[\"mul\", \"call_function\", \"aten.mul.Tensor\", [2, 7], [\"float32\", [2, 2], [2, 1]], null],\n"
    "[\"output\", \"output\", \"output\", [7, 8], null, null]]}\n";

static const char *const dynamic[] = {"primals_2"};
static const mc_rules_t rules = {
    .operators = MC_PYTORCH,
    .ban_expensive = 1,
    .ban_materialized = 1,
    .ban_reductions = 1,
    .ban_far_apart = 1,
    .ban_long_chains = 1,
    .free_static_inputs = 1,
    .double_fused = 1,
    .max_distance = 1000,
    .distance_base = 1.1,
};

static void a_dump_becomes_plain_arrays(void **state) {
  (void)state;
  jd_dump_t d;
  char error[JD_TEXT] = "";
  if (jd_parse("sample", sample, strlen(sample), dynamic, 1, &d, error) != 0) fail_msg("%s", error);
  const jg_joint_t *j = &d.joint;
  assert_int_equal(j->n_inputs, 3);
  assert_int_equal(j->n_nodes, 4); /* mm, split, mine, mul */
  assert_int_equal(j->n_values, 3 + 1 + 2 + 1 + 1);
  assert_int_equal(j->input_kind[0], JG_INPUT_STATIC);
  assert_int_equal(j->input_kind[1], JG_INPUT_DYNAMIC);
  assert_int_equal(j->input_kind[2], JG_INPUT_TANGENT);
  assert_int_equal(j->nbytes[1], 16);
  assert_int_equal(j->result_begin[2] - j->result_begin[1], 2); /* split has two results */
  assert_int_equal(j->nbytes[4], 16);
  assert_int_equal(j->nbytes[5], 8);
  assert_int_equal(j->op_flags[0], AOT_OP_HEAVY);
  assert_int_equal(j->op_flags[1], AOT_OP_VIEW);
  assert_int_equal(j->op_flags[2], 0); /* in no list */
  assert_int_equal(j->node_flags[2], AOT_NODE_MUST_RECOMPUTE);
  assert_true(j->late[3] && !j->late[2] && j->early[2]);
  assert_int_equal(d.row_of_node[3], 8);
  assert_int_equal(j->n_forward_outputs, 1);
  assert_int_equal(j->n_gradients, 1);
  jd_deinit(&d);
}

/* Row 2 is computed a second time (3), and what follows from it (4, 5); 6 and 7 take apart one tuple, 8 and 9 its
 * equal. */
static const char repeated[] =
    "{\"num_fwd_outputs\": 1, %s\"nodes\": [\n"
    "[\"primals_1\", \"placeholder\", \"primals_1\", [], [\"float32\", [4], [1]], null],\n"
    "[\"tangents_1\", \"placeholder\", \"tangents_1\", [], [\"float32\", [4], [1]], null],\n"
    "[\"a\", \"call_function\", \"%s\", [0], [\"float32\", [4], [1]], null],\n"
    "[\"b\", \"call_function\", \"%s\", [0], [\"%s\", [4], [1]], null],\n"
    "[\"s\", \"call_function\", \"aten.split.Tensor\", [2], null, null],\n"
    "[\"t\", \"call_function\", \"aten.split.Tensor\", [3], null, null],\n"
    "[\"s0\", \"call_function\", \"<built-in function getitem>\", [4], [\"float32\", [2], [1]], null],\n"
    "[\"s1\", \"call_function\", \"<built-in function getitem>\", [4], [\"float32\", [2], [1]], null],\n"
    "[\"t0\", \"call_function\", \"<built-in function getitem>\", [5], [\"float32\", [2], [1]], null],\n"
    "[\"t1\", \"call_function\", \"<built-in function getitem>\", [5], [\"float32\", [2], [1]], null],\n"
    "[\"p\", \"call_function\", \"aten.mul.Tensor\", [6, 7], [\"float32\", [2], [1]], null],\n"
    "[\"q\", \"call_function\", \"aten.add.Tensor\", [8, 9, 1], [\"float32\", [2], [1]], null],\n"
    "[\"output\", \"output\", \"output\", [%s, 11], null, null]]}\n";

typedef struct repetition {
  const char *merged, *first, *second, *dtype, *output;
  uint32_t n_nodes; /* a, s, p, q, and what is not merged with them */
} repetition_t;

static const repetition_t repetitions[] = {
    {"", "aten.exp.default", "aten.exp.default", "float32", "10", 4},
    {"\"merged\": false, ", "aten.exp.default", "aten.exp.default", "float32", "10", 4},
    {"\"merged\": true, ", "aten.exp.default", "aten.exp.default", "float32", "10", 6},
    {"", "aten.exp.default", "aten.cos.default", "float32", "10", 6},
    {"", "aten.exp.default", "aten.exp.default", "float64", "10", 6},
    {"", "aten.rand_like.default", "aten.rand_like.default", "float32", "10", 6},
    {"", "aten.slice.Tensor", "aten.slice.Tensor", "float32", "10", 6},
    {"", "aten.exp.default", "aten.exp.default", "float32", "10, 8", 6}, /* an output shares the memory of b */
};

static void what_is_computed_twice_is_merged_as_pytorch_does(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof repetitions / sizeof *repetitions; i++) {
    const repetition_t *p = &repetitions[i];
    char text[2 * sizeof repeated], error[JD_TEXT] = "";
    jd_dump_t d;
    snprintf(text, sizeof text, repeated, p->merged, p->first, p->second, p->dtype, p->output);
    if (jd_parse("repeated", text, strlen(text), NULL, 0, &d, error) != 0) fail_msg("%s", error);
    if (d.joint.n_nodes != p->n_nodes)
      fail_msg("repetition %u: %u nodes, expected %u", (unsigned)i, d.joint.n_nodes, p->n_nodes);
    const jg_joint_t *j = &d.joint;
    const uint32_t q = j->n_nodes - 1, p_node = q - 1; /* both read the same two pieces, in order */
    if (p->n_nodes == 4)
      for (uint32_t k = 0; k < 2; k++)
        assert_int_equal(j->operands[j->operand_begin[q] + k], j->operands[j->operand_begin[p_node] + k]);
    jd_deinit(&d);
  }
}

typedef struct damage {
  const char *from, *to, *message;
} damage_t;

static const damage_t damages[] = {
    {"\"nodes\": [\n", "\"nodes\": [\n[1],", "row 0 (no name): a row is a list of name, kind"},
    {"num_fwd_outputs\": 1", "num_fwd_outputs\": 1, \"merged\": 1", "merged is neither true nor false"},
    {"num_fwd_outputs\": 1", "num_fwd_outputs\": -1", "num_fwd_outputs is not a count"},
    {"num_fwd_outputs\": 1", "num_fwd_outputs\": 9", "num_fwd_outputs is 9, but the output row lists 2 values"},
    {"num_fwd_outputs\": 1", "num_fwd_outputs\": 2", "row 8 (mul): a forward output depends on a tangent"},
    {"\"placeholder\", \"primals_2\"", "\"module\", \"primals_2\"", "row 1 (primals_2): the kind is none of"},
    {"[0, 1]", "[0, 3]", "row 3 (mm): an input is not the number of an earlier row"},
    {"[0, 1]", "[0, -1]", "row 3 (mm): an input is not the number of an earlier row"},
    {"[0, 1]", "[0, \"1\"]", "row 3 (mm): an input is not the number of an earlier row"},
    {"bfloat16", "bfloat17", "row 1 (primals_2): no dtype is called so"},
    {"[4, 2], [2, 1]], null]", "[-4, 2], [2, 1]], null]", "row 0 (primals_1): a size is not a whole number"},
    {"[4, 2], [2, 1]], null]", "[4000000000, 4000000000], [2, 1]], null]",
     "row 0 (primals_1): the value takes more than 10^15"},
    {"MUST_SAVE", "MAY_SAVE", "row 6 (b): the recompute tag is none of"},
    {"], 2],", "], 4],", "row 7 (mine): the recompute tag is none of"},
    {"\"output\", \"output\", \"output\"", "\"output\", \"call_function\", \"output\"",
     "row 9 (output): the output row stands last"},
    {"\"mm\", \"call_function\"", "\"mm\", \"output\"", "row 3 (mm): the output row stands last"},
    {"[7, 8]", "[7, 8", "not JSON"},
    {"primals_2\", \"pl", "images\", \"pl", "no placeholder is called primals_2"},
};

static void a_damaged_dump_is_told_with_its_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    char text[2 * sizeof sample], error[JD_TEXT] = "";
    const char *at = strstr(sample, damages[i].from);
    jd_dump_t d;
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sample), sample, damages[i].to, at + strlen(damages[i].from));
    if (jd_parse("sample", text, strlen(text), dynamic, 1, &d, error) == 0)
      fail_msg("read in spite of %s", damages[i].to);
    if (strncmp(error, "sample: ", 8) != 0 || !strstr(error, damages[i].message))
      fail_msg("%s: %s", damages[i].message, error);
  }
}

/* Characters overwritten, cut out, put twice; digits most of all, so that many stay JSON. What is read can also be
 * divided. */
static void no_damage_makes_the_reader_crash(void **state) {
  (void)state;
  uint64_t seed = 5;
  uint32_t n_read = 0;
  for (int i = 0; i < 20000; i++) {
    char text[2 * sizeof sample], error[JD_TEXT] = "";
    size_t size = sizeof sample - 1;
    memcpy(text, sample, size);
    for (uint32_t k = 1 + kit_splitmix32(&seed) % 3; k > 0; k--) {
      size_t at = kit_splitmix32(&seed) % size;
      while (i % 4 && !(text[at] >= '0' && text[at] <= '9')) at = (at + 1) % size;
      text[at] = i % 4 ? (char)('0' + kit_splitmix32(&seed) % 10) : (char)(kit_splitmix32(&seed) % 256);
      if (i % 32 == 0) size = at + 1;
    }
    jd_dump_t d;
    if (jd_parse("fuzzed", text, size, NULL, 0, &d, error) != 0) {
      assert_int_equal(strncmp(error, "fuzzed: ", 8), 0);
      continue;
    }
    uint32_t saved[32], n_saved, bad;
    assert_true(d.joint.n_values <= 32);
    assert_true(mc_choose(&d.joint, &rules, saved, &n_saved, &bad) != -2);
    jd_deinit(&d);
    n_read++;
  }
  assert_true(n_read > 2000);
}

static void a_file_that_is_not_there_or_cut_short(void **state) {
  (void)state;
  jd_dump_t d;
  char error[JD_TEXT] = "";
  assert_int_equal(jd_read("no/such/file.json.gz", NULL, 0, &d, error), -1);
  assert_non_null(strstr(error, "no/such/file.json.gz: cannot be opened"));
  char path[] = "joint_dump_XXXXXX";
  FILE *f = fdopen(mkstemp(path), "wb");
  static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b};
  assert_non_null(f);
  fwrite(header, 1, sizeof header, f);
  fclose(f);
  assert_int_equal(jd_read(path, NULL, 0, &d, error), -1);
  remove(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dump_becomes_plain_arrays),
      cmocka_unit_test(what_is_computed_twice_is_merged_as_pytorch_does),
      cmocka_unit_test(a_damaged_dump_is_told_with_its_place),
      cmocka_unit_test(no_damage_makes_the_reader_crash),
      cmocka_unit_test(a_file_that_is_not_there_or_cut_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
