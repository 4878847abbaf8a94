/* The parser's state and small steps, shared by its files; included by host/ir only. */
#ifndef AOTH_PARSER_H
#define AOTH_PARSER_H

#include "kit/base/map.h"
#include <ir/text/text_form.h>
#include <ir/text/text_lexer.h>

/* Labels of one kind and their ids. Zeros: none. */
typedef struct label {
  const char *text;
  uint32_t size, id;
} aoth_label_t;

typedef struct labels {
  kit_map_t map; /* text -> row */
  aoth_label_t *rows;
  uint32_t n, capacity;
} aoth_labels_t;

typedef struct dim_op {
  int32_t op;      /* AOT_EXPR_*, or -1: a parenthesis */
  int function;    /* written as a call */
  uint32_t commas; /* of a call */
  aoth_token_t token;
} aoth_dim_op_t;

typedef struct dim_parser { /* stacks of the expression parser, stored between expressions */
  AOTH_ROWS(int64_t) values;
  AOTH_ROWS(aoth_dim_op_t) ops;
} aoth_dim_parser_t;

typedef struct given_arg { /* one argument as written */
  aot_arg_t arg;
  aoth_token_t token;
  int given;
} aoth_given_arg_t;

typedef struct parser {
  aot_prog_t *p;
  const char *file, *text_end;
  aoth_lexer_t lexer;
  aoth_token_t token;   /* the one to be looked at */
  aoth_token_t focus;   /* what an edit in progress is about, for complaints of the store */
  kit_arena_t *scratch; /* arguments of the node being read, then of nothing */
  aoth_labels_t graphs, values, symbols;
  AOTH_ROWS(int64_t) lets;             /* dimension of $eN */
  AOTH_ROWS(int64_t) symbol_dims;      /* dimension of symbol N */
  AOTH_ROWS(aot_origin_t) origins;     /* origin of number N */
  AOTH_ROWS(aot_encoding_t) encodings; /* encoding of number N */
  AOTH_ROWS(aoth_given_arg_t) args;
  AOTH_ROWS(aoth_token_t) results; /* labels of the node being read */
  AOTH_ROWS(aot_str_t) result_names;
  AOTH_ROWS(aot_type_t) result_types;
  AOTH_ROWS(int64_t) ints; /* a list being read */
  aoth_dim_parser_t dims;
  uint32_t n_graphs_read;
  AOTH_ROWS(aot_str_t) property_names; /* those of vendors */
  uint32_t properties;                 /* become the program's when all is read */
  int lines;                           /* a node without an origin gets one: file and line */
} aoth_parser_t;

/* ---- steps (parse_step.c) ---- */
aot_status_t aoth_parse_fail(aoth_parser_t *s, const aoth_token_t *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
aot_status_t aoth_parse_expected(aoth_parser_t *s, const char *what); /* "expected WHAT, found .." */
aot_status_t aoth_parse_memory(aoth_parser_t *s);
void aoth_parse_where(aoth_parser_t *s, const aoth_token_t *t, aoth_where_t *out);
aot_status_t aoth_parse_next(aoth_parser_t *s); /* on to the next token; TOKEN_BAD is an error */
int aoth_at_punct(const aoth_parser_t *s, const char *text);
int aoth_at_word(const aoth_parser_t *s, const char *word);
aot_status_t aoth_parse_punct(aoth_parser_t *s, const char *text); /* expect it, and continue */
aot_status_t aoth_parse_line_end(aoth_parser_t *s);
aot_status_t aoth_parse_i64(aoth_parser_t *s, int64_t *out); /* an integer token */
aot_status_t aoth_token_i64(aoth_parser_t *s, const aoth_token_t *t, int64_t *out);
aot_status_t aoth_parse_bytes(aoth_parser_t *s, const void **out,
                              uint64_t *nbytes); /* a string of hexadecimal digits */
aot_status_t aoth_parse_u32(aoth_parser_t *s, uint32_t *out);
/* the text counts from 0 what counts from 1 here */
aot_status_t aoth_parse_number(aoth_parser_t *s, int from_one, uint32_t *out);
aot_status_t aoth_token_double(aoth_parser_t *s, const aoth_token_t *t, double *out);
aot_status_t aoth_parse_string(aoth_parser_t *s, aot_str_t *out); /* unescaped, in scratch or in the text */
aot_status_t aoth_parse_word_of(aoth_parser_t *s, const aoth_word_t *words, const char *what, int64_t *out);
aot_status_t aoth_parse_flags(aoth_parser_t *s, const aoth_word_t *words, const char *what,
                              uint32_t *out); /* up to } or line end */
int aoth_labels_find(const aoth_labels_t *l, aot_str_t label, uint32_t *out);
int aoth_labels_put(aoth_labels_t *l, aot_str_t label, uint32_t id); /* 0: no memory */
void aoth_labels_clear(aoth_labels_t *l);
void aoth_labels_deinit(aoth_labels_t *l);

/* ---- parts ---- */
aot_status_t aoth_parse_dim(aoth_parser_t *s, int64_t *out);                          /* parse_dim.c */
aot_status_t aoth_parse_dim_list(aoth_parser_t *s, const int64_t **out, uint32_t *n); /* [a, b]; in scratch */
aot_status_t aoth_parse_type(aoth_parser_t *s, aot_type_t *out); /* parse_type.c; arrays in scratch */
aot_status_t aoth_parse_geometry(aoth_parser_t *s, aot_type_t *out);
aot_status_t aoth_parse_args(aoth_parser_t *s, const aot_op_desc_t *d); /* parse_args.c; into s->args */
aot_status_t aoth_parse_op(aoth_parser_t *s, aot_op_t *out);
/* parse_unknown.c; always fails, reported */
aot_status_t aoth_parse_unknown_op(aoth_parser_t *s, const aoth_token_t *t, aot_str_t name);
aot_status_t aoth_parse_device(aoth_parser_t *s, int32_t *kind, int32_t *index);
aot_status_t aoth_parse_graph(aoth_parser_t *s); /* parse_graph.c */
aot_status_t aoth_parse_graph_head(aoth_parser_t *s);
aot_status_t aoth_parse_declaration(aoth_parser_t *s); /* parse_declare.c */
aot_status_t aoth_parse_origin(aoth_parser_t *s);

#endif
