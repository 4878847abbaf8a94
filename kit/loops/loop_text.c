/* The text that is printed: one growing piece of memory. */
#include "loop.h"

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lp_text_add(lp_text_t *t, const char *data, uint64_t size) {
  if (t->failed) return;
  AOT_ASSERT(!t->data || (t->size < t->capacity && t->data[t->size] == 0));
  char *grown = kit_grow64(t->data, &t->capacity, t->size + size + 1, 1);
  if (!grown) {
    t->failed = 1;
    return;
  }
  t->data = grown;
  memcpy(t->data + t->size, data, (size_t)size);
  t->size += size;
  t->data[t->size] = 0;
}

void lp_print(lp_text_t *t, const char *format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (n < 0 || (size_t)n >= sizeof line) t->failed = 1;
  else lp_text_add(t, line, (uint64_t)n);
}

void lp_text_deinit(lp_text_t *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}
