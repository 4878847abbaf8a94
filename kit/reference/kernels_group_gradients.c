/* Derivatives of reductions over ragged groups: bags of embeddings (EmbeddingBag.cpp), segments (SegmentReduce.cpp).
 * The bag of each index is given, or found again from the offsets when the forward kept none. */
#include "rk_indexing.h"
#include <aot/inline.h>
#include <math.h>

#define BAG_SUM 0
#define BAG_MEAN 1
#define BAG_MAX 2

/* owner: the given bag of each index, or counted from the offsets. */
static aot_status_t read_owners(rk_ctx_t *c, uint32_t owner_arg, int offsets_arg, int64_t n_indices, int64_t n_bags,
                                rk_array_t *owner) {
  rk_array_t offsets;
  AOT_TRY(rk_need_i(c, owner_arg, owner));
  if (owner->numel == 0 && n_indices > 0 && offsets_arg >= 0) {
    AOT_TRY(rk_need_i(c, (uint32_t)offsets_arg, &offsets));
    AOT_TRY(rk_new_i(c, 1, &n_indices, owner));
    for (int64_t k = 0, bag = 0; k < n_indices; k++) {
      while (bag + 1 < offsets.numel && offsets.i[bag + 1] <= k) bag++;
      owner->i[k] = bag;
    }
  }
  RK_CHECK(c, owner->numel == n_indices, "%lld bags for %lld indices", (long long)owner->numel, (long long)n_indices);
  for (int64_t k = 0; k < n_indices; k++)
    RK_CHECK(c, owner->i[k] >= 0 && owner->i[k] < n_bags, "bag %lld is out of range for %lld", (long long)owner->i[k],
             (long long)n_bags);
  return AOT_OK;
}

typedef struct bag_gradient {
  rk_array_t g, indices, owner, counts, top, scale, out;
  int64_t rows, width, mode, padding;
  int by_frequency;
} bag_gradient_t;

/* The maximum's row gets the gradient, in bags that are not empty. */
static aot_status_t add_maxima(rk_ctx_t *c, bag_gradient_t *b) {
  RK_CHECK(c, b->top.numel == b->g.numel && b->counts.numel == b->g.sizes[0], "the maxima do not fit the gradient");
  for (int64_t e = 0; e < b->g.numel; e++) {
    int64_t row;
    if (b->counts.i[e / b->width] == 0) continue;
    AOT_TRY(rk_check_index(c, b->top.i[e], b->rows, 0, 0, &row));
    b->out.f[row * b->width + e % b->width] += b->g.f[e];
  }
  return AOT_OK;
}

static aot_status_t add_rows(rk_ctx_t *c, bag_gradient_t *b) {
  int64_t *seen, row;
  RK_SCRATCH(c, b->rows, seen);
  RK_CHECK(c, b->mode == BAG_SUM || b->counts.numel == b->g.sizes[0], "bag_size does not fit the gradient");
  for (int64_t k = 0; k < b->indices.numel; k++) {
    AOT_TRY(rk_check_index(c, b->indices.i[k], b->rows, 0, 0, &row));
    seen[row]++;
  }
  for (int64_t k = 0; k < b->indices.numel; k++) {
    const int64_t at = b->indices.i[k], bag = b->owner.i[k];
    double scale = b->scale.f ? b->scale.f[k] : 1;
    if (at == b->padding) continue;
    if (b->by_frequency) scale /= (double)seen[at];
    if (b->mode == BAG_MEAN) scale /= (double)b->counts.i[bag];
    for (int64_t e = 0; e < b->width; e++) b->out.f[at * b->width + e] += scale * b->g.f[bag * b->width + e];
  }
  return AOT_OK;
}

/* (grad, indices, [offsets,] offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, [sparse,]
 * per_sample_weights, padding_idx) */
static aot_status_t bag_rows_backward(rk_ctx_t *c, uint32_t has_offsets) {
  const uint32_t at = 2 + has_offsets;
  bag_gradient_t b = {0};
  int64_t sizes[2];
  AOT_TRY(rk_need_f(c, 0, &b.g));
  AOT_TRY(rk_need_i(c, 1, &b.indices));
  RK_CHECK(c, b.g.rank == 2, "the gradient has rank %d, not 2", b.g.rank);
  AOT_TRY(read_owners(c, at, has_offsets ? 2 : -1, b.indices.numel, b.g.sizes[0], &b.owner));
  AOT_TRY(rk_need_i(c, at + 1, &b.counts));
  AOT_TRY(rk_need_i(c, at + 2, &b.top));
  RK_CHECK(c, !has_offsets || !rk_bool(c, at + 6, 0), "sparse gradients are not supported");
  AOT_TRY(rk_get_f(c, at + 6 + has_offsets, &b.scale));
  b.rows = rk_int(c, at + 3, 0);
  b.by_frequency = rk_bool(c, at + 4, 0);
  b.mode = rk_int(c, at + 5, BAG_SUM);
  b.padding = rk_int(c, at + 7 + has_offsets, -1);
  b.width = b.g.sizes[1];
  RK_CHECK(c, b.rows >= 0 && (!b.scale.f || b.scale.numel == b.indices.numel), "weights do not fit the indices");
  sizes[0] = b.rows;
  sizes[1] = b.width;
  AOT_TRY(rk_new_f(c, 2, sizes, &b.out));
  AOT_TRY(b.mode == BAG_MAX ? add_maxima(c, &b) : add_rows(c, &b));
  return rk_put_f(c, 0, &b.out);
}
static aot_status_t embedding_bag_backward(rk_ctx_t *c) { return bag_rows_backward(c, 1); }
static aot_status_t embedding_bag_dense_backward(rk_ctx_t *c) { return bag_rows_backward(c, 0); }

/* (grad, weight, indices, offsets, offset2bag, mode, padding_idx): row times gradient, one number an index */
static aot_status_t bag_scales_backward(rk_ctx_t *c) {
  rk_array_t g, weight, indices, owner, out;
  int64_t padding = rk_int(c, 6, -1), row;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &weight));
  AOT_TRY(rk_need_i(c, 2, &indices));
  RK_CHECK(c, rk_int(c, 5, BAG_SUM) == BAG_SUM, "only sums have weights");
  RK_CHECK(c, g.rank == 2 && weight.rank == 2 && g.sizes[1] == weight.sizes[1], "gradient and weight do not fit");
  AOT_TRY(read_owners(c, 4, 3, indices.numel, g.sizes[0], &owner));
  AOT_TRY(rk_new_f(c, 1, &indices.numel, &out));
  for (int64_t k = 0; k < indices.numel; k++) {
    AOT_TRY(rk_check_index(c, indices.i[k], weight.sizes[0], 0, 0, &row));
    for (int64_t e = 0; row != padding && e < g.sizes[1]; e++)
      out.f[k] += weight.f[row * g.sizes[1] + e] * g.f[owner.i[k] * g.sizes[1] + e];
  }
  return rk_put_f(c, 0, &out);
}

/* ---- segments ---- */

#define SEGMENT_SUM 0
#define SEGMENT_MEAN 1
#define SEGMENT_MAX 2
#define SEGMENT_MIN 3
#define SEGMENT_PROD 4

typedef struct segment {
  const double *x; /* elements `stride` apart */
  double *dx;
  int64_t n, stride;
} segment_t;

static int is_extreme(const segment_t *s, int64_t k, double y) {
  const double v = s->x[k * s->stride];
  return v != v || v == y;
}

/* Elements equal to the extreme share its gradient. */
static void extreme_gradient(const segment_t *s, double y, double g) {
  int64_t n = 0;
  for (int64_t k = 0; k < s->n; k++) n += is_extreme(s, k, y);
  for (int64_t k = 0; k < s->n; k++)
    if (is_extreme(s, k, y)) s->dx[k * s->stride] = g / (double)n;
}

/* The product of the others; by division where it is exact enough, as PyTorch does. */
static void product_gradient(const segment_t *s, double initial, double y, double g) {
  for (int64_t k = 0; k < s->n; k++) {
    const double v = s->x[k * s->stride];
    double others = initial;
    if (v == v && v != 0) {
      s->dx[k * s->stride] = g * y / v;
      continue;
    }
    for (int64_t j = 0; j < s->n; j++)
      if (j != k) others *= s->x[j * s->stride];
    s->dx[k * s->stride] = g * others;
  }
}

static void segment_gradient(const segment_t *s, int how, double initial, double y, double g) {
  if (how == SEGMENT_MAX || how == SEGMENT_MIN) extreme_gradient(s, y, g);
  else if (how == SEGMENT_PROD) product_gradient(s, initial, y, g);
  else
    for (int64_t k = 0; k < s->n; k++) s->dx[k * s->stride] = how == SEGMENT_MEAN ? g / (double)s->n : g;
}

/* _segment_reduce_backward(grad, output, data, reduce, *, lengths, offsets, axis, initial) */
static aot_status_t segment_reduce_backward(rk_ctx_t *c) {
  static const char *const words[] = {"sum", "mean", "max", "min", "prod"};
  rk_array_t g, y, x, l, dx;
  const int by_offsets = !rk_has(c, 4);
  const double initial = rk_float(c, 7, 1);
  int64_t outer, size, inner, n;
  int32_t axis;
  int how = -1;
  for (int w = 0; w < 5; w++)
    if (rk_str_is(c, 3, words[w])) how = w;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &y));
  AOT_TRY(rk_need_f(c, 2, &x));
  AOT_TRY(rk_need_i(c, by_offsets ? 5 : 4, &l));
  AOT_TRY(rk_dim(c, rk_int(c, 6, 0), x.rank, &axis));
  RK_CHECK(c, how >= 0 && x.rank > 0 && l.rank == axis + 1, "reduction or lengths do not fit");
  rk_around(&x, axis, &outer, &size, &inner);
  n = l.sizes[axis] - by_offsets;
  RK_CHECK(c, n >= 0 && l.numel == outer * (n + by_offsets) && g.numel == outer * n * inner && y.numel == g.numel,
           "the lengths do not fit data and gradient");
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &dx));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0, begin = 0; k < n; k++) {
      const int64_t *row = l.i + o * (n + by_offsets);
      if (by_offsets) begin = row[k];
      const int64_t length = by_offsets ? row[k + 1] - begin : row[k];
      RK_CHECK(c, begin >= 0 && length >= 0 && begin + length <= size, "segment %lld leaves the data", (long long)k);
      for (int64_t i = 0; i < inner; i++) {
        const int64_t first = (o * size + begin) * inner + i, e = (o * n + k) * inner + i;
        const segment_t s = {x.f + first, dx.f + first, length, inner};
        segment_gradient(&s, how, initial, y.f[e], g.f[e]);
      }
      begin += length;
    }
  return rk_put_f(c, 0, &dx);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_embedding_bag_backward", embedding_bag_backward),
    ROW("_embedding_bag_dense_backward", embedding_bag_dense_backward),
    ROW("_embedding_bag_per_sample_weights_backward", bag_scales_backward),
    ROW("_segment_reduce_backward", segment_reduce_backward),
};
const rk_family_t rk_family_group_gradients = RK_FAMILY(rows);
