/* Rematerialization by minimum cut: which forward values to keep for the backward, so that keeping them costs least and
 * everything else is computed again.
 *
 * Every value that exists before the backward becomes an arc v_in -> v_out with the price of keeping it. The source stands
 * for "only the forward has it", the sink for "the backward needs it". What may not be computed twice hangs on the source,
 * what the backward reads hangs on the sink, data flow is infinite. The arcs of the cheapest cut are the values to keep.
 * Source: PyTorch's min_cut_rematerialization_partition (torch/_functorch/partitioners.py, 2026), restated over operator
 * flags instead of operator names; of equal cuts it takes the one nearest the source, which saves fewer bytes where views
 * of one value tie. */
#ifndef MC_MINCUT_H
#define MC_MINCUT_H

#include "common/partition/joint_arrays.h"

typedef struct mc_rules {
  int ban_materialized;   /* what the backward would write to memory is not computed again */
  int ban_reductions;     /* nor what reads four times its own size or more */
  int ban_far_apart;      /* nor for a use that no fusion reaches */
  int ban_expensive;      /* nor anything but pointwise, view, creation, movement, reduction */
  int recompute_views;    /* views are never kept */
  int free_static_inputs; /* parameters, buffers, constants cost nothing to keep */
  double distance_base;   /* price factor for each step away from the backward, up to 100 steps */
} mc_rules_t;

/* out_saved: room for n_values; values to keep in order, graph inputs left out. 0; -1: no finite cut, *out_value names a value
 * at fault; -2: no memory. */
int mc_choose(const pt_joint_t *j, const mc_rules_t *rules, uint32_t *out_saved, uint32_t *out_n_saved, uint32_t *out_value);

/* bans.c: banned[n] = 1 for each early node that must not be computed again. 0 or -2. */
int mc_ban(const pt_joint_t *j, const mc_rules_t *rules, uint8_t *banned);
/* cost.c: price[v] of keeping each value that exists before the backward; -1: may not be kept. 0 or -2. */
int mc_price(const pt_joint_t *j, const mc_rules_t *rules, int64_t *price);

/* Questions that bans and prices both ask of a node. */
int mc_is_view(const pt_joint_t *j, uint32_t node);
int mc_is_recomputable(const pt_joint_t *j, uint32_t node);
int mc_is_fusible(const pt_joint_t *j, uint32_t a, uint32_t b);
int mc_must_recompute(const pt_joint_t *j, uint32_t node);

#endif
