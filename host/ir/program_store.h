/* The store after aot_prog_t; included by host/ir only.
 *
 * Everything is a row of a growing array, named by its index; row 0 of those with ids is empty, so that 0 names
 * nothing. Rows that plugins hold pointers into (arguments, operands, dimensions, names) live in the store's arena and
 * never move.
 *
 *   graph  - input ports, output ports, first and last node
 *   node   - prev/next in its graph; args and operands in the arena; slots [slot_begin, slot_begin + n_operands)
 *   value  - type number, defining node or graph, head and tail of its use list
 *   slot   - one place that reads a value: an operand of a node or an output of a graph; doubly linked by value
 *   type   - interned: equal types have equal numbers and share their size and stride arrays
 *
 * An unlinked slot keeps its own prev and next, so that undo, which runs strictly backwards, can put it back exactly
 * where it was (dancing links: Knuth, "Dancing Links", 2000).
 * Invariants: ids only grow, and only undo takes them back; erased rows keep their contents, for the same reason. */
#ifndef AOTH_PROGRAM_STORE_H
#define AOTH_PROGRAM_STORE_H

#include "kit/base/map.h"
#include <aot/assert.h>
#include <aot/ext/size_guards.h>
#include <ir/program.h>
#include <ir/redo.h>
#include <ir/tables.h>
#include <ir/text/words.h>

#define NONE AOT_NO_ID

/* A growing array: AOTH_ROWS(aoth_node_row_t) nodes. */
#define AOTH_ROWS(type)                                                                                                \
  struct {                                                                                                             \
    type *at;                                                                                                          \
    uint32_t n, capacity;                                                                                              \
  }

typedef struct node_row {
  uint32_t op, graph, prev, next;
  uint32_t flags, region_tag, origin;
  uint32_t first_result, n_results;
  uint32_t n_args, n_operands, slot_begin;
  uint32_t alive;
  uint32_t reserved;
  aot_arg_t *args;
  uint32_t *operands; /* value ids; VALUES arguments point into it */
} aoth_node_row_t;

#define VALUE_DEAD 0x80000000u
typedef struct value_row {
  uint32_t type; /* type number, | VALUE_DEAD once erased */
  uint32_t def;  /* node, NONE: a graph input */
  uint32_t graph;
  uint32_t index; /* result or input number */
  uint32_t first_use, last_use, n_uses;
  uint32_t name; /* number in names, 0: none */
} aoth_value_row_t;

#define SLOT_OUTPUT 0x80000000u
typedef struct slot_row {
  uint32_t owner;   /* node, or graph | SLOT_OUTPUT */
  uint32_t operand; /* operand number, or output number */
  uint32_t arg;     /* argument that holds the operand */
  uint32_t prev, next;
} aoth_slot_row_t;

typedef struct graph_row {
  int32_t kind;
  uint32_t alive;
  aot_str_t name;
  uint32_t first, last, n_nodes;
  uint32_t n_refs; /* GRAPH arguments of live nodes that name it */
  AOTH_ROWS(aot_port_t) inputs;
  AOTH_ROWS(aot_port_t) outputs;
  AOTH_ROWS(uint32_t) output_slots; /* of each output; linked while the output has a value */
} aoth_graph_row_t;

typedef struct expr_row {
  aot_expr_info_t info;
  int64_t lo, hi;     /* bounds that hold for every choice of the symbols in their ranges */
  int64_t hint;       /* value with every symbol at its hint */
  uint32_t tree_size; /* operations and symbols when written out, saturating: decides between inline text and a `let` */
  uint32_t reserved;
} aoth_expr_row_t;

#define FACT_TERMS 8
/* What a guard says of a sum: terms in structural order, the last one positive. */
typedef struct fact_row {
  uint32_t n, guard;             /* number of the guard */
  int32_t is_equality, reserved; /* the sum is 0; else: it is not negative */
  int64_t base[FACT_TERMS], factor[FACT_TERMS], number;
} aoth_fact_row_t;

typedef struct ints_row { /* an interned array of dimensions */
  const int64_t *at;
  uint32_t n;
} aoth_ints_row_t;

/* What the journal keeps of one edit; u[] as said next to each kind in journal.c. */
typedef struct edit_row {
  uint32_t kind;
  uint32_t u[5];
  const void *p;
} aoth_edit_row_t;

/* Where a complaint about the edit in progress belongs in text (set by the parser). arg: argument number or
 * AOT_NO_INDEX. */
typedef struct aoth_locator {
  void *self;
  void (*find)(void *self, uint32_t arg, aoth_where_t *out);
} aoth_locator_t;

struct aot_prog {
  aoth_ops_t *ops;
  aot_ctx_t *ctx;
  aot_ctx_t no_ctx;         /* is in when none was given */
  kit_arena_t *graph_arena; /* handed to plugins */
  kit_arena_t *store;       /* bodies of rows */
  aoth_properties_t properties;
  uint32_t has_journal;
  /* an edit did, since the outermost begin: the the code that requested it may have ignored the error */
  int lacked_memory;
  uint64_t generation;                       /* counts edits */
  const struct aoth_edit_listener *listener; /* redo.h; NULL: nothing */
  void (*tell)(aot_prog_t *p);               /* the listener, of the edits after the first n_heard */
  uint32_t n_heard;
  char *model;
  const aoth_locator_t *locator;
  void (*print_node)(aot_prog_t *p, aot_node_t n, kit_text_t *out);             /* a line, for complaints */
  void (*print_call)(aot_prog_t *p, const aoth_node_row_t *n, kit_text_t *out); /* the same without results */
  /* What diagnostics that name no node are about: the node that an edit checks and has not made yet (NULL: none), else
   * the one that an opset is queried about (NONE: none). */
  const aoth_node_row_t *making;
  uint32_t asked_about;
  const uint32_t *node_map; /* aoth_prog_map_nodes; NULL: ids are the same */
  uint32_t n_node_map;

  AOTH_ROWS(aoth_graph_row_t) graphs;
  AOTH_ROWS(aoth_node_row_t) nodes;
  AOTH_ROWS(aoth_value_row_t) values;
  AOTH_ROWS(aoth_slot_row_t) slots;
  AOTH_ROWS(aot_type_t) types;
  AOTH_ROWS(aoth_ints_row_t) ints;
  AOTH_ROWS(aot_str_t) names;
  AOTH_ROWS(aot_leaf_info_t) leaves;
  AOTH_ROWS(aot_rule_t) rules;
  AOTH_ROWS(aot_origin_info_t) origins;
  AOTH_ROWS(aot_encoding_info_t) encodings;
  AOTH_ROWS(aot_symbol_info_t) symbols;
  AOTH_ROWS(aoth_expr_row_t) exprs;
  AOTH_ROWS(aot_guard_info_t) guards;
  AOTH_ROWS(aoth_fact_row_t) facts; /* of the guards, in their order; equalities in echelon form */
  AOTH_ROWS(uint8_t) unbacked;      /* by expression: a symbol in it is of none of the first n_unbacked_leaves leaves */
  uint32_t n_unbacked_leaves;
  kit_map_t type_index, ints_index, origin_index, encoding_index, expr_index;

  AOTH_ROWS(aoth_edit_row_t) edits;
  AOTH_ROWS(uint32_t) marks; /* numbers of edits at each begin */

  void *snapshot; /* of snapshot_generation */
  uint64_t snapshot_generation;
};

void aoth_print_call(aot_prog_t *p, const aoth_node_row_t *n,
                     kit_text_t *out);       /* operator and arguments, for messages */
int aoth_prog_is_empty(const aot_prog_t *p); /* as created, interned rows aside */

/* ---- memory (program_store.c) ---- */
int aoth_rows_grow(void **at, uint32_t *capacity, uint32_t n, size_t more, size_t row_size); /* 0: no memory */
/* Room for `more` rows; evaluates to 0 when there is no memory. */
#define ROWS_ROOM(rows, more)                                                                                          \
  ((size_t)(rows).capacity - (rows).n >= (size_t)(more) ||                                                             \
   aoth_rows_grow((void **)&(rows).at, &(rows).capacity, (rows).n, (size_t)(more), sizeof *(rows).at))
aot_status_t aoth_no_memory(aot_prog_t *p, const char *what, uint64_t nbytes); /* reports; AOT_E_EXHAUSTED */
aot_str_t aoth_store_text(aot_prog_t *p, aot_str_t s); /* copy; data NULL and size > 0 when there is no memory */
void aoth_graph_free(aoth_graph_row_t *g);

/* The row with this key in an index; NONE: there is none. */
static inline uint32_t aoth_row_find(const kit_map_t *index, uint32_t hash, kit_map_equal_fn same, const aot_prog_t *p,
                                     const void *key) {
  const uint32_t row = kit_map_find(index, hash, same, p, key);
  return row == KIT_MAP_NONE ? NONE : row;
}

/* ---- interned types (type_store.c) ---- */
const int64_t *aoth_ints_intern(aot_prog_t *p, const int64_t *at, uint32_t n); /* NULL: no memory */
aot_status_t aoth_type_check(aot_prog_t *p, const aot_type_t *t, const char *what);
aot_status_t aoth_type_intern(aot_prog_t *p, const aot_type_t *t, uint32_t *out); /* checks it, too */
/* Are these the strides of a dense row-major array? Creates nothing. */
int aoth_is_contiguous(aot_prog_t *p, int32_t rank, const int64_t *sizes, const int64_t *strides);
int aoth_type_is_live(const aot_prog_t *p, const aot_type_t *t);  /* all its dimensions are, and its encoding */
int aoth_same_encoding(const aot_type_t *a, const aot_type_t *b); /* and memory space */
int aoth_dim_is_valid(const aot_prog_t *p, int64_t dim);          /* a number, or a live expression */

/* ---- arguments (node_args.c) ---- */
/* Arguments with defaults filled in, checked against the schema. `out` has room for aoth_args_full_count entries. */
uint32_t aoth_args_full_count(const aot_op_desc_t *d, uint32_t n_args);
aot_status_t aoth_args_complete(aot_prog_t *p, const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n_args,
                                aot_arg_t *out);
const aot_schema_arg_t *aoth_schema_arg(const aot_op_desc_t *d, uint32_t arg); /* the variadic one for the tail */
aot_status_t aoth_arg_normalise(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg, aot_arg_t *a);
/* NULL: it fits; otherwise what the schema wants, in words. */
const char *aoth_arg_misfit(const aot_prog_t *p, const aot_schema_arg_t *s, const aot_arg_t *a);
uint32_t aoth_arg_n_operands(const aot_arg_t *a);
int aoth_arg_same(const aot_arg_t *a, const aot_arg_t *b); /* equal contents */
int aoth_arg_is_written(const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n_args, uint32_t arg);
aot_status_t aoth_arg_accept(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg,
                             aot_arg_t *a); /* normalise and check */
const char *aoth_arg_kind_name(int32_t kind);
void aoth_schema_arg_text(const aot_schema_arg_t *s, kit_text_t *out); /* "Tensor?", "int[2]" */

/* ---- use lists (use_lists.c) ---- */
void aoth_use_append(aot_prog_t *p, uint32_t slot, uint32_t value);
void aoth_use_unlink(aot_prog_t *p, uint32_t slot, uint32_t value);
void aoth_use_relink(aot_prog_t *p, uint32_t slot, uint32_t value); /* undoes unlink */
void aoth_slot_store(aot_prog_t *p, uint32_t slot, uint32_t value); /* writes the operand, argument or port */
uint32_t aoth_slot_value(const aot_prog_t *p, uint32_t slot);
void aoth_node_use(aot_prog_t *p, uint32_t node);                                 /* link every operand */
void aoth_node_unuse(aot_prog_t *p, uint32_t node);                               /* unlink them, first to last */
void aoth_node_reuse(aot_prog_t *p, uint32_t node);                               /* undoes unuse */
void aoth_node_refs(aot_prog_t *p, const aot_arg_t *args, uint32_t n, int delta); /* counts GRAPH arguments */
void aoth_node_link(aot_prog_t *p, uint32_t node, uint32_t before);
void aoth_node_unlink(aot_prog_t *p, uint32_t node);
void aoth_node_relink(aot_prog_t *p, uint32_t node);
void aoth_node_alive(aot_prog_t *p, uint32_t node, int alive); /* and its results */

void aoth_graph_alive(aot_prog_t *p, uint32_t graph, int alive); /* with its nodes and values */
void aoth_value_rename(aot_prog_t *p, uint32_t value, uint32_t name);

/* ---- asking opsets (dispatch.c) ---- */
aot_status_t aoth_infer_complete(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                                 const aot_type_sink_t *sink); /* args are complete already */

/* ---- facts about roles and rules (edit_graph.c, declare.c) ---- */
int aoth_role_allowed(int32_t role, int is_output);
int aoth_role_is_leaf(int32_t role); /* its index is a leaf id */
int aoth_rule_has_b(int32_t kind);
int aoth_rule_has_geometry(int32_t kind);

/* ---- journal (journal.c) ---- */
typedef struct saved_outputs { /* of a graph whose outputs were cleared */
  const aot_port_t *ports;
  const uint32_t *slots;
  uint32_t n;
} aoth_saved_outputs_t;

aot_status_t aoth_edit_begin(aot_prog_t *p);                     /* room for one record; counts the edit */
void aoth_journal_taken(aot_prog_t *p);                          /* its edits are undone: it ends */
const aoth_edit_row_t *aoth_journal_newest(const aot_prog_t *p); /* since begin; NULL: none is left */
void aoth_journal_undo_newest(aot_prog_t *p);
void aoth_edit_record(aot_prog_t *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
                      const void *ptr);

/* ---- made again (edit.c, shapes.c), as journals have them: nothing is inferred, folded or inherited ---- */
aot_status_t aoth_node_make_again(aot_prog_t *p, uint32_t graph, const aoth_made_node_t *made, aot_node_t *out);
aot_status_t aoth_expr_make_again(aot_prog_t *p, const aot_expr_info_t *expr);

/* ---- shapes (shapes.c) ---- */
void aoth_expr_forget(aot_prog_t *p);     /* the newest expression */
void aoth_origin_forget(aot_prog_t *p);   /* the newest origin */
void aoth_encoding_forget(aot_prog_t *p); /* the newest encoding */
void aoth_guard_forget(aot_prog_t *p);    /* the newest guard (size_guards.c) */
/* dim_make without creating: 0 when the result does not exist yet. */
int aoth_dim_find(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out);

/* ---- complaints (diagnose.c) ---- */
aot_status_t aoth_diagnose(aot_prog_t *p, aot_status_t status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
aot_status_t aoth_complain_arg(aot_prog_t *p, uint32_t arg, aot_status_t status, const char *code, const char *format,
                               ...) __attribute__((format(printf, 5, 6)));
void aoth_hint(aot_prog_t *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- checks of ids, with their complaint ---- */
aot_status_t aoth_no_op(aot_prog_t *p, aot_op_t op); /* the complaint alone */
aot_status_t aoth_need_graph(aot_prog_t *p, aot_graph_t g);
aot_status_t aoth_need_node(aot_prog_t *p, aot_node_t n);
aot_status_t aoth_need_value(aot_prog_t *p, aot_value_t v);

/* Row 0 is dead in all of them. */
static inline int graph_is_alive(const aot_prog_t *p, uint32_t g) { return g < p->graphs.n && p->graphs.at[g].alive; }
static inline int node_is_alive(const aot_prog_t *p, uint32_t n) { return n < p->nodes.n && p->nodes.at[n].alive; }
static inline int value_is_alive(const aot_prog_t *p, uint32_t v) {
  return v < p->values.n && !(p->values.at[v].type & VALUE_DEAD);
}
static inline const aot_type_t *value_type_of(const aot_prog_t *p, uint32_t v) {
  AOT_ASSERT(v < p->values.n && (p->values.at[v].type & ~VALUE_DEAD) < p->types.n);
  return &p->types.at[p->values.at[v].type & ~VALUE_DEAD];
}
static inline void touch(aot_prog_t *p, uint32_t node) { p->ctx->last_node = node; }
static inline aot_str_t op_name(const aot_prog_t *p, uint32_t op) {
  aot_op_t o = {op};
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, o);
  aot_str_t none = {"?", 1};
  return d ? d->name : none;
}
/* Arguments of printf's "%.*s". */
#define STR_ARGS(s) (int)((s).size < 4096 ? (s).size : 4096), ((s).data ? (s).data : "")

#endif
