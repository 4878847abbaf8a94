/* Reading safetensors. Checks in the order in which they can be trusted: length, JSON, each tensor alone, all together
 * (sorted by place: every byte of the data belongs to exactly one tensor). O(n log n) in the number of tensors. */
#include <trainer/tensors/safetensors.h>

#include <aot/inline.h>
#include <base/file.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MAX (UINT64_C(100) << 20) /* as in the reference reader: a larger header is an attack */

struct aoth_st {
  aoth_map_t map; /* data NULL: the bytes are the caller's */
  kit_arena_t *arena;
  const char *path;
  aoth_sink_t *sink;
  json_t *meta;
  aoth_st_entry_t *entries;
  uint32_t n;
};

static aot_status_t fail(const aoth_st_t *st, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static aot_status_t fail(const aoth_st_t *st, const char *code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_where_t where = {.file = st->path};
  aoth_sink_report(st->sink, AOT_SEVERITY_ERROR, &where, code, "%s", text);
  return AOT_E_INVALID;
}

static int32_t dtype_of(const char *name) {
  static const struct {
    const char *name;
    int32_t dtype;
  } rows[] = {{"BOOL", AOT_BOOL}, {"U8", AOT_U8},     {"I8", AOT_I8},   {"I16", AOT_I16}, {"U16", AOT_U16},
              {"F16", AOT_F16},   {"BF16", AOT_BF16}, {"I32", AOT_I32}, {"U32", AOT_U32}, {"F32", AOT_F32},
              {"F64", AOT_F64},   {"I64", AOT_I64},   {"U64", AOT_U64}, {"C64", AOT_C64}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].name, name) == 0) return rows[i].dtype;
  return 0;
}

static aot_status_t read_shape(const aoth_st_t *st, const char *name, const json_t *shape, aoth_tensor_t *t) {
  if (!json_is_array(shape)) return fail(st, "safetensors.shape", "tensor \"%s\" has no \"shape\" list", name);
  size_t rank = json_array_size(shape);
  if (rank > AOT_MAX_RANK)
    return fail(st, "safetensors.shape", "tensor \"%s\" has %zu dimensions; %d are supported", name, rank,
                AOT_MAX_RANK);
  t->rank = (int32_t)rank;
  for (size_t d = 0; d < rank; d++) {
    const json_t *size = json_array_get(shape, d);
    if (!json_is_integer(size) || json_integer_value(size) < 0)
      return fail(st, "safetensors.shape", "tensor \"%s\": dimension %zu is not a size", name, d);
    t->sizes[d] = json_integer_value(size);
  }
  aoth_tensor_contiguous(t);
  if (!aoth_tensor_extent(t, &t->nbytes))
    return fail(st, "safetensors.shape", "tensor \"%s\" is larger than memory can be", name);
  return AOT_OK;
}

static aot_status_t read_range(const aoth_st_t *st, const char *name, const json_t *range, const char *data,
                               uint64_t nbytes, aoth_tensor_t *t) {
  const json_t *b = json_array_get(range, 0), *e = json_array_get(range, 1);
  if (!json_is_array(range) || json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e))
    return fail(st, "safetensors.offsets", "tensor \"%s\" has no \"data_offsets\" pair", name);
  json_int_t begin = json_integer_value(b), end = json_integer_value(e);
  if (begin < 0 || end < begin || (uint64_t)end > nbytes)
    return fail(st, "safetensors.offsets", "tensor \"%s\": bytes %lld..%lld lie outside the %llu bytes of data", name,
                (long long)begin, (long long)end, (unsigned long long)nbytes);
  if ((uint64_t)(end - begin) != t->nbytes)
    return fail(st, "safetensors.offsets", "tensor \"%s\": its range has %lld bytes, but its dtype and shape make %llu",
                name, (long long)(end - begin), (unsigned long long)t->nbytes);
  t->data = (void *)(uintptr_t)(data + begin); /* read-only by contract (header) */
  return AOT_OK;
}

static aot_status_t read_entry(aoth_st_t *st, const char *name, const json_t *row, const char *data, uint64_t nbytes) {
  aoth_st_entry_t *e = &st->entries[st->n];
  if (!json_is_object(row)) return fail(st, "safetensors.header", "tensor \"%s\" is not described by an object", name);
  const char *dtype = json_string_value(json_object_get(row, "dtype"));
  if (!dtype) return fail(st, "safetensors.dtype", "tensor \"%s\" has no \"dtype\"", name);
  e->tensor.dtype = dtype_of(dtype);
  if (!e->tensor.dtype)
    return fail(st, "safetensors.dtype", "tensor \"%s\": dtype \"%.40s\" is not supported", name, dtype);
  AOT_TRY(read_shape(st, name, json_object_get(row, "shape"), &e->tensor));
  AOT_TRY(read_range(st, name, json_object_get(row, "data_offsets"), data, nbytes, &e->tensor));
  e->name = kit_arena_text(st->arena, name, strlen(name));
  if (!e->name) return fail(st, "safetensors.memory", "no memory for the name of tensor \"%s\"", name);
  st->n++;
  return AOT_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const aoth_st_entry_t *)a)->name, ((const aoth_st_entry_t *)b)->name);
}

static int by_place(const void *a, const void *b) {
  const aoth_tensor_t *x = &((const aoth_st_entry_t *)a)->tensor, *y = &((const aoth_st_entry_t *)b)->tensor;
  if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  return x->nbytes < y->nbytes ? -1 : x->nbytes > y->nbytes; /* an empty tensor precedes the one at its place */
}

/* Every byte of the data belongs to exactly one tensor. */
static aot_status_t check_places(aoth_st_t *st, const char *data, uint64_t nbytes) {
  uint64_t at = 0;
  qsort(st->entries, st->n, sizeof *st->entries, by_place);
  for (uint32_t i = 0; i < st->n; i++) {
    const aoth_st_entry_t *e = &st->entries[i];
    uint64_t begin = (uint64_t)((const char *)e->tensor.data - data);
    if (e->tensor.nbytes == 0) continue;
    if (begin < at)
      return fail(st, "safetensors.overlap", "tensor \"%s\" overlaps another tensor at byte %llu of the data", e->name,
                  (unsigned long long)begin);
    if (begin > at)
      return fail(st, "safetensors.hole", "bytes %llu..%llu of the data, before tensor \"%s\", belong to no tensor",
                  (unsigned long long)at, (unsigned long long)begin, e->name);
    at = begin + e->tensor.nbytes;
  }
  if (at != nbytes)
    return fail(st, "safetensors.hole", "the last %llu bytes of the file belong to no tensor",
                (unsigned long long)(nbytes - at));
  qsort(st->entries, st->n, sizeof *st->entries, by_name);
  return AOT_OK;
}

static aot_status_t read_meta(aoth_st_t *st, json_t *meta) {
  const char *key;
  json_t *value;
  if (!json_is_object(meta)) return fail(st, "safetensors.header", "\"__metadata__\" is not an object");
  json_object_foreach(meta, key, value) {
    if (!json_is_string(value))
      return fail(st, "safetensors.header", "\"__metadata__\": the value of \"%.80s\" is no string", key);
  }
  st->meta = json_incref(meta);
  return AOT_OK;
}

static aot_status_t read_rows(aoth_st_t *st, json_t *header, const char *data, uint64_t nbytes) {
  const char *key;
  json_t *value;
  if (!json_is_object(header)) return fail(st, "safetensors.header", "the header is not a JSON object");
  st->entries = kit_arena_alloc(st->arena, sizeof(void *), (json_object_size(header) + 1) * sizeof *st->entries);
  if (!st->entries) return fail(st, "safetensors.memory", "no memory for %zu tensors", json_object_size(header));
  json_object_foreach(header, key, value) {
    if (strcmp(key, "__metadata__") == 0) AOT_TRY(read_meta(st, value));
    else AOT_TRY(read_entry(st, key, value, data, nbytes));
  }
  return check_places(st, data, nbytes);
}

static aot_status_t read_all(aoth_st_t *st, const unsigned char *bytes, uint64_t nbytes) {
  uint64_t size = 0;
  json_error_t error;
  if (nbytes < 8)
    return fail(st, "safetensors.short", "the file has %llu bytes; a safetensors file has at least 8",
                (unsigned long long)nbytes);
  for (int i = 7; i >= 0; i--) size = size << 8 | bytes[i];
  if (size > HEADER_MAX || size > nbytes - 8)
    return fail(st, "safetensors.short",
                "the header should have %llu bytes, but %llu follow; is this a safetensors file?",
                (unsigned long long)size, (unsigned long long)(nbytes - 8));
  const char *text = (const char *)bytes + 8;
  if (size == 0 || text[0] != '{') return fail(st, "safetensors.header", "the header does not begin with '{'");
  json_t *header = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, &error);
  if (!header)
    return fail(st, "safetensors.header", "the header is no valid JSON: %s (byte %d of the header)", error.text,
                error.position);
  aot_status_t status = read_rows(st, header, text + size, nbytes - 8 - size);
  json_decref(header);
  return status;
}

static aot_status_t open_bytes(const char *name, const aoth_map_t *map, const void *bytes, uint64_t nbytes,
                               aoth_sink_t *sink, aoth_st_t **out) {
  kit_arena_t *arena = kit_arena_create();
  aoth_st_t *st = arena ? kit_arena_alloc(arena, sizeof(void *), sizeof *st) : NULL;
  *out = NULL;
  if (!st) {
    kit_arena_destroy(arena);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "safetensors.memory", "no memory to read %s", name);
    return AOT_E_EXHAUSTED;
  }
  st->arena = arena;
  st->sink = sink;
  st->path = kit_arena_text(arena, name, strlen(name));
  aot_status_t status = read_all(st, bytes, nbytes);
  st->sink = NULL;
  if (status != AOT_OK) {
    aoth_st_close(st);
    return status;
  }
  if (map) st->map = *map;
  *out = st;
  return AOT_OK;
}

aot_status_t aoth_st_parse(const char *name, const void *bytes, uint64_t nbytes, aoth_sink_t *sink, aoth_st_t **out) {
  return open_bytes(name, NULL, bytes, nbytes, sink, out);
}

aot_status_t aoth_st_open(const char *path, aoth_sink_t *sink, aoth_st_t **out) {
  aoth_map_t map;
  *out = NULL;
  AOT_TRY(aoth_file_map(path, sink, &map));
  aot_status_t status = open_bytes(path, &map, map.data, map.nbytes, sink, out);
  if (status != AOT_OK) aoth_file_unmap(&map);
  return status;
}

void aoth_st_close(aoth_st_t *st) {
  if (!st) return;
  json_decref(st->meta);
  if (st->map.data) aoth_file_unmap(&st->map);
  kit_arena_destroy(st->arena);
}

uint32_t aoth_st_count(const aoth_st_t *st) { return st->n; }
const aoth_st_entry_t *aoth_st_entries(const aoth_st_t *st) { return st->entries; }
const char *aoth_st_path(const aoth_st_t *st) { return st->path; }

const aoth_st_entry_t *aoth_st_find(const aoth_st_t *st, const char *name) {
  aoth_st_entry_t key = {.name = name};
  return st->n ? bsearch(&key, st->entries, st->n, sizeof key, by_name) : NULL;
}

void aoth_st_each_meta(const aoth_st_t *st, void (*each)(void *self, const char *key, const char *value), void *self) {
  const char *key;
  json_t *value;
  json_object_foreach(st->meta, key, value) each(self, key, json_string_value(value));
}

const char *aoth_st_meta(const aoth_st_t *st, const char *key) {
  return st->meta ? json_string_value(json_object_get(st->meta, key)) : NULL;
}
