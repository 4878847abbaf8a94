/* The shape environment: equal expressions are equal numbers, ranges decide what they can, values come out right. */
#include "tiny_opset.h"
#include <aot/inline.h>
#include <ir/dim_order.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int64_t symbol(fixture_t *w, const char *name, int64_t min, int64_t max, int64_t hint) {
  const aot_symbol_info_t s = {.struct_size = sizeof s, .name = aot_str(name), .min = min, .max = max, .hint = hint};
  int64_t dim = 0;
  assert_int_equal(aoth_edit_symbol_create(w->p, &s, &dim), AOT_OK);
  return dim;
}

static int64_t make(fixture_t *w, int32_t op, int64_t a, int64_t b) {
  int64_t dim = -1;
  assert_int_equal(aoth_edit_dim_make(w->p, op, a, b, 0, &dim), AOT_OK);
  return dim;
}

static void expect(fixture_t *w, int64_t dim, const char *text) {
  kit_text_t t = {0};
  aoth_dim_print(w->p, dim, &t);
  assert_string_equal(t.data, text);
  kit_text_deinit(&t);
}

static void constants_fold(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  assert_int_equal(make(&w, AOT_EXPR_ADD, 2, 3), 5);
  assert_int_equal(make(&w, AOT_EXPR_SUB, 2, 3), -1);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, -7, 2), -4); /* towards minus infinity */
  assert_int_equal(make(&w, AOT_EXPR_MOD, -7, 2), 1);
  assert_int_equal(make(&w, AOT_EXPR_MOD, 7, -2), -1);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, INT64_MIN, 1), INT64_MIN);
  assert_int_equal(make(&w, AOT_EXPR_MOD, INT64_MIN, -1), 0);
  assert_int_equal(make(&w, AOT_EXPR_POW, 3, 4), 81);
  assert_int_equal(make(&w, AOT_EXPR_LE, 4, 4), 1);
  assert_int_equal(aoth_exprs_count(w.p), 1);
  world_deinit(&w);
}

static void equal_expressions_are_one(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  int64_t s = symbol(&w, "s", 1, 64, 8), t = symbol(&w, "t", 1, INT64_MAX, 3);
  int64_t st = make(&w, AOT_EXPR_ADD, s, t);
  assert_int_equal(st, make(&w, AOT_EXPR_ADD, t, s));
  assert_int_equal(make(&w, AOT_EXPR_MUL, 4, s), make(&w, AOT_EXPR_MUL, s, 4));
  assert_int_equal(make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, s, 4), 16), make(&w, AOT_EXPR_MUL, s, 64));
  assert_int_equal(make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_ADD, s, 4), -4), s);
  assert_int_equal(make(&w, AOT_EXPR_ADD, s, s), make(&w, AOT_EXPR_MUL, s, 2));
  assert_int_equal(make(&w, AOT_EXPR_SUB, make(&w, AOT_EXPR_MUL, s, 3), s), make(&w, AOT_EXPR_ADD, s, s));
  assert_int_equal(make(&w, AOT_EXPR_SUB, st, t), s);
  assert_int_equal(make(&w, AOT_EXPR_SUB, st, s), t);
  assert_int_equal(make(&w, AOT_EXPR_SUB, s, s), 0);
  assert_int_equal(make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_SUB, s, t), t), s);
  assert_int_equal(make(&w, AOT_EXPR_SUB, make(&w, AOT_EXPR_ADD, s, 5), make(&w, AOT_EXPR_ADD, s, 2)), 3);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, make(&w, AOT_EXPR_MUL, s, 12), 4), make(&w, AOT_EXPR_MUL, s, 3));
  assert_int_equal(make(&w, AOT_EXPR_MOD, make(&w, AOT_EXPR_MUL, s, 12), 4), 0);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, make(&w, AOT_EXPR_MUL, s, t), t), s);
  assert_int_equal(make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, s, 2), make(&w, AOT_EXPR_MUL, t, 3)),
                   make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, s, t), 6));
  expect(&w, make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_MUL, s, 2), 1), "s * 2 + 1");
  expect(&w, make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_ADD, s, -1), 2), "s * 2 - 2");
  expect(&w, make(&w, AOT_EXPR_SUB, 10, make(&w, AOT_EXPR_SUB, s, t)), "s * -1 + t + 10");
  /* strides as one writes them: s**2 * 4, s * (4 * s); of a slice, (s - 1) * 512 and 512 * s - 512 */
  const int64_t square = make(&w, AOT_EXPR_POW, s, 2);
  assert_int_equal(square, make(&w, AOT_EXPR_MUL, s, s));
  assert_int_equal(make(&w, AOT_EXPR_MUL, square, 4), make(&w, AOT_EXPR_MUL, s, make(&w, AOT_EXPR_MUL, 4, s)));
  assert_int_equal(make(&w, AOT_EXPR_MUL, square, t), make(&w, AOT_EXPR_MUL, s, make(&w, AOT_EXPR_MUL, t, s)));
  assert_int_equal(make(&w, AOT_EXPR_POW, make(&w, AOT_EXPR_MUL, s, 2), 3),
                   make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, s, 8), square));
  assert_int_equal(make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_SUB, s, 1), 512),
                   make(&w, AOT_EXPR_SUB, make(&w, AOT_EXPR_MUL, s, 512), 512));
  assert_int_equal(make(&w, AOT_EXPR_ADD, s, make(&w, AOT_EXPR_ADD, t, square)), make(&w, AOT_EXPR_ADD, st, square));
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_MUL, st, 6), 9), 3),
                   make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_MUL, st, 2), 3));
  assert_int_equal(make(&w, AOT_EXPR_MOD, make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_MUL, st, 6), -1), 3), 2);
  const int64_t volume = make(&w, AOT_EXPR_MUL, square, make(&w, AOT_EXPR_MUL, t, 6)),
                twice = make(&w, AOT_EXPR_MUL, s, 2);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, volume, twice), make(&w, AOT_EXPR_MUL, s, make(&w, AOT_EXPR_MUL, t, 3)));
  world_deinit(&w);
}

static void ranges_decide(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  int64_t s = symbol(&w, "s", 2, 64, 8), any = symbol(&w, "any", 0, INT64_MAX, 3);
  assert_int_equal(make(&w, AOT_EXPR_MAX, s, 1), s);
  assert_int_equal(make(&w, AOT_EXPR_MAX, s, 2), s);
  assert_int_equal(make(&w, AOT_EXPR_MIN, s, 100), s);
  assert_int_equal(make(&w, AOT_EXPR_MIN, s, 1), 1);
  /* ranges overlap, the difference is known */
  int64_t more = make(&w, AOT_EXPR_ADD, s, 5), twice = make(&w, AOT_EXPR_MUL, s, 2);
  assert_int_equal(make(&w, AOT_EXPR_MIN, more, s), s);
  assert_int_equal(make(&w, AOT_EXPR_MAX, s, more), more);
  assert_int_equal(make(&w, AOT_EXPR_MAX, twice, s), twice);
  assert_int_equal(make(&w, AOT_EXPR_MIN, make(&w, AOT_EXPR_ADD, any, -1), any), make(&w, AOT_EXPR_ADD, any, -1));
  assert_int_equal(make(&w, AOT_EXPR_LT, s, more), 1);
  assert_int_equal(make(&w, AOT_EXPR_EQ, s, more), 0);
  assert_true(AOT_DIM_IS_SYM(make(&w, AOT_EXPR_MIN, more, twice)) && make(&w, AOT_EXPR_MIN, more, twice) != twice);
  assert_int_equal(make(&w, AOT_EXPR_EQ, s, 1), 0);
  assert_int_equal(make(&w, AOT_EXPR_LT, s, 65), 1);
  assert_int_equal(make(&w, AOT_EXPR_LE, 65, s), 0);
  assert_int_equal(make(&w, AOT_EXPR_MOD, s, 65), s);
  assert_int_equal(make(&w, AOT_EXPR_FLOORDIV, s, 65), 0);
  assert_int_equal(make(&w, AOT_EXPR_LT, any, 0), 0);
  assert_true(AOT_DIM_IS_SYM(make(&w, AOT_EXPR_LT, any, 1)));
  assert_true(AOT_DIM_IS_SYM(make(&w, AOT_EXPR_EQ, s, 2)));
  assert_int_equal(make(&w, AOT_EXPR_LE, 0, make(&w, AOT_EXPR_MUL, any, any)), 1);
  world_deinit(&w);
}

static void what_is_no_number_is_refused(void **state) {
  fixture_t w;
  int64_t out;
  (void)state;
  world_init(&w);
  int64_t s = symbol(&w, "s", 1, 64, 8);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_FLOORDIV, 4, 0, 0, &out), AOT_E_RANGE);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MOD, s, 0, 0, &out), AOT_E_RANGE);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_MUL, INT64_MAX, 2, 0, &out), AOT_E_RANGE);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_ADD, AOT_DIM_SYM - 1, 1, 0, &out),
                   AOT_E_RANGE); /* would read as a symbol */
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_ADD, AOT_DIM_SYM + 5, 1, 0, &out), AOT_E_RANGE);
  /* expression 0 is nothing */
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_ADD, AOT_DIM_SYM, 1, 0, &out), AOT_E_RANGE);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_SYMBOL, 0, 0, 0, &out), AOT_E_RANGE);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_SUB + 1, 0, 0, 0, &out), AOT_E_RANGE);
  assert_int_equal(w.ctx.n_diags, 8);
  world_deinit(&w);
}

/* Python's integers, for comparison with the folded form. */
static int64_t reference(int32_t op, int64_t a, int64_t b) {
  int64_t q = b ? a / b : 0;
  if (b && a % b && (a < 0) != (b < 0)) q--;
  switch (op) {
    case AOT_EXPR_ADD: return a + b;
    case AOT_EXPR_SUB: return a - b;
    case AOT_EXPR_MUL: return a * b;
    case AOT_EXPR_FLOORDIV: return q;
    case AOT_EXPR_MOD: return b ? a - q * b : 0;
    case AOT_EXPR_MAX: return a > b ? a : b;
    case AOT_EXPR_MIN: return a < b ? a : b;
    case AOT_EXPR_EQ: return a == b;
    case AOT_EXPR_LT: return a < b;
    default: return a <= b;
  }
}

/* Random expressions keep their value for every choice of the symbols, whatever the rules did to them. */
static void simplification_keeps_the_value(void **state) {
  fixture_t w;
  uint32_t seed = 1;
  enum { N = 400, CHOICES = 5 };
  static const int64_t choices[CHOICES][3] = {{1, 0, -4}, {64, 9, 4}, {7, 3, 0}, {2, 1, -1}, {32, 8, 2}};
  int64_t dims[N], values[N][CHOICES];
  (void)state;
  world_init(&w);
  dims[0] = symbol(&w, "s", 1, 64, 8);
  dims[1] = symbol(&w, "t", 0, 9, 3);
  dims[2] = symbol(&w, "u", -4, 4, 0);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < CHOICES; k++) values[i][k] = choices[k][i];
  for (int i = 3; i < N; i++) {
#define RANDOM(n) ((seed = seed * 1664525u + 1013904223u), (seed >> 8) % (n))
    int32_t op = (int32_t)(AOT_EXPR_ADD + RANDOM(10));
    int a = (int)RANDOM((uint32_t)i), b = (int)RANDOM((uint32_t)i), constant = RANDOM(3) == 0;
    int64_t c = (int64_t)RANDOM(9) - 3;
    op = op == AOT_EXPR_WHERE ? AOT_EXPR_SUB : op;
    if ((op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) && (constant ? c == 0 : 0)) c = 4;
    if (op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) constant = 1, c = c == 0 ? 4 : c;
    if (op == AOT_EXPR_MUL) /* keep numbers small */
      for (int k = 0; k < CHOICES; k++)
        if (llabs(values[a][k]) > 1000000 || llabs(values[b][k]) > 1000000) op = AOT_EXPR_MIN;
    int swap = RANDOM(2) && op != AOT_EXPR_FLOORDIV && op != AOT_EXPR_MOD;
    int64_t left = dims[a], right = constant ? c : dims[b];
    dims[i] = swap ? make(&w, op, right, left) : make(&w, op, left, right);
    for (int k = 0; k < CHOICES; k++) {
      int64_t x = values[a][k], y = constant ? c : values[b][k];
      values[i][k] = swap ? reference(op, y, x) : reference(op, x, y);
      int64_t got = aoth_dim_eval(w.p, dims[i], choices[k], 3);
      if (got != values[i][k]) {
        kit_text_t t = {0};
        aoth_dim_print(w.p, dims[i], &t);
        print_message("%s at choice %d: %" PRId64 ", not %" PRId64 "\n", t.data, k, got, values[i][k]);
        kit_text_deinit(&t);
      }
      assert_int_equal(got, values[i][k]);
    }
  }
  int64_t *all = malloc(aoth_exprs_count(w.p) * sizeof *all);
  aoth_exprs_eval(w.p, choices[1], 3, all);
  for (int i = 0; i < N; i++)
    if (AOT_DIM_IS_SYM(dims[i])) assert_int_equal(all[AOT_DIM_EXPR(dims[i])], values[i][1]);
  free(all);
  world_deinit(&w);
}

static void hints_follow(void **state) {
  fixture_t w;
  int64_t dim;
  (void)state;
  world_init(&w);
  int64_t s = symbol(&w, "s", 1, 64, 8), t = symbol(&w, "t", 1, 64, 3);
  assert_int_equal(aoth_graph_dim_hint(w.p, make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_MUL, s, t), 1)), 25);
  assert_int_equal(aoth_edit_dim_make(w.p, AOT_EXPR_WHERE, make(&w, AOT_EXPR_LT, s, t), s, t, &dim), AOT_OK);
  assert_int_equal(aoth_graph_dim_hint(w.p, dim), 3);
  assert_int_equal(aoth_graph_dim_hint(w.p, 17), 17);
  aot_expr_info_t e;
  assert_int_equal(aoth_graph_expr_info(w.p, AOT_DIM_EXPR(dim), &e), AOT_OK);
  assert_int_equal(e.op, AOT_EXPR_WHERE);
  assert_int_equal(aoth_graph_expr_info(w.p, 99, &e), AOT_E_RANGE);
  world_deinit(&w);
}

static aot_status_t guard(fixture_t *w, int64_t condition, const char *text) {
  const aot_guard_info_t g = {.struct_size = sizeof g, .condition = condition, .text = aot_str(text)};
  return aoth_edit_guard_add(w->p, &g);
}

/* What guards make equal is one dimension: products, sums, quotients without a remainder. */
static void guards_make_dimensions_equal(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  const int64_t a = symbol(&w, "a", 2, INT64_MAX, 4), b = symbol(&w, "b", 2, INT64_MAX, 6),
                c = symbol(&w, "c", 2, INT64_MAX, 3), d = symbol(&w, "d", 2, INT64_MAX, 8),
                u = symbol(&w, "u", 0, 6, 2), v = symbol(&w, "v", 0, 6, 2), x = symbol(&w, "x", 0, 6, 2);
  const int64_t ab = make(&w, AOT_EXPR_MUL, a, b), cd = make(&w, AOT_EXPR_MUL, c, d);
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_EQ, ab, cd), "a*b == c*d"), AOT_OK);
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_EQ, make(&w, AOT_EXPR_MOD, a, 2), 0), "a % 2 == 0"), AOT_OK);
  const int64_t uvx = make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_ADD, u, v), x);
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_EQ, uvx, 6), "u + v + x == 6"), AOT_OK);
  assert_int_equal(make(&w, AOT_EXPR_MUL, a, b), make(&w, AOT_EXPR_MUL, d, c));
  assert_int_equal(make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, a, u), b),
                   make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_MUL, d, u), c));
  assert_int_equal(make(&w, AOT_EXPR_EQ, ab, cd), 1);
  assert_int_equal(make(&w, AOT_EXPR_LT, ab, cd), 0);
  assert_int_equal(make(&w, AOT_EXPR_MOD, a, 2), 0);
  assert_int_equal(make(&w, AOT_EXPR_MUL, make(&w, AOT_EXPR_FLOORDIV, a, 2), 2), a);
  assert_int_equal(make(&w, AOT_EXPR_ADD, make(&w, AOT_EXPR_ADD, x, u), v), 6);
  assert_int_equal(make(&w, AOT_EXPR_EQ, make(&w, AOT_EXPR_SUB, 6, u), make(&w, AOT_EXPR_ADD, v, x)), 1);
  expect(&w, make(&w, AOT_EXPR_EQ, make(&w, AOT_EXPR_ADD, u, v), 3), "u + v == 3"); /* undecided */
  world_deinit(&w);
}

/* Inequalities bound what they are about. */
static void guards_bound_differences(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  const int64_t s = symbol(&w, "s", 0, INT64_MAX, 8), u = symbol(&w, "u", 0, INT64_MAX, 2);
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_LE, u, s), "u <= s"), AOT_OK);
  assert_int_equal(make(&w, AOT_EXPR_LT, s, u), 0);
  assert_int_equal(make(&w, AOT_EXPR_MIN, u, s), u);
  assert_int_equal(make(&w, AOT_EXPR_LE, u, make(&w, AOT_EXPR_ADD, s, 3)), 1);
  expect(&w, make(&w, AOT_EXPR_LT, u, s), "u < s"); /* undecided */
  world_deinit(&w);
}

/* A conjunction says each of its parts; a negated comparison is one; disjunctions are only checked. */
static void guards_of_other_forms(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  const int64_t s = symbol(&w, "s", 0, INT64_MAX, 8), t = symbol(&w, "t", 0, INT64_MAX, 2);
  const int64_t both = make(&w, AOT_EXPR_MIN, make(&w, AOT_EXPR_EQ, s, make(&w, AOT_EXPR_ADD, t, 1)),
                            make(&w, AOT_EXPR_SUB, 1, make(&w, AOT_EXPR_LT, t, 3)));
  assert_int_equal(guard(&w, both, "s == t + 1 and not t < 3"), AOT_OK);
  assert_int_equal(make(&w, AOT_EXPR_EQ, s, make(&w, AOT_EXPR_ADD, t, 1)), 1);
  assert_int_equal(make(&w, AOT_EXPR_LE, 3, t), 1);
  assert_int_equal(make(&w, AOT_EXPR_LE, 4, s), 1);
  const int64_t either = make(&w, AOT_EXPR_MAX, make(&w, AOT_EXPR_LE, t, 5), make(&w, AOT_EXPR_EQ, t, 9));
  assert_int_equal(guard(&w, either, "t <= 5 or t == 9"), AOT_OK);
  expect(&w, make(&w, AOT_EXPR_LE, t, 5), "t <= 5");
  assert_int_equal(aoth_graph_n_guards(w.p), 2);
  /* one that always holds is none; one that contradicts others, or nothing satisfies, is refused and leaves nothing */
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_LT, t, s), "t < s"), AOT_OK);
  assert_int_equal(guard(&w, make(&w, AOT_EXPR_EQ, make(&w, AOT_EXPR_MUL, t, 2), 9), "2*t == 9"), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(w.sink), "no sizes satisfy the guard 2*t == 9"));
  assert_int_equal(guard(&w, 0, "false"), AOT_E_INVALID);
  assert_int_equal(aoth_graph_n_guards(w.p), 2);
  expect(&w, make(&w, AOT_EXPR_EQ, t, 7), "t == 7");
  world_deinit(&w);
}

static void leaf_of_size(fixture_t *w, int64_t size) {
  const aot_leaf_info_t l = {
      .struct_size = sizeof l,
      .role = AOT_ROLE_USER_INPUT,
      .type = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 1, .sizes = &size, .device = AOT_DEVICE_CPU}};
  aot_leaf_t leaf;
  assert_int_equal(aoth_edit_leaf_create(w->p, &l, &leaf), AOT_OK);
}

/* A hint decides only if its symbol is the size of a leaf, as long as that leaf exists. */
static void comparisons_have_three_answers(void **state) {
  fixture_t w;
  (void)state;
  world_init(&w);
  const int64_t s = symbol(&w, "s", 2, 64, 8), u = symbol(&w, "u", 0, 6, 3), v = symbol(&w, "v", 0, INT64_MAX, 3);
  assert_int_equal(aoth_journal_begin(w.p), AOT_OK);
  leaf_of_size(&w, s);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_EQ, s, 8), 1);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_LT, s, 8), 0);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_EQ, u, v), AOT_DIMS_UNKNOWN);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_EQ, u, 3), AOT_DIMS_UNKNOWN);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_LE, u, 6), 1); /* by its range */
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_EQ, u, 7), 0);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_LT, u, make(&w, AOT_EXPR_ADD, u, 1)), 1); /* by its form */
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_EQ, make(&w, AOT_EXPR_ADD, u, s), 11), AOT_DIMS_UNKNOWN);
  const uint32_t n = aoth_exprs_count(w.p);
  assert_int_equal(aoth_dims_decide(w.p, AOT_EXPR_LT, v, 99), AOT_DIMS_UNKNOWN);
  assert_int_equal(aoth_exprs_count(w.p), n);
  aoth_journal_undo(w.p);
  assert_int_equal(aoth_dim_is_unbacked(w.p, s), 1);
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(constants_fold),
                                     cmocka_unit_test(equal_expressions_are_one),
                                     cmocka_unit_test(guards_make_dimensions_equal),
                                     cmocka_unit_test(guards_bound_differences),
                                     cmocka_unit_test(guards_of_other_forms),
                                     cmocka_unit_test(ranges_decide),
                                     cmocka_unit_test(comparisons_have_three_answers),
                                     cmocka_unit_test(what_is_no_number_is_refused),
                                     cmocka_unit_test(simplification_keeps_the_value),
                                     cmocka_unit_test(hints_follow)};
  return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
