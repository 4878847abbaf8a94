/* A node as loops see it: a pointwise operator's template, or an operator's steps that reduce rows. It must be a row of
 * the operators' tables in this form, and dtypes must be supported. */
#include "group_member.h"
#include "group_read.h"

#include "kit/reference/rk_core.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <math.h>
#include <string.h>

uint32_t lw_n_places(const lw_build_t *b) { return b->node->n_args < LP_ARGS ? b->node->n_args : LP_ARGS; }

/* The node's arguments as the operator table sees them. 0: an argument that loops cannot hold. */
static int read_operands(const lw_build_t *b, lp_operand_t *out, aot_str_t *word) {
  word->size = 0;
  word->data = "";
  for (uint32_t k = 0; k < lw_n_places(b); k++) {
    const aot_snap_arg_t *a = lw_arg(b, k);
    memset(&out[k], 0, sizeof out[k]);
    if (a->kind == AOT_ARG_VALUE) {
      const lw_tensor_t *t = lw_arg_tensor(b, k);
      if (!t) return 0;
      out[k] = (lp_operand_t){LP_LOAD, t->dtype, t->rank, 0};
    } else if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_BOOL) {
      out[k].kind = a->kind == AOT_ARG_INT ? LP_INT : a->kind == AOT_ARG_FLOAT ? LP_FLOAT : LP_BOOL;
      out[k].number = lw_arg_float(b, k, 0);
    } else if (a->kind == AOT_ARG_STR) {
      word->data = (const char *)b->s + b->s->chars.at + a->i;
      word->size = a->n;
    } else if (a->kind == AOT_ARG_VALUES) {
      return 0;
    }
  }
  return 1;
}

static const lp_op_t *loop_op(const lw_build_t *b) { return lw_op(b)->loop; }

static int is_number(const lw_tensor_t *t) { return t && t->rank == 0 && t->dtype == AOT_I64; }

/* A draw that a loop can make: seed and offset come from outside (its own space has dimensions, theirs has none). What
 * is wrong with others, an empty range for one, the reference kernel reports. */
static int draws_well(const lw_build_t *b) {
  int has_range = b->node->n_args > 5;
  return is_number(lw_arg_tensor(b, 0)) && is_number(lw_arg_tensor(b, 1)) && lw_type(b, 0)->rank > 0 &&
         (!has_range || lw_arg_int(b, 3, 0) < lw_arg_int(b, 4, 0));
}

/* The reference kernel knows what a bound of NaN means where it is a number. */
static int bounds_by_nan(const lw_build_t *b, const lp_operand_t *operands, const char *text) {
  for (uint32_t k = 0; (strstr(text, "lesser") || strstr(text, "larger")) && k < lw_n_places(b); k++)
    if (operands[k].kind == LP_FLOAT && isnan(lw_arg_float(b, k, 0))) return 1;
  return 0;
}

/* Integers as their low bits: operations whose results wrap as their operands do. */
static int is_of_low_bits(const char *text) { return text[strspn(text, "abcd+-*&|^~ ")] == 0; }

/* A number that a narrow integer dtype does not hold wraps in it (-1 is 255 next to u8), as does the element of a
 * tensor of rank 0 next to tensors that have dimensions. The reference kernel does it; loops compute in 64 bits, which
 * shows unless low bits are all that counts. */
static int integers_fit(const lw_build_t *b, const lp_operand_t *operands, const char *text) {
  if (is_of_low_bits(text)) return 1;
  for (uint32_t k = 0; k < lw_n_places(b); k++)
    for (uint32_t j = 0; j < lw_n_places(b); j++) {
      const lp_operand_t *o = &operands[k], *beside = &operands[j];
      if (beside->kind != LP_LOAD || !rk_is_int(beside->dtype) || beside->dtype == AOT_BOOL) continue;
      if (o->kind == LP_INT && rk_wrap_to(lw_arg_int(b, k, 0), beside->dtype) != lw_arg_int(b, k, 0)) return 0;
      if (o->kind == LP_LOAD && !o->rank && beside->rank && rk_is_int(o->dtype) &&
          rk_promote(o->dtype, beside->dtype) != beside->dtype)
        return 0;
    }
  return 1;
}

static int is_pointwise(const lw_build_t *b, const lp_operand_t *operands, aot_str_t word, lw_member_t *out) {
  lp_draw_t draw;
  const int32_t result = lw_type(b, 0)->dtype;
  if (!loop_op(b) || b->node->n_results != 1 || !result) return 0;
  if (lp_op_draws(loop_op(b), result, &draw) && !draws_well(b)) return 0;
  out->text = lp_choose(loop_op(b), operands, lw_n_places(b), word, result, b->machine->target->on_gpu, &out->compute);
  return out->text && integers_fit(b, operands, out->text) && !bounds_by_nan(b, operands, out->text);
}

/* ---- rows ---- */

/* The dimensions of x that the operator's rows are, as bits; 0: none, or not as its arguments say. */
static uint32_t find_rows(const lw_build_t *b, const lp_row_op_t *op, const lw_tensor_t *x) {
  const uint32_t all = x->rank ? UINT32_MAX >> (32 - x->rank) : 0;
  int64_t list[AOT_MAX_RANK];
  uint32_t bits = 0;
  AOT_ASSERT(x->rank >= 0 && x->rank <= AOT_MAX_RANK);
  if (op->dims == LP_ROW_WHOLE) return all;
  if (op->dims == LP_ROW_LAST) return x->rank ? 1u << (x->rank - 1) : 0;
  const uint32_t n = lw_arg_ints(b, (uint32_t)op->dims_at, list, AOT_MAX_RANK);
  if (op->dims == LP_ROW_DIM && n == 0) return all;
  for (uint32_t k = 0; k < n; k++) {
    int64_t d = list[k] < 0 ? list[k] + x->rank : list[k];
    if (op->dims == LP_ROW_TAIL) {
      d = x->rank - (int64_t)n + k;
      if (d < 0 || x->sizes[d] != list[k]) return 0;
    }
    if (d < 0 || d >= x->rank || bits >> d & 1u) return 0;
    bits |= 1u << d;
  }
  return bits;
}

/* t has an element for each row of `space`: the reduced dimensions are 1, or are not there. */
static int is_of_rows(const lw_tensor_t *t, const lw_tensor_t *space, uint32_t reduced) {
  int32_t at = 0;
  for (int32_t d = 0; d < space->rank; d++) {
    const int is_reduced = (int)(reduced >> d & 1u);
    if (is_reduced && t->rank != space->rank) continue;
    if (at >= t->rank || t->sizes[at++] != (is_reduced ? 1 : space->sizes[d])) return 0;
  }
  return at == t->rank;
}

/* t has an element for each element of a row. */
static int is_of_columns(const lw_tensor_t *t, const lw_tensor_t *space, uint32_t reduced) {
  int32_t at = 0;
  for (int32_t d = 0; d < space->rank; d++)
    if (reduced >> d & 1u && (at >= t->rank || t->sizes[at++] != space->sizes[d])) return 0;
  return at == t->rank;
}

int lw_is_across_memory(const lw_tensor_t *x, uint32_t reduced) {
  int64_t widest = 0, least = INT64_MAX;
  for (int32_t d = 0; d < x->rank; d++) {
    if (x->sizes[d] <= 1) continue;
    if (reduced >> d & 1u) widest = x->strides[d] > widest ? x->strides[d] : widest;
    else if (x->strides[d]) least = x->strides[d] < least ? x->strides[d] : least;
  }
  return widest > least;
}

/* Scores and a class for each row, without smoothing, reduced to one number: (.., classes, weight, reduction, ignore,
 * smoothing). */
static int has_classes(const lw_build_t *b, const lp_row_op_t *op, const lw_tensor_t *x) {
  const lw_tensor_t *classes = lw_arg_tensor(b, op->class_at);
  const int64_t reduction = lw_arg_int(b, op->class_at + 2, 1);
  return b->machine->target->classes && classes && classes->dtype == AOT_I64 && classes->rank == 1 && x->rank == 2 &&
         x->sizes[0] == classes->sizes[0] && (reduction == 1 || reduction == 2) &&
         lw_arg_float(b, op->class_at + 4, 0) == 0;
}

int32_t lw_rows_result(const lw_build_t *b) {
  for (uint32_t r = 0; r < b->node->n_results; r++)
    if (lw_type(b, r)->dtype) return lw_type(b, r)->dtype;
  return 0;
}

static int reduces_rows(const lw_build_t *b, const lp_operand_t *operands, lw_member_t *out) {
  const lp_row_op_t *op = lw_op(b)->rows ? lp_row_op_choose(lw_op(b)->rows, operands, lw_n_places(b)) : NULL;
  const lw_tensor_t *x = op ? lw_arg_tensor(b, op->of) : NULL;
  if (!op || !x || lw_numel(x) == 0 || b->node->n_results > op->n_results || !lw_rows_result(b)) return 0;
  if (op->class_at && !has_classes(b, op, x)) return 0;
  out->rows = op;
  out->reduced = find_rows(b, op, x);
  if (!out->reduced) return 0;
  for (uint32_t r = 0; r < b->node->n_results; r++) {
    const lw_tensor_t *t = lw_type(b, r);
    if (!t->dtype) continue;
    AOT_ASSERT(op->results[r] < op->n_steps);
    const int is_across = op->steps[op->results[r]].reduce == LP_ACROSS;
    if (is_across && !b->machine->target->has_across) return 0;
    if (is_across ? !lp_dtype_supported(t->dtype) || rk_is_int(t->dtype) : !lp_row_op_gives(op, r, x->dtype, t->dtype))
      return 0;
    if (is_across ? t->rank && !is_of_columns(t, x, out->reduced)
                  : !lw_same_sizes(t, x) && !is_of_rows(t, x, out->reduced))
      return 0;
  }
  return 1;
}

/* What values pass through on their way. */
static lw_member_t passing(int32_t dtype) {
  dtype = lp_value_dtype(dtype);
  return (lw_member_t){.text = "a", .compute = rk_is_int(dtype) && dtype != AOT_BOOL ? AOT_I64 : dtype};
}

static int is_read(const lw_build_t *b, lw_member_t *out) {
  lw_read_t read;
  if (!lw_read(b, &read)) return 0;
  *out = passing(read.access.dtype);
  out->reads = 1;
  return 1;
}

static int is_write(const lw_build_t *b, lw_member_t *out) {
  lw_write_t write;
  if (!lw_write(b, &write)) return 0;
  *out = passing(write.to.access.dtype);
  out->writes = 1;
  out->reduced = write.serial;
  return 1;
}

int lw_member(const lw_build_t *b, lw_member_t *out) {
  lp_operand_t operands[LP_ARGS];
  aot_str_t word;
  memset(out, 0, sizeof *out);
  if (lw_op(b)->read) return is_read(b, out);
  if (lw_op(b)->write) return is_write(b, out);
  if ((!loop_op(b) && !lw_op(b)->rows) || !read_operands(b, operands, &word)) return 0;
  return is_pointwise(b, operands, word, out) || reduces_rows(b, operands, out);
}

int lw_sum_across(const lw_build_t *b, lw_member_t *m) {
  const lp_row_op_t *across = m->rows ? lp_row_op_across(m->rows) : NULL;
  const lw_tensor_t *x = lw_arg_tensor(b, 0);
  AOT_ASSERT(!across || (x && m->rows->of == 0)); /* reduces_rows has read it */
  if (!across || !b->machine->target->has_across || rk_is_int(x->dtype) || lw_type(b, 0)->rank == 0) return 0;
  int32_t row = -1; /* the only dimension that is left */
  for (int32_t d = 0; d < x->rank; d++) {
    if (x->sizes[d] < 2 || (m->reduced >> d & 1u)) continue;
    if (row >= 0) return 0;
    row = d;
  }
  if (row < 0 || lw_declared_stride(b, lw_arg_row(b, 0), row) != 1) return 0;
  m->rows = across;
  m->reduced = 1u << row;
  return 1;
}

const lw_tensor_t *lw_member_space(const lw_build_t *b, const lw_member_t *m) {
  AOT_ASSERT(!m->rows || lw_arg_tensor(b, m->rows->of));
  return m->rows ? lw_arg_tensor(b, m->rows->of) : lw_type(b, 0);
}
