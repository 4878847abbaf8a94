/* json_place.c - see json_place.h. */
#include "json_place.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_STEPS 2100 /* jansson nests at most 2048 deep */

/* ---- parsing ---- */

/* Replace the bare words of old writers, which are not JSON, by strings of the same length, so that positions stay. */
static int quote_bare_numbers(char *text, uint64_t size) {
  static const struct {
    const char *bare, *quoted;
  } words[] = {{"-Infinity", "\"-inf\"   "}, {"Infinity", "\"inf\"   "}, {"NaN", "\"N\""}};
  uint64_t i, n;
  size_t w;
  int in_string = 0, changed = 0;
  for (i = 0; i < size; i++) {
    if (in_string) {
      if (text[i] == '\\') i++;
      else if (text[i] == '"') in_string = 0;
      continue;
    }
    if (text[i] == '"') in_string = 1;
    for (w = 0; w < sizeof words / sizeof *words && !in_string; w++) {
      n = strlen(words[w].bare);
      if (size - i < n || memcmp(text + i, words[w].bare, (size_t)n) != 0) continue;
      memcpy(text + i, words[w].quoted, (size_t)n);
      i += n - 1;
      changed = 1;
      break;
    }
  }
  return changed;
}

aot_status_t p2_json_open(p2_env_t *e, p2_member_t *m, p2_doc_t *out) {
  json_error_t error;
  const uint8_t *bytes;
  aot_str_t label;
  char *copy;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_join(e, m->name, p2_str(""), "", &label));
  out->label = label.data;
  AOT_TRY(p2_zip_content(e, m, 1, &bytes));
  out->text = (const char *)bytes;
  out->size = m->nbytes;
  out->file_at = m->method == 0 ? m->at : 0;
  out->root = json_loadb(out->text, (size_t)out->size, JSON_REJECT_DUPLICATES, &error);
  if (out->root) return AOT_OK;
  AOT_TRY(p2_alloc(e, P2_SCRATCH, 1, m->nbytes, 1, (void **)&copy));
  memcpy(copy, bytes, (size_t)m->nbytes);
  if (quote_bare_numbers(copy, m->nbytes)) {
    out->text = copy;
    out->root = json_loadb(copy, (size_t)m->nbytes, JSON_REJECT_DUPLICATES, &error);
    if (out->root) return AOT_OK;
  }
  p2_fail(e, "import-pt2.bad-json", "%s, line %d column %d (byte %d of %llu): %s", label.data, error.line, error.column,
          error.position, (unsigned long long)out->size, error.text);
  p2_hint(e, "the member is cut short or damaged: export the model again");
  if (out->file_at && error.position > 0) p2_byte(e, out->file_at + (uint64_t)error.position);
  return AOT_E_INVALID;
}

void p2_json_close(p2_doc_t *d) {
  if (d->root) json_decref(d->root);
  d->root = NULL;
}

/* ---- places ---- */

typedef struct scan {
  const char *text;
  uint64_t size, i;
} scan_t;

static void skip_space(scan_t *s) {
  while (s->i < s->size && strchr(" \t\r\n", s->text[s->i])) s->i++;
}

static void skip_string(scan_t *s) {
  for (s->i++; s->i < s->size && s->text[s->i] != '"'; s->i++)
    if (s->text[s->i] == '\\') s->i++;
  s->i++;
}

/* One value, containers included: their end is where the nesting is back at zero. */
static void skip_value(scan_t *s) {
  uint64_t depth = 0;
  do {
    skip_space(s);
    if (s->i >= s->size) return;
    if (s->text[s->i] == '"') {
      skip_string(s);
    } else if (strchr("[{", s->text[s->i])) {
      depth++;
      s->i++;
    } else if (strchr("]}", s->text[s->i])) {
      depth--;
      s->i++;
    } else if (strchr(",:", s->text[s->i])) {
      s->i++;
    } else {
      while (s->i < s->size && !strchr(" \t\r\n,:[]{}\"", s->text[s->i])) s->i++;
    }
  } while (depth > 0);
}

static int enter(scan_t *s, const p2_at_t *step) {
  uint32_t n = 0;
  skip_space(s);
  if (s->i >= s->size || s->text[s->i] != (step->key ? '{' : '[')) return 0;
  s->i++;
  for (skip_space(s); s->i < s->size && !strchr("]}", s->text[s->i]); skip_space(s), n++) {
    if (step->key) {
      uint64_t begin = s->i + 1, length;
      if (s->text[s->i] != '"') return 0;
      skip_string(s);
      length = s->i - 1 - begin;
      skip_space(s);
      s->i++; /* the colon */
      if (length == strlen(step->key) && memcmp(s->text + begin, step->key, (size_t)length) == 0) return 1;
    } else if (n == step->index) {
      return 1;
    }
    skip_value(s);
    skip_space(s);
    if (s->i < s->size && s->text[s->i] == ',') s->i++;
  }
  return 0;
}

static uint32_t steps_of(const p2_at_t *at, const p2_at_t **steps) {
  uint32_t n = 0, i;
  const p2_at_t *a;
  for (a = at; a && a->up && n < MAX_STEPS; a = a->up) steps[n++] = a;
  for (i = 0; i < n / 2; i++) {
    a = steps[i];
    steps[i] = steps[n - 1 - i];
    steps[n - 1 - i] = a;
  }
  return n;
}

uint64_t p2_json_offset(const char *text, uint64_t size, const p2_at_t *at) {
  const p2_at_t *steps[MAX_STEPS];
  uint32_t n = steps_of(at, steps), i;
  scan_t s = {text, size, 0};
  for (i = 0; i < n; i++)
    if (!enter(&s, steps[i])) return size;
  skip_space(&s);
  return s.i < size ? s.i : size;
}

void p2_json_path(const p2_at_t *at, char *out, size_t size) {
  const p2_at_t *steps[MAX_STEPS];
  uint32_t n = steps_of(at, steps), i;
  size_t used = 0;
  out[0] = 0;
  for (i = 0; i < n && used + 1 < size; i++) {
    int k = steps[i]->key ? snprintf(out + used, size - used, "%s%s", i ? "." : "", steps[i]->key)
                          : snprintf(out + used, size - used, "[%u]", steps[i]->index);
    used += k > 0 ? (size_t)k : 0;
  }
}

aot_status_t p2_bad(p2_env_t *e, const p2_doc_t *d, const p2_at_t *at, const char *code, const char *format, ...) {
  char path[300], text[700];
  uint64_t offset, line = 1, i, line_begin = 0;
  va_list list;
  if (e->error.code) return AOT_E_INVALID;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  offset = p2_json_offset(d->text, d->size, at);
  for (i = 0; i < offset; i++)
    if (d->text[i] == '\n') line++, line_begin = i + 1;
  p2_json_path(at, path, sizeof path);
  p2_fail(e, code, "%s, line %llu column %llu (%s): %s", d->label, (unsigned long long)line,
          (unsigned long long)(offset - line_begin + 1), path[0] ? path : "the root", text);
  if (d->file_at) p2_byte(e, d->file_at + offset);
  return AOT_E_INVALID;
}
