/* Writing safetensors: header from the tensors sorted by element size and name, then the bytes, through the atomic
 * writer. */
#include <trainer/tensors/safetensors.h>

#include <aot/inline.h>
#include <base/file.h>
#include <trainer/tensors/digests.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(int32_t dtype) {
  switch (dtype) {
    case AOT_BOOL: return "BOOL";
    case AOT_U8: return "U8";
    case AOT_I8: return "I8";
    case AOT_I16: return "I16";
    case AOT_U16: return "U16";
    case AOT_F16: return "F16";
    case AOT_BF16: return "BF16";
    case AOT_I32: return "I32";
    case AOT_U32: return "U32";
    case AOT_F32: return "F32";
    case AOT_F64: return "F64";
    case AOT_I64: return "I64";
    case AOT_U64: return "U64";
    case AOT_C64: return "C64";
    default: return NULL;
  }
}

static int by_size_then_name(const void *a, const void *b) {
  const aoth_st_entry_t *x = *(const aoth_st_entry_t *const *)a, *y = *(const aoth_st_entry_t *const *)b;
  uint64_t p = aot_dtype_size(x->tensor.dtype), q = aot_dtype_size(y->tensor.dtype);
  if (p != q) return p > q ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const aoth_st_entry_t *const *)a)->name, (*(const aoth_st_entry_t *const *)b)->name);
}

static uint64_t nbytes_of(const aoth_tensor_t *t) { return (uint64_t)aoth_tensor_numel(t) * aot_dtype_size(t->dtype); }

static aot_status_t check(const aoth_st_entry_t **rows, uint32_t n, const char *path, aoth_sink_t *sink) {
  aoth_where_t where = {.file = path};
  qsort(rows, n, sizeof *rows, by_name);
  for (uint32_t i = 0; i < n; i++) {
    if (i && strcmp(rows[i]->name, rows[i - 1]->name) == 0) {
      aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "safetensors.duplicate", "two tensors are called \"%s\"",
                       rows[i]->name);
      return AOT_E_INVALID;
    }
    if (!name_of(rows[i]->tensor.dtype)) {
      aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "safetensors.dtype",
                       "tensor \"%s\": safetensors has no dtype for %s", rows[i]->name,
                       aot_dtype_name(rows[i]->tensor.dtype));
      return AOT_E_INVALID;
    }
  }
  return AOT_OK;
}

static void write_header(kit_text_t *out, const aoth_st_entry_t *const *rows, uint32_t n, const aoth_st_meta_t *meta,
                         uint32_t n_meta) {
  uint64_t at = 0;
  kit_text_z(out, "{");
  if (n_meta) kit_text_z(out, "\"__metadata__\":{");
  for (uint32_t i = 0; i < n_meta; i++) {
    if (i) kit_text_z(out, ",");
    kit_text_json(out, aot_str(meta[i].key));
    kit_text_z(out, ":");
    kit_text_json(out, aot_str(meta[i].value));
  }
  if (n_meta) kit_text_z(out, n ? "}," : "}");
  for (uint32_t i = 0; i < n; i++) {
    const aoth_tensor_t *t = &rows[i]->tensor;
    uint64_t end = at + nbytes_of(t);
    if (i) kit_text_z(out, ",");
    kit_text_json(out, aot_str(rows[i]->name));
    kit_text_f(out, ":{\"dtype\":\"%s\",\"shape\":[", name_of(t->dtype));
    for (int32_t d = 0; d < t->rank; d++) kit_text_f(out, "%s%lld", d ? "," : "", (long long)t->sizes[d]);
    kit_text_f(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
    at = end;
  }
  kit_text_z(out, "}");
  while (out->size % 8 && !out->failed) kit_text_z(out, " "); /* the data starts aligned */
}

static void write_tensor(aoth_writer_t *w, const aoth_tensor_t *t) {
  size_t size = (size_t)aot_dtype_size(t->dtype);
  char block[4096];
  size_t fill = 0;
  aoth_walk_t walk;
  if (aoth_tensor_numel(t) <= 0) return;
  if (aoth_tensor_is_contiguous(t)) {
    aoth_writer_write(w, (const char *)t->data + (size_t)t->offset * size, (size_t)nbytes_of(t));
    return;
  }
  for (aoth_walk_begin(&walk, t, NULL); walk.left > 0; aoth_walk_next(&walk)) {
    memcpy(block + fill, walk.at[0], size);
    fill += size;
    if (fill + size > sizeof block) {
      aoth_writer_write(w, block, fill);
      fill = 0;
    }
  }
  aoth_writer_write(w, block, fill);
}

static aot_status_t write_file(const char *path, uint32_t flags, const kit_text_t *header,
                               const aoth_st_entry_t *const *rows, uint32_t n, aoth_sink_t *sink) {
  aoth_writer_t *w = flags & AOTH_ST_OWN_NAME ? aoth_writer_begin_own(path, sink) : aoth_writer_begin(path, sink);
  unsigned char length[8];
  if (!w) return AOT_E_INVALID;
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header->size >> (8 * i));
  aoth_writer_write(w, length, sizeof length);
  aoth_writer_write(w, header->data, header->size);
  for (uint32_t i = 0; i < n; i++) write_tensor(w, &rows[i]->tensor);
  return aoth_writer_commit(w);
}

static aot_status_t write_rows(const char *path, uint32_t flags, const aoth_st_entry_t *tensors, uint32_t n,
                               const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink) {
  const aoth_st_entry_t **rows = malloc(((size_t)n + 1) * sizeof *rows);
  kit_text_t header = {0};
  aot_status_t status = AOT_E_EXHAUSTED;
  if (rows) {
    for (uint32_t i = 0; i < n; i++) rows[i] = &tensors[i];
    status = check(rows, n, path, sink);
  }
  if (status == AOT_OK) {
    qsort(rows, n, sizeof *rows, by_size_then_name);
    write_header(&header, rows, n, meta, n_meta);
    if (header.failed) status = AOT_E_EXHAUSTED;
  }
  if (status == AOT_E_EXHAUSTED)
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "safetensors.memory", "no memory to write %s with %u tensors",
                     path, n);
  if (status == AOT_OK) status = write_file(path, flags, &header, rows, n, sink);
  kit_text_deinit(&header);
  free(rows);
  return status;
}

aot_status_t aoth_st_write_with(const char *path, uint32_t flags, const aoth_st_entry_t *tensors, uint32_t n,
                                const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink) {
  if (!(flags & AOTH_ST_DIGESTS)) return write_rows(path, flags, tensors, n, meta, n_meta, sink);
  kit_arena_t *arena = kit_arena_create();
  uint32_t n_all = 0;
  const aoth_st_meta_t *all = arena ? aoth_digests_add(arena, tensors, n, meta, n_meta, &n_all) : NULL;
  aot_status_t status = AOT_E_EXHAUSTED;
  if (all) status = write_rows(path, flags, tensors, n, all, n_all, sink);
  else aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "safetensors.memory", "no memory for the digests of %s", path);
  kit_arena_destroy(arena);
  return status;
}

aot_status_t aoth_st_write(const char *path, const aoth_st_entry_t *tensors, uint32_t n, const aoth_st_meta_t *meta,
                           uint32_t n_meta, aoth_sink_t *sink) {
  return aoth_st_write_with(path, 0, tensors, n, meta, n_meta, sink);
}

int aoth_st_has_dtype(int32_t dtype) { return name_of(dtype) != NULL; }
