/* Diagnostics: one place where every complaint goes, with its location, caret and notes. */
#ifndef AOTH_SINK_H
#define AOTH_SINK_H

#include <aot/diag.h>
#include <aot/status.h>
#include "kit/base/arena.h"
#include "kit/base/text.h"
#include <stdio.h>

/* A location a user can open. line 0: none. */
typedef struct aoth_where {
  const char *file; /* terminated; NULL: none */
  uint32_t line, column, end_column;
  const char *source; /* text of that line, for the caret; NULL: none */
} aoth_where_t;

typedef struct aoth_sink aoth_sink_t;

/* Every function takes NULL for a sink that swallows all, and may be called from any thread.
 * out NULL collects silently (aoth_sink_text reads it back). Messages are printed as they come, escaped and cut to 16
 * KiB. */
aoth_sink_t *aoth_sink_create(FILE *out);
void aoth_sink_destroy(aoth_sink_t *s);
void aoth_sink_report(aoth_sink_t *s, int32_t severity, const aoth_where_t *where, const char *code, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));
void aoth_sink_v(aoth_sink_t *s, int32_t severity, const aoth_where_t *where, const char *code, const char *format,
                 va_list args) __attribute__((format(printf, 5, 0)));
/* A line that belongs to the report before it, indented: "hint: ..", "in stage ..". Hidden when that report was
 * hidden. */
void aoth_sink_line(aoth_sink_t *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t aoth_sink_count(const aoth_sink_t *s, int32_t severity); /* how many so far of at least this severity */
void aoth_sink_first_error(const aoth_sink_t *s, char *out, size_t size); /* its message, cut; "": there is none */
/* An error "no memory FORMAT": "for a step", "to compare %u ranks". Returns AOT_E_EXHAUSTED. */
aot_status_t aoth_sink_no_memory(aoth_sink_t *s, const aoth_where_t *where, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* `status` of a call that began with so many errors reported: one that failed and said nothing ran out of memory, which
 * is reported here: "no memory to DOING". Returns status, or AOT_E_EXHAUSTED. */
aot_status_t aoth_sink_exhausted(aoth_sink_t *s, uint32_t errors, aot_status_t status, const char *doing);
const char *aoth_sink_text(const aoth_sink_t *s); /* printed so far, the first 16 MiB */
/* What a fork of this process has printed through its copy: text, and counts by severity, 0 to ERROR. */
void aoth_sink_adopt(aoth_sink_t *s, const char *text, size_t size, const uint32_t *counts);
void aoth_sink_min(aoth_sink_t *s, int32_t severity); /* print nothing below (-q, -v) */

#endif
