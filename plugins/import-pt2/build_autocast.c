/* build_autocast.c - the casts that an autocast region leaves out.
 *
 * Inside such a region PyTorch records plain operators whose operands and results differ in dtype: linear(f32, f32) ->
 * bf16. Which operators run in the low precision and which in float32 is a list in PyTorch
 * (aten/src/ATen/autocast_mode.h), but the recorded result says it too: an operator with a floating result of dtype E
 * had its floating operands cast to E. Matrix products, convolutions and attention want all operands alike; for the
 * others a first operand of dtype E means that nothing was cast (layer_norm of a bf16 input with float32 weights). */
#include "builder.h"
#include <aot/inline.h>
#include <string.h>

static int is_castable(int32_t dtype) { return dtype == AOT_F32 || dtype == AOT_F16 || dtype == AOT_BF16; }

static int32_t dtype_of(p2_builder_t *b, uint32_t id) {
  aot_value_t v = {id};
  aot_type_t t;
  if (id == AOT_NO_ID || b->host->graph->value_type(b->prog, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) return 0;
  return t.dtype;
}

/* The dtype that the operands were cast to, 0: none is known. */
static int32_t wanted_dtype(const aot_type_t *types, uint32_t n) {
  uint32_t i;
  for (i = 0; i < n; i++)
    if (types[i].kind == AOT_TYPE_TENSOR && is_castable(types[i].dtype)) return types[i].dtype;
  return 0;
}

static aot_status_t cast(p2_builder_t *b, aot_graph_t g, aot_origin_t origin, int32_t dtype, uint32_t *id) {
  const int32_t from = dtype_of(b, *id);
  const aot_arg_t args[] = {aot_arg_value((aot_value_t){*id}), aot_arg_dtype(dtype)};
  aot_value_t made;
  if (!is_castable(from) || from == dtype) return AOT_OK;
  AOT_TRY(p2_emit(b, g, origin, "aten._to_copy.default", args, 2, &made));
  *id = made.id;
  return AOT_OK;
}

/* 1 when the operator's own rules give the result without casts: its dtype is an argument, or its first floating
 * operand has it already and the operator does not insist on equal operands. */
static int needs_no_cast(p2_builder_t *b, const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n, int32_t wanted) {
  uint32_t i, k;
  for (i = 0; i < n; i++)
    if (args[i].kind == AOT_ARG_DTYPE) return 1;
  if (d->flags & AOT_OP_HEAVY) return 0;
  for (i = 0; i < n; i++) {
    uint32_t one = (uint32_t)args[i].u.i;
    const uint32_t *ids = args[i].kind == AOT_ARG_VALUES ? args[i].u.ids : &one;
    uint32_t n_ids = args[i].kind == AOT_ARG_VALUES ? args[i].n : args[i].kind == AOT_ARG_VALUE;
    for (k = 0; k < n_ids; k++)
      if (is_castable(dtype_of(b, ids[k]))) return dtype_of(b, ids[k]) == wanted;
  }
  return 1;
}

aot_status_t p2_autocast(p2_builder_t *b, aot_graph_t g, const aot_op_desc_t *d, aot_origin_t origin, aot_arg_t *args,
                         uint32_t n_args, const aot_type_t *types, uint32_t n_types) {
  int32_t wanted = wanted_dtype(types, n_types);
  uint32_t i, k;
  if (!wanted || needs_no_cast(b, d, args, n_args, wanted)) return AOT_OK;
  for (i = 0; i < n_args; i++) {
    if (i < d->n_args && (d->args[i].flags & AOT_SARG_WRITE)) continue;
    if (args[i].kind == AOT_ARG_VALUE) {
      uint32_t id = (uint32_t)args[i].u.i;
      AOT_TRY(cast(b, g, origin, wanted, &id));
      args[i].u.i = id;
    } else if (args[i].kind == AOT_ARG_VALUES) {
      uint32_t *ids;
      AOT_TRY(P2_NEW(b->env, P2_SCRATCH, args[i].n, &ids));
      if (args[i].n) memcpy(ids, args[i].u.ids, args[i].n * sizeof *ids);
      for (k = 0; k < args[i].n; k++) AOT_TRY(cast(b, g, origin, wanted, &ids[k]));
      args[i].u.ids = ids;
    }
  }
  return AOT_OK;
}
