#include <trainer/file_line.h>

#include <aot/inline.h>
#include <base/file.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { N_PLACES = 64, PLACE_NBYTES = 4096 };

static uint64_t hash_places(const aoth_map_t *map) {
  const char *bytes = map->data;
  XXH3_state_t state;
  if (map->nbytes <= (uint64_t)N_PLACES * PLACE_NBYTES) return XXH3_64bits(bytes, (size_t)map->nbytes);
  XXH3_64bits_reset(&state);
  for (uint64_t i = 0; i < N_PLACES; i++) /* the last one ends with the file */
    XXH3_64bits_update(&state, bytes + (map->nbytes - PLACE_NBYTES) / (N_PLACES - 1) * i, PLACE_NBYTES);
  return XXH3_64bits_digest(&state);
}

aot_status_t aoth_said_file(kit_text_t *out, const char *path, aoth_sink_t *sink) {
  aoth_map_t map;
  AOT_TRY(aoth_file_map(path, sink, &map));
  kit_text_f(out, "%s: %llu bytes, hash %016llx\n", path, (unsigned long long)map.nbytes,
             (unsigned long long)hash_places(&map));
  aoth_file_unmap(&map);
  return AOT_OK;
}
