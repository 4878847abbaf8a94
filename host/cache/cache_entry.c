#include <cache/cache_entry.h>

#include <jansson.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC "AOTCACHE"
#define VERSION 1u
#define ALIGNMENT 64u

typedef struct header {
  char magic[8];
  uint32_t version, n_sections;
  uint64_t nbytes;              /* of the file */
  uint64_t hash_low, hash_high; /* of everything after the header */
  uint64_t reserved[3];
} header_t;
_Static_assert(sizeof(header_t) == ALIGNMENT, "sections start aligned");

typedef struct section {
  uint64_t at, nbytes;
} section_t;

static uint64_t align(uint64_t n) { return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* ---- reading ---- */

static const char *check(const aoth_map_t *map, const header_t *h) {
  if (map->nbytes < sizeof *h || memcmp(h->magic, MAGIC, sizeof h->magic) != 0) return "no entry of the compile cache";
  if (h->version != VERSION || h->n_sections != AOTH_ENTRY_SECTIONS || h->reserved[0] || h->reserved[1] ||
      h->reserved[2])
    return "of another version";
  if (h->nbytes != map->nbytes || map->nbytes < sizeof *h + AOTH_ENTRY_SECTIONS * sizeof(section_t)) return "cut short";
  const XXH128_hash_t hash = XXH3_128bits((const char *)map->data + sizeof *h, (size_t)(map->nbytes - sizeof *h));
  return hash.low64 == h->hash_low && hash.high64 == h->hash_high ? NULL : "changed since it was written";
}

static const char *find_parts(aoth_entry_t *e) {
  section_t rows[AOTH_ENTRY_SECTIONS];
  memcpy(rows, (const char *)e->map.data + sizeof(header_t), sizeof rows);
  for (uint32_t i = 0; i < AOTH_ENTRY_SECTIONS; i++) {
    if (rows[i].at > e->map.nbytes || rows[i].nbytes > e->map.nbytes - rows[i].at || rows[i].at % ALIGNMENT)
      return "inconsistent";
    e->parts[i] = (aoth_entry_part_t){(const char *)e->map.data + rows[i].at, rows[i].nbytes};
  }
  return NULL;
}

const char *aoth_entry_open(const char *path, aoth_entry_t *out, int *out_missing) {
  header_t h;
  memset(out, 0, sizeof *out);
  const aot_status_t status = aoth_file_map_own(path, NULL, &out->map);
  *out_missing = status == AOT_E_NOT_FOUND;
  if (status != AOT_OK) return "not readable";
  memset(&h, 0, sizeof h);
  memcpy(&h, out->map.data, out->map.nbytes < sizeof h ? (size_t)out->map.nbytes : sizeof h);
  const char *why = check(&out->map, &h);
  if (!why) why = find_parts(out);
  if (why) aoth_entry_close(out);
  return why;
}

void aoth_entry_close(aoth_entry_t *e) {
  aoth_file_unmap(&e->map);
  memset(e->parts, 0, sizeof e->parts);
}

json_t *aoth_entry_about(const aoth_entry_t *e) {
  json_t *about = json_loadb(e->parts[AOTH_ENTRY_ABOUT].data, (size_t)e->parts[AOTH_ENTRY_ABOUT].nbytes, 0, NULL);
  if (json_is_object(about)) return about;
  json_decref(about);
  return NULL;
}

/* ---- writing ---- */

static void hash_padding(XXH3_state_t *state, uint64_t n) {
  static const char zeros[ALIGNMENT] = {0};
  XXH3_128bits_update(state, zeros, (size_t)n);
}

static int make_header(const aoth_entry_part_t *parts, const section_t *rows, header_t *h) {
  XXH3_state_t *state = XXH3_createState();
  if (!state || XXH3_128bits_reset(state) != XXH_OK) return 0;
  const uint64_t table = AOTH_ENTRY_SECTIONS * sizeof *rows;
  XXH3_128bits_update(state, rows, (size_t)table);
  hash_padding(state, align(sizeof *h + table) - sizeof *h - table);
  for (uint32_t i = 0; i < AOTH_ENTRY_SECTIONS; i++) {
    XXH3_128bits_update(state, parts[i].data, (size_t)parts[i].nbytes);
    hash_padding(state, align(parts[i].nbytes) - parts[i].nbytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  h->hash_low = hash.low64;
  h->hash_high = hash.high64;
  XXH3_freeState(state);
  return 1;
}

aot_status_t aoth_entry_write(const char *path, const aoth_entry_part_t parts[AOTH_ENTRY_SECTIONS], aoth_sink_t *sink) {
  static const char zeros[ALIGNMENT] = {0};
  header_t h = {MAGIC, VERSION, AOTH_ENTRY_SECTIONS, 0, 0, 0, {0}};
  section_t rows[AOTH_ENTRY_SECTIONS];
  const uint64_t table = sizeof rows;
  uint64_t at = align(sizeof h + table);
  for (uint32_t i = 0; i < AOTH_ENTRY_SECTIONS; i++) {
    rows[i] = (section_t){at, parts[i].nbytes};
    at = align(at + parts[i].nbytes);
  }
  h.nbytes = at;
  if (!make_header(parts, rows, &h)) return AOT_E_EXHAUSTED;
  aoth_writer_t *w = aoth_writer_begin_own(path, sink);
  if (!w) return AOT_E_INVALID;
  aoth_writer_write(w, &h, sizeof h);
  aoth_writer_write(w, rows, sizeof rows);
  aoth_writer_write(w, zeros, (size_t)(align(sizeof h + table) - sizeof h - table));
  for (uint32_t i = 0; i < AOTH_ENTRY_SECTIONS; i++) {
    aoth_writer_write(w, parts[i].data, (size_t)parts[i].nbytes);
    aoth_writer_write(w, zeros, (size_t)(align(parts[i].nbytes) - parts[i].nbytes));
  }
  return aoth_writer_commit(w);
}
