/* Reading einsum's equation. The rules are those of torch.einsum: spaces mean nothing; without an arrow the result has
 * the ellipsis, then the letters that appear once, in alphabetical order, capitals first. */
#include "einsum.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_OF_ELLIPSIS 52

static int wrong(at_einsum_t *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wrong(at_einsum_t *e, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(e->why, sizeof e->why, format, list);
  va_end(list);
  return 0;
}

static int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

/* A part of the equation: its letters, and where among them the ellipsis stands (-1: nowhere). */
typedef struct term {
  uint8_t letter[AOT_MAX_RANK];
  int32_t n, ellipsis;
} term_t;

static int read_term(at_einsum_t *e, const char *at, size_t size, term_t *out) {
  size_t i;
  out->n = 0;
  out->ellipsis = -1;
  for (i = 0; i < size; i++) {
    if (isspace((unsigned char)at[i])) continue;
    if (at[i] == '.') {
      if (size - i < 3 || memcmp(at + i, "...", 3) != 0) return wrong(e, "a '.' that is no part of an ellipsis '...'");
      if (out->ellipsis >= 0) return wrong(e, "two ellipses in one term");
      out->ellipsis = out->n;
      i += 2;
      continue;
    }
    if (label_of(at[i]) < 0) return wrong(e, "'%c' is no subscript; they are letters", at[i]);
    if (out->n == AOT_MAX_RANK) return wrong(e, "more than %d subscripts in one term", AOT_MAX_RANK);
    out->letter[out->n++] = (uint8_t)label_of(at[i]);
  }
  return 1;
}

/* The labels of a term whose ellipsis represents the last `covered` of `widest` dimensions. */
static int spread(at_einsum_t *e, const term_t *t, int32_t covered, int32_t widest, uint8_t *out, int32_t *out_n) {
  int32_t i, k, n = 0;
  if (t->n + covered > AOT_MAX_RANK) return wrong(e, "a term of more than %d dimensions", AOT_MAX_RANK);
  for (i = 0; i <= t->n; i++) {
    if (i == t->ellipsis)
      for (k = 0; k < covered; k++) out[n++] = (uint8_t)(FIRST_OF_ELLIPSIS + widest - covered + k);
    if (i < t->n) out[n++] = t->letter[i];
  }
  *out_n = n;
  return 1;
}

static int imply_result(at_einsum_t *e, const uint32_t *times, int32_t widest) {
  int32_t i;
  e->out_rank = 0;
  for (i = 0; i < widest; i++) e->out[e->out_rank++] = (uint8_t)(FIRST_OF_ELLIPSIS + i);
  for (i = 0; i < FIRST_OF_ELLIPSIS; i++) {
    if (times[i] != 1) continue;
    if (e->out_rank == AOT_MAX_RANK) return wrong(e, "a result of more than %d dimensions", AOT_MAX_RANK);
    e->out[e->out_rank++] = (uint8_t)i;
  }
  return 1;
}

static int read_result(at_einsum_t *e, const char *at, size_t size, const uint32_t *times, int32_t widest) {
  uint8_t seen[FIRST_OF_ELLIPSIS] = {0};
  term_t t;
  int32_t i;
  if (!read_term(e, at, size, &t)) return 0;
  for (i = 0; i < t.n; i++) {
    int l = t.letter[i];
    char c = (char)(l < 26 ? 'A' + l : 'a' + l - 26);
    if (times[l] == 0) return wrong(e, "subscript '%c' of the result is in no operand", c);
    if (seen[l]) return wrong(e, "subscript '%c' is twice in the result", c);
    seen[l] = 1;
  }
  return spread(e, &t, t.ellipsis >= 0 ? widest : 0, widest, e->out, &e->out_rank);
}

/* The terms before the arrow, one an operand. */
static int read_operands(at_einsum_t *e, const char *equation, size_t size, const int32_t *ranks, uint32_t *times,
                         int32_t *widest) {
  static term_t none;
  term_t t[AT_EINSUM_OPERANDS];
  uint32_t n = 0, i;
  size_t at = 0, end;
  for (; at <= size; at = end + 1) {
    for (end = at; end < size && equation[end] != ','; end++) continue;
    if (n == e->n_operands) return wrong(e, "more terms than the %u operands", e->n_operands);
    t[n] = none;
    if (!read_term(e, equation + at, end - at, &t[n])) return 0;
    if (t[n].ellipsis < 0 ? t[n].n != ranks[n] : t[n].n > ranks[n])
      return wrong(e, "term %u names %d dimensions, its operand has %d", n, (int)t[n].n, (int)ranks[n]);
    if (t[n].ellipsis >= 0 && ranks[n] - t[n].n > *widest) *widest = ranks[n] - t[n].n;
    n++;
  }
  if (n != e->n_operands) return wrong(e, "%u terms for %u operands", n, e->n_operands);
  for (i = 0; i < n; i++) {
    int32_t d;
    if (!spread(e, &t[i], t[i].ellipsis < 0 ? 0 : ranks[i] - t[i].n, *widest, e->label[i], &e->rank[i])) return 0;
    for (d = 0; d < t[i].n; d++) times[t[i].letter[d]]++;
  }
  return 1;
}

int at_einsum_read(at_einsum_t *e, const char *equation, size_t size, uint32_t n, const int32_t *ranks) {
  uint32_t times[FIRST_OF_ELLIPSIS] = {0};
  int32_t widest = 0;
  size_t arrow;
  memset(e, 0, sizeof *e);
  e->n_operands = n;
  if (n == 0 || n > AT_EINSUM_OPERANDS) return wrong(e, "%u operands; there may be 1 to %d", n, AT_EINSUM_OPERANDS);
  for (arrow = 0; arrow + 1 < size && memcmp(equation + arrow, "->", 2) != 0; arrow++) continue;
  if (arrow + 1 >= size) arrow = size;
  if (!read_operands(e, equation, arrow, ranks, times, &widest)) return 0;
  if (arrow == size) return imply_result(e, times, widest);
  return read_result(e, equation + arrow + 2, size - arrow - 2, times, widest);
}
