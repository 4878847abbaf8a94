/* exported_fields.h - reading typed fields out of the JSON tree, with the place of what is wrong. */
#ifndef P2_EXPORTED_FIELDS_H
#define P2_EXPORTED_FIELDS_H

#include "exported_program.h"

typedef struct p2_pending { /* a nested graph that waits for its turn */
  json_t *json;
  const p2_at_t *at;
} p2_pending_t;

typedef struct p2_decoder {
  p2_env_t *e;
  const p2_doc_t *doc;
  p2_pending_t *pending; /* one a graph; graph i of the program is pending[i] */
  uint32_t n_pending, pending_capacity;
} p2_decoder_t;

p2_at_t p2_at_key(const p2_at_t *up, const char *key);
p2_at_t p2_at_index(const p2_at_t *up, uint32_t index);
/* The path copied into scratch, so that it outlives the caller's frame. */
aot_status_t p2_at_keep(p2_env_t *e, const p2_at_t *at, const p2_at_t **out);

/* The value itself must be of the kind. */
aot_status_t p2_want_object(p2_decoder_t *d, const p2_at_t *at, json_t *j);
aot_status_t p2_want_array(p2_decoder_t *d, const p2_at_t *at, json_t *j, uint32_t *out_n);
aot_status_t p2_want_string(p2_decoder_t *d, const p2_at_t *at, json_t *j, aot_str_t *out);
aot_status_t p2_want_int(p2_decoder_t *d, const p2_at_t *at, json_t *j, int64_t *out);
aot_status_t p2_want_float(p2_decoder_t *d, const p2_at_t *at, json_t *j, double *out); /* also "Infinity", ints */
aot_status_t p2_want_bool(p2_decoder_t *d, const p2_at_t *at, json_t *j, int64_t *out);

/* A field of an object: it must be there (not null). */
aot_status_t p2_field(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, json_t **out);
aot_status_t p2_field_string(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, aot_str_t *out);
aot_status_t p2_field_int(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int64_t *out);
/* A field that may be absent or null: out is left alone then. */
aot_status_t p2_maybe_string(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, aot_str_t *out);
aot_status_t p2_maybe_int(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int64_t *out);
aot_status_t p2_maybe_bool(p2_decoder_t *d, const p2_at_t *at, json_t *object, const char *key, int32_t *out);

/* A union: an object with exactly one key. */
aot_status_t p2_union(p2_decoder_t *d, const p2_at_t *at, json_t *j, const char **out_key, json_t **out_value);
aot_status_t p2_unknown_key(p2_decoder_t *d, const p2_at_t *at, const char *union_name, const char *key);

/* Records that several decoders meet. */
aot_status_t p2_decode_dim(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_dim_t *out);
aot_status_t p2_decode_meta(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_meta_t *out);
aot_status_t p2_decode_device(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_device_t *out);
aot_status_t p2_decode_argument(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out);

/* Where the user inputs are in the arguments of the model: path_index of the program (input_paths.c). What is not as
 * expected has no path. */
aot_status_t p2_decode_paths(p2_env_t *e, json_t *module, p2_program_t *out);

#endif
