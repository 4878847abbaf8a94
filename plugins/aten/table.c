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
  INPLACE_VIEW = AOT_OP_INPLACE_VIEW
};

#define OP(id, full_name, text, marks, family, rule, ...)                                                              \
  {.name = full_name,                                                                                                  \
   .schema = text,                                                                                                     \
   .flags = marks,                                                                                                     \
   .group = #family,                                                                                                   \
   .shape_rule = #rule,                                                                                                \
   .infer = at_shape_##rule,                                                                                           \
   .doc = __VA_ARGS__},
const at_row_t at_rows[AT_N_OPS] = {
#include "ops.def"
};
#undef OP
