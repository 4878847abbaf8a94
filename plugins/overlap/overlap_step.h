/* The pass: collectives of every step graph are arranged. */
#ifndef OV_OVERLAP_STEP_H
#define OV_OVERLAP_STEP_H

#include "memory_of_step.h"
#include "overlap_options.h"
#include "traffic.h"

#include <aot/host.h>

typedef struct ov_counts {
  uint32_t n_kept;                   /* gathers that are left out, since what they make has stayed */
  uint32_t n_exchanged;              /* sums that are exchanges now */
  uint32_t n_collectives, n_started; /* in the program, and what became of them */
  double compute_ns, collective_ns, step_ns;
  ov_memory_t memory;   /* of the step graph that has the most, simulated */
  ov_traffic_t traffic; /* of all step graphs */
} ov_counts_t;

aot_status_t ov_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const ov_options_t *options,
                    ov_counts_t *out);

#endif
