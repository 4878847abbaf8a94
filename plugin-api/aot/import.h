/* aot/import.h - unit kind import/1: a model file becomes a program. The host opens and maps the file; the importer
 * reads only those bytes, and writes through the edit functions. Tensors may point into the mapping: it outlives the
 * program. */
#ifndef AOT_IMPORT_H
#define AOT_IMPORT_H

#include <aot/base.h>
#include <aot/status.h>

typedef struct aot_file {
  uint32_t struct_size;
  uint32_t reserved;
  aot_str_t path;   /* as the user wrote it */
  const void *data; /* [graph] mapped read-only, private */
  uint64_t nbytes;
} aot_file_t;

typedef struct aot_import {
  aot_table_t head;
  /* 0: not mine; 100: surely mine. Reads little. No diagnostics. [stage-exclusive] */
  aot_status_t(AOT_CALL *probe)(const struct aot_import *i, aot_ctx_t *ctx, const aot_file_t *file, int32_t *out_score);
  aot_status_t(AOT_CALL *read)(const struct aot_import *i, aot_ctx_t *ctx, const aot_file_t *file,
                               aot_prog_t *prog); /* [stage-exclusive] */
} aot_import_t;

#endif
