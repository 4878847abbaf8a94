/* What is said when a joint graph cannot be read or divided. */
#ifndef JG_JOINT_ERROR_H
#define JG_JOINT_ERROR_H

#include <aot/host.h>

/* An error, at a value if there is one; answers `status`. */
aot_status_t jg_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_value_t value);
aot_status_t jg_no_memory(const aot_host_t *host, aot_ctx_t *ctx);

#endif
