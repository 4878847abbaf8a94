/* One entry of the compile cache: a compiled program that runs without importer and stages.
 *
 *     +--------+----------+-------+---------+-------+--------+--- - - ---+--- - - ----+
 *     | header | sections | about | program | nodes | leaves | data      | artifact   |
 *     +--------+----------+-------+---------+-------+--------+--- - - ---+--- - - ----+
 *
 *   about     JSON: the key's rows, what units read of the environment, what each did, model and pipeline, time
 *   program   the compiled program as text (docs/IR.md): graphs, boundary, leaves, origins
 *   nodes     u32 ids that the artifact knows the nodes by, in the text's order
 *   leaves    where each leaf's contents lie: in the model file (mapped, not copied), or in `data`
 *   artifact  the backend's bytes
 *
 * Sections start at multiples of 64. The header holds the hash of all that follows it: an entry that was cut or changed
 * is no entry. Little-endian; another layout is another version, and an entry of one is rebuilt. */
#ifndef AOTH_CACHE_ENTRY_H
#define AOTH_CACHE_ENTRY_H

#include <base/file.h>

#define AOTH_ENTRY_ABOUT 0
#define AOTH_ENTRY_PROGRAM 1
#define AOTH_ENTRY_NODES 2
#define AOTH_ENTRY_LEAVES 3
#define AOTH_ENTRY_DATA 4
#define AOTH_ENTRY_ARTIFACT 5
#define AOTH_ENTRY_SECTIONS 6

typedef struct aoth_entry_part {
  const void *data;
  uint64_t nbytes;
} aoth_entry_part_t;

typedef struct aoth_entry {
  aoth_map_t map;
  aoth_entry_part_t parts[AOTH_ENTRY_SECTIONS];
} aoth_entry_t;

/* Map an entry and check it. NULL: fine; else what is wrong with it ("cut short", ..), with *out_missing set when there
 * is no such file. */
const char *aoth_entry_open(const char *path, aoth_entry_t *out, int *out_missing);
void aoth_entry_close(aoth_entry_t *e);
/* Replaces the file at path atomically. */
aot_status_t aoth_entry_write(const char *path, const aoth_entry_part_t parts[AOTH_ENTRY_SECTIONS], aoth_sink_t *sink);

/* The section `about`, parsed. */
struct json_t;
struct json_t *aoth_entry_about(const aoth_entry_t *e); /* a new reference; NULL: not readable */

#endif
