/* export_guards.c - guards on the way out: Python over the inputs, as PyTorch writes guards_code.
 *
 * A symbol is the size, or else the stride, of the first user input that has it bare. A guard whose symbols no input
 * shows is one that only a run checks: its assertion is among the nodes. */
#include "export_program.h"
#include <aot/ext/size_guards.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_GUARD 16384u
#define MAX_DEPTH 100u

typedef struct guard_text {
  p2_writer_t *w;
  char text[LONGEST_GUARD];
  size_t n;
  int cut; /* it cannot be written */
} guard_text_t;

static void add(guard_text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(guard_text_t *t, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const int n = vsnprintf(t->text + t->n, sizeof t->text - t->n, format, list);
  va_end(list);
  if (n < 0 || (size_t)n >= sizeof t->text - t->n) t->cut = 1;
  else t->n += (size_t)n;
}

static int add_source(guard_text_t *t, int64_t symbol, int strides) {
  const p2_writer_t *w = t->w;
  for (uint32_t i = 0; i < w->n_leaves; i++) {
    const aot_type_t *type = &w->leaves[i].info.type;
    const int64_t *dims = strides ? type->strides : type->sizes;
    if (w->leaves[i].info.role != AOT_ROLE_USER_INPUT || type->kind != AOT_TYPE_TENSOR || !dims) continue;
    for (int32_t d = 0; d < type->rank; d++) {
      if (dims[d] != symbol) continue;
      const aot_str_t name = w->leaves[i].placeholders[0];
      add(t, "L['%.*s'].%s()[%d]", (int)name.size, name.data, strides ? "stride" : "size", (int)d);
      return 1;
    }
  }
  return 0;
}

/* Fully in parentheses; comparisons are 1 or 0 in Python, too. */
static void add_dim(guard_text_t *t, int64_t dim, uint32_t depth) {
  static const struct {
    int32_t op;
    const char *open, *between;
  } rows[] = {{AOT_EXPR_ADD, "(", " + "},   {AOT_EXPR_SUB, "(", " - "},   {AOT_EXPR_MUL, "(", " * "},
              {AOT_EXPR_MOD, "(", " % "},   {AOT_EXPR_POW, "(", " ** "},  {AOT_EXPR_FLOORDIV, "(", " // "},
              {AOT_EXPR_MAX, "max(", ", "}, {AOT_EXPR_MIN, "min(", ", "}, {AOT_EXPR_EQ, "(", " == "},
              {AOT_EXPR_LT, "(", " < "},    {AOT_EXPR_LE, "(", " <= "}};
  aot_expr_info_t e;
  if (!AOT_DIM_IS_SYM(dim)) {
    add(t, dim < 0 ? "(%lld)" : "%lld", (long long)dim);
    return;
  }
  if (depth == MAX_DEPTH || t->w->host->graph->expr_info(t->w->prog, AOT_DIM_EXPR(dim), &e) != AOT_OK) {
    t->cut = 1;
    return;
  }
  if (e.op == AOT_EXPR_SYMBOL) {
    if (!add_source(t, dim, 0) && !add_source(t, dim, 1)) t->cut = 1;
  } else if (e.op == AOT_EXPR_WHERE) {
    add(t, "(");
    add_dim(t, e.b, depth + 1);
    add(t, " if ");
    add_dim(t, e.a, depth + 1);
    add(t, " else ");
    add_dim(t, e.c, depth + 1);
    add(t, ")");
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !t->cut; i++) {
    if (rows[i].op != e.op) continue;
    add(t, "%s", rows[i].open);
    add_dim(t, e.a, depth + 1);
    add(t, "%s", rows[i].between);
    add_dim(t, e.b, depth + 1);
    add(t, ")");
  }
}

json_t *p2_guards_json(p2_writer_t *w) {
  const aot_ext_size_guards_t *guards = aot_ext(&w->host->head, AOT_EXT_SIZE_GUARDS);
  json_t *list = json_array();
  guard_text_t *t;
  for (uint32_t i = 0; guards && list && i < guards->count(guards, w->prog); i++) {
    aot_guard_info_t g = {.struct_size = sizeof g};
    if (P2_NEW(w->env, P2_SCRATCH, 1, &t) != AOT_OK || guards->get(guards, w->prog, i, &g) != AOT_OK) continue;
    t->w = w;
    add_dim(t, g.condition, 0);
    if (!t->cut) json_array_append_new(list, json_stringn(t->text, t->n));
  }
  return list;
}
