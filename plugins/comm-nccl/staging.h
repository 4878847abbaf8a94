/* A little memory of a GPU, and of the host next to it, for what the host says through NCCL, which reaches no other;
 * with a stream of its own. CUDA's driver, opened at run time. */
#ifndef NL_STAGING_H
#define NL_STAGING_H

#include <stddef.h>
#include <stdint.h>

typedef struct nl_driver { /* functions of cuda.h, by their names; they answer 0 or an error number */
  void *library;
  int (*init)(unsigned flags);
  int (*get_error_string)(int error, const char **out);
  int (*device_get_count)(int *out);
  int (*device_get)(int *out, int ordinal);
  int (*primary_ctx_retain)(void **out, int device);
  int (*primary_ctx_release)(int device);
  int (*ctx_set_current)(void *context);
  int (*mem_alloc)(uint64_t *out, size_t nbytes);
  int (*mem_free)(uint64_t address);
  int (*mem_host_alloc)(void **out, size_t nbytes, unsigned flags);
  int (*mem_free_host)(void *memory);
  int (*memcpy_to_device)(uint64_t to, const void *from, size_t nbytes, void *stream);
  int (*memcpy_to_host)(void *to, uint64_t from, size_t nbytes, void *stream);
  int (*memset_bytes)(uint64_t to, unsigned char byte, size_t nbytes, void *stream);
  int (*stream_create)(void **out, unsigned flags);
  int (*stream_destroy)(void *stream);
  int (*stream_synchronize)(void *stream);
} nl_driver_t;

typedef struct nl_staging {
  nl_driver_t driver;
  int device;
  void *context, *stream;
  uint64_t out, in;         /* on the device .. */
  char *host_out, *host_in; /* .. and on the host, pinned: nbytes each */
  size_t nbytes;
} nl_staging_t;

/* 0: the driver is there, and *out_n devices. Else a sentence in `why`. */
int nl_driver_open(nl_driver_t *out, int *out_n, char *why, size_t size);
/* `out` has the driver. Of a device counted from 0, which is the calling thread's from now on. 0, or -1 with a
 * sentence. */
int nl_staging_init(nl_staging_t *out, int ordinal, size_t nbytes, char *why, size_t size);
int nl_staging_enter(const nl_staging_t *s); /* the calling thread's calls of CUDA are about this device; 0: well */
void nl_staging_deinit(nl_staging_t *s);     /* nothing may be on the stream */

#endif
