/* aot/ext/env.h - extension "aot.env/1", offered by the host: reads of the environment, so that they are recorded. */
#ifndef AOT_EXT_ENV_H
#define AOT_EXT_ENV_H

#include <aot/base.h>

#define AOT_EXT_ENV "aot.env/1"

typedef struct aot_ext_env {
  uint32_t struct_size, flags;
  const char *(AOT_CALL *get)(aot_ctx_t *ctx, const char *name); /* terminated, [session]; NULL: not set */
  const char *(AOT_CALL *cache_dir)(aot_ctx_t *ctx); /* a private folder that persists, made on demand; NULL: none */
} aot_ext_env_t;

#endif
