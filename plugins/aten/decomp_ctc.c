/* ctc_loss: the losses of the samples, each divided by its target's length for the mean. */
#include "at_formula.h"

#include <math.h>

/* max(1, length) of each target, as numbers of that dtype: a constant list becomes a tensor element by element. */
static em_x_t target_lengths(em_t *e, em_x_t like, int32_t rank) {
  em_x_t lengths = IN("target_lengths");
  int32_t dtype = TYPE(like).dtype;
  const int64_t *list;
  uint32_t n, i, *ids;
  if (lengths.kind == AOT_ARG_VALUE) {
    aot_type_t t = TYPE(like);
    lengths = at_reshaped(e, em_cast(e, lengths, dtype), t.sizes, t.rank);
    return EM(e, "clamp_min", lengths, em_f(1.0));
  }
  n = at_in_ints(e, "target_lengths", &list);
  if (n == 0) return em_f(1.0);
  if (rank == 0) return em_f(fmax(1.0, (double)list[0]));
  ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, n * sizeof *ids);
  if (ids == NULL) return em_none();
  for (i = 0; i < n; i++) {
    static const int64_t one = 1;
    uint32_t mark = at_infer(e)->n_pool;
    ids[i] = VAL(at_filled(e, &one, 1, em_f(fmax(1.0, (double)list[i])), dtype, like)).id;
    at_infer(e)->n_pool = mark;
  }
  return e->status == AOT_OK ? EM(e, "cat", aot_arg_values(ids, n), em_i(0)) : em_none();
}

aot_status_t at_dc_ctc_loss(em_t *e, aot_value_t *out) {
  int64_t reduction = at_in_int(e, "reduction", 1);
  int by_tensors = IN("target_lengths").kind == AOT_ARG_VALUE;
  em_x_t loss = EM(e, by_tensors ? "_ctc_loss.Tensor" : "_ctc_loss", IN("log_probs"), IN("targets"),
                   IN("input_lengths"), IN("target_lengths"), IN("blank"), IN("zero_infinity"));
  if (at_in_int(e, "zero_infinity", 0)) loss = WHERE(EQ(loss, em_f(INFINITY)), em_f(0.0), loss);
  if (reduction == 1) loss = DIV(loss, target_lengths(e, loss, TYPE(loss).rank));
  return at_give_cast(e, at_reduced(e, loss, reduction), out);
}
