/* Collectives of a group of one rank, and FSDP's copies around them. */
#include "at_formula.h"

#include <string.h>

static const at_x contiguous = {AOT_ARG_MEMORY_FORMAT, 0, {AOT_MEMORY_CONTIGUOUS}};

/* What one rank gathers, or keeps of a reduction, is its own tensor; where nobody works asynchronously, waiting is nothing.
 * Otherwise the collective is left to a backend that has ranks. */
aot_status_t at_dc_alone(at_emit_t *e, aot_value_t *out) {
  if (!at_is_none(IN("tensor"))) return at_give(e, IN("tensor"), out);
  if (at_in_int(e, "group_size", 0) != 1) return AOT_E_UNIMPLEMENTED;
  return at_give(e, AT(e, "clone", IN("input"), contiguous), out);
}

/* torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py */
aot_status_t at_dc_all_gather_copy_in(at_emit_t *e, aot_value_t *out) {
  at_x list = IN("all_gather_inputs"), whole = IN("all_gather_output"), flat;
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, (list.n + 1) * sizeof *ids), i;
  aot_type_t t = at_result_type(e, 0);
  int64_t at = at_mul(e->infer, at_in_int(e, "rank", 0), t.sizes[0]);
  if (ids == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    aot_value_t v;
    at_x x;
    int64_t n;
    v.id = list.u.ids[i];
    x = at_v(v);
    n = at_numel(e->infer, TYPE(x).sizes, TYPE(x).rank);
    ids[i] = VAL(at_cast(e, at_reshaped(e, x, &n, 1), t.dtype)).id;
  }
  flat = AT(e, "cat", aot_arg_values(ids, list.n), at_i(0));
  out[0] = VAL(flat);
  out[1] = VAL(AT(e, "slice_scatter", whole, flat, at_i(0), at_i(at), at_i(at_add(e->infer, at, t.sizes[0]))));
  return e->status;
}
