/* Calls of scaled dot product attention: where its operators have their arguments, checked against each other. */
#ifndef LW_ATTENTION_CALL_H
#define LW_ATTENTION_CALL_H

#include "lower.h"

/* Numbers of arguments; key and value follow the query. */
typedef struct lw_attention_places {
  const char *op;
  uint32_t query, mask, dropout, causal, scale;
  uint32_t gqa;    /* whether heads may be shared; LW_NONE: they never are */
  uint32_t keep;   /* where probabilities stay; LW_NONE: dropout, if there is any, draws by itself */
  uint32_t output; /* what the forward gave, then its log sums of exponentials; LW_NONE: not among the arguments */
  int is_backward; /* the gradient of the output is the first argument */
} lw_attention_places_t;
const lw_attention_places_t *lw_attention_places(aot_str_t op); /* NULL: another operator */
static inline int lw_is_attention(aot_str_t op) { return lw_attention_places(op) != NULL; }

typedef struct lw_attention {
  const lw_tensor_t *q, *k, *v, *mask; /* mask: NULL: none that hides anything else */
  const lw_tensor_t *keep;             /* [.., query, key]: 0 where a probability is dropped; NULL: nothing is */
  double keep_scale;                   /* that others are multiplied by */
  int64_t share;                       /* heads of queries for one of keys */
  double scale;
  int is_causal;
} lw_attention_t;
/* 0: with dropout that draws, of nothing, or arguments that do not fit each other. Dtypes of q, k, v are the same. A
 * mask that the program makes of ranges, and that hides nothing or is the causal one, is read as what it says
 * (affine_values.h). */
int lw_attention_call(lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *out);

int lw_is_attention_output(const lw_tensor_t *t, const lw_attention_t *a);
int lw_is_attention_lse(const lw_tensor_t *t, const lw_attention_t *a);
static inline int64_t lw_from_end(const lw_tensor_t *t, int32_t n) { return t->sizes[t->rank - n]; }

#endif
