/* An executable made of those of several backends: a graph is a row of parts (AOT_GRAPH_PART), which run one after the other.
 *
 * The program says which: graphs that were divided hold nothing but calls, nodes with a PART graph and the name of a backend. Values
 * between parts lie in the arena, from the part that makes them to the last that reads them; the parts share what is behind them as their
 * own arena. A call of a graph is one bound call a part, a submission one a part, in order, on one queue. */
#ifndef AOTH_PARTS_EXE_H
#define AOTH_PARTS_EXE_H

#include <aot/backend.h>
#include <ir/program.h>

/* A backend of the pipeline, and the executable of its parts. */
typedef struct aoth_part_backend {
  const char *name;
  const aot_exe_t *exe, *self; /* the imported table, what its functions are called with; self NULL: it has no part */
} aoth_part_backend_t;

/* Everything is borrowed as long as the executable. entering: a call into that backend comes next. NULL: told. */
const aot_exe_t *aoth_parts_exe_create(aot_ctx_t *ctx, aot_prog_t *prog, const aot_device_t *device,
                                       const aoth_part_backend_t *backends, uint32_t n_backends, void *self,
                                       void (*entering)(void *self, uint32_t backend));

/* Is the node a call of a part? Its graph, and the name of the backend. */
int aoth_is_part_call(aot_prog_t *prog, const aot_node_info_t *node, aot_graph_t *out_part, aot_str_t *out_backend);

#endif
