/* The interpreter: runs the graphs of a snapshot block with the reference kernels, one node after the other.
 *
 * A program is the checked block plus a kernel for each operator row. A run keeps a slot for each value of the graph it
 * executes: a tensor over a counted storage. Views share their operand's storage, with strides computed from the
 * operand's actual ones; a storage is freed when the last slot that needs it has been used for the last time. Regions
 * (cond, invoke_subgraph, ..) push a frame; there is no recursion. Runs share nothing, so several threads may run
 * one program. */
#ifndef REF_EXEC_H
#define REF_EXEC_H

#include "kit/custom/custom.h"
#include "kit/base/host_call.h"
#include "kit/reference/rk.h"
#include "kit/model/rows.h"
#include <aot/snapshot.h>

typedef struct rf_program rf_program_t;

typedef struct rf_error {
  char text[512];
  uint32_t node;    /* id of the node at fault, AOT_NO_ID: none */
  const char *hint; /* constant text, or NULL */
  int is_told;      /* by the host, which was requested memory */
} rf_error_t;

typedef struct rf_stats {
  uint64_t peak_nbytes;   /* of the run: storages that the interpreter owned at once */
  uint64_t copied_nbytes; /* of a step's outputs, which are where inputs do */
} rf_stats_t;

/* Check and prepare. The bytes are borrowed until rf_destroy; when they are not 8-byte aligned they are copied. Kernels
 * that are not in kit/reference are looked up in `world`. */
aot_status_t rf_load(const void *bytes, uint64_t nbytes, const custom_world_t *world, rf_program_t **out,
                     rf_error_t *error);
void rf_destroy(rf_program_t *p);
/* Runs from here on look for the first NaN (aot.check-nan/1). */
void rf_watch(rf_program_t *p);

/* Where the program's own prints go. */
typedef struct rf_printer {
  void *self;
  void (*line)(void *self, const char *text, uint32_t n, uint32_t node); /* node: id */
} rf_printer_t;

/* One run of a graph. printer, out_stats may be NULL. */
aot_status_t rf_run(const rf_program_t *p, const hc_run_t *run, const rf_printer_t *printer, rf_stats_t *out_stats,
                    rf_error_t *error);

/* The memory that forward and backward will take, by a rehearsal: a run of each that computes nothing. What the
 * interpreter itself allocates, in memory of its own, for as long as it keeps it; and the boundary. Of a cond both
 * branches are rehearsed. symbols: a value for each. Fills out->plan. AOT_E_PRECONDITION: a joint graph;
 * AOT_E_UNIMPLEMENTED: sizes that only a run reports. */
aot_status_t rf_plan(const rf_program_t *p, const int64_t *symbols, uint64_t n_symbols, mr_rows_t *out,
                     rf_error_t *error);

uint32_t rf_n_kernels(const rf_program_t *p); /* kernels called in one run of every graph that is not a region */

/* Why this node (a row of a checked block) cannot be run; NULL: it can. Text in `error` or constant. */
const char *rf_refuse(const aot_snapshot_t *s, uint32_t node, const custom_world_t *world, rf_error_t *error);

#endif
