/* The programs that conform tries units with: files PREFIX/share/aothost/conform/CLASS-NAME.ir, so that the host names
 * no operator.
 *
 * A file of the user's is a program in text, or a model that an importer recognises, and is used as it is.
 *
 * Before a file is parsed, `$T` in it becomes a dtype (a program for each), and the lines from `; repeat N` to `; end`
 * are repeated, with `#` become 0, 1, .. N-1 and `+` after a name's `%x` become the number after that. */
#ifndef AOTH_CONFORM_PROGRAMS_H
#define AOTH_CONFORM_PROGRAMS_H

#include <aot/status.h>
#include "kit/base/arena.h"
#include <base/sink.h>

#define AOTH_MOST_CONFORM_PROGRAMS 256u

typedef struct aoth_conform_program {
  const char *class, *name; /* "dtype", "dtype-each f16" */
  const char *path;
  const char *dtype; /* NULL: no $T in it */
  int is_own;        /* a file of the user's */
} aoth_conform_program_t;

typedef struct aoth_conform_programs {
  const char *folder;
  uint32_t n;
  aoth_conform_program_t rows[AOTH_MOST_CONFORM_PROGRAMS]; /* by file name, then dtype */
} aoth_conform_programs_t;

/* Next to the program's own folder: PREFIX/bin, PREFIX/share. AOT_E_NOT_FOUND: reported. */
aot_status_t aoth_conform_programs_find(kit_arena_t *arena, aoth_sink_t *sink, aoth_conform_programs_t *out);
/* The user's own files before them, of class plain. AOT_E_NOT_FOUND: reported. */
aot_status_t aoth_conform_programs_add(aoth_conform_programs_t *p, const char *const *paths, uint32_t n,
                                       aoth_sink_t *sink);
/* The text, in the arena; NULL: it cannot be read, reported. */
const char *aoth_conform_program_text(const aoth_conform_program_t *p, kit_arena_t *arena, aoth_sink_t *sink,
                                      size_t *out_size);

#endif
