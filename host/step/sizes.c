#include "kit/base/vector.h"
#include <step/sizes.h>

#include <aot/backend.h>
#include <aot/inline.h>
#include <ir/tables.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_SYMBOLS 6   /* of a guard that does not hold */
#define SHOWN_OPERANDS 32 /* looked at for them */

int aoth_sizes_init(aoth_sizes_t *s, aot_prog_t *prog) {
  *s = (aoth_sizes_t){.n = aoth_graph_n_symbols(prog)};
  s->value = calloc((size_t)s->n + 1, sizeof *s->value);
  s->bound = calloc((size_t)s->n + 1, sizeof *s->bound);
  if (!s->value || !s->bound) return 0;
  aoth_sizes_clear(s, prog);
  return 1;
}

void aoth_sizes_deinit(aoth_sizes_t *s) {
  free(s->value);
  free(s->bound);
  free(s->open);
  memset(s, 0, sizeof *s);
}

void aoth_sizes_clear(aoth_sizes_t *s, aot_prog_t *prog) {
  for (uint32_t i = 0; i < s->n; i++) {
    aot_symbol_info_t info = {.struct_size = sizeof info};
    s->bound[i] = 0;
    s->value[i] = aoth_graph_symbol_info(prog, i, &info) == AOT_OK ? info.hint : 0;
  }
}

void aoth_type_print(aot_prog_t *prog, const aot_type_t *type, kit_text_t *out) {
  if (type->kind != AOT_TYPE_TENSOR) {
    kit_text_z(out, type->kind == AOT_TYPE_SYMINT     ? "an integer"
                    : type->kind == AOT_TYPE_SYMFLOAT ? "a float"
                                                      : "no tensor");
    return;
  }
  kit_text_f(out, "%s[", aot_dtype_name(type->dtype));
  for (int32_t d = 0; d < type->rank; d++) {
    if (d) kit_text_z(out, ", ");
    aoth_dim_print(prog, type->sizes[d], out);
  }
  kit_text_z(out, "]");
}

/* "input 0 (x): expected f32[s0, 8], got f32[3, 9]: " and the reason. */
static aot_status_t complain_as(aot_prog_t *prog, const aoth_given_t *g, aoth_sink_t *sink, const char *code,
                                const char *why) {
  kit_text_t text = {0};
  kit_text_f(&text, "input %u", g->ordinal);
  if (g->name.size) kit_text_f(&text, " (%.*s)", (int)g->name.size, g->name.data);
  kit_text_z(&text, ": expected ");
  aoth_type_print(prog, g->type, &text);
  kit_text_z(&text, ", got ");
  aoth_tensor_print_shape(g->tensor, &text);
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, code, "%s: %s", text.data ? text.data : "input", why);
  kit_text_deinit(&text);
  return AOT_E_INVALID;
}

static aot_status_t complain(aot_prog_t *prog, const aoth_given_t *g, aoth_sink_t *sink, const char *why) {
  return complain_as(prog, g, sink, "input.mismatch", why);
}

static aot_expr_info_t expr_of(aot_prog_t *prog, int64_t dim) {
  aot_expr_info_t e = {.op = -1};
  aoth_graph_expr_info(prog, AOT_DIM_EXPR(dim), &e);
  return e;
}

/* Peel constants off a dimension until a bare symbol is left: dim(symbol) == size has the solution *out. 1: solved. */
static int solve(aot_prog_t *prog, int64_t dim, int64_t size, uint32_t *out_symbol, int64_t *out) {
  while (AOT_DIM_IS_SYM(dim)) {
    aot_expr_info_t e = expr_of(prog, dim);
    int left = !AOT_DIM_IS_SYM(e.a), right = !AOT_DIM_IS_SYM(e.b); /* which side is a constant */
    int64_t k = left ? e.a : e.b;
    if (e.op == AOT_EXPR_SYMBOL) {
      *out_symbol = (uint32_t)e.a;
      *out = size;
      return 1;
    }
    if (left == right) return 0;
    if (e.op == AOT_EXPR_ADD) size -= k;
    else if (e.op == AOT_EXPR_SUB) size = left ? k - size : size + k;
    else if (e.op == AOT_EXPR_MUL && k != 0 && size % k == 0) size /= k;
    else return 0;
    dim = left ? e.b : e.a;
  }
  return 0;
}

static aot_status_t check_type(aot_prog_t *prog, const aoth_given_t *g, aoth_sink_t *sink) {
  int32_t rank = g->type->kind == AOT_TYPE_TENSOR ? g->type->rank : 0;
  int32_t dtype = g->type->kind == AOT_TYPE_TENSOR   ? g->type->dtype
                  : g->type->kind == AOT_TYPE_SYMINT ? AOT_I64
                                                     : AOT_F64;
  if (g->tensor->dtype != dtype) return complain(prog, g, sink, "the dtype differs");
  if (g->tensor->rank != rank) return complain(prog, g, sink, "the number of dimensions differs");
  return AOT_OK;
}

static uint32_t n_dims(const aoth_given_t *g) {
  return g->type->kind == AOT_TYPE_TENSOR ? (uint32_t)g->type->rank : g->type->kind == AOT_TYPE_SYMINT ? 1 : 0;
}
static int64_t dim_expected(const aoth_given_t *g, uint32_t d) {
  return g->type->kind == AOT_TYPE_TENSOR ? g->type->sizes[d] : g->type->expr;
}
static int64_t dim_given(const aoth_given_t *g, uint32_t d) {
  if (g->type->kind == AOT_TYPE_TENSOR) return g->tensor->sizes[d];
  return kit_element_load_int(AOT_I64, (const char *)g->tensor->data + 8 * g->tensor->offset);
}

/* bare: only dimensions that are a symbol themselves; so that a direct occurrence wins over a solved one. */
static void bind_dims(aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g, int bare) {
  for (uint32_t d = 0; d < n_dims(g); d++) {
    int64_t dim = dim_expected(g, d), value;
    uint32_t symbol;
    if (!AOT_DIM_IS_SYM(dim) || (bare && expr_of(prog, dim).op != AOT_EXPR_SYMBOL)) continue;
    if (!solve(prog, dim, dim_given(g, d), &symbol, &value) || symbol >= s->n || s->bound[symbol]) continue;
    s->bound[symbol] = 1;
    s->value[symbol] = value;
  }
}

/* ---- strides ---- */

static int has_symbolic_strides(const aot_type_t *t) {
  if (t->kind != AOT_TYPE_TENSOR) return 0;
  int any = AOT_DIM_IS_SYM(t->offset);
  for (int32_t d = 0; t->strides && d < t->rank; d++) any |= AOT_DIM_IS_SYM(t->strides[d]);
  return any;
}

#define BOUND_BY_STRIDE 2 /* in aoth_sizes_t.bound */

static void bind_stride(aoth_sizes_t *s, aot_prog_t *prog, int64_t dim, int64_t given) {
  int64_t value;
  uint32_t symbol;
  if (!AOT_DIM_IS_SYM(dim) || !solve(prog, dim, given, &symbol, &value) || symbol >= s->n || s->bound[symbol]) return;
  s->bound[symbol] = BOUND_BY_STRIDE;
  s->value[symbol] = value;
}

/* A symbol that sizes do not determine, but strides or offset of an input hold, is as the tensor lies that was given;
 * where its elements share addresses, as a dense one. Strides of dimensions of size 1 say nothing if others do. */
static void bind_strides(aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g) {
  if (!has_symbolic_strides(g->type)) return;
  aoth_tensor_t t = *g->tensor;
  if (aoth_strides_overlap(t.rank, t.sizes, t.strides)) aoth_tensor_contiguous(&t);
  for (int only_ones = 0; only_ones < 2; only_ones++)
    for (int32_t d = 0; d < t.rank; d++)
      if ((t.sizes[d] == 1) == only_ones) bind_stride(s, prog, g->type->strides[d], t.strides[d]);
  bind_stride(s, prog, g->type->offset, t.offset);
}

/* Strides that another input determined must hold this one's elements apart. */
static aot_status_t check_strides(const aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g, aoth_sink_t *sink) {
  int64_t strides[AOT_MAX_RANK], value;
  uint32_t symbol;
  int any = 0;
  if (!has_symbolic_strides(g->type)) return AOT_OK;
  for (int32_t d = 0; d < g->type->rank; d++) {
    AOT_TRY(aoth_sizes_dim(s, prog, g->type->strides[d], "an input's stride", sink, &strides[d]));
    any |= solve(prog, g->type->strides[d], strides[d], &symbol, &value) && symbol < s->n &&
           s->bound[symbol] == BOUND_BY_STRIDE;
  }
  if (!any || !aoth_strides_overlap(g->tensor->rank, g->tensor->sizes, strides)) return AOT_OK;
  return complain(prog, g, sink, "by the strides that the model shares with other inputs its elements share addresses");
}

/* "dimension 0 should be 9, not 8, it is s0 * 2 + 1"; where nothing says which, "dimension 0 cannot be 8, it is s0 *
 * 4". */
static aot_status_t complain_dim(const aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g, uint32_t d,
                                 int64_t wanted, aoth_sink_t *sink) {
  int64_t dim = dim_expected(g, d);
  kit_text_t why = {0};
  if (aoth_sizes_dim_is_open(s, dim)) kit_text_f(&why, "dimension %u cannot be %lld", d, (long long)dim_given(g, d));
  else kit_text_f(&why, "dimension %u: expected %lld, got %lld", d, (long long)wanted, (long long)dim_given(g, d));
  if (AOT_DIM_IS_SYM(dim)) {
    kit_text_z(&why, ", it is ");
    aoth_dim_print(prog, dim, &why);
  }
  aot_status_t status = complain(prog, g, sink, why.data ? why.data : "a size differs");
  kit_text_deinit(&why);
  return status;
}

/* Constants around one symbol, in sums and products: what solve() decomposes. */
static int is_of_one_symbol(aot_prog_t *prog, int64_t dim) {
  for (;;) {
    aot_expr_info_t e = expr_of(prog, dim);
    int left = AOT_DIM_IS_SYM(e.a), right = AOT_DIM_IS_SYM(e.b);
    if (e.op == AOT_EXPR_SYMBOL) return 1;
    if ((e.op != AOT_EXPR_ADD && e.op != AOT_EXPR_SUB && e.op != AOT_EXPR_MUL) || left == right) return 0;
    dim = left ? e.a : e.b;
  }
}

static aot_status_t check_dims(const aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g, aoth_sink_t *sink) {
  for (uint32_t d = 0; d < n_dims(g); d++) {
    int64_t dim = dim_expected(g, d), wanted = -1, value;
    uint32_t symbol;
    if (aoth_sizes_dim_is_open(s, dim) && is_of_one_symbol(prog, dim) &&
        !solve(prog, dim, dim_given(g, d), &symbol, &value))
      return complain_dim(s, prog, g, d, wanted, sink);
    AOT_TRY(aoth_sizes_dim(s, prog, dim, "an input's size", sink, &wanted));
    if (dim_given(g, d) != wanted) return complain_dim(s, prog, g, d, wanted, sink);
  }
  return AOT_OK;
}

/* 1 and a sentence if symbol i is outside its range. */
static int is_outside(const aoth_sizes_t *s, aot_prog_t *prog, uint32_t i, const char *what, kit_text_t *out) {
  aot_symbol_info_t info = {.struct_size = sizeof info};
  if (!s->bound[i] || aoth_graph_symbol_info(prog, i, &info) != AOT_OK) return 0;
  if (s->value[i] >= info.min && s->value[i] <= info.max) return 0;
  kit_text_f(out, "%s size %.*s = %lld, but the model was exported for %.*s in %lld..", what, (int)info.name.size,
             info.name.data, (long long)s->value[i], (int)info.name.size, info.name.data, (long long)info.min);
  if (info.max != INT64_MAX) kit_text_f(out, "%lld", (long long)info.max);
  else kit_text_z(out, "unbounded");
  return 1;
}

/* The first dimension that binds a symbol to what is outside its range. */
static aot_status_t check_input_ranges(const aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *g,
                                       aoth_sink_t *sink) {
  for (uint32_t d = 0; d < n_dims(g); d++) {
    kit_text_t why = {0};
    char makes[40];
    uint32_t symbol;
    int64_t value;
    snprintf(makes, sizeof makes, "dimension %u makes", d);
    if (!solve(prog, dim_expected(g, d), dim_given(g, d), &symbol, &value) || symbol >= s->n) continue;
    aot_status_t status = AOT_OK;
    if (is_outside(s, prog, symbol, makes, &why))
      status = complain_as(prog, g, sink, "input.range", why.data ? why.data : "");
    kit_text_deinit(&why);
    AOT_TRY(status);
  }
  return AOT_OK;
}

static aot_status_t check_ranges(const aoth_sizes_t *s, aot_prog_t *prog, const char *what, aoth_sink_t *sink) {
  for (uint32_t i = 0; i < s->n; i++) {
    kit_text_t why = {0};
    int outside = is_outside(s, prog, i, what, &why);
    if (outside)
      aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.range", "%s",
                       why.data ? why.data : "a size is out of range");
    kit_text_deinit(&why);
    if (outside) return AOT_E_INVALID;
  }
  return AOT_OK;
}

/* " (s0 = 3, s1 = 7)": the symbols of a condition. */
static void print_symbols(const aoth_sizes_t *s, aot_prog_t *prog, int64_t condition, kit_text_t *out) {
  int64_t pending[SHOWN_OPERANDS] = {condition}, shown[SHOWN_SYMBOLS];
  uint32_t n = 1, n_shown = 0;
  while (n && n_shown < SHOWN_SYMBOLS) {
    const int64_t dim = pending[--n];
    const aot_expr_info_t e = AOT_DIM_IS_SYM(dim) ? expr_of(prog, dim) : (aot_expr_info_t){.op = -1};
    const int64_t operands[3] = {e.c, e.b, e.a};
    aot_symbol_info_t info = {.struct_size = sizeof info};
    uint32_t i = 0;
    while (i < n_shown && shown[i] != dim) i++;
    if (!AOT_DIM_IS_SYM(dim) || i < n_shown) continue;
    for (int k = 0; k < 3 && e.op != AOT_EXPR_SYMBOL; k++)
      if (AOT_DIM_IS_SYM(operands[k]) && n < SHOWN_OPERANDS) pending[n++] = operands[k];
    if (e.op != AOT_EXPR_SYMBOL || aoth_graph_symbol_info(prog, (uint32_t)e.a, &info) != AOT_OK) continue;
    kit_text_f(out, "%s%.*s = %lld", n_shown ? ", " : " (", (int)info.name.size, info.name.data,
               (long long)s->value[e.a]);
    shown[n_shown++] = dim;
  }
  if (n_shown) kit_text_z(out, ")");
}

static aot_status_t refuse_guard(const aoth_sizes_t *s, aot_prog_t *prog, const aot_guard_info_t *g, const char *what,
                                 aoth_sink_t *sink) {
  kit_text_t why = {0};
  kit_text_f(&why, "%s sizes for which the model is not valid: it was exported under the guard ", what);
  if (g->text.size) kit_text_str(&why, g->text);
  else aoth_dim_print(prog, g->condition, &why);
  print_symbols(s, prog, g->condition, &why);
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.guard", "%s", why.data ? why.data : "a guard does not hold");
  aoth_sink_line(
      sink,
      "hint: the module that PyTorch exported refuses them, too: export the model again with inputs of these sizes");
  kit_text_deinit(&why);
  return AOT_E_INVALID;
}

/* Guards whose symbols are all known. */
static aot_status_t check_guards(const aoth_sizes_t *s, aot_prog_t *prog, const char *what, aoth_sink_t *sink) {
  aot_guard_info_t g = {.struct_size = sizeof g};
  for (uint32_t i = 0; aoth_graph_guard(prog, i, &g) == AOT_OK; i++)
    if (!aoth_sizes_dim_is_open(s, g.condition) && !aoth_dim_eval(prog, g.condition, s->value, s->n))
      return refuse_guard(s, prog, &g, what, sink);
  return AOT_OK;
}

/* Mark the expressions that hold an unbound symbol. Expressions are made from older ones: one pass in order. */
static aot_status_t mark_open(aoth_sizes_t *s, aot_prog_t *prog, aoth_sink_t *sink) {
  uint32_t n = 1;
  aot_expr_info_t e;
  s->n_open = 0;
  if (!memchr(s->bound, 0, s->n)) return AOT_OK;
  while (aoth_graph_expr_info(prog, n, &e) == AOT_OK) n++;
  uint32_t *open = kit_grow(s->open, &s->open_capacity, (uint64_t)n + 1, sizeof *open);
  if (!open) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.memory", "no memory for %u size expressions", n);
    return AOT_E_EXHAUSTED;
  }
  s->open = open;
  s->n_open = n;
  open[0] = 0;
  for (uint32_t i = 1; i < n; i++) {
    aoth_graph_expr_info(prog, i, &e);
    const int64_t parts[3] = {e.a, e.b, e.c};
    open[i] = e.op == AOT_EXPR_SYMBOL && (uint64_t)e.a < s->n && !s->bound[e.a] ? (uint32_t)e.a + 1 : 0;
    for (int k = 0; e.op != AOT_EXPR_SYMBOL && k < 3; k++)
      if (AOT_DIM_IS_SYM(parts[k]) && AOT_DIM_EXPR(parts[k]) < i && open[AOT_DIM_EXPR(parts[k])])
        open[i] = open[AOT_DIM_EXPR(parts[k])];
  }
  return AOT_OK;
}

aot_status_t aoth_sizes_bind(aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *inputs, uint32_t n,
                             aoth_sink_t *sink) {
  aoth_sizes_clear(s, prog);
  for (uint32_t i = 0; i < n; i++) AOT_TRY(check_type(prog, &inputs[i], sink));
  for (int bare = 1; bare >= 0; bare--)
    for (uint32_t i = 0; i < n; i++) bind_dims(s, prog, &inputs[i], bare);
  for (uint32_t i = 0; i < n; i++) bind_strides(s, prog, &inputs[i]);
  AOT_TRY(mark_open(s, prog, sink));
  for (uint32_t i = 0; i < n; i++) AOT_TRY(check_dims(s, prog, &inputs[i], sink));
  for (uint32_t i = 0; i < n; i++) AOT_TRY(check_strides(s, prog, &inputs[i], sink));
  for (uint32_t i = 0; i < n; i++) AOT_TRY(check_input_ranges(s, prog, &inputs[i], sink));
  AOT_TRY(check_ranges(s, prog, "the inputs make", sink));
  return check_guards(s, prog, "the inputs have", sink);
}

aot_status_t aoth_sizes_learn(aoth_sizes_t *s, aot_prog_t *prog, const int64_t *symbols, uint64_t n,
                              aoth_sink_t *sink) {
  int any = 0;
  for (uint32_t i = 0; i < s->n && i < n; i++) {
    if (s->bound[i] || symbols[i] == AOT_SYMBOL_UNKNOWN) continue;
    s->value[i] = symbols[i];
    s->bound[i] = 1;
    any = 1;
  }
  if (!any) return AOT_OK;
  s->n_open = 0;
  AOT_TRY(mark_open(s, prog, sink));
  AOT_TRY(check_ranges(s, prog, "the data make", sink));
  return check_guards(s, prog, "the data make", sink);
}

int aoth_sizes_dim_is_open(const aoth_sizes_t *s, int64_t dim) {
  return AOT_DIM_IS_SYM(dim) && AOT_DIM_EXPR(dim) < s->n_open && s->open[AOT_DIM_EXPR(dim)];
}

int aoth_sizes_type_is_open(const aoth_sizes_t *s, const aot_type_t *type) {
  if (type->kind != AOT_TYPE_TENSOR) return 0;
  int open = aoth_sizes_dim_is_open(s, type->offset);
  for (int32_t d = 0; d < type->rank && !open; d++)
    open = aoth_sizes_dim_is_open(s, type->sizes[d]) || (type->strides && aoth_sizes_dim_is_open(s, type->strides[d]));
  return open;
}

aot_status_t aoth_sizes_dim(const aoth_sizes_t *s, aot_prog_t *prog, int64_t dim, const char *what, aoth_sink_t *sink,
                            int64_t *out) {
  *out = dim;
  if (!AOT_DIM_IS_SYM(dim)) return AOT_OK;
  uint32_t open = AOT_DIM_EXPR(dim) < s->n_open ? s->open[AOT_DIM_EXPR(dim)] : 0;
  if (open) {
    aot_symbol_info_t info = {.struct_size = sizeof info};
    aoth_graph_symbol_info(prog, open - 1, &info);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.unbound",
                     "unbound size symbol %.*s of %s: neither the input shapes nor executed nodes define it",
                     (int)info.name.size, info.name.data, what);
    return AOT_E_UNIMPLEMENTED;
  }
  *out = aoth_dim_eval(prog, dim, s->value, s->n);
  return AOT_OK;
}

static int has_negative_size(const aoth_sizes_t *s, aot_prog_t *prog, const aot_type_t *type) {
  for (int32_t d = 0; type->kind == AOT_TYPE_TENSOR && d < type->rank; d++)
    if (!aoth_sizes_dim_is_open(s, type->sizes[d]) && aoth_dim_eval(prog, type->sizes[d], s->value, s->n) < 0) return 1;
  return 0;
}

static int has_negative_result(const aoth_sizes_t *s, aot_prog_t *prog, aot_node_t node) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_type_t type;
  if (aoth_graph_node_info(prog, node, &info) != AOT_OK) return 0;
  for (uint32_t i = 0; i < info.n_results; i++) {
    const aot_value_t result = {info.first_result.id + i};
    if (aoth_graph_value_type(prog, result, &type) == AOT_OK && has_negative_size(s, prog, &type)) return 1;
  }
  return 0;
}

/* A node declares results that do not exist at these sizes, for example more pieces of a split than there are: the
 * first such node is named. O(program), after a failure. */
static aot_status_t report_negative(const aoth_sizes_t *s, aot_prog_t *prog, const char *what, const char *shape,
                                    aoth_sink_t *sink) {
  for (uint32_t g = 1; g < aoth_graph_n_graphs(prog); g++) {
    for (aot_node_t n = aoth_graph_first(prog, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(prog, n)) {
      if (!has_negative_result(s, prog, n)) continue;
      aoth_report_node(
          prog, n, AOT_SEVERITY_ERROR, "input.negative-size", "the program was made for other sizes of its inputs",
          "%s would be %s: at these sizes of the inputs a result of this operator has a size below 0", what, shape);
      return AOT_E_INVALID;
    }
  }
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.negative-size", "%s would be %s, which has a size below 0",
                   what, shape);
  return AOT_E_INVALID;
}

aot_status_t aoth_sizes_tensor(const aoth_sizes_t *s, aot_prog_t *prog, const aot_type_t *type, const char *what,
                               aoth_sink_t *sink, aoth_tensor_t *out) {
  *out = (aoth_tensor_t){0};
  switch (type->kind) {
    case AOT_TYPE_TENSOR: break;
    case AOT_TYPE_SYMINT: *out = aoth_tensor_scalar(NULL, AOT_I64); return AOT_OK;
    case AOT_TYPE_SYMFLOAT: *out = aoth_tensor_scalar(NULL, AOT_F64); return AOT_OK;
    case AOT_TYPE_SYMBOOL: *out = aoth_tensor_scalar(NULL, AOT_BOOL); return AOT_OK;
    default: return AOT_OK;
  }
  out->dtype = type->dtype;
  out->rank = type->rank;
  out->memory = type->memory;
  out->encoding = type->encoding.id;
  for (int32_t d = 0; d < type->rank; d++) AOT_TRY(aoth_sizes_dim(s, prog, type->sizes[d], what, sink, &out->sizes[d]));
  aoth_tensor_contiguous(out);
  for (int32_t d = 0; type->strides && d < type->rank; d++)
    AOT_TRY(aoth_sizes_dim(s, prog, type->strides[d], what, sink, &out->strides[d]));
  AOT_TRY(aoth_sizes_dim(s, prog, type->offset, what, sink, &out->offset));
  if (aoth_tensor_extent(out, &out->nbytes)) return AOT_OK;
  kit_text_t text = {0};
  aoth_tensor_print_shape(out, &text);
  const char *shape = text.data ? text.data : "";
  aot_status_t status = AOT_E_EXHAUSTED;
  int32_t d = 0;
  while (d < out->rank && out->sizes[d] >= 0) d++;
  if (d < out->rank) status = report_negative(s, prog, what, shape, sink);
  else
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "input.too-large", "%s, %s, is larger than memory can be", what,
                     shape);
  kit_text_deinit(&text);
  return status;
}
