/* Pipeline files as trees with positions.
 *
 * A safe subset of YAML 1.2, core schema: maps with plain keys, lists, scalars; no tags, no merge keys, no second
 * document; duplicate keys are refused; aliases are copies and bounded. JSON is fine. Every node knows where it was
 * written. */
#ifndef AOTH_YAML_H
#define AOTH_YAML_H

#include <aot/status.h>
#include "kit/base/arena.h"
#include <base/sink.h>
#include "kit/base/text.h"

#define AOTH_YAML_SCALAR 1
#define AOTH_YAML_LIST 2
#define AOTH_YAML_MAP 3

/* One text that was read: a file, or the value of a --set. */
typedef struct aoth_yaml_file {
  const char *name; /* the path as opened; "--set run.train.steps" */
  const char *dir;  /* relative paths start here */
  const char *text;
  size_t size;
  const size_t *lines; /* offset of each line's first byte */
  uint32_t n_lines;
  const struct aoth_yaml_file *includer; /* the file whose include: brought it here, or NULL */
  uint32_t include_line;
} aoth_yaml_file_t;

typedef struct aoth_yaml aoth_yaml_t;
typedef struct aoth_yaml_pair {
  aoth_yaml_t *key, *value;
} aoth_yaml_pair_t;
struct aoth_yaml {
  int32_t kind;   /* AOTH_YAML_* */
  int32_t quoted; /* scalars: written in quotes or as a block: always a string */
  aot_str_t text; /* scalars; terminated */
  uint32_t n;     /* items or pairs */
  uint32_t capacity;
  aoth_yaml_t **items;     /* LIST */
  aoth_yaml_pair_t *pairs; /* MAP */
  const aoth_yaml_file_t *file;
  uint32_t line, column, end_column; /* 1-based bytes; end exclusive */
  uint32_t expanded;                 /* its variables are filled in, or it holds none */
  const aoth_yaml_t *variable;       /* the variable's value that this text consists of; NULL: written here */
  uint32_t used;                     /* variables: something reads it */
  uint32_t failed; /* a variable in it could not be filled in, reported: nothing need complain of the text */
};

/* Parse one document. Complaints go to the sink; AOT_E_INVALID, and *out is the tree all the same where one could be
 * made, so that the caller can continue complaining. Texts are copied. */
aot_status_t aoth_yaml_parse(kit_arena_t *arena, const char *name, const char *dir, const char *text, size_t size,
                             const aoth_yaml_file_t *includer, uint32_t include_line, aoth_sink_t *sink,
                             aoth_yaml_t **out);

aoth_yaml_t *aoth_yaml_get(const aoth_yaml_t *map, const char *key); /* NULL: absent, or not a map */
/* An error at a node, with notes on where it comes from: the variable that filled it, the file that includes this
 * one. */
void aoth_yaml_error(aoth_sink_t *sink, kit_arena_t *arena, const aoth_yaml_t *node, const char *code,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* These notes alone, for an error that was reported in another way. node NULL: none. */
void aoth_yaml_notes(aoth_sink_t *sink, kit_arena_t *arena, const aoth_yaml_t *node, const char *code);
aoth_where_t aoth_yaml_where(kit_arena_t *arena, const aoth_yaml_t *node); /* with the source line */
aoth_yaml_t *aoth_yaml_copy(kit_arena_t *arena, const aoth_yaml_t *node);
/* Set or replace; a new key is at the end. 0: no memory. */
int aoth_yaml_put(kit_arena_t *arena, aoth_yaml_t *map, aoth_yaml_t *key, aoth_yaml_t *value);
int aoth_yaml_append(kit_arena_t *arena, aoth_yaml_t *list, aoth_yaml_t *item);
aoth_yaml_t *aoth_yaml_scalar(kit_arena_t *arena, const aoth_yaml_t *like, const char *text, size_t size);
/* A text that is what it is, from the command line: no YAML, no variables. `name` is what complaints call it. */
aoth_yaml_t *aoth_yaml_literal(kit_arena_t *arena, const char *name, const char *text);
aoth_yaml_t *aoth_yaml_map(kit_arena_t *arena, const aoth_yaml_t *like); /* empty, placed where `like` is */

/* What a plain scalar means in the core schema. Each answers 1 when the node is one. */
int aoth_yaml_is_null(const aoth_yaml_t *node);
int aoth_yaml_bool(const aoth_yaml_t *node, int *out);
int aoth_yaml_i64(const aoth_yaml_t *node, int64_t *out); /* decimal, 0x hexadecimal */
int aoth_yaml_f64(const aoth_yaml_t *node, double *out);  /* integers too; .inf, .nan */
const char *aoth_yaml_kind(const aoth_yaml_t *node);      /* "a map", "a list", "null", "a boolean", "an integer", .. */
/* Print a scalar so that it reads back: plain when safe, else quoted. */
void aoth_yaml_print_text(kit_text_t *out, aot_str_t text);

#endif
