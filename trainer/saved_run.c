#include <trainer/saved_run.h>

#include <aot/inline.h>
#include "kit/base/arena.h"
#include <trainer/tensors/digests.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_RANKS 65536

aot_status_t aoth_saved_fail(const char *path, aoth_sink_t *sink, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aoth_where_t where = {.file = path};
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "checkpoint.mismatch", "%s", text);
  return AOT_E_INVALID;
}

/* ---- opening ---- */

static int is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The number that some metadata is; -1: it is none, or too large. */
static int64_t number(const char *text, int64_t most) {
  char *end = NULL;
  const long long n = text && *text ? strtoll(text, &end, 10) : -1;
  return end && !*end && n >= 0 && n <= most ? n : -1;
}

static aot_status_t open_parts(aoth_saved_t *s) {
  const char *folder = aoth_st_meta(s->index, "folder"), *format = aoth_st_meta(s->index, "format");
  const int64_t n = number(aoth_st_meta(s->index, "ranks"), MAX_RANKS);
  if (!format || strcmp(format, AOTH_SAVED_FORMAT_OF_RANKS) != 0 || !folder || strchr(folder, '/') || n < 1)
    return aoth_saved_fail(s->path, s->sink, "its " AOTH_SAVED_INDEX " is no checkpoint of aothost's");
  s->part = calloc((size_t)n, sizeof(aoth_st_t *));
  if (!s->part) return AOT_E_EXHAUSTED;
  s->n_parts = (uint32_t)n;
  const char *columns = aoth_st_meta(s->index, "columns");
  const int64_t n_columns = columns ? number(columns, n) : n;
  if (n_columns < 1 || n % n_columns)
    return aoth_saved_fail(s->path, s->sink, "%lld ranks are no mesh with as many columns as its index says",
                           (long long)n);
  s->n_columns = (uint32_t)n_columns;
  for (uint32_t r = 0; r < s->n_parts; r++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/rank-%u.safetensors", s->path, folder, r);
    AOT_TRY(aoth_st_open(path, s->sink, &s->part[r]));
    AOT_TRY(aoth_digests_check(s->part[r], s->sink));
  }
  return AOT_OK;
}

/* Each rank has as many rows of everything as the index says, so that nothing has to look again. */
static aot_status_t check_part(void *self, const char *key) {
  const aoth_saved_t *s = self;
  aoth_saved_leaf_t leaf;
  AOT_TRY(aoth_saved_find(s, key, &leaf));
  if (!leaf.is_parts && !leaf.is_own) return AOT_OK;
  const int64_t per_rank =
      leaf.is_own || !leaf.tensor.rank ? 0 : (leaf.tensor.sizes[0] + s->n_columns - 1) / s->n_columns;
  for (uint32_t r = 0; r < s->n_parts; r++) {
    const aoth_st_entry_t *e = aoth_st_find(s->part[r], key);
    int is_right = e && e->tensor.rank == leaf.tensor.rank && e->tensor.dtype == leaf.tensor.dtype;
    for (int32_t d = 0; is_right && d < e->tensor.rank; d++)
      is_right = e->tensor.sizes[d] == (d == 0 && leaf.is_parts ? per_rank : leaf.tensor.sizes[d]);
    if (!is_right || (leaf.is_parts && !leaf.tensor.rank))
      return aoth_saved_fail(s->path, s->sink, "rank %u's part of \"%s\" is not what the index says", r, key);
  }
  return AOT_OK;
}

int aoth_saved_file(const char *path, char *out, size_t size) {
  const int has_parts = is_folder(path);
  snprintf(out, size, "%s%s", path, has_parts ? "/" AOTH_SAVED_INDEX : "");
  return has_parts;
}

aot_status_t aoth_saved_open(const char *path, aoth_sink_t *sink, aoth_saved_t *out) {
  char index[4096];
  const int has_parts = aoth_saved_file(path, index, sizeof index);
  *out = (aoth_saved_t){.path = path, .sink = sink};
  aot_status_t status = aoth_st_open(index, sink, &out->index);
  if (status == AOT_OK) status = aoth_digests_check(out->index, sink);
  if (status == AOT_OK) out->has_digests = aoth_digests_are_there(out->index);
  if (status == AOT_OK && has_parts) status = open_parts(out);
  if (status == AOT_OK) status = aoth_saved_keys(out, check_part, out);
  if (status != AOT_OK) aoth_saved_close(out);
  return status;
}

void aoth_saved_close(aoth_saved_t *s) {
  for (uint32_t r = 0; r < s->n_parts; r++) aoth_st_close(s->part[r]);
  free(s->part);
  aoth_st_close(s->index);
  *s = (aoth_saved_t){0};
}

/* ---- reading ---- */

static const char *part_of(const aoth_saved_t *s, const char *key) {
  char name[1024];
  if ((size_t)snprintf(name, sizeof name, AOTH_SAVED_PART "%s", key) >= sizeof name) return NULL;
  return aoth_st_meta(s->index, name);
}

aot_status_t aoth_saved_find(const aoth_saved_t *s, const char *key, aoth_saved_leaf_t *out) {
  const aoth_st_entry_t *e = aoth_st_find(s->index, key);
  *out = (aoth_saved_leaf_t){0};
  if (e) {
    out->tensor = e->tensor;
    return AOT_OK;
  }
  if (!s->n_parts || !(e = aoth_st_find(s->part[0], key))) return AOT_E_NOT_FOUND;
  const char *part = part_of(s, key);
  const int64_t rows = number(part, INT64_MAX / 2);
  out->tensor = e->tensor;
  out->is_own = part && strcmp(part, AOTH_SAVED_OWN) == 0;
  out->is_parts = !out->is_own;
  if (out->is_own) return AOT_OK;
  if (rows < 0) return aoth_saved_fail(s->path, s->sink, "the index does not say how many rows \"%s\" has", key);
  out->tensor.data = NULL;
  if (out->tensor.rank) out->tensor.sizes[0] = rows;
  aoth_tensor_contiguous(&out->tensor);
  return AOT_OK;
}

static const char *first_of(const aoth_tensor_t *t) {
  return (const char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype);
}

void aoth_saved_rows(const aoth_saved_t *s, const char *key, int64_t first, int64_t n, void *out) {
  const aoth_st_entry_t *whole = aoth_st_find(s->index, key);
  const aoth_tensor_t *any = whole ? &whole->tensor : &aoth_st_find(s->part[0], key)->tensor;
  const int64_t per_part = any->sizes[0], n_parts = whole ? 1 : s->n_columns, all = per_part * n_parts;
  const uint64_t numel = (uint64_t)aoth_tensor_numel(any);
  const uint64_t row = per_part ? numel / (uint64_t)per_part * aot_dtype_size(any->dtype) : 0;
  char *to = out;
  for (int64_t left = n, at = first; left > 0;) {
    const int64_t in_part = at < all ? at % per_part : 0, rest = at < all ? per_part - in_part : left;
    const int64_t here = rest < left ? rest : left;
    if (at >= all) {
      memset(to, 0, (size_t)((uint64_t)here * row));
    } else {
      const aoth_tensor_t *t = whole ? any : &aoth_st_find(s->part[at / per_part], key)->tensor;
      memcpy(to, first_of(t) + (uint64_t)in_part * row, (size_t)((uint64_t)here * row));
    }
    to += (uint64_t)here * row;
    at += here;
    left -= here;
  }
}

static aot_status_t check_in(const aoth_saved_t *s, const aoth_st_t *file, const char *key) {
  return s->has_digests ? aoth_digest_check(file, aoth_st_find(file, key), s->sink) : AOT_OK;
}

aot_status_t aoth_saved_check_rows(const aoth_saved_t *s, const char *key, int64_t first, int64_t n) {
  if (aoth_st_find(s->index, key)) return check_in(s, s->index, key);
  const int64_t per_part = aoth_st_find(s->part[0], key)->tensor.sizes[0];
  for (uint32_t r = 0; r < s->n_columns; r++)
    if (r * per_part < first + n && (r + 1) * per_part > first) AOT_TRY(check_in(s, s->part[r], key));
  return AOT_OK;
}

aot_status_t aoth_saved_check_own(const aoth_saved_t *s, const char *key, uint32_t r) {
  return check_in(s, s->part[r], key);
}

aot_status_t aoth_saved_keys(const aoth_saved_t *s, aot_status_t (*each)(void *self, const char *key), void *self) {
  for (uint32_t i = 0; i < aoth_st_count(s->index); i++) AOT_TRY(each(self, aoth_st_entries(s->index)[i].name));
  for (uint32_t i = 0; s->n_parts && i < aoth_st_count(s->part[0]); i++)
    AOT_TRY(each(self, aoth_st_entries(s->part[0])[i].name));
  return AOT_OK;
}

/* ---- in one file ---- */

typedef struct collector {
  const aoth_saved_t *saved;
  kit_arena_t *arena;
  aoth_st_entry_t *row;
  uint32_t n;
} collector_t;

static aot_status_t gather(void *self, const char *key) {
  collector_t *g = self;
  aoth_saved_leaf_t leaf;
  AOT_TRY(aoth_saved_find(g->saved, key, &leaf));
  if (leaf.is_own) AOT_TRY(aoth_saved_check_own(g->saved, key, 0));
  else AOT_TRY(aoth_saved_check_rows(g->saved, key, 0, leaf.tensor.rank ? leaf.tensor.sizes[0] : 1));
  if (leaf.is_parts) {
    const uint64_t nbytes = (uint64_t)aoth_tensor_numel(&leaf.tensor) * aot_dtype_size(leaf.tensor.dtype);
    leaf.tensor.data = kit_arena_alloc(g->arena, 64, nbytes + 1);
    if (!leaf.tensor.data) return AOT_E_EXHAUSTED;
    aoth_saved_rows(g->saved, key, 0, leaf.tensor.sizes[0], leaf.tensor.data);
  }
  g->row[g->n++] = (aoth_st_entry_t){.name = key, .tensor = leaf.tensor};
  return AOT_OK;
}

aot_status_t aoth_saved_write_whole(const aoth_saved_t *s, const char *path) {
  static const char *const kept[] = {"step", "seed", "offset", "random", "optimizer"};
  enum { N_KEPT = sizeof kept / sizeof *kept };
  aoth_st_meta_t meta[N_KEPT + 1] = {{"format", AOTH_SAVED_FORMAT}};
  collector_t g = {.saved = s, .arena = kit_arena_create()};
  aot_status_t status = AOT_OK;
  const uint32_t n = aoth_st_count(s->index) + (s->n_parts ? aoth_st_count(s->part[0]) : 0);
  for (int i = 0; i < N_KEPT && status == AOT_OK; i++) {
    meta[i + 1] = (aoth_st_meta_t){kept[i], aoth_st_meta(s->index, kept[i])};
    if (!meta[i + 1].value) status = aoth_saved_fail(s->path, s->sink, "the checkpoint does not say \"%s\"", kept[i]);
  }
  g.row = g.arena ? kit_arena_alloc(g.arena, _Alignof(aoth_st_entry_t), ((size_t)n + 1) * sizeof *g.row) : NULL;
  if (status == AOT_OK) status = g.row ? aoth_saved_keys(s, gather, &g) : AOT_E_EXHAUSTED;
  if (status == AOT_E_EXHAUSTED) aoth_saved_fail(s->path, s->sink, "no memory for the whole of it");
  if (status == AOT_OK) status = aoth_st_write_with(path, AOTH_ST_DIGESTS, g.row, g.n, meta, N_KEPT + 1, s->sink);
  kit_arena_destroy(g.arena);
  return status;
}
