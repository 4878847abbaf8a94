/* aot/ext/model_operators.h - extension "aot.model-operators/1", offered by an importer's table: the operators that a model file
 * declares itself, those that PyTorch got from the user who exported it. The host has them declared (ext/declare.h) before the
 * file is read. What the session knows by then, from an opset or the pipeline, holds. */
#ifndef AOT_EXT_MODEL_OPERATORS_H
#define AOT_EXT_MODEL_OPERATORS_H

#include <aot/base.h>
#include <aot/import.h>
#include <aot/status.h>

#define AOT_EXT_MODEL_OPERATORS "aot.model-operators/1"

typedef struct aot_schema_sink {
  uint32_t struct_size, reserved;
  void *self;
  /* One text: "mylib::scale(Tensor x, float by=2.0) -> Tensor". Copied. [stage-exclusive] */
  aot_status_t (AOT_CALL *put)(void *self, aot_str_t schema);
} aot_schema_sink_t;

typedef struct aot_ext_model_operators {
  uint32_t struct_size, flags;
  /* Reads that part of the file alone; there is no program yet. A file that cannot be read has no operators: read() tells what is
   * wrong with it. `table` is the unit's table. [stage-exclusive] */
  aot_status_t (AOT_CALL *list)(const void *table, aot_ctx_t *ctx, const aot_file_t *file, const aot_schema_sink_t *sink);
} aot_ext_model_operators_t;

#endif
