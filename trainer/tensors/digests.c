#include <trainer/tensors/digests.h>

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define PREFIX AOTH_DIGEST_KEY "."

static void print(XXH128_hash_t h, char out[AOTH_DIGEST_CHARS + 1]) {
  snprintf(out, AOTH_DIGEST_CHARS + 1, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

/* ---- tensors ---- */

static void add_elements(XXH3_state_t *state, const aoth_tensor_t *t) {
  const size_t size = (size_t)aot_dtype_size(t->dtype);
  const int64_t n = aoth_tensor_numel(t);
  aoth_walk_t walk;
  if (n <= 0) return;
  if (aoth_tensor_is_contiguous(t)) {
    XXH3_128bits_update(state, (const char *)t->data + (size_t)t->offset * size, (size_t)n * size);
    return;
  }
  for (aoth_walk_begin(&walk, t, NULL); walk.left > 0; aoth_walk_next(&walk))
    XXH3_128bits_update(state, walk.at[0], size);
}

void aoth_tensor_digest(const aoth_tensor_t *t, char out[AOTH_DIGEST_CHARS + 1]) {
  XXH3_state_t state;
  const int32_t head[] = {t->dtype, t->rank};
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, head, sizeof head);
  XXH3_128bits_update(&state, t->sizes, (size_t)t->rank * sizeof *t->sizes);
  add_elements(&state, t);
  print(XXH3_128bits_digest(&state), out);
}

/* ---- metadata ---- */

static int by_key(const void *a, const void *b) {
  return strcmp(((const aoth_st_meta_t *)a)->key, ((const aoth_st_meta_t *)b)->key);
}

/* Of all rows but the digest itself, in the order of their keys. Sorts rows. */
static void digest_meta(aoth_st_meta_t *rows, uint32_t n, char out[AOTH_DIGEST_CHARS + 1]) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  qsort(rows, n, sizeof *rows, by_key);
  for (uint32_t i = 0; i < n; i++) {
    if (strcmp(rows[i].key, AOTH_DIGEST_KEY) == 0) continue;
    XXH3_128bits_update(&state, rows[i].key, strlen(rows[i].key) + 1);
    XXH3_128bits_update(&state, rows[i].value, strlen(rows[i].value) + 1);
  }
  print(XXH3_128bits_digest(&state), out);
}

static int add_row(kit_arena_t *arena, aoth_st_meta_t *row, const char *name, const char *digest) {
  kit_text_t key = {0};
  kit_text_f(&key, PREFIX "%s", name);
  row->key = key.failed ? NULL : kit_arena_text(arena, key.data, key.size);
  row->value = kit_arena_text(arena, digest, AOTH_DIGEST_CHARS);
  kit_text_deinit(&key);
  return row->key && row->value;
}

const aoth_st_meta_t *aoth_digests_add(kit_arena_t *arena, const aoth_st_entry_t *tensors, uint32_t n,
                                       const aoth_st_meta_t *meta, uint32_t n_meta, uint32_t *out_n) {
  char digest[AOTH_DIGEST_CHARS + 1];
  aoth_st_meta_t *all = kit_arena_alloc(arena, sizeof(void *), ((size_t)n_meta + n + 1) * sizeof *all);
  if (!all) return NULL;
  if (n_meta) memcpy(all, meta, n_meta * sizeof *all);
  for (uint32_t i = 0; i < n; i++) {
    aoth_tensor_digest(&tensors[i].tensor, digest);
    if (!add_row(arena, &all[n_meta + i], tensors[i].name, digest)) return NULL;
  }
  digest_meta(all, n_meta + n, digest);
  all[n_meta + n] = (aoth_st_meta_t){AOTH_DIGEST_KEY, kit_arena_text(arena, digest, AOTH_DIGEST_CHARS)};
  *out_n = n_meta + n + 1;
  return all[n_meta + n].value ? all : NULL;
}

/* ---- checking ---- */

typedef struct rows {
  aoth_st_meta_t *at;
  uint32_t n, n_digests;
} rows_t;

static void count_row(void *self, const char *key, const char *value) {
  rows_t *r = self;
  (void)value;
  r->n++;
  r->n_digests += strncmp(key, AOTH_DIGEST_KEY, strlen(AOTH_DIGEST_KEY)) == 0;
}

static void keep_row(void *self, const char *key, const char *value) {
  rows_t *r = self;
  r->at[r->n++] = (aoth_st_meta_t){key, value};
}

/* One of them is enough: the change may be in the key of another. */
int aoth_digests_are_there(const aoth_st_t *file) {
  rows_t rows = {0};
  aoth_st_each_meta(file, count_row, &rows);
  return rows.n_digests > 0;
}

static aot_status_t damaged(const aoth_st_t *file, const char *what, const char *name, aoth_sink_t *sink) {
  const aoth_where_t where = {.file = aoth_st_path(file)};
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "checkpoint.damaged",
                   "%s%s%s changed after it was saved: its digest is another one", what, name, *name ? "\"" : "");
  aoth_sink_line(sink, "hint: the file is damaged; use an earlier checkpoint or another copy");
  return AOT_E_INVALID;
}

aot_status_t aoth_digests_check(const aoth_st_t *file, aoth_sink_t *sink) {
  const char *told = aoth_st_meta(file, AOTH_DIGEST_KEY);
  char found[AOTH_DIGEST_CHARS + 1];
  rows_t rows = {0};
  if (!aoth_digests_are_there(file)) return AOT_OK;
  aoth_st_each_meta(file, count_row, &rows);
  rows = (rows_t){.at = calloc((size_t)rows.n + 1, sizeof *rows.at)};
  if (!rows.at) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "checkpoint.memory", "no memory to check %s", aoth_st_path(file));
    return AOT_E_EXHAUSTED;
  }
  aoth_st_each_meta(file, keep_row, &rows);
  digest_meta(rows.at, rows.n, found);
  free(rows.at);
  return told && strcmp(told, found) == 0 ? AOT_OK : damaged(file, "the metadata", "", sink);
}

aot_status_t aoth_digest_check(const aoth_st_t *file, const aoth_st_entry_t *e, aoth_sink_t *sink) {
  kit_text_t key = {0};
  char found[AOTH_DIGEST_CHARS + 1];
  kit_text_f(&key, PREFIX "%s", e->name);
  if (key.failed) return AOT_E_EXHAUSTED;
  const char *told = aoth_st_meta(file, key.data);
  kit_text_deinit(&key);
  aoth_tensor_digest(&e->tensor, found);
  return told && strcmp(told, found) == 0 ? AOT_OK : damaged(file, "tensor \"", e->name, sink);
}
