/* Convolution networks in the memory order that convolutions are fastest in. */
#ifndef CHANNELS_LAST_H
#define CHANNELS_LAST_H

#include <aot/host.h>

typedef struct nhwc_counts {
  uint32_t n_convolutions; /* that run channels last now */
  uint32_t n_patches;      /* of all: those that gain nothing, their windows neither overlap nor are one pixel */
  uint32_t n_others;       /* of all: those that are left as they were */
  uint32_t n_copies;       /* made for it */
  uint64_t copied_nbytes, saved_nbytes;
} nhwc_counts_t;

/* The program's convolutions, islands of them where that pays. out: of those used; where none is, what they would
 * cost. */
aot_status_t nhwc_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, nhwc_counts_t *out);

#endif
