/* Members of a group that compute nothing: each element of their result is one of another tensor, by index tensors, or
 * by bounds and a number outside of them. */
#ifndef LW_GROUP_READ_H
#define LW_GROUP_READ_H

#include "kit/loops/loop.h"
#include "lower.h"

typedef struct lw_read {
  uint32_t value;               /* row of the tensor that is read */
  lp_access_t access;           /* in the space of the result; indices[].load and outside.index are not set */
  uint32_t flipped;             /* dimensions of the tensor that are read from their last element on, a bit each */
  uint32_t indices[LP_INDICES]; /* value rows of the index tensors, and their strides in that space */
  int64_t index_strides[LP_INDICES][AOT_MAX_RANK];
  uint32_t outside; /* value row of what is read outside of the bounds, which is like the result; LW_NONE: a number */
} lw_read_t;

/* Members that put values into a tensor by index tensors: what they write is what the operator above of the same
 * arguments would read. The loop goes over the values; the tensor begins as another one, or as zeros. */
typedef struct lw_write {
  lw_read_t to;                  /* `value` is not set; in the space of the values */
  lw_tensor_t space;             /* sizes */
  uint32_t serial;               /* its dimensions that index tensors count alone, as bits: places may meet */
  uint32_t value;                /* row of the values; LW_NONE: `number` */
  int64_t strides[AOT_MAX_RANK]; /* of the values */
  lp_arg_t number;
  uint32_t init;   /* row of the tensor that it begins as; LW_NONE: zeros */
  lp_arg_t times;  /* what values are multiplied by; LP_ABSENT: nothing */
  int64_t skipped; /* the index whose values are left out; -1: none */
} lw_write_t;
int lw_write(const lw_build_t *b, lw_write_t *out);

/* A row of the operators' table, counted from 1; 0: none is of that name. */
int lw_read_find(aot_str_t full_name);
int lw_write_find(aot_str_t full_name); /* of those that write */
/* Of the node at hand; 0: it is no such operator, or not in this form. */
int lw_read(const lw_build_t *b, lw_read_t *out);

#endif
