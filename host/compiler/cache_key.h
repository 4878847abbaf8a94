/* The key of a compiled program: everything that its making depends on, as rows of text, and their hash.
 *
 * Rows are stored with the entry, so that a miss can be explained: the row that differs is the reason. Not in the key:
 * the environment that units read (unknown before they ran; kept next to and compared at the hit), options that do not
 * affect the output, what the run section says of data and steps. Hash: XXH3, 128 bits (Collet, xxHash). Linear in
 * the plugins' bytes. */
#ifndef AOTH_CACHE_KEY_H
#define AOTH_CACHE_KEY_H

#include <config/pipeline.h>

/* Why a program is neither looked for nor stored: X(constant, word, sentence) */
#define AOTH_BYPASS_MAP(X)                                                                                             \
  X(NONE, "", "")                                                                                                      \
  X(OFF, "off", "the cache is switched off")                                                                           \
  X(DUMP, "dump", "dumps of stages were asked for, so the stages have to run")                                         \
  X(NO_BACKEND, "no-backend", "the pipeline has no backend stage")                                                     \
  X(FOLDER, "no-folder", "there is no cache folder that belongs to this user alone")                                   \
  X(FILE, "unreadable-file", "a file that belongs to the key cannot be read")                                          \
  X(UNIT, "unit", "a unit says that its result must not be kept")                                                      \
  X(SIZE, "large-data", "tensors that do not lie in the model file as they are used are larger than 64 MiB")           \
  X(TEXT, "not-printable", "the program does not read back from its text as it was")                                   \
  X(WRITE, "unwritable", "the entry could not be written")

enum {
#define AOTH_BYPASS_ENUM(constant, word, sentence) AOTH_BYPASS_##constant,
  AOTH_BYPASS_MAP(AOTH_BYPASS_ENUM)
#undef AOTH_BYPASS_ENUM
      AOTH_N_BYPASS
};
const char *aoth_bypass_word(int reason);
const char *aoth_bypass_sentence(int reason);

typedef struct aoth_key_row {
  const char *label; /* "stage 2 autograd: when-nothing" */
  const char *value; /* "error" */
} aoth_key_row_t;

#define AOTH_KEY_CHARS 32 /* of the hash as text */
typedef struct aoth_cache_key {
  aoth_key_row_t *rows;
  uint32_t n_rows, capacity;
  char hex[AOTH_KEY_CHARS + 1];
  int bypass;         /* AOTH_BYPASS_* */
  const char *detail; /* of the bypass; may be NULL */
} aoth_cache_key_t;

/* Texts live in the session's arena. flags: AOTH_STAGES_*. key->bypass says when there is no key. */
struct aoth_model;    /* session.h */
struct aoth_aliasing; /* of the inputs; NULL: none */
aot_status_t aoth_cache_key_make(aoth_session_t *s, const aoth_pipeline_t *p, const struct aoth_model *model,
                                 uint32_t flags, const struct aoth_aliasing *aliasing, aoth_cache_key_t *key);
/* Of a model's file alone: its importer's word, or else a hash of its bytes. */
void aoth_cache_model_key(aoth_session_t *s, const struct aoth_model *model, char hex[AOTH_KEY_CHARS + 1]);

#endif
