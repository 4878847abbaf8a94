/* A node decomposed by its opset. */
#ifndef AOTH_DECOMPOSE_H
#define AOTH_DECOMPOSE_H

#include <sandbox/session.h>

/* The node's opset puts simpler nodes in its place. *out_done 0: it has no decomposition. Memory: arena. */
aot_status_t aoth_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, kit_arena_t *arena, aot_node_t node,
                                 int *out_done);
/* The same where the node can stay: one that the opset complains about stays as it was, and the complaint is not
 * reported. */
aot_status_t aoth_try_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, kit_arena_t *arena, aot_node_t node,
                                     int *out_done);

#endif
