/* Loop IR to C. Loads that do not move in the innermost dimension precedes it, with what follows from them alone.
 *
 *     for every row
 *       loads and instructions of the row
 *       for every pass
 *         for every piece of 512 elements: draws fill their buffers | the elements, in parallel, which leave in
 *         buffers what is to be reduced | reductions take the buffers in
 *         the values of its reductions, and what follows from them
 *       stores of the row; sums across rows are added to where their terms are
 *
 * Without reductions there is one pass, without draws one piece. What a reduction takes in passes through memory (the
 * first cache), so its order and its code are those of one helper function, whatever is fused with it. */
#include "loop_print.h"

#include <aot/assert.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 512 /* elements: their buffers stay in the first cache; a multiple of the lanes of sums */ };

/* Iterations are independent. gcc does not take that from `restrict` within a block, and gives up with many
 * operands. */
#define IN_PARALLEL "#pragma GCC ivdep\n"

static int64_t inner_stride(const lp_loop_t *l, uint32_t k) { return l->accesses[k].strides[l->rank - 1]; }
static uint32_t inner_place(const lp_loop_t *l, uint32_t k) { return k * (uint32_t)l->rank + (uint32_t)l->rank - 1; }

/* What dimension d adds to the place of an access; index: the loop's variable. */
static void print_term(lp_text_t *out, const lp_loop_t *l, uint32_t k, uint32_t d, const char *index, int is_one) {
  if (l->accesses[k].bounded >> d & 1u) lp_print(out, "(%s - b%u_%u)", index, k, d);
  else lp_print(out, "%s", index);
  if (!is_one) lp_print(out, " * s[%u]", k * (uint32_t)l->rank + d);
}

static int has_runs(const lp_loop_t *l) { return lp_row(l) + 1 < l->rank; }

/* What it adds, too, in a run of a row of several dimensions: i counts from the row's first element on. */
static int has_run(const lp_loop_t *l, uint32_t k) {
  return has_runs(l) && !l->columns && !l->accesses[k].of_row && (k >= l->n_loads || lp_moves(l, k));
}

/* Its place in the innermost loop. Of columns that is a tile, and `row` is an element's number within its row. */
static void print_place(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const uint32_t inner = (uint32_t)lp_inner(l);
  const int64_t stride = l->accesses[k].strides[inner];
  const char *joint = "";
  char index[16] = "row";
  const int counts = l->accesses[k].counts;
  lp_print(out, counts ? "(q%u + " : "q%u[", k);
  if (l->accesses[k].n_indices) lp_print(out, "j%u", k), joint = " + ";
  if (has_run(l, k)) lp_print(out, "%so%u", joint, k), joint = " + ";
  for (uint32_t d = (uint32_t)lp_row(l); l->columns && d < (uint32_t)l->rank; d++) {
    if (l->accesses[k].strides[d] == 0) continue;
    if (has_runs(l)) snprintf(index, sizeof index, "i%u", d);
    lp_print(out, "%s", joint);
    print_term(out, l, k, d, index, 0);
    joint = " + ";
  }
  if (stride != 0) lp_print(out, "%s", joint), print_term(out, l, k, inner, "i", stride == 1);
  else if (!*joint || (l->columns && !l->accesses[k].n_indices)) lp_print(out, "%s0", joint);
  lp_print(out, counts ? ")" : "]");
}

/* Are its indices those of the whole row? Then their place is found before it. */
static int is_row_of_indices(const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (lp_moves(l, a->indices[i].load)) return 0;
  return a->n_indices && !l->columns;
}

static void print_load(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  const char *half = lp_half_name(a->dtype);
  if (!is_row_of_indices(l, k)) lp_print_indices(out, l, k, 0);
  lp_print(out, "const %s x%u = ", lp_value_type(a->dtype), k);
  if (a->bounded) {
    lp_print_is_inside(out, l, k, "i", "row");
    lp_print(out, " ? ");
  }
  if (half) lp_print(out, "lp_from_%s(", half);
  if (a->draws) lp_print(out, "w%u[i - piece]", k);
  else print_place(out, l, k);
  if (half) lp_print(out, ")");
  if (a->bounded) {
    lp_print(out, " : ");
    lp_print_outside(out, l, k);
  }
  lp_print(out, ";\n");
}

static void print_store(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  if (!is_row_of_indices(l, k)) lp_print_indices(out, l, k, 0);
  if (a->of_row && !l->columns) lp_print(out, "q%u[0]", k);
  else print_place(out, l, k);
  lp_print(out, a->adds ? " += " : " = ");
  lp_print_stored(out, l, k);
  lp_print(out, ";\n");
}

/* ---- the nest ---- */

/* The number of the element that the row starts with. */
static void print_first(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  uint32_t rank = (uint32_t)l->rank;
  lp_print(out, "const lp_draw_t *const q%u = (const lp_draw_t *)p[%u];\nconst int64_t e%u = 0", k, k, k);
  for (uint32_t d = 0; d + 1 < rank; d++) lp_print(out, " + i%u * s[%u]", d, k * rank + d);
  lp_print(out, ";\n");
}

/* Bounds as constants; the function's first lines. */
static void print_bounds(lp_text_t *out, const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++) {
    uint32_t at = lp_first_number(l, k) + 2 * l->accesses[k].n_indices;
    for (uint32_t d = 0; d < (uint32_t)l->rank; d++) {
      if (!(l->accesses[k].bounded >> d & 1u)) continue;
      lp_print(out, "const int64_t b%u_%u = s[%u], e%u_%u = s[%u];\n", k, d, at, k, d, at + 1);
      at += 2;
    }
  }
}

static void print_outer_loops(lp_text_t *out, const lp_loop_t *l) {
  const uint32_t n = l->n_loads + l->n_stores, n_outer = (uint32_t)lp_row(l) - (l->columns != 0);
  char index[16];
  for (uint32_t d = 0; d < n_outer; d++) {
    if (d == 0) lp_print(out, "for (int64_t i0 = begin; i0 < end; i0++)\n");
    else lp_print(out, "for (int64_t i%u = 0; i%u < n[%u]; i%u++)\n", d, d, d, d);
  }
  lp_print(out, "{\n");
  for (uint32_t k = 0; k < n; k++) {
    const char *type = lp_c_type(l->accesses[k].dtype), *mark = k < l->n_loads ? "const " : "";
    if (l->accesses[k].draws) {
      print_first(out, l, k);
      continue;
    }
    if (l->accesses[k].counts) lp_print(out, "const int64_t q%u = 0", k);
    else lp_print(out, "%s%s *%sq%u = (%s%s *)p[%u]", mark, type, l->in_place ? "" : "restrict ", k, mark, type, k);
    for (uint32_t d = 0; d < n_outer; d++) {
      snprintf(index, sizeof index, "i%u", d);
      lp_print(out, " + ");
      print_term(out, l, k, d, index, 0);
    }
    lp_print(out, ";\n");
    lp_print_row_bounds(out, l, k);
  }
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].keep) {
      const char *type = lp_value_type(l->insts[k].dtype);
      AOT_ASSERT(l->insts[k].keep <= l->n_kept); /* p has so many row buffers */
      lp_print(out, "%s *restrict const k%u = (%s *)p[%u];\n", type, k, type, n + l->insts[k].keep - 1);
    }
}

/* ---- sums across rows ---- */

static int is_across(const lp_loop_t *l, uint32_t store) {
  return l->insts[l->accesses[store].inst].reduce == LP_ACROSS;
}

/* What stores hold before the first row. */
static void print_nothing_across(lp_text_t *out, const lp_loop_t *l) {
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    if (!is_across(l, s)) continue;
    if (!l->insts[l->accesses[s].inst].of_row) lp_print(out, "for (int64_t i = 0; i < length; i++) ");
    lp_print(out, "((double *)p[%u])[%s] = 0;\n", s, l->insts[l->accesses[s].inst].of_row ? "0" : "i");
  }
}

/* An element, or a row's value, is added to what its store has. */
static void print_across(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  AOT_ASSERT(!l->columns); /* accumulators are by column there */
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    if (l->accesses[s].inst != k) continue;
    print_place(out, l, s);
    lp_print(out, " += (double)(%s)(", lp_value_type(l->insts[k].compute));
    lp_print_template(out, l, &l->insts[k]);
    lp_print(out, ");\n");
  }
}

/* ---- a pass ---- */

static void print_draws(lp_text_t *out, const lp_loop_t *l, const lp_pass_t *p) {
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const lp_access_t *a = &l->accesses[k];
    const uint32_t inner = inner_place(l, k);
    if (!p->loads[k] || !a->draws) continue;
    AOT_ASSERT(a->seed < k && a->offset < k); /* variables that are there by then */
    lp_print(out, "%s w%u[%d];\n", lp_c_type(a->dtype), k, PIECE);
    lp_print(out,
             "q%u->fill((uint64_t)x%u, (uint64_t)x%u + q%u->draw, (uint64_t)(e%u + piece * s[%u]), (uint64_t)s[%u], ",
             k, a->seed, a->offset, k, k, inner, inner);
    lp_print(out, "(uint64_t)(stop - piece), w%u);\n", k);
  }
}

/* Floats are added and multiplied in double. */
static const char *lane_type(const lp_inst_t *inst) {
  const int32_t join = inst->reduce + inst->scan;
  if (!lp_is_float(inst->compute)) return "int64_t";
  return join == LP_MAX || join == LP_MIN ? lp_c_type(lp_value_dtype(inst->compute)) : "double";
}

static int is_plain(const lp_access_t *a) { return !a->draws && !a->counts && !a->n_indices && !a->bounded; }

/* A load or a row buffer that a reduction reads as it is: no element of it need be looked at before. */
static const lp_arg_t *direct(const lp_loop_t *l, const lp_inst_t *inst) {
  const char *at = inst->text;
  lp_token_t t;
  if (!lp_token(&at, &t) || *at || (t.kind != LP_TK_ARG && t.kind != LP_TK_STEP) || inst->compute == AOT_BOOL)
    return NULL;
  const lp_arg_t *a = &inst->args[t.index + (t.kind == LP_TK_STEP ? LP_ARGS : 0)];
  if (a->kind == LP_LOAD && is_plain(&l->accesses[a->index]) && inner_stride(l, a->index) == 1 &&
      l->accesses[a->index].dtype == inst->compute)
    return a;
  return a->kind == LP_INST && l->insts[a->index].keep && lp_value_dtype(l->insts[a->index].dtype) == inst->compute
             ? a
             : NULL;
}

/* What accumulator a%u%s is after this element. */
static void print_join(lp_text_t *out, const lp_loop_t *l, uint32_t k, const char *slot) {
  const lp_inst_t *inst = &l->insts[k];
  lp_print(out, "{\nconst %s t = (%s)(", lane_type(inst), lp_c_type(lp_value_dtype(inst->compute)));
  lp_print_template(out, l, inst);
  lp_print(out, ");\na%u%s = %s(a%u%s, t);\n}\n", k, slot, lp_join_name(inst->reduce + inst->scan), k, slot);
  if (!inst->scan) return;
  lp_print_value(out, l, k);
  lp_print(out, "a%u%s);\n", k, slot);
}

static void print_element(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_inst_t *inst = &l->insts[k];
  if (inst->reduce == LP_EACH) {
    if (inst->scan) print_join(out, l, k, "");
    else lp_print_inst(out, l, k);
    if (inst->keep) lp_print(out, "k%u[i] = v%u;\n", k, k);
  } else if (inst->reduce == LP_ACROSS) {
    print_across(out, l, k);
  } else if (!direct(l, inst)) {
    lp_print(out, "t%u[i - piece] = (%s)(", k, lp_c_type(inst->compute));
    lp_print_template(out, l, inst);
    lp_print(out, ");\n");
  }
}

/* The elements from `begin` to `end`. */
static void print_elements(lp_text_t *out, const lp_loop_t *l, const lp_pass_t *p, const char *begin, const char *end) {
  lp_print(out, "%sfor (int64_t i = %s; i < %s; i++) {\n", p->is_serial ? "" : IN_PARALLEL, begin, end);
  if (p->has_place) lp_print(out, "const int64_t place = i;\n");
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (p->loads[k]) print_load(out, l, k);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (p->kept[k]) lp_print(out, "const %s v%u = k%u[i];\n", lp_value_type(l->insts[k].dtype), k, k);
    if (p->insts[k] && lp_is_element(&l->insts[k])) print_element(out, l, k);
  }
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (!l->accesses[s].of_row && !is_across(l, s) && lp_store_pass(l, s) == p->number) print_store(out, l, s);
  lp_print(out, "}\n");
}

/* The indices of element `of` of a row of several dimensions, from dimension `end` - 1 on outwards. */
static void print_row_indices(lp_text_t *out, const lp_loop_t *l, const char *of, int32_t end) {
  for (int32_t d = lp_row(l); d < end; d++) {
    lp_print(out, "const int64_t i%d = %s", d, of);
    for (int32_t e = d + 1; e < l->rank; e++) lp_print(out, " / n[%d]", e);
    if (d > lp_row(l)) lp_print(out, " %% n[%d]", d);
    lp_print(out, ";\n");
  }
}

/* A piece ends where the innermost dimension does: its elements step evenly. */
static void print_run(lp_text_t *out, const lp_loop_t *l) {
  const uint32_t inner = (uint32_t)l->rank - 1;
  lp_print(out, "const int64_t run = piece / n[%u] * n[%u];\n", inner, inner);
  lp_print(out, "stop = run + n[%u] - piece < %d ? run + n[%u] : piece + %d;\n", inner, PIECE, inner, PIECE);
  print_row_indices(out, l, "piece", l->rank - 1);
  for (uint32_t k = 0; k < l->n_loads + l->n_stores; k++) {
    if (!has_run(l, k)) continue;
    lp_print(out, "const int64_t o%u = ", k);
    for (uint32_t d = (uint32_t)lp_row(l); d < inner; d++)
      lp_print(out, "i%u * s[%u] + ", d, k * (uint32_t)l->rank + d);
    lp_print(out, "-run * s[%u];\n", inner_place(l, k));
  }
}

/* One piece of the innermost dimension after another. */
static void print_pieces(lp_text_t *out, const lp_loop_t *l, const lp_pass_t *p, const char *begin, const char *end) {
  if (has_runs(l)) {
    lp_print(out, "for (int64_t piece = %s, stop; piece < %s; piece = stop) {\n", begin, end);
    print_run(out, l);
  } else {
    lp_print(out, "for (int64_t piece = %s; piece < %s; piece += %d) {\n", begin, end, PIECE);
    lp_print(out, "const int64_t stop = %s - piece < %d ? %s : piece + %d;\n", end, PIECE, end, PIECE);
  }
  print_draws(out, l, p);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (p->insts[k] && lp_reduces_row(&l->insts[k]) && !direct(l, &l->insts[k]))
      lp_print(out, "%s t%u[%d];\n", lp_c_type(l->insts[k].compute), k, PIECE);
  print_elements(out, l, p, "piece", "stop");
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    if (!p->insts[k] || !lp_reduces_row(inst)) continue;
    lp_print(out, "lp_row_%s_%s(a%u, ", lp_reduction_name(inst->reduce), lp_suffix(inst->compute), k);
    const lp_arg_t *from = direct(l, inst);
    if (from && from->kind == LP_LOAD && has_runs(l)) lp_print(out, "q%u + o%u + piece", from->index, from->index);
    else if (from) lp_print(out, "%c%u + piece", from->kind == LP_LOAD ? 'q' : 'k', from->index);
    else lp_print(out, "t%u", k);
    lp_print(out, ", stop - piece);\n");
  }
  lp_print(out, "}\n");
}

/* What the row has before this pass; or after the last. */
static void print_row_insts(lp_text_t *out, const lp_loop_t *l, uint32_t pass) {
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (!l->insts[k].of_row || l->insts[k].pass != pass) continue;
    if (l->insts[k].reduce == LP_EACH) lp_print_inst(out, l, k);
    if (l->insts[k].reduce == LP_ACROSS) print_across(out, l, k);
  }
}

static void print_pass(lp_text_t *out, const lp_loop_t *l, uint32_t number, const char *begin, const char *end) {
  lp_pass_t p;
  lp_find_pass(l, number, &p);
  print_row_insts(out, l, number);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (p.insts[k] && l->insts[k].scan)
      lp_print(out, "%s a%u = %s;\n", lane_type(&l->insts[k]), k, lp_first_value(&l->insts[k]));
    else if (p.insts[k] && lp_reduces_row(&l->insts[k]))
      lp_print(out, "%s a%u[LP_LANES];\nlp_row_%s_begin_%s(a%u);\n", lane_type(&l->insts[k]), k,
               lp_reduction_name(l->insts[k].reduce), lp_suffix(l->insts[k].compute), k);
  if (p.in_pieces || has_runs(l)) print_pieces(out, l, &p, begin, end);
  else print_elements(out, l, &p, begin, end);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (p.insts[k] && lp_reduces_row(&l->insts[k])) {
      lp_print_value(out, l, k);
      lp_print(out, "lp_row_%s_end_%s(a%u));\n", lp_reduction_name(l->insts[k].reduce), lp_suffix(l->insts[k].compute),
               k);
    }
}

/* ---- columns ---- */

/* One element of each column of the tile. */
static void print_column_elements(lp_text_t *out, const lp_loop_t *l, const lp_pass_t *p) {
  if (p->has_place) lp_print(out, "const int64_t place = row;\n");
  for (uint32_t k = 0; k < l->n_loads; k++) print_load(out, l, k);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    if (inst->reduce != LP_EACH || inst->scan) print_join(out, l, k, "[i - piece]");
    else if (p->insts[k] || (inst->of_row && inst->pass == 0)) lp_print_inst(out, l, k);
  }
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (!l->accesses[s].of_row) print_store(out, l, s);
}

/* What a column has at its end: reductions, and what follows from them. */
static void print_column_ends(lp_text_t *out, const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (!lp_moves(l, k)) print_load(out, l, k);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (!l->insts[k].of_row) continue;
    if (l->insts[k].reduce == LP_EACH) {
      lp_print_inst(out, l, k);
      continue;
    }
    lp_print_value(out, l, k);
    lp_print(out, "a%u[i - piece]);\n", k);
  }
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (l->accesses[s].of_row) print_store(out, l, s);
}

static int has_ends(const lp_loop_t *l) {
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (l->accesses[s].of_row) return 1;
  return 0;
}

static void print_columns(lp_text_t *out, const lp_loop_t *l) {
  AOT_ASSERT(l->n_passes == 1 && l->n_kept == 0 && l->reduced);
  const int is_split = lp_row(l) == 1; /* the function runs a part of the tiles */
  lp_pass_t p;
  lp_find_pass(l, 0, &p);
  lp_print(out, "const int64_t first = %s, width = %s;\n", is_split ? "begin" : "0", is_split ? "end" : "across");
  lp_print(out, "for (int64_t piece = first; piece < width; piece += %d) {\n", PIECE);
  lp_print(out, "const int64_t stop = width - piece < %d ? width : piece + %d;\n", PIECE, PIECE);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce != LP_EACH || l->insts[k].scan)
      lp_print(out, "%s a%u[%d];\nfor (int64_t i = 0; i < %d; i++) a%u[i] = %s;\n", lane_type(&l->insts[k]), k, PIECE,
               PIECE, k, lp_first_value(&l->insts[k]));
  lp_print(out, has_runs(l) ? "for (int64_t row = 0; row < length; row++) {\n"
                            : "for (int64_t row = 0; row < length; row++)\n");
  if (has_runs(l)) print_row_indices(out, l, "row", l->rank);
  lp_print(out, IN_PARALLEL "for (int64_t i = piece; i < stop; i++) {\n");
  print_column_elements(out, l, &p);
  if (has_runs(l)) lp_print(out, "}\n");
  if (!has_ends(l)) {
    lp_print(out, "}\n}\n");
    return;
  }
  lp_print(out, "}\n" IN_PARALLEL "for (int64_t i = piece; i < stop; i++) {\n");
  print_column_ends(out, l);
  lp_print(out, "}\n}\n");
}

static void print_row(lp_text_t *out, const lp_loop_t *l) {
  AOT_ASSERT(lp_row(l) > 0 || l->rank == 1); /* `begin` and `end` are of dimension 0, which is no part of a row */
  const char *begin = l->rank == 1 ? "begin" : "0", *end = l->rank == 1 ? "end" : "length";
  for (uint32_t k = 0; k < l->n_loads; k++) {
    if (is_row_of_indices(l, k)) lp_print_indices(out, l, k, 0);
    if (!lp_moves(l, k)) print_load(out, l, k);
  }
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (is_row_of_indices(l, s)) lp_print_indices(out, l, s, 0);
  for (uint32_t pass = 0; pass < l->n_passes; pass++) print_pass(out, l, pass, begin, end);
  print_row_insts(out, l, l->n_passes);
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++)
    if (l->accesses[s].of_row) print_store(out, l, s);
}

void lp_gen_c(const lp_loop_t *l, const char *name, lp_text_t *out) {
  AOT_ASSERT(l->rank >= 1 && l->n_stores > 0 && l->n_passes > 0); /* simplified and scheduled */
  lp_print(out, "void %s(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end) {\n", name);
  lp_print(out, "(void)n; (void)s; (void)begin; (void)end;\n");
  if (l->rank > 1) { /* a store of bytes might change n */
    lp_print(out, "const int64_t length = n[%d]", lp_row(l));
    for (int32_t d = lp_row(l) + 1; d < l->rank; d++) lp_print(out, " * n[%d]", d);
    lp_print(out, ";\n");
  }
  if (l->columns) lp_print(out, "const int64_t across = n[%d];\n", lp_inner(l));
  if (lp_has_indices(l)) lp_print(out, "int64_t wrong = 0;\n");
  print_bounds(out, l);
  print_nothing_across(out, l);
  print_outer_loops(out, l);
  if (l->columns) print_columns(out, l);
  else print_row(out, l);
  lp_print(out, "}\n");
  if (lp_has_indices(l)) lp_print(out, "if (wrong) *(int64_t *)p[%u] = 1;\n", l->n_loads + l->n_stores + l->n_kept);
  lp_print(out, "}\n");
}
