/* archive_weights.c - see archive_weights.h.
 *
 * A payload is the raw bytes of a whole storage; the tensor is a strided view of it. Stored members stay in the mapped
 * file; they are measured and read once, against their checksum. */
#include "archive_weights.h"
#include "checksums.h"
#include "torch_save.h"
#include <aot/inline.h>
#include <string.h>

#define BAD_WEIGHT "import-pt2.bad-weight"

const char *p2_dtype_name(int64_t number) {
  /* clang-format off */
  static const struct { int64_t number; const char *name; } unsupported[] = {
      {9, "complex32"},        {29, "float8_e4m3fn"},  {30, "float8_e5m2"},
      {31, "float8_e4m3fnuz"}, {32, "float8_e5m2fnuz"}, {33, "float8_e8m0fnu"}};
  /* clang-format on */
  size_t i;
  for (i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
    if (unsupported[i].number == number) return unsupported[i].name;
  return number > 0 && number < 256 ? aot_dtype_name((int32_t)number) : "?";
}

/* ---- one tensor ---- */

/* The index of the last element, -1 for an empty tensor; fails on negative numbers and overflow. */
static aot_status_t last_element(p2_env_t *e, const p2_weight_t *w, int64_t *out) {
  int64_t last = w->offset, step;
  uint32_t i;
  for (i = 0; i < w->rank; i++)
    if (w->sizes[i] < 0 || w->strides[i] < 0 || w->offset < 0)
      return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has a negative size, stride or offset", P2_SHOW(w->fqn));
  if (w->offset < 0) return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has a negative offset", P2_SHOW(w->fqn));
  for (i = 0; i < w->rank; i++)
    if (w->sizes[i] == 0) return *out = -1, AOT_OK;
  for (i = 0; i < w->rank; i++)
    if (__builtin_mul_overflow(w->sizes[i] - 1, w->strides[i], &step) || __builtin_add_overflow(last, step, &last))
      return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' is larger than memory can be", P2_SHOW(w->fqn));
  *out = last;
  return AOT_OK;
}

/* Sizes, dtype and extent against the storage; then the data, aligned. */
static aot_status_t bind_storage(p2_env_t *e, p2_weight_t *w, p2_member_t *m) {
  uint64_t itemsize = aot_dtype_size(w->dtype);
  int64_t last = 0;
  if (!itemsize)
    return p2_fail(e, "import-pt2.dtype", "tensor '%.*s' has the dtype %s (%d), which is not supported",
                   P2_SHOW(w->fqn), p2_dtype_name(w->dtype), (int)w->dtype);
  if (w->rank > AOT_MAX_RANK)
    return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has %u dimensions; at most %d are supported", P2_SHOW(w->fqn), w->rank,
                   AOT_MAX_RANK);
  AOT_TRY(last_element(e, w, &last));
  w->storage = m;
  w->nbytes = m->nbytes;
  if (m->nbytes == 0) return AOT_OK; /* saved without contents: zeros */
  if (m->nbytes % itemsize) {
    p2_fail(e, BAD_WEIGHT, "member '%.*s' holds %llu bytes, which is no whole number of %s elements ('%.*s')",
            P2_SHOW(m->name), (unsigned long long)m->nbytes, aot_dtype_name(w->dtype), P2_SHOW(w->fqn));
    p2_byte(e, m->at);
    return AOT_E_INVALID;
  }
  if (last >= 0 && (uint64_t)last >= m->nbytes / itemsize) {
    p2_fail(e, BAD_WEIGHT, "member '%.*s' is too short: tensor '%.*s' needs %llu %s elements, the member holds %llu",
            P2_SHOW(m->name), P2_SHOW(w->fqn), (unsigned long long)last + 1, aot_dtype_name(w->dtype),
            (unsigned long long)(m->nbytes / itemsize));
    p2_byte(e, m->at);
    return AOT_E_INVALID;
  }
  const aot_status_t status = p2_zip_content(e, m, itemsize, &w->data);
  if (status != AOT_OK) p2_add(e, "; it holds the tensor '%.*s'", P2_SHOW(w->fqn));
  return status;
}

static aot_status_t add(p2_env_t *e, p2_weights_t *all, aot_str_t fqn, p2_weight_t **out) {
  aot_status_t status;
  AOT_TRY(p2_grow(e, (void **)&all->items, all->n, &all->capacity, sizeof *all->items));
  status = p2_names_add(e, &all->index, fqn, all->n, NULL);
  if (status == AOT_E_EXISTS)
    return p2_fail(e, BAD_WEIGHT, "the archive carries two tensors named '%.*s'", P2_SHOW(fqn));
  AOT_TRY(status);
  *out = &all->items[all->n++];
  memset(*out, 0, sizeof **out);
  (*out)->fqn = fqn;
  return AOT_OK;
}

/* ---- torch.save files: the older layouts, and payloads marked use_pickle ---- */

static aot_status_t from_saved(p2_env_t *e, const p2_saved_tensor_t *t, p2_weight_t *w) {
  w->dtype = t->tensor->dtype;
  w->rank = t->tensor->rank;
  w->sizes = t->tensor->sizes;
  w->strides = t->tensor->strides;
  w->offset = t->tensor->i;
  w->requires_grad = -1; /* a state dict has its tensors detached */
  return bind_storage(e, w, t->storage);
}

static aot_status_t load_file(p2_env_t *e, p2_member_t *m, p2_weights_t *out) {
  p2_saved_tensor_t *tensors = NULL;
  p2_weight_t *w = NULL;
  uint32_t n = 0, i;
  p2_member_t **storages;
  AOT_TRY(p2_torch_load(e, m, &tensors, &n));
  AOT_TRY(P2_NEW(e, P2_SCRATCH, n, &storages));
  for (i = 0; i < n; i++) storages[i] = tensors[i].storage;
  p2_checksums_ahead(storages, n);
  for (i = 0; i < n; i++) {
    AOT_TRY(add(e, out, tensors[i].name, &w));
    AOT_TRY(from_saved(e, &tensors[i], w));
  }
  return AOT_OK;
}

/* ---- payload configs ---- */

static aot_status_t find_payload(p2_env_t *e, const p2_zip_t *zip, aot_str_t folder, const p2_payload_t *p,
                                 p2_member_t **out) {
  aot_str_t path;
  AOT_TRY(p2_join(e, folder, p->path_name, "", &path));
  *out = p2_zip_find(zip, path);
  if (*out) return AOT_OK;
  p2_fail(e, "import-pt2.missing-member", "the weight file '%.*s' of '%.*s' is not in the archive", P2_SHOW(path),
          P2_SHOW(p->fqn));
  p2_hint(e, "the archive was taken apart or cut short: export the model again");
  return AOT_E_INVALID;
}

static aot_status_t constant_dims(p2_env_t *e, const p2_payload_t *p, const p2_dim_t *dims, const int64_t **out) {
  int64_t *list;
  uint32_t i;
  AOT_TRY(P2_NEW(e, P2_SCRATCH, p->meta.rank, &list));
  for (i = 0; i < p->meta.rank; i++) {
    if (dims[i].text.size) return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has a symbolic size", P2_SHOW(p->fqn));
    list[i] = dims[i].value;
  }
  *out = list;
  return AOT_OK;
}

static aot_status_t from_payload(p2_env_t *e, const p2_payload_t *p, p2_member_t *m, p2_weight_t *w) {
  const p2_meta_t *meta = &p->meta;
  if (meta->layout != AOT_LAYOUT_STRIDED)
    return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has layout %lld; only strided tensors are supported", P2_SHOW(p->fqn),
                   (long long)meta->layout);
  w->dtype = meta->dtype > 0 && meta->dtype < 256 ? (int32_t)meta->dtype : 0;
  w->rank = meta->rank;
  w->requires_grad = meta->requires_grad;
  if (meta->offset.text.size) return p2_fail(e, BAD_WEIGHT, "tensor '%.*s' has a symbolic offset", P2_SHOW(p->fqn));
  w->offset = meta->offset.value;
  AOT_TRY(constant_dims(e, p, meta->sizes, &w->sizes));
  AOT_TRY(constant_dims(e, p, meta->strides, &w->strides));
  return bind_storage(e, w, m);
}

/* The members that hold the payloads, all compared with their checksums. One that is missing is reported when its turn
 * comes. */
static aot_status_t check_payloads(p2_env_t *e, const p2_zip_t *zip, aot_str_t folder, const p2_payload_t *payloads,
                                   uint32_t n) {
  p2_member_t **members;
  uint32_t n_members = 0;
  AOT_TRY(P2_NEW(e, P2_SCRATCH, n, &members));
  for (uint32_t i = 0; i < n; i++) {
    aot_str_t path;
    if (!payloads[i].has_meta) continue;
    AOT_TRY(p2_join(e, folder, payloads[i].path_name, "", &path));
    members[n_members] = p2_zip_find(zip, path);
    if (members[n_members]) n_members++;
  }
  p2_checksums_ahead(members, n_members);
  return AOT_OK;
}

static aot_status_t load_config(p2_env_t *e, const p2_zip_t *zip, p2_member_t *config, aot_str_t folder, p2_doc_t *doc,
                                p2_weights_t *out) {
  p2_payload_t *payloads = NULL;
  uint32_t n = 0, i;
  AOT_TRY(p2_json_open(e, config, doc));
  AOT_TRY(p2_decode_payloads(e, doc, &payloads, &n));
  AOT_TRY(check_payloads(e, zip, folder, payloads, n));
  for (i = 0; i < n; i++) {
    const p2_payload_t *p = &payloads[i];
    p2_member_t *m = NULL;
    p2_weight_t *w = NULL;
    aot_str_t name;
    AOT_TRY(p2_join(e, p->fqn, p2_str(""), "", &name)); /* outlives the JSON tree */
    AOT_TRY(add(e, out, name, &w));
    if (!p->has_meta) continue; /* a custom object: an error where the signature requests it */
    AOT_TRY(find_payload(e, zip, folder, p, &m));
    if (p->use_pickle) {
      p2_saved_tensor_t *tensor = NULL;
      uint32_t n_tensors = 0;
      AOT_TRY(p2_torch_load(e, m, &tensor, &n_tensors));
      if (n_tensors != 1 || tensor->name.size)
        return p2_fail(e, BAD_WEIGHT, "the pickled payload of '%.*s' is no single tensor", P2_SHOW(p->fqn));
      AOT_TRY(from_saved(e, tensor, w));
    } else {
      AOT_TRY(from_payload(e, p, m, w));
    }
  }
  return AOT_OK;
}

static aot_status_t load_part(p2_env_t *e, const p2_zip_t *zip, p2_member_t *config, p2_member_t *file,
                              aot_str_t folder, p2_weights_t *out) {
  p2_doc_t doc;
  aot_status_t status;
  memset(&doc, 0, sizeof doc);
  if (!config) return file ? load_file(e, file, out) : AOT_OK;
  status = load_config(e, zip, config, folder, &doc, out);
  p2_json_close(&doc);
  return status;
}

aot_status_t p2_weights_load(p2_env_t *e, const p2_zip_t *zip, const p2_layout_t *layout, p2_weights_t *out) {
  memset(out, 0, sizeof *out);
  AOT_TRY(load_part(e, zip, layout->weights_config, layout->weights_file, layout->weights_folder, out));
  return load_part(e, zip, layout->constants_config, layout->constants_file, layout->constants_folder, out);
}

const p2_weight_t *p2_weights_find(const p2_weights_t *w, aot_str_t fqn) {
  uint32_t i = p2_names_find(&w->index, fqn);
  return i == P2_NO_ENTRY ? NULL : &w->items[i];
}

int p2_weight_same(const p2_weight_t *a, const p2_weight_t *b) {
  size_t bytes = a->rank * sizeof *a->sizes;
  return a->storage && a->storage == b->storage && a->dtype == b->dtype && a->rank == b->rank &&
         a->offset == b->offset && memcmp(a->sizes, b->sizes, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}
