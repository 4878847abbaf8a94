/* aothost_dlpack.h: aot_tensor_t and DLTensor describe the same thing. */
#include <include/aothost_dlpack.h>

#include <aot/inline.h>
#include <step/api_handle.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>

static const struct pair {
  int32_t dtype;
  DLDataType dl;
} pairs[] = {
    {AOT_BOOL, {kDLBool, 8, 1}},  {AOT_U8, {kDLUInt, 8, 1}},      {AOT_U16, {kDLUInt, 16, 1}},
    {AOT_U32, {kDLUInt, 32, 1}},  {AOT_U64, {kDLUInt, 64, 1}},    {AOT_I8, {kDLInt, 8, 1}},
    {AOT_I16, {kDLInt, 16, 1}},   {AOT_I32, {kDLInt, 32, 1}},     {AOT_I64, {kDLInt, 64, 1}},
    {AOT_F16, {kDLFloat, 16, 1}}, {AOT_BF16, {kDLBfloat, 16, 1}}, {AOT_F32, {kDLFloat, 32, 1}},
    {AOT_F64, {kDLFloat, 64, 1}}, {AOT_C64, {kDLComplex, 64, 1}}, {AOT_C128, {kDLComplex, 128, 1}},
};
#define N_PAIRS (sizeof pairs / sizeof pairs[0])

/* 0: none. */
static int32_t dtype_of(DLDataType dl) {
  for (size_t i = 0; i < N_PAIRS; i++)
    if (pairs[i].dl.code == dl.code && pairs[i].dl.bits == dl.bits && pairs[i].dl.lanes == dl.lanes)
      return pairs[i].dtype;
  return 0;
}

/* ---- in ---- */

static aot_status_t not_taken(aothost_t *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static aot_status_t not_taken(aothost_t *h, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.dlpack", "a DLPack tensor cannot be taken: %s", text);
  return aoth_api_tell(h, AOT_E_UNIMPLEMENTED);
}

aot_status_t aothost_from_dlpack(aothost_t *h, const DLManagedTensorVersioned *m, aot_tensor_t *out) {
  const DLTensor *t = &m->dl_tensor;
  aoth_tensor_t tensor;
  memset(out, 0, sizeof *out);
  if (m->version.major != DLPACK_MAJOR_VERSION)
    return not_taken(h, "it is of version %u, and version %d is known", m->version.major, DLPACK_MAJOR_VERSION);
  if (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost)
    return not_taken(h, "it is on a device of type %d, not on the CPU", (int)t->device.device_type);
  if (!dtype_of(t->dtype))
    return not_taken(h, "type code %u of %u bits and %u lanes is no dtype of programs", t->dtype.code, t->dtype.bits,
                     t->dtype.lanes);
  *out = (aot_tensor_t){
      .data = t->data ? (char *)t->data + t->byte_offset : NULL,
      .nbytes = UINT64_MAX,
      .dtype = dtype_of(t->dtype),
      .rank = t->ndim,
      .sizes = t->shape,
      .strides = t->strides,
  };
  if (aoth_tensor_from(out, &tensor) && aoth_tensor_extent(&tensor, &out->nbytes) && (!out->nbytes || out->data))
    return AOT_OK;
  memset(out, 0, sizeof *out);
  return not_taken(h, "it has %d dimensions, a negative size or stride, or no data; at most %d dimensions are taken",
                   t->ndim, AOT_MAX_RANK);
}

/* ---- out ---- */

typedef struct exported {
  DLManagedTensorVersioned managed;
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
  void *copy;   /* a result's */
  aothost_t *h; /* whose leaf it looks at */
} exported_t;

static void delete_exported(DLManagedTensorVersioned *m) {
  exported_t *e = m->manager_ctx;
  if (e->h) aoth_api_release(e->h);
  free(e->copy);
  free(e);
}

static exported_t *export_geometry(const aoth_tensor_t *t) {
  exported_t *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  memcpy(e->sizes, t->sizes, sizeof e->sizes);
  memcpy(e->strides, t->strides, sizeof e->strides);
  e->managed.version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  e->managed.manager_ctx = e;
  e->managed.deleter = delete_exported;
  e->managed.dl_tensor = (DLTensor){
      .device = {kDLCPU, 0},
      .ndim = t->rank,
      .shape = e->sizes,
      .strides = e->strides,
      .byte_offset = (uint64_t)t->offset * aot_dtype_size(t->dtype),
  };
  for (size_t i = 0; i < N_PAIRS; i++)
    if (pairs[i].dtype == t->dtype) e->managed.dl_tensor.dtype = pairs[i].dl;
  return e;
}

/* Contiguous, in memory of its own. */
static exported_t *export_copy(const aoth_tensor_t *from) {
  aoth_tensor_t to = *from;
  aoth_tensor_contiguous(&to);
  to.nbytes = (uint64_t)aoth_tensor_numel(from) * aot_dtype_size(from->dtype);
  exported_t *e = export_geometry(&to);
  if (!e) return NULL;
  if (posix_memalign(&e->copy, AOTH_ALIGN, (size_t)to.nbytes + 1) != 0) {
    free(e);
    return NULL;
  }
  to.data = e->managed.dl_tensor.data = e->copy;
  e->managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  aoth_tensor_copy(&to, from);
  return e;
}

static exported_t *export_leaf(aothost_t *h, const aoth_tensor_t *leaf) {
  exported_t *e = export_geometry(leaf);
  if (!e) return NULL;
  e->managed.dl_tensor.data = leaf->data;
  e->h = h;
  aoth_api_hold(h);
  return e;
}

aot_status_t aothost_call_to_dlpack(aothost_call_t *c, const char *key, DLManagedTensorVersioned **out) {
  aot_tensor_t view;
  aoth_tensor_t t;
  *out = NULL;
  AOT_TRY(aothost_call_get(c, key, &view));
  if (!aoth_tensor_from(&view, &t)) return AOT_E_INVALID;
  if (t.memory || t.encoding)
    return aoth_api_refuse(c->h, AOT_E_UNIMPLEMENTED, "DLPack has no word for how this tensor's elements lie");
  exported_t *e = aoth_step_export_leaf(c->h->step, key, &t) ? export_leaf(c->h, &t) : export_copy(&t);
  if (!e) return aoth_api_refuse(c->h, AOT_E_EXHAUSTED, "no memory to export a tensor");
  *out = &e->managed;
  return AOT_OK;
}

aot_status_t aothost_to_dlpack(aothost_t *h, const char *key, DLManagedTensorVersioned **out) {
  *out = NULL;
  return h->step ? aothost_call_to_dlpack(&h->first, key, out) : AOT_E_NOT_FOUND;
}

/* ---- the older form ---- */

static void delete_upgraded(DLManagedTensorVersioned *m) {
  DLManagedTensor *older = m->manager_ctx;
  if (older->deleter) older->deleter(older);
  free(m);
}

aot_status_t aothost_dlpack_upgrade(DLManagedTensor *m, DLManagedTensorVersioned **out) {
  *out = calloc(1, sizeof **out);
  if (!*out) return AOT_E_EXHAUSTED;
  **out = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, 0}, /* strides may be NULL, as before 1.2 */
      .manager_ctx = m,
      .deleter = delete_upgraded,
      .dl_tensor = m->dl_tensor,
  };
  return AOT_OK;
}

static void delete_downgraded(DLManagedTensor *m) {
  DLManagedTensorVersioned *newer = m->manager_ctx;
  if (newer->deleter) newer->deleter(newer);
  free(m);
}

aot_status_t aothost_dlpack_downgrade(DLManagedTensorVersioned *m, DLManagedTensor **out) {
  *out = NULL;
  if (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) return AOT_E_INVALID;
  *out = calloc(1, sizeof **out);
  if (!*out) return AOT_E_EXHAUSTED;
  **out = (DLManagedTensor){.dl_tensor = m->dl_tensor, .manager_ctx = m, .deleter = delete_downgraded};
  return AOT_OK;
}
