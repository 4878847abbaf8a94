/* The program store, as the rest of the host sees it.
 *
 * Programs are made of ids into growing arrays; the functions below with the signatures of <aot/graph.h> and
 * <aot/edit.h> are what bridge.c hands to plugins, and the host calls the same ones. */
#ifndef AOTH_PROGRAM_H
#define AOTH_PROGRAM_H

#include <aot/edit.h>
#include <aot/graph.h>
#include <aot/opset.h>
#include <aot/snapshot.h>
#include "kit/base/arena.h"
#include <base/sink.h>
#include "kit/base/text.h"
#include <ir/properties.h>
#include <stdatomic.h>

/* ---- operators of a session: the union of its opsets ---- */
typedef struct aoth_ops aoth_ops_t;
aoth_ops_t *aoth_ops_create(void);
void aoth_ops_destroy(aoth_ops_t *ops); /* not the opsets */
/* AOT_E_EXISTS with a diagnostic when a name is already there. The opset's descriptors are imported by copy. */
aot_status_t aoth_ops_add(aoth_ops_t *ops, const aot_opset_t *opset, const char *name, aoth_sink_t *sink);
/* One operator more of an opset that was added, as aot.declare/1 made it: the text says where it was declared. The same
 * schema as an operator of that name that is there already: nothing to do; another one: AOT_E_EXISTS with a
 * diagnostic at `where`. */
aot_status_t aoth_ops_declare(aoth_ops_t *ops, const aot_opset_t *opset, const aot_op_desc_t *op, uint32_t local,
                              const aoth_where_t *where, aoth_sink_t *sink);
/* The kernel of an operator, out of the opsets that have kernels, in their order, and whose it is (may be NULL); NULL:
 * none. O(kernels) */
struct aot_kernel;
const struct aot_kernel *aoth_ops_kernel(const aoth_ops_t *ops, aot_str_t name, const aot_opset_t **out_opset);
/* The operator whose kernel begins last in [begin, address]; empty: none. O(kernels) */
aot_str_t aoth_ops_kernel_at(const aoth_ops_t *ops, uint64_t begin, uint64_t address);
/* All derivatives that opsets bring, in their order, as an array in `arena`. O(derivatives) */
struct aot_derivative;
aot_status_t aoth_ops_derivatives(const aoth_ops_t *ops, kit_arena_t *arena, const struct aot_derivative *const **out,
                                  uint64_t *out_n);
uint32_t aoth_ops_count(const aoth_ops_t *ops);
const aot_op_desc_t *aoth_ops_desc(const aoth_ops_t *ops, aot_op_t op);
aot_op_t aoth_ops_find(const aoth_ops_t *ops, aot_str_t name);
int aoth_ops_nearest(const aoth_ops_t *ops, aot_str_t name, aot_str_t *out); /* 1 when there is one near */

/* ---- one call into a unit: what aot_ctx_t is ---- */
struct aot_ctx {
  kit_arena_t *session, *graph, *scratch;
  aoth_sink_t *sink;
  aot_prog_t *prog;           /* may be NULL */
  const struct aoth_ops *ops; /* operators of the session; NULL: none */
  const char *stage;          /* unit id, for messages */
  const char *where_file;     /* pipeline file and line of the stage, for messages; NULL: none */
  uint32_t where_line;
  uint32_t n_diags;            /* errors given during this call */
  uint32_t n_given, n_dropped; /* diagnostics of the unit during this call; those that are not shown, being too many */
  uint64_t n_given_bytes, n_dropped_bytes; /* of their messages */
  volatile uint32_t last_node;             /* breadcrumb: last node that the unit touched */
  volatile int cancelled;                  /* 1: the unit is to stop, */
  const atomic_int *asked;                 /* and where this is 1; NULL: nothing else asks */
  void *report;                            /* the pipeline's: where aot.report/1 numbers go */
  void *backends;                          /* the pipeline's: which answers aot.memory/1, aot.cost/1; NULL: nothing */
  void *ranks;                             /* the pipeline's: which answers aot.ranks/1; NULL: nothing else runs this */
  void *kernel_guards; /* the pipeline's: what is between backends and kernels (AOT_VALIDATE=1); NULL: nothing */
  uint32_t n_trials;   /* of aot.trial/1 that are open */
};

/* ---- programs ---- */
aot_prog_t *aoth_prog_create(aoth_ops_t *ops,
                             aot_ctx_t *ctx); /* ctx: for diagnostics, breadcrumb, opset calls; borrowed */
void aoth_prog_destroy(aot_prog_t *p);
void aoth_prog_ctx(aot_prog_t *p, aot_ctx_t *ctx); /* from now on */
kit_arena_t *aoth_prog_arena(aot_prog_t *p);       /* [graph] memory that lives as long as p */
aoth_ops_t *aoth_prog_ops(aot_prog_t *p);
aoth_properties_t aoth_prog_properties(aot_prog_t *p);
aot_status_t aoth_prog_set_properties(aot_prog_t *p, aoth_properties_t properties); /* the names are copied */
uint64_t aoth_prog_nbytes(aot_prog_t *p);                                           /* memory of the store */
uint64_t aoth_prog_generation(aot_prog_t *p);                                       /* counts edits; as in snapshots */
/* Diagnostics about p name its nodes by ids of an earlier making: at[theirs] is the id here, AOT_NO_ID: gone.
 * Borrowed. */
void aoth_prog_map_nodes(aot_prog_t *p, const uint32_t *at, uint32_t n);
const char *aoth_prog_model(aot_prog_t *p); /* path of the model file, for messages; may be NULL */
void aoth_prog_set_model(aot_prog_t *p, const char *path);
/* borrowed, as long as p */
void aoth_prog_leaf_data(aot_prog_t *p, aot_leaf_t leaf, const void *data, uint64_t nbytes);

int aoth_graph_is_named(aot_prog_t *p, aot_graph_t g); /* an argument of a live node names it: its body, a branch .. */

/* ---- journal: edits between begin and commit or undo ---- */
aot_status_t aoth_journal_begin(aot_prog_t *p); /* AOT_E_EXHAUSTED: reported, and nothing has begun */
uint64_t aoth_journal_count(aot_prog_t *p);     /* edits since begin */
/* 0: since the outermost begin an edit found no memory and was not made */
int aoth_journal_is_whole(const aot_prog_t *p);
void aoth_journal_commit(aot_prog_t *p);
void aoth_journal_undo(aot_prog_t *p);                   /* back to begin, ids included */
void aoth_journal_print(aot_prog_t *p, kit_text_t *out); /* one line an edit */
/* Check the edits against a contract: operators created and removed. Reports and answers AOT_E_CONTRACT. */
aot_status_t aoth_journal_check(aot_prog_t *p, const aoth_contract_t *c);

/* ---- text form (docs/IR.md) ---- */
void aoth_print(aot_prog_t *p, kit_text_t *out); /* of leaves' data, only what is at most 256 bytes long */
void aoth_print_node(aot_prog_t *p, aot_node_t n, kit_text_t *out); /* one line, for messages */
/* Parse into an empty program. Errors go to the sink with file:line:column and caret; AOT_E_INVALID. */
/* The namespaces of the operators in a text: the heads of its words with a dot, as often as they come. O(text). */
aot_status_t aoth_text_namespaces(const char *text, size_t size, aot_status_t (*put)(void *self, aot_str_t name),
                                  void *self);
aot_status_t aoth_parse(aot_prog_t *p, const char *file, const char *text, size_t size);
/* a node without an origin gets one: file, line */
aot_status_t aoth_parse_with_lines(aot_prog_t *p, const char *file, const char *text, size_t size);

/* The text, and what is shown of a program, counts everything from 0: leaves, too, and hyper-parameters. */
int aoth_role_counts_from_one(int32_t role);             /* the index of such a port does */
uint32_t aoth_port_number(int32_t role, uint32_t index); /* as it is shown */
int aoth_rule_a_is_leaf(int32_t kind);
int aoth_rule_b_is_leaf(int32_t kind);
uint32_t aoth_rule_a_number(const aot_rule_t *r);
uint32_t aoth_rule_b_number(const aot_rule_t *r);

/* ---- verifier ---- */
/* Structure always; then the checker of each known property in `properties`. Reports all it finds (at most 20). */
aot_status_t aoth_verify(aot_prog_t *p, uint32_t properties);

/* Compare the result types that edits since begin set, or made doubtful by another operand or argument, with what the
 * opsets infer. Queries the opsets. AOT_E_CONTRACT: reported, at most 20. (docs/IR.md 5) */
aot_status_t aoth_verify_types(aot_prog_t *p);

/* ---- complaints that point home ---- */
/* One diagnostic at a node: its origin (source line, module path, model file) and the current stage are added. Counts
 * into ctx->n_diags when it is an error. node AOT_NO_ID: none. hint may be NULL. */
void aoth_report_node(aot_prog_t *p, aot_node_t n, int32_t severity, const char *code, const char *hint,
                      const char *format, ...) __attribute__((format(printf, 6, 7)));
/* A plugin's diagnostic, rendered in the same way: what aot_host_t.diag does. ctx->prog may be NULL. */
aot_status_t aoth_report_diag(aot_ctx_t *ctx, const aot_diag_t *d);
/* The host's own error in a call, about no node. Answers `status`. */
aot_status_t aoth_report_error(aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- shape environment ---- */
/* The value of dim with symbols[i] for symbol i (n_symbols of them). */
int64_t aoth_dim_eval(aot_prog_t *p, int64_t dim, const int64_t *symbols, uint32_t n_symbols);
/* All expressions at once: out[e] for expression e < aoth_exprs_count, so that a dimension d is
 * out[AOT_DIM_EXPR(d)]. */
uint32_t aoth_exprs_count(aot_prog_t *p);
void aoth_exprs_eval(aot_prog_t *p, const int64_t *symbols, uint32_t n_symbols, int64_t *out);
void aoth_dim_print(aot_prog_t *p, int64_t dim, kit_text_t *out);

/* The functions of <aot/graph.h> and <aot/edit.h>, and the tables of them: <ir/tables.h>. */
#include <ir/tables.h>

#endif
