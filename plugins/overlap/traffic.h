/* What the collectives of a step hand to a rank, by kind and by whom it is with: the bytes that communicators count
 * (aot_group_info_t), so that a plan can be held against a run. */
#ifndef OV_TRAFFIC_H
#define OV_TRAFFIC_H

#include "kit/emit/emit.h"
#include "link_cost.h"

enum { OV_ALL_RANKS, OV_ROW, OV_COLUMN, OV_N_DIMENSIONS };

/* Whom a collective is with; of a mesh a row or a column. span: among so many side by side they lie: a row is near, a
 * column is not. */
typedef struct ov_among {
  int dimension;
  uint32_t n_ranks, span;
} ov_among_t;

/* name: the argument that names the group. n_all: ranks of the run. */
ov_among_t ov_among_of(const aot_arg_t *name, uint32_t n_all);

typedef struct ov_traffic {
  uint32_t n[OV_N_KINDS][OV_N_DIMENSIONS];
  uint64_t nbytes[OV_N_KINDS][OV_N_DIMENSIONS]; /* that come to the first rank, which has the largest shares */
} ov_traffic_t;

/* Adds one collective of `whole_nbytes`, in elements of `element` bytes. A reduction that all ranks get is scattered
 * by shares, as even as may be, then gathered (Rabenseifner's). */
void ov_traffic_add(ov_traffic_t *t, int kind, const ov_among_t *among, uint64_t whole_nbytes, uint64_t element);

#endif
