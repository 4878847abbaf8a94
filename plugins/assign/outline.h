/* Parts become graphs, and calls are in their place. */
#ifndef AS_OUTLINE_H
#define AS_OUTLINE_H

#include "assign_stage.h"

/* The graph's nodes into graphs of kind PART, in whose place calls are. part: by node id; backend: by part, counted
 * from 1. in_place: by output, 1: it may be in its input's memory; 0: it is handed over when all parts have run. */
aot_status_t as_outline(const as_stage_t *s, aot_graph_t graph, const uint32_t *part, const uint32_t *backend,
                        uint32_t n_parts, const uint8_t *in_place);

#endif
