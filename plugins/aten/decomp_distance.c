/* Distances of pairs of rows, and the losses on them. */
#include "at_formula.h"

static em_x_t distance(em_t *e, em_x_t a, em_x_t b, em_x_t p, em_x_t eps, int keep) {
  static const int64_t last = -1;
  return EM(e, "linalg_vector_norm", ADD(SUB(a, b), eps), p, em_list(e, &last, 1), em_b(keep));
}

static aot_status_t give_reduced(em_t *e, em_x_t loss, aot_value_t *out) {
  return at_give_cast(e, at_reduced(e, loss, at_in_int(e, "reduction", 1)), out);
}

/* |x1 - x2 + eps|_p over the last dimension */
aot_status_t at_dc_pairwise_distance(em_t *e, aot_value_t *out) {
  return at_give(e, distance(e, IN("x1"), IN("x2"), IN("p"), IN("eps"), at_in_int(e, "keepdim", 0) != 0), out);
}

/* max(0, margin + |anchor - positive| - |anchor - negative|); with swap the nearer of anchor and positive counts */
aot_status_t at_dc_triplet_margin_loss(em_t *e, aot_value_t *out) {
  em_x_t a = IN("anchor"), near = IN("positive"), far = IN("negative"), p = IN("p"), eps = IN("eps");
  em_x_t d_near = distance(e, a, near, p, eps, 0), d_far = distance(e, a, far, p, eps, 0);
  if (at_in_int(e, "swap", 0)) d_far = EM(e, "minimum", d_far, distance(e, near, far, p, eps, 0));
  return give_reduced(e, EM(e, "clamp_min", SUB(ADD(d_near, IN("margin")), d_far), em_f(0.0)), out);
}

/* 1 - cos where target is 1, max(0, cos - margin) where it is -1 */
aot_status_t at_dc_cosine_embedding_loss(em_t *e, aot_value_t *out) {
  em_x_t a = IN("input1"), b = IN("input2"), t = IN("target"), tiny = em_f(1e-12), cosine, near, far;
  int64_t last = -1;
  em_x_t norms = MUL(ADD(at_summed(e, MUL(a, a), &last, 1, 0), tiny), ADD(at_summed(e, MUL(b, b), &last, 1, 0), tiny));
  cosine = DIV(at_summed(e, MUL(a, b), &last, 1, 0), SQRT(norms));
  near = WHERE(EQ(t, em_i(1)), SUB(em_f(1.0), cosine), em_f(0.0));
  far = WHERE(EQ(t, em_i(-1)), EM(e, "clamp_min", SUB(cosine, IN("margin")), em_f(0.0)), em_f(0.0));
  return give_reduced(e, ADD(near, far), out);
}
