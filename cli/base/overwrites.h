/* A run must not write over what it reads: the model, the data, the pipeline's own file. */
#ifndef AOTH_OVERWRITES_H
#define AOTH_OVERWRITES_H

#include <config/pipeline.h>

/* Is the file at path, which the run writes, one that the pipeline reads? By device and inode, so that links and other
 * names do not hide it. path NULL: none is written. Reports at `where`; `what`: "the checkpoint". AOT_E_INVALID. */
aot_status_t aoth_pipeline_check_output(const aoth_pipeline_t *p, const char *path, const char *what,
                                        const aoth_where_t *where, aoth_sink_t *sink);
/* The same of everything that the file says is written. After the check of units: options name files, too. */
aot_status_t aoth_pipeline_check_outputs(const aoth_pipeline_t *p, aoth_sink_t *sink);

#endif
