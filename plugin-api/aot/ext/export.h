/* aot/ext/export.h - extension "aot.export/1", offered by the table of an importer: the way back, from a program to a
 * file of its format. The host finds the writer by the file's suffix (`aothost export`), makes the program functional
 * or joint, has the operators decomposed that the format does not know, and refuses what no exported program may
 * hold. */
#ifndef AOT_EXT_EXPORT_H
#define AOT_EXT_EXPORT_H

#include <aot/backend.h>
#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_EXPORT "aot.export/1"

typedef struct aot_ext_export {
  aot_table_t head;
  aot_str_t suffix; /* of the files that it writes, ".pt2" [session] */
  /* 1: who reads such files can know the operator of this full name; 0: it has to be decomposed. [stage-exclusive] */
  int32_t(AOT_CALL *knows)(const struct aot_ext_export *x, aot_str_t op);
  /* The forward or joint graph of a functional program, what it owns, and the leaves with their data, as bytes in
   * order. `name` is that of the file without folder and suffix. A joint graph has a loss output and takes no tangent
   * but the loss's, which is 1. The program is only read; equal programs give equal bytes. Diagnoses what the format
   * cannot hold. O(program + data) [stage-exclusive] */
  aot_status_t(AOT_CALL *write)(const struct aot_ext_export *x, aot_ctx_t *ctx, aot_prog_t *prog, aot_str_t name,
                                const aot_bytes_sink_t *sink);
} aot_ext_export_t;

#endif
