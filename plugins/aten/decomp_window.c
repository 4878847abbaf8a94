/* Windows over the last dimensions. Those of a pool step evenly, so what stands at one place of all of them is a slice
 * with a step, and something else where the place is in the padding: nothing is looked up (window_part). So it is the
 * other way round: of the windows that hold an element its gradient is a sum over slices, too (blocks_t).
 *
 * Others are reads by places: pools of even shares and their derivatives, resampling by the nearest element, padding by
 * an image's own elements. Along each dimension element o of the result reads from x
 *
 *     first(o), first(o) + step, ..    at most `most` of them, those before end(o)
 *
 * and is the sum over the products of these places. The windows that hold an element are neighbours, so derivatives have
 * this form: nothing is added up in memory, and the order of sums is fixed.
 *
 * Sizes that are symbols, and elements that more than MOST_READS places are read for, have no such form. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

enum { MOST_SPACE = 3, MOST_READS = 64 };

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

static em_x_t or_else(em_t *e, em_x_t valid, em_x_t x, double outside) {
  return em_is_none(valid) ? x : EM(e, "where.ScalarOther", valid, x, em_f(outside));
}

static em_x_t summed(const windows_t *w, em_x_t x) {
  em_t *e = w->e;
  em_x_t sum = em_none();
  for (int64_t k = 0; k < w->n; k++) {
    const em_x_t term = or_else(e, is_valid(w, k), at_math(e, read_at(w, x, k)), 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return sum;
}

static aot_status_t give(em_t *e, uint32_t result, em_x_t x, aot_value_t *out) {
  const aot_type_t t = at_result_type(e, result);
  out[result] = VAL(at_laid_out(e, em_cast(e, x, t.dtype), &t));
  return e->status;
}

/* ---- vectors of places ---- */

/* floor(x / n) of x >= 0: exact, as integers of this size are in a double. */
static em_x_t divided(em_t *e, em_x_t x, int64_t n) {
  if (n == 1) return x;
  return em_cast(e, EM(e, "floor", DIV(em_cast(e, x, AOT_F64), em_f((double)n))), AOT_I64);
}

static em_x_t scaled_range(em_t *e, int64_t n, int64_t step, int64_t shift, em_x_t like) {
  em_x_t x = at_range(e, n, like);
  if (step != 1) x = MUL(x, em_i(step));
  return shift ? ADD(x, em_i(shift)) : x;
}

/* ---- pools ---- */

typedef struct pool {
  int64_t in, out, kernel, stride, padding, dilation;
} pool_t;

static int64_t number_in(em_t *e, const char *name, int32_t d, int64_t otherwise) {
  const int64_t *list;
  const uint32_t n = at_in_ints(e, name, &list);
  return n == 0 ? otherwise : n == 1 ? list[0] : (uint32_t)d < n ? list[d] : otherwise;
}

/* Of the node at hand, whose image and pooled sizes these are. 0: there are none that are known. */
static int read_pool(em_t *e, const aot_type_t *in, const aot_type_t *out, int32_t space, pool_t *p) {
  if (in->rank < space || out->rank != in->rank) return 0;
  for (int32_t d = 0; d < space; d++) {
    p[d].in = in->sizes[in->rank - space + d];
    p[d].out = out->sizes[in->rank - space + d];
    p[d].kernel = number_in(e, "kernel_size", d, 0);
    p[d].stride = number_in(e, "stride", d, p[d].kernel);
    p[d].padding = number_in(e, "padding", d, 0);
    p[d].dilation = number_in(e, "dilation", d, 1);
    if (AOT_DIM_IS_SYM(p[d].in) || AOT_DIM_IS_SYM(p[d].out) || AOT_DIM_IS_SYM(p[d].kernel) ||
        AOT_DIM_IS_SYM(p[d].stride) || AOT_DIM_IS_SYM(p[d].padding) || p[d].kernel < 1 || p[d].stride < 1 ||
        p[d].dilation < 1 || p[d].padding < 0)
      return 0;
  }
  return 1;
}

static int64_t span(const pool_t *p) { return (p->kernel - 1) * p->dilation + 1; }

/* What stands at place number k of every window, row-major; outside of the image `outside`. None: all are outside. */
static em_x_t window_part(em_t *e, em_x_t x, const pool_t *p, int32_t space, int64_t k, double outside) {
  const int32_t lead = TYPE(x).rank - space;
  int64_t pad[2 * MOST_SPACE] = {0};
  int is_padded = 0;
  for (int32_t d = space - 1; d >= 0; k /= p[d].kernel, d--) {
    const int64_t start = k % p[d].kernel * p[d].dilation - p[d].padding;
    const int64_t begin = start < 0 ? (-start + p[d].stride - 1) / p[d].stride : 0;
    int64_t end = start < p[d].in ? (p[d].in - 1 - start) / p[d].stride + 1 : 0;
    if (end > p[d].out) end = p[d].out;
    if (begin >= end) return em_none();
    const int64_t first = start + begin * p[d].stride, last = start + (end - 1) * p[d].stride;
    pad[2 * (space - 1 - d)] = begin;
    pad[2 * (space - 1 - d) + 1] = p[d].out - end;
    is_padded |= begin > 0 || end < p[d].out;
    if (first || last + 1 < p[d].in || p[d].stride > 1)
      x = EM(e, "slice.Tensor", x, em_i(lead + d), em_i(first), em_i(last + 1), em_i(p[d].stride));
  }
  return is_padded ? EM(e, "constant_pad_nd", x, em_list(e, pad, 2 * (uint32_t)space), em_f(outside)) : x;
}

static int64_t n_places(const pool_t *p, int32_t space) {
  int64_t n = 1;
  for (int32_t d = 0; d < space && n <= MOST_READS; d++) n *= p[d].kernel;
  return n;
}

static int32_t space_of(const em_t *e) { return strstr(at_name(e), "3d") ? 3 : strstr(at_name(e), "1d") ? 1 : 2; }

/* Along one dimension, in elements from where the window begins, in the padding or not: its first one in the image. */
static em_x_t first_inside(em_t *e, const pool_t *p, em_x_t like) {
  const em_x_t missing = EM(e, "clamp_min", scaled_range(e, p->out, -p->stride, p->padding, like), em_i(0));
  if (p->dilation == 1) return missing;
  const em_x_t places = divided(e, ADD(missing, em_i(p->dilation - 1)), p->dilation);
  return MUL(places, em_i(p->dilation));
}

/* The first place that has the largest, the first of all in the image if none has more than -inf; a NaN is larger than
 * all. Places are counted from where the window begins, in steps of pitch[d] an element. 0: there is nothing to compare. */
static int find_largest(em_t *e, em_x_t x, const pool_t *p, int32_t space, const int64_t *pitch, em_x_t *out_largest,
                        em_x_t *out_place) {
  em_x_t best = em_none(), place = em_i(0);
  int64_t n_seen = 0;
  const int64_t n = n_places(p, space);
  if (n == 1 || n > MOST_READS) return 0;
  for (int32_t d = space - 1; d >= 0; d--) {
    if (!p[d].padding) continue;
    em_x_t first = first_inside(e, &p[d], x);
    if (pitch[d] != 1) first = MUL(first, em_i(pitch[d]));
    first = at_along(e, first, d, space);
    place = place.kind == AOT_ARG_VALUE ? ADD(first, place) : first;
  }
  for (int64_t k = 0; k < n; k++) {
    const em_x_t v = window_part(e, x, p, space, k, -INFINITY);
    int64_t at = 0, rest = k;
    for (int32_t d = space - 1; d >= 0; rest /= p[d].kernel, d--) at += rest % p[d].kernel * p[d].dilation * pitch[d];
    if (em_is_none(v)) continue;
    if (++n_seen == 1) {
      best = v;
      continue;
    }
    const em_x_t is_larger = EM(e, "logical_or", GT(v, best), NE(v, v));
    best = WHERE(is_larger, v, best);
    place = EM(e, place.kind == AOT_ARG_VALUE ? "where.ScalarSelf" : "where.Scalar", is_larger, em_i(at), place);
  }
  *out_largest = best;
  *out_place = place;
  return n_seen > 1;
}

aot_status_t at_dc_max_pool(em_t *e, aot_value_t *out) {
  const em_x_t x = IN("self");
  const aot_type_t in = TYPE(x), pooled = at_result_type(e, 0);
  const int32_t space = space_of(e);
  em_x_t best, begin = em_none(), place;
  pool_t p[MOST_SPACE];
  int64_t below = 1, pitch[MOST_SPACE];
  if (at_is_integral(in.dtype) || !read_pool(e, &in, &pooled, space, p)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = space - 1; d >= 0; below *= p[d].in, d--) {
    const em_x_t along =
        at_along(e, scaled_range(e, p[d].out, p[d].stride * below, -p[d].padding * below, x), d, space);
    begin = em_is_none(begin) ? along : ADD(along, begin);
    pitch[d] = below;
  }
  if (!find_largest(e, x, p, space, pitch, &best, &place)) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(give(e, 0, best, out));
  return give(e, 1, ADD(place, begin), out);
}

/* ---- the windows that hold an element ---- */

/* An image in blocks of as many elements along a dimension as windows step: element a * stride + b, two dimensions. The
 * windows that any of a block's elements are in are a + low, .. a + high, so those at one of these distances are a
 * slice, which has every element of a block the same. Dimensions stand in the order of memory, the channels of an image
 * that has them last behind the others. */
typedef struct blocks {
  em_t *e;
  const pool_t *p;
  int32_t space, lead, rank; /* rank: of the image */
  int is_last;               /* channels are */
  int64_t n[MOST_SPACE], low[MOST_SPACE], high[MOST_SPACE];
  int64_t n_windows;
} blocks_t;

static int64_t floor_of(int64_t a, int64_t b) { return a < 0 ? -((-a + b - 1) / b) : a / b; }

/* 0: there are too many windows. */
static int find_blocks(em_t *e, const aot_type_t *image, const pool_t *p, int32_t space, blocks_t *out) {
  const int32_t rank = image->rank;
  *out = (blocks_t){.e = e, .p = p, .space = space, .lead = rank - space, .rank = rank, .n_windows = 1};
  out->is_last = out->lead == 2 && image->strides && image->strides[1] == 1 && image->strides[rank - 1] != 1;
  for (int32_t d = 0; d < space; d++) {
    out->n[d] = (p[d].in + p[d].stride - 1) / p[d].stride;
    out->low[d] = -floor_of(span(&p[d]) - 1 - p[d].padding, p[d].stride);
    out->high[d] = floor_of(p[d].stride - 1 + p[d].padding, p[d].stride);
    const int64_t n = out->high[d] - out->low[d] + 1;
    if (n < 1 || n > MOST_READS || out->n_windows * n > MOST_READS) return 0;
    out->n_windows *= n;
  }
  return 1;
}

/* Channels behind the space, if they lie so; or back again. */
static em_x_t turned(const blocks_t *b, em_x_t x, int is_back) {
  em_t *e = b->e;
  int64_t order[MOST_SPACE + 2] = {0};
  if (!b->is_last) return x;
  for (int32_t d = 1; d < b->rank; d++)
    order[d] = is_back ? d == 1 ? b->rank - 1 : d - 1 : d == b->rank - 1 ? 1 : d + 1;
  return EM(e, "permute", x, em_list(e, order, (uint32_t)b->rank));
}

static int32_t first_dim(const blocks_t *b) { return b->is_last ? b->lead - 1 : b->lead; }

/* How many windows further than the block's number the k-th ones of every block are. */
static void distances(const blocks_t *b, int64_t k, int64_t *out) {
  for (int32_t d = b->space - 1; d >= 0; d--) {
    const int64_t n = b->high[d] - b->low[d] + 1;
    out[d] = b->low[d] + k % n;
    k /= n;
  }
}

/* x, pooled: its windows for each element of a block. */
static em_x_t for_blocks(const blocks_t *b, em_x_t x) {
  em_t *e = b->e;
  const int32_t first = first_dim(b);
  x = turned(b, x, 0);
  for (int32_t d = 0; d < b->space; d++) x = at_unsqueeze(e, x, first + 2 * d + 1);
  const aot_type_t t = TYPE(x);
  int64_t sizes[AOT_MAX_RANK];
  for (int32_t d = 0; d < t.rank; d++) sizes[d] = t.sizes[d];
  for (int32_t d = 0; d < b->space; d++) sizes[first + 2 * d + 1] = b->p[d].stride;
  return at_expanded(e, x, sizes, t.rank);
}

/* What it has for the windows at these distances, 0 where there are none; none: nowhere. */
static em_x_t blocks_part(const blocks_t *b, em_x_t x, const int64_t *distance) {
  em_t *e = b->e;
  const int32_t behind = b->is_last;
  int64_t pad[2 * (2 * MOST_SPACE + 1)] = {0};
  int is_padded = 0;
  for (int32_t d = 0; d < b->space; d++) {
    const int64_t begin = distance[d] < 0 ? -distance[d] : 0, left = b->p[d].out - distance[d];
    const int64_t end = left < b->n[d] ? left : b->n[d];
    int64_t *around = &pad[2 * (behind + 2 * (b->space - 1 - d) + 1)];
    if (begin >= end) return em_none();
    around[0] = begin;
    around[1] = b->n[d] - end;
    is_padded |= begin > 0 || end < b->n[d];
    if (begin + distance[d] > 0 || end < left)
      x = EM(e, "slice.Tensor", x, em_i(first_dim(b) + 2 * d), em_i(begin + distance[d]), em_i(end + distance[d]),
             em_i(1));
  }
  if (!is_padded) return x;
  return EM(e, "constant_pad_nd", x, em_list(e, pad, 2 * (uint32_t)(behind + 2 * b->space)), em_i(0));
}

/* Along a dimension a * of_block + b * of_element, as it broadcasts over blocks. */
static em_x_t over_blocks(const blocks_t *b, int32_t d, int64_t of_block, int64_t of_element, em_x_t like) {
  em_t *e = b->e;
  const int32_t rank = 2 * b->space + b->is_last;
  const em_x_t x = at_along(e, scaled_range(e, b->p[d].stride, of_element, 0, like), 2 * d + 1, rank);
  return of_block ? ADD(at_along(e, scaled_range(e, b->n[d], of_block, 0, like), 2 * d, rank), x) : x;
}

static aot_status_t give_blocks(const blocks_t *b, em_x_t x, aot_value_t *out) {
  em_t *e = b->e;
  const aot_type_t image = at_result_type(e, 0);
  const int32_t first = first_dim(b);
  int64_t sizes[AOT_MAX_RANK], apart[AOT_MAX_RANK];
  int32_t n = 0;
  if (em_is_none(x)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < b->rank; d++) {
    const int32_t along = d - first;
    sizes[d] = image.sizes[b->is_last && d ? d == b->rank - 1 ? 1 : d + 1 : d];
    if (along >= 0 && along < b->space) {
      sizes[d] = b->n[along] * b->p[along].stride;
      apart[n++] = b->n[along];
    }
    apart[n++] = along >= 0 && along < b->space ? b->p[along].stride : sizes[d];
  }
  x = at_expanded(e, em_cast(e, x, image.dtype), apart, n);
  x = at_reshaped(e, x, sizes, b->rank);
  for (int32_t d = 0; d < b->space; d++)
    if (b->n[d] * b->p[d].stride > b->p[d].in)
      x = EM(e, "slice.Tensor", x, em_i(first + d), em_i(0), em_i(b->p[d].in), em_i(1));
  return give(e, 0, turned(b, x, 1), out);
}

/* Gradients go where the place of each window's largest is an element's own. Places are counted in these pitches, from
 * where the image begins or from where the window does. */
static aot_status_t give_to_largest(const blocks_t *b, em_x_t g, em_x_t places, const int64_t *pitch, int from_window,
                                    aot_value_t *out) {
  em_t *e = b->e;
  em_x_t own = em_none(), sum = em_none();
  for (int32_t d = b->space - 1; d >= 0; d--) {
    const em_x_t along = over_blocks(b, d, from_window ? 0 : b->p[d].stride * pitch[d], pitch[d], g);
    own = em_is_none(own) ? along : ADD(along, own);
  }
  own = em_cast(e, own, TYPE(places).dtype);
  g = for_blocks(b, g);
  places = for_blocks(b, places);
  for (int64_t k = 0; k < b->n_windows; k++) {
    int64_t distance[MOST_SPACE], from = 0; /* of the first element of every block in its window */
    distances(b, k, distance);
    for (int32_t d = 0; d < b->space && from_window; d++)
      from += (b->p[d].padding - b->p[d].stride * distance[d]) * pitch[d];
    em_x_t place = blocks_part(b, places, distance);
    if (em_is_none(place)) continue;
    if (from) place = SUB(place, em_i(from));
    const em_x_t term = or_else(e, EQ(place, own), at_math(e, blocks_part(b, g, distance)), 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return give_blocks(b, sum, out);
}

aot_status_t at_dc_max_pool_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output"), places = IN("indices");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  const int32_t space = space_of(e);
  pool_t p[MOST_SPACE];
  blocks_t b;
  int64_t below = 1, pitch[MOST_SPACE];
  if (!read_pool(e, &in, &pooled, space, p) || !find_blocks(e, &in, p, space, &b)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = space - 1; d >= 0; below *= p[d].in, d--) pitch[d] = below;
  return give_to_largest(&b, g, places, pitch, 0, out);
}

/* The maxima are found again; their places within their windows, counted so that no element of a block that is not in the
 * window has the same, are small numbers. */
aot_status_t at_dc_max_pool2d_backward(em_t *e, aot_value_t *out) {
  enum { SPACE = 2 };
  const em_x_t g = IN("grad"), x = IN("self");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  pool_t p[MOST_SPACE];
  blocks_t b;
  em_x_t largest, place;
  int64_t pitch[MOST_SPACE], reach = 1;
  if (at_is_integral(in.dtype) || !read_pool(e, &in, &pooled, SPACE, p) || !find_blocks(e, &in, p, SPACE, &b))
    return AOT_E_UNIMPLEMENTED;
  for (int32_t d = SPACE - 1; d >= 0; d--) {
    pitch[d] = reach;
    reach *= span(&p[d]) + p[d].stride;
  }
  if (!find_largest(e, x, p, SPACE, pitch, &largest, &place)) return AOT_E_UNIMPLEMENTED;
  return give_to_largest(&b, g, em_cast(e, place, 2 * reach <= INT8_MAX ? AOT_I8 : AOT_I32), pitch, 1, out);
}

/* ---- means ---- */

/* How many elements the windows' means are of, as they broadcast over the pooled image; a number where all agree. */
static em_x_t counts(em_t *e, const pool_t *p, int32_t space, em_x_t like) {
  const int with_padding = at_in_int(e, "count_include_pad", 1) != 0;
  em_x_t all = em_none(), divisor = IN("divisor_override");
  int64_t number = 1;
  if (!em_is_none(divisor)) return divisor;
  for (int32_t d = 0; d < space; d++) {
    const int64_t past = p[d].in + (with_padding ? p[d].padding : 0);
    number *= p[d].kernel;
    if ((with_padding || !p[d].padding) && (p[d].out - 1) * p[d].stride - p[d].padding + p[d].kernel <= past) continue;
    em_x_t begin = scaled_range(e, p[d].out, p[d].stride, -p[d].padding, like);
    const em_x_t end = EM(e, "clamp_max", ADD(begin, em_i(p[d].kernel)), em_i(past));
    if (!with_padding) begin = EM(e, "clamp_min", begin, em_i(0));
    const em_x_t along = at_along(e, SUB(end, begin), d, space);
    number /= p[d].kernel;
    all = em_is_none(all) ? along : MUL(along, all);
  }
  if (em_is_none(all)) return em_i(number);
  return number == 1 ? all : MUL(all, em_i(number));
}

aot_status_t at_dc_avg_pool(em_t *e, aot_value_t *out) {
  const em_x_t x = IN("self");
  const aot_type_t in = TYPE(x), pooled = at_result_type(e, 0);
  const int32_t space = space_of(e);
  em_x_t sum = em_none();
  pool_t p[MOST_SPACE];
  if (at_is_integral(in.dtype) || !read_pool(e, &in, &pooled, space, p)) return AOT_E_UNIMPLEMENTED;
  const int64_t n = n_places(p, space);
  if (n > MOST_READS) return AOT_E_UNIMPLEMENTED;
  for (int64_t k = 0; k < n; k++) {
    const em_x_t part = window_part(e, x, p, space, k, 0);
    if (em_is_none(part)) continue;
    sum = em_is_none(sum) ? at_math(e, part) : ADD(sum, at_math(e, part));
  }
  if (em_is_none(sum)) return AOT_E_UNIMPLEMENTED;
  return give(e, 0, DIV(sum, counts(e, p, space, x)), out);
}

/* Is an element in the windows at these distances of its block? None: all are. Windows of means are not dilated. */
static em_x_t is_in_windows(const blocks_t *b, const int64_t *distance, em_x_t like) {
  em_t *e = b->e;
  em_x_t all = em_none();
  for (int32_t d = 0; d < b->space; d++) {
    const pool_t *p = &b->p[d];
    const int64_t from = p->padding - p->stride * distance[d]; /* of a block's first element in its window */
    const em_x_t own = over_blocks(b, d, 0, 1, like);
    const em_x_t bounds[] = {from < 0 ? GE(own, em_i(-from)) : em_none(),
                             from + p->stride > p->kernel ? LT(own, em_i(p->kernel - from)) : em_none()};
    for (int k = 0; k < 2; k++)
      if (!em_is_none(bounds[k])) all = em_is_none(all) ? bounds[k] : EM(e, "logical_and", bounds[k], all);
  }
  return all;
}

aot_status_t at_dc_avg_pool_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  const int32_t space = space_of(e);
  em_x_t sum = em_none();
  pool_t p[MOST_SPACE];
  blocks_t b;
  if (!read_pool(e, &in, &pooled, space, p) || !find_blocks(e, &in, p, space, &b)) return AOT_E_UNIMPLEMENTED;
  const em_x_t share = for_blocks(&b, DIV(at_math(e, g), counts(e, p, space, g)));
  for (int64_t k = 0; k < b.n_windows; k++) {
    int64_t distance[MOST_SPACE];
    distances(&b, k, distance);
    const em_x_t part = blocks_part(&b, share, distance);
    if (em_is_none(part)) continue;
    const em_x_t term = or_else(e, is_in_windows(&b, distance, g), part, 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return give_blocks(&b, sum, out);
}

/* ---- even shares ---- */

/* As many windows as asked, as even as can be: of `n` elements those from o * size / n on, up to what (o + 1) * size / n
 * rounds up to. The other way round they are the windows that hold an element. */
static reach_t over_shares(em_t *e, int64_t n, int64_t size, em_x_t like) {
  reach_t r = {.first = divided(e, scaled_range(e, n, size, 0, like), n),
               .end = divided(e, scaled_range(e, n, size, size + n - 1, like), n),
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
  windows_t w = {.e = e, .space = space_of(e)};
  if (!share_out(&w, IN("self"), &pooled)) return AOT_E_UNIMPLEMENTED;
  return give(e, 0, DIV(summed(&w, IN("self")), share_count(e, w.space, w.along)), out);
}

aot_status_t at_dc_native_adaptive_avg_pool_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  windows_t w = {.e = e, .space = space_of(e)};
  reach_t shares[MOST_SPACE];
  if (!share_out(&w, g, &in)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < w.space; d++)
    shares[d] = over_shares(e, pooled.sizes[pooled.rank - w.space + d], in.sizes[in.rank - w.space + d], g);
  return give(e, 0, summed(&w, DIV(at_math(e, g), share_count(e, w.space, shares))), out);
}

/* ---- places of one element ---- */

/* Each element of the result is one of x: places[d] has [n] of int64 for each of the last dimensions. */
static aot_status_t give_places(em_t *e, em_x_t x, const em_x_t *places, int32_t space, aot_value_t *out) {
  windows_t w = {.e = e, .space = space, .n = 1};
  for (int32_t d = 0; d < space; d++) {
    w.along[d].most = 1;
    w.at[d][0] = at_along(e, places[d], d, space);
  }
  return give(e, 0, read_at(&w, x, 0), out);
}

/* reflection_pad, replication_pad: two numbers a dimension, from the last one on */
aot_status_t at_dc_pad_by_image(em_t *e, aot_value_t *out) {
  const em_x_t x = IN("self");
  const aot_type_t in = TYPE(x), padded = at_result_type(e, 0);
  const int32_t space = space_of(e);
  const int64_t *pad;
  em_x_t places[MOST_SPACE];
  if (at_in_ints(e, "padding", &pad) != 2 * (uint32_t)space || in.rank < space) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < space; d++) {
    const int64_t last = in.sizes[in.rank - space + d] - 1, n = padded.sizes[in.rank - space + d];
    const int64_t before = pad[2 * (space - 1 - d)];
    if (AOT_DIM_IS_SYM(last + 1) || AOT_DIM_IS_SYM(n) || AOT_DIM_IS_SYM(before) || last < 0) return AOT_E_UNIMPLEMENTED;
    places[d] = scaled_range(e, n, 1, -before, x);
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
  const int32_t space = space_of(e);
  nearest_t r[MOST_SPACE];
  em_x_t places[MOST_SPACE];
  if (!read_nearest(e, &in, &resized, space, r)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < space; d++) places[d] = nearest_places(e, &r[d], x);
  return give_places(e, x, places, space, out);
}

/* How many of the places lie before each element of the image, or `upto` it. */
static em_x_t n_before(em_t *e, const nearest_t *r, em_x_t places, int upto, em_x_t like) {
  const em_x_t elements = EM(e, "unsqueeze", at_range(e, r->in, like), em_i(1));
  const int64_t row = 1;
  return EM(e, "sum.dim_IntList", upto ? LE(places, elements) : LT(places, elements), em_list(e, &row, 1), em_b(0));
}

/* Places grow with the element, so those that are one element of the image are neighbours. */
aot_status_t at_dc_nearest_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output");
  const aot_type_t in = at_result_type(e, 0), resized = TYPE(g);
  windows_t w = {.e = e, .space = space_of(e)};
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
  return give(e, 0, summed(&w, g), out);
}
