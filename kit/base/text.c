/* Growing text, numbers in text, and edit distance.
 *
 * Edit distance: optimal string alignment (Damerau 1964, restricted): insertion, deletion, substitution and the swap of
 * neighbours cost 1 each; three rows of the table are enough. */
#include "text.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kit_text_deinit(kit_text_t *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}

/* Room for n more bytes and the terminator. */
static int text_room(kit_text_t *t, size_t n) {
  if (t->failed || n > SIZE_MAX / 4) return t->failed = 1, 0;
  size_t need = t->size + n + 1;
  if (need <= t->capacity) return 1;
  size_t capacity = t->capacity ? t->capacity : 64;
  while (capacity < need) capacity *= 2;
  char *data = realloc(t->data, capacity);
  if (!data) return t->failed = 1, 0;
  t->data = data;
  t->capacity = capacity;
  return 1;
}

void kit_text_add(kit_text_t *t, const char *bytes, size_t n) {
  if (!text_room(t, n)) return;
  if (n) memcpy(t->data + t->size, bytes, n);
  t->size += n;
  t->data[t->size] = 0;
}

void kit_text_str(kit_text_t *t, aot_str_t s) { kit_text_add(t, s.data, (size_t)s.size); }

void kit_text_z(kit_text_t *t, const char *s) { kit_text_add(t, s, s ? strlen(s) : 0); }

void kit_text_f(kit_text_t *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  kit_text_v(t, format, args);
  va_end(args);
}

void kit_text_v(kit_text_t *t, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  size_t room = text_room(t, 31) ? t->capacity - t->size : 0;
  int n = room ? vsnprintf(t->data + t->size, room, format, args) : -1;
  if (n >= 0 && (size_t)n >= room && text_room(t, (size_t)n))
    vsnprintf(t->data + t->size, (size_t)n + 1, format, again);
  if (n >= 0 && !t->failed) t->size += (size_t)n;
  if (n >= 0 && t->failed && t->data) t->data[t->size] = 0;
  va_end(again);
}

void kit_text_i64(kit_text_t *t, int64_t i) {
  char digits[24];
  char *end = digits + sizeof digits, *p = end;
  uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  do *--p = (char)('0' + magnitude % 10);
  while (magnitude /= 10);
  if (i < 0) *--p = '-';
  kit_text_add(t, p, (size_t)(end - p));
}

void kit_text_double(kit_text_t *t, double d) {
  char buffer[40];
  if (isnan(d)) {
    kit_text_z(t, "nan");
    return;
  }
  if (isinf(d)) {
    kit_text_z(t, d > 0 ? "inf" : "-inf");
    return;
  }
  if (d == floor(d) && fabs(d) < 1e15 && !(d == 0 && signbit(d))) {
    kit_text_i64(t, (int64_t)d);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buffer, sizeof buffer, "%.*g", digits, d);
    if (strtod(buffer, NULL) == d) break;
  }
  kit_text_z(t, buffer);
}

size_t kit_utf8_length(const char *at, size_t n) {
  const unsigned char *c = (const unsigned char *)at;
  if (c[0] < 0x80) return 1;
  size_t length = c[0] >= 0xC2 && c[0] < 0xE0 ? 2 : (c[0] & 0xF0) == 0xE0 ? 3 : c[0] >= 0xF0 && c[0] < 0xF5 ? 4 : 0;
  if (!length || length > n) return 0;
  for (size_t i = 1; i < length; i++)
    if ((c[i] & 0xC0) != 0x80) return 0;
  if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F)) return 0; /* overlong; surrogates */
  if ((c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F)) return 0; /* overlong; beyond U+10FFFF */
  return length;
}

void kit_text_json(kit_text_t *t, aot_str_t s) {
  static const char hex[] = "0123456789abcdef";
  kit_text_add(t, "\"", 1);
  for (uint64_t i = 0; i < s.size;) {
    unsigned char c = (unsigned char)s.data[i];
    size_t length = kit_utf8_length(s.data + i, (size_t)(s.size - i));
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    const char *report_slot = c == '\n'   ? "\\n"
                              : c == '\t' ? "\\t"
                              : c == '\r' ? "\\r"
                              : c == '"'  ? "\\\""
                              : c == '\\' ? "\\\\"
                                          : NULL;
    if (!length) kit_text_add(t, "\\ufffd", 6);
    else if (report_slot) kit_text_add(t, report_slot, 2);
    else if (c < 0x20 || c == 0x7f) kit_text_add(t, escape, 6);
    else kit_text_add(t, s.data + i, length);
    i += length ? length : 1;
  }
  kit_text_add(t, "\"", 1);
}

#define NEAR_MAX 96 /* longer words are compared by their first bytes */

static unsigned min3(unsigned a, unsigned b, unsigned c) {
  unsigned m = a < b ? a : b;
  return m < c ? m : c;
}

/* Edit distance of a and b, or more than limit as soon as it must exceed it. */
static unsigned distance(const char *a, unsigned na, const char *b, unsigned nb, unsigned limit) {
  unsigned rows[3][NEAR_MAX + 1];
  unsigned *before = rows[0], *last = rows[1], *now = rows[2];
  if ((na > nb ? na - nb : nb - na) > limit) return limit + 1;
  for (unsigned j = 0; j <= nb; j++) last[j] = before[j] = j;
  for (unsigned i = 1; i <= na; i++) {
    unsigned best = now[0] = i;
    for (unsigned j = 1; j <= nb; j++) {
      now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
        now[j] = before[j - 2] + 1;
      if (now[j] < best) best = now[j];
    }
    if (best > limit) return limit + 1;
    unsigned *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[nb];
}

int kit_nearest(aot_str_t word, const aot_str_t *candidates, size_t n) {
  unsigned size = word.size < NEAR_MAX ? (unsigned)word.size : NEAR_MAX;
  unsigned limit = 1 + size / 4;
  int found = -1;
  for (size_t i = 0; i < n && limit != UINT32_MAX; i++) {
    unsigned other = candidates[i].size < NEAR_MAX ? (unsigned)candidates[i].size : NEAR_MAX;
    unsigned d = distance(word.data, size, candidates[i].data, other, limit);
    if (d > limit || d >= size + (size == 0)) continue; /* a word of other letters throughout is no slip */
    found = (int)i;
    limit = d - 1; /* the first of the nearest wins; d 0 ends the search */
  }
  return found;
}
