/* Types of rows that follow from another (at_row.h): operators that write, operators over lists of tensors, prims. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

#define MAX_ARGS 32

/* ---- out= into tensors of no elements ---- */

/* By number: what only the run can determine to be 0 keeps the shape that it is declared with. */
static int has_no_elements(const aot_type_t *t) {
  int32_t d;
  for (d = 0; t->kind == AOT_TYPE_TENSOR && d < t->rank; d++)
    if (t->sizes[d] == 0) return 1;
  return 0;
}

int at_is_resized(const aot_type_t *given, const aot_type_t *result) {
  int32_t d;
  if (!has_no_elements(given) || result->kind != AOT_TYPE_TENSOR) return 0;
  if (given->rank != result->rank) return 1;
  for (d = 0; d < given->rank; d++)
    if (given->sizes[d] != result->sizes[d]) return 1;
  return 0;
}

/* Is there a tensor among the given ones that may have to be resized? Those of a list are no results. */
static int any_empty_out(at_infer_t *c) {
  uint32_t i;
  for (i = 0; c->row->form == AT_OUT && c->desc->n_results > 0 && i < c->desc->n_args && i < c->n_args; i++) {
    aot_type_t t;
    if ((c->desc->args[i].flags & (AOT_SARG_WRITE | AOT_SARG_LIST)) != AOT_SARG_WRITE) continue;
    t = at_operand_of(c, &c->args[i]);
    if (has_no_elements(&t)) return 1;
  }
  return 0;
}

/* What the operator gives that makes its results itself. Its arguments are found by name. */
static void infer_results(at_infer_t *c, at_answers_t *out) {
  const at_row_t *row = c->row;
  const aot_op_desc_t *desc = c->desc, *of = desc + (row->of - row); /* one a row, in the order of rows */
  const aot_arg_t *given = c->args;
  const uint32_t n_given = c->n_args;
  aot_arg_t args[MAX_ARGS];
  uint32_t i, k;
  out->n = 0;
  if (of->n_args > MAX_ARGS) {
    at_fail(c, "too many arguments");
    return;
  }
  for (i = 0; i < of->n_args; i++) {
    args[i] = of->args[i].preset;
    for (k = 0; k < desc->n_args && k < n_given; k++)
      if (aot_str_eq(desc->args[k].name, of->args[i].name)) args[i] = given[k];
  }
  c->row = row->of;
  c->desc = of;
  c->args = args;
  c->n_args = of->n_args;
  c->answers = out;
  row->of->infer(c);
  c->answers = NULL;
  c->row = row;
  c->desc = desc;
  c->args = given;
  c->n_args = n_given;
}

/* The tensor with the shape of the result; dtype and place stay. */
static void resize(aot_type_t *given, const aot_type_t *result) {
  given->rank = result->rank;
  given->sizes = result->sizes;
  given->strides = result->strides;
  given->offset = 0;
}

/* The results of an operator that writes are what it wrote. */
static void put_written(at_infer_t *c) {
  uint32_t i, k, n = 0;
  at_answers_t answers;
  answers.n = 0;
  if (any_empty_out(c)) infer_results(c, &answers);
  for (i = 0; i < c->desc->n_args && i < c->n_args && n < c->desc->n_results; i++) {
    const aot_schema_arg_t *s = &c->desc->args[i];
    if (!(s->flags & AOT_SARG_WRITE)) continue;
    n++;
    for (k = 0; k < ((s->flags & AOT_SARG_LIST) ? c->args[i].n : 1) && c->status == AOT_OK; k++) {
      aot_arg_t one = at_element(s, &c->args[i], k);
      aot_type_t t = at_operand_of(c, &one);
      if (t.kind != AOT_TYPE_TENSOR) at_fail(c, "argument '%.*s' must be a tensor", (int)s->name.size, s->name.data);
      if (n <= answers.n && at_is_resized(&t, &answers.at[n - 1])) resize(&t, &answers.at[n - 1]);
      at_put_type(c, &t);
    }
  }
}

/* An elementwise one in place has a rule of its own: the others broadcast to what is written. */
void at_shape_written(at_infer_t *c) {
  int pointwise = c->row->form == AT_IN_PLACE && (c->row->of->flags & AOT_OP_POINTWISE);
  if (pointwise && c->desc->n_results == 1 && !(c->desc->args[0].flags & AOT_SARG_LIST)) at_shape_inplace(c);
  else put_written(c);
}

/* ---- lists ---- */

/* Lists of tensors and of numbers go element by element; their common length, or 0 with an error. */
static uint32_t common_length(at_infer_t *c) {
  uint32_t i, n = 0, seen = 0;
  for (i = 0; i < c->n_args && i < c->desc->n_args; i++) {
    const aot_schema_arg_t *s = &c->desc->args[i];
    if (!(s->flags & AOT_SARG_LIST)) continue;
    if (seen++ == 0) n = c->args[i].n;
    else if (c->args[i].n != n)
      at_fail(c, "'%.*s' has %u elements, the list before it %u", (int)s->name.size, s->name.data, c->args[i].n, n);
  }
  if (n == 0) at_fail(c, "the lists have no tensors");
  return c->status == AOT_OK ? n : 0;
}

aot_arg_t at_element(const aot_schema_arg_t *s, const aot_arg_t *list, uint32_t i) {
  aot_value_t v;
  if (!(s->flags & AOT_SARG_LIST)) return *list;
  switch (list->kind) {
    case AOT_ARG_VALUES: v.id = list->u.ids[i]; return aot_arg_value(v);
    case AOT_ARG_FLOATS: return aot_arg_float(list->u.floats[i]);
    case AOT_ARG_INTS: return aot_arg_int(list->u.ints[i]);
    case AOT_ARG_BOOLS: return aot_arg_bool(list->u.ints[i] != 0);
    default: return aot_arg_none();
  }
}

/* A tensor named `scalars` holds Python numbers: its dtype does not count in type promotion. */
static int is_scalars(const aot_schema_arg_t *s) {
  return s->type == AOT_STYPE_TENSOR && aot_str_eq(s->name, aot_str("scalars"));
}

static void scalars_fit(at_infer_t *c, uint32_t arg, uint32_t n) {
  aot_type_t t = at_operand_of(c, &c->args[arg]);
  if (t.kind != AOT_TYPE_TENSOR || t.rank != 1 || at_differs(c, t.sizes[0], n))
    at_fail(c, "'scalars' must be a tensor of one dimension with a number for each of the %u tensors", n);
}

void at_shape_each(at_infer_t *c) {
  const aot_arg_t *lists = c->args;
  const at_row_t *row = c->row;
  const aot_op_desc_t *desc = c->desc;
  aot_schema_arg_t plain[MAX_ARGS];
  aot_op_desc_t one = *desc;
  aot_arg_t args[MAX_ARGS];
  uint32_t n = common_length(c), i, k;
  if (c->n_args > MAX_ARGS || desc->n_args > MAX_ARGS) {
    at_fail(c, "too many arguments");
    return;
  }
  for (k = 0; k < desc->n_args; k++) {
    plain[k] = desc->args[k];
    plain[k].flags &= ~(uint32_t)AOT_SARG_LIST;
    if (k < c->n_args && is_scalars(&desc->args[k])) scalars_fit(c, k, n);
  }
  one.args = plain;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    for (k = 0; k < c->n_args; k++)
      args[k] = is_scalars(&desc->args[k]) ? aot_arg_float(1.0) : at_element(&desc->args[k], &lists[k], i);
    c->args = args;
    c->desc = &one;
    c->row = row->of;
    c->n_pool = 0;
    row->of->infer(c);
    c->args = lists;
    c->desc = desc;
    c->row = row;
  }
}

/* One fresh tensor for each that would be written: the first arguments, as many as there are results. */
void at_shape_updated(at_infer_t *c) {
  uint32_t i, k;
  for (i = 0; i < c->desc->n_results && i < c->n_args; i++) {
    const aot_arg_t *a = &c->args[i];
    for (k = 0; k < ((c->desc->args[i].flags & AOT_SARG_LIST) ? a->n : 1); k++) {
      aot_arg_t one = at_element(&c->desc->args[i], a, k);
      aot_type_t t = at_operand_of(c, &one);
      if (t.kind != AOT_TYPE_TENSOR) {
        at_fail(c, "argument %u must hold tensors", i);
        return;
      }
      at_put_like(c, &t, t.dtype);
      c->n_pool = 0;
    }
  }
}

/* ---- prims ---- */

/* No broadcasting and no promotion; 0-dim tensors may stand among others, as numbers do. */
void at_shape_prim(at_infer_t *c) {
  const at_row_t *row = c->row;
  aot_type_t first;
  uint32_t i, n = 0;
  memset(&first, 0, sizeof first);
  for (i = 0; i < c->n_args && i < c->desc->n_args; i++) {
    char text[2][100];
    aot_type_t t;
    int32_t d;
    int same;
    if (c->desc->args[i].type != AOT_STYPE_TENSOR) continue;
    t = at_operand_of(c, &c->args[i]);
    if (t.kind != AOT_TYPE_TENSOR) {
      at_fail(c, "argument %u must be a tensor", i);
      return;
    }
    if (n && t.dtype != first.dtype) {
      at_fail(c, "%s with %s: prims do not promote", aot_dtype_name(first.dtype), aot_dtype_name(t.dtype));
      return;
    }
    same = n == 0 || t.rank == 0 || first.rank == 0 || t.rank == first.rank;
    for (d = 0; n && same && t.rank == first.rank && d < t.rank; d++) same = !at_differs(c, t.sizes[d], first.sizes[d]);
    if (!same) {
      at_fail(c, "[%s] with [%s]: prims do not broadcast", at_dims_text(c, first.sizes, first.rank, text[0], 100),
              at_dims_text(c, t.sizes, t.rank, text[1], 100));
      return;
    }
    if (n++ == 0 || first.rank == 0) first = t;
  }
  if (row->of == NULL) {
    at_shape_promote(c);
    return;
  }
  c->row = row->of;
  row->of->infer(c);
  c->row = row;
}
