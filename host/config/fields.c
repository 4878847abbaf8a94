#include <config/fields.h>

#include <config/compose.h>
#include <string.h>

const aoth_yaml_t *aoth_fields_get(const aoth_yaml_t *map, const char *key) {
  const aoth_yaml_t *value = aoth_yaml_get(map, key);
  return value && aoth_yaml_is_null(value) ? NULL : value;
}

int aoth_fields_known(const aoth_fields_t *f, const aoth_yaml_t *node, const char *name, const char *const *keys,
                      uint32_t n_keys) {
  if (!node || aoth_yaml_is_null(node)) return 0;
  if (node->kind != AOTH_YAML_MAP) {
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.type", "'%s': expected a map, got %s", name,
                    aoth_yaml_kind(node));
    return 0;
  }
  for (uint32_t i = 0; i < node->n; i++) {
    const aoth_yaml_t *key = node->pairs[i].key;
    aot_str_t known[32];
    int found = 0;
    for (uint32_t k = 0; k < n_keys && k < 32; k++) {
      known[k] = (aot_str_t){keys[k], strlen(keys[k])};
      found |= strcmp(keys[k], key->text.data) == 0;
    }
    if (found) continue;
    const int near = kit_nearest(key->text, known, n_keys);
    if (near >= 0) {
      aoth_yaml_error(f->sink, f->arena, key, "pipeline.key", "%s has no key '%s'; did you mean '%s'?", name,
                      key->text.data, keys[near]);
      continue;
    }
    kit_text_t list = {0};
    for (uint32_t k = 0; k < n_keys; k++) kit_text_f(&list, "%s%s", k ? ", " : "", keys[k]);
    aoth_yaml_error(f->sink, f->arena, key, "pipeline.key", "%s has no key '%s'; it has: %s", name, key->text.data,
                    list.data ? list.data : "");
    kit_text_deinit(&list);
  }
  return 1;
}

static void wrong(const aoth_fields_t *f, const aoth_yaml_t *value, const char *key, const char *wanted) {
  aoth_yaml_error(f->sink, f->arena, value, "pipeline.type", "'%s': expected %s, got %s", key, wanted,
                  aoth_yaml_kind(value));
}

int64_t aoth_fields_i64(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, int64_t preset, int64_t min,
                        int64_t max) {
  const aoth_yaml_t *value = aoth_fields_get(map, key);
  int64_t i;
  if (!value || value->failed) return preset;
  if (!aoth_yaml_i64(value, &i)) {
    wrong(f, value, key, "an integer");
  } else if (i < min || i > max) {
    if (max == INT64_MAX)
      aoth_yaml_error(f->sink, f->arena, value, "pipeline.range", "'%s' must be at least %lld", key, (long long)min);
    else
      aoth_yaml_error(f->sink, f->arena, value, "pipeline.range", "'%s' must be from %lld to %lld", key, (long long)min,
                      (long long)max);
  } else {
    return i;
  }
  return preset;
}

double aoth_fields_f64(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, double preset, double min,
                       double max) {
  const aoth_yaml_t *value = aoth_fields_get(map, key);
  double d;
  if (!value || value->failed) return preset;
  if (!aoth_yaml_f64(value, &d)) {
    wrong(f, value, key, "a number");
  } else if (!(d >= min && d <= max)) {
    aoth_yaml_error(f->sink, f->arena, value, "pipeline.range", "'%s' must be from %g to %g", key, min, max);
  } else {
    return d;
  }
  return preset;
}

const char *aoth_fields_text(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key) {
  const aoth_yaml_t *value = aoth_fields_get(map, key);
  if (!value || value->failed) return NULL;
  if (value->kind == AOTH_YAML_SCALAR && value->text.size) return value->text.data;
  if (value->kind == AOTH_YAML_SCALAR)
    aoth_yaml_error(f->sink, f->arena, value, "pipeline.type", "'%s' must not be empty", key);
  else wrong(f, value, key, "a string");
  return NULL;
}

const char *aoth_fields_path(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key) {
  const char *text = aoth_fields_text(f, map, key);
  return text ? aoth_path_resolve(f->arena, aoth_fields_get(map, key), text) : NULL;
}

int32_t aoth_fields_word(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, int32_t preset,
                         const char *const *words, uint32_t n_words) {
  const char *text = aoth_fields_text(f, map, key);
  if (!text) return preset;
  aot_str_t known[32];
  kit_text_t list = {0};
  for (uint32_t i = 0; i < n_words && i < 32; i++) {
    if (strcmp(text, words[i]) == 0) {
      kit_text_deinit(&list);
      return (int32_t)i;
    }
    known[i] = (aot_str_t){words[i], strlen(words[i])};
    kit_text_f(&list, "%s%s", i ? ", " : "", words[i]);
  }
  const int near = kit_nearest((aot_str_t){text, strlen(text)}, known, n_words);
  if (near >= 0)
    aoth_yaml_error(f->sink, f->arena, aoth_fields_get(map, key), "pipeline.choice",
                    "'%s': invalid value '%s'; did you mean '%s'?", key, text, words[near]);
  else
    aoth_yaml_error(f->sink, f->arena, aoth_fields_get(map, key), "pipeline.choice",
                    "'%s': invalid value '%s'; expected one of: %s", key, text, list.data ? list.data : "");
  kit_text_deinit(&list);
  return preset;
}

aoth_where_t aoth_fields_where(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key) {
  const aoth_yaml_t *value = aoth_yaml_get(map, key);
  const aoth_where_t none = {NULL, 0, 0, 0, NULL};
  return value ? aoth_yaml_where(f->arena, value) : none;
}
