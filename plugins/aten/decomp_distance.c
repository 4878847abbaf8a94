/* Distances of pairs of rows, and the losses on them. */
#include "at_formula.h"

static at_x distance(at_emit_t *e, at_x a, at_x b, at_x p, at_x eps, int keep) {
  static const int64_t last = -1;
  return AT(e, "linalg_vector_norm", ADD(SUB(a, b), eps), p, at_list(e, &last, 1), at_b(keep));
}

static aot_status_t give_reduced(at_emit_t *e, at_x loss, aot_value_t *out) {
  return at_give_cast(e, at_reduced(e, loss, at_in_int(e, "reduction", 1)), out);
}

/* |x1 - x2 + eps|_p over the last dimension */
aot_status_t at_dc_pairwise_distance(at_emit_t *e, aot_value_t *out) {
  return at_give(e, distance(e, IN("x1"), IN("x2"), IN("p"), IN("eps"), at_in_int(e, "keepdim", 0) != 0), out);
}

/* max(0, margin + |anchor - positive| - |anchor - negative|); with swap the nearer of anchor and positive counts */
aot_status_t at_dc_triplet_margin_loss(at_emit_t *e, aot_value_t *out) {
  at_x a = IN("anchor"), near = IN("positive"), far = IN("negative"), p = IN("p"), eps = IN("eps");
  at_x d_near = distance(e, a, near, p, eps, 0), d_far = distance(e, a, far, p, eps, 0);
  if (at_in_int(e, "swap", 0)) d_far = AT(e, "minimum", d_far, distance(e, near, far, p, eps, 0));
  return give_reduced(e, AT(e, "clamp_min", SUB(ADD(d_near, IN("margin")), d_far), at_f(0.0)), out);
}

/* 1 - cos where target is 1, max(0, cos - margin) where it is -1 */
aot_status_t at_dc_cosine_embedding_loss(at_emit_t *e, aot_value_t *out) {
  at_x a = IN("input1"), b = IN("input2"), t = IN("target"), tiny = at_f(1e-12), cosine, near, far;
  int64_t last = -1;
  at_x norms = MUL(ADD(at_summed(e, MUL(a, a), &last, 1, 0), tiny), ADD(at_summed(e, MUL(b, b), &last, 1, 0), tiny));
  cosine = DIV(at_summed(e, MUL(a, b), &last, 1, 0), SQRT(norms));
  near = WHERE(EQ(t, at_i(1)), SUB(at_f(1.0), cosine), at_f(0.0));
  far = WHERE(EQ(t, at_i(-1)), AT(e, "clamp_min", SUB(cosine, IN("margin")), at_f(0.0)), at_f(0.0));
  return give_reduced(e, ADD(near, far), out);
}
