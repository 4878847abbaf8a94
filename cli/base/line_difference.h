/* Which lines two texts do not share. */
#ifndef AOTH_LINE_DIFFERENCE_H
#define AOTH_LINE_DIFFERENCE_H

#include <aot/status.h>
#include <jansson.h>

/* Adds "removed", lines of the first that the second lacks, and "added", the other way round, as lists of texts without
 * the blanks before them. Lines count as often as they come. NULL: an empty text. O(n log n) */
aot_status_t aoth_line_difference(const char *before, const char *after, json_t *out);

#endif
