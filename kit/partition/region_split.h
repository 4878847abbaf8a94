/* Repeated regions, divided once each.
 *
 * Autograd leaves a call of the body in the forward and a call of its joint graph in the backward, which runs the body
 * again. Here the joint graph is divided like that of a program, once for all calls that share it: into a body that
 * also gives the values to keep, and one that takes them instead of computing them. The calls are stitched to these;
 * what a forward call gives beyond its results is an ordinary value of the joint graph, and the partition of the
 * program keeps it. Source: PyTorch's joint partition of invoke_subgraph
 * (torch/_functorch/_aot_autograd/graph_compile.py, 2.11). */
#ifndef PT_REGION_SPLIT_H
#define PT_REGION_SPLIT_H

#include "apply.h"
#include <aot/option.h>

#define PT_OPTION_ONLY                                                                                                 \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT,                      \
    .name = AOT_STR_INIT("only"),                                                                                      \
    .help = AOT_STR_INIT(                                                                                              \
        "the regions to divide, by name, with commas between; empty: all that no stage before has divided")            \
  }

/* All pairs of calls whose region is among `only` (pt_region_pairs_init). Reports regions-split, region-calls,
 * region-saved-bytes (of all calls) and region-recomputed-nodes. Diagnoses what is wrong. O(program). */
aot_status_t pt_split_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_str_t only, pt_pick_t pick,
                              const void *self);

#endif
