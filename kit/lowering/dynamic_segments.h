/* Programs with sizes that only a run reports, cut where they are reported.
 *
 * A node whose result has such a size (a birth: nonzero, a mask, item) ends a part. What is between two births
 * becomes a graph of its own in a copy of the snapshot: its inputs are what it reads of earlier parts, its outputs what
 * later ones read. So a segment is planned like any graph, by the sizes known when it begins, and its schedule is
 * stored by them.
 *
 *     graph:   n n n B n n B n        parts:   [n n n] B | [n n] B | [n]
 *
 * O(nodes + operands); births inside of regions are left alone, and refused by the backend. */
#ifndef LW_DYNAMIC_SEGMENTS_H
#define LW_DYNAMIC_SEGMENTS_H

#include <aot/snapshot.h>
#include <aot/status.h>

typedef struct lw_part {
  uint32_t graph; /* row of the segment */
  uint32_t birth; /* row of the node that is run after it; AOT_NO_ID: the last part */
} lw_part_t;

typedef struct lw_cut {
  const aot_snapshot_t *s; /* the given one, with segments as further graphs */
  void *block;             /* NULL: nothing was cut, and s is what was given */
  lw_part_t *parts;        /* those of one graph are together */
  uint32_t n_parts;
  uint32_t *first_part, *n_parts_of; /* by graph row of the given snapshot; 0 parts: it is whole */
  uint32_t *last_use;                /* by value row: number of the part, in its graph, that reads it last */
} lw_cut_t;

/* AOT_E_EXHAUSTED: no memory. lw_cut_deinit is due even then. */
aot_status_t lw_cut_init(lw_cut_t *out, const aot_snapshot_t *s);
void lw_cut_deinit(lw_cut_t *c);

int lw_is_run(int32_t kind); /* a graph of this kind is called from outside */

#endif
