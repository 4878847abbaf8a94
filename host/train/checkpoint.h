/* A training run on disk: every parameter, buffer and optimizer state by param.NAME, buffer.NAME, state.NAME, and in
 * the file's metadata where the run stands. With it, continuing gives bit for bit what not stopping would have
 * given. */
#ifndef AOTH_CHECKPOINT_H
#define AOTH_CHECKPOINT_H

#include <base/sink.h>
#include <step/random.h>
#include <step/step.h>

typedef struct aoth_checkpoint {
  int64_t step;         /* steps done; also the position in the data */
  aoth_random_t random; /* of the data */
  int64_t seed;
  int64_t offset;        /* random numbers drawn by the program itself */
  const char *optimizer; /* unit id, borrowed */
} aoth_checkpoint_t;

/* PATH is whole or untouched. */
aot_status_t aoth_checkpoint_save(const char *path, const aoth_step_t *s, const aoth_checkpoint_t *at,
                                  aoth_sink_t *sink);
/* Loads leaves and position. `at->optimizer` says what the run uses; another one in the file is refused. A leaf that
 * the file lacks, a tensor that the program lacks, another shape or dtype: AOT_E_INVALID, located at `where` or the
 * file. */
aot_status_t aoth_checkpoint_load(const char *path, aoth_step_t *s, aoth_checkpoint_t *at, aoth_sink_t *sink);

#endif
