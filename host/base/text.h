/* A growing byte buffer for text, and the small string questions every layer queries. */
#ifndef AOTH_TEXT_H
#define AOTH_TEXT_H

#include <aot/base.h>
#include <stdarg.h>
#include <stddef.h>

typedef struct aoth_text { /* zero-initialise; data is terminated */
  char *data;
  size_t size, capacity;
  int failed; /* an allocation failed: contents are cut */
} aoth_text_t;

void aoth_text_deinit(aoth_text_t *t);
void aoth_text_add(aoth_text_t *t, const char *bytes, size_t n);
void aoth_text_str(aoth_text_t *t, aot_str_t s);
void aoth_text_z(aoth_text_t *t, const char *s);
void aoth_text_f(aoth_text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void aoth_text_v(aoth_text_t *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void aoth_text_i64(aoth_text_t *t, int64_t i);
void aoth_text_double(aoth_text_t *t, double d);  /* shortest text that reads back to the same double; inf, -inf, nan */
void aoth_text_json(aoth_text_t *t, aot_str_t s); /* quoted and escaped; bytes that are not UTF-8 become U+FFFD */

size_t aoth_utf8_length(const char *at,
                        size_t n); /* bytes of the UTF-8 character at `at`, n > 0 of them there; 0: none */

/* The candidate nearest to word by edit distance, when near enough to be a slip (<= 1 + length/4); index or -1. */
int aoth_nearest(aot_str_t word, const aot_str_t *candidates, size_t n);

#endif
