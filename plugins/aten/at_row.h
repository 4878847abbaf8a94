/* One operator of the set: a row of ops.def with its schema parsed. The row is where everything about an operator is
 * found. */
#ifndef AT_ROW_H
#define AT_ROW_H

#include <aot/opset.h>

struct at_infer;
struct em;

/* Result types from argument types (shape.h). */
typedef void at_infer_fn(struct at_infer *c);
/* Equivalent simpler nodes; out_values[i] represents result i (at_emit.h). The marks allow one function to serve a
 * family: it reads the operator's name from the emitter's row. */
typedef aot_status_t at_decompose_fn(struct em *e, aot_value_t *out_values);
/* The functional form of a writing node, where renaming the operator is not enough. */
typedef aot_status_t at_functional_fn(struct em *e, aot_value_t *out_results, aot_value_t *out_written);
/* The base after `updated` has been written over result `index` of the view. */
typedef aot_value_t at_inverse_fn(struct em *e, uint32_t index, aot_value_t base, aot_value_t updated);

/* Whose memory the results of a call share, where the schema's marks do not say it all (sharing.c). out[i] holds
 * what they say. */
typedef void at_sharing_fn(struct at_infer *c, const aot_call_t *call, uint32_t *out);

/* How a row follows from another one (derive.h). */
enum {
  AT_OWN,      /* it does not */
  AT_OUT,      /* the same operator, its results written into given tensors */
  AT_IN_PLACE, /* the same operator, its first arguments written, as many as it has results */
  AT_EACH,     /* the same operator for each element of the tensor lists */
  AT_SAME      /* another name for it, with stricter arguments */
};

typedef struct at_row {
  const char *name;   /* "aten.add.Tensor" */
  const char *schema; /* "(Tensor self, ..) -> Tensor"; NULL for AT_OUT and AT_IN_PLACE: that of `of`, rewritten */
  uint32_t flags;     /* AOT_OP_*; VIEW, WRITES, MULTI_VIEW and REGION come from the schema */
  const char *group;
  const char *shape_rule; /* the name of infer: "broadcast" */
  at_infer_fn *infer;
  const char *doc;
  at_decompose_fn *decompose;
  const char *functional;          /* of a writing operator: the same without the write, argument for argument */
  at_functional_fn *functional_by; /* or how to make it */
  at_inverse_fn *inverse;          /* of a view */
  at_sharing_fn *sharing;          /* NULL: the marks say all */
  const char *write_if;            /* bool argument that must be true for the marked arguments to be written */
  int form;                        /* AT_OUT, ..: derived from `of` */
  const struct at_row *of;         /* for at_dc_same: the operator that it is, argument for argument */
  const char *outs;                /* AT_OUT: names of the written arguments, apart by spaces */
} at_row_t;

#define AT_OP_ENUM(id, ...) AT_OP_##id,
enum {
#define OP AT_OP_ENUM
#define OUT AT_OP_ENUM
#define IN_PLACE AT_OP_ENUM
#define EACH AT_OP_ENUM
#define PRIM AT_OP_ENUM
#include "ops.def"
#undef OP
#undef OUT
#undef IN_PLACE
#undef EACH
#undef PRIM
  AT_N_OPS
};

extern const at_row_t at_rows[AT_N_OPS];

/* autocast.def: what autocast does to the operands of row i, AOT_AUTOCAST_*. */
typedef struct at_autocast {
  uint8_t cpu, cuda;
} at_autocast_t;
extern const at_autocast_t at_autocast[AT_N_OPS];

#endif
