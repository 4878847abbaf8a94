/* The joint graph of a program: the forward, then the backward by derivative rules. */
#ifndef AG_JOINT_H
#define AG_JOINT_H

#include "ag_emit.h"
#include "reverse.h"
#include "rules.h"

/* The work on one graph. */
typedef struct ag_joint {
  em_t a;              /* emitter; a.graph: the graph that is made */
  ag_site_t site;      /* after a */
  aot_graph_t forward; /* what it is made from */
  uint32_t *map;       /* value of the forward graph -> its copy */
  uint8_t *needs;      /* by value id, n_needs of them: depends on something differentiable */
  uint32_t n_needs;
  /* the made graph as arrays, once it is complete */
  ag_graph_t arrays;
  aot_node_t *nodes; /* by node number of the arrays */
  uint32_t *cot;     /* by value: its cotangent, AG_NONE or AG_ZERO */
  uint32_t *slot;    /* of the node at hand: first operand slot of each argument */
  uint32_t n_decomposed, n_gradients, n_tangents, n_nodes;
} ag_joint_t;

/* joint.c: graph -> graph with tangents and gradients. The steps, in order, the first three in joint_copy.c: */
/* an emitter of backward nodes; j stays where it is; */
void ag_joint_begin(ag_joint_t *j, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t forward);
/* the same for a region of what outer works on: fails where regions nest too deep; */
#define AG_MAX_DEPTH 16
aot_status_t ag_joint_nest(ag_joint_t *j, const em_t *outer, aot_graph_t region);
/* a new graph with a copy of the forward's inputs and nodes; */
aot_status_t ag_joint_copy(ag_joint_t *j, int32_t kind, aot_str_t name);
/* room in j->needs for every value; then the caller marks the differentiable inputs; */
aot_status_t ag_joint_grow(ag_joint_t *j);
/* expand.c: what has no rule but needs one is decomposed, everything with neither reported in one error; */
aot_status_t ag_joint_expand(ag_joint_t *j);
aot_status_t ag_joint_read(ag_joint_t *j); /* the arrays; */
/* an input that is the cotangent of `value`, once or several times; */
aot_status_t ag_joint_seed(ag_joint_t *j, aot_value_t value, int32_t role, uint32_t index, const char *name);
aot_status_t ag_joint_reverse(ag_joint_t *j);               /* backward nodes, cotangents in j->cot; */
em_x_t ag_joint_gradient(ag_joint_t *j, aot_value_t input); /* NONE: no path */
/* after the outputs: erases unread nodes that have the flags */
aot_status_t ag_joint_sweep(ag_joint_t *j, uint32_t flags);

/* The whole of it for the program's forward graph. */
aot_status_t ag_joint_differentiate(ag_joint_t *j);

/* region.c: the region that computes the gradients of `region`'s inputs with needs[i], in order, from its inputs and
 * the cotangents of its outputs with given[k], in order. It runs what it needs of the region again. */
aot_status_t ag_region_vjp(const em_t *outer, aot_graph_t region, const uint8_t *needs, const uint8_t *given,
                           aot_graph_t *out);

/* The same with the region's own outputs after the gradients (none where it has none): a joint graph of the region,
 * which a partition can divide. Made once for each region, needs and given; later calls get the same graph. */
aot_status_t ag_region_joint(const em_t *outer, aot_graph_t region, const uint8_t *needs, const uint8_t *given,
                             aot_graph_t *out);

typedef struct ag_shared_region {
  aot_graph_t region, joint;
  const uint8_t *marks; /* needs, then given */
} ag_shared_region_t;

typedef struct ag_shared {
  ag_shared_region_t *rows;
  uint32_t n, capacity;
  uint32_t n_calls; /* pairs of a forward and a backward call, numbered from 0 */
} ag_shared_t;

/* loop_history.c: the result of a scan that holds what its carry k was at the beginning of each step; AG_NO_ARG:
 * none. */
uint32_t ag_history_of(const em_t *a, aot_graph_t body, uint32_t n_carries, uint32_t k);
uint32_t ag_n_listed(const em_t *a); /* operands and numbers in lists of the loaded node */

/* loaded_node.c: the node at hand. */
aot_status_t ag_load(em_t *a, aot_node_t n);  /* em_look; new nodes have its origin */
uint32_t ag_n_operands(const aot_arg_t *arg); /* values in an argument */
uint32_t ag_operand(const aot_arg_t *arg, uint32_t k);
int ag_stops(const em_t *a);          /* no derivative goes through the loaded node */
int ag_able(em_t *a, uint32_t value); /* it can have a derivative: a real floating-point tensor */
/* Makes the loaded node look like the operator that it holds, its arguments and its results. Answers how many operands
 * and results precedes those: 1 for a with_effects, 0 for others, which are left alone. */
uint32_t ag_look_through(em_t *a);

#endif
