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
  uint32_t struct_size, abi_epoch, abi_minor, flags;
  void *self;
  const aot_graph_api_t *graph; /* [session] */
  const aot_edit_api_t *edit;   /* [session] */
  aot_status_t (AOT_CALL *diag)(aot_ctx_t *ctx, const aot_diag_t *d);                     /* [any-thread] */
  /* Zeroed memory of an arena; NULL when there is none left, with the diagnostic already given. [any-thread] */
  void *(AOT_CALL *alloc)(aot_ctx_t *ctx, uint32_t arena, uint32_t align, uint64_t size);
  int32_t (AOT_CALL *cancelled)(aot_ctx_t *ctx);                                          /* [any-thread] */
  const void *(AOT_CALL *get_ext)(void *self, const char *id);                            /* [any-thread] */
} aot_host_t;

#endif
