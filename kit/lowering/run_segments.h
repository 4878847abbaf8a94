/* A run of a graph that is cut (dynamic_segments.h): part by part, with the nodes between them that report sizes, which
 * run by their kernels on the host. */
#ifndef LW_RUN_SEGMENTS_H
#define LW_RUN_SEGMENTS_H

#include "live_values.h"
#include <aot/backend.h>

typedef struct lw_parts_run {
  const lw_cut_t *cut;
  uint32_t graph;   /* row of the graph */
  int64_t *symbols; /* in and out, as in aot_submission_t */
  uint64_t n_symbols;
  const aot_tensor_t *inputs, *outputs; /* the graph's */
  const aot_output_sink_t *open;        /* NULL: no output is open */
  const lw_memory_t *memory;
  void *self;
  /* Part `number` of the graph is to run at these symbols: the types of its output ports. */
  aot_status_t (*plan)(void *self, uint32_t number, const int64_t *symbols, const lw_port_t **out, lw_error_t *error);
  /* It runs, as planned; what it reads and writes stays until the next plan. */
  aot_status_t (*run)(void *self, uint32_t number, const aot_tensor_t *inputs, const aot_tensor_t *outputs,
                      lw_error_t *error);
} lw_parts_run_t;

aot_status_t lw_run_parts(const lw_parts_run_t *r, lw_error_t *error);

#endif
