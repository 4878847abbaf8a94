/* A node taken apart by its opset. */
#ifndef AOTH_DECOMPOSE_H
#define AOTH_DECOMPOSE_H

#include <pipeline/session.h>

/* The node's opset puts simpler nodes in its place. *out_done 0: it has no decomposition. Memory: arena. */
aot_status_t aoth_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, aoth_arena_t *arena, aot_node_t node,
                                 int *out_done);

#endif
