/* Operators that a backend does not know itself, run by kernels that plugins have (aot/ext/kernels.h).
 *
 *     %3 = mylib.scale.default(%0, 2.0)                                the operator itself: it writes nothing
 *     %4, %5 = aot.auto_functionalized.default(@mylib.split, %0, %1, %2)   without its writes: own results, then new
 *                                                                          values
 *
 * custom_prepare looks through a snapshot once: which nodes are of these kinds, which kernel runs each, what is
 * written, and which of the copies that aot.auto_functionalized requests are not needed (reinplace.h). custom_run makes
 * one call. */
#ifndef PLUGINS_COMMON_CUSTOM_H
#define PLUGINS_COMMON_CUSTOM_H

#include "kit/reference/rk.h"
#include <aot/ext/kernels.h>
#include <aot/ext/queue_kernel.h>
#include <aot/ext/report.h>
#include <aot/graph.h>
#include <aot/snapshot.h>

#define CUSTOM_NONE UINT32_MAX

/* Where operators and kernels are looked up. lookup NULL: there are none. */
typedef struct custom_world {
  const aot_ext_kernel_lookup_t *lookup;
  aot_ctx_t *ctx;
  /* kernels run in order on memory that stays where it is: some may be done later (AOT_KERNEL_STARTS) */
  int takes_starts;
  int has_queues; /* the same of kernels that put their work on a device's queue (aot.queue-kernel/1) */
} custom_world_t;

/* An operand that the operator writes. Its new value is the node's result n_own + (its number). */
typedef struct custom_written {
  uint32_t arg, element; /* of the operator's own arguments; element of a list, else 0 */
  uint32_t value;        /* value row that holds it before */
  uint32_t same_as;      /* an earlier one that is the same value: they share memory; CUSTOM_NONE: none */
  uint32_t in_place;     /* 1: it may be written in place: no other reader sees the old contents */
} custom_written_t;

typedef struct custom_node {
  uint32_t node;      /* row */
  uint32_t first_arg; /* of the node's arguments, the operator's first: 1 after an Op argument, else 0 */
  const aot_op_desc_t *op;
  const aot_kernel_t *kernel;
  uint32_t n_own; /* results of the operator itself */
  int passes;     /* the only result may be the memory of the first argument (AOT_KERNEL_PASSES) */
  uint32_t n_written;
  custom_written_t *written;
} custom_node_t;

typedef struct custom_program {
  custom_node_t *nodes;
  uint32_t n_nodes;
  uint32_t *of_node; /* by node row: number in nodes, CUSTOM_NONE; NULL: no node is of these kinds */
  uint32_t copies_asked, copies_removed;
} custom_program_t;

typedef struct custom_error {
  char text[400];
  uint32_t node; /* id */
} custom_error_t;

/* For a node whose operator kit/reference does not have, and that is no region: why no plugin's kernel can run it, as
 * text in `error` or constant; NULL: one can. */
const char *custom_refuse(const custom_world_t *w, const aot_snapshot_t *s, uint32_t node, custom_error_t *error);

/* The nodes that kit/reference has no kernel for, regions and numbers of the shape environment aside.
 * AOT_E_UNIMPLEMENTED with the text of custom_refuse for an aot.auto_functionalized that cannot be run,
 * AOT_E_EXHAUSTED. custom_program_deinit is due after a failure, too. O(program) */
aot_status_t custom_prepare(const custom_world_t *w, const aot_snapshot_t *s, custom_program_t *out,
                            custom_error_t *error);
void custom_program_deinit(custom_program_t *p);
const custom_node_t *custom_find(const custom_program_t *p, uint32_t node); /* NULL: none of these kinds */

/* "copies-asked", "copies-removed"; nothing for a program without custom operators. */
aot_status_t custom_report(const custom_program_t *p, const aot_ext_report_t *report, aot_ctx_t *ctx);

/* One call: args are the node's (an Op argument included), results the node's, allocated. A written operand whose
 * result is the same memory is not copied. O(elements copied) and the kernel. */
aot_status_t custom_run(const custom_node_t *n, const rk_arg_t *args, uint32_t n_args, rk_tensor_t *results,
                        uint32_t n_results, rk_error_t *error);

/* The same as work on a device's queue, where the kernel can (aot/ext/queue_kernel.h), and the operator writes nothing.
 * custom_takes_queue: without memory. */
int custom_takes_queue(const custom_node_t *n, const rk_call_t *call);
aot_status_t custom_enqueue(const custom_node_t *n, const rk_call_t *call, const aot_device_t *device,
                            aot_queue_t *queue, rk_error_t *error);

/* A run has ended half-way: nothing that kernels have started continues when this returns. */
void custom_settle(const custom_program_t *p);

#endif
