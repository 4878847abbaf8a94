/* Encodings: attributes of the program that types name (<aot/graph.h>). Equal ones are one row; only undo takes rows
 * back, newest first. The host knows none of them: it compares, prints and carries them. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/program_store.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t encoding_hash(const aot_encoding_info_t *e) {
  XXH64_hash_t h = XXH3_64bits_withSeed(e->name.data, (size_t)e->name.size, e->value.size);
  if (e->value.size) h = XXH3_64bits_withSeed(e->value.data, (size_t)e->value.size, h);
  return (uint32_t)h;
}

static int encoding_same(const void *prog, uint32_t row, const void *key) {
  const aot_prog_t *p = prog;
  const aot_encoding_info_t *a = &p->encodings.at[row], *b = key;
  return aot_str_eq(a->name, b->name) && aot_str_eq(a->value, b->value);
}

aot_status_t aoth_edit_encoding_create(aot_prog_t *p, const aot_encoding_info_t *encoding, aot_encoding_t *out) {
  aot_encoding_info_t e;
  if (aot_import(&e, sizeof e, encoding) != AOT_OK)
    return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "an encoding is made for a newer host");
  e.struct_size = (uint32_t)sizeof e;
  e.reserved = 0;
  if (!aoth_is_vendor_name(e.name))
    return aoth_diagnose(
        p, AOT_E_INVALID, "ir.bad-encoding",
        "\"%.*s\" is no name for an encoding: its vendor, a dot and words of a-z, 0-9, _ and -, as \"vendor.tiled\"",
        STR_ARGS(e.name));
  if (e.value.size && !e.value.data)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-encoding",
                         "encoding \"%.*s\" has a value of %llu bytes, and no pointer to them", STR_ARGS(e.name),
                         (unsigned long long)e.value.size);
  const uint32_t hash = encoding_hash(&e);
  out->id = aoth_row_find(&p->encoding_index, hash, encoding_same, p, &e);
  if (out->id != NONE) return AOT_OK;
  e.name = aoth_store_text(p, e.name);
  e.value = aoth_store_text(p, e.value);
  if (!e.name.data || (e.value.size && !e.value.data) || !ROWS_ROOM(p->encodings, 1) ||
      !kit_map_reserve(&p->encoding_index, p->encoding_index.n + 1))
    return aoth_no_memory(p, "an encoding", sizeof e);
  AOT_TRY(aoth_edit_begin(p));
  out->id = p->encodings.n;
  p->encodings.at[p->encodings.n] = e;
  kit_map_add(&p->encoding_index, hash, p->encodings.n++);
  aoth_edit_record(p, EDIT_ENCODING_CREATE, out->id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_encoding_forget(aot_prog_t *p) {
  const uint32_t row = --p->encodings.n;
  AOT_ASSERT(row != NONE);
  kit_map_remove(&p->encoding_index, encoding_hash(&p->encodings.at[row]), row);
}
