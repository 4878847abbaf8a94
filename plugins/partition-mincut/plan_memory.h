/* What a set of saved values comes to: peak memory by the simulator, cost of what is run again.
 *
 * The memory of a step in three graphs is, as the host holds it: inputs, outputs, gradients, tangents and saved values
 * in memory of their own for the whole step, and one arena for the temporaries of forward and backward, as large as
 * the larger of the two. In one graph the arena holds all but the inputs and the loss (step_arena.h):
 *
 *     peak = fixed + saved + max(arena of the forward, arena of the backward)
 *     peak = fixed + arena of the step */
#ifndef MC_PLAN_MEMORY_H
#define MC_PLAN_MEMORY_H

#include "kit/model/simulate.h"
#include "kit/graph/joint_arrays.h"
#include "recompute_cost.h"

/* What a forward output is to a step graph. */
enum { MC_HANDED, MC_HOME, MC_DROPPED }; /* the loss, for the caller; in the memory of a leaf; without an owner */

typedef struct mc_one_graph { /* when forward, backward and update become one (stage stitch) */
  const uint8_t *output;      /* by forward output: MC_HANDED .. */
  const uint32_t *parameter;  /* by gradient: the input whose new value is made of it, JG_NONE: it is not used */
  int waits;                  /* updates wait for all gradients */
} mc_one_graph_t;

/* Who may want the search to end. */
typedef struct mc_stop {
  int (*is_asked)(const void *self);
  const void *self;
} mc_stop_t;

typedef struct mc_model {
  const jg_joint_t *j;
  const ms_graph_t *graph;   /* of the joint graph, values and nodes numbered as in j */
  const uint64_t *extent;    /* by value: bytes of its storage as its type is in it; NULL: as many as it has elements */
  const uint8_t *needs_slot; /* by input: read by the backward, it is handed over as a saved value */
  int64_t *cost;             /* by node, ps; owned */
  uint8_t *is_fixed;         /* by node: must not run twice; owned */
  uint64_t fixed_nbytes;     /* inputs, outputs, gradients, tangents; in one graph without gradients */
  uint64_t sure_nbytes;      /* of these, what every step holds at every moment */
  const mc_one_graph_t *one; /* NULL: three graphs */
  uint32_t *root;            /* by value: whose memory it is in; owned */
  const mc_stop_t *stop;     /* asked before each plan; NULL: nothing */
} mc_model_t;

typedef struct mc_numbers {
  uint64_t peak, saved, arena;
  int64_t cost;
  uint32_t n_saved, n_recomputed;
  uint32_t bad; /* a node that must not run twice and would; JG_NONE: the plan is sound */
} mc_numbers_t;

/* extent, work, one: may be NULL. 0 or -2. Deinit in any case. */
int mc_model_init(mc_model_t *m, const jg_joint_t *j, const ms_graph_t *graph, const uint64_t *extent,
                  const uint8_t *needs_slot, const mc_work_t *work, const mc_one_graph_t *one);
void mc_model_deinit(mc_model_t *m);

/* Bytes that saving a value takes: its storage, or a dense copy where that is smaller (aot/partition.h). In one graph
 * always the storage that it is in, which costs nothing where it is an input's. */
uint64_t mc_slot_nbytes(const mc_model_t *m, uint32_t v);

/* saved: as for jg_split_init. 0; -1: it saves what only the backward knows; -2: no memory; PT_STOPPED. O(n log n). */
int mc_plan_measure(const mc_model_t *m, const uint32_t *saved, uint32_t n_saved, mc_numbers_t *out);

/* A graph for the simulator from the arrays of the joint graph alone, for graphs without a snapshot: a view is of its
 * first operand, pointwise nodes of equal sizes share loops, no work space. Arrays are owned; 0 or -2. */
int mc_plain_graph_init(ms_graph_t *g, const jg_joint_t *j);
void mc_plain_graph_deinit(ms_graph_t *g);

#endif
