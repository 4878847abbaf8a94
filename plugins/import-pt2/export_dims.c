/* export_dims.c - symbolic sizes on the way out: their text (sympy's srepr), their ranges, and the nodes that compute
 * them.
 *
 * A program has sizes as expressions in arguments; an archive has names of nodes there: sym_size of an input, then
 * Python's operators. A node is added where an argument first needs it. Children of an expression have smaller
 * numbers than it. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_TEXT 65536u

/* ---- symbols ---- */

/* s12, u3: what torch's shape environment makes. */
static int is_torch_symbol(aot_str_t s) {
  if (s.size < 2 || (s.data[0] != 's' && s.data[0] != 'u')) return 0;
  for (uint64_t i = 1; i < s.size; i++)
    if (s.data[i] < '0' || s.data[i] > '9') return 0;
  return 1;
}

aot_status_t p2_symbols_name(p2_writer_t *w) {
  const uint32_t n = w->host->graph->n_symbols(w->prog);
  p2_names_t taken;
  memset(&taken, 0, sizeof taken);
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n, &w->symbols));
  for (uint32_t i = 0; i < n; i++) {
    aot_symbol_info_t s = {.struct_size = sizeof s};
    AOT_TRY(w->host->graph->symbol_info(w->prog, i, &s));
    if (!is_torch_symbol(s.name)) continue;
    w->symbols[i] = s.name;
    AOT_TRY(p2_names_add(w->env, &taken, s.name, i, NULL));
  }
  for (uint32_t i = 0, number = 0; i < n; i++) {
    while (!w->symbols[i].size) {
      char text[16];
      aot_str_t name;
      snprintf(text, sizeof text, "s%u", (unsigned)number++);
      AOT_TRY(p2_join(w->env, p2_str(""), p2_str(""), text, &name));
      if (p2_names_add(w->env, &taken, name, i, NULL) == AOT_OK) w->symbols[i] = name;
    }
  }
  return AOT_OK;
}

json_t *p2_ranges_json(p2_writer_t *w) {
  json_t *ranges = json_object();
  for (uint32_t i = 0; ranges && i < w->host->graph->n_symbols(w->prog); i++) {
    aot_symbol_info_t s = {.struct_size = sizeof s};
    if (w->host->graph->symbol_info(w->prog, i, &s) != AOT_OK) continue;
    json_t *max = s.max == INT64_MAX ? json_null() : json_integer(s.max);
    json_t *range = json_pack("{s:I, s:o}", "min_val", (json_int_t)s.min, "max_val", max);
    json_object_setn_new(ranges, w->symbols[i].data, (size_t)w->symbols[i].size, range);
  }
  return ranges;
}

/* ---- the text of an expression ---- */

typedef struct builder {
  char text[LONGEST_TEXT];
  size_t n;
  int cut;
} builder_t;

static void add(builder_t *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(builder_t *b, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const int n = vsnprintf(b->text + b->n, sizeof b->text - b->n, format, list);
  va_end(list);
  if (n < 0 || (size_t)n >= sizeof b->text - b->n) b->cut = 1;
  else b->n += (size_t)n;
}

static void add_dim(p2_writer_t *w, builder_t *b, int64_t dim) {
  if (!AOT_DIM_IS_SYM(dim)) add(b, "Integer(%lld)", (long long)dim);
  else add(b, "%.*s", (int)w->exprs[AOT_DIM_EXPR(dim)].size, w->exprs[AOT_DIM_EXPR(dim)].data);
}

static void add_call(p2_writer_t *w, builder_t *b, const char *function, int64_t x, int64_t y) {
  add(b, "%s(", function);
  add_dim(w, b, x);
  add(b, ", ");
  add_dim(w, b, y);
  add(b, ")");
}

/* Functions of two arguments by AOT_EXPR_*; comparisons last: they are sympy's, and are in a Where. */
static const char *function_of(int32_t op) {
  static const struct {
    int32_t op;
    const char *name;
  } rows[] = {{AOT_EXPR_ADD, "Add"},          {AOT_EXPR_MUL, "Mul"},     {AOT_EXPR_FLOORDIV, "FloorDiv"},
              {AOT_EXPR_MOD, "PythonMod"},    {AOT_EXPR_MAX, "Max"},     {AOT_EXPR_MIN, "Min"},
              {AOT_EXPR_POW, "PowByNatural"}, {AOT_EXPR_EQ, "Equality"}, {AOT_EXPR_LT, "StrictLessThan"},
              {AOT_EXPR_LE, "LessThan"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == op) return rows[i].name;
  return NULL;
}

static int is_comparison(int32_t op) { return op == AOT_EXPR_EQ || op == AOT_EXPR_LT || op == AOT_EXPR_LE; }

static void add_symbol(p2_writer_t *w, builder_t *b, uint32_t symbol) {
  aot_symbol_info_t s = {.struct_size = sizeof s};
  const aot_str_t name = w->symbols[symbol];
  w->host->graph->symbol_info(w->prog, symbol, &s);
  add(b, "Symbol('%.*s', %sinteger=True)", (int)name.size, name.data, s.min > 0 ? "positive=True, " : "");
}

static void add_expr(p2_writer_t *w, builder_t *b, const aot_expr_info_t *x) {
  aot_expr_info_t c = {0};
  switch (x->op) {
    case AOT_EXPR_SYMBOL: add_symbol(w, b, (uint32_t)x->a); return;
    case AOT_EXPR_SUB:
      add(b, "Add(");
      add_dim(w, b, x->a);
      add(b, ", ");
      add_call(w, b, "Mul", -1, x->b);
      add(b, ")");
      return;
    case AOT_EXPR_WHERE:
      add(b, "Where(");
      if (AOT_DIM_IS_SYM(x->a)) w->host->graph->expr_info(w->prog, AOT_DIM_EXPR(x->a), &c);
      if (is_comparison(c.op)) add_call(w, b, function_of(c.op), c.a, c.b);
      else add_call(w, b, "Unequality", x->a, 0);
      add(b, ", ");
      add_dim(w, b, x->b);
      add(b, ", ");
      add_dim(w, b, x->c);
      add(b, ")");
      return;
    default: break;
  }
  if (is_comparison(x->op)) add(b, "Where(");
  add_call(w, b, function_of(x->op), x->a, x->b);
  if (is_comparison(x->op)) add(b, ", Integer(1), Integer(0))");
}

/* Texts of all expressions up to this one. */
static aot_status_t prepare_expr(p2_writer_t *w, uint32_t expr) {
  builder_t *b = NULL;
  if (expr < w->n_exprs) return AOT_OK;
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, 1, &b));
  for (; w->n_exprs <= expr; w->n_exprs++) {
    aot_expr_info_t x;
    memset(&x, 0, sizeof x);
    AOT_TRY(p2_grow(w->env, (void **)&w->exprs, w->n_exprs, &w->expr_capacity, sizeof *w->exprs));
    if (w->n_exprs == 0) continue; /* no expression has the number */
    AOT_TRY(w->host->graph->expr_info(w->prog, w->n_exprs, &x));
    b->n = 0;
    b->cut = 0;
    add_expr(w, b, &x);
    if (b->cut) { /* only reported when it is used */
      w->exprs[w->n_exprs] = p2_str("");
      continue;
    }
    AOT_TRY(p2_join(w->env, (aot_str_t){b->text, b->n}, p2_str(""), "", &w->exprs[w->n_exprs]));
  }
  return AOT_OK;
}

static json_t *expr_json(p2_writer_t *w, int64_t dim) {
  if (prepare_expr(w, AOT_DIM_EXPR(dim)) != AOT_OK) return NULL;
  const aot_str_t text = w->exprs[AOT_DIM_EXPR(dim)];
  if (!text.size)
    return p2_cannot(w, "export-pt2.expression", "the expression of a size is longer than %u bytes", LONGEST_TEXT);
  return json_pack("{s:{s:s%, s:{s:I}}}", "as_expr", "expr_str", text.data, (size_t)text.size, "hint", "as_int",
                   (json_int_t)w->host->graph->dim_hint(w->prog, dim));
}

json_t *p2_dim_json(p2_writer_t *w, int64_t dim) {
  return AOT_DIM_IS_SYM(dim) ? expr_json(w, dim) : json_pack("{s:I}", "as_int", (json_int_t)dim);
}

/* ---- nodes ---- */

static aot_str_t key_of(p2_env_t *e, int64_t dim) {
  char *bytes = NULL;
  if (p2_alloc(e, P2_SCRATCH, 8, sizeof dim, 1, (void **)&bytes) != AOT_OK) return p2_str("");
  memcpy(bytes, &dim, sizeof dim);
  return (aot_str_t){bytes, sizeof dim};
}

static const aot_str_t *known(const p2_page_t *page, int64_t dim) {
  const aot_str_t key = {(const char *)&dim, sizeof dim};
  const uint32_t row = p2_names_find(&page->dims, key);
  return row == P2_NO_ENTRY ? NULL : &page->dim_names[row];
}

aot_status_t p2_dim_known(p2_writer_t *w, p2_page_t *page, int64_t dim, aot_str_t name) {
  if (known(page, dim)) return AOT_OK;
  const aot_str_t key = key_of(w->env, dim);
  if (!key.size) return AOT_E_EXHAUSTED;
  AOT_TRY(p2_grow(w->env, (void **)&page->dim_names, page->n_dims, &page->dim_capacity, sizeof *page->dim_names));
  page->dim_names[page->n_dims] = name;
  return p2_names_add(w->env, &page->dims, key, page->n_dims++, NULL);
}

/* {"as_name": ..} or {"as_int": ..} */
static json_t *sym_argument(const p2_page_t *page, int64_t dim) {
  if (!AOT_DIM_IS_SYM(dim)) return json_pack("{s:I}", "as_int", (json_int_t)dim);
  const aot_str_t *name = known(page, dim);
  return name ? json_pack("{s:{s:s%}}", "as_sym_int", "as_name", name->data, (size_t)name->size) : NULL;
}

/* A node whose one result is the size. */
static aot_status_t size_node(p2_writer_t *w, p2_page_t *page, const char *target, const char *wish, json_t *inputs,
                              int64_t dim) {
  aot_str_t name;
  json_t *value = p2_dim_json(w, dim);
  if (!value || p2_identifier(w, page, p2_str(wish), "size", &name) != AOT_OK) {
    json_decref(value);
    json_decref(inputs);
    return w->env->error.code ? AOT_E_INVALID : AOT_E_EXHAUSTED;
  }
  json_object_setn_new(page->sym_ints, name.data, (size_t)name.size, value);
  json_t *outputs = json_pack("[{s:{s:s%}}]", "as_sym_int", "as_name", name.data, (size_t)name.size);
  AOT_TRY(p2_add_node(page, target, inputs, outputs, json_object(), json_null(), name));
  return p2_dim_known(w, page, dim, name);
}

/* A symbol is the size of some input, where it is alone. */
static aot_status_t symbol_node(p2_writer_t *w, p2_page_t *page, int64_t dim) {
  const aot_graph_api_t *g = w->host->graph;
  for (uint32_t i = 0; i < g->n_inputs(w->prog, page->graph); i++) {
    const aot_value_t v = g->inputs(w->prog, page->graph)[i].value;
    aot_type_t t;
    if (g->value_type(w->prog, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR || !w->value_names[v.id].size) continue;
    for (int32_t k = 0; k < t.rank; k++) {
      if (t.sizes[k] != dim) continue;
      json_t *inputs = json_pack("[o, o]", p2_named_json(p2_str("self"), p2_as_tensor(w->value_names[v.id]), 0),
                                 p2_named_json(p2_str("dim"), json_pack("{s:i}", "as_int", (int)k), 0));
      return size_node(w, page, "torch.ops.aten.sym_size.int", "sym_size_int", inputs, dim);
    }
  }
  p2_cannot(w, "export-pt2.symbol",
            "a size is needed here that no input of its graph shows, so that no node can compute it");
  return AOT_E_INVALID;
}

static aot_status_t operation_node(p2_writer_t *w, p2_page_t *page, const aot_expr_info_t *x, int64_t dim) {
  static const struct {
    int32_t op;
    const char *target, *name;
  } rows[] = {{AOT_EXPR_ADD, "_operator.add", "add"},     {AOT_EXPR_SUB, "_operator.sub", "sub"},
              {AOT_EXPR_MUL, "_operator.mul", "mul"},     {AOT_EXPR_FLOORDIV, "_operator.floordiv", "floordiv"},
              {AOT_EXPR_MOD, "_operator.mod", "mod"},     {AOT_EXPR_POW, "_operator.pow", "pow"},
              {AOT_EXPR_MAX, "torch.sym_max", "sym_max"}, {AOT_EXPR_MIN, "torch.sym_min", "sym_min"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].op != x->op) continue;
    json_t *inputs = json_pack("[o, o]", p2_named_json(p2_str("a"), sym_argument(page, x->a), 0),
                               p2_named_json(p2_str("b"), sym_argument(page, x->b), 0));
    return size_node(w, page, rows[i].target, rows[i].name, inputs, dim);
  }
  p2_cannot(w, "export-pt2.symbol",
            "an argument is a size that is compared or chosen, which an archive cannot compute in a node");
  return AOT_E_INVALID;
}

/* Operands before operations: the expressions that are still to do are stored on a stack. */
aot_status_t p2_dim_node(p2_writer_t *w, p2_page_t *page, int64_t dim, aot_str_t *out) {
  int64_t *stack = NULL;
  uint32_t n = 1, capacity = 0;
  AOT_TRY(p2_grow(w->env, (void **)&stack, 0, &capacity, sizeof *stack));
  stack[0] = dim;
  while (n > 0) {
    const int64_t top = stack[n - 1];
    aot_expr_info_t x;
    memset(&x, 0, sizeof x);
    if (!AOT_DIM_IS_SYM(top) || known(page, top)) {
      n--;
      continue;
    }
    AOT_TRY(w->host->graph->expr_info(w->prog, AOT_DIM_EXPR(top), &x));
    const uint32_t before = n;
    for (int k = 0; k < 2 && x.op != AOT_EXPR_SYMBOL; k++) {
      const int64_t child = k ? x.b : x.a;
      if (!AOT_DIM_IS_SYM(child) || known(page, child)) continue;
      AOT_TRY(p2_grow(w->env, (void **)&stack, n, &capacity, sizeof *stack));
      stack[n++] = child;
    }
    if (n > before) continue;
    AOT_TRY(x.op == AOT_EXPR_SYMBOL ? symbol_node(w, page, top) : operation_node(w, page, &x, top));
    n--;
  }
  *out = *known(page, dim);
  return AOT_OK;
}
