/* zip_writer.c - see zip_writer.h. */
#include "zip_writer.h"
#include <string.h>
#include <zlib.h>

#define ALIGN 64u
#define STEP (UINT64_C(1) << 20)
#define FULL16 0xffffu
#define FULL32 UINT64_C(0xffffffff)

typedef struct header { /* a record being put together */
  uint8_t bytes[512];
  uint32_t n;
} header_t;

static void put(header_t *h, uint64_t value, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) h->bytes[h->n++] = (uint8_t)(value >> (8 * i));
}

static void put32(header_t *h, uint64_t value) { put(h, value < FULL32 ? value : FULL32, 4); }

static aot_status_t emit(p2_zip_writer_t *z, const void *data, uint64_t n) {
  if (n) AOT_TRY(z->sink->write(z->sink, data, n));
  z->at += n;
  return AOT_OK;
}

/* Data in steps; absent data is zeros. */
static const uint8_t *step_of(const void *data, uint64_t at, uint64_t nbytes, uint64_t *out_n) {
  static const uint8_t zeros[4096];
  *out_n = nbytes - at;
  if (data) {
    if (*out_n > STEP) *out_n = STEP;
    return (const uint8_t *)data + at;
  }
  if (*out_n > sizeof zeros) *out_n = sizeof zeros;
  return zeros;
}

static uint32_t checksum(const void *data, uint64_t nbytes) {
  uint64_t at, n;
  uLong crc = crc32(0, NULL, 0);
  for (at = 0; at < nbytes; at += n) {
    const uint8_t *step = step_of(data, at, nbytes, &n);
    crc = crc32(crc, step, (uInt)n);
  }
  return (uint32_t)crc;
}

/* What local header and directory entry share: from the version that is needed to the sizes. */
static void put_facts(header_t *h, const p2_zip_entry_t *e, int zip64) {
  put(h, zip64 ? 45 : 20, 2);
  put(h, 0x0800, 2); /* names are UTF-8 */
  put(h, 0, 2);      /* stored */
  put(h, 0, 2);      /* midnight */
  put(h, 0x21, 2);   /* 1980-01-01 */
  put(h, e->crc, 4);
  put32(h, e->nbytes);
  put32(h, e->nbytes);
  put(h, e->name.size, 2);
}

/* The extra field "FB" fills up to the alignment, as PyTorch's writer does. */
static aot_status_t put_local(p2_zip_writer_t *z, const p2_zip_entry_t *e) {
  header_t h = {.n = 0};
  const int zip64 = e->nbytes >= FULL32;
  const uint32_t wide = zip64 ? 20 : 0;
  const uint64_t data_at = z->at + 30 + e->name.size + wide + 4;
  const uint32_t fill = (uint32_t)((ALIGN - data_at % ALIGN) % ALIGN);
  put(&h, 0x04034b50, 4);
  put_facts(&h, e, zip64);
  put(&h, wide + 4 + fill, 2);
  AOT_TRY(emit(z, h.bytes, h.n));
  AOT_TRY(emit(z, e->name.data, e->name.size));
  h.n = 0;
  if (zip64) put(&h, 1, 2), put(&h, 16, 2), put(&h, e->nbytes, 8), put(&h, e->nbytes, 8);
  put(&h, 'F' | 'B' << 8, 2);
  put(&h, fill, 2);
  memset(h.bytes + h.n, 'Z', fill);
  return emit(z, h.bytes, h.n + fill);
}

aot_status_t p2_zip_member(p2_zip_writer_t *z, const char *name, const void *data, uint64_t nbytes) {
  p2_zip_entry_t e = {.at = z->at, .nbytes = nbytes, .crc = checksum(data, nbytes)};
  aot_str_t folder = {NULL, 0};
  uint64_t at, n;
  AOT_TRY(p2_join(z->env, z->root, p2_str("/"), name, &folder));
  e.name = folder;
  if (e.name.size > 1024)
    return p2_fail(z->env, "export-pt2.name", "the name '%.*s' is too long for an archive", P2_SHOW(e.name));
  AOT_TRY(p2_grow(z->env, (void **)&z->entries, z->n_entries, &z->capacity, sizeof *z->entries));
  z->entries[z->n_entries++] = e;
  AOT_TRY(put_local(z, &e));
  for (at = 0; at < nbytes; at += n) {
    const uint8_t *step = step_of(data, at, nbytes, &n);
    AOT_TRY(emit(z, step, n));
  }
  return AOT_OK;
}

static aot_status_t put_entry(p2_zip_writer_t *z, const p2_zip_entry_t *e) {
  header_t h = {.n = 0}, wide = {.n = 0};
  if (e->nbytes >= FULL32) put(&wide, e->nbytes, 8), put(&wide, e->nbytes, 8);
  if (e->at >= FULL32) put(&wide, e->at, 8);
  put(&h, 0x02014b50, 4);
  put(&h, wide.n ? 45 : 20, 2); /* made by, on MS-DOS: no rights, no owner */
  put_facts(&h, e, wide.n > 0);
  put(&h, wide.n ? wide.n + 4 : 0, 2);
  put(&h, 0, 2); /* comment */
  put(&h, 0, 2); /* disk */
  put(&h, 0, 6); /* attributes */
  put32(&h, e->at);
  AOT_TRY(emit(z, h.bytes, h.n));
  AOT_TRY(emit(z, e->name.data, e->name.size));
  h.n = 0;
  if (wide.n) put(&h, 1, 2), put(&h, wide.n, 2);
  AOT_TRY(emit(z, h.bytes, h.n));
  return emit(z, wide.bytes, wide.n);
}

aot_status_t p2_zip_end(p2_zip_writer_t *z) {
  header_t h = {.n = 0};
  const uint64_t begin = z->at, n = z->n_entries;
  for (uint32_t i = 0; i < z->n_entries; i++) AOT_TRY(put_entry(z, &z->entries[i]));
  const uint64_t nbytes = z->at - begin, wide_at = z->at;
  put(&h, 0x06064b50, 4), put(&h, 44, 8), put(&h, 45, 2), put(&h, 45, 2), put(&h, 0, 4), put(&h, 0, 4);
  put(&h, n, 8), put(&h, n, 8), put(&h, nbytes, 8), put(&h, begin, 8);
  put(&h, 0x07064b50, 4), put(&h, 0, 4), put(&h, wide_at, 8), put(&h, 1, 4);
  put(&h, 0x06054b50, 4), put(&h, 0, 4);
  put(&h, n < FULL16 ? n : FULL16, 2), put(&h, n < FULL16 ? n : FULL16, 2);
  put32(&h, nbytes);
  put32(&h, begin);
  put(&h, 0, 2);
  return emit(z, h.bytes, h.n);
}
