/* Sizes and numbers that the run tells: results placed when their kernel knows their sizes, symbols bound from them. */
#include "ref_state.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* ---- placing ---- */

aot_status_t rf_place_open(void *self, uint32_t result, int32_t rank, const int64_t *sizes, rk_error *error) {
  const rf_placing *p = self;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(p->st->p->s, aot_snap_node_t, nodes)[p->node];
  rf_slot *slot = &p->frame->slots[n->result_begin + result - p->st->p->graphs[p->frame->graph].value_begin];
  rk_tensor *t = &p->st->results[result];
  uint64_t nbytes = aot_dtype_size(t->dtype);
  int64_t stride = 1;
  rf_storage *storage;
  int fits = t->rank == rank, enough = 1;
  for (int32_t d = rank - 1; d >= 0 && fits; d--) {
    fits = t->sizes[d] == RF_OPEN || t->sizes[d] == sizes[d];
    t->strides[d] = stride;
    enough = enough && !__builtin_mul_overflow(stride, sizes[d] > 1 ? sizes[d] : 1, &stride) &&
             !__builtin_mul_overflow(nbytes, (uint64_t)sizes[d], &nbytes);
    t->sizes[d] = sizes[d];
  }
  if (!fits) {
    snprintf(error->text, sizeof error->text, "result %u has another rank or other sizes than declared", result);
    return AOT_E_INVALID;
  }
  t->offset = 0;
  storage = enough ? rf_storage_create(p->st, nbytes) : NULL;
  if (!storage) {
    snprintf(error->text, sizeof error->text, "no memory for result %u", result);
    return AOT_E_EXHAUSTED;
  }
  t->data = storage->data;
  t->nbytes = storage->nbytes;
  rf_slot_share(slot, t, storage);
  return AOT_OK;
}

/* ---- learning ---- */

/* Which symbol makes `dim` this number? Constants are peeled off until a bare symbol is left. 1: found. */
static int solve(const rf_state *st, int64_t dim, int64_t number, uint32_t *out_symbol, int64_t *out) {
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(st->p->s, aot_snap_expr_t, exprs);
  while (AOT_DIM_IS_SYM(dim)) {
    const aot_snap_expr_t *e = &exprs[AOT_DIM_EXPR(dim)];
    int64_t a = sn_dim(e->a, st->dims), b = sn_dim(e->b, st->dims), k;
    int left = a != SN_NO_VALUE; /* which side is known */
    if (e->op == AOT_EXPR_SYMBOL) {
      *out_symbol = (uint32_t)e->a;
      *out = number;
      return (uint64_t)e->a < st->n_symbols && (uint64_t)e->a < st->p->s->symbols.count && st->symbols[e->a] == SN_NO_VALUE;
    }
    if (left == (b != SN_NO_VALUE)) return 0;
    k = left ? a : b;
    if (e->op == AOT_EXPR_ADD) number -= k;
    else if (e->op == AOT_EXPR_SUB) number = left ? k - number : number + k;
    else if (e->op == AOT_EXPR_MUL && k != 0 && number % k == 0) number /= k;
    else if (e->op == AOT_EXPR_EQ && (number == 1 || k == 0 || k == 1)) number = number ? k : 1 - k; /* a bool, 0 or 1 */
    else return 0;
    dim = left ? e->b : e->a;
  }
  return 0;
}

static aot_status_t bind(rf_state *st, uint32_t node, int64_t dim, int64_t number) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_symbol_t *row;
  uint32_t symbol;
  int64_t value;
  aot_str_t name;
  sn_error why;
  char upper[32] = "unbounded";
  if (!AOT_DIM_IS_SYM(dim) || sn_dim(dim, st->dims) != SN_NO_VALUE || !solve(st, dim, number, &symbol, &value)) return AOT_OK;
  row = &AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols)[symbol];
  name = aot_snap_text(s, row->name);
  if (row->max != INT64_MAX) snprintf(upper, sizeof upper, "%lld", (long long)row->max);
  if (value < row->min || value > row->max)
    return rf_fail(st, AOT_E_RANGE, node, "the data make %.*s = %lld, but the model was exported for %.*s in %lld..%s",
                   (int)name.size, name.data, (long long)value, (int)name.size, name.data, (long long)row->min, upper);
  st->symbols[symbol] = value;
  if (sn_exprs_eval(s, st->symbols, st->n_symbols, st->dims, &why) != AOT_OK) return rf_fail(st, AOT_E_RANGE, node, "%s", why.text);
  return AOT_OK;
}

static aot_status_t agree(rf_state *st, uint32_t node, const aot_snap_value_t *v, const char *what, int64_t dim, int64_t number) {
  int64_t declared = sn_dim(dim, st->dims);
  if (declared == number) return AOT_OK;
  if (declared == SN_NO_VALUE)
    return rf_fail(st, AOT_E_UNIMPLEMENTED, node, "%s of value %%%u is %lld, which does not tell its symbols", what, v->id,
                   (long long)number);
  return rf_fail(st, AOT_E_RANGE, node, "%s of value %%%u is %lld, where the model was exported for %lld", what, v->id,
                 (long long)number, (long long)declared);
}

static int64_t number_of(const rf_slot *slot, int32_t kind) {
  int64_t number;
  if (kind == AOT_TYPE_SYMBOOL) return *(const uint8_t *)slot->t.data != 0;
  memcpy(&number, slot->t.data, sizeof number);
  return number;
}

aot_status_t rf_learn(rf_state *st, rf_frame *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  for (int checking = 0; checking < 2; checking++)
    for (uint32_t r = 0; r < n->n_results; r++) {
      const aot_snap_value_t *v = &AOT_SNAP_ROWS(s, aot_snap_value_t, values)[n->result_begin + r];
      const rf_slot *slot = &f->slots[n->result_begin + r - st->p->graphs[f->graph].value_begin];
      if (!slot->storage) continue;
      if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL) {
        int64_t number = number_of(slot, v->kind);
        AOT_TRY(checking ? agree(st, node, v, "the number", v->expr, number) : bind(st, node, v->expr, number));
      }
      for (int32_t d = 0; v->kind == AOT_TYPE_TENSOR && d < v->rank; d++) {
        int64_t dim = ints[v->dims + (uint32_t)d];
        AOT_TRY(checking ? agree(st, node, v, "a size", dim, slot->t.sizes[d]) : bind(st, node, dim, slot->t.sizes[d]));
      }
    }
  return AOT_OK;
}
