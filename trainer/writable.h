/* Can a file be written here? Asked before work whose result goes there. */
#ifndef AOTH_WRITABLE_H
#define AOTH_WRITABLE_H

#include <aot/status.h>
#include <base/sink.h>

/* path NULL: fine. Complains at `where`, naming the folder; `what`: "the checkpoint". AOT_E_INVALID. */
aot_status_t aoth_check_writable(const char *path, const char *what, const aoth_where_t *where, aoth_sink_t *sink);

/* A file that is written again and again, and read back: a path that names a pipe or a device is refused. */
aot_status_t aoth_check_regular(const char *path, const char *what, const aoth_where_t *where, aoth_sink_t *sink);

#endif
