/* A program that was divided among backends, as what runs it sees it: graphs are rows of parts, and every part finds
 * each of its ports on its own device.
 *
 * A place is a port of the graph (its number: inputs, then outputs), or a cell after the ports: memory of one lane for
 * one value, from the part that first needs it there to the last. What a part reads from another device is moved to a
 * cell before it, what is to be on another device is moved there after it. */
#ifndef AOTH_HETERO_H
#define AOTH_HETERO_H

#include <device/multi_queue.h>
#include <ir/program.h>

#define AOTH_NO_PLACE UINT32_MAX

/* Memory of a lane for a value. */
typedef struct aoth_part_cell {
  uint32_t slot; /* the value: an input, an output, or one between parts */
  uint32_t lane;
  uint32_t first, last; /* parts */
  uint32_t leaf;        /* a copy of this leaf, which is stored until the leaf is another; AOT_NO_ID: of nothing */
  uint32_t next;        /* cell of the same slot; AOTH_NO_PLACE */
} aoth_part_cell_t;

typedef struct aoth_part_move {
  uint32_t from_lane, to_lane;
  uint32_t from, to; /* places */
  uint32_t leaf;     /* as the cell it goes to has it */
  int is_filling;    /* what is in a port before the part, which writes no gaps: only where there are some */
  int is_home;       /* to a port that is at the address of an input */
} aoth_part_move_t;

typedef struct aoth_part {
  uint32_t backend, number; /* which executable, and which of its PART graphs */
  uint32_t graph;           /* its id */
  uint32_t lane;
  uint32_t n_inputs, n_outputs;
  const uint32_t *places; /* n_inputs, then n_outputs */
  /* into the graph's moves: before it from move_begin on, after it from move_middle on */
  uint32_t move_begin, move_middle, move_end;
  int writes_home; /* an output of it is at the address of an input */
} aoth_part_t;

typedef struct aoth_part_graph {
  uint32_t id;
  int32_t kind;
  uint32_t number; /* of its kind */
  uint32_t n_inputs, n_outputs, n_between, n_parts, n_cells, n_moves;
  uint32_t lanes;    /* bits: where its parts run */
  aot_type_t *types; /* by slot: inputs, outputs, between */
  uint32_t *makers;  /* of values between: the graph of the part that makes it */
  aoth_part_t *parts;
  aoth_part_cell_t *cells;
  aoth_part_move_t *moves;
} aoth_part_graph_t;

/* A backend as the program names it, and where its parts run. */
typedef struct aoth_part_route {
  const char *backend;
  uint32_t lane;
  int is_there; /* it has an executable */
} aoth_part_route_t;

typedef struct aoth_parts {
  aoth_part_graph_t *graphs;
  uint32_t n_graphs;
  uint32_t *home; /* by leaf: the lane that it lives on */
} aoth_parts_t;

/* Is the node a call of a part? Its graph, the name of the backend, that of the device; size 0: the run's. */
int aoth_is_part_call(aot_prog_t *prog, const aot_node_info_t *node, aot_graph_t *out_part, aot_str_t *out_backend,
                      aot_str_t *out_device);

aot_status_t aoth_parts_no_memory(aot_ctx_t *ctx); /* AOT_E_EXHAUSTED, reported */

/* A leaf lives where it is written; one that nothing writes, where it is first read. Leaves in one storage live
 * together. Everything else at the boundary of a graph is on lane 0. Rows are the arena's. O(program). */
aot_status_t aoth_parts_read(aot_ctx_t *ctx, aot_prog_t *prog, const aoth_part_route_t *routes, uint32_t n_routes,
                             kit_arena_t *arena, aoth_parts_t *out);

#endif
