#include "maybe_view.h"

#include <aot/inline.h>

/* Operators that answer a view where they can and a copy where they must. */
static const char *const rows[] = {
    "aten.reshape.default", "aten.reshape_as.default", "aten.flatten.using_ints", "aten.ravel.default",
    "aten.contiguous.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other",
};

static int may_copy(const aot_op_desc_t *d) {
  for (size_t i = 0; (d->flags & AOT_OP_COMPOSITE) && i < sizeof rows / sizeof *rows; i++)
    if (aot_str_eq(d->name, aot_str(rows[i]))) return 1;
  return 0;
}

static int asked_to_copy(const aot_op_desc_t *d, const aot_node_info_t *n) {
  for (uint32_t i = 0; i < d->n_args && i < n->n_args; i++)
    if (aot_str_eq(d->args[i].name, aot_str("copy"))) return n->args[i].kind == AOT_ARG_BOOL && n->args[i].u.i != 0;
  return 0;
}

int fz_same_layout(const aot_type_t *a, const aot_type_t *b) {
  int same = 1, empty = 0; /* nothing lies anywhere if a size is 0 */
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank) return 0;
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->sizes[d] != b->sizes[d]) return 0;
    empty |= a->sizes[d] == 0;
    same &= a->sizes[d] == 1 || a->strides[d] == b->strides[d];
  }
  return same || empty;
}

/* ---- products of dimensions, some of them expressions; equal ones are equal numbers ---- */

typedef struct dims {
  const aot_host_t *host;
  aot_prog_t *prog;
  int failed;
} dims_t;

static int64_t times(dims_t *d, int64_t a, int64_t b) {
  int64_t product = 0;
  if (AOT_DIM_IS_SYM(a) || AOT_DIM_IS_SYM(b)) {
    if (d->host->edit->dim_make(d->prog, AOT_EXPR_MUL, a, b, 0, &product) != AOT_OK) d->failed = 1;
    return product;
  }
  if (__builtin_mul_overflow(a, b, &product)) d->failed = 1;
  return product;
}

static int64_t hint(const dims_t *d, int64_t dim) { return d->host->graph->dim_hint(d->prog, dim); }

static int has_no_elements(const dims_t *d, const aot_type_t *t) {
  for (int32_t i = 0; i < t->rank; i++)
    if (hint(d, t->sizes[i]) == 0) return 1;
  return 0;
}

/* Runs of dimensions that lie densely one behind the other may be cut up anew; are `to`'s strides what comes out? Source: the
 * rule of Tensor.view (computeStride of ATen's TensorUtils). */
static int viewable(dims_t *d, const aot_type_t *from, const aot_type_t *to) {
  int32_t t = to->rank - 1;
  int64_t run = 1, seen = 1, base;
  if (from->rank == 0 || has_no_elements(d, from)) return 1;
  base = from->strides[from->rank - 1];
  for (int32_t f = from->rank - 1; f >= 0 && !d->failed; f--) {
    run = times(d, run, from->sizes[f]);
    if (f > 0 && (hint(d, from->sizes[f - 1]) == 1 || from->strides[f - 1] == times(d, run, base))) continue;
    while (t >= 0 && (hint(d, seen) < hint(d, run) || hint(d, to->sizes[t]) == 1)) {
      if (hint(d, to->sizes[t]) != 1 && to->strides[t] != times(d, seen, base)) return 0;
      seen = times(d, seen, to->sizes[t--]);
    }
    if (seen != run) return 0;
    if (f > 0) base = from->strides[f - 1], run = seen = 1;
  }
  return t < 0;
}

int fz_shares_memory(const aot_host_t *host, aot_prog_t *prog, const aot_op_desc_t *d, const aot_node_info_t *n,
                     const aot_type_t *from, const aot_type_t *to) {
  dims_t dims = {host, prog, 0};
  if (!may_copy(d)) return 1;
  if (from->dtype != to->dtype || from->device != to->device || from->device_index != to->device_index) return 0;
  return !asked_to_copy(d, n) && viewable(&dims, from, to);
}

int fz_is_operand_itself(const aot_op_desc_t *d, const aot_type_t *from, const aot_type_t *to) {
  return (d->flags & AOT_OP_MAYBE_SELF) && fz_same_layout(from, to) && from->offset == to->offset;
}
