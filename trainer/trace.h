/* --trace: spans in Chrome's trace event format, for ui.perfetto.dev. Every function takes NULL for "no trace". */
#ifndef AOTH_TRACE_H
#define AOTH_TRACE_H

#include <aot/status.h>
#include <base/sink.h>
#include <stdint.h>

typedef struct aoth_trace aoth_trace_t;

aoth_trace_t *aoth_trace_create(const char *path); /* written by aoth_trace_write; NULL path: NULL */
/* A span that began at begin_ns and ends now. args: "\"nodes\": 12, \"edits\": 3" (JSON members) or NULL. */
void aoth_trace_span(aoth_trace_t *t, const char *category, const char *name, uint64_t begin_ns, const char *args);
/* One that is over, in a lane of its own: 1 is the host, 2 and above have the name that they are given. */
enum { AOTH_TRACE_HOST = 1, AOTH_TRACE_DEVICE };
void aoth_trace_lane(aoth_trace_t *t, int lane, const char *name);
void aoth_trace_past(aoth_trace_t *t, int lane, const char *category, const char *name, uint64_t begin_ns, uint64_t ns,
                     const char *args);
void aoth_trace_counter(aoth_trace_t *t, const char *name, double value);
aot_status_t aoth_trace_write(aoth_trace_t *t, aoth_sink_t *sink); /* atomically */
void aoth_trace_destroy(aoth_trace_t *t);

#endif
