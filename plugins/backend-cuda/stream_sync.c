#include "stream_sync.h"

aot_status_t gc_exe_settle(gc_exe_t *e, aot_ctx_t *ctx, aot_queue_t *queue, lw_error_t *error) {
  const aot_device_t *d = &e->device->table;
  aot_status_t status = e->settled.timeline ? AOT_OK : d->timeline_create(d, ctx, &e->settled.timeline);
  if (status == AOT_OK) {
    e->settled.value++;
    status = d->signal(d, ctx, queue, e->settled);
  }
  if (status == AOT_OK) status = d->wait_host(d, ctx, e->settled, UINT64_MAX);
  return status == AOT_OK ? AOT_OK : lw_fail(error, status, "told", "the device did not come to the end of its work");
}

void gc_exe_settle_deinit(gc_exe_t *e) {
  const aot_device_t *d = e->device ? &e->device->table : NULL;
  if (e->settled.timeline) d->timeline_destroy(d, NULL, e->settled.timeline);
}
