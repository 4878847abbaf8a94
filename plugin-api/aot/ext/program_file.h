/* aot/ext/program_file.h - extension "aot.program-file/1", offered by the host: a file with a program in text form
 * (docs/IR.md), for units that take programs as options. */
#ifndef AOT_EXT_PROGRAM_FILE_H
#define AOT_EXT_PROGRAM_FILE_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_PROGRAM_FILE "aot.program-file/1"

typedef struct aot_ext_program_file {
  aot_table_t head;
  /* Reads the file into a program of its own. It has the operators of the program at hand, and is read through the
   * functions of aot_host_t.graph; it is not to be edited. A node that names no origin has one with the file and its
   * line. What is wrong with the file is told. Give *out back within the call. [stage-exclusive] */
  aot_status_t(AOT_CALL *read)(const struct aot_ext_program_file *x, aot_ctx_t *ctx, aot_str_t path, aot_prog_t **out);
  void(AOT_CALL *release)(const struct aot_ext_program_file *x, aot_ctx_t *ctx, aot_prog_t *prog); /* NULL: nothing */
} aot_ext_program_file_t;

#endif
