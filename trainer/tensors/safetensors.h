/* safetensors: named tensors in one file, as data (inputs, outputs, expectations, checkpoints).
 *
 *     +--------+----------------------------------------------+------------------------------+
 *     | u64 N  | N bytes of JSON: name -> dtype, shape, range | tensors, row-major, no holes |
 *     +--------+----------------------------------------------+------------------------------+
 *
 * The reader maps the file and believes nothing: header length, JSON, dtypes, shapes, ranges, overlaps and holes are
 * checked, and every complaint names the file and the tensor. Format: github.com/huggingface/safetensors, README. */
#ifndef AOTH_SAFETENSORS_H
#define AOTH_SAFETENSORS_H

#include <base/sink.h>
#include <step/tensor.h>

typedef struct aoth_st_entry {
  const char *name;
  aoth_tensor_t tensor; /* contiguous, read-only memory, perhaps not aligned to its dtype */
} aoth_st_entry_t;

typedef struct aoth_st aoth_st_t;

aot_status_t aoth_st_open(const char *path, aoth_sink_t *sink, aoth_st_t **out);
/* The same over bytes in memory, borrowed until close; `name` represents the file in messages. */
aot_status_t aoth_st_parse(const char *name, const void *bytes, uint64_t nbytes, aoth_sink_t *sink, aoth_st_t **out);
void aoth_st_close(aoth_st_t *st); /* NULL is fine */

uint32_t aoth_st_count(const aoth_st_t *st);
const aoth_st_entry_t *aoth_st_entries(const aoth_st_t *st);                /* sorted by name (strcmp) */
const aoth_st_entry_t *aoth_st_find(const aoth_st_t *st, const char *name); /* NULL: absent; O(log n) */
const char *aoth_st_meta(const aoth_st_t *st, const char *key);             /* of __metadata__; NULL: absent */
void aoth_st_each_meta(const aoth_st_t *st, void (*each)(void *self, const char *key, const char *value), void *self);
const char *aoth_st_path(const aoth_st_t *st);

typedef struct aoth_st_meta {
  const char *key, *value;
} aoth_st_meta_t;
/* Write n tensors of any geometry, contiguous in the file, larger dtypes first so that all are aligned. The file
 * appears whole or not at all (base/file.h). Two equal names or a dtype that the format lacks: AOT_E_INVALID. */
aot_status_t aoth_st_write(const char *path, const aoth_st_entry_t *tensors, uint32_t n, const aoth_st_meta_t *meta,
                           uint32_t n_meta, aoth_sink_t *sink);
/* The same where the program chose the name (aoth_writer_begin_own), or with digests in the metadata (digests.h). */
#define AOTH_ST_OWN_NAME 1u
#define AOTH_ST_DIGESTS 2u
aot_status_t aoth_st_write_with(const char *path, uint32_t flags, const aoth_st_entry_t *tensors, uint32_t n,
                                const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink);
int aoth_st_has_dtype(int32_t dtype); /* 0: the format has no such elements */

#endif
