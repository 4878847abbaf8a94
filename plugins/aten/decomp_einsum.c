/* Sums of products over named dimensions: einsum, tensordot, bilinear, kron.
 *
 * einsum takes operands two at a time, from the left or as `path` says. A dimension of a pair is one of
 *     batch: in both, needed later     summed: in both, not needed later     free: in one of them
 * so that a pair is one bmm over [batch, free, summed] and [batch, summed, free], or a product when nothing is summed.
 * Dimensions that only one of the pair has and nothing needs are summed before. */
#include "at_formula.h"
#include "einsum.h"

#include <string.h>

typedef struct operand {
  em_x_t x;
  int32_t rank;
  uint8_t label[AOT_MAX_RANK];
} operand_t;

static int32_t place_of(const operand_t *o, uint8_t label) {
  int32_t d;
  for (d = 0; d < o->rank && o->label[d] != label; d++) continue;
  return d < o->rank ? d : -1;
}

static void drop(operand_t *o, int32_t d) {
  memmove(o->label + d, o->label + d + 1, (size_t)(o->rank - d - 1));
  o->rank--;
}

/* A repeated label: the diagonal, which comes last. */
static void take_diagonals(em_t *e, operand_t *o) {
  int32_t d, first;
  for (d = 0; d < o->rank; d++) {
    uint8_t label = o->label[d];
    first = place_of(o, label);
    if (first == d) continue;
    o->x = EM(e, "diagonal", o->x, em_i(0), em_i(first), em_i(d));
    drop(o, d);
    drop(o, first);
    o->label[o->rank++] = label;
    d = -1; /* places have moved */
  }
}

static void sum_unneeded(em_t *e, operand_t *o, const uint8_t *needed, const operand_t *other) {
  int64_t dims[AOT_MAX_RANK];
  uint32_t n = 0;
  int32_t d, kept = 0;
  for (d = 0; d < o->rank; d++) {
    if (!needed[o->label[d]] && (!other || place_of(other, o->label[d]) < 0)) dims[n++] = d;
    else o->label[kept++] = o->label[d];
  }
  o->x = at_summed(e, o->x, dims, n, 0);
  o->rank = kept;
}

/* A dimension of size 1 that is larger in the other operand broadcasts: it is as if it were not there. */
static void drop_ones(em_t *e, operand_t *o, const operand_t *other) {
  int32_t d;
  for (d = o->rank - 1; d >= 0; d--) {
    int32_t there = place_of(other, o->label[d]);
    if (there < 0 || !at_same(at_infer(e), TYPE(o->x).sizes[d], 1) ||
        at_same(at_infer(e), TYPE(other->x).sizes[there], 1))
      continue;
    o->x = EM(e, "squeeze.dim", o->x, em_i(d));
    drop(o, d);
  }
}

/* Dimensions in the order of the labels; labels that o lacks get size 1. */
static em_x_t ordered(em_t *e, const operand_t *o, const uint8_t *labels, int32_t n) {
  int64_t order[AOT_MAX_RANK], sizes[AOT_MAX_RANK];
  aot_type_t t = TYPE(o->x);
  int32_t i, k = 0, moved = 0;
  em_x_t x = o->x;
  for (i = 0; i < n; i++) {
    int32_t d = place_of(o, labels[i]);
    sizes[i] = d < 0 ? 1 : t.sizes[d];
    if (d < 0) continue;
    moved |= d != k;
    order[k++] = d;
  }
  if (moved) x = EM(e, "permute", x, em_list(e, order, (uint32_t)k));
  return at_reshaped(e, x, sizes, n);
}

/* The labels of a pair by their role. */
typedef struct roles {
  uint8_t batch[AOT_MAX_RANK], left[AOT_MAX_RANK], right[AOT_MAX_RANK], summed[AOT_MAX_RANK];
  int32_t n_batch, n_left, n_right, n_summed;
} roles_t;

static void find_roles(const operand_t *a, const operand_t *b, const uint8_t *needed, roles_t *r) {
  int32_t d;
  memset(r, 0, sizeof *r);
  for (d = 0; d < a->rank; d++) {
    uint8_t l = a->label[d];
    if (place_of(b, l) < 0) r->left[r->n_left++] = l;
    else if (needed[l]) r->batch[r->n_batch++] = l;
    else r->summed[r->n_summed++] = l;
  }
  for (d = 0; d < b->rank; d++)
    if (place_of(a, b->label[d]) < 0) r->right[r->n_right++] = b->label[d];
}

static int64_t sizes_of(em_t *e, const operand_t *o, const uint8_t *labels, int32_t n, int64_t *out) {
  aot_type_t t = TYPE(o->x);
  int32_t i;
  for (i = 0; i < n; i++) out[i] = t.sizes[place_of(o, labels[i])];
  return at_numel(at_infer(e), out, n);
}

static em_x_t as_matrices(em_t *e, const operand_t *o, const roles_t *r, const uint8_t *first, int32_t n_first,
                          const uint8_t *second, int32_t n_second) {
  int64_t sizes[AOT_MAX_RANK], merged[3];
  uint8_t labels[3 * AOT_MAX_RANK];
  int32_t n = 0;
  memcpy(labels, r->batch, (size_t)r->n_batch);
  memcpy(labels + (n += r->n_batch), first, (size_t)n_first);
  memcpy(labels + (n += n_first), second, (size_t)n_second);
  n += n_second;
  merged[0] = sizes_of(e, o, r->batch, r->n_batch, sizes);
  merged[1] = sizes_of(e, o, first, n_first, sizes);
  merged[2] = sizes_of(e, o, second, n_second, sizes);
  return at_reshaped(e, ordered(e, o, labels, n), r->n_batch ? merged : merged + 1, r->n_batch ? 3 : 2);
}

static operand_t contract(em_t *e, operand_t a, operand_t b, const uint8_t *needed) {
  int64_t sizes[AOT_MAX_RANK];
  roles_t r;
  operand_t y;
  memset(&y, 0, sizeof y);
  drop_ones(e, &a, &b);
  drop_ones(e, &b, &a);
  sum_unneeded(e, &a, needed, &b);
  sum_unneeded(e, &b, needed, &a);
  find_roles(&a, &b, needed, &r);
  y.rank = r.n_batch + r.n_left + r.n_right;
  if (y.rank > AOT_MAX_RANK) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "give another path", "einsum: two operands make a tensor of rank %d", (int)y.rank);
    return y;
  }
  memcpy(y.label, r.batch, (size_t)r.n_batch);
  memcpy(y.label + r.n_batch, r.left, (size_t)r.n_left);
  memcpy(y.label + r.n_batch + r.n_left, r.right, (size_t)r.n_right);
  if (r.n_summed == 0) {
    y.x = MUL(ordered(e, &a, y.label, y.rank), ordered(e, &b, y.label, y.rank));
    return y;
  }
  y.x = EM(e, r.n_batch ? "bmm" : "mm", as_matrices(e, &a, &r, r.left, r.n_left, r.summed, r.n_summed),
           as_matrices(e, &b, &r, r.summed, r.n_summed, r.right, r.n_right));
  sizes_of(e, &a, r.batch, r.n_batch, sizes);
  sizes_of(e, &a, r.left, r.n_left, sizes + r.n_batch);
  sizes_of(e, &b, r.right, r.n_right, sizes + r.n_batch + r.n_left);
  y.x = at_reshaped(e, y.x, sizes, y.rank);
  return y;
}

static int read_equation(em_t *e, em_x_t list, at_einsum_t *s) {
  int32_t ranks[AT_EINSUM_OPERANDS];
  em_x_t text = IN("equation");
  uint32_t i;
  for (i = 0; i < list.n && i < AT_EINSUM_OPERANDS; i++)
    ranks[i] = TYPE(aot_arg_value((aot_value_t){list.u.ids[i]})).rank;
  if (text.kind != AOT_ARG_STR || list.kind != AOT_ARG_VALUES) return 0;
  return at_einsum_read(s, text.u.chars, text.n, list.n, ranks);
}

static void mark_needed(const at_einsum_t *s, const operand_t *o, uint32_t n, uint8_t *needed) {
  uint32_t i;
  memset(needed, 0, AT_EINSUM_LABELS);
  for (i = 0; i < (uint32_t)s->out_rank; i++) needed[s->out[i]] = 1;
  for (i = 0; i < n; i++) {
    int32_t d;
    for (d = 0; d < o[i].rank; d++) needed[o[i].label[d]] = 1;
  }
}

/* The next pair leaves the list, its product joins it: at the front, or at the end when a path is given (opt_einsum's
 * numbering). */
static int contract_next(em_t *e, const at_einsum_t *s, operand_t *o, uint32_t *n, const int64_t *pair) {
  int64_t i = pair ? pair[0] : 0, j = pair ? pair[1] : 1, k;
  uint8_t needed[AT_EINSUM_LABELS];
  operand_t a, b, y;
  uint32_t mark = at_infer(e)->n_pool;
  if (i > j) k = i, i = j, j = k;
  if (i < 0 || i == j || j >= *n) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "einsum: the path takes operands %lld and %lld of %u", (long long)i,
            (long long)j, *n);
    return 0;
  }
  a = o[i];
  b = o[j];
  memmove(o + j, o + j + 1, (size_t)(*n - j - 1) * sizeof *o);
  memmove(o + i, o + i + 1, (size_t)(*n - 1 - i - 1) * sizeof *o);
  *n -= 2;
  mark_needed(s, o, *n, needed);
  y = contract(e, a, b, needed);
  k = pair ? (int64_t)*n : 0;
  memmove(o + k + 1, o + k, (size_t)(*n - k) * sizeof *o);
  o[k] = y;
  ++*n;
  at_infer(e)->n_pool = mark;
  return e->status == AOT_OK;
}

aot_status_t at_dc_einsum(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  at_einsum_t s;
  operand_t o[AT_EINSUM_OPERANDS];
  uint8_t needed[AT_EINSUM_LABELS];
  const int64_t *path;
  uint32_t n_path = at_in_ints(e, "path", &path), n = list.n, i, step;
  aot_type_t t = at_result_type(e, 0);
  if (!read_equation(e, list, &s)) return AOT_E_INVALID;
  for (i = 0; i < n; i++) {
    o[i].x = aot_arg_value((aot_value_t){list.u.ids[i]});
    o[i].rank = s.rank[i];
    memcpy(o[i].label, s.label[i], sizeof o[i].label);
    take_diagonals(e, &o[i]);
  }
  for (step = 0; n > 1; step++)
    if (!contract_next(e, &s, o, &n, n_path ? path + 2 * (size_t)step : NULL)) return e->status;
  mark_needed(&s, NULL, 0, needed);
  sum_unneeded(e, &o[0], needed, NULL);
  return at_give_cast(e, at_reshaped(e, ordered(e, &o[0], s.out, s.out_rank), t.sizes, t.rank), out);
}

/* tensordot: the dimensions named are summed, those of self precedes those of other */
aot_status_t at_dc_tensordot(em_t *e, aot_value_t *out) {
  static const char *const names[2] = {"dims_self", "dims_other"};
  em_x_t x[2] = {IN("self"), IN("other")};
  aot_type_t to = at_result_type(e, 0), t[2];
  const int64_t *dims[2];
  uint32_t n[2] = {at_in_ints(e, names[0], &dims[0]), at_in_ints(e, names[1], &dims[1])}, i;
  int side;
  t[0] = TYPE(x[0]);
  t[1] = TYPE(x[1]);
  for (i = 0; i < n[0] && i < n[1]; i++) /* 1 against n broadcasts: the n is summed first */
    for (side = 0; side < 2; side++) {
      int64_t own = at_wrap(at_infer(e), dims[side][i], t[side].rank),
              there = at_wrap(at_infer(e), dims[!side][i], t[!side].rank);
      if (at_same(at_infer(e), t[!side].sizes[there], 1) && !at_same(at_infer(e), t[side].sizes[own], 1))
        x[side] = at_summed(e, x[side], &own, 1, 1);
    }
  for (side = 0; side < 2; side++) {
    int64_t order[AOT_MAX_RANK], sizes[AOT_MAX_RANK], merged[2];
    aot_type_t now = TYPE(x[side]);
    uint32_t mask = at_dim_mask(at_infer(e), dims[side], n[side], now.rank), k = 0, first = side ? n[1] : 0;
    int32_t d;
    for (i = 0; side && i < n[1]; i++) order[k++] = at_wrap(at_infer(e), dims[1][i], now.rank);
    for (d = 0; d < now.rank; d++)
      if (!(mask >> d & 1)) order[k++] = d;
    for (i = 0; !side && i < n[0]; i++) order[k++] = at_wrap(at_infer(e), dims[0][i], now.rank);
    for (d = 0; d < now.rank; d++) sizes[d] = now.sizes[order[d]];
    if (!side) first = (uint32_t)now.rank - n[0];
    merged[0] = at_numel(at_infer(e), sizes, (int32_t)first);
    merged[1] = at_numel(at_infer(e), sizes + first, now.rank - (int32_t)first);
    x[side] = at_reshaped(e, EM(e, "permute", x[side], em_list(e, order, (uint32_t)now.rank)), merged, 2);
  }
  return at_give(e, at_reshaped(e, EM(e, "mm", x[0], x[1]), to.sizes, to.rank), out);
}

/* bilinear: sum over i, j of x1[.., i] w[o, i, j] x2[.., j]; first all w x1 as rows, then a row times a column each */
aot_status_t at_dc_bilinear(em_t *e, aot_value_t *out) {
  static const int64_t outer_first[3] = {1, 0, 2};
  em_x_t a = IN("input1"), b = IN("input2"), w = IN("weight"), y;
  aot_type_t ta = TYPE(a), tb = TYPE(b), tw = TYPE(w), t = at_result_type(e, 0);
  int64_t rows[2], columns[3], flat[2], mid[3];
  rows[0] = columns[0] = mid[0] = at_numel(at_infer(e), ta.sizes, ta.rank - 1);
  rows[1] = flat[0] = ta.sizes[ta.rank - 1];
  columns[1] = mid[2] = tb.sizes[tb.rank - 1];
  columns[2] = 1;
  mid[1] = tw.sizes[0];
  flat[1] = at_mul(at_infer(e), tw.sizes[0], tw.sizes[2]);
  w = at_reshaped(e, EM(e, "permute", w, em_list(e, outer_first, 3)), flat, 2);
  y = at_reshaped(e, EM(e, "mm", at_reshaped(e, a, rows, 2), w), mid, 3);
  y = at_reshaped(e, EM(e, "bmm", y, at_reshaped(e, b, columns, 3)), t.sizes, t.rank);
  return at_give(e, at_in_has(e, "bias") ? ADD(y, IN("bias")) : y, out);
}

/* kron: [a0, 1, a1, 1] times [1, b0, 1, b1], merged by pairs */
aot_status_t at_dc_kron(em_t *e, aot_value_t *out) {
  em_x_t x[2] = {IN("self"), IN("other")};
  aot_type_t t = at_result_type(e, 0);
  int side;
  for (side = 0; side < 2; side++) {
    aot_type_t own = TYPE(x[side]);
    int64_t sizes[AOT_MAX_RANK];
    int32_t d, lead = t.rank - own.rank;
    for (d = 0; d < t.rank; d++) {
      sizes[2 * d + side] = d < lead ? 1 : own.sizes[d - lead];
      sizes[2 * d + !side] = 1;
    }
    x[side] = at_reshaped(e, x[side], sizes, 2 * t.rank);
  }
  return at_give(e, at_reshaped(e, MUL(x[0], x[1]), t.sizes, t.rank), out);
}
