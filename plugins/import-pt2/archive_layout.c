/* archive_layout.c - see archive_layout.h.
 *
 *   PyTorch 2.8 and later:  archive_format "pt2"; models/M.json; data/weights/M_weights_config.json and weight_I (or,
 *                           in the
 *                           first releases, data/weights/M.pt); the same under data/constants
 *   2.1 to 2.7:             serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt
 * Writers: torch/export/pt2_archive/_package.py; torch/export/__init__.py, save. */
#include "archive_layout.h"
#include <stdio.h>
#include <string.h>

#define FLAT_MODEL "serialized_exported_program.json"

int32_t p2_layout_score(const p2_zip_t *zip) {
  if (p2_zip_find(zip, p2_str("archive_format")) || p2_zip_find(zip, p2_str(FLAT_MODEL))) return 100;
  return p2_zip_find(zip, p2_str("data.pkl")) ? 20 : 5;
}

/* PREFIX MODEL SUFFIX; *out NULL when it is not there. */
static aot_status_t find_part(p2_env_t *e, const p2_zip_t *zip, const char *prefix, aot_str_t model, const char *suffix,
                              p2_member_t **out) {
  aot_str_t path;
  AOT_TRY(p2_join(e, p2_str(prefix), model, suffix, &path));
  *out = p2_zip_find(zip, path);
  return AOT_OK;
}

/* The text of a small member without the white space at its end. */
static aot_status_t small_text(p2_env_t *e, p2_member_t *m, aot_str_t *out) {
  const uint8_t *bytes = NULL;
  AOT_TRY(p2_zip_content(e, m, 1, &bytes));
  out->data = (const char *)bytes;
  out->size = m->nbytes;
  while (out->size && strchr(" \r\n", out->data[out->size - 1])) out->size--;
  return AOT_OK;
}

static aot_status_t check_text(p2_env_t *e, const p2_zip_t *zip, const char *name, const char *wanted,
                               const char *what) {
  p2_member_t *m = p2_zip_find(zip, p2_str(name));
  aot_str_t text = {NULL, 0};
  if (!m) return AOT_OK;
  AOT_TRY(small_text(e, m, &text));
  if (p2_str_is(text, wanted)) return AOT_OK;
  p2_fail(e, "import-pt2.archive-version", "%s is '%.*s'; only '%s' is read", what, P2_SHOW(text), wanted);
  p2_byte(e, m->at);
  return AOT_E_INVALID;
}

/* The name of the model among models/NAME.json: the one requested, the only one, or "model". */
static aot_status_t choose_model(p2_env_t *e, const p2_zip_t *zip, aot_str_t wanted, aot_str_t *out) {
  char names[300] = "";
  uint32_t i, n = 0, used = 0;
  for (i = 0; i < zip->n_members; i++) {
    aot_str_t name = zip->members[i].name;
    int k;
    if (!p2_str_starts(name, "models/") || !p2_str_ends(name, ".json")) continue;
    name.data += 7;
    name.size -= 12;
    if (n == 0 || p2_str_is(name, "model")) *out = name;
    k = snprintf(names + used, sizeof names - used, "%s%.*s", n ? ", " : "", P2_SHOW(name));
    used = k > 0 && used + (uint32_t)k < sizeof names ? used + (uint32_t)k : (uint32_t)sizeof names - 1;
    n++;
    if (wanted.size && wanted.size == name.size && memcmp(wanted.data, name.data, (size_t)name.size) == 0) {
      *out = name;
      return AOT_OK;
    }
  }
  if (!wanted.size && (n == 1 || (n > 1 && p2_str_is(*out, "model")))) return AOT_OK;
  if (n == 0) return p2_fail(e, "import-pt2.missing-member", "the archive has no member 'models/NAME.json'");
  if (wanted.size) p2_fail(e, "import-pt2.no-such-model", "the archive holds no model '%.*s'", P2_SHOW(wanted));
  else p2_fail(e, "import-pt2.no-such-model", "the archive holds %u models and none is named 'model'", n);
  p2_hint(e, "choose one, 'model: {import: pt2, with: {model: NAME}}': %s", names);
  return AOT_E_INVALID;
}

static aot_status_t pt2_layout(p2_env_t *e, const p2_zip_t *zip, aot_str_t wanted, p2_layout_t *out) {
  aot_str_t model = {NULL, 0};
  AOT_TRY(check_text(e, zip, "archive_format", "pt2", "the archive's format"));
  AOT_TRY(check_text(e, zip, "archive_version", "0", "the archive's version"));
  AOT_TRY(check_text(e, zip, "byteorder", "little", "the byte order of the archive"));
  AOT_TRY(choose_model(e, zip, wanted, &model));
  AOT_TRY(find_part(e, zip, "models/", model, ".json", &out->model));
  AOT_TRY(find_part(e, zip, "data/weights/", model, "_weights_config.json", &out->weights_config));
  AOT_TRY(find_part(e, zip, "data/weights/", model, ".pt", &out->weights_file));
  AOT_TRY(find_part(e, zip, "data/constants/", model, "_constants_config.json", &out->constants_config));
  AOT_TRY(find_part(e, zip, "data/constants/", model, ".pt", &out->constants_file));
  out->weights_folder = p2_str("data/weights/");
  out->constants_folder = p2_str("data/constants/");
  return AOT_OK;
}

/* In the oldest files the .pt members are named .json, though their content is the same. */
static p2_member_t *flat_file(const p2_zip_t *zip, const char *pt, const char *json) {
  p2_member_t *m = p2_zip_find(zip, p2_str(pt));
  return m ? m : p2_zip_find(zip, p2_str(json));
}

aot_status_t p2_layout_find(p2_env_t *e, const p2_zip_t *zip, aot_str_t model, p2_layout_t *out) {
  memset(out, 0, sizeof *out);
  if (p2_zip_find(zip, p2_str("archive_format"))) return pt2_layout(e, zip, model, out);
  out->model = p2_zip_find(zip, p2_str(FLAT_MODEL));
  if (out->model) {
    out->weights_file = flat_file(zip, "serialized_state_dict.pt", "serialized_state_dict.json");
    out->constants_file = flat_file(zip, "serialized_constants.pt", "serialized_constants.json");
    return AOT_OK;
  }
  if (p2_zip_find(zip, p2_str("data.pkl"))) {
    p2_fail(e, "import-pt2.torch-save",
            "torch.save file (tensors or a pickled module), not an exported program; use torch.export.save");
    p2_hint(e, "export the module: torch.export.save(torch.export.export(module, args), 'model.pt2')");
    return AOT_E_INVALID;
  }
  p2_fail(e, "import-pt2.not-an-archive",
          "this ZIP is no PyTorch export archive: neither 'archive_format' nor '%s' is in it", FLAT_MODEL);
  p2_hint(e, "a model file is what torch.export.save writes");
  return AOT_E_INVALID;
}
