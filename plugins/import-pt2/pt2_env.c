/* pt2_env.c - errors, memory and the few string questions of the importer. */
#include "pt2_env.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

aot_status_t p2_fail(p2_env_t *e, const char *code, const char *format, ...) {
  va_list list;
  if (e->error.code) return AOT_E_INVALID;
  e->error.code = code;
  va_start(list, format);
  vsnprintf(e->error.message, sizeof e->error.message, format, list);
  va_end(list);
  return AOT_E_INVALID;
}

void p2_add(p2_env_t *e, const char *format, ...) {
  const size_t n = strlen(e->error.message);
  va_list list;
  if (!e->error.code) return;
  va_start(list, format);
  vsnprintf(e->error.message + n, sizeof e->error.message - n, format, list);
  va_end(list);
}

void p2_hint(p2_env_t *e, const char *format, ...) {
  va_list list;
  if (!e->error.code || e->error.hint[0]) return;
  va_start(list, format);
  vsnprintf(e->error.hint, sizeof e->error.hint, format, list);
  va_end(list);
}

void p2_byte(p2_env_t *e, uint64_t byte) {
  if (e->error.code && !e->error.byte) e->error.byte = byte;
}

aot_status_t p2_alloc(p2_env_t *e, uint32_t arena, uint32_t align, uint64_t n, uint64_t size, void **out) {
  *out = NULL;
  if (size && n > (UINT64_MAX >> 1) / size) {
    p2_fail(e, "import-pt2.too-large", "%llu elements of %llu bytes do not fit in memory", (unsigned long long)n,
            (unsigned long long)size);
    return AOT_E_EXHAUSTED;
  }
  if (n == 0 || size == 0) { /* a valid pointer to nothing, so that callers need no special case */
    n = 1;
    size = size ? size : 1;
  }
  *out = e->alloc(e->self, arena, align, n * size);
  if (*out) return AOT_OK;
  e->error.told = 1;
  return AOT_E_EXHAUSTED;
}

aot_status_t p2_grow(p2_env_t *e, void **array, uint32_t n, uint32_t *capacity, uint64_t size) {
  void *bigger;
  uint32_t room;
  if (n < *capacity) return AOT_OK;
  if (n >= UINT32_MAX / 2) return p2_fail(e, "import-pt2.too-large", "more than %u elements", UINT32_MAX / 2);
  room = n < 8 ? 16 : 2 * n;
  AOT_TRY(p2_alloc(e, P2_SCRATCH, (uint32_t) _Alignof(max_align_t), room, size, &bigger));
  if (n) memcpy(bigger, *array, (size_t)(n * size));
  *array = bigger;
  *capacity = room;
  return AOT_OK;
}

aot_str_t p2_str(const char *z) {
  aot_str_t s;
  s.data = z;
  s.size = z ? strlen(z) : 0;
  return s;
}

int p2_str_is(aot_str_t s, const char *z) { return s.size == strlen(z) && memcmp(s.data, z, (size_t)s.size) == 0; }

int p2_str_starts(aot_str_t s, const char *z) {
  size_t n = strlen(z);
  return s.size >= n && memcmp(s.data, z, n) == 0;
}

int p2_str_ends(aot_str_t s, const char *z) {
  size_t n = strlen(z);
  return s.size >= n && memcmp(s.data + (s.size - n), z, n) == 0;
}

aot_status_t p2_join(p2_env_t *e, aot_str_t a, aot_str_t b, const char *c, aot_str_t *out) {
  size_t n_c = strlen(c);
  char *text;
  AOT_TRY(p2_alloc(e, P2_SCRATCH, 1, a.size + b.size + n_c + 1, 1, (void **)&text));
  if (a.size) memcpy(text, a.data, (size_t)a.size);
  if (b.size) memcpy(text + a.size, b.data, (size_t)b.size);
  memcpy(text + a.size + b.size, c, n_c);
  out->data = text;
  out->size = a.size + b.size + n_c;
  return AOT_OK;
}
