/* A growing byte buffer for text, and the small string questions every layer queries. */
#ifndef KIT_TEXT_H
#define KIT_TEXT_H

#include <aot/base.h>
#include <stdarg.h>
#include <stddef.h>

typedef struct kit_text { /* zero-initialise; data is terminated */
  char *data;
  size_t size, capacity;
  int failed; /* an allocation failed: contents are cut */
} kit_text_t;

void kit_text_deinit(kit_text_t *t);
void kit_text_add(kit_text_t *t, const char *bytes, size_t n);
void kit_text_str(kit_text_t *t, aot_str_t s);
void kit_text_z(kit_text_t *t, const char *s);
void kit_text_f(kit_text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kit_text_v(kit_text_t *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void kit_text_i64(kit_text_t *t, int64_t i);
void kit_text_double(kit_text_t *t, double d);  /* shortest text that reads back to the same double; inf, -inf, nan */
void kit_text_json(kit_text_t *t, aot_str_t s); /* quoted and escaped; bytes that are not UTF-8 become U+FFFD */

size_t kit_utf8_length(const char *at,
                       size_t n); /* bytes of the UTF-8 character at `at`, n > 0 of them there; 0: none */

/* The candidate nearest to word by edit distance, when near enough to be a slip (<= 1 + length/4); index or -1. */
int kit_nearest(aot_str_t word, const aot_str_t *candidates, size_t n);

#endif
