/* The ELF note of a plugin, read from the file's bytes without loading it (aot/note.h has the format).
 * Every offset of the file is checked: any bytes may be handed in. */
#ifndef AOTH_ELF_NOTE_H
#define AOTH_ELF_NOTE_H

#include <aot/status.h>
#include "kit/base/arena.h"
#include <stdint.h>

typedef struct aoth_note_unit {
  const char *kind, *id, *help; /* "pass/1", "functionalize", one sentence */
  const char *claims;           /* of an opset: namespaces with blanks between them; NULL: it says nothing */
} aoth_note_unit_t;

typedef struct aoth_note {
  const char *id, *version;
  const char *build_id; /* the linker's, in hexadecimal; NULL: the file has none */
  uint32_t epoch, minor, min_host_minor;
  uint32_t n_units;
  const aoth_note_unit_t *units;
  uint32_t needs_asan; /* the file is linked against AddressSanitizer's run time */
  uint32_t reserved;
} aoth_note_t;

/* AOT_OK; or why not, in out_why: AOT_E_INVALID (not a plugin of this machine, damaged), AOT_E_NOT_FOUND (no note).
 * Texts are copied to the arena. */
aot_status_t aoth_note_read(const void *bytes, uint64_t nbytes, kit_arena_t *arena, aoth_note_t *out,
                            const char **out_why);

/* The linker's build id of an ELF file of this machine, in hexadecimal. NULL: none, or no such file. */
const char *aoth_build_id(const void *bytes, uint64_t nbytes, kit_arena_t *arena);

#endif
