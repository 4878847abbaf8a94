/* A joint graph as plain arrays: what every partitioner looks at, and the host when it makes the forward and backward
 * graphs.
 *
 * Values and nodes are dense indices in graph order; lists are CSR. A node is `late` when it depends on a tangent: it
 * can only run in the backward. (In a graph without tangents, whose loss has its 1 built in: when it follows the loss.)
 * It is `early` when a forward output needs it. The others are pure functions of forward inputs that only gradients
 * need; they may be on either side. Built in one pass over the program's snapshot. */
#ifndef JG_JOINT_H
#define JG_JOINT_H

#include <aot/assert.h>
#include <aot/snapshot.h>
#include <stddef.h>
#include <stdint.h>

#define JG_NONE UINT32_MAX

/* Where a value comes from. */
#define JG_INPUT_NO 0u      /* a node's result */
#define JG_INPUT_STATIC 1u  /* parameter, buffer, constant: lives outside the call anyway */
#define JG_INPUT_DYNAMIC 2u /* user input, seed, offset, token */
#define JG_INPUT_TANGENT 3u /* known only when the backward starts */

typedef struct jg_joint {
  uint32_t n_nodes, n_values;
  /* nodes */
  uint32_t *operand_begin; /* n_nodes + 1, into operands */
  uint32_t *operands;      /* value indices */
  uint32_t *result_begin;  /* n_nodes + 1: results are values result_begin[i] .. result_begin[i + 1] */
  uint32_t *op_flags;      /* AOT_OP_* */
  uint32_t *node_flags;    /* AOT_NODE_* */
  aot_str_t *op_name;      /* full name, of the snapshot; empty in graphs made by hand */
  uint32_t *node_id;       /* of the program */
  uint8_t *late, *early;
  /* values; inputs first, then results in node order */
  uint32_t n_inputs;
  uint32_t *def;                /* node, JG_NONE for inputs */
  uint32_t *value_id;           /* of the program */
  uint64_t *nbytes;             /* dense size at the hints of the symbols */
  uint8_t *input_kind;          /* JG_INPUT_* */
  uint32_t *user_begin, *users; /* n_values + 1; nodes, each once a slot, ascending */
  /* outputs, as value indices (JG_NONE: none) */
  uint32_t n_forward_outputs, n_gradients;
  uint32_t *forward_outputs, *gradients;
  /* the graph's ports, in the snapshot it was built from */
  const aot_snapshot_t *snapshot;
  uint32_t graph; /* snapshot row */
} jg_joint_t;

/* Build from the JOINT graph of a snapshot, which must outlive it. Memory: *out owns its arrays. 0; -1: no joint graph;
 * -2: no memory. O(nodes + operands). */
int jg_joint_init(jg_joint_t *j, const aot_snapshot_t *s);

/* The joint graph of a region: its inputs are n_operands operands, then cotangents; its outputs n_gradients gradients,
 * then what the forward gives. row: of the snapshot. */
typedef struct jg_sides {
  uint32_t n_operands, n_gradients;
} jg_sides_t;
int jg_joint_init_region(jg_joint_t *j, const aot_snapshot_t *s, uint32_t row, const jg_sides_t *sides);

/* For joint graphs that come from elsewhere. Alloc: zeroed arrays by j->n_nodes, n_values, n_inputs, which are set.
 * Link: late, early and the user lists, from operands, results, input kinds and outputs; late is only added to. 0 or
 * -2; O(nodes + operands). */
int jg_joint_alloc(jg_joint_t *j, size_t n_operands, uint32_t n_outputs);
void jg_joint_link(jg_joint_t *j);
void jg_joint_deinit(jg_joint_t *j);

static inline int jg_is_tangent(const jg_joint_t *j, uint32_t v) { return j->input_kind[v] == JG_INPUT_TANGENT; }
/* The value exists before the backward starts, or can be computed from such. */
static inline int jg_is_forward_value(const jg_joint_t *j, uint32_t v) {
  AOT_ASSERT(v < j->n_values && (j->def[v] == JG_NONE) == (v < j->n_inputs));
  return j->def[v] == JG_NONE ? !jg_is_tangent(j, v) : !j->late[j->def[v]];
}

#endif
