/* Whose memory the results of a call share, where the schema's marks leave it open or keep silent. A rule serves a
 * family of rows; the answers are those of eager PyTorch (tests: the field "shares" of recorded cases). O(rank)
 * each. */
#include "einsum.h"
#include "lazy_bits.h"
#include "rewrites.h"
#include "shape.h"

#include <string.h>

static void answer(const aot_call_t *call, int shares, uint32_t *out) {
  uint32_t i;
  for (i = 0; i < call->n_results; i++) out[i] = shares ? 1 : 0;
}

static int has_no_elements(at_infer_t *c, const aot_type_t *t) {
  int32_t d;
  for (d = 0; d < t->rank; d++)
    if (at_same(c, t->sizes[d], 0)) return 1;
  return 0;
}

/* Is the result's layout that of a view of the operand? */
static int lies_like_a_view(at_infer_t *c, const aot_call_t *call) {
  const aot_type_t *from = &call->operands[0], *to = &call->results[0];
  int64_t strides[AOT_MAX_RANK];
  int32_t d;
  if (has_no_elements(c, from)) return 1;
  if (!at_view_strides(c, from, to->sizes, to->rank, strides)) return 0;
  for (d = 0; d < to->rank; d++)
    if (!at_at_most(c, to->sizes[d], 1) && !at_same_stride(c, strides[d], to->strides[d])) return 0;
  return 1;
}

/* reshape and kin: a view where the layout allows it */
void at_sh_viewable(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  answer(call, lies_like_a_view(c, call), out);
}

static int stays_the_same(const aot_call_t *call) {
  const aot_type_t *from = &call->operands[0], *to = &call->results[0];
  return from->dtype == to->dtype && from->device == to->device && from->device_index == to->device_index;
}

/* to and kin: the tensor itself unless something changes or a copy is requested. A memory order is compared with the
 * one that the strides suggest, gaps or not. */
void at_sh_unchanged(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_PRESERVE;
  int channels_last = at_suggests_channels_last(c, &call->operands[0]);
  answer(call,
         stays_the_same(call) && !at_bool(c, "copy") &&
             (format == AOT_MEMORY_PRESERVE || channels_last == (format != AOT_MEMORY_CONTIGUOUS)),
         out);
}

/* contiguous, and ravel, which requests it first: the tensor itself, or a view, where it is in the asked order */
void at_sh_contiguous(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_CONTIGUOUS;
  const aot_type_t *from = &call->operands[0];
  answer(call,
         format == AOT_MEMORY_CONTIGUOUS ? at_is_contiguous(c, from)
                                         : format == AOT_MEMORY_PRESERVE || at_is_channels_last(c, from),
         out);
}

/* dropout that drops nothing */
void at_sh_idle_dropout(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  answer(call, !at_bool(c, "train") || at_float(c, "p") == 0.0 || has_no_elements(c, &call->operands[0]), out);
}

/* every result is a view of the first operand, though nothing says so */
void at_sh_first(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  (void)c;
  answer(call, 1, out);
}

/* result i is a view of element i of the list */
void at_sh_each(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  uint32_t i;
  (void)c;
  for (i = 0; i < call->n_results; i++) out[i] = i < call->n_operands ? i + 1 : 0;
}

/* a list of one is that one */
void at_sh_alone(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  (void)c;
  answer(call, call->n_operands == 1, out);
}

/* sum_to_size with nothing to sum; without dimensions PyTorch sums all the same */
void at_sh_unsummed(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  const aot_type_t *from = &call->operands[0], *to = &call->results[0];
  int32_t d, same = from->rank == to->rank && to->rank > 0;
  for (d = 0; same && d < to->rank; d++) same = !at_differs(c, from->sizes[d], to->sizes[d]);
  answer(call, same, out);
}

/* the conjugate of what is real */
void at_sh_real(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  (void)c;
  answer(call, !aot_dtype_is_complex(call->operands[0].dtype), out);
}

/* resolve_conj, resolve_neg: the tensor itself, unless it carries the bit */
void at_sh_resolved(at_infer_t *c, const aot_call_t *call, uint32_t *out) { answer(call, !at_is_unresolved(c), out); }

/* einsum of one operand that sums nothing: dimensions in another order, diagonals */
void at_sh_einsum(at_infer_t *c, const aot_call_t *call, uint32_t *out) {
  const aot_arg_t *text = at_arg(c, "equation");
  uint8_t kept[AT_EINSUM_LABELS] = {0};
  at_einsum_t s;
  int32_t d, all = 1;
  answer(call, 0, out);
  if (call->n_operands != 1 || !at_einsum_read(&s, text->u.chars, text->n, 1, &call->operands[0].rank)) return;
  for (d = 0; d < s.out_rank; d++) kept[s.out[d]] = 1;
  for (d = 0; d < s.rank[0]; d++) all &= kept[s.label[0][d]];
  answer(call, all, out);
}
