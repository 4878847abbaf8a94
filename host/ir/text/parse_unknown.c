/* The complaint about an operator that no opset knows. The rest of the text is looked through for others, so that one
 * run reports all of them; only the first tokens of each line matter for that. O(rest of the text). */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/parser.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TOLD 100u /* operators named in one report */

typedef struct unknown {
  aoth_token_t first; /* where it is first */
  aot_str_t name;
  uint32_t count;
} unknown_t;

typedef struct unknowns {
  AOTH_ROWS(unknown_t) rows;
  aoth_labels_t index; /* name -> row */
  uint32_t n_nodes;
} unknowns_t;

static aot_status_t note(aoth_parser_t *s, unknowns_t *all, const aoth_token_t *t, aot_str_t name) {
  uint32_t at;
  if (aoth_ops_find(s->p->ops, name).id != NONE) return AOT_OK;
  all->n_nodes++;
  if (aoth_labels_find(&all->index, name, &at)) {
    all->rows.at[at].count++;
    return AOT_OK;
  }
  if (!ROWS_ROOM(all->rows, 1) || !aoth_labels_put(&all->index, name, all->rows.n)) return aoth_parse_memory(s);
  all->rows.at[all->rows.n++] = (unknown_t){*t, name, 1};
  return AOT_OK;
}

/* A node's line is `op ..` or `%a, %b = op ..`; other lines start with a word of the text form, which has no dot. */
static aot_status_t look_on(aoth_parser_t *s, unknowns_t *all) {
  enum { HEAD, RESULTS, OPERATOR, REST } at = s->token.kind == TOKEN_LINE ? HEAD : REST;
  aoth_lexer_t lexer = s->lexer;
  aoth_token_t t;
  for (aoth_lexer_next(&lexer, &t); t.kind != TOKEN_END && t.kind != TOKEN_BAD; aoth_lexer_next(&lexer, &t)) {
    const int is_name = t.kind == TOKEN_WORD && memchr(t.text.data, '.', (size_t)t.text.size);
    if (t.kind == TOKEN_LINE) {
      at = HEAD;
    } else if (at == HEAD && t.kind == TOKEN_VALUE) {
      at = RESULTS;
    } else if (at == RESULTS) {
      if (lexer.depth == 0 && t.kind == TOKEN_PUNCT && t.text.size == 1 && *t.text.data == '=') at = OPERATOR;
    } else {
      if ((at == HEAD || at == OPERATOR) && is_name) AOT_TRY(note(s, all, &t, t.text));
      at = REST;
    }
  }
  return AOT_OK;
}

static void hint_nearest(aoth_parser_t *s, aot_str_t name) {
  aot_str_t near;
  if (aoth_ops_nearest(s->p->ops, name, &near)) aoth_hint(s->p, "did you mean %.*s?", STR_ARGS(near));
  else if (aoth_ops_count(s->p->ops) == 1) aoth_hint(s->p, "no operators are loaded: is the opset plugin there?");
}

static aot_status_t tell(aoth_parser_t *s, const unknowns_t *all) {
  const unknown_t *first = &all->rows.at[0];
  AOT_ASSERT(all->rows.n > 0 && all->rows.n <= all->n_nodes);
  if (all->n_nodes == 1 || aoth_ops_count(s->p->ops) == 1) {
    aoth_parse_fail(s, &first->first, "there is no operator %.*s", STR_ARGS(first->name));
    hint_nearest(s, first->name);
    return AOT_E_INVALID;
  }
  aoth_parse_fail(s, &first->first, "the program uses %u operator%s that no loaded opset knows (%u nodes)", all->rows.n,
                  all->rows.n == 1 ? "" : "s", all->n_nodes);
  for (uint32_t i = 0; i < all->rows.n && i < MOST_TOLD; i++) {
    const unknown_t *u = &all->rows.at[i];
    aoth_where_t where;
    aoth_parse_where(s, &u->first, &where);
    aoth_sink_report(s->p->ctx->sink, AOT_SEVERITY_NOTE, &where, "ir.syntax", "there is no operator %.*s: %u node%s%s",
                     STR_ARGS(u->name), u->count, u->count == 1 ? "" : "s", u->count == 1 ? "" : ", the first here");
    hint_nearest(s, u->name);
  }
  return AOT_E_INVALID;
}

aot_status_t aoth_parse_unknown_op(aoth_parser_t *s, const aoth_token_t *t, aot_str_t name) {
  unknowns_t all = {0};
  aot_status_t status = note(s, &all, t, name);
  if (status == AOT_OK) status = look_on(s, &all);
  if (status == AOT_OK) status = tell(s, &all);
  free(all.rows.at);
  aoth_labels_deinit(&all.index);
  return status;
}
