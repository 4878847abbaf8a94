/* A snapshot as a backend's artifact: complete, relocatable, and checked when it is read. */
#ifndef LW_ARTIFACT_H
#define LW_ARTIFACT_H

#include "schedule.h"
#include <aot/backend.h>

/* magic: four letters that distinguish backends. The sink's own status. */
aot_status_t lw_write_artifact(const aot_snapshot_t *s, uint32_t magic, const aot_bytes_sink_t *sink);
/* *own is set, and the caller's to free, when the bytes had to be copied to an aligned place; else *out borrows them.
 * AOT_E_DATA_LOSS, _TOO_NEW, _EXHAUSTED. */
aot_status_t lw_read_artifact(const void *bytes, uint64_t nbytes, uint32_t magic, const char *backend,
                              const aot_snapshot_t **out, void **own, lw_error_t *e);

#endif
