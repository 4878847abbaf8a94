/* A parameter that is gathered twice in a row stays: the last one of the forward, with which the backward begins.
 *
 *     %a = all_gather %w; %b = wait %a; .. %b        %a = all_gather %w; %b = wait %a; .. %b
 *     ..                                        ->   ..
 *     %c = all_gather %w; %d = wait %c; .. %d        .. %b
 *
 * Between the two nothing else of weight is gathered, so that the second would be in memory soon after the first,
 * if not before it has gone. */
#ifndef OV_KEPT_GATHERS_H
#define OV_KEPT_GATHERS_H

#include "kit/emit/emit.h"

/* In e's graph; adds to *io_n how many are left out. */
aot_status_t ov_keep_gathers(em_t *e, uint32_t *io_n);

#endif
