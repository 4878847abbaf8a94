/* Collectives of a group of one rank, and FSDP's copies around them. */
#include "at_formula.h"

#include <string.h>

static const em_x_t contiguous = {AOT_ARG_MEMORY_FORMAT, 0, {AOT_MEMORY_CONTIGUOUS}};

/* What one rank gathers, or keeps of a reduction, is its own tensor; where nothing works asynchronously, waiting is
 * nothing. Otherwise the collective is left to a backend that has ranks. */
aot_status_t at_dc_alone(em_t *e, aot_value_t *out) {
  if (!em_is_none(IN("tensor"))) return at_give(e, IN("tensor"), out);
  if (at_in_int(e, "group_size", 0) != 1) return AOT_E_UNIMPLEMENTED;
  return at_give(e, EM(e, "clone", IN("input"), contiguous), out);
}

/* A pair, each the other's derivative: what enters and what leaves the part of a program that ranks share out (Shoeybi
 * et al., Megatron-LM, 2019: f and g). */
aot_status_t at_dc_copy_to_ranks(em_t *e, aot_value_t *out) { return at_give(e, IN("input"), out); }

aot_status_t at_dc_sum_over_ranks(em_t *e, aot_value_t *out) {
  const em_x_t sum =
      EM(e, "_c10d_functional.all_reduce.default", IN("input"), aot_arg_str(aot_str("sum")), IN("group_name"));
  return at_give(e, EM(e, "_c10d_functional.wait_tensor.default", sum), out);
}

aot_status_t at_dc_all_gather_as(em_t *e, aot_value_t *out) {
  const em_x_t part = em_cast(e, IN("input"), at_result_type(e, 0).dtype);
  const em_x_t all = EM(e, "_c10d_functional.all_gather_into_tensor.default", part, IN("group_size"), IN("group_name"));
  return at_give(e, EM(e, "_c10d_functional.wait_tensor.default", all), out);
}

aot_status_t at_dc_all_to_all(em_t *e, aot_value_t *out) {
  const em_x_t alike = em_list(e, NULL, 0); /* pieces */
  if (at_in_int(e, "group_size", 0) == 1) return at_dc_alone(e, out);
  return at_give(e, EM(e, "_c10d_functional.all_to_all_single.default", IN("input"), alike, alike, IN("group_name")),
                 out);
}

/* torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py */
aot_status_t at_dc_all_gather_copy_in(em_t *e, aot_value_t *out) {
  em_x_t list = IN("all_gather_inputs"), whole = IN("all_gather_output"), flat;
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, (list.n + 1) * sizeof *ids), i;
  aot_type_t t = at_result_type(e, 0);
  int64_t at = at_mul(at_infer(e), at_in_int(e, "rank", 0), t.sizes[0]);
  if (ids == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    aot_value_t v;
    em_x_t x;
    int64_t n;
    v.id = list.u.ids[i];
    x = em_v(v);
    n = at_numel(at_infer(e), TYPE(x).sizes, TYPE(x).rank);
    ids[i] = VAL(em_cast(e, at_reshaped(e, x, &n, 1), t.dtype)).id;
  }
  flat = EM(e, "cat", aot_arg_values(ids, list.n), em_i(0));
  out[0] = VAL(flat);
  out[1] = VAL(EM(e, "slice_scatter", whole, flat, em_i(0), em_i(at), em_i(at_add(at_infer(e), at, t.sizes[0]))));
  return e->status;
}
