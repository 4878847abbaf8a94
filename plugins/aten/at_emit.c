#include "at_emit.h"

#include "kit/emit/emit_layout.h"

#include <string.h>

/* ---- the rewritten node ---- */

int at_in_has(em_t *e, const char *name) { return em_in(e, name).kind != AOT_ARG_NONE; }

static int64_t int_of(em_t *e, em_x_t x, int64_t otherwise) {
  switch (x.kind) {
    case AOT_ARG_NONE: return otherwise;
    case AOT_ARG_FLOAT: return aot_float_to_int(x.u.f);
    case AOT_ARG_VALUE: return at_type(e, x).expr;
    default: return x.u.i;
  }
}

int64_t at_in_int(em_t *e, const char *name, int64_t otherwise) { return int_of(e, em_in(e, name), otherwise); }

uint32_t at_in_ints(em_t *e, const char *name, const int64_t **out) {
  em_x_t x = em_in(e, name);
  int64_t *copy;
  uint32_t i;
  *out = NULL;
  if (x.kind == AOT_ARG_INTS || x.kind == AOT_ARG_BOOLS) {
    *out = x.u.ints;
    return x.n;
  }
  if (x.kind == AOT_ARG_NONE || (x.kind == AOT_ARG_FLOATS && x.n == 0)) return 0;
  copy = at_dims(at_infer(e), x.kind == AOT_ARG_VALUES ? (int32_t)x.n : 1);
  *out = copy;
  if (x.kind != AOT_ARG_VALUES) {
    copy[0] = int_of(e, x, 0);
    return 1;
  }
  for (i = 0; i < x.n && at_infer(e)->status == AOT_OK; i++) {
    aot_value_t v;
    v.id = x.u.ids[i];
    copy[i] = at_type(e, em_v(v)).expr;
  }
  return x.n;
}

int at_in_str_is(em_t *e, const char *name, const char *text) {
  em_x_t x = em_in(e, name);
  return x.kind == AOT_ARG_STR && x.n == strlen(text) && memcmp(x.u.chars, text, x.n) == 0;
}

aot_type_t at_result_type(em_t *e, uint32_t i) {
  aot_value_t v = e->info.first_result;
  v.id += i;
  return at_type(e, em_v(v));
}

aot_type_t at_type(em_t *e, em_x_t x) {
  aot_type_t t = at_operand_of(at_infer(e), &x);
  if (at_infer(e)->status != AOT_OK && e->status == AOT_OK) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: %s", at_name(e), at_infer(e)->message);
    e->status = AOT_E_INTERNAL;
  }
  return t;
}

/* ---- small combinations ---- */

int at_same_shape(em_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank) {
  int32_t d;
  if (t->rank != rank) return 0;
  for (d = 0; d < rank; d++)
    if (!at_same(at_infer(e), t->sizes[d], sizes[d])) return 0;
  return 1;
}

int at_may_have_shape(em_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank) {
  int32_t d;
  if (t->rank != rank) return 0;
  for (d = 0; d < rank; d++)
    if (at_differs(at_infer(e), t->sizes[d], sizes[d])) return 0;
  return 1;
}

em_x_t at_reshaped(em_t *e, em_x_t x, const int64_t *sizes, int32_t rank) {
  aot_type_t t = at_type(e, x);
  int64_t strides[AOT_MAX_RANK];
  if (e->status != AOT_OK || at_same_shape(e, &t, sizes, rank)) return x;
  if (!at_view_strides(at_infer(e), &t, sizes, rank, strides))
    x = EM(e, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
  return EM(e, "view", x, em_list(e, sizes, (uint32_t)rank));
}

em_x_t at_expanded(em_t *e, em_x_t x, const int64_t *sizes, int32_t rank) {
  aot_type_t t = at_type(e, x);
  if (at_same_shape(e, &t, sizes, rank)) return x;
  return EM(e, "expand", x, em_list(e, sizes, (uint32_t)rank));
}

static int same_order(em_t *e, const aot_type_t *t, const int64_t *strides) {
  int32_t d;
  for (d = 0; d < t->rank; d++)
    if (!at_at_most(at_infer(e), t->sizes[d], 1) && !at_same_stride(at_infer(e), t->strides[d], strides[d])) return 0;
  return 1;
}

em_x_t at_laid_out(em_t *e, em_x_t x, const aot_type_t *like) {
  int64_t strides[AOT_MAX_RANK];
  aot_type_t t = at_type(e, x);
  int32_t d;
  if (e->status != AOT_OK || t.rank != like->rank) return x;
  for (d = 0; d < t.rank; d++)
    if (at_same(at_infer(e), t.sizes[d], 0)) return x;
  at_strides_for_format(at_infer(e), like, AOT_MEMORY_PRESERVE, strides);
  return same_order(e, &t, strides) ? x : em_in_order(e, x, strides, t.rank);
}

/* Do a dimension and a later one of x follow each other, or in memory, as channels last has N, H and W? */
static int are_neighbours(em_t *e, const aot_type_t *x, int64_t a, int64_t b) {
  at_infer_t *c = at_infer(e);
  return b == a + 1 || at_hint(c, x->strides[a]) == at_hint(c, x->strides[b]) * at_hint(c, x->sizes[b]);
}

em_x_t at_summed(em_t *e, em_x_t x, const int64_t *dims, uint32_t n, int keep) {
  const aot_type_t t = n ? at_type(e, x) : (aot_type_t){0};
  int is_split = n > 0 && dims[0] >= 0 && e->status == AOT_OK;
  for (uint32_t k = 1; k < n; k++) is_split &= dims[k] > dims[k - 1];
  while (n > 0) {
    uint32_t begin = n - 1;
    while (begin > 0 && (!is_split || are_neighbours(e, &t, dims[begin - 1], dims[begin]))) begin--;
    x = EM(e, "sum.dim_IntList", x, em_list(e, dims + begin, n - begin), em_b(keep));
    n = begin;
  }
  return x;
}
