/* Edits as data: removed of a program's journal, and made again on any program that is as that one was before them,
 * ids included. Rows are plain and self-contained, so they can be stored, dropped or sent to another process; contents
 * of leaves are not included. Used by bisect, reduce and workers.
 *
 * A row is not stored while edits are made: right after an edit the program holds all there is to say about it, and
 * undo goes through these states, newest first. So taking costs what undoing costs, and an ordinary stage pays nothing
 * for it. */
#ifndef AOTH_REDO_H
#define AOTH_REDO_H

#include <ir/program.h>

/* kind, what `id`, `at` and `value` are, what `what` points to
 *
 *   GRAPH_CREATE     id: the graph's           at: its kind          aot_str_t, its name
 *   GRAPH_ERASE      id: graph
 *   INPUT_ADD        id: graph                                       aoth_input_t
 *   INPUT_ERASE      id: graph                 at: input
 *   OUTPUT_ADD       id: graph                                       aot_port_t
 *   OUTPUT_SET       id: graph                 at: output            value: what it is now, AOT_NO_ID: none
 *   OUTPUTS_CLEAR    id: graph
 *   NODE_CREATE      id: the node's            at: graph             aoth_made_node_t
 *   NODE_ERASE       id: node
 *   OPERAND_SET      id: node                  at: operand           value
 *   ARG_SET          id: node                  at: argument          aot_arg_t
 *   USES_REPLACE     id: value                                       value: in its place
 *   TYPE_SET         id: value                                       aot_type_t
 *   FLAGS_SET        id: node                  at: flags
 *   NAME_SET         id: value                                       aot_str_t
 *   NOTE             id: node                                        aot_str_t
 *   LEAF_CREATE .. ENCODING_CREATE  id: the row's                    aot_leaf_info_t, aot_rule_t, aot_origin_info_t,
 *                                                                    aot_symbol_info_t, aot_expr_info_t,
 *                                                                    aot_encoding_info_t
 *   LEAF_PART        id: leaf                                        aot_leaf_info_t, what it is now
 *   GUARD_ADD        id: the guard's                                 aot_guard_info_t */
#define AOTH_EDIT_MAP(X)                                                                                               \
  X(GRAPH_CREATE, 1, "graph_create")                                                                                   \
  X(GRAPH_ERASE, 2, "graph_erase")                                                                                     \
  X(INPUT_ADD, 3, "input_add")                                                                                         \
  X(INPUT_ERASE, 4, "input_erase")                                                                                     \
  X(OUTPUT_ADD, 5, "output_add")                                                                                       \
  X(OUTPUT_SET, 6, "output_set")                                                                                       \
  X(OUTPUTS_CLEAR, 7, "outputs_clear")                                                                                 \
  X(NODE_CREATE, 8, "node_create")                                                                                     \
  X(NODE_ERASE, 9, "node_erase")                                                                                       \
  X(OPERAND_SET, 10, "operand_set")                                                                                    \
  X(ARG_SET, 11, "arg_set")                                                                                            \
  X(USES_REPLACE, 12, "uses_replace")                                                                                  \
  X(TYPE_SET, 13, "type_set")                                                                                          \
  X(FLAGS_SET, 14, "flags_set")                                                                                        \
  X(NAME_SET, 15, "name_set")                                                                                          \
  X(NOTE, 16, "note")                                                                                                  \
  X(LEAF_CREATE, 17, "leaf_create")                                                                                    \
  X(RULE_ADD, 18, "rule_add")                                                                                          \
  X(ORIGIN_CREATE, 19, "origin_create")                                                                                \
  X(SYMBOL_CREATE, 20, "symbol_create")                                                                                \
  X(EXPR_CREATE, 21, "expr_create")                                                                                    \
  X(ENCODING_CREATE, 22, "encoding_create")                                                                            \
  X(LEAF_PART, 23, "leaf_part")                                                                                        \
  X(GUARD_ADD, 24, "guard_add")

enum {
#define AOTH_EDIT_KIND(name, number, text) EDIT_##name = number,
  AOTH_EDIT_MAP(AOTH_EDIT_KIND)
#undef AOTH_EDIT_KIND
};

typedef struct aoth_edit {
  uint32_t kind; /* EDIT_* */
  uint32_t id, at, value;
  const void *what;
} aoth_edit_t;

typedef struct aoth_input {
  aot_port_t port; /* its value: the id that it gets */
  aot_type_t type;
} aoth_input_t;

typedef struct aoth_made_node {
  aot_node_spec_t spec; /* all arguments, all result types */
  uint32_t before;      /* AOT_NO_ID: at the end */
  uint32_t is_typed;    /* its maker gave the types; else the opset had inferred them */
  uint32_t n_types, reserved;
  uint32_t *types; /* n_types of them in place of spec's, by the program's numbers; NULL: spec has them */
} aoth_made_node_t;

typedef struct aoth_edits {
  aoth_edit_t *at; /* oldest first */
  uint32_t n;
  kit_arena_t *arena; /* what they point to */
} aoth_edits_t;

/* The edits since the last begin, out of the program, which is then as it was at begin; that journal has ended as by
 * undo. AOT_E_EXHAUSTED: reported; undone all the same, *out is empty. O(edits and what they put in) */
aot_status_t aoth_edits_take(aot_prog_t *p, aoth_edits_t *out);
/* Makes them again. A row that does not fit stops it, reported: the program is not as it was. Edits are journalled like
 * any. */
aot_status_t aoth_edits_replay(aot_prog_t *p, const aoth_edits_t *edits);
void aoth_edits_deinit(aoth_edits_t *edits);
aot_status_t aoth_edit_replay(aot_prog_t *p, const aoth_edit_t *edit); /* one of them */
const char *aoth_edit_name(uint32_t kind);                             /* "node_create" */

/* Somebody who hears of edits as they are made, in their order, and of journals inside of the one that is open: what he
 * does likewise on another program as this one was makes it as this one is. An edit is reported when the next one
 * begins, and lasts as long as he looks: what it points to is the program's own, and types of a made node come by
 * number. */
typedef struct aoth_edit_listener {
  void *self;
  kit_arena_t *arena; /* for an edit of many results; reset by each such */
  void (*made)(void *self, const aoth_edit_t *edit);
  void (*begun)(void *self);  /* aoth_journal_begin */
  void (*undone)(void *self); /* aoth_journal_undo */
  void (*kept)(void *self);   /* aoth_journal_commit */
} aoth_edit_listener_t;

void aoth_edits_hear(aot_prog_t *p, const aoth_edit_listener_t *listener); /* borrowed; from now on */
void aoth_edits_tell(aot_prog_t *p);                                       /* also of the last one */

#endif
