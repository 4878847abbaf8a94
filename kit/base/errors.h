/* Diagnostics of plugins: an aot_diag_t with everything that is not given set to "none".
 *
 *     return kit_fail(host, ctx, AOT_E_OPTION, "fsdp.ranks", "%u ranks are no mesh with rows of %u", n, m);
 *
 *     aot_diag_t d = kit_diag(AOT_SEVERITY_WARNING, code, text);
 *     d.hint = aot_str("use objective memory");
 *     return kit_report(host, ctx, AOT_OK, &d);
 *
 * Out of memory is one sentence, "no memory for the alias sets", of which the caller gives what follows "no memory". */
#ifndef KIT_ERRORS_H
#define KIT_ERRORS_H

#include <aot/diag.h>
#include <aot/host.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

aot_diag_t kit_diag(int32_t severity, const char *code, const char *message); /* both borrowed */
aot_status_t kit_report(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const aot_diag_t *d); /* status */

/* An error without a hint, at no node. Texts over 600 bytes are cut. Returns status. */
aot_status_t kit_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));

/* Returns AOT_E_EXHAUSTED. what: "for the schedule", "to order effects" */
aot_status_t kit_no_memory(const aot_host_t *host, aot_ctx_t *ctx, const char *code, aot_node_t node, const char *what);

/* The same as text, for errors that a caller reports. Returns AOT_E_EXHAUSTED. */
aot_status_t kit_no_memory_text(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
aot_status_t kit_no_memory_list(char *out, size_t size, const char *format, va_list args);

#endif
