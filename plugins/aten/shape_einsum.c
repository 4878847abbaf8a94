/* Sums of products over named dimensions. PyTorch's results are permuted products whose strides depend on the order of
 * contraction; here they are contiguous. */
#include "einsum.h"
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

/* Sizes by label: those of one operand must be equal, those of several may be 1. */
static void gather_sizes(at_infer_t *c, const at_einsum_t *s, uint32_t i, const aot_type_t *t, int64_t *size,
                         uint8_t *known) {
  int64_t own[AT_EINSUM_LABELS];
  uint8_t here[AT_EINSUM_LABELS] = {0};
  int32_t d;
  for (d = 0; d < s->rank[i]; d++) {
    uint8_t l = s->label[i][d];
    if (here[l] && at_differs(c, own[l], t->sizes[d]))
      at_fail(c, "operand %u repeats a subscript over dimensions of size %lld and %lld", i,
              (long long)at_hint(c, own[l]), (long long)at_hint(c, t->sizes[d]));
    own[l] = t->sizes[d];
    if (!here[l] && known[l] && at_differs(c, size[l], own[l]) && at_differs(c, size[l], 1) && at_differs(c, own[l], 1))
      at_fail(
          c, "dim %d of operand %u has size %lld, which does not broadcast with the %lld that its subscript had before",
          (int)d, i, (long long)at_hint(c, own[l]), (long long)at_hint(c, size[l]));
    if (!known[l] || at_same(c, size[l], 1)) size[l] = own[l];
    here[l] = known[l] = 1;
  }
}

void at_shape_einsum(at_infer_t *c) {
  const aot_arg_t *text = at_arg(c, "equation");
  uint32_t n = at_list_size(c, "tensors"), i;
  aot_type_t t[AT_EINSUM_OPERANDS];
  int32_t ranks[AT_EINSUM_OPERANDS];
  int64_t size[AT_EINSUM_LABELS], *sizes = at_dims(c, AOT_MAX_RANK);
  const int64_t *path;
  uint8_t known[AT_EINSUM_LABELS] = {0};
  at_einsum_t s;
  for (i = 0; i < n && i < AT_EINSUM_OPERANDS; i++) {
    t[i] = at_list_item(c, "tensors", i);
    ranks[i] = t[i].rank;
  }
  if (c->status != AOT_OK) return;
  if (!at_einsum_read(&s, text->u.chars, text->kind == AOT_ARG_STR ? text->n : 0, n, ranks)) {
    at_fail(c, "einsum \"%.*s\": %s", text->kind == AOT_ARG_STR ? (int)text->n : 0, text->u.chars, s.why);
    return;
  }
  if (at_has(c, "path") && at_ints(c, "path", &path) != 2 * (n - 1))
    at_fail(c, "einsum of %u operands takes a path of %u numbers", n, 2 * (n - 1));
  for (i = 0; i < n; i++) gather_sizes(c, &s, i, &t[i], size, known);
  if (c->status != AOT_OK) return;
  for (i = 0; i < (uint32_t)s.out_rank; i++) sizes[i] = size[s.out[i]];
  at_put(c, at_promote(c, t, n), sizes, s.out_rank);
}

void at_shape_tensordot(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "self"), b = at_tensor(c, "other");
  const int64_t *left, *right;
  uint32_t n = at_ints(c, "dims_self", &left), m = at_ints(c, "dims_other", &right), i, mask[2];
  int64_t *sizes = at_dims(c, 2 * AOT_MAX_RANK);
  int32_t rank = 0, d;
  if (n != m) at_fail(c, "tensordot names %u dimensions of one tensor and %u of the other", n, m);
  if (a.dtype != b.dtype)
    at_fail(c, "tensordot of %s with %s: both must have one dtype", aot_dtype_name(a.dtype), aot_dtype_name(b.dtype));
  mask[0] = at_dim_mask(c, left, n, a.rank);
  mask[1] = at_dim_mask(c, right, m, b.rank);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int64_t p = a.sizes[at_wrap(c, left[i], a.rank)], q = b.sizes[at_wrap(c, right[i], b.rank)];
    if (at_differs(c, p, q) && at_differs(c, p, 1) && at_differs(c, q, 1))
      at_fail(c, "tensordot over dimensions of size %lld and %lld", (long long)at_hint(c, p), (long long)at_hint(c, q));
  }
  for (d = 0; d < a.rank; d++)
    if (!(mask[0] >> d & 1)) sizes[rank++] = a.sizes[d];
  for (d = 0; d < b.rank; d++)
    if (!(mask[1] >> d & 1)) sizes[rank++] = b.sizes[d];
  if (rank > AOT_MAX_RANK) at_fail(c, "tensordot with a result of rank %d", (int)rank);
  at_put(c, a.dtype, sizes, rank);
}

void at_shape_bilinear(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "input1"), b = at_tensor(c, "input2"), w = at_tensor(c, "weight");
  int64_t *sizes = at_dims_copy(c, a.sizes, a.rank);
  int32_t d;
  int fits = w.rank == 3 && a.rank > 0 && a.rank == b.rank;
  for (d = 0; fits && d + 1 < a.rank; d++) fits = !at_differs(c, a.sizes[d], b.sizes[d]);
  fits = fits && !at_differs(c, a.sizes[a.rank - 1], w.sizes[1]) && !at_differs(c, b.sizes[b.rank - 1], w.sizes[2]);
  if (!fits) {
    char text[3][60];
    at_fail(c, "bilinear of [%s], [%s] with a weight [%s]", at_dims_text(c, a.sizes, a.rank, text[0], 60),
            at_dims_text(c, b.sizes, b.rank, text[1], 60), at_dims_text(c, w.sizes, w.rank, text[2], 60));
    return;
  }
  sizes[a.rank - 1] = w.sizes[0];
  at_put(c, a.dtype, sizes, a.rank);
}

void at_shape_kron(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank, d, i;
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "other");
  rank = t[0].rank > t[1].rank ? t[0].rank : t[1].rank;
  if (2 * rank > AOT_MAX_RANK) {
    at_fail(c, "kron of tensors of rank %d", (int)rank);
    return;
  }
  for (d = 0; d < rank; d++) {
    sizes[d] = 1;
    for (i = 0; i < 2; i++)
      if (d >= rank - t[i].rank) sizes[d] = at_mul(c, sizes[d], t[i].sizes[d - (rank - t[i].rank)]);
  }
  for (i = 0; i < 2; i++) t[i].rank = rank; /* brought to one rank first: a 0-dim operand counts like the other */
  at_put(c, at_promote(c, t, 2), sizes, rank);
}
