#include "patch_embed_gemm.h"

#include "cudnn/conv_graphs.h"
#include "conv_layout.h"

/* A patch has its pixels in the order in which a weight has them: channels first, or last. */
typedef struct patches {
  int32_t space;
  int weights_last;
  int64_t n, length, n_channels; /* patches; numbers of each; channels that come of one */
  lw_tensor_t image;             /* seen as patches: images, where a patch is, its pixels */
} patches_t;

int gc_is_patches(const lw_conv_t *call, const lw_tensor_t *t) {
  const int64_t *x = t[GC_CONV_X].sizes, *w = t[GC_CONV_W].sizes, *y = t[GC_CONV_Y].sizes;
  int64_t n_pixels = 1;
  if (call->groups != 1) return 0;
  for (int32_t d = 0; d < call->rank; d++) {
    const int64_t n = w[2 + d];
    if (call->stride[d] != n || call->pad[d] || (call->dilation[d] != 1 && n > 1) || x[2 + d] != y[2 + d] * n) return 0;
    n_pixels *= n;
  }
  return n_pixels > 1 && lw_numel(&t[GC_CONV_Y]) > 0 && lw_numel(&t[GC_CONV_W]) > 0;
}

static patches_t find_patches(const lw_conv_t *call, const lw_tensor_t *t) {
  const lw_tensor_t *x = &t[GC_CONV_X], *w = &t[GC_CONV_W], *y = &t[GC_CONV_Y];
  patches_t p = {.space = call->rank, .weights_last = gc_is_channels_last(w), .n_channels = w->sizes[0], .image = *x};
  const int32_t pixels = 1 + p.space, channel = p.weights_last ? pixels + p.space : pixels;
  p.image.rank = 2 + 2 * p.space;
  p.image.sizes[channel] = x->sizes[1];
  p.image.strides[channel] = x->strides[1];
  for (int32_t d = 0; d < p.space; d++) {
    const int32_t pixel = pixels + d + !p.weights_last;
    p.image.sizes[1 + d] = y->sizes[2 + d];
    p.image.strides[1 + d] = x->strides[2 + d] * w->sizes[2 + d];
    p.image.sizes[pixel] = w->sizes[2 + d];
    p.image.strides[pixel] = x->strides[2 + d];
  }
  p.n = lw_numel(y) / p.n_channels;
  p.length = lw_numel(w) / p.n_channels;
  return p;
}

/* What lies without holes as rows. */
static lw_tensor_t as_rows(const lw_tensor_t *dense, int64_t n, int64_t length) {
  lw_tensor_t rows = *dense;
  rows.rank = 2;
  rows.sizes[0] = n;
  rows.sizes[1] = rows.strides[0] = length;
  rows.strides[1] = 1;
  return rows;
}

static lw_tensor_t transposed(const lw_tensor_t *rows) {
  lw_tensor_t t = *rows;
  t.sizes[0] = rows->sizes[1], t.sizes[1] = rows->sizes[0];
  t.strides[0] = rows->strides[1], t.strides[1] = rows->strides[0];
  return t;
}

/* t itself where it lies so without holes, else memory that does. */
static aot_status_t dense(lw_build_t *b, const lw_tensor_t *t, int channels_last, lw_tensor_t *out) {
  *out = gc_laid_out(t, channels_last);
  out->offset = t->offset;
  if (lw_same_geometry(out, t)) return AOT_OK;
  out->offset = 0;
  return lw_new_tensor(b, out);
}

static aot_status_t copy_unless_same(lw_build_t *b, const lw_tensor_t *to, const lw_tensor_t *from) {
  return to->storage == from->storage ? AOT_OK : lw_copy(b, to, from);
}

/* Memory for the patches of an image: its own, where they lie so. */
static aot_status_t patches_of(lw_build_t *b, const patches_t *p, lw_tensor_t *out) {
  *out = p->image;
  lw_make_contiguous(out);
  out->offset = p->image.offset;
  if (lw_same_geometry(out, &p->image)) return AOT_OK;
  out->offset = 0;
  return lw_new_tensor(b, out);
}

aot_status_t gc_lower_patches(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t,
                              const lw_tensor_t *bias) {
  const patches_t p = find_patches(call, t);
  const lw_target_t *target = b->machine->target;
  lw_tensor_t patches, weights, channels;
  AOT_TRY(patches_of(b, &p, &patches));
  AOT_TRY(dense(b, &t[GC_CONV_W], p.weights_last, &weights));
  AOT_TRY(dense(b, &t[GC_CONV_Y], 1, &channels));
  if (kind != GC_DNN_CONV_DATA) AOT_TRY(copy_unless_same(b, &patches, &p.image));
  if (kind != GC_DNN_CONV_WEIGHTS) AOT_TRY(copy_unless_same(b, &weights, &t[GC_CONV_W]));
  if (kind != GC_DNN_CONV_FORWARD) AOT_TRY(copy_unless_same(b, &channels, &t[GC_CONV_Y]));
  const lw_tensor_t x = as_rows(&patches, p.n, p.length), w = as_rows(&weights, p.n_channels, p.length);
  const lw_tensor_t y = as_rows(&channels, p.n, p.n_channels);
  const lw_tensor_t w_turned = transposed(&w), y_turned = transposed(&y);
  switch (kind) {
    case GC_DNN_CONV_FORWARD:
      AOT_TRY(target->product(b, &x, &w_turned, bias, &y, 1, bias ? 1 : 0));
      return copy_unless_same(b, &t[GC_CONV_Y], &channels);
    case GC_DNN_CONV_DATA:
      AOT_TRY(target->product(b, &y, &w, NULL, &x, 1, 0));
      return copy_unless_same(b, &p.image, &patches);
    default:
      AOT_TRY(target->product(b, &y_turned, &x, NULL, &w, 1, 0));
      return copy_unless_same(b, &t[GC_CONV_W], &weights);
  }
}
