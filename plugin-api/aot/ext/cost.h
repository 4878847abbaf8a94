/* aot/ext/cost.h - extension "aot.cost/1": what the nodes of a program cost where they run, as data.
 *
 * Offered by a backend's table: what it makes of each node. Offered by the host to stages: the pipeline's backend, the
 * one that takes what others leave where there are several, asked about the program as it stands (AOT_E_UNIMPLEMENTED,
 * without a diagnostic, when the pipeline has no backend that answers).
 *
 * Numbers are estimates from types and operators; nothing is compiled or run. */
#ifndef AOT_EXT_COST_H
#define AOT_EXT_COST_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_COST "aot.cost/1"

/* One node, as if it ran alone. */
typedef struct aot_node_cost {
  uint32_t struct_size;
  uint32_t fusion; /* nodes of one graph with this number run as one loop where one reads the other; 0: it runs alone */
  aot_node_t node;
  uint32_t n_results;
  uint64_t flops;                       /* multiplications and additions; 0: none to speak of */
  uint64_t read_nbytes, written_nbytes; /* of memory; a view touches none */
  uint64_t workspace_nbytes;            /* beside operands and results, while it runs */
  uint64_t nanoseconds;                 /* that it is estimated to take; 0: not said */
  /* n_results: the operand that the result is a view of, counted from 1; 0: it has memory of its own */
  const uint32_t *view_of;
} aot_node_cost_t;

typedef struct aot_cost_sink {
  aot_table_t head;
  aot_status_t(AOT_CALL *put)(const struct aot_cost_sink *sink, const aot_node_cost_t *cost);
} aot_cost_sink_t;

/* What holds for all nodes. */
typedef struct aot_cost_machine {
  uint32_t struct_size;
  uint32_t max_fused;          /* nodes of one loop; 0: any number */
  uint64_t alignment;          /* of values in memory, bytes */
  uint64_t launch_nanoseconds; /* that a submission of its own takes; 0: not said */
} aot_cost_machine_t;

typedef struct aot_ext_cost {
  aot_table_t head;
  /* set out->struct_size first [stage-exclusive] */
  aot_status_t(AOT_CALL *machine)(const struct aot_ext_cost *x, aot_ctx_t *ctx, aot_cost_machine_t *out);
  /* One row for every node of the graph, in order; AOT_NO_ID: of every graph, regions included. symbols[i]: the value
   * of the i-th symbol of the shape environment; n_symbols 0: their hints. O(nodes + operands). [stage-exclusive] */
  aot_status_t(AOT_CALL *nodes)(const struct aot_ext_cost *x, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink);
} aot_ext_cost_t;

#endif
