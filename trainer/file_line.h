#ifndef AOTH_FILE_LINE_H
#define AOTH_FILE_LINE_H

#include <base/sink.h>

/* A line about a file: its bytes, and a hash of places spread over it. It distinguishes two machines'
 * files of one name, at a cost independent of their size. */
aot_status_t aoth_said_file(kit_text_t *out, const char *path, aoth_sink_t *sink);

#endif
