/* Windows over the last dimensions, as reads by places: pools of even shares and their derivatives, resampling by the
 * nearest element, padding by an image's own elements. Along each dimension element o of the result reads from x
 *
 *     first(o), first(o) + step, ..    at most `most` of them, those before end(o)
 *
 * and is the sum over the products of these places. The windows that hold an element are neighbours, so derivatives
 * have this form: nothing is added up in memory, and the order of sums is fixed.
 *
 * Sizes that are symbols, and elements that more than MOST_READS places are read for, have no such form. */
#include "decomp_window.h"

#include <math.h>
#include <string.h>

enum { MOST_SPACE = AT_MOST_SPACE, MOST_READS = AT_MOST_READS };

typedef struct reach {
  em_x_t first, end; /* [n] of int64, end may be a number; 0 <= first, end <= size */
  int64_t n, size;   /* elements of the result, and of x */
  int64_t most, step;
  int is_whole, has_one; /* all of `most` are before end; the first is */
} reach_t;

typedef struct windows {
  em_t *e;
  int32_t space;
  reach_t along[MOST_SPACE];
  int64_t n;                            /* places of an element of the result */
  em_x_t at[MOST_SPACE][MOST_READS];    /* index tensors, which broadcast */
  em_x_t valid[MOST_SPACE][MOST_READS]; /* none: everywhere */
} windows_t;

/* ---- what all windows are made with ---- */

em_x_t at_or_else(em_t *e, em_x_t valid, em_x_t x, double outside) {
  return em_is_none(valid) ? x : EM(e, "where.ScalarOther", valid, x, em_f(outside));
}

aot_status_t at_give_result(em_t *e, uint32_t result, em_x_t x, aot_value_t *out) {
  const aot_type_t t = at_result_type(e, result);
  out[result] = VAL(at_laid_out(e, em_cast(e, x, t.dtype), &t));
  return e->status;
}

/* Exact, as integers of this size are in a double. */
em_x_t at_floor_of_quotient(em_t *e, em_x_t x, int64_t n) {
  if (n == 1) return x;
  return em_cast(e, EM(e, "floor", DIV(em_cast(e, x, AOT_F64), em_f((double)n))), AOT_I64);
}

em_x_t at_scaled_range(em_t *e, int64_t n, int64_t step, int64_t shift, em_x_t like) {
  em_x_t x = at_range(e, n, like);
  if (step != 1) x = MUL(x, em_i(step));
  return shift ? ADD(x, em_i(shift)) : x;
}

int32_t at_space_of(const em_t *e) { return strstr(at_name(e), "3d") ? 3 : strstr(at_name(e), "1d") ? 1 : 2; }

/* ---- places ---- */

/* 0: no such form. */
static int find_places(windows_t *w) {
  em_t *e = w->e;
  w->n = 1;
  for (int32_t d = 0; d < w->space; d++) {
    const reach_t *r = &w->along[d];
    if (r->most < 1 || r->size < 1 || r->n < 1 || r->most > MOST_READS || w->n * r->most > MOST_READS) return 0;
    w->n *= r->most;
  }
  for (int32_t d = 0; d < w->space; d++) {
    const reach_t *r = &w->along[d];
    for (int64_t j = 0; j < r->most; j++) {
      em_x_t at = j ? ADD(r->first, em_i(j * r->step)) : r->first;
      const int is_free = r->is_whole || (j == 0 && r->has_one);
      w->valid[d][j] = is_free ? em_none() : at_along(e, LT(at, r->end), d, w->space);
      if (!is_free) at = EM(e, "clamp_max", at, em_i(r->size - 1));
      w->at[d][j] = at_along(e, at, d, w->space);
    }
  }
  return 1;
}

/* What x has at place number k of every element. */
static em_x_t read_at(const windows_t *w, em_x_t x, int64_t k) {
  em_t *e = w->e;
  uint32_t ids[AOT_MAX_RANK];
  const int32_t rank = TYPE(x).rank, lead = rank - w->space;
  for (int32_t d = 0; d < rank; d++) ids[d] = AOT_NO_ID;
  for (int32_t d = w->space - 1; d >= 0; k /= w->along[d].most, d--)
    ids[lead + d] = VAL(w->at[d][k % w->along[d].most]).id;
  return EM(e, "_unsafe_index.Tensor", x, aot_arg_values(ids, (uint32_t)rank));
}

/* Is that place in the window? None: always. */
static em_x_t is_valid(const windows_t *w, int64_t k) {
  em_t *e = w->e;
  em_x_t all = em_none();
  for (int32_t d = w->space - 1; d >= 0; k /= w->along[d].most, d--) {
    const em_x_t valid = w->valid[d][k % w->along[d].most];
    if (!em_is_none(valid)) all = em_is_none(all) ? valid : EM(e, "logical_and", valid, all);
  }
  return all;
}

static em_x_t summed(const windows_t *w, em_x_t x) {
  em_t *e = w->e;
  em_x_t sum = em_none();
  for (int64_t k = 0; k < w->n; k++) {
    const em_x_t term = at_or_else(e, is_valid(w, k), at_math(e, read_at(w, x, k)), 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return sum;
}

/* ---- even shares ---- */

/* As many windows as queried, as even as can be: of `n` elements those from o * size / n on, up to what (o + 1) * size
 * / n rounds up to. The other way round they are the windows that hold an element. */
static reach_t over_shares(em_t *e, int64_t n, int64_t size, em_x_t like) {
  reach_t r = {.first = at_floor_of_quotient(e, at_scaled_range(e, n, size, 0, like), n),
               .end = at_floor_of_quotient(e, at_scaled_range(e, n, size, size + n - 1, like), n),
               .n = n,
               .size = size,
               .step = 1,
               .is_whole = n && size % n == 0,
               .has_one = 1};
  for (int64_t o = 0; o < n; o++) {
    const int64_t share = ((o + 1) * size + n - 1) / n - o * size / n;
    if (share > r.most) r.most = share;
  }
  return r;
}

/* Sums over shares of x's last dimensions, of `n` each; 0: there is no such form. */
static int share_out(windows_t *w, em_x_t x, const aot_type_t *result) {
  em_t *e = w->e;
  const aot_type_t t = TYPE(x);
  if (t.rank < w->space || t.rank != result->rank || at_is_integral(t.dtype)) return 0;
  for (int32_t d = 0; d < w->space; d++) {
    const int64_t n = result->sizes[t.rank - w->space + d], size = t.sizes[t.rank - w->space + d];
    if (AOT_DIM_IS_SYM(n) || AOT_DIM_IS_SYM(size)) return 0;
    w->along[d] = over_shares(e, n, size, x);
  }
  return find_places(w);
}

static em_x_t share_count(em_t *e, int32_t space, const reach_t *r) {
  em_x_t count = em_none();
  for (int32_t d = space - 1; d >= 0; d--) {
    const em_x_t along = at_along(e, SUB(r[d].end, r[d].first), d, space);
    count = em_is_none(count) ? along : MUL(along, count);
  }
  return count;
}

aot_status_t at_dc_native_adaptive_avg_pool(em_t *e, aot_value_t *out) {
  const aot_type_t pooled = at_result_type(e, 0);
  windows_t w = {.e = e, .space = at_space_of(e)};
  if (!share_out(&w, IN("self"), &pooled)) return AOT_E_UNIMPLEMENTED;
  return at_give_result(e, 0, DIV(summed(&w, IN("self")), share_count(e, w.space, w.along)), out);
}

aot_status_t at_dc_native_adaptive_avg_pool_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  windows_t w = {.e = e, .space = at_space_of(e)};
  reach_t shares[MOST_SPACE];
  if (!share_out(&w, g, &in)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < w.space; d++)
    shares[d] = over_shares(e, pooled.sizes[pooled.rank - w.space + d], in.sizes[in.rank - w.space + d], g);
  return at_give_result(e, 0, summed(&w, DIV(at_math(e, g), share_count(e, w.space, shares))), out);
}

/* ---- places of one element ---- */

/* Each element of the result is one of x: places[d] has [n] of int64 for each of the last dimensions. */
static aot_status_t give_places(em_t *e, em_x_t x, const em_x_t *places, int32_t space, aot_value_t *out) {
  windows_t w = {.e = e, .space = space, .n = 1};
  for (int32_t d = 0; d < space; d++) {
    w.along[d].most = 1;
    w.at[d][0] = at_along(e, places[d], d, space);
  }
  return at_give_result(e, 0, read_at(&w, x, 0), out);
}

/* reflection_pad, replication_pad: two numbers a dimension, from the last one on */
aot_status_t at_dc_pad_by_image(em_t *e, aot_value_t *out) {
  const em_x_t x = IN("self");
  const aot_type_t in = TYPE(x), padded = at_result_type(e, 0);
  const int32_t space = at_space_of(e);
  const int64_t *pad;
  em_x_t places[MOST_SPACE];
  if (at_in_ints(e, "padding", &pad) != 2 * (uint32_t)space || in.rank < space) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < space; d++) {
    const int64_t last = in.sizes[in.rank - space + d] - 1, n = padded.sizes[in.rank - space + d];
    const int64_t before = pad[2 * (space - 1 - d)];
    if (AOT_DIM_IS_SYM(last + 1) || AOT_DIM_IS_SYM(n) || AOT_DIM_IS_SYM(before) || last < 0) return AOT_E_UNIMPLEMENTED;
    places[d] = at_scaled_range(e, n, 1, -before, x);
    if (strstr(at_name(e), "replication"))
      places[d] = EM(e, "clamp_max", EM(e, "clamp_min", places[d], em_i(0)), em_i(last));
    else places[d] = EM(e, "rsub.Scalar", ABS(EM(e, "rsub.Scalar", ABS(places[d]), em_i(last))), em_i(last));
  }
  return give_places(e, x, places, space, out);
}

/* ---- the nearest element ---- */

/* In float, as PyTorch computes it: floor(o * scale), or of its centre. */
typedef struct nearest {
  int64_t in, out;
  float scale;
  int is_exact; /* by centres */
} nearest_t;

static int64_t nearest_place(const nearest_t *r, int64_t o) {
  const float at = r->is_exact ? ((float)o + 0.5f) * r->scale : (float)o * r->scale;
  const int64_t place = (int64_t)floorf(at);
  return place < r->in - 1 ? place : r->in - 1;
}

static em_x_t nearest_places(em_t *e, const nearest_t *r, em_x_t like) {
  em_x_t at = em_cast(e, at_range(e, r->out, like), AOT_F32);
  if (r->is_exact) at = ADD(at, em_f(0.5));
  at = EM(e, "floor", MUL(at, em_f((double)r->scale)));
  return EM(e, "clamp_max", em_cast(e, at, AOT_I64), em_i(r->in - 1));
}

static int read_nearest(em_t *e, const aot_type_t *in, const aot_type_t *out, int32_t space, nearest_t *r) {
  static const char *const names[] = {"scales_d", "scales_h", "scales_w"};
  for (int32_t d = 0; d < space; d++) {
    r[d].in = in->sizes[in->rank - space + d];
    r[d].out = out->sizes[out->rank - space + d];
    r[d].is_exact = strstr(at_name(e), "exact") != NULL;
    if (in->rank < space || AOT_DIM_IS_SYM(r[d].in) || AOT_DIM_IS_SYM(r[d].out) || r[d].in < 1 || r[d].out < 1)
      return 0;
    const double factor = em_in_float(e, space == 1 ? "scales" : names[3 - space + d], 0);
    r[d].scale = factor > 0 ? (float)(1 / factor) : (float)r[d].in / (float)r[d].out;
  }
  return 1;
}

aot_status_t at_dc_nearest(em_t *e, aot_value_t *out) {
  const em_x_t x = IN("self");
  const aot_type_t in = TYPE(x), resized = at_result_type(e, 0);
  const int32_t space = at_space_of(e);
  nearest_t r[MOST_SPACE];
  em_x_t places[MOST_SPACE];
  if (!read_nearest(e, &in, &resized, space, r)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < space; d++) places[d] = nearest_places(e, &r[d], x);
  return give_places(e, x, places, space, out);
}

/* How many of the places are before each element of the image, or `upto` it. */
static em_x_t n_before(em_t *e, const nearest_t *r, em_x_t places, int upto, em_x_t like) {
  const em_x_t elements = EM(e, "unsqueeze", at_range(e, r->in, like), em_i(1));
  const int64_t row = 1;
  return EM(e, "sum.dim_IntList", upto ? LE(places, elements) : LT(places, elements), em_list(e, &row, 1), em_b(0));
}

/* Places grow with the element, so those that are one element of the image are neighbours. */
aot_status_t at_dc_nearest_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output");
  const aot_type_t in = at_result_type(e, 0), resized = TYPE(g);
  windows_t w = {.e = e, .space = at_space_of(e)};
  nearest_t r[MOST_SPACE];
  if (!read_nearest(e, &in, &resized, w.space, r)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < w.space; d++) {
    const em_x_t places = nearest_places(e, &r[d], g);
    int64_t most = 0, same = 0;
    for (int64_t o = 0; o < r[d].out; o++) {
      same = o && nearest_place(&r[d], o) == nearest_place(&r[d], o - 1) ? same + 1 : 1;
      if (same > most) most = same;
    }
    w.along[d] = (reach_t){.first = n_before(e, &r[d], places, 0, g),
                           .end = n_before(e, &r[d], places, 1, g),
                           .n = r[d].in,
                           .size = r[d].out,
                           .most = most,
                           .step = 1};
  }
  if (!find_places(&w)) return AOT_E_UNIMPLEMENTED;
  return at_give_result(e, 0, summed(&w, g), out);
}
