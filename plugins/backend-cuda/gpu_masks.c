#include "gpu_masks.h"

#include "mask_kernels.h"
#include "nvrtc_kernel.h"
#include <string.h>

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }

static aot_status_t add_kernel(lw_build_t *b, const gc_mask_kernel_t *kernel, const lw_tensor_t *const *tensors) {
  gc_own_kernel_t own = {.kind = "mask", .print = gc_print_mask, .self = kernel};
  own.writes = kernel->kind == GC_MASK_BIAS ? 6u : kernel->kind == GC_MASK_WEIGH ? 4u : 0;
  own.updates = kernel->kind == GC_MASK_HIDE ? 6u : 0;
  gc_mask_launch(kernel, &own.blocks, &own.threads);
  return gc_add_own_kernel(b, &own, tensors, GC_MASK_N_POINTERS);
}

/* ---- the bias ---- */

/* Dimension d of [batch, head, query, key]; those that the mask lacks are of size 1. */
static int64_t size_of(const lw_tensor_t *mask, int32_t d) {
  const int32_t at = d - (4 - mask->rank);
  return at < 0 ? 1 : mask->sizes[at];
}
static int64_t stride_of(const lw_tensor_t *mask, int32_t d) {
  return size_of(mask, d) == 1 ? 0 : mask->strides[d - (4 - mask->rank)];
}

/* Engines want queries and keys in full. In bfloat16 where the mask's numbers are bfloat16's. */
lw_tensor_t gc_bias_type(const lw_attention_t *a) {
  const int is_bf16 = a->q->dtype == AOT_BF16 && a->mask->dtype != AOT_F32;
  lw_tensor_t t = {.dtype = is_bf16 ? AOT_BF16 : AOT_F32, .rank = 4, .storage = LW_NONE};
  for (int32_t d = 0; d < 2; d++) t.sizes[d] = size_of(a->mask, d);
  t.sizes[2] = a->q->sizes[2];
  t.sizes[3] = a->k->sizes[2];
  lw_make_contiguous(&t);
  return t;
}

static const gc_mask_t *find_mask(const lw_build_t *b, const gc_kept_table_t *masks, const lw_tensor_t *mask,
                                  const lw_tensor_t *bias) {
  if (b->has_inplace_custom_kernels)
    return NULL; /* plugins' kernels may write into what nothing seems to read any more */
  for (gc_kept_t *k = gc_kept_first(masks, gc_kept_hash(&mask, 1)); k; k = gc_kept_before(k)) {
    const gc_mask_t *m = (const gc_mask_t *)k;
    if (m->of.storage == mask->storage && lw_same_geometry(&m->of, mask) && m->bias.dtype == bias->dtype &&
        lw_same_sizes(&m->bias, bias))
      return m;
  }
  return NULL;
}

aot_status_t gc_make_mask(lw_build_t *b, const lw_attention_t *a, const gc_mask_t **out) {
  lw_tensor_t bias = gc_bias_type(a);
  gc_kept_table_t *masks = gc_kept_of(b, &lowering(b)->masks, &lowering(b)->masks_in);
  if (!masks) return lw_no_memory(b->error, "for a step");
  *out = find_mask(b, masks, a->mask, &bias);
  if (*out) return AOT_OK;
  gc_mask_kernel_t kernel = {.kind = GC_MASK_BIAS, .dtype = a->mask->dtype, .bias_dtype = bias.dtype};
  lw_tensor_t weights = bias;
  weights.dtype = AOT_F32;
  weights.rank = 3;
  lw_make_contiguous(&weights);
  gc_mask_t *m = lw_pool_alloc(b->pool, sizeof *m);
  if (!m) return lw_no_memory(b->error, "for a step");
  AOT_TRY(lw_new_tensor(b, &bias));
  AOT_TRY(lw_new_tensor(b, &weights));
  memcpy(kernel.sizes, bias.sizes, sizeof kernel.sizes);
  for (int32_t d = 0; d < 4; d++) kernel.strides[d] = stride_of(a->mask, d);
  AOT_TRY(add_kernel(b, &kernel, (const lw_tensor_t *const[]){a->mask, &bias, &weights}));
  *m = (gc_mask_t){.kept.hash = gc_kept_hash(&a->mask, 1), .of = *a->mask, .bias = bias, .weights = weights};
  *out = m;
  return gc_keep(b, masks, &m->kept) == AOT_OK ? AOT_OK : lw_no_memory(b->error, "for a step");
}

/* ---- rows ---- */

static gc_mask_kernel_t rows_kernel(int32_t kind, const gc_mask_t *m, const lw_tensor_t *t) {
  gc_mask_kernel_t kernel = {
      .kind = kind, .dtype = t->dtype, .of_batch = m->bias.sizes[0], .of_head = m->bias.sizes[1]};
  memcpy(kernel.sizes, t->sizes, sizeof kernel.sizes);
  memcpy(kernel.strides, t->strides, sizeof kernel.strides);
  return kernel;
}

aot_status_t gc_hide_rows(lw_build_t *b, const gc_mask_t *m, const lw_tensor_t *o, const lw_tensor_t *stats) {
  const gc_mask_kernel_t kernel = rows_kernel(GC_MASK_HIDE, m, o);
  return add_kernel(b, &kernel, (const lw_tensor_t *const[]){&m->weights, o, stats});
}

aot_status_t gc_weigh_rows(lw_build_t *b, const gc_mask_t *m, const lw_tensor_t *go, lw_tensor_t *out) {
  const lw_tensor_t from = *go;
  *out = from;
  lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out));
  const gc_mask_kernel_t kernel = rows_kernel(GC_MASK_WEIGH, m, &from);
  return add_kernel(b, &kernel, (const lw_tensor_t *const[]){&m->weights, &from, out});
}
