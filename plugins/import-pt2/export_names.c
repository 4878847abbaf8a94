/* export_names.c - names of an archive's values: identifiers of Python, each once in its graph.
 *
 * A value keeps the name it has where that is possible, so that an archive which goes through the host looks like
 * itself. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* Words that the code which torch.fx generates for a graph cannot have as names. */
static const char *const reserved[] = {
    "False",  "None",   "True",   "and",  "as",    "assert", "async",   "await",    "break", "class",     "continue",
    "def",    "del",    "device", "elif", "else",  "except", "finally", "for",      "from",  "fx_pytree", "global",
    "if",     "import", "in",     "inf",  "is",    "lambda", "nan",     "nonlocal", "not",   "or",        "pass",
    "pytree", "raise",  "return", "self", "torch", "try",    "while",   "with",     "yield"};

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

static int is_reserved(aot_str_t s) {
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (p2_str_is(s, reserved[i])) return 1;
  return 0;
}

/* Letters, digits and underlines; everything else becomes an underline. */
static aot_status_t cleaned(p2_env_t *e, const char *prefix, aot_str_t wish, int lower, aot_str_t *out) {
  const size_t n_prefix = strlen(prefix);
  char *text;
  AOT_TRY(p2_alloc(e, P2_SCRATCH, 1, n_prefix + wish.size + 2, 1, (void **)&text));
  uint64_t n = n_prefix;
  memcpy(text, prefix, n_prefix);
  if (!n && wish.size && !is_letter(wish.data[0])) text[n++] = '_';
  for (uint64_t i = 0; i < wish.size; i++) {
    char c = is_word(wish.data[i]) ? wish.data[i] : '_';
    text[n++] = lower && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
  }
  *out = (aot_str_t){text, n};
  return AOT_OK;
}

/* A free name: the wish itself, else the wish with the next number. Each taken name remembers its next number, so that
 * n values of one name cost O(n). */
static aot_status_t take(p2_writer_t *w, p2_page_t *page, aot_str_t wish, aot_str_t *out) {
  uint32_t row = 0;
  AOT_TRY(p2_grow(w->env, (void **)&page->next, page->n_next, &page->next_capacity, sizeof *page->next));
  aot_status_t status = is_reserved(wish) ? AOT_E_EXISTS : p2_names_add(w->env, &page->names, wish, page->n_next, &row);
  if (status == AOT_OK) {
    page->next[page->n_next++] = 1;
    *out = wish;
    return AOT_OK;
  }
  if (status != AOT_E_EXISTS) return status;
  uint32_t number = is_reserved(wish) ? 1 : page->next[row];
  for (;; number++) {
    char tail[16];
    aot_str_t candidate;
    snprintf(tail, sizeof tail, "_%u", (unsigned)number);
    AOT_TRY(p2_join(w->env, wish, p2_str(""), tail, &candidate));
    status = p2_names_add(w->env, &page->names, candidate, page->n_next, NULL);
    if (status == AOT_E_EXISTS) continue;
    AOT_TRY(status);
    page->next[page->n_next++] = 1;
    if (!is_reserved(wish)) page->next[row] = number + 1;
    *out = candidate;
    return AOT_OK;
  }
}

aot_status_t p2_identifier(p2_writer_t *w, p2_page_t *page, aot_str_t wish, const char *otherwise, aot_str_t *out) {
  aot_str_t clean;
  AOT_TRY(cleaned(w->env, "", wish.size ? wish : p2_str(otherwise), 0, &clean));
  return take(w, page, clean, out);
}

aot_status_t p2_placeholder(p2_writer_t *w, p2_page_t *page, const char *prefix, aot_str_t fqn, aot_str_t *out) {
  aot_str_t clean;
  AOT_TRY(cleaned(w->env, prefix, fqn, 1, &clean));
  return take(w, page, clean, out);
}

aot_status_t p2_name_value(p2_writer_t *w, p2_page_t *page, aot_value_t v, aot_str_t wish) {
  const aot_str_t own = w->host->graph->value_name(w->prog, v);
  return p2_identifier(w, page, own.size ? own : wish, "value", &w->value_names[v.id]);
}
