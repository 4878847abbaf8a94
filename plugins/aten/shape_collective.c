/* Collectives: what every rank gets. Sizes are split and joined along dim 0. */
#include "shape_rules.h"

#include <aot/inline.h>

/* `inputs` is the name of one, too, where several go through one call. */
static aot_type_t input_of(at_infer_t *c) {
  return at_tensor(c, at_has(c, "tensor") ? "tensor" : at_has(c, "inputs") ? "inputs" : "input");
}

void at_shape_first_fresh(at_infer_t *c) {
  aot_type_t t = input_of(c);
  at_put_like(c, &t, t.dtype);
}

void at_shape_all_gather(at_infer_t *c) {
  aot_type_t t = input_of(c);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank);
  if (t.rank == 0) at_fail(c, "all_gather_into_tensor of a 0-dim tensor");
  else sizes[0] = at_mul(c, sizes[0], at_int(c, "group_size"));
  at_put(c, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype, sizes, t.rank);
}

void at_shape_reduce_scatter(at_infer_t *c) {
  aot_type_t t = input_of(c);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), ranks = at_int(c, "group_size");
  if (t.rank == 0 || ranks <= 0 || at_differs(c, at_mod(c, sizes[0], ranks), 0))
    at_fail(c, "reduce_scatter_tensor: dim 0 of size %lld over %lld ranks",
            t.rank ? (long long)at_hint(c, sizes[0]) : 0LL, (long long)ranks);
  else sizes[0] = at_floordiv(c, sizes[0], ranks);
  at_put(c, t.dtype, sizes, t.rank);
}

void at_shape_all_to_all(at_infer_t *c) {
  aot_type_t t = input_of(c);
  const int64_t *parts;
  uint32_t n = at_ints(c, "output_split_sizes", &parts), i;
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), total = 0;
  for (i = 0; i < n; i++) total = at_add(c, total, parts[i]);
  if (t.rank == 0) at_fail(c, "all_to_all_single of a 0-dim tensor");
  else if (n != 0) sizes[0] = total;
  at_put(c, t.dtype, sizes, t.rank);
}

/* FSDP: the inputs flat, and the gathered tensor with them in this rank's place */
void at_shape_all_gather_copy_in(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "all_gather_output");
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = at_int(c, "all_gather_input_numel");
  at_put(c, t.dtype, sizes, 1);
  at_put_like(c, &t, t.dtype);
}

/* philox_rand: numbers of the asked size, and how far the offset moves */
void at_shape_philox(at_infer_t *c) {
  const int64_t *sizes;
  uint32_t n = at_ints(c, "size", &sizes);
  at_put(c, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : AOT_F32, sizes, (int32_t)n);
  at_put(c, AOT_I64, NULL, 0);
}
