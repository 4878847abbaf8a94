/* Generated C to callable functions: compiled once, stored in a folder by content.
 *
 * The key is a hash of source, compiler version, flags and the processor's features (code is made for this machine). A
 * unit is compiled in a folder of its own and renamed, so that threads and processes may race: the loser overwrites the
 * winner's file with an equal one. A file ends with a hash of its content and key, checked before every load; one that
 * is damaged is compiled again. The compiler is started directly, never through a shell. Without a cache folder a
 * private one is made, and removed with the cache. */
#ifndef BC_CODECACHE_H
#define BC_CODECACHE_H

#include "kit/lowering/schedule.h"
#include "workers.h"

typedef struct bc_cache {
  char *dir;      /* owned */
  char *compiler; /* owned; a name looked up in PATH, or a path */
  int private_dir;
  uint64_t identity;       /* of compiler and processor; 0: not asked yet */
  _Atomic int no_compiler; /* it was tried and is not there: do not try again */
} bc_cache_t;

typedef struct bc_code_stats {
  uint32_t n_hits, n_compiled;
  double compile_ms;
} bc_code_stats_t;

/* dir NULL: a private one. AOT_OK or a failure with its text. */
aot_status_t bc_cache_init(bc_cache_t *c, const char *dir, const char *compiler, lw_error_t *error);
void bc_cache_deinit(bc_cache_t *c);

/* A handle for bc_code_find. AOT_E_UNAVAILABLE: there is no compiler, or it fails; the text says which. */
aot_status_t bc_code_open(bc_cache_t *c, const char *source, uint64_t nbytes, void **out_handle, bc_code_stats_t *stats,
                          lw_error_t *error);
/* Several units at once, as many compilers as the team has threads. On a failure, that of the first unit that failed,
 * no handle stays open. */
typedef struct bc_code_unit {
  const char *source;
  uint64_t nbytes;
  void *handle; /* out */
} bc_code_unit_t;
aot_status_t bc_code_open_all(bc_cache_t *c, bc_workers_t *workers, bc_code_unit_t *units, uint32_t n,
                              bc_code_stats_t *stats, lw_error_t *error);
/* AOT_OK: there is a compiler that reports its version; generated code can be counted on. */
aot_status_t bc_code_available(bc_cache_t *c, lw_error_t *error);
lw_loop_fn bc_code_find(void *handle, const char *name);
void bc_code_close(void *handle);

#endif
