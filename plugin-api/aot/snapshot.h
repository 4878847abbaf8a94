/* aot/snapshot.h - the whole program as one relocatable block of plain arrays.
 *
 * Everything is an offset from the block's first byte, so the block can be mapped, copied, hashed, stored as an
 * artifact and read back without the host. Rows are dense: operands and ports name value rows, not ids; id columns lead
 * back. Row 0 of graphs, nodes, values, leaves, ops, exprs and encodings is all zeros and names nothing. Rows of one
 * graph stand together and in order. Little-endian, 8-byte aligned. Frozen: a change is another version.
 *
 *     +--------+--------+-------+--------+------+----------+------+--------+-------+--- - -
 *     | header | graphs | nodes | values | args | operands | ints | floats | ports | ...
 *     +--------+--------+-------+--------+------+----------+------+--------+-------+--- - - */
#ifndef AOT_SNAPSHOT_H
#define AOT_SNAPSHOT_H

#include <aot/base.h>

#define AOT_SNAPSHOT_MAGIC 0x53544F41u /* "AOTS" */
#define AOT_SNAPSHOT_VERSION 3u

typedef struct aot_snap_array { /* count rows of row_size bytes from offset `at` */
  uint64_t at;
  uint32_t count;
  uint32_t row_size;
} aot_snap_array_t;

typedef struct aot_snapshot {
  uint32_t magic, version;
  uint64_t nbytes;     /* of the whole block */
  uint64_t generation; /* counts edits; equal generation of one program means equal block */
  aot_snap_array_t graphs, nodes, values, args, operands, ints, floats, ports, leaves, rules, symbols, exprs, ops,
      encodings, chars;
} aot_snapshot_t;

typedef struct aot_snap_str { /* range of chars */
  uint32_t begin, size;
} aot_snap_str_t;

typedef struct aot_snap_graph {
  uint32_t id;
  int32_t kind; /* AOT_GRAPH_* */
  aot_snap_str_t name;
  uint32_t node_begin, n_nodes;
  uint32_t input_begin, n_inputs;   /* port rows */
  uint32_t output_begin, n_outputs; /* port rows */
} aot_snap_graph_t;

typedef struct aot_snap_node {
  uint32_t id;
  uint32_t op; /* ops row */
  uint32_t flags;
  uint32_t graph; /* graphs row */
  uint32_t arg_begin, n_args;
  uint32_t operand_begin, n_operands;
  uint32_t result_begin, n_results; /* values rows, consecutive */
  uint32_t region_tag;              /* checkpoint region, 0: none */
  uint32_t origin;                  /* id, for aot_graph_api_t.origin_info; AOT_NO_ID: unknown */
} aot_snap_node_t;

typedef struct aot_snap_value {
  uint32_t id;
  uint32_t def;   /* nodes row, 0: graph input */
  uint32_t index; /* result or input number */
  int32_t kind, dtype, rank;
  uint32_t flags;
  uint32_t dims; /* ints row: rank sizes, then rank strides */
  int32_t device, device_index;
  uint32_t memory, encoding; /* encodings row */
  int64_t offset;
  int64_t expr;
} aot_snap_value_t;

typedef struct aot_snap_arg {
  int32_t kind; /* AOT_ARG_* */
  uint32_t n;
  /* scalar payload; double bits for FLOAT; VALUE: values row; GRAPH: graphs row; OP: ops row; lists: first row in
   * operands (VALUES), ints (INTS, BOOLS), floats (FLOATS), chars (STR) */
  int64_t i;
} aot_snap_arg_t;

typedef struct aot_snap_port {
  int32_t role;
  uint32_t index;
  uint32_t value; /* values row, 0: none */
  uint32_t flags; /* 0 */
  aot_snap_str_t name;
} aot_snap_port_t;

typedef struct aot_snap_leaf {
  int32_t role;
  uint32_t flags, ordinal;
  int32_t dtype, rank;
  uint32_t dims; /* ints row: sizes, strides */
  aot_snap_str_t name;
  int32_t device, device_index;
  uint32_t memory, encoding; /* encodings row */
  int64_t offset;
} aot_snap_leaf_t;

typedef struct aot_snap_rule {
  int32_t kind;
  uint32_t a, b;
  int32_t rank;
  uint32_t dims; /* ints row: sizes, strides */
  int32_t dtype; /* as aot_rule_t has it */
  int64_t offset;
} aot_snap_rule_t;

typedef struct aot_snap_symbol {
  aot_snap_str_t name;
  int64_t min, max, hint;
} aot_snap_symbol_t;

typedef struct aot_snap_expr {
  int32_t op; /* AOT_EXPR_* */
  uint32_t reserved;
  int64_t a, b, c;
} aot_snap_expr_t;

typedef struct aot_snap_op {
  aot_snap_str_t name;
  uint32_t flags; /* AOT_OP_* */
  uint32_t reserved;
} aot_snap_op_t;

typedef struct aot_snap_encoding {
  aot_snap_str_t name, value;
} aot_snap_encoding_t;

#endif
