/* Wires: between what is made and what reads it, which may be on different devices; and how long it takes to move what
 * is on them. */
#ifndef AS_WIRES_H
#define AS_WIRES_H

#include "assign_stage.h"
#include <aot/snapshot.h>

typedef struct as_wire {
  uint32_t maker;      /* position + 1 of the node that makes it, or writes it again; 0: it comes from outside */
  uint32_t is_wanted;  /* outside, as a result of the graph */
  uint32_t begin, end; /* its readers */
  uint64_t nbytes;
} as_wire_t;

typedef struct as_wires {
  uint32_t n;
  as_wire_t *wire;
  uint32_t *readers; /* positions */
  uint32_t *writer;  /* by leaf: position + 1 of the node that makes its new value */
} as_wires_t;

/* None where there is one device. O(nodes + operands). */
aot_status_t as_find_wires(const as_stage_t *s, const aot_snapshot_t *p, const aot_snap_graph_t *g, as_wires_t *w);

/* Nanoseconds that what a part makes and reads takes to be moved, where it runs, and where it would else. */
typedef struct as_move_time {
  uint64_t here, there;
} as_move_time_t;

/* n_parts parts; part: by node position. device, other: by part, where it runs and where it would. out: by part, added
 * to. O(wires * devices). */
aot_status_t as_count_moves(const as_stage_t *s, const as_wires_t *w, uint32_t n_parts, const uint32_t *part,
                            const uint32_t *device, const uint32_t *other, as_move_time_t *out);

#endif
