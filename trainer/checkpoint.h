/* A training run on disk: every parameter, buffer and optimizer state by param.NAME, buffer.NAME, state.NAME, and in
 * the file's metadata where the run is. With it, continuing gives bit for bit what not stopping would have
 * given. */
#ifndef AOTH_CHECKPOINT_H
#define AOTH_CHECKPOINT_H

#include <base/sink.h>
#include <config/pipeline.h>
#include <trainer/tensors/random.h>
#include <step/step.h>

typedef struct aoth_checkpoint {
  int64_t step;         /* steps done; also the position in the data */
  aoth_random_t random; /* of the data */
  int64_t seed;
  int64_t offset;        /* random numbers drawn by the program itself */
  const char *optimizer; /* unit id, borrowed */
} aoth_checkpoint_t;

/* Which of several ranks this is, and how it talks with the others. */
typedef struct aoth_checkpoint_ranks {
  uint32_t rank, n;
  aoth_session_t *session; /* with n of 1: not looked at */
} aoth_checkpoint_ranks_t;

/* PATH is whole or untouched, also when a rank is killed on the way. One rank writes a file; of several each writes its
 * part below PATH, a folder on a file system that they share (saved_run.h). All ranks call it. */
aot_status_t aoth_checkpoint_save(const char *path, const aoth_step_t *s, const aoth_checkpoint_ranks_t *ranks,
                                  const aoth_checkpoint_t *at, aoth_sink_t *sink);
/* Loads leaves and position, whatever number of ranks wrote them. `at->optimizer` says what the run uses; another one
 * in the file is refused. A leaf that the file lacks, a tensor that the program lacks, another shape or dtype:
 * AOT_E_INVALID, located at `where` or the file. */
aot_status_t aoth_checkpoint_load(const char *path, aoth_step_t *s, const aoth_checkpoint_ranks_t *ranks,
                                  aoth_checkpoint_t *at, aoth_sink_t *sink);
/* A line that reports the checkpoint at path from others; of a folder, its index. */
aot_status_t aoth_checkpoint_say(const char *path, kit_text_t *out, aoth_sink_t *sink);
/* Before the work: can several ranks write their folder there, and is it one folder? All ranks call it, and all fail if
 * one does. */
aot_status_t aoth_checkpoint_check_folder(const char *path, const aoth_checkpoint_ranks_t *ranks,
                                          const aoth_where_t *where, aoth_sink_t *sink);

#endif
