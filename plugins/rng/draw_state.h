/* What rng's rules know besides the emitter (kit/emit/emit.h), in whose self it is: where numbers are drawn
 * from. */
#ifndef RG_DRAW_STATE_H
#define RG_DRAW_STATE_H

#include "kit/emit/emit.h"

/* Where numbers are drawn from: the 0-dim int64 tensors and the number of the next draw. */
typedef struct rg_stream {
  aot_value_t seed, offset; /* AOT_NO_ID: not there yet (draws.h) */
  int64_t next;
  /* seed and offset again on the device of the last draw that was on another one */
  int32_t device, device_index;
  aot_value_t there_seed, there_offset;
} rg_stream_t;

/* Which draw the state represents that an attention kernel hands to its backward. */
typedef struct rg_attention_draw {
  uint32_t state; /* value */
  aot_value_t seed, offset;
  int64_t number;
} rg_attention_draw_t;
typedef struct rg_attention_draws {
  rg_attention_draw_t *at;
  uint32_t n, capacity;
} rg_attention_draws_t;

typedef struct rg_draw_state {
  rg_stream_t *stream;
  rg_attention_draws_t *attention; /* of this program */
  int is_left;                     /* set by a rule: the node draws nothing and may stay as it is */
} rg_draw_state_t;

static inline rg_draw_state_t *rg_of(const em_t *e) { return e->self; }

#endif
