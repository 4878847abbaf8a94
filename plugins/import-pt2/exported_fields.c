/* exported_fields.c - typed fields, dimensions, tensor descriptions. See exported_fields.h. */
#include "exported_fields.h"
#include <math.h>
#include <string.h>

#define BAD_FIELD "import-pt2.bad-field"

p2_at_t p2_at_key(const p2_at_t *up, const char *key) {
  p2_at_t at = {up, key, 0};
  return at;
}

p2_at_t p2_at_index(const p2_at_t *up, uint32_t index) {
  p2_at_t at = {up, NULL, index};
  return at;
}

aot_status_t p2_at_keep(p2_env_t *e, const p2_at_t *at, const p2_at_t **out) {
  const p2_at_t **link = out;
  for (; at; at = at->up) {
    p2_at_t *copy;
    AOT_TRY(P2_NEW(e, P2_SCRATCH, 1, &copy));
    *copy = *at;
    *link = copy;
    link = &copy->up;
  }
  *link = NULL;
  return AOT_OK;
}

static const char *kind_of(const json_t *j) {
  if (!j) return "missing";
  switch (json_typeof(j)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "a boolean";
  }
}

static aot_status_t not_a(p2_decoder_t *d, const p2_at_t *at, const char *wanted, const json_t *j) {
  return p2_bad(d->e, d->doc, at, BAD_FIELD, "%s is expected here, this is %s", wanted, kind_of(j));
}

aot_status_t p2_want_object(p2_decoder_t *d, const p2_at_t *at, json_t *j) {
  return json_is_object(j) ? AOT_OK : not_a(d, at, "an object", j);
}

aot_status_t p2_want_array(p2_decoder_t *d, const p2_at_t *at, json_t *j, uint32_t *out_n) {
  if (!json_is_array(j)) return not_a(d, at, "a list", j);
  if (json_array_size(j) >= UINT32_MAX / 4) return p2_bad(d->e, d->doc, at, BAD_FIELD, "the list is too long");
  *out_n = (uint32_t)json_array_size(j);
  return AOT_OK;
}

aot_status_t p2_want_string(p2_decoder_t *d, const p2_at_t *at, json_t *j, aot_str_t *out) {
  if (!json_is_string(j)) return not_a(d, at, "a string", j);
  out->data = json_string_value(j);
  out->size = json_string_length(j);
  return AOT_OK;
}

aot_status_t p2_want_int(p2_decoder_t *d, const p2_at_t *at, json_t *j, int64_t *out) {
  if (!json_is_integer(j)) return not_a(d, at, "an integer", j);
  *out = (int64_t)json_integer_value(j);
  return AOT_OK;
}

aot_status_t p2_want_bool(p2_decoder_t *d, const p2_at_t *at, json_t *j, int64_t *out) {
  if (!json_is_boolean(j)) return not_a(d, at, "true or false", j);
  *out = json_is_true(j);
  return AOT_OK;
}

aot_status_t p2_want_float(p2_decoder_t *d, const p2_at_t *at, json_t *j, double *out) {
  /* clang-format off */
  static const struct { const char *text; double value; } words[] = {
      {"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}, {"N",
          NAN}};
  /* clang-format on */
  size_t i;
  if (json_is_number(j)) {
    *out = json_number_value(j);
    return AOT_OK;
  }
  for (i = 0; json_is_string(j) && i < sizeof words / sizeof *words; i++)
    if (strcmp(json_string_value(j), words[i].text) == 0) {
      *out = words[i].value;
      return AOT_OK;
    }
  return not_a(d, at, "a number", j);
}

aot_status_t p2_field(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, json_t **out) {
  AOT_TRY(p2_want_object(d, at, object));
  *out = json_object_get(object, key);
  if (*out && !json_is_null(*out)) return AOT_OK;
  return p2_bad(d->e, d->doc, at, BAD_FIELD, "the field '%s' is missing", key);
}

aot_status_t p2_field_string(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, aot_str_t *out) {
  p2_at_t here = p2_at_key(at, key);
  json_t *j;
  AOT_TRY(p2_field(d, at, object, key, &j));
  return p2_want_string(d, &here, j, out);
}

aot_status_t p2_field_int(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int64_t *out) {
  p2_at_t here = p2_at_key(at, key);
  json_t *j;
  AOT_TRY(p2_field(d, at, object, key, &j));
  return p2_want_int(d, &here, j, out);
}

static json_t *present(json_t *object, const char *key) {
  json_t *j = json_object_get(object, key);
  return j && !json_is_null(j) ? j : NULL;
}

aot_status_t p2_maybe_string(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, aot_str_t *out) {
  p2_at_t here = p2_at_key(at, key);
  json_t *j = present(object, key);
  return j ? p2_want_string(d, &here, j, out) : AOT_OK;
}

aot_status_t p2_maybe_int(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int64_t *out) {
  p2_at_t here = p2_at_key(at, key);
  json_t *j = present(object, key);
  return j ? p2_want_int(d, &here, j, out) : AOT_OK;
}

aot_status_t p2_maybe_bool(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int32_t *out) {
  p2_at_t here = p2_at_key(at, key);
  json_t *j = present(object, key);
  int64_t value = 0;
  if (!j) return AOT_OK;
  AOT_TRY(p2_want_bool(d, &here, j, &value));
  *out = (int32_t)value;
  return AOT_OK;
}

aot_status_t p2_union(p2_decoder_t *d, const p2_at_t *at, json_t *j, const char **out_key, json_t **out_value) {
  void *it;
  AOT_TRY(p2_want_object(d, at, j));
  if (json_object_size(j) != 1)
    return p2_bad(d->e, d->doc, at, BAD_FIELD, "a union has exactly one key, this one has %zu", json_object_size(j));
  it = json_object_iter(j);
  *out_key = json_object_iter_key(it);
  *out_value = json_object_iter_value(it);
  return AOT_OK;
}

aot_status_t p2_unknown_key(p2_decoder_t *d, const p2_at_t *at, const char *union_name, const char *key) {
  p2_bad(d->e, d->doc, at, "import-pt2.unknown-key", "'%s' is no kind of %s that this importer knows", key, union_name);
  p2_hint(d->e, "the archive uses a feature of another PyTorch version; schema 5.x and 8.x are read");
  return AOT_E_INVALID;
}

/* ---- dimensions and tensor descriptions ---- */

/* {"as_int": n}, or {"as_expr": {"expr_str": text, "hint": {"as_int": n}}}. */
aot_status_t p2_decode_dim(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_dim_t *out) {
  const char *key = NULL;
  json_t *value = NULL, *hint;
  p2_at_t here;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_union(d, at, j, &key, &value));
  here = p2_at_key(at, key);
  if (strcmp(key, "as_int") == 0) return p2_want_int(d, &here, value, &out->value);
  if (strcmp(key, "as_bool") == 0) return p2_want_bool(d, &here, value, &out->value);
  if (strcmp(key, "as_expr") != 0) return p2_unknown_key(d, at, "SymInt", key);
  if (json_is_string(value)) return p2_want_string(d, &here, value, &out->text);
  AOT_TRY(p2_field_string(d, &here, value, "expr_str", &out->text));
  if (out->text.size == 0) return p2_bad(d->e, d->doc, &here, BAD_FIELD, "the expression is empty");
  hint = json_object_get(value, "hint");
  if (json_is_object(hint) && json_is_integer(json_object_get(hint, "as_int"))) {
    out->value = (int64_t)json_integer_value(json_object_get(hint, "as_int"));
    out->has_hint = 1;
  }
  return AOT_OK;
}

static aot_status_t decode_dims(p2_decoder_t *d, const p2_at_t *at, json_t *j, const p2_dim_t **out, uint32_t *out_n) {
  p2_dim_t *dims;
  uint32_t i;
  AOT_TRY(p2_want_array(d, at, j, out_n));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, *out_n, &dims));
  for (i = 0; i < *out_n; i++) {
    p2_at_t here = p2_at_index(at, i);
    AOT_TRY(p2_decode_dim(d, &here, json_array_get(j, i), &dims[i]));
  }
  *out = dims;
  return AOT_OK;
}

aot_status_t p2_decode_device(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_device_t *out) {
  out->index = -1;
  AOT_TRY(p2_field_string(d, at, j, "type", &out->type));
  return p2_maybe_int(d, at, j, "index", &out->index);
}

aot_status_t p2_decode_meta(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_meta_t *out) {
  p2_at_t sizes = p2_at_key(at, "sizes"), strides = p2_at_key(at, "strides"), device = p2_at_key(at, "device");
  p2_at_t offset = p2_at_key(at, "storage_offset");
  uint32_t n_strides = 0;
  json_t *value = NULL;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_field_int(d, at, j, "dtype", &out->dtype));
  AOT_TRY(p2_field(d, at, j, "sizes", &value));
  AOT_TRY(decode_dims(d, &sizes, value, &out->sizes, &out->rank));
  AOT_TRY(p2_field(d, at, j, "strides", &value));
  AOT_TRY(decode_dims(d, &strides, value, &out->strides, &n_strides));
  if (n_strides != out->rank)
    return p2_bad(d->e, d->doc, &strides, BAD_FIELD, "%u strides for %u sizes", n_strides, out->rank);
  if (out->rank > AOT_MAX_RANK)
    return p2_bad(d->e, d->doc, &sizes, BAD_FIELD, "%u dimensions; at most %d are supported", out->rank, AOT_MAX_RANK);
  AOT_TRY(p2_field(d, at, j, "device", &value));
  AOT_TRY(p2_decode_device(d, &device, value, &out->device));
  AOT_TRY(p2_field(d, at, j, "storage_offset", &value));
  AOT_TRY(p2_decode_dim(d, &offset, value, &out->offset));
  AOT_TRY(p2_field_int(d, at, j, "layout", &out->layout));
  AOT_TRY(p2_field(d, at, j, "requires_grad", &value));
  return p2_maybe_bool(d, at, j, "requires_grad", &out->requires_grad);
}
