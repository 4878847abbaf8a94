/* Rematerialization by minimum cut: which forward values to keep for the backward, so that keeping them costs least and
 * everything else is computed again.
 *
 * Every value that exists before the backward becomes an arc v_in -> v_out with the price of keeping it. The source
 * represents "only the forward has it", the sink for "the backward needs it". What may not be computed twice hangs on
 * the source, what the backward reads hangs on the sink, data flow is infinite. The arcs of the cheapest cut are the
 * values to keep. Source: PyTorch's min_cut_rematerialization_partition (torch/_functorch/partitioners.py, 2.11). With
 * MC_PYTORCH the network is the same as there, arc for arc; MC_FLAGS queries the operators' flags instead of PyTorch's
 * lists of names. */
#ifndef MC_MINCUT_H
#define MC_MINCUT_H

#include "kit/graph/joint_arrays.h"

#define MC_FLAGS 0   /* what an operator is, its flags report */
#define MC_PYTORCH 1 /* PyTorch's lists of names report, and a tuple's elements count as operators that fuse */

#define MC_FEWEST_BYTES 0     /* of all cheapest cuts, one that saves the fewest bytes */
#define MC_NEAREST_SOURCE 1   /* the one whose forward side is smallest */
#define MC_NEAREST_BACKWARD 2 /* the one whose forward side is largest: PyTorch's */

typedef struct mc_rules {
  int32_t operators;      /* MC_FLAGS, MC_PYTORCH */
  int32_t ties;           /* MC_FEWEST_BYTES, .. */
  int ban_expensive;      /* only what is cheap is computed again */
  int ban_heavy;          /* without ban_expensive: all but the compute-intensive is */
  int ban_materialized;   /* what the backward would write to memory is not computed again */
  int ban_reductions;     /* nor what reads four times its own size or more */
  int ban_far_apart;      /* nor for a use that no fusion reaches */
  int ban_long_chains;    /* nor at the end of a fusible chain of more than 100 nodes */
  int ban_gathers;        /* nor what alone would have a parameter gathered again */
  int recompute_views;    /* views are never kept */
  int free_static_inputs; /* parameters, buffers, constants cost nothing to keep */
  int double_fused;       /* keeping what fusion would not write to memory costs twice */
  uint32_t max_distance;  /* what lies further from the backward is not computed again; 1000 and more: no limit */
  double distance_base;   /* price factor for each step away from the backward, up to 100 steps */
} mc_rules_t;

/* out_saved: room for n_values; values to keep in order, graph inputs left out. 0; -1: no finite cut, *out_value names
 * a value at fault; -2: no memory. */
int mc_choose(const jg_joint_t *j, const mc_rules_t *rules, uint32_t *out_saved, uint32_t *out_n_saved,
              uint32_t *out_value);

/* The weights of the network alone: banned, by node, 1: must not be computed again; price, by value, -1: may not be
 * stored. 0 or
 * -2. O(nodes + operands), with ban_long_chains O(operands log operands). */
int mc_weigh(const jg_joint_t *j, const mc_rules_t *rules, uint8_t *banned, int64_t *price);

/* ---- the parts ---- */

/* op_classes.c: what a node is to the rules, by node. */
#define MC_CHEAP 1u /* may be computed again */
#define MC_VIEW 2u  /* free to compute again */
#define MC_HEAVY 4u
#define MC_FUSES 8u  /* fusion takes it */
#define MC_JOINS 16u /* reads whatever precedes it without a write between */
#define MC_PARTS 32u /* its results fuse whatever it is itself */
#define MC_ALONE 64u /* a view of several results, at which following uses ends */
void mc_classify(const jg_joint_t *j, const mc_rules_t *rules, uint8_t *out_classes);

/* What the rules look at. classes: by node. */
typedef struct mc_ruled_graph {
  const jg_joint_t *j;
  const mc_rules_t *rules;
  const uint8_t *classes;
} mc_ruled_graph_t;

/* May user u read value v without v being written to memory? */
int mc_fuses_into(const mc_ruled_graph_t *m, uint32_t v, uint32_t u);
/* Views are free to compute again and tags of the user stand above the rules: may node n be banned at all? */
int mc_may_ban(const mc_ruled_graph_t *m, uint32_t n);

/* Steps to the nearest use outside the forward, MC_FAR: there is none; by value and by node. 0 or -2. O(nodes +
 * operands). */
#define MC_FAR 1000000000u
int mc_measure(const jg_joint_t *j, uint32_t *out_of_value, uint32_t *out_of_node);

/* bans.c: banned[n] = 1 for each early node that must not be computed again. 0 or -2. O(nodes + operands). */
int mc_ban(const mc_ruled_graph_t *m, const uint32_t *distance_of_node, uint8_t *banned);
/* fusion_distance.c: adds to banned. 0 or -2. O(nodes + operands), and O(operands log operands) for chains. */
int mc_ban_far_apart(const mc_ruled_graph_t *m, uint8_t *banned);
int mc_ban_long_chains(const mc_ruled_graph_t *m, uint8_t *banned);
/* gathers.c: adds to banned. 0 or -2. O(nodes + operands). */
int mc_ban_gathers(const mc_ruled_graph_t *m, uint8_t *banned);
/* cost.c: price[v] of keeping each value that exists before the backward; -1: may not be stored. 0 or -2. */
int mc_price(const mc_ruled_graph_t *m, const uint32_t *distance_of_value, int64_t *price);

#endif
