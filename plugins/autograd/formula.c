/* The formula interpreter: recursive descent over the text, emitting nodes as it reads; formula.h has the grammar.
 * Parts whose targets are not wanted are read with `live` off: the same path without emission. Recursion is bounded by
 * the nesting of formulas in rules.def. */
#include "formula.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_ARGS 16
#define MAX_TARGETS 4

typedef struct let {
  const char *name;
  size_t size;
  const char *text; /* where its expression starts */
  int done;
  em_x_t value;
} let_t;

typedef struct reader {
  em_t *a;
  const char *rule, *at;
  int live;    /* compute, or only read */
  em_x_t mask; /* of the part at hand */
  uint32_t n_targets;
  em_x_t results[MAX_TARGETS]; /* of the last operator call */
  let_t lets[AG_MAX_LETS];
  uint32_t n_lets;
} reader_t;

static em_x_t expr(reader_t *r);

/* ---- words ---- */

static void wrong(reader_t *r, const char *what) {
  em_fail(r->a, AOT_E_INVALID, "this is an error of the derivative rule", "%s at '%.24s' in the formula \"%s\"", what,
          r->at, r->rule);
}

static void blanks(reader_t *r) {
  while (*r->at == ' ') r->at++;
}

static int take(reader_t *r, char c) {
  blanks(r);
  if (*r->at != c) return 0;
  r->at++;
  blanks(r);
  return 1;
}

static void expect(reader_t *r, char c) {
  char what[] = "expected ' '";
  what[10] = c;
  if (!take(r, c)) wrong(r, what);
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* A name, dots included; its size. */
static size_t word(reader_t *r, const char **out) {
  blanks(r);
  *out = r->at;
  if (is_letter(*r->at))
    while (is_letter(*r->at) || is_digit(*r->at) || *r->at == '.') r->at++;
  return (size_t)(r->at - *out);
}

static int is_word(const char *name, size_t size, const char *text) {
  return strlen(text) == size && memcmp(name, text, size) == 0;
}

/* ---- functions ---- */

typedef em_x_t (*function_t)(em_t *a, uint32_t n, const em_x_t *x);

static em_x_t opt(uint32_t n, const em_x_t *x, uint32_t i) { return i < n ? x[i] : em_none(); }

static em_x_t f_where(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_where(a, x[0], x[1], x[2]);
}
static em_x_t f_pow(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_pow(a, x[0], x[1]);
}
static em_x_t f_eq(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_compare(a, "eq", x[0], x[1]);
}
static em_x_t f_gt(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_compare(a, "gt", x[0], x[1]);
}
static em_x_t f_ge(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_compare(a, "ge", x[0], x[1]);
}
static em_x_t f_lt(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_compare(a, "lt", x[0], x[1]);
}
static em_x_t f_le(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_compare(a, "le", x[0], x[1]);
}
static em_x_t f_zeros(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_zeros_like(a, x[0]);
}
static em_x_t f_like(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_reshape_like(a, x[0], x[1]);
}
static em_x_t f_dtype(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return aot_arg_dtype(ag_type(a, x[0]).dtype);
}
static em_x_t f_dense(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_contiguous(a, x[0]);
}
static em_x_t f_or(em_t *a, uint32_t n, const em_x_t *x) {
  (void)a;
  (void)n;
  return x[0].kind == AOT_ARG_NONE ? x[1] : x[0];
}

/* count(x [, dims]): elements of x, or of one group of a reduction over dims */
static em_x_t f_count(em_t *a, uint32_t n, const em_x_t *x) { return ag_extent(a, x[0], opt(n, x, 1)); }

/* unreduce(g, x [, dims [, keepdim]]) */
static em_x_t f_unreduce(em_t *a, uint32_t n, const em_x_t *x) {
  em_x_t keep = opt(n, x, 3);
  return ag_unreduce(a, x[0], x[1], opt(n, x, 2), keep.kind == AOT_ARG_BOOL && keep.u.i);
}

/* scatter_at(x, dim, index, g [, keepdim]) */
static em_x_t f_scatter_at(em_t *a, uint32_t n, const em_x_t *x) {
  em_x_t keep = opt(n, x, 4);
  return ag_scatter_at(a, x[0], x[1], x[2], x[3], keep.kind == AOT_ARG_BOOL && keep.u.i);
}

/* per(reduction, d): the derivative of a loss before its reduction, divided by the count for a mean */
static em_x_t f_per(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  if (ag_int(a, x[0], 1) != 1 || x[1].kind == AOT_ARG_NONE) return x[1];
  return ag_div(a, x[1], ag_extent(a, x[1], em_none()));
}

/* minus(ints): each with its sign changed */
static em_x_t f_minus(em_t *a, uint32_t n, const em_x_t *x) {
  int64_t out[2 * AOT_MAX_RANK];
  uint32_t i;
  (void)n;
  for (i = 0; i < x[0].n && i < 2 * AOT_MAX_RANK; i++) out[i] = ag_dim_op(a, AOT_EXPR_SUB, 0, x[0].u.ints[i]);
  return em_list(a, out, i);
}

/* inverse(dims, x): the permutation that undoes dims, of the rank of x */
static em_x_t f_inverse(em_t *a, uint32_t n, const em_x_t *x) {
  int64_t out[AOT_MAX_RANK] = {0};
  int32_t rank = ag_type(a, x[1]).rank;
  uint32_t i;
  (void)n;
  for (i = 0; i < x[0].n && i < AOT_MAX_RANK; i++) out[ag_dim(a, x[0].u.ints[i], rank)] = i;
  return em_list(a, out, x[0].n);
}

/* sizes(x [, n]): all of them, or the last n */
static em_x_t f_sizes(em_t *a, uint32_t n, const em_x_t *x) {
  ag_type_t t = ag_type(a, x[0]);
  uint32_t last = n > 1 ? (uint32_t)ag_int(a, x[1], 0) : (uint32_t)t.rank;
  return em_list(a, t.sizes + (uint32_t)t.rank - last, last);
}

/* as(g, x): g in the dtype of x */
static em_x_t f_as(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_cast(a, x[0], ag_type(a, x[1]).dtype);
}

/* wide(x): a half in float32, where rounding every step would cost too much */
static em_x_t f_wide(em_t *a, uint32_t n, const em_x_t *x) {
  (void)n;
  return ag_wide(a, x[0]);
}

/* size(x, d): one size as a number */
static em_x_t f_size(em_t *a, uint32_t n, const em_x_t *x) {
  ag_type_t t = ag_type(a, x[0]);
  (void)n;
  return em_i(t.rank ? t.sizes[ag_dim(a, ag_int(a, x[1], 0), t.rank)] : 1);
}

/* keep_scale(p, train): what dropout multiplies kept elements by */
static em_x_t f_keep_scale(em_t *a, uint32_t n, const em_x_t *x) {
  double p = ag_number(a, x[0], 0);
  int train = x[1].kind == AOT_ARG_NONE || x[1].u.i;
  (void)n;
  return em_f(!train ? 1 : p == 1 ? 0 : 1 / (1 - p));
}

static const struct {
  const char *name;
  uint32_t least, most; /* arguments */
  function_t call;
  /* clang-format off */
} FUNCTIONS[] = {
    {"where", 3, 3, f_where},       {"pow", 2, 2, f_pow},           {"eq", 2, 2, f_eq},
    {"gt", 2, 2, f_gt},             {"ge", 2, 2, f_ge},             {"lt", 2, 2, f_lt},
    {"le", 2, 2, f_le},             {"sizes", 1, 2, f_sizes},       {"zeros", 1, 1, f_zeros},
    {"like", 2, 2, f_like},         {"dtype", 1, 1, f_dtype},       {"or", 2, 2, f_or},
    {"count", 1, 2, f_count},       {"unreduce", 2, 4, f_unreduce}, {"scatter_at", 4, 5, f_scatter_at},
    {"per", 2, 2, f_per},           {"minus", 1, 1, f_minus},       {"inverse", 2, 2, f_inverse},
    {"size", 2, 2, f_size},         {"keep_scale", 2, 2, f_keep_scale}, {"as", 2, 2, f_as},
    {"dense", 1, 1, f_dense},       {"wide", 1, 1, f_wide},
};
/* clang-format on */

static em_x_t operator_call(reader_t *r, const char *name, size_t size, uint32_t n, const em_x_t *args) {
  char op[128];
  if (size >= sizeof op) {
    wrong(r, "operator name too long");
    return em_none();
  }
  memcpy(op, name, size);
  op[size] = '\0';
  ag_call_n(r->a, op, n, args, MAX_TARGETS, r->results);
  return r->results[0];
}

static em_x_t call(reader_t *r, const char *name, size_t size) {
  em_x_t args[MAX_ARGS];
  uint32_t n = 0;
  size_t i;
  if (!take(r, ')')) {
    do {
      if (n == MAX_ARGS) wrong(r, "too many arguments");
      if (r->a->status != AOT_OK) return em_none();
      args[n++] = expr(r);
    } while (take(r, ','));
    expect(r, ')');
  }
  for (i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
    if (!is_word(name, size, FUNCTIONS[i].name)) continue;
    if (n < FUNCTIONS[i].least || n > FUNCTIONS[i].most) wrong(r, "wrong number of arguments");
    return r->live && r->a->status == AOT_OK ? FUNCTIONS[i].call(r->a, n, args) : em_none();
  }
  return r->live ? operator_call(r, name, size, n, args) : em_none();
}

/* ---- names ---- */

static em_x_t shorthand(reader_t *r, let_t *l) {
  const char *back = r->at;
  if (!r->live) return em_none();
  if (!l->done) {
    r->at = l->text;
    l->value = expr(r);
    l->done = 1;
    r->at = back;
  }
  return l->value;
}

static em_x_t name_value(reader_t *r, const char *name, size_t size) {
  uint32_t i, k = size == 2 && is_digit(name[1]) ? (uint32_t)(name[1] - '0') : 0;
  for (i = 0; i < r->n_lets; i++)
    if (r->lets[i].size == size && memcmp(r->lets[i].name, name, size) == 0) return shorthand(r, &r->lets[i]);
  if ((i = ag_index(r->a, name, size)) != AG_NO_ARG) return r->live ? r->a->info.args[i] : em_none();
  if (*name == 'g' && (size == 1 || k || is_word(name, size, "g0"))) return r->live ? ag_g(r->a, k) : em_none();
  if (*name == 'y' && (size == 1 || k || is_word(name, size, "y0"))) return r->live ? ag_y(r->a, k) : em_none();
  if (is_word(name, size, "none")) return em_none();
  if (is_word(name, size, "true")) return em_b(1);
  if (is_word(name, size, "false")) return em_b(0);
  if (is_word(name, size, "mask")) return r->mask;
  wrong(r, "unknown name before");
  return em_none();
}

/* ---- expressions ---- */

static em_x_t number(reader_t *r) {
  char *end, *end_int;
  double f = strtod(r->at, &end);
  long long i = strtoll(r->at, &end_int, 10);
  r->at = end;
  return end == end_int ? em_i(i) : em_f(f);
}

/* 'sum' */
static em_x_t text(reader_t *r) {
  const char *from = r->at, *end = strchr(from, '\'');
  aot_str_t t = {from, end ? (uint64_t)(end - from) : 0};
  if (!end) wrong(r, "a text without end");
  else r->at = end + 1;
  return aot_arg_str(t);
}

static em_x_t factor(reader_t *r) {
  const char *name;
  size_t size;
  em_x_t x;
  if (take(r, '-')) {
    x = factor(r);
    return r->live ? ag_neg(r->a, x) : x;
  }
  if (take(r, '(')) {
    x = expr(r);
    expect(r, ')');
    return x;
  }
  if (is_digit(*r->at)) return number(r);
  if (*r->at == '\'') {
    r->at++;
    return text(r);
  }
  if ((size = word(r, &name)) == 0) {
    wrong(r, "expected an expression");
    return em_none();
  }
  return take(r, '(') ? call(r, name, size) : name_value(r, name, size);
}

static em_x_t term(reader_t *r) {
  em_x_t x = factor(r), y;
  for (;;) {
    blanks(r);
    if (r->a->status != AOT_OK || (*r->at != '*' && *r->at != '/')) return x;
    if (*r->at++ == '*') {
      y = factor(r);
      x = r->live ? ag_mul(r->a, x, y) : x;
    } else {
      y = factor(r);
      x = r->live ? ag_div(r->a, x, y) : x;
    }
  }
}

static em_x_t expr(reader_t *r) {
  em_x_t x = term(r), y;
  for (;;) {
    blanks(r);
    if (r->a->status != AOT_OK || (*r->at != '+' && *r->at != '-')) return x;
    if (*r->at++ == '+') {
      y = term(r);
      x = r->live ? ag_add(r->a, x, y) : x;
    } else {
      y = term(r);
      x = r->live ? ag_sub(r->a, x, y) : x;
    }
  }
}

/* ---- parts ---- */

static void add_let(reader_t *r, const char *name, size_t size) {
  let_t *l = &r->lets[r->n_lets];
  int live = r->live;
  if (r->n_lets == AG_MAX_LETS) {
    wrong(r, "too many shorthands");
    return;
  }
  l->name = name;
  l->size = size;
  l->text = r->at;
  l->done = 0;
  r->live = 0; /* read over it */
  expr(r);
  r->live = live;
  r->n_lets++;
}

/* The gradients of up to MAX_TARGETS arguments. */
static void part(reader_t *r, uint64_t *covered) {
  const char *names[MAX_TARGETS];
  size_t size;
  uint32_t target[MAX_TARGETS], n = 0, i, wanted = 0;
  int64_t mask[MAX_TARGETS] = {0};
  int live = r->live;
  do {
    if (n == MAX_TARGETS) wrong(r, "too many targets");
    if (r->a->status != AOT_OK) return;
    size = word(r, &names[n]);
    if (n == 0 && take(r, '=')) {
      add_let(r, names[0], size);
      return;
    }
    target[n] = ag_index(r->a, names[n], size);
    if (target[n] == AG_NO_ARG) {
      wrong(r, "no such argument before");
      return;
    }
    *covered |= UINT64_C(1) << target[n];
    mask[n] = live && ag_needs_at(r->a, target[n], 0);
    wanted |= (uint32_t)mask[n++];
  } while (take(r, ','));
  expect(r, ':');
  r->mask = em_none();
  if (live) {
    r->mask = em_list(r->a, mask, n);
    r->mask.kind = AOT_ARG_BOOLS;
  }
  r->live = live && wanted;
  r->results[0] = expr(r);
  if (r->live)
    for (i = 0; i < n; i++) ag_set_at(r->a, target[i], 0, r->results[i]);
  r->live = live;
}

static void read_rule(em_t *a, const char *text, int live, uint64_t *covered) {
  reader_t r;
  memset(&r, 0, sizeof r);
  r.a = a;
  r.rule = r.at = text;
  r.live = live;
  do part(&r, covered);
  while (a->status == AOT_OK && take(&r, ';'));
  blanks(&r);
  if (a->status == AOT_OK && *r.at != '\0') wrong(&r, "expected ';'");
}

void ag_formula_apply(em_t *a, const char *text) {
  uint64_t covered = 0;
  read_rule(a, text, 1, &covered);
}

void ag_formula_check(em_t *a, const char *text, uint64_t *out_covered) {
  *out_covered = 0;
  read_rule(a, text, 0, out_covered);
}
