#include <cli/base/line_difference.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct line {
  const char *at;
  size_t size;
  uint32_t number;
} line_t;

static uint32_t count_lines(const char *text) {
  uint32_t n = 0;
  for (const char *c = text; c && *c; c++) n += *c == '\n' || !c[1];
  return n;
}

static int compare_text(const line_t *x, const line_t *y) {
  const size_t n = x->size < y->size ? x->size : y->size;
  const int order = memcmp(x->at, y->at, n);
  return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int compare_lines(const void *a, const void *b) {
  const line_t *x = a, *y = b;
  const int order = compare_text(x, y);
  return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int compare_numbers(const void *a, const void *b) {
  const line_t *x = a, *y = b;
  return (x->number > y->number) - (x->number < y->number);
}

static void split(const char *text, line_t *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const size_t size = strcspn(text, "\n"), blanks = strspn(text, " ");
    const size_t skipped = blanks < size ? blanks : size;
    out[i] = (line_t){text + skipped, size - skipped, i};
    text += size + (text[size] == '\n');
  }
  qsort(out, n, sizeof *out, compare_lines);
}

static json_t *in_order(line_t *lines, uint32_t n) {
  json_t *list = json_array();
  qsort(lines, n, sizeof *lines, compare_numbers);
  for (uint32_t i = 0; i < n; i++) json_array_append_new(list, json_stringn(lines[i].at, lines[i].size));
  return list;
}

aot_status_t aoth_line_difference(const char *before, const char *after, json_t *out) {
  const uint32_t n_a = count_lines(before), n_b = count_lines(after);
  line_t *a = malloc((n_a + (size_t)1) * sizeof *a), *b = malloc((n_b + (size_t)1) * sizeof *b);
  uint32_t only_a = 0, only_b = 0;
  if (a && b) {
    split(before, a, n_a);
    split(after, b, n_b);
    for (uint32_t i = 0, k = 0; i < n_a || k < n_b;) {
      const int order = i == n_a ? 1 : k == n_b ? -1 : compare_text(&a[i], &b[k]);
      if (order < 0) a[only_a++] = a[i];
      if (order > 0) b[only_b++] = b[k];
      i += order <= 0;
      k += order >= 0;
    }
    json_object_set_new(out, "removed", in_order(a, only_a));
    json_object_set_new(out, "added", in_order(b, only_b));
  }
  const aot_status_t status = a && b ? AOT_OK : AOT_E_EXHAUSTED;
  free(a);
  free(b);
  return status;
}
