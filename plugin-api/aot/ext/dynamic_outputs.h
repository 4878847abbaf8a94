/* aot/ext/dynamic_outputs.h - extension "aot.dynamic-outputs/1", offered by an executable (aot_exe_t.get_ext): results whose
 * size depends on the data. The host runs a graph this way when there are symbols that nothing before the run determines. An
 * executable without it is run through aot_exe_t.run, where such symbols read AOT_SYMBOL_UNKNOWN too, unless a graph has output
 * ports whose sizes need them: that is refused. */
#ifndef AOT_EXT_DYNAMIC_OUTPUTS_H
#define AOT_EXT_DYNAMIC_OUTPUTS_H

#include <aot/backend.h>

#define AOT_EXT_DYNAMIC_OUTPUTS "aot.dynamic-outputs/1"

#define AOT_SYMBOL_UNKNOWN INT64_MIN /* in symbols[]: a node of the graph will tell */
#define AOT_RANK_OPEN (-1)           /* rank of an output whose tensor is yet to be had from the sink */

typedef struct aot_output_sink {
  uint32_t struct_size, reserved;
  void *self;
  /* The tensor of the open output port `output`: its type under these symbols, which must be known as far as the type needs
   * them. Memory belongs to the host and lives at least as long as the call. [run-thread] */
  aot_status_t (AOT_CALL *allocate)(void *self, uint64_t output, const int64_t *symbols, uint64_t n_symbols, aot_tensor_t *out);
} aot_output_sink_t;

typedef struct aot_ext_dynamic_outputs {
  uint32_t struct_size, flags;
  /* aot_exe_t.run with open outputs. symbols: in, what is known; out, what the run has learned. A value outside its symbol's
   * range is an error that names the symbol, the range and the node. [run-thread] */
  aot_status_t (AOT_CALL *run)(const aot_exe_t *e, aot_ctx_t *ctx, int32_t graph_kind, const aot_tensor_t *inputs,
                               uint64_t n_inputs, const aot_tensor_t *outputs, uint64_t n_outputs, int64_t *symbols,
                               uint64_t n_symbols, const aot_output_sink_t *sink);
} aot_ext_dynamic_outputs_t;

#endif
