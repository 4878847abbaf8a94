/* Typed reading of a map: each function reports an error at the value's position and continues with the default. */
#ifndef AOTH_FIELDS_H
#define AOTH_FIELDS_H

#include <config/yaml.h>

typedef struct aoth_fields {
  kit_arena_t *arena;
  aoth_sink_t *sink;
} aoth_fields_t;

/* 1: node is a map and all its keys are among the n_keys known ones (or it is NULL: nothing to say, answers 0). */
int aoth_fields_known(const aoth_fields_t *f, const aoth_yaml_t *node, const char *name, const char *const *keys,
                      uint32_t n_keys);
/* The value of key, NULL when absent or null. */
const aoth_yaml_t *aoth_fields_get(const aoth_yaml_t *map, const char *key);
int64_t aoth_fields_i64(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, int64_t preset, int64_t min,
                        int64_t max);
double aoth_fields_f64(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, double preset, double min,
                       double max);
const char *aoth_fields_text(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key); /* NULL: absent */
/* Resolved; NULL: absent. */
const char *aoth_fields_path(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key);
/* Index of the text among n words, or preset when absent or wrong. */
int32_t aoth_fields_word(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, int32_t preset,
                         const char *const *words, uint32_t n_words);
aoth_where_t aoth_fields_where(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key); /* empty when absent */

#endif
