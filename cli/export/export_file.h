/* aothost export: a program made functional or joint, held against what no exported program may hold, and written as a
 * file.
 *
 *     aoth_export_prepare    stages that are still missing, found by what they give; the rules (export_rules.c) on the
 *                            way
 *     aoth_export_write      text, or the format of the importer that writes files of that suffix (aot.export/1)
 *
 * The rules are those of aot_export_module (torch/_functorch/aot_autograd.py), each an error with a code of its own. */
#ifndef AOTH_EXPORT_FILE_H
#define AOTH_EXPORT_FILE_H

#include <config/pipeline.h>

typedef struct aoth_exported { /* what was written */
  const char *format;          /* "text", or the id of the importer that wrote it */
  uint64_t nbytes;
  uint32_t n_decomposed; /* nodes that the format does not know, replaced by what their opset makes of them */
} aoth_exported_t;

/* Makes the session's program functional and, with `joint`, joint. loss: number of the user output that is the loss,
 * -1: the program says it, or has one output only. Every complaint is reported; AOT_E_INVALID. */
aot_status_t aoth_export_prepare(aoth_session_t *s, int joint, int64_t loss);
/* path NULL or "-": text on the standard output. The file appears whole or not at all. */
aot_status_t aoth_export_write(aoth_session_t *s, const char *path, aoth_exported_t *out);

/* ---- export_rules.c ---- */
/* Of the functional program: its boundary, and with `joint` the loss. All complaints are made. */
aot_status_t aoth_export_check(aoth_session_t *s, int joint, int64_t loss);
/* Of the joint program: gradients are those of the loss alone, and all are there. The loss is given its role. */
aot_status_t aoth_export_check_joint(aoth_session_t *s, int64_t loss);

#endif
