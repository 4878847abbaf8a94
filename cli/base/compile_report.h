/* What a compile did, as text and as JSON: stages and the compile cache. */
#ifndef AOTH_COMPILE_REPORT_H
#define AOTH_COMPILE_REPORT_H

#include <compiler/compile.h>

void aoth_records_print(aoth_session_t *s, FILE *out);     /* --time: one row a unit */
struct json_t *aoth_cache_json(const aoth_session_t *s);   /* the "cache" object of --json; a new reference */
void aoth_cache_print(const aoth_session_t *s, FILE *out); /* one line */

/* Rows of an entry that differ from the key's, as sentences, by way of `each`. Environment included. Answers how many;
 * UINT32_MAX: about is not readable. */
uint32_t aoth_cache_differences(const struct json_t *about, const aoth_cache_key_t *key,
                                void (*each)(void *self, const char *what, const char *then, const char *now),
                                void *self);

#endif
