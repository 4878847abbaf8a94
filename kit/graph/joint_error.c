#include "joint_error.h"

#include "kit/base/errors.h"
#include <aot/inline.h>

aot_status_t jg_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_value_t value) {
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, message);
  d.value = value;
  return kit_report(host, ctx, status, &d);
}

aot_status_t jg_no_memory(const aot_host_t *host, aot_ctx_t *ctx) {
  return kit_no_memory(host, ctx, "partition.no-memory", aot_no_node(), "for the arrays of the joint graph");
}
