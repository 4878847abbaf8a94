/* What several ranks write of a training run: a folder (saved_run.h).
 *
 * 1. The first rank makes a new folder below PATH.   2. Every rank writes its file there.
 * 3. When all have reported that theirs is done, the first replaces the index, and removes the folders it does not
 * name.
 *
 * Until the index is replaced it names the folder before, so that PATH is a whole checkpoint code that is killed
 * when. */
#ifndef AOTH_SAVE_OF_RANKS_H
#define AOTH_SAVE_OF_RANKS_H

#include <trainer/tensors/safetensors.h>
#include <trainer/checkpoint.h>

/* Rows of the whole, of which each of n ranks has per_rank; flags: of the leaf (aot/ext/leaf_part.h). */
int64_t aoth_rows_of_parts(int64_t per_rank, uint32_t n, uint32_t flags);

/* All ranks call it, and all fail if one does. */
aot_status_t aoth_save_of_ranks(const char *path, const aoth_step_t *s, const aoth_checkpoint_ranks_t *ranks,
                                int64_t step, const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink);

#endif
