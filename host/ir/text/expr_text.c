/* Shape expressions as text: `s0 * 2 + 1`, `max(s0, 1)`, `where(s0 < 4, s0, 4)`.
 *
 * Expressions share sub-expressions, and a chain of n sharings written out has 2^n parts. An expression of more than
 * EXPR_INLINE_MAX operations is therefore named by a `let` line, which is written once, after the lets that it uses.
 * Both walks keep explicit stacks; writing all expressions of a program is linear in their number. */
#include "kit/base/vector.h"
#include "kit/base/map.h"
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/text_form.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define STACK_MAX 768 /* 7 items an operation, at most 1 + 3 * EXPR_INLINE_MAX operations at a time */

typedef struct item { /* text, or a dimension that needs parentheses below precedence `prec` */
  const char *text;
  int64_t dim;
  int prec;
} item_t;

typedef struct look {     /* how an operation is written */
  const char *open, *mid; /* function: "max(" and ", "; infix: NULL and " + " */
  int prec, left, right;  /* of the whole, and required of the operands */
} look_t;

#define PREC_COMPARE 1
#define PREC_SUM 2
#define PREC_PRODUCT 3
#define PREC_POWER 4
#define PREC_ATOM 5

static look_t look_of(int32_t op) {
  static const look_t looks[] = {[AOT_EXPR_SYMBOL] = {NULL, "", PREC_ATOM, 0, 0},
                                 [AOT_EXPR_ADD] = {NULL, " + ", PREC_SUM, PREC_SUM, PREC_PRODUCT},
                                 [AOT_EXPR_MUL] = {NULL, " * ", PREC_PRODUCT, PREC_PRODUCT, PREC_POWER},
                                 [AOT_EXPR_FLOORDIV] = {NULL, " // ", PREC_PRODUCT, PREC_PRODUCT, PREC_POWER},
                                 [AOT_EXPR_MOD] = {"mod(", ", ", PREC_ATOM, 0, 0},
                                 [AOT_EXPR_MAX] = {"max(", ", ", PREC_ATOM, 0, 0},
                                 [AOT_EXPR_MIN] = {"min(", ", ", PREC_ATOM, 0, 0},
                                 [AOT_EXPR_EQ] = {NULL, " == ", PREC_COMPARE, PREC_SUM, PREC_SUM},
                                 [AOT_EXPR_LT] = {NULL, " < ", PREC_COMPARE, PREC_SUM, PREC_SUM},
                                 [AOT_EXPR_LE] = {NULL, " <= ", PREC_COMPARE, PREC_SUM, PREC_SUM},
                                 [AOT_EXPR_WHERE] = {"where(", ", ", PREC_ATOM, 0, 0},
                                 [AOT_EXPR_POW] = {NULL, " ** ", PREC_POWER, PREC_ATOM, PREC_ATOM},
                                 [AOT_EXPR_SUB] = {NULL, " - ", PREC_SUM, PREC_SUM, PREC_PRODUCT}};
  return looks[op];
}

static const aoth_expr_row_t *row_at(const aoth_dim_writer_t *w, int64_t dim) {
  return &w->prog->exprs.at[AOT_DIM_EXPR(dim)];
}

static int is_large(const aoth_dim_writer_t *w, int64_t dim) {
  return AOT_DIM_IS_SYM(dim) && row_at(w, dim)->tree_size > EXPR_INLINE_MAX;
}

void aoth_symbol_write(aoth_dim_writer_t *w, uint32_t symbol, kit_text_t *out) {
  aot_str_t name = w->prog->symbols.at[symbol].name;
  int plain = w->plain_symbols ? w->plain_symbols[symbol] : aoth_is_word(name) && !aoth_is_reserved(name);
  if (plain) kit_text_str(out, name);
  else kit_text_f(out, "$s%u", symbol);
}

static void push_operation(const aoth_dim_writer_t *w, int64_t dim, int prec, item_t *stack, int *depth) {
  const aot_expr_info_t *e = &row_at(w, dim)->info;
  look_t look = look_of(e->op);
  int64_t right = e->b;
  item_t *top = stack + *depth;
  AOT_ASSERT(*depth + 7 <= STACK_MAX);
  int parens = look.prec < prec;
  if (e->op == AOT_EXPR_ADD && !AOT_DIM_IS_SYM(right) && right < 0 && right != INT64_MIN) { /* x + -1 reads x - 1 */
    look = look_of(AOT_EXPR_SUB);
    right = -right;
  }
  const item_t close = {.text = ")"}, open = {.text = "("}, mid = {.text = look.mid};
  const item_t a = {.dim = e->a, .prec = look.left}, b = {.dim = right, .prec = look.right}, c = {.dim = e->c};
  if (parens || look.open) *top++ = close;
  if (e->op == AOT_EXPR_WHERE) {
    *top++ = c;
    *top++ = mid;
  }
  *top++ = b;
  *top++ = mid;
  *top++ = a;
  if (look.open) {
    const item_t function = {.text = look.open};
    *top++ = function;
  } else if (parens) {
    *top++ = open;
  }
  *depth = (int)(top - stack);
}

/* Write dim; `spell`: even if it is large, because this is its own definition. */
static void write_tree(aoth_dim_writer_t *w, int64_t dim, int spell, kit_text_t *out) {
  item_t stack[STACK_MAX];
  int depth = 0;
  const item_t first = {.dim = dim};
  stack[depth++] = first;
  while (depth) {
    item_t item = stack[--depth];
    if (item.text) {
      kit_text_z(out, item.text);
    } else if (!AOT_DIM_IS_SYM(item.dim)) {
      kit_text_i64(out, item.dim);
    } else if (row_at(w, item.dim)->info.op == AOT_EXPR_SYMBOL) {
      aoth_symbol_write(w, (uint32_t)row_at(w, item.dim)->info.a, out);
    } else if (is_large(w, item.dim) && !(spell && item.dim == dim)) {
      if (w->let_numbers) kit_text_f(out, "$e%u", w->let_numbers[AOT_DIM_EXPR(item.dim)]);
      else kit_text_f(out, "<expr %u>", AOT_DIM_EXPR(item.dim));
    } else {
      push_operation(w, item.dim, item.prec, stack, &depth);
    }
  }
}

static void define(aoth_dim_writer_t *w, int64_t dim) {
  w->let_numbers[AOT_DIM_EXPR(dim)] = w->n_lets;
  kit_text_f(w->lets, "let $e%u = ", w->n_lets++);
  write_tree(w, dim, 1, w->lets);
  kit_text_z(w->lets, "\n");
}

typedef struct work_item {
  int64_t *at;
  size_t n;
  uint32_t capacity;
} work_item_t;

static int pending_push(work_item_t *s, int64_t dim) {
  int64_t *grown = kit_grow(s->at, &s->capacity, s->n + 1, sizeof *grown);
  if (!grown) return 0;
  s->at = grown;
  s->at[s->n++] = dim;
  return 1;
}

/* Lets of everything large under dim, children first. Small expressions hold no large ones. */
static void define_all(aoth_dim_writer_t *w, int64_t dim, kit_text_t *out) {
  work_item_t stack = {0};
  if (!pending_push(&stack, dim)) out->failed = 1;
  while (stack.n && !out->failed) {
    int64_t top = stack.at[stack.n - 1];
    const aot_expr_info_t *e = &row_at(w, top)->info;
    const int64_t children[3] = {e->c, e->b, e->a};
    size_t before = stack.n;
    for (int i = 0; i < 3 && w->let_numbers[AOT_DIM_EXPR(top)] == AOT_NO_INDEX; i++)
      if (is_large(w, children[i]) && w->let_numbers[AOT_DIM_EXPR(children[i])] == AOT_NO_INDEX &&
          !pending_push(&stack, children[i]))
        out->failed = 1;
    if (stack.n > before) continue;
    stack.n--;
    if (w->let_numbers[AOT_DIM_EXPR(top)] == AOT_NO_INDEX) define(w, top);
  }
  free(stack.at);
}

void aoth_dim_write(aoth_dim_writer_t *w, int64_t dim, kit_text_t *out) {
  if (!aoth_dim_is_valid(w->prog, dim)) {
    kit_text_f(out, "<expr %u>", AOT_DIM_EXPR(dim));
    return;
  }
  if (is_large(w, dim) && w->let_numbers && w->let_numbers[AOT_DIM_EXPR(dim)] == AOT_NO_INDEX) define_all(w, dim, out);
  AOT_ASSERT(out->failed || !w->let_numbers || !is_large(w, dim) || w->let_numbers[AOT_DIM_EXPR(dim)] < w->n_lets);
  write_tree(w, dim, 0, out);
}

void aoth_dim_print(aot_prog_t *p, int64_t dim, kit_text_t *out) {
  aoth_dim_writer_t w = {.prog = p};
  aoth_dim_write(&w, dim, out);
}

static int is_name(const void *names, uint32_t i, const void *name) {
  return aot_str_eq(((const aot_str_t *)names)[i], *(const aot_str_t *)name);
}

int aoth_plain_names(const aot_str_t *names, uint32_t n, int (*is_plain)(aot_str_t), unsigned char *out) {
  kit_map_t map = {0};
  int is_done = kit_map_reserve(&map, n);
  for (uint32_t i = 0; is_done && i < n; i++) {
    out[i] = (unsigned char)(names[i].size && is_plain(names[i]));
    if (!out[i]) continue;
    const uint64_t hash = XXH3_64bits(names[i].data, (size_t)names[i].size);
    const uint32_t other = kit_map_find_or_add(&map, hash, is_name, names, &names[i], i);
    is_done = other != KIT_MAP_NONE;
    if (is_done && other != i) out[i] = out[other] = 0; /* twice: neither may represent one thing */
  }
  kit_map_deinit(&map);
  return is_done;
}

/* Text stays as it is, but for what would end the string or the line, and bytes that are no UTF-8. */
void aoth_quoted(kit_text_t *out, aot_str_t s) {
  static const char hex[] = "0123456789abcdef";
  kit_text_z(out, "\"");
  for (uint64_t i = 0; i < s.size;) {
    unsigned char c = (unsigned char)s.data[i];
    size_t length = kit_utf8_length(s.data + i, (size_t)(s.size - i));
    char escape[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
    const char *report_slot = c == '\n'   ? "\\n"
                              : c == '\t' ? "\\t"
                              : c == '\r' ? "\\r"
                              : c == '"'  ? "\\\""
                              : c == '\\' ? "\\\\"
                                          : NULL;
    if (report_slot) kit_text_add(out, report_slot, 2);
    else if (!length || c < 0x20 || c == 0x7f) kit_text_add(out, escape, 4);
    else kit_text_add(out, s.data + i, length);
    i += length && !report_slot ? length : 1;
  }
  kit_text_z(out, "\"");
}
