/* A training run on disk, as it is read: one file, or the folder of several ranks.
 *
 *     PATH                              every leaf whole
 *
 *     PATH/index.safetensors            which folder, of how many ranks; the leaves that all ranks have alike
 *     PATH/step-100/rank-3.safetensors  that rank's rows of what is shared out, and what is its own
 *
 * The index says in its metadata of each leaf that it does not hold, `part.KEY`: the number of rows of the whole, or
 * "own". Each rank has ceil(rows / ranks) of them, the last ones filled up with zeros. Ranks of a mesh (fsdp's mode
 * hybrid) have ceil(rows / columns), and the index says `columns`. */
#ifndef AOTH_SAVED_RUN_H
#define AOTH_SAVED_RUN_H

#include <trainer/tensors/safetensors.h>

#define AOTH_SAVED_FORMAT "aothost-checkpoint/1"
#define AOTH_SAVED_FORMAT_OF_RANKS "aothost-checkpoint-of-ranks/1"
#define AOTH_SAVED_INDEX "index.safetensors"
#define AOTH_SAVED_PART "part."
#define AOTH_SAVED_OWN "own"

typedef struct aoth_saved {
  const char *path;
  aoth_sink_t *sink;
  aoth_st_t *index;
  aoth_st_t **part; /* n_parts, by rank; none: the index is all there is */
  uint32_t n_parts;
  uint32_t n_columns; /* that hold the rows of what is shared out; the ranks after them have the same again */
  int has_digests;
} aoth_saved_t;

typedef struct aoth_saved_leaf {
  aoth_tensor_t tensor; /* sizes of the whole; data where it is one piece */
  int is_parts, is_own; /* rows of all ranks, or each rank's own */
} aoth_saved_leaf_t;

int aoth_saved_file(const char *path, char *out, size_t size); /* the file, or a folder's index; 1: it is a folder */
/* Complaints are located at the path. */
aot_status_t aoth_saved_open(const char *path, aoth_sink_t *sink, aoth_saved_t *out);
void aoth_saved_close(aoth_saved_t *s);
/* AOT_E_NOT_FOUND without a complaint: there is no such leaf. */
aot_status_t aoth_saved_find(const aoth_saved_t *s, const char *key, aoth_saved_leaf_t *out);
/* Rows [first, first + n) of the whole; zeros after the last one. */
void aoth_saved_rows(const aoth_saved_t *s, const char *key, int64_t first, int64_t n, void *out);
/* Is what those rows are read from as it was saved? Of a file without digests: yes. */
aot_status_t aoth_saved_check_rows(const aoth_saved_t *s, const char *key, int64_t first, int64_t n);
/* The same of what rank `r` has for its own. */
aot_status_t aoth_saved_check_own(const aoth_saved_t *s, const char *key, uint32_t r);
/* All keys, each once. */
aot_status_t aoth_saved_keys(const aoth_saved_t *s, aot_status_t (*each)(void *self, const char *key), void *self);

/* Every leaf whole in one file, which one rank can continue from. What is each rank's own is the first one's. */
aot_status_t aoth_saved_write_whole(const aoth_saved_t *s, const char *path);

aot_status_t aoth_saved_fail(const char *path, aoth_sink_t *sink, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
