#include "attention_steps.h"

#include "cudnn/gpu_dnn.h"
#include <string.h>

enum { WIDTH_STEP = 8 }; /* elements of a vector */

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }

/* ---- tensors ---- */

/* [batch, head, position, element] as the engines read and write it: elements side by side, everything else at
 * multiples of their vectors. */
static int is_plain(const lw_build_t *b, const lw_tensor_t *t) {
  if (t->strides[3] != 1 || !gc_is_aligned_for_dnn(b, t)) return 0;
  for (int32_t d = 0; d < 3; d++)
    if (t->sizes[d] > 1 && (t->strides[d] <= 0 || t->strides[d] % WIDTH_STEP)) return 0;
  return t->sizes[2] == 1 || t->strides[2] >= t->sizes[3];
}

lw_tensor_t gc_plain_type(const lw_build_t *b, const lw_tensor_t *t) {
  lw_tensor_t plain = *t;
  if (!is_plain(b, t)) lw_make_contiguous(&plain);
  return plain;
}
aot_status_t gc_make_plain(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  if (!is_plain(b, t)) return lw_contiguous(b, t, out);
  *out = *t;
  return AOT_OK;
}
/* Where a join wants it, if the engines write there; NULL: anywhere. */
static const lw_tensor_t *place_of(const lw_build_t *b, uint32_t r) {
  const lw_tensor_t *place = lw_place_of(b, r);
  return place && is_plain(b, place) ? place : NULL;
}
lw_tensor_t gc_plain_result_type(const lw_build_t *b, uint32_t r) {
  const lw_tensor_t *place = place_of(b, r);
  if (place) return *place;
  lw_tensor_t t = *lw_type(b, r);
  lw_result_geometry(&t);
  return gc_plain_type(b, &t);
}
aot_status_t gc_make_plain_result(lw_build_t *b, uint32_t r, lw_tensor_t *out) {
  const lw_tensor_t *place = place_of(b, r);
  if (place) {
    *out = *place;
    lw_bind(b, r, out);
    return AOT_OK;
  }
  lw_tensor_t t = *lw_type(b, r);
  lw_result_geometry(&t);
  return is_plain(b, &t) ? lw_result(b, r, out) : lw_result_dense(b, r, out);
}

lw_tensor_t gc_rows_type(const lw_attention_t *a) {
  lw_tensor_t t = *a->q;
  t.dtype = AOT_F32;
  t.rank = 3;
  lw_make_contiguous(&t);
  return t;
}

/* Dimensions of one element step as if it lay without holes. */
static void set_strides(gc_attention_t *g, int what, const lw_tensor_t *t) {
  const int64_t position = t->sizes[2] > 1 ? t->strides[2] : t->sizes[3];
  const int64_t head = t->sizes[1] > 1 ? t->strides[1] : position * t->sizes[2];
  const int64_t batch = t->sizes[0] > 1 ? t->strides[0] : head * t->sizes[1];
  g->strides[what].batch = batch;
  g->strides[what].head = head;
  g->strides[what].position = position;
}

gc_attention_t gc_describe_attention(const lw_attention_t *a, const lw_tensor_t *tensors, uint32_t n) {
  gc_attention_t g = {
      .dtype = a->q->dtype,
      .n_batch = a->q->sizes[0],
      .n_head = a->q->sizes[1],
      .n_query = a->q->sizes[2],
      .n_key = a->k->sizes[2],
      .width = a->q->sizes[3],
      .width_v = a->v->sizes[3],
      .share = a->share,
      .scale = a->scale,
      .is_causal = a->is_causal,
  };
  for (uint32_t what = 0; what < n; what++)
    if (tensors[what].rank == 4) set_strides(&g, (int)what, &tensors[what]);
  if (a->keep) {
    g.keep_dtype = tensors[GC_ATT_KEEP].dtype;
    g.keep_scale = a->keep_scale;
  }
  if (!a->mask) return g;
  g.bias_dtype = tensors[GC_ATT_BIAS].dtype;
  memcpy(g.bias_sizes, tensors[GC_ATT_BIAS].sizes, sizeof g.bias_sizes);
  return g;
}

/* ---- what a forward keeps ---- */

static gc_kept_table_t *kept_of(const lw_build_t *b) {
  return gc_kept_of(b, &lowering(b)->attentions, &lowering(b)->attentions_in);
}
static uint64_t hash_of(const lw_attention_t *a) {
  return gc_kept_hash((const lw_tensor_t *const[]){a->q, a->k, a->v}, 3);
}

static uint32_t keep_value(const lw_build_t *b, const lw_attention_places_t *at) {
  return at->keep == LW_NONE ? LW_NONE : (uint32_t)lw_arg(b, at->keep)->i;
}

aot_status_t gc_keep_attention(lw_build_t *b, const lw_attention_places_t *at, const lw_attention_t *a,
                               const lw_tensor_t *o, const lw_tensor_t *stats, const lw_tensor_t *bits) {
  gc_kept_table_t *kept = kept_of(b);
  gc_kept_attention_t *k = kept ? lw_pool_alloc(b->pool, sizeof *k) : NULL;
  if (!k) return lw_no_memory(b->error, "for a step");
  *k = (gc_kept_attention_t){.kept.hash = hash_of(a),
                             .q = *a->q,
                             .k = *a->k,
                             .v = *a->v,
                             .o = *o,
                             .stats = *stats,
                             .keep = keep_value(b, at),
                             .scale = a->scale,
                             .is_causal = a->is_causal};
  if (a->mask) k->mask = *a->mask;
  if (bits) k->bits = *bits;
  return gc_keep(b, kept, &k->kept) == AOT_OK ? AOT_OK : lw_no_memory(b->error, "for a step");
}

static int is_same(const lw_tensor_t *a, const lw_tensor_t *b) {
  return a->storage == b->storage && lw_same_geometry(a, b);
}
static int is_same_or_none(const lw_tensor_t *kept, const lw_tensor_t *t) {
  return t ? kept->dtype && is_same(kept, t) : !kept->dtype;
}
/* A partition has the gradients draw again what the forward drew. */
static int keeps_the_same(const lw_build_t *b, uint32_t kept, uint32_t keep) {
  return kept == keep || (kept != LW_NONE && keep != LW_NONE && lw_is_same_chain(b, kept, keep));
}

const gc_kept_attention_t *gc_find_kept_attention(const lw_build_t *b, const lw_attention_places_t *at,
                                                  const lw_attention_t *a) {
  const gc_kept_table_t *kept = b->has_inplace_custom_kernels ? NULL : kept_of(b);
  for (gc_kept_t *item = kept ? gc_kept_first(kept, hash_of(a)) : NULL; item; item = gc_kept_before(item)) {
    const gc_kept_attention_t *k = (const gc_kept_attention_t *)item;
    if (is_same(&k->q, a->q) && is_same(&k->k, a->k) && is_same(&k->v, a->v) && k->scale == a->scale &&
        k->is_causal == a->is_causal && is_same_or_none(&k->mask, a->mask) &&
        keeps_the_same(b, k->keep, keep_value(b, at)))
      return k;
  }
  return NULL;
}
