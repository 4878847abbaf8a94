/* export_program.h - a program becomes an archive of torch.export: what the export_*.c files share.
 *
 * The records are those of torch/_export/serde/schema.py, version 8.17 (PyTorch 2.11), built as JSON with jansson.
 * Functions that answer json_t give a new reference, or NULL: the failure is in the environment then, or memory is
 * gone. */
#ifndef P2_EXPORT_PROGRAM_H
#define P2_EXPORT_PROGRAM_H

#include "name_table.h"
#include "zip_writer.h"
#include <aot/host.h>
#include <jansson.h>

/* One leaf as inputs of the archive: a tied parameter is one input a name, of which the first is read. */
typedef struct p2_leaf_out {
  aot_leaf_info_t info;
  aot_value_t value;     /* of its port; none: no node reads it */
  const aot_str_t *fqns; /* n_names, names in the module; placeholders below */
  const aot_str_t *placeholders;
  uint32_t n_names;
} p2_leaf_out_t;

/* The graph that is being written. */
typedef struct p2_page {
  aot_graph_t graph;
  p2_names_t names; /* taken identifiers */
  uint32_t *next;   /* by number in names: the suffix to try next */
  uint32_t n_next, next_capacity;
  json_t *nodes, *tensor_values, *sym_ints, *sym_bools; /* borrowed */
  p2_names_t dims; /* bytes of a dimension -> row of dim_names: sizes that have a node */
  aot_str_t *dim_names;
  uint32_t n_dims, dim_capacity;
} p2_page_t;

typedef struct p2_writer {
  p2_env_t *env;
  const aot_host_t *host;
  aot_prog_t *prog;
  aot_graph_t top;
  aot_node_t node;       /* being written, for messages */
  p2_leaf_out_t *leaves; /* parameters, buffers, constants, then user inputs */
  uint32_t n_leaves;
  aot_str_t *value_names; /* by value id; empty: not written yet */
  json_t **graphs;        /* by graph id: the Graph of a region; owned */
  aot_str_t *graph_names; /* by graph id */
  p2_names_t graph_name_index;
  aot_str_t *exprs; /* by expression: its text */
  uint32_t n_exprs, expr_capacity;
  aot_str_t *symbols;  /* by number */
  aot_value_t loss;    /* of a joint graph */
  aot_value_t tangent; /* of the loss: written as full_like(loss, 1) */
} p2_writer_t;

/* export_records.c: small records. */
/* Failure at the node being written. NULL, so that it can be returned. */
json_t *p2_cannot(p2_writer_t *w, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));
json_t *p2_text_json(aot_str_t s);
json_t *p2_tensor_argument(aot_str_t name); /* {"name": ..} */
json_t *p2_as_tensor(aot_str_t name);
json_t *p2_named_json(aot_str_t name, json_t *argument, int keyword); /* a NamedArgument */
const char *p2_device_name(int32_t device); /* as archives have it; NULL: there is no such device */
aot_status_t p2_add_node(p2_page_t *page, const char *target, json_t *inputs, json_t *outputs, json_t *metadata,
                         json_t *hop, aot_str_t name);

/* export_names.c: identifiers of Python, unique in a graph. */
aot_status_t p2_identifier(p2_writer_t *w, p2_page_t *page, aot_str_t wish, const char *otherwise, aot_str_t *out);
aot_status_t p2_name_value(p2_writer_t *w, p2_page_t *page, aot_value_t v, aot_str_t wish);
/* prefix, then the text in lower case. */
aot_status_t p2_placeholder(p2_writer_t *w, p2_page_t *page, const char *prefix, aot_str_t fqn, aot_str_t *out);

/* export_guards.c: Python over the inputs. */
json_t *p2_guards_json(p2_writer_t *w);

/* export_dims.c: symbolic sizes. */
aot_status_t p2_symbols_name(p2_writer_t *w);
json_t *p2_ranges_json(p2_writer_t *w);
json_t *p2_dim_json(p2_writer_t *w, int64_t dim); /* SymInt */
/* The name of a node of the page whose result is the size; nodes are added where it has none yet. */
aot_status_t p2_dim_node(p2_writer_t *w, p2_page_t *page, int64_t dim, aot_str_t *out);
aot_status_t p2_dim_known(p2_writer_t *w, p2_page_t *page, int64_t dim, aot_str_t name); /* a node gave it */

/* export_arguments.c: one argument of a node, as the union Argument. */
json_t *p2_argument_json(p2_writer_t *w, p2_page_t *page, const aot_schema_arg_t *slot, const aot_arg_t *a);
int p2_is_preset(const aot_schema_arg_t *slot, const aot_arg_t *a);

/* export_graph.c */
json_t *p2_tensor_meta(p2_writer_t *w, const aot_type_t *t);
/* Graph without its outputs; takes inputs */
json_t *p2_graph_json(p2_writer_t *w, aot_graph_t g, p2_page_t *page, json_t *inputs);
aot_status_t p2_regions_write(p2_writer_t *w); /* every region that the top graph reaches, owned ones first */

/* export_signature.c: leaves, GraphSignature, the top graph. */
aot_status_t p2_leaves_collect(p2_writer_t *w, p2_page_t *page);
json_t *p2_module_json(p2_writer_t *w); /* GraphModule */

/* export_archive.c: the whole. */
aot_status_t p2_export(p2_writer_t *w, aot_str_t name, const aot_bytes_sink_t *sink);

#endif
