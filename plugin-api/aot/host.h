/* aot/host.h - what the host offers a plugin. */
#ifndef AOT_HOST_H
#define AOT_HOST_H

#include <aot/base.h>
#include <aot/diag.h>
#include <aot/edit.h>
#include <aot/graph.h>
#include <aot/status.h>

/* Handed to create(); import by copy, keep the copy. Cut to the plugin's abi_minor by the host. */
typedef struct aot_host {
  aot_table_t head; /* get_ext: what the host offers beside this, aot/ext/ */
  uint32_t abi_epoch, abi_minor;
  const aot_graph_api_t *graph;                                                                /* [session] */
  const aot_edit_api_t *edit;                                                                  /* [session] */
  aot_status_t(AOT_CALL *diag)(const struct aot_host *h, aot_ctx_t *ctx, const aot_diag_t *d); /* [any-thread] */
  /* Zeroed memory of an arena; NULL when there is none left, with the diagnostic already given. [any-thread] */
  void *(AOT_CALL *alloc)(const struct aot_host *h, aot_ctx_t *ctx, uint32_t arena, uint32_t align, uint64_t size);
  int32_t(AOT_CALL *cancelled)(const struct aot_host *h, aot_ctx_t *ctx); /* [any-thread] */
} aot_host_t;

#endif
