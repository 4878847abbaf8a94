/* The parser of the text form (docs/IR.md): linear, without recursion, stopping at the first error.
 *
 * The text is looked over once before it is read: lines that start with `graph` or `origin` declare what earlier lines
 * may name (regions, and origins, which are at the end where they do not disturb a reader). Complaints of the store
 * about an edit are located at the token in `focus`, or at the argument in question. */
#include <aot/assert.h>
#include <ir/text/parser.h>
#include <stdlib.h>
#include <string.h>

static void locate(void *self, uint32_t arg, aoth_where_t *out) {
  aoth_parser_t *s = self;
  const aoth_token_t *t = &s->focus;
  if (arg < s->args.n && s->args.at[arg].token.at) t = &s->args.at[arg].token;
  if (t->at) aoth_parse_where(s, t, out);
  else out->file = s->file;
}

static int starts_with(const char *at, const char *end, const char *word) {
  size_t n = strlen(word);
  return (size_t)(end - at) > n && memcmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == '\t');
}

/* Read one line by itself. */
static aot_status_t read_ahead(aoth_parser_t *s, const char *line, uint32_t number,
                               aot_status_t (*parse)(aoth_parser_t *s)) {
  aoth_lexer_init(&s->lexer, line, (size_t)(s->text_end - line));
  s->lexer.line = number;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse(s));
  kit_arena_reset(s->scratch);
  return AOT_OK;
}

static aot_status_t look_over(aoth_parser_t *s, const char *text) {
  uint32_t number = 1;
  for (const char *line = text; line < s->text_end; number++) {
    const char *nl = memchr(line, '\n', (size_t)(s->text_end - line)), *at = line;
    while (at < s->text_end && (*at == ' ' || *at == '\t')) at++;
    if (starts_with(at, s->text_end, "graph")) AOT_TRY(read_ahead(s, line, number, aoth_parse_graph_head));
    else if (starts_with(at, s->text_end, "origin")) AOT_TRY(read_ahead(s, line, number, aoth_parse_origin));
    if (!nl) break;
    line = nl + 1;
  }
  return AOT_OK;
}

/* aot 1 */
static aot_status_t parse_head(aoth_parser_t *s) {
  int64_t version;
  if (!aoth_at_word(s, "aot")) return aoth_parse_expected(s, "`aot 1`, the first line of every program");
  AOT_TRY(aoth_parse_next(s));
  aoth_token_t t = s->token;
  AOT_TRY(aoth_parse_i64(s, &version));
  if (version != 1)
    return aoth_parse_fail(s, &t, "text version %lld cannot be read; this host reads version 1", (long long)version);
  return aoth_parse_line_end(s);
}

static aot_status_t parse_program(aoth_parser_t *s, const char *text, size_t size) {
  AOT_TRY(look_over(s, text));
  aoth_lexer_init(&s->lexer, text, size);
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_head(s));
  while (s->token.kind != TOKEN_END) {
    AOT_TRY(aoth_parse_declaration(s));
    kit_arena_reset(s->scratch);
  }
  const aoth_properties_t read = {s->properties, s->property_names.n, s->property_names.at};
  aoth_properties_t all;
  if (!aoth_properties_union(s->scratch, s->p->properties, read, &all)) return aoth_parse_memory(s);
  return aoth_prog_set_properties(s->p, all);
}

static aot_status_t parse(aot_prog_t *p, const char *file, const char *text, size_t size, int lines) {
  aoth_parser_t s = {
      .p = p, .file = file ? file : "text", .text_end = text + size, .scratch = kit_arena_create(), .lines = lines};
  aoth_locator_t locator = {&s, locate};
  if (!s.scratch) return aoth_no_memory(p, "parsing", 0);
  aot_status_t status;
  if (!aoth_prog_is_empty(p)) {
    status =
        aoth_diagnose(p, AOT_E_PRECONDITION, "ir.not-empty", "%s: a program is parsed into an empty one only", s.file);
  } else {
    AOT_ASSERT(!p->locator);
    p->locator = &locator;
    status = parse_program(&s, text, size);
    p->locator = NULL;
  }
  kit_arena_destroy(s.scratch);
  aoth_labels_deinit(&s.graphs);
  aoth_labels_deinit(&s.values);
  aoth_labels_deinit(&s.symbols);
  free(s.lets.at);
  free(s.symbol_dims.at);
  free(s.property_names.at);
  free(s.origins.at);
  free(s.encodings.at);
  free(s.args.at);
  free(s.results.at);
  free(s.result_names.at);
  free(s.result_types.at);
  free(s.ints.at);
  free(s.dims.values.at);
  free(s.dims.ops.at);
  return status;
}

aot_status_t aoth_parse(aot_prog_t *p, const char *file, const char *text, size_t size) {
  return parse(p, file, text, size, 0);
}

aot_status_t aoth_parse_with_lines(aot_prog_t *p, const char *file, const char *text, size_t size) {
  return parse(p, file, text, size, 1);
}
