#include "joint_error.h"

#include <aot/inline.h>

aot_status_t jg_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_value_t value) {
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(code),
      .message = aot_str(message),
      .node = aot_no_node(),
      .value = value,
  };
  host->diag(host, ctx, &d);
  return status;
}

aot_status_t jg_no_memory(const aot_host_t *host, aot_ctx_t *ctx) {
  return jg_fail(host, ctx, AOT_E_EXHAUSTED, "partition.no-memory", "no memory for the arrays of the joint graph",
                 aot_no_value());
}
