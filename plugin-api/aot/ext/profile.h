/* aot/ext/profile.h - extension "aot.profile/1", offered by an executable's table: how long each step of its runs
 * takes. Shown by `aothost run --profile`.
 *
 * A step is what the executable does as one piece: a call of a library, a generated loop, a kernel. Timing costs two
 * looks at the clock a step, from start() on; before it nothing is counted.
 *
 * The first run of a call holds what is done once (code that a library loads when it is needed, pages that are touched
 * for the first time): where there are more, a backend leaves it out and says so. */
#ifndef AOT_EXT_PROFILE_H
#define AOT_EXT_PROFILE_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_PROFILE "aot.profile/1"

typedef struct aot_profile_row {
  aot_str_t kernel; /* what ran, in the backend's words: "product", "loop", "copy" */
  aot_node_t node;  /* that it was made for, of several the last; AOT_NO_ID: none */
  uint32_t reserved;
  uint64_t n_runs, ns; /* since start(), all runs together */
  uint64_t nbytes;     /* of one run: operands and results, each element once; 0: not known */
  /* since 1.5; 0: not known */
  uint64_t flops;            /* of one run: multiplications and additions, of products, convolutions and the like */
  uint64_t limit_ns;         /* of one run: what the machine takes at the least, for its bytes or for its flops */
  uint64_t n_left_out;       /* first runs that are in none of these numbers */
  uint64_t last_at, last_ns; /* the last run: its begin by CLOCK_MONOTONIC, in nanoseconds, and how long it took */
} aot_profile_row_t;

typedef struct aot_profile {
  uint32_t struct_size, flags;
  const aot_profile_row_t *rows; /* by graph, in the order in which steps run */
  uint64_t n_rows, row_stride;   /* the size of a row, as its maker knows it */
} aot_profile_t;

typedef struct aot_ext_profile {
  aot_table_t head;
  /* Runs are timed from here on, and counted from nothing. [run-thread] */
  aot_status_t(AOT_CALL *start)(const struct aot_ext_profile *x);
  /* Set out->struct_size first. Valid until the next call of this table or of the executable's. [run-thread] */
  aot_status_t(AOT_CALL *read)(const struct aot_ext_profile *x, aot_profile_t *out);
} aot_ext_profile_t;

#endif
