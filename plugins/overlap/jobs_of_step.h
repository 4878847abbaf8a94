/* The pass on one step graph: what is a job, and what becomes of the plan. */
#ifndef OV_JOBS_OF_STEP_H
#define OV_JOBS_OF_STEP_H

#include "link_cost.h"
#include "memory_of_step.h"
#include "traffic.h"

#include "common/cost/node_costs.h"
#include <aot/host.h>

typedef struct ov_options {
  uint64_t bucket, ahead; /* bytes */
  double margin;          /* times that a collective may take what the link says */
  int keeps;              /* what is gathered twice in a row is gathered once (kept_gathers.h) */
  uint64_t exchange;      /* bytes: sums of so much that was cast are exchanges (exchange.h); 0: none */
  ov_link_t link;
  nc_rates_t rates;
  uint32_t n_ranks; /* that take part */
} ov_options_t;

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
