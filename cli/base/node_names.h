/* What people call nodes and values of a program: texts that stay in an arena when the program is gone. */
#ifndef AOTH_NODE_NAMES_H
#define AOTH_NODE_NAMES_H

#include "kit/base/arena.h"
#include "kit/base/text.h"
#include <ir/program.h>

/* Begin with p and arena; kit_text_deinit(&m.text) at the end. Every function answers NULL where memory is short. */
typedef struct aoth_names {
  aot_prog_t *p;
  kit_arena_t *arena;
  kit_text_t text; /* used over and over */
} aoth_names_t;

const char *aoth_names_kept(aoth_names_t *m);                 /* what was written to m->text, printable */
const char *aoth_names_value(aoth_names_t *m, aot_value_t v); /* "%x", "%12" where it has no name */
const char *aoth_names_type(aoth_names_t *m, aot_value_t v);  /* "f32[8, 64]"; "" for what is no tensor */
/* Operator, and path in the user's model of the node or of what it was made from; "" where there is none. 0: no such
 * node. */
int aoth_names_node(aoth_names_t *m, aot_node_t n, const char **op, const char **module);

#endif
