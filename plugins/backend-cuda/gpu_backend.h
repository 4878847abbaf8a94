#ifndef GC_BACKEND_H
#define GC_BACKEND_H

#include <aot/plugin.h>

/* backend/2 backend-cuda, with gc_options. */
aot_status_t gc_backend_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                               const aot_table_t **out_table);

#endif
