#include "single_thread.h"

#include <aot/float_env.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *bl_open_with_one_thread(const char *soname, const char *variable) {
  const char *now = getenv(variable);
  char *before = now ? strdup(now) : NULL;
  setenv(variable, "1", 1);
  const aot_float_env_t floats = aot_float_env(); /* a build with -ffast-math changes it */
  void *opened = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  aot_float_env_restore(floats);
  if (before) setenv(variable, before, 1);
  else unsetenv(variable);
  free(before);
  return opened;
}
