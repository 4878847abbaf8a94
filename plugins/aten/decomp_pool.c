/* Pools, whose windows step evenly: what is at one place of all of them is a slice with a step, and something else
 * where the place is in the padding, so nothing is looked up (window_part). So it is the other way round: of the
 * windows that hold an element its gradient is a sum over slices, too (blocks_t).
 *
 * Sizes that are symbols, and windows of more than MOST_READS places, have no such form. */
#include "decomp_window.h"

#include <math.h>
#include <string.h>

enum { MOST_SPACE = AT_MOST_SPACE, MOST_READS = AT_MOST_READS };

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

/* What is at place number k of every window, row-major; outside of the image `outside`. None: all are outside. */
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

/* Along one dimension, in elements from where the window begins, in the padding or not: its first one in the image. */
static em_x_t first_inside(em_t *e, const pool_t *p, em_x_t like) {
  const em_x_t missing = EM(e, "clamp_min", at_scaled_range(e, p->out, -p->stride, p->padding, like), em_i(0));
  if (p->dilation == 1) return missing;
  const em_x_t places = at_floor_of_quotient(e, ADD(missing, em_i(p->dilation - 1)), p->dilation);
  return MUL(places, em_i(p->dilation));
}

/* The first place that has the largest, the first of all in the image if none has more than -inf; a NaN is larger than
 * all. Places are counted from where the window begins, in steps of pitch[d] an element. 0: there is nothing to
 * compare. */
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
  const int32_t space = at_space_of(e);
  em_x_t best, begin = em_none(), place;
  pool_t p[MOST_SPACE];
  int64_t below = 1, pitch[MOST_SPACE];
  if (at_is_integral(in.dtype) || !read_pool(e, &in, &pooled, space, p)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = space - 1; d >= 0; below *= p[d].in, d--) {
    const em_x_t along =
        at_along(e, at_scaled_range(e, p[d].out, p[d].stride * below, -p[d].padding * below, x), d, space);
    begin = em_is_none(begin) ? along : ADD(along, begin);
    pitch[d] = below;
  }
  if (!find_largest(e, x, p, space, pitch, &best, &place)) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(at_give_result(e, 0, best, out));
  return at_give_result(e, 1, ADD(place, begin), out);
}

/* ---- the windows that hold an element ---- */

/* An image in blocks of as many elements along a dimension as windows step: element a * stride + b, two dimensions. The
 * windows that any of a block's elements are in are a + low, .. a + high, so those at one of these distances are a
 * slice, which has every element of a block the same. Dimensions are in the order of memory, the channels of an image
 * that has them last after the others. */
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

/* Channels after the space, if they lie so; or back again. */
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
  const em_x_t x = at_along(e, at_scaled_range(e, b->p[d].stride, of_element, 0, like), 2 * d + 1, rank);
  return of_block ? ADD(at_along(e, at_scaled_range(e, b->n[d], of_block, 0, like), 2 * d, rank), x) : x;
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
  return at_give_result(e, 0, turned(b, x, 1), out);
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
    const em_x_t term = at_or_else(e, EQ(place, own), at_math(e, blocks_part(b, g, distance)), 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return give_blocks(b, sum, out);
}

aot_status_t at_dc_max_pool_backward(em_t *e, aot_value_t *out) {
  const em_x_t g = IN("grad_output"), places = IN("indices");
  const aot_type_t in = at_result_type(e, 0), pooled = TYPE(g);
  const int32_t space = at_space_of(e);
  pool_t p[MOST_SPACE];
  blocks_t b;
  int64_t below = 1, pitch[MOST_SPACE];
  if (!read_pool(e, &in, &pooled, space, p) || !find_blocks(e, &in, p, space, &b)) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = space - 1; d >= 0; below *= p[d].in, d--) pitch[d] = below;
  return give_to_largest(&b, g, places, pitch, 0, out);
}

/* The maxima are found again; their places within their windows, counted so that no element of a block that is not in
 * the window has the same, are small numbers. */
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
    em_x_t begin = at_scaled_range(e, p[d].out, p[d].stride, -p[d].padding, like);
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
  const int32_t space = at_space_of(e);
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
  return at_give_result(e, 0, DIV(sum, counts(e, p, space, x)), out);
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
  const int32_t space = at_space_of(e);
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
    const em_x_t term = at_or_else(e, is_in_windows(&b, distance, g), part, 0);
    sum = em_is_none(sum) ? term : ADD(sum, term);
  }
  return give_blocks(&b, sum, out);
}
