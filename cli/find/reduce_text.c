/* On the text of a program (docs/IR.md), which is a statement a line as it is printed. Whether a changed text is a
 * program at all is for the one who is queried. */
#include <cli/find/reduce_bundle.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LEAVES 65536u
#define MOST_SIZES 64u

static int begins(const char *line, const char *with) { return strncmp(line, with, strlen(with)) == 0; }

static const char *next_line(const char *line) {
  const char *end = strchr(line, '\n');
  return end ? end + 1 : line + strlen(line);
}

/* Takes the place of r->text if the bundle still fails so with it; is freed otherwise. */
static int keep_if_fails(aoth_reduce_t *r, kit_text_t *text) {
  if (!text->failed && text->data && aoth_reduce_still_fails(r, text->data, text->size)) {
    kit_text_deinit(&r->text);
    r->text = *text;
    return 1;
  }
  kit_text_deinit(text);
  return 0;
}

/* ---- ports and unused leaves ---- */

static void drop_none_outputs(aoth_reduce_t *r) {
  kit_text_t text = {0};
  uint32_t n = 0;
  for (const char *line = r->text.data; line && *line; line = next_line(line)) {
    const char *end = next_line(line);
    const int is_none = begins(line, "  out ") && end - line > 7 && begins(end - 8, " = none\n");
    if (!is_none) kit_text_add(&text, line, (size_t)(end - line));
    n += is_none != 0;
  }
  if (n) keep_if_fails(r, &text);
  else kit_text_deinit(&text);
}

static const char *const of_leaves[] = {"parameter", "buffer", "constant", "user_input", "state", "gradient", "update"};

/* The number of the leaf that a line of a graph names: " in %x = parameter 3 : ..", " out gradient 3 = ..". NULL:
 * none. */
static const char *leaf_of(const char *line) {
  const char *at = begins(line, "  out ") ? line + 6 : begins(line, "  in ") ? strstr(line, " = ") : NULL;
  if (!at || at > next_line(line)) return NULL;
  at += begins(at, " = ") ? 3 : 0;
  for (size_t i = 0; i < sizeof of_leaves / sizeof *of_leaves; i++) {
    const size_t n = strlen(of_leaves[i]);
    if (begins(at, of_leaves[i]) && at[n] == ' ') return at + n + 1;
  }
  return NULL;
}

void aoth_reduce_leaves(aoth_reduce_t *r) {
  drop_none_outputs(r);
  uint32_t *number = calloc(MOST_LEAVES, sizeof *number); /* 0: not read; else the new number, counted from 1 */
  uint32_t n = 0, n_user = 0;
  kit_text_t text = {0};
  const char *all = r->text.data;
  for (const char *line = all; number && line && *line; line = next_line(line)) {
    const char *leaf = leaf_of(line);
    const unsigned long k = leaf ? strtoul(leaf, NULL, 10) : 0;
    if (leaf && k < MOST_LEAVES) number[k] = 1;
  }
  for (const char *line = all; number && line && *line; line = next_line(line)) {
    const char *end = next_line(line), *at = begins(line, "leaf ") ? line + 5 : leaf_of(line);
    char *after = NULL;
    const unsigned long k = at ? strtoul(at, &after, 10) : 0;
    if (at && begins(line, "leaf ")) {
      if (k >= MOST_LEAVES || !number[k]) continue;
      number[k] = ++n;
      kit_text_f(&text, "leaf %u", n - 1);
      if (begins(after, " user_input ")) kit_text_f(&text, " user_input %u", n_user++), strtoul(after + 12, &after, 10);
    } else if (at && k < MOST_LEAVES) {
      kit_text_add(&text, line, (size_t)(at - line));
      kit_text_f(&text, "%u", number[k] - 1);
    } else {
      after = (char *)(uintptr_t)line;
    }
    kit_text_add(&text, after, (size_t)(end - after));
  }
  free(number);
  keep_if_fails(r, &text);
}

/* ---- sizes and dtypes ---- */

/* A node without the types of its results, which its opset infers: " %a : f32[2], %b : i64[] = op .." -> " %a, %b = op
 * .." */
static void without_types(const char *line, const char *end, kit_text_t *out) {
  int depth = 0, is_type = 0, is_text = 0;
  for (const char *at = line; at < end; at++) {
    if (*at == '"') is_text = !is_text;
    if (!is_text && (*at == '[' || *at == '(')) depth++;
    if (!is_text && (*at == ']' || *at == ')')) depth--;
    if (!is_text && !depth && begins(at, " : ")) is_type = 1;
    if (!is_text && !depth && begins(at, ", %")) is_type = 0;
    if (!is_text && !depth && begins(at, " = ")) {
      kit_text_add(out, at, (size_t)(end - at));
      return;
    }
    if (!is_type) kit_text_add(out, at, 1);
  }
}

/* Every number `from` that is alone in brackets or between commas becomes `to`; in nodes types are left to
 * inference. */
static void with_size(const char *all, long from, long to, kit_text_t *out) {
  kit_text_t bare = {0};
  for (const char *line = all; *line; line = next_line(line)) {
    if (begins(line, "  %")) without_types(line, next_line(line), &bare);
    else kit_text_add(&bare, line, (size_t)(next_line(line) - line));
  }
  const char *text = bare.data ? bare.data : "";
  int depth = 0;
  for (const char *at = text; *at;) {
    char *after;
    depth += (*at == '[') - (*at == ']');
    const int is_number = depth && isdigit((unsigned char)*at) && !isalnum((unsigned char)at[-1]) && at[-1] != '.';
    if (!is_number) {
      kit_text_add(out, at++, 1);
      continue;
    }
    const long value = strtol(at, &after, 10);
    if (value == from && *after != '.') kit_text_f(out, "%ld", to);
    else kit_text_add(out, at, (size_t)(after - at));
    at = after;
  }
  kit_text_deinit(&bare);
}

static int largest_first(const void *a, const void *b) {
  const long x = *(const long *)a, y = *(const long *)b;
  return (x < y) - (x > y);
}

/* Sizes above 2 in the types of leaves and inputs, each once. */
static uint32_t list_sizes(const char *all, long *out) {
  uint32_t n = 0;
  for (const char *line = all; line && *line; line = next_line(line)) {
    if (!begins(line, "leaf ") && !begins(line, "  in ")) continue;
    for (const char *at = strchr(line, '['), *end = next_line(line); at && at < end && *at != '\n'; at++) {
      char *after;
      if (!isdigit((unsigned char)*at) || isalnum((unsigned char)at[-1])) continue;
      const long size = strtol(at, &after, 10);
      uint32_t k = 0;
      while (k < n && out[k] != size) k++;
      if (k == n && size > 2 && n < MOST_SIZES) out[n++] = size;
      at = after - 1;
    }
  }
  qsort(out, n, sizeof *out, largest_first);
  return n;
}

void aoth_reduce_sizes(aoth_reduce_t *r) {
  long sizes[MOST_SIZES];
  const uint32_t n = list_sizes(r->text.data, sizes);
  for (uint32_t i = 0; i < n; i++)
    for (long to = 1; to <= 3 && to < sizes[i]; to++) {
      kit_text_t text = {0};
      with_size(r->text.data, sizes[i], to, &text);
      if (keep_if_fails(r, &text)) break;
    }
}

void aoth_reduce_dtypes(aoth_reduce_t *r) {
  static const char *const dtypes[] = {"bf16", "f16", "f64", "c128", "c64"};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    kit_text_t text = {0};
    const size_t n = strlen(dtypes[i]);
    uint32_t n_changed = 0;
    for (const char *at = r->text.data; at && *at;) {
      const int is_it = begins(at, dtypes[i]) && at > r->text.data && !isalnum((unsigned char)at[-1]) &&
                        at[-1] != '_' && at[-1] != '%' && !isalnum((unsigned char)at[n]) && at[n] != '_';
      n_changed += is_it != 0;
      kit_text_add(&text, is_it ? "f32" : at, is_it ? 3 : 1);
      at += is_it ? n : 1;
    }
    if (n_changed) keep_if_fails(r, &text);
    else kit_text_deinit(&text);
  }
}
