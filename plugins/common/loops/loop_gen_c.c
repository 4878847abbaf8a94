/* Loop IR to C. Templates: $k is argument k converted to the computing type, @name( a helper for that type, T( a
 * constant of that type. Loads that do not move in the innermost dimension stand before it. With draws, the innermost
 * dimension is run in pieces, each filling the draws' buffers first. */
#include "common/loops/loop.h"
#include <aot/inline.h>

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 512 /* elements: their random words stay in the first cache */ };

/* Iterations are independent. gcc does not take that from `restrict` within a block, and gives up with many
 * operands. */
#define IN_PARALLEL "#pragma GCC ivdep\n"

void lp_text_add(lp_text_t *t, const char *data, uint64_t size) {
  if (t->failed) return;
  if (t->size + size + 1 > t->capacity) {
    uint64_t capacity = (t->size + size + 1) * 2 + 256;
    char *grown = realloc(t->data, (size_t)capacity);
    if (!grown) {
      t->failed = 1;
      return;
    }
    t->data = grown;
    t->capacity = capacity;
  }
  memcpy(t->data + t->size, data, (size_t)size);
  t->size += size;
  t->data[t->size] = 0;
}

void lp_print(lp_text_t *t, const char *format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (n < 0 || (size_t)n >= sizeof line) t->failed = 1;
  else lp_text_add(t, line, (uint64_t)n);
}

void lp_text_deinit(lp_text_t *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}

static const char *c_type(int32_t dtype) {
  switch (dtype) {
    case AOT_F32: return "float";
    case AOT_F64: return "double";
    case AOT_BOOL:
    case AOT_U8: return "uint8_t";
    case AOT_I8: return "int8_t";
    case AOT_I16: return "int16_t";
    case AOT_I32: return "int32_t";
    case AOT_U32: return "uint32_t"; /* random words */
    case AOT_U64: return "uint64_t";
    default: return "int64_t";
  }
}
static const char *suffix(int32_t compute) { return compute == AOT_F32 ? "f32" : compute == AOT_F64 ? "f64" : "i64"; }
static int is_float(int32_t dtype) { return dtype == AOT_F32 || dtype == AOT_F64; }

static void print_double(lp_text_t *out, int32_t compute, double v) {
  /* -0 would be an integer */
  const char *type = compute == AOT_F32 ? "float" : "double", *sign_kept = v == 0 ? ".0" : "";
  if (isnan(v)) lp_print(out, "((%s)NAN)", type);
  else if (isinf(v)) lp_print(out, "((%s)%sINFINITY)", type, v < 0 ? "-" : "");
  else if (compute == AOT_F32) lp_print(out, "((float)%.17g%s)", v, sign_kept);
  else lp_print(out, "((double)%.17g%s)", v, sign_kept);
}

static void print_int(lp_text_t *out, int64_t v) {
  if (v == INT64_MIN) lp_print(out, "INT64_MIN");
  else lp_print(out, "INT64_C(%lld)", (long long)v);
}

static void print_number(lp_text_t *out, int32_t compute, const lp_arg_t *a) {
  double f = a->kind == LP_FLOAT ? a->f : (double)a->i;
  if (is_float(compute)) print_double(out, compute, f);
  else if (compute == AOT_BOOL) lp_print(out, "%d", f != 0);
  else if (a->kind == LP_FLOAT) print_int(out, aot_float_to_int(a->f));
  else print_int(out, a->i);
}

/* The variable, converted to the computing type. A cast of a comparison to a number would keep gcc from vectorising. */
static void print_variable(lp_text_t *out, int32_t compute, int32_t dtype, char kind, uint32_t index) {
  if (compute == AOT_BOOL) lp_print(out, "%c%u != 0", kind, index);
  else if (!is_float(compute) && is_float(dtype)) lp_print(out, "lp_to_i64((double)%c%u)", kind, index);
  else if (dtype == compute) lp_print(out, "%c%u", kind, index);
  else if (dtype == AOT_BOOL && kind == 'v')
    lp_print(out, "v%u ? (%s)1 : (%s)0", index, c_type(compute), c_type(compute));
  else lp_print(out, "(%s)%c%u", c_type(compute), kind, index);
}

static void print_arg(lp_text_t *out, const lp_loop_t *l, const lp_inst_t *inst, uint32_t k) {
  const lp_arg_t *a = &inst->args[k];
  if (k >= inst->n_args || a->kind == LP_ABSENT) lp_print(out, "0");
  else if (a->kind == LP_DRAWN) lp_print(out, "x%u", a->index);
  else if (a->kind == LP_LOAD) print_variable(out, inst->compute, l->accesses[a->index].dtype, 'x', a->index);
  else if (a->kind == LP_INST) print_variable(out, inst->compute, l->insts[a->index].dtype, 'v', a->index);
  else print_number(out, inst->compute, a);
}

static void print_template(lp_text_t *out, const lp_loop_t *l, const lp_inst_t *inst) {
  for (const char *c = inst->text; *c; c++) {
    if (*c == '$') {
      c++;
      lp_text_add(out, "(", 1);
      print_arg(out, l, inst, (uint32_t)(*c - '0'));
      lp_text_add(out, ")", 1);
    } else if (*c == '@') {
      const char *end = c + 1;
      while (isalnum((unsigned char)*end) || *end == '_') end++;
      lp_text_add(out, "lp_", 3);
      lp_text_add(out, c + 1, (uint64_t)(end - c - 1));
      lp_print(out, "_%s", suffix(inst->compute));
      c = end - 1;
    } else if (*c == 'T' && c[1] == '(') {
      lp_print(out, "(%s)", c_type(inst->compute));
    } else {
      lp_text_add(out, c, 1);
    }
  }
}

static void print_inst(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_inst_t *inst = &l->insts[k];
  const char *type = c_type(inst->dtype);
  lp_print(out, "const %s v%u = (%s)(", type, k, type);
  print_template(out, l, inst);
  lp_print(out, inst->dtype == AOT_BOOL ? ") != 0;\n" : ");\n");
}

static int64_t inner_stride(const lp_loop_t *l, uint32_t k) { return l->accesses[k].strides[l->rank - 1]; }

static void print_load(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  int64_t stride = inner_stride(l, k);
  if (l->accesses[k].draws) {
    lp_print(out, "const %s x%u = w%u[i - piece];\n", c_type(l->accesses[k].dtype), k, k);
    return;
  }
  lp_print(out, "const %s x%u = q%u", c_type(l->accesses[k].dtype), k, k);
  if (stride == 0) lp_print(out, "[0];\n");
  else if (stride == 1) lp_print(out, "[i];\n");
  else lp_print(out, "[i * s[%u]];\n", k * (uint32_t)l->rank + (uint32_t)l->rank - 1);
}

static void print_store(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  int same = a->dtype == l->insts[a->inst].dtype;
  if (inner_stride(l, k) == 1) lp_print(out, "q%u[i]", k);
  else lp_print(out, "q%u[i * s[%u]]", k, k * (uint32_t)l->rank + (uint32_t)l->rank - 1);
  if (same) lp_print(out, " = v%u;\n", a->inst);
  else lp_print(out, " = (%s)v%u;\n", c_type(a->dtype), a->inst);
}

/* The number of the element that the row starts with. */
static void print_first(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  uint32_t rank = (uint32_t)l->rank;
  lp_print(out, "const lp_draw_t *const q%u = (const lp_draw_t *)p[%u];\nconst int64_t e%u = 0", k, k, k);
  for (uint32_t d = 0; d + 1 < rank; d++) lp_print(out, " + i%u * s[%u]", d, k * rank + d);
  lp_print(out, ";\n");
}

/* One piece of the innermost dimension, its random numbers ready. */
static void print_piece(lp_text_t *out, const lp_loop_t *l, const char *begin, const char *end) {
  lp_print(out, "for (int64_t piece = %s; piece < %s; piece += %d) {\n", begin, end, PIECE);
  lp_print(out, "const int64_t stop = %s - piece < %d ? %s : piece + %d;\n", end, PIECE, end, PIECE);
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const lp_access_t *a = &l->accesses[k];
    uint32_t inner = k * (uint32_t)l->rank + (uint32_t)l->rank - 1;
    if (!a->draws) continue;
    lp_print(out, "%s w%u[%d];\n", c_type(a->dtype), k, PIECE);
    lp_print(out,
             "q%u->fill((uint64_t)x%u, (uint64_t)x%u + q%u->draw, (uint64_t)(e%u + piece * s[%u]), (uint64_t)s[%u], ",
             k, a->seed, a->offset, k, k, inner, inner);
    lp_print(out, "(uint64_t)(stop - piece), w%u);\n", k);
  }
  lp_print(out, IN_PARALLEL "for (int64_t i = piece; i < stop; i++) {\n");
}

static void print_outer_loops(lp_text_t *out, const lp_loop_t *l) {
  uint32_t n = l->n_loads + l->n_stores, rank = (uint32_t)l->rank;
  for (uint32_t d = 0; d + 1 < rank; d++) {
    if (d == 0) lp_print(out, "for (int64_t i0 = begin; i0 < end; i0++)\n");
    else lp_print(out, "for (int64_t i%u = 0; i%u < n[%u]; i%u++)\n", d, d, d, d);
  }
  lp_print(out, "{\n");
  for (uint32_t k = 0; k < n; k++) {
    const char *type = c_type(l->accesses[k].dtype), *mark = k < l->n_loads ? "const " : "";
    if (l->accesses[k].draws) {
      print_first(out, l, k);
      continue;
    }
    lp_print(out, "%s%s *%sq%u = (%s%s *)p[%u]", mark, type, l->in_place ? "" : "restrict ", k, mark, type, k);
    for (uint32_t d = 0; d + 1 < rank; d++) lp_print(out, " + i%u * s[%u]", d, k * rank + d);
    lp_print(out, ";\n");
  }
}

static int n_draws(const lp_loop_t *l) {
  int n = 0;
  for (uint32_t k = 0; k < l->n_loads; k++) n += l->accesses[k].draws != 0;
  return n;
}

/* Does the load change within the innermost loop? Drawn numbers do, whatever their strides. */
static int moves(const lp_loop_t *l, uint32_t k) { return l->accesses[k].draws || inner_stride(l, k) != 0; }

/* Numbers of insts stay small: groups are bounded by fu_graph_t.max_nodes. */
void lp_gen_c(const lp_loop_t *l, const char *name, lp_text_t *out) {
  const char *begin = l->rank == 1 ? "begin" : "0", *end = l->rank == 1 ? "end" : "length";
  int draws = n_draws(l);
  lp_print(out, "void %s(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end) {\n", name);
  lp_print(out, "(void)n; (void)s; (void)begin; (void)end;\n");
  if (l->rank > 1) lp_print(out, "const int64_t length = n[%d];\n", l->rank - 1); /* a store of bytes might change n */
  print_outer_loops(out, l);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (!moves(l, k)) print_load(out, l, k);
  if (draws) print_piece(out, l, begin, end);
  else lp_print(out, IN_PARALLEL "for (int64_t i = %s; i < %s; i++) {\n", begin, end);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (moves(l, k)) print_load(out, l, k);
  for (uint32_t k = 0; k < l->n_insts; k++) print_inst(out, l, k);
  for (uint32_t k = l->n_loads; k < l->n_loads + l->n_stores; k++) print_store(out, l, k);
  lp_print(out, draws ? "}\n}\n}\n}\n" : "}\n}\n}\n");
}
