/* aot/ext/model_operators.h - extension "aot.model-operators/1", offered by an importer's table: what a model file says
 * of operators before it is read. The namespaces that it uses tell the host which opsets to open (aot/note.h). The
 * operators that it declares itself, those that PyTorch got from the user who exported it, are declared then
 * (ext/declare.h); what the session knows by then, from an opset or the pipeline, holds. */
#ifndef AOT_EXT_MODEL_OPERATORS_H
#define AOT_EXT_MODEL_OPERATORS_H

#include <aot/base.h>
#include <aot/import.h>
#include <aot/status.h>

#define AOT_EXT_MODEL_OPERATORS "aot.model-operators/1"

typedef struct aot_schema_sink {
  aot_table_t head;
  /* One text: "mylib::scale(Tensor x, float by=2.0) -> Tensor". Copied. [stage-exclusive] */
  aot_status_t(AOT_CALL *put)(const struct aot_schema_sink *sink, aot_str_t schema);
} aot_schema_sink_t;

typedef struct aot_ext_model_operators {
  aot_table_t head;
  /* Reads that part of the file alone; there is no program yet. A file that cannot be read has no operators: read()
   * tells what is wrong with it. [stage-exclusive] */
  aot_status_t(AOT_CALL *list)(const struct aot_ext_model_operators *x, aot_ctx_t *ctx, const aot_file_t *file,
                               const aot_schema_sink_t *sink);
  /* The namespaces of the operators that the file's program has, one text each: "aten", "torchvision"; one may come
   * again, and too many do no harm. NULL: the importer cannot tell, and every opset is opened. Since minor 2.
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *namespaces)(const struct aot_ext_model_operators *x, aot_ctx_t *ctx, const aot_file_t *file,
                                     const aot_schema_sink_t *sink);
} aot_ext_model_operators_t;

#endif
