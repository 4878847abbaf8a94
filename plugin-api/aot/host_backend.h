/* aot/host_backend.h - what backends whose kernels are functions of the CPU have in common, for those out of the tree,
 * too; never part of the ABI.
 *
 *   compile   write the snapshot
 *   load      aot_is_snapshot, aot_host_work, a copy of the bytes
 *   plan      aot_graph_of, how much memory that is, aot_export
 *   bind      aot_graph_of, where everything lies
 *   submit    aot_submit_work(device, work, ctx, submission, run, call) */
#ifndef AOT_HOST_BACKEND_H
#define AOT_HOST_BACKEND_H

#include <aot/backend.h>
#include <aot/device.h>
#include <aot/inline.h>
#include <aot/snapshot.h>

/* The number-th graph of its kind, from 0. NULL: the program has none. */
static inline const aot_snap_graph_t *aot_graph_of(const aot_snapshot_t *s, const aot_graph_at_t *at) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  uint32_t g, n = 0;
  for (g = 1; g < s->graphs.count; g++)
    if (graphs[g].kind == at->kind && n++ == at->number) return &graphs[g];
  return NULL;
}

/* Are these bytes, which need not be aligned, a snapshot of this version and not cut short? Its rows are taken on
 * trust: they are what compile wrote. */
static inline int aot_is_snapshot(const void *bytes, uint64_t nbytes) {
  aot_snapshot_t head;
  if (nbytes < sizeof head) return 0;
  memcpy(&head, bytes, sizeof head);
  return head.magic == AOT_SNAPSHOT_MAGIC && head.version == AOT_SNAPSHOT_VERSION && head.nbytes == nbytes;
}

/* NULL: the CPU cannot compute on this device's memory. */
static inline const aot_ext_host_work_t *aot_host_work(const aot_device_t *d) {
  const aot_ext_host_work_t *work = (const aot_ext_host_work_t *)aot_ext(&d->head, AOT_EXT_HOST_WORK);
  return work && work->head.struct_size >= sizeof *work ? work : NULL;
}

/* A submission as one item of the queue, between its waits and its signals. run is called once whatever happens, also
 * when this fails: then with the failure, and it lets go of what it holds. */
static inline aot_status_t aot_submit_work(const aot_device_t *d, const aot_ext_host_work_t *work, aot_ctx_t *ctx,
                                           const aot_submission_t *s, aot_host_work_t run, void *self) {
  aot_status_t status = AOT_OK;
  uint64_t i;
  for (i = 0; i < s->n_waits && status == AOT_OK; i++) status = d->wait(d, ctx, s->queue, s->waits[i]);
  if (status != AOT_OK) {
    run(self, status);
    return status;
  }
  status = work->enqueue(work, ctx, s->queue, run, self);
  for (i = 0; i < s->n_signals && status == AOT_OK; i++) status = d->signal(d, ctx, s->queue, s->signals[i]);
  return status;
}

#endif
