/* aot/ext/declare.h - extension "aot.declare/1", offered by an opset's table: operators made of schema text, for the
 * `operators:` section of a pipeline. */
#ifndef AOT_EXT_DECLARE_H
#define AOT_EXT_DECLARE_H

#include <aot/base.h>
#include <aot/opset.h>
#include <aot/status.h>

#define AOT_EXT_DECLARE "aot.declare/1"

/* What is wrong with a text, and where. */
typedef struct aot_declare_error {
  uint32_t struct_size;
  uint32_t byte; /* of the text, from 0 */
  char message[240];
} aot_declare_error_t;

typedef struct aot_ext_declare {
  aot_table_t head;
  /* An operator for a text like "mylib::add_one_out(Tensor x, Tensor(a!) out) -> ()": *out [session], *out_local its
   * number in this opset, which is asked about its nodes. Nothing is diagnosed: a text that is none gives AOT_E_INVALID
   * and *out_error. [host-main] */
  aot_status_t(AOT_CALL *declare)(const struct aot_ext_declare *x, aot_ctx_t *ctx, aot_str_t schema,
                                  const aot_op_desc_t **out, uint32_t *out_local, aot_declare_error_t *out_error);
} aot_ext_declare_t;

#endif
