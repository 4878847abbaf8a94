/* Bound calls (aot_exe_t) of a backend whose kernels are functions of the CPU: a call is its tensors, a submission is
 * one item of host work (aot.host-work/1) on the device's queue. The backend gives one function that runs a graph. */
#ifndef PLUGINS_COMMON_HOST_CALL_H
#define PLUGINS_COMMON_HOST_CALL_H

#include <aot/backend.h>

#define HC_NO_DEVICE "it computes on the CPU, and the device has no memory that the CPU computes on (aot.host-work/1)"

/* One run, handed to the backend; everything is borrowed until it returns. */
typedef struct hc_run {
  aot_ctx_t *ctx;
  int32_t kind; /* AOT_GRAPH_* */
  uint32_t number;
  const aot_tensor_t *inputs, *outputs;
  uint64_t n_inputs, n_outputs;
  char *arena;
  uint64_t arena_nbytes;
  int64_t *symbols; /* in: AOT_SYMBOL_UNKNOWN where unknown; out: what was learned */
  uint64_t n_symbols;
  const aot_output_sink_t *open; /* NULL: no output is open */
} hc_run_t;
typedef aot_status_t (*hc_run_fn)(void *self, const hc_run_t *run);

/* An executable's table and what is after it: the first member of the backend's own struct. */
typedef struct hc_exe {
  aot_exe_t table;
  const aot_device_t *device;
  const aot_ext_host_work_t *work;
  hc_run_fn run;
} hc_exe_t;

/* Fills the table: plan (no arena), bind, submit, unbind; the rest is the backend's. run gets `self`, which is the
 * table's, too. 0: the device has no memory that the CPU computes on. */
int hc_exe_init(hc_exe_t *e, const aot_device_t *device, hc_run_fn run, void *self);

#endif
