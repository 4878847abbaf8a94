/* What the stage is informed. */
#ifndef OV_OVERLAP_OPTIONS_H
#define OV_OVERLAP_OPTIONS_H

#include "kit/model/node_costs.h"
#include "link_cost.h"

typedef struct ov_options {
  uint64_t bucket, ahead; /* bytes */
  double margin;          /* times that a collective may take what the link says */
  int keeps;              /* what is gathered twice in a row is gathered once (kept_gathers.h) */
  uint64_t exchange;      /* bytes: sums of so much that was cast are exchanges (exchange.h); 0: none */
  ov_link_t link;
  nc_rates_t rates;
  uint32_t n_ranks; /* that take part */
} ov_options_t;

#endif
