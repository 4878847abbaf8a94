/* Dimensions, which may be symbolic, in one run of a shape rule.
 *
 * Arithmetic folds constants first and queries the environment for an expression otherwise. Comparisons have three
 * answers (aot/ext/compare_dims.h): what depends on data is neither equal nor unequal. A rule rejects what is certainly
 * wrong, chooses by what is certainly so, and leaves the rest to the run, which compares declared and real sizes.
 *
 * Errors are sticky: the first at_fail() is stored, later calls answer harmless values, and the rule needs no checks
 * between its steps. */
#ifndef AT_DIMS_H
#define AT_DIMS_H

#include <aot/base.h>
#include <aot/ext/compare_dims.h>
#include <aot/graph.h>
#include <aot/opset.h>
#include "at_row.h"

typedef struct at_env {
  void *self;
  aot_status_t (*type_of)(void *self, uint32_t value, aot_type_t *out);
  aot_status_t (*dim)(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out); /* AOT_EXPR_* */
  int64_t (*hint)(void *self, int64_t dim);
  int (*compare)(void *self, int32_t op, int64_t a, int64_t b); /* AOT_EXPR_EQ, LT, LE: 1, 0, AOT_DIMS_UNKNOWN */
  void (*text)(void *self, int64_t dim, char *out, uint64_t capacity);
  aot_status_t (*symbol)(void *self, int64_t min, int64_t max, int64_t hint, int64_t *out); /* a new one */
  aot_status_t (*region_result)(void *self, uint32_t graph, uint32_t i, aot_type_t *out); /* AOT_E_NOT_FOUND: no more */
  aot_status_t (*put)(void *self, const aot_type_t *type);
  /* puts another operator's results */
  aot_status_t (*infer)(void *self, uint32_t op, const aot_arg_t *args, uint32_t n_args);
  int (*carries_bit)(void *self, uint32_t value, uint32_t bit); /* lazy_bits.h */
} at_env_t;

#define AT_POOL 2048

/* Results of a rule that another one runs, with dimensions of their own. */
#define AT_MAX_ANSWERS 8
typedef struct at_answers {
  uint32_t n;
  aot_type_t at[AT_MAX_ANSWERS];
  int64_t dims[AT_MAX_ANSWERS][2 * AOT_MAX_RANK];
} at_answers_t;

typedef struct at_infer {
  const at_row_t *row;
  const aot_op_desc_t *desc;
  const aot_arg_t *args;
  uint32_t n_args;
  const at_env_t *env;
  at_answers_t *answers; /* where results are put; NULL: to the environment */
  aot_status_t status;
  char message[240];
  uint32_t n_put, n_pool;
  int requires_grad;            /* some operand does */
  int copies;                   /* what a view rule puts is a copy: contiguous, of its own */
  int32_t device, device_index; /* of the results */
  int64_t pool[AT_POOL];        /* dimension arrays of this call */
} at_infer_t;

void at_fail(at_infer_t *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

int64_t *at_dims(at_infer_t *c, int32_t n); /* an array of the pool */
int64_t *at_dims_copy(at_infer_t *c, const int64_t *dims, int32_t n);
int64_t at_add(at_infer_t *c, int64_t a, int64_t b);
int64_t at_sub(at_infer_t *c, int64_t a, int64_t b);
int64_t at_mul(at_infer_t *c, int64_t a, int64_t b);
int64_t at_floordiv(at_infer_t *c, int64_t a, int64_t b);
int64_t at_mod(at_infer_t *c, int64_t a, int64_t b); /* b: not certainly 0 */
int64_t at_min(at_infer_t *c, int64_t a, int64_t b); /* the host decides by the symbols' ranges where it can */
int64_t at_max(at_infer_t *c, int64_t a, int64_t b);
int64_t at_where(at_infer_t *c, int64_t condition, int64_t yes, int64_t no);
int64_t at_wrapped(at_infer_t *c, int64_t index, int64_t size); /* index + size if index is negative */
/* Value at tracing; a guess if the dimension depends on data, so for estimates, memory orders and messages alone. */
int64_t at_hint(at_infer_t *c, int64_t dim);
/* A number that only the run can determine: a new symbol in [min, max], both inclusive; a symbolic max counts as
 * none. */
int64_t at_unknown(at_infer_t *c, int64_t min, int64_t max);
int at_same(at_infer_t *c, int64_t a, int64_t b);    /* certainly equal */
int at_differs(at_infer_t *c, int64_t a, int64_t b); /* certainly unequal */
int at_below(at_infer_t *c, int64_t a, int64_t b);   /* certainly a < b */
int at_at_most(at_infer_t *c, int64_t a, int64_t b); /* certainly a <= b */
/* For strides, which only choose a memory order: what nothing decides is compared by hints. */
int at_same_stride(at_infer_t *c, int64_t a, int64_t b);
int64_t at_numel(at_infer_t *c, const int64_t *sizes, int32_t rank);
int32_t at_wrap(at_infer_t *c, int64_t dim, int32_t rank); /* -1 is the last; a 0-dim tensor counts as rank 1 */
uint32_t at_dim_mask(at_infer_t *c, const int64_t *dims, uint32_t n, int32_t rank); /* bit set; duplicates fail */
const char *at_dims_text(at_infer_t *c, const int64_t *dims, int32_t n, char *buffer, uint32_t capacity);

#endif
