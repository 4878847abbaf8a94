#include "not_finite.h"

#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024 };

/* A complex tensor as one of its parts. */
static rk_tensor_t part_of(const rk_tensor_t *t, int part) {
  rk_tensor_t p = *t;
  p.dtype = t->dtype == AOT_C64 ? AOT_F32 : AOT_F64;
  p.offset = 2 * t->offset + part;
  for (int32_t d = 0; d < t->rank; d++) p.strides[d] *= 2;
  return p;
}

static int is_floating(int32_t dtype) {
  return dtype == AOT_F16 || dtype == AOT_BF16 || dtype == AOT_F32 || dtype == AOT_F64;
}

/* Rows of the last dimension, a chunk at a time. */
static int look_at_reals(const rk_tensor_t *t) {
  const int64_t n = rk_numel(t), width = t->rank ? t->sizes[t->rank - 1] : 1;
  double row[CHUNK];
  int found = 0;
  for (int64_t at = 0; at < n && found != (NF_NAN | NF_INFINITY);) {
    const int64_t column = at % width, left = width - column;
    rk_tensor_t from = *t, to = {.data = row, .nbytes = sizeof row, .dtype = AOT_F64, .rank = 1, .strides = {1}};
    int64_t index = at / width;
    from.rank = 1;
    from.sizes[0] = to.sizes[0] = left < CHUNK ? left : CHUNK;
    from.strides[0] = t->rank ? t->strides[t->rank - 1] : 1;
    from.offset = t->offset + column * from.strides[0];
    for (int32_t d = t->rank - 2; d >= 0; index /= t->sizes[d], d--) from.offset += index % t->sizes[d] * t->strides[d];
    rk_copy(&to, &from);
    for (int64_t i = 0; i < to.sizes[0]; i++)
      if (!isfinite(row[i])) found |= isnan(row[i]) ? NF_NAN : NF_INFINITY;
    at += to.sizes[0];
  }
  return found;
}

int nf_look(const rk_tensor_t *t) {
  if (is_floating(t->dtype)) return look_at_reals(t);
  if (t->dtype != AOT_C64 && t->dtype != AOT_C128) return 0;
  const rk_tensor_t real = part_of(t, 0), imaginary = part_of(t, 1);
  return look_at_reals(&real) | look_at_reals(&imaginary);
}

static int has_infinite_argument(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  for (uint32_t k = 0; k < node->n_args; k++) {
    double f;
    memcpy(&f, &args[k].i, sizeof f);
    if (args[k].kind == AOT_ARG_FLOAT && !isfinite(f)) return 1;
  }
  return 0;
}

const char *nf_made(const aot_snapshot_t *s, uint32_t node, int operands, int results) {
  const aot_snap_node_t *row = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + node;
  const aot_snap_op_t *op = AOT_SNAP_ROWS(s, aot_snap_op_t, ops) + row->op;
  const rk_kernel_t *kernel = rk_find(aot_snap_text(s, op->name));
  if ((op->flags & (AOT_OP_CREATION | AOT_OP_VIEW)) || (kernel && rk_is_fill(kernel))) return NULL;
  if (has_infinite_argument(s, row)) return NULL;
  if (results & ~operands & NF_NAN) return "NaN";
  return operands == 0 && (results & NF_INFINITY) ? "an infinity" : NULL;
}
