/* The memory that one run of a graph takes, simulated on plain arrays.
 *
 * Nodes run in a given order. What lives in memory of its own (inputs, what is handed to the caller) is the caller's to
 * count; everything else is in one arena, from the node that makes it to the last that reads it, and the arena is
 * laid out by the plan that backends use (plan.h), so gaps between buffers count. The rules are those of a machine that
 *   - makes views for nothing: a view keeps its base alive;
 *   - runs pointwise nodes of one iteration space as one loop (kit/loops/group.h) where the loop's last member
 *   is: what the
 *     loop reads lives until then, and what only its members read is never in memory;
 *   - hands a result over in the memory that it was made in; a view of a part of it, and what is in the caller's
 *   memory already,
 *     is copied when the run ends, and its base lives until then;
 *   - may let a loop write over an operand of the same size that nothing reads later (in_place).
 * O(n log n) for n nodes and operands. */
#ifndef MS_SIMULATE_H
#define MS_SIMULATE_H

#include <stdint.h>

#define MS_NONE UINT32_MAX

typedef struct ms_graph {
  uint32_t n_nodes, n_values;               /* values: inputs first, then results in node order */
  const uint32_t *operand_begin, *operands; /* by node, CSR: values, MS_NONE never among them */
  const uint32_t *result_begin;             /* n_nodes + 1 */
  const uint64_t *nbytes;                   /* by value, dense */
  const uint32_t *base;    /* by value: the value that it is a view of, itself when it has memory of its own */
  const uint32_t *space;   /* by node: number of its iteration space, MS_NONE: never part of a loop */
  const uint64_t *scratch; /* by node: bytes that it needs while it runs */
  uint32_t max_loop;       /* nodes of one loop */
  uint64_t align;          /* of buffers, a power of two */
  int in_place;
} ms_graph_t;

typedef struct ms_run {
  const uint32_t *nodes; /* in order; may be any part of the graph */
  uint32_t n_nodes;
  const uint8_t *is_given; /* by value: there when the run starts, in memory of its own */
  const uint32_t *outputs; /* values that are handed over, MS_NONE: none */
  uint32_t n_outputs;
} ms_run_t;

typedef struct ms_buffer {
  uint32_t value;       /* whose memory it is; MS_NONE: scratch */
  uint32_t node;        /* that makes it */
  uint32_t first, last; /* positions of the run, both included */
  uint64_t nbytes, place;
} ms_buffer_t;

typedef struct ms_arena {
  uint64_t nbytes;      /* of the arena */
  uint64_t live;        /* most bytes alive at one position */
  uint32_t peak;        /* the first position at which the arena is filled to its end */
  ms_buffer_t *buffers; /* owned; in order of the nodes that make them */
  uint32_t n_buffers;
  uint32_t *made; /* by value: the position at which it is made, MS_NONE: the run does not make it; owned */
} ms_arena_t;

/* 0, or -2 without memory. Deinit in any case. */
int ms_simulate(const ms_graph_t *g, const ms_run_t *run, ms_arena_t *out);
void ms_arena_deinit(ms_arena_t *a);

#endif
