/* aot/ext/cache.h - extension "aot.cache/1", offered by a unit's table: what the compile cache has to know of it. A
 * unit without it is taken at its contract: what it does follows from the program, its options, the environment it
 * read and its file. */
#ifndef AOT_EXT_CACHE_H
#define AOT_EXT_CACHE_H

#include <aot/backend.h>
#include <aot/base.h>
#include <aot/import.h>
#include <aot/status.h>

#define AOT_EXT_CACHE "aot.cache/1"

typedef struct aot_ext_cache {
  aot_table_t head;
  /* Importers: write bytes that are equal for two files exactly when their programs and tensors are. Without it (NULL)
   * the host reads the whole file. No diagnostics on files that are not the importer's: any status but AOT_OK means
   * "read all of it". [stage-exclusive] */
  aot_status_t(AOT_CALL *model_key)(const struct aot_ext_cache *x, aot_ctx_t *ctx, const aot_file_t *file,
                                    const aot_bytes_sink_t *sink);
  /* Any unit, after its call: why the result must not be kept (it asked the clock, another machine, ..); size 0: it may
   * be. NULL: it always may. [stage-exclusive] */
  aot_status_t(AOT_CALL *why_not)(const struct aot_ext_cache *x, aot_ctx_t *ctx, aot_str_t *out_reason);
} aot_ext_cache_t;

#endif
