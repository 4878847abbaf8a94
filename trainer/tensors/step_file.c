#include <trainer/tensors/step_file.h>

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rows {
  kit_arena_t *arena; /* owns the keys, and the zeros of tensors without data */
  aoth_st_entry_t *at;
  uint32_t n, capacity;
} rows_t;

static aot_status_t add_row(void *self, const char *key, const aoth_tensor_t *t) {
  rows_t *r = self;
  aoth_st_entry_t row = {.name = kit_arena_text(r->arena, key, strlen(key)), .tensor = *t};
  aoth_st_entry_t *at = kit_grow(r->at, &r->capacity, (uint64_t)r->n + 1, sizeof *at);
  if (at) r->at = at;
  if (!row.tensor.data) row.tensor.data = kit_arena_alloc(r->arena, AOTH_ALIGN, (size_t)t->nbytes + 1);
  if (!at || !row.name || !row.tensor.data) return AOT_E_EXHAUSTED;
  r->at[r->n++] = row;
  return AOT_OK;
}

static aot_status_t write_rows(rows_t *r, aot_status_t status, const char *path, uint32_t flags,
                               const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink) {
  if (status != AOT_OK)
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory to list the tensors of %s", path);
  if (status == AOT_OK) status = aoth_st_write_with(path, flags, r->at, r->n, meta, n_meta, sink);
  free(r->at);
  kit_arena_destroy(r->arena);
  return status;
}

aot_status_t aoth_step_save(const aoth_step_t *s, uint32_t which, const char *path, uint32_t flags,
                            const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink) {
  rows_t rows = {.arena = kit_arena_create()};
  const aot_status_t status = rows.arena ? aoth_step_keys(s, which, add_row, &rows) : AOT_E_EXHAUSTED;
  return write_rows(&rows, status, path, flags, meta, n_meta, sink);
}

aot_status_t aoth_step_save_call(const aoth_step_t *s, const char *path, aoth_sink_t *sink) {
  rows_t rows = {.arena = kit_arena_create()};
  char seed[32], offset[32];
  const aoth_given_call_t call = aoth_step_given_call(s);
  snprintf(seed, sizeof seed, "%lld", (long long)call.seed);
  snprintf(offset, sizeof offset, "%lld", (long long)call.offset);
  const aoth_st_meta_t meta[] = {{"call", call.name}, {"seed", seed}, {"offset", offset}};
  const aot_status_t status = rows.arena ? aoth_step_given(s, add_row, &rows) : AOT_E_EXHAUSTED;
  return write_rows(&rows, status, path, AOTH_ST_OWN_NAME, meta, sizeof meta / sizeof *meta, sink);
}
