/* torch_save.c - see torch_save.h. Layout: torch/serialization.py, _save and _load. */
#include "torch_save.h"
#include <string.h>

static aot_status_t find_storage(p2_env_t *e, const char *label, const p2_zip_t *zip, const p2_pv_t *tensor,
                                 p2_member_t **out) {
  aot_str_t key = tensor->storage->s, path;
  AOT_TRY(p2_join(e, p2_str("data/"), key, "", &path));
  *out = p2_zip_find(zip, path);
  if (*out) return AOT_OK;
  return p2_fail(e, "import-pt2.missing-member", "%s names the storage '%.*s', but holds no member '%.*s'", label,
                 P2_SHOW(key), P2_SHOW(path));
}

static aot_status_t check_byte_order(p2_env_t *e, const char *label, const p2_zip_t *zip) {
  p2_member_t *m = p2_zip_find(zip, p2_str("byteorder"));
  const uint8_t *bytes = NULL;
  if (!m) return AOT_OK;
  AOT_TRY(p2_zip_content(e, m, 1, &bytes));
  if (m->nbytes >= 6 && memcmp(bytes, "little", 6) == 0) return AOT_OK;
  return p2_fail(e, "import-pt2.byte-order",
                 "%s was written on a machine of another byte order, which is not supported", label);
}

aot_status_t p2_torch_load(p2_env_t *e, p2_member_t *m, p2_saved_tensor_t **out, uint32_t *out_n) {
  const uint8_t *bytes = NULL, *pickle = NULL;
  const char *label;
  aot_str_t name;
  p2_member_t *data;
  p2_pv_t *root = NULL;
  p2_zip_t zip;
  uint32_t i;
  *out_n = 0;
  *out = NULL;
  if (m->nbytes == 0) return AOT_OK; /* nothing was saved */
  AOT_TRY(p2_join(e, m->name, p2_str(""), "", &name));
  label = name.data;
  AOT_TRY(p2_zip_content(e, m, 1, &bytes));
  AOT_TRY(p2_zip_open(e, label, bytes, m->nbytes, m->method == 0 ? m->at : 0, &zip));
  for (i = 0; i < zip.n_members; i++) zip.members[i].is_checked = m->crc != 0; /* as a part of m */
  AOT_TRY(check_byte_order(e, label, &zip));
  data = p2_zip_find(&zip, p2_str("data.pkl"));
  if (!data)
    return p2_fail(e, "import-pt2.missing-member", "%s is no torch.save file: it has no member 'data.pkl'", label);
  AOT_TRY(p2_zip_content(e, data, 1, &pickle));
  AOT_TRY(p2_pickle_read(e, label, pickle, data->nbytes, &root));
  if (root->kind == P2_PV_TENSOR) {
    AOT_TRY(P2_NEW(e, P2_SCRATCH, 1, out));
    (*out)[0].tensor = root;
    *out_n = 1;
    return find_storage(e, label, &zip, root, &(*out)[0].storage);
  }
  if (root->kind != P2_PV_DICT) return p2_fail(e, "import-pt2.pickle", "%s holds no dict of tensors", label);
  AOT_TRY(P2_NEW(e, P2_SCRATCH, root->n / 2, out));
  for (i = 0; i + 1 < root->n; i += 2) {
    p2_saved_tensor_t *t = &(*out)[*out_n];
    if (root->items[i]->kind != P2_PV_STR || root->items[i + 1]->kind != P2_PV_TENSOR) continue; /* no tensor */
    t->name = root->items[i]->s;
    t->tensor = root->items[i + 1];
    AOT_TRY(find_storage(e, label, &zip, t->tensor, &t->storage));
    ++*out_n;
  }
  return AOT_OK;
}
