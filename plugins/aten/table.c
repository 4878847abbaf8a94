/* The table of ops.def. */
#include "at_row.h"

#include "rewrites.h"
#include "shape_rules.h"

/* Flags as ops.def spells them. */
enum {
  PLAIN = 0,
  RANDOM = AOT_OP_RANDOM,
  EFFECT = AOT_OP_EFFECT,
  COLLECTIVE = AOT_OP_COLLECTIVE,
  POINTWISE = AOT_OP_POINTWISE,
  REDUCTION = AOT_OP_REDUCTION,
  CREATION = AOT_OP_CREATION,
  COMPOSITE = AOT_OP_COMPOSITE,
  HEAVY = AOT_OP_HEAVY,
  NO_GRAD = AOT_OP_NO_GRAD,
  MOVEMENT = AOT_OP_MOVEMENT,
  MAYBE_SELF = AOT_OP_MAYBE_SELF,
  INPLACE_VIEW = AOT_OP_INPLACE_VIEW,
  STORAGE = AOT_OP_STORAGE,
  LOOP = AOT_OP_LOOP,
  COMPUTED = AOT_OP_COMPUTED,
  COPY = AOT_OP_COPY,
  SELF_AT_RANK_0 = AOT_OP_SELF_AT_RANK_0,
  CONVOLUTION = AOT_OP_CONVOLUTION,
  AS_IT_LIES = AOT_OP_AS_IT_LIES
};

#define OP(id, full_name, text, marks, family, rule, ...)                                                              \
  {.name = full_name,                                                                                                  \
   .schema = text,                                                                                                     \
   .flags = marks,                                                                                                     \
   .group = #family,                                                                                                   \
   .shape_rule = #rule,                                                                                                \
   .infer = at_shape_##rule,                                                                                           \
   .doc = __VA_ARGS__},
#define OUT(id, full_name, twin, names)                                                                                \
  {.name = full_name,                                                                                                  \
   .group = "out",                                                                                                     \
   .shape_rule = "written",                                                                                            \
   .infer = at_shape_written,                                                                                          \
   .form = AT_OUT,                                                                                                     \
   .of = &at_rows[AT_OP_##twin],                                                                                       \
   .outs = names,                                                                                                      \
   .functional_by = at_functional_twin,                                                                                \
   .doc = "written into given tensors"},
#define IN_PLACE(id, full_name, twin)                                                                                  \
  {.name = full_name,                                                                                                  \
   .group = "inplace",                                                                                                 \
   .shape_rule = "written",                                                                                            \
   .infer = at_shape_written,                                                                                          \
   .form = AT_IN_PLACE,                                                                                                \
   .of = &at_rows[AT_OP_##twin],                                                                                       \
   .functional_by = at_functional_twin,                                                                                \
   .doc = "in place"},
#define EACH(id, full_name, text, twin)                                                                                \
  {.name = full_name,                                                                                                  \
   .schema = text,                                                                                                     \
   .flags = COMPOSITE,                                                                                                 \
   .group = "foreach",                                                                                                 \
   .shape_rule = "each",                                                                                               \
   .infer = at_shape_each,                                                                                             \
   .form = AT_EACH,                                                                                                    \
   .of = &at_rows[AT_OP_##twin],                                                                                       \
   .decompose = at_dc_each,                                                                                            \
   .doc = "of each tensor of the lists"},
#define PRIM(id, full_name, text, twin)                                                                                \
  {.name = full_name,                                                                                                  \
   .schema = text,                                                                                                     \
   .flags = COMPOSITE | POINTWISE,                                                                                     \
   .group = "prims",                                                                                                   \
   .shape_rule = "prim",                                                                                               \
   .infer = at_shape_prim,                                                                                             \
   .form = AT_SAME,                                                                                                    \
   .of = &at_rows[AT_OP_##twin],                                                                                       \
   .decompose = at_dc_same,                                                                                            \
   .doc = "of tensors of one shape and dtype"},
const at_row_t at_rows[AT_N_OPS] = {
#include "ops.def"
};
#undef OP
#undef OUT
#undef IN_PLACE
#undef EACH
#undef PRIM

enum {
  NONE,
  LOWER = AOT_AUTOCAST_LOWER,
  F32 = AOT_AUTOCAST_F32,
  WIDEST = AOT_AUTOCAST_WIDEST,
  BANNED = AOT_AUTOCAST_BANNED,
  PARTS = AOT_AUTOCAST_PARTS
};
#define AUTOCAST(id, on_cpu, on_cuda) [AT_OP_##id] = {on_cpu, on_cuda},
const at_autocast_t at_autocast[AT_N_OPS] = {
#include "autocast.def"
};
#undef AUTOCAST
