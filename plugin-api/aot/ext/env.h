/* aot/ext/env.h - extension "aot.env/1", offered by the host: reads of the environment, so that they are recorded. */
#ifndef AOT_EXT_ENV_H
#define AOT_EXT_ENV_H

#include <aot/base.h>

#define AOT_EXT_ENV "aot.env/1"

/* The cache folder: of this user alone, shared by all units and processes, kept from run to run. A unit names its files
 * after itself, makes them in a subfolder of its own under a lock (flock) and renames them, checks what it reads, and
 * sets a file's modification time when it uses it. Files can go at any time, those unused for longest first; a
 * subfolder whose lock is free goes, too. */
typedef struct aot_ext_env {
  aot_table_t head;
  /* Terminated, [session]; NULL: not set. */
  const char *(AOT_CALL *get)(const struct aot_ext_env *x, aot_ctx_t *ctx, const char *name);
  /* Made on demand; NULL: none. */
  const char *(AOT_CALL *cache_dir)(const struct aot_ext_env *x, aot_ctx_t *ctx);
} aot_ext_env_t;

#endif
