#include "onednn.h"

#include <aot/float_env.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static dn_library_t library;
static int (*most_threads)(void);
static void (*set_threads)(int);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int find(void *handle, const char *name, void *out) {
  void *symbol = dlsym(handle, name);
  if (symbol) memcpy(out, &symbol, sizeof symbol); /* POSIX: object and function pointers have one form */
  return symbol != NULL;
}

static int find_functions(void *handle) {
#define DN_FIND(name)                                                                                                  \
  if (!find(handle, #name, &library.name)) return 0;
  DN_FUNCTIONS(DN_FIND)
#undef DN_FIND
  find(handle, "omp_get_max_threads", &most_threads); /* of the runtime that it depends on; a build without has none */
  find(handle, "omp_set_num_threads", &set_threads);
  return 1;
}

static void open_library(void) {
  /* Threads of the process may be running, so its environment stays as it is: dn_begin holds OpenMP to one thread. */
  const aot_float_env_t floats = aot_float_env(); /* a build with -ffast-math changes it */
  void *handle = dlopen(DN_SONAME, RTLD_NOW | RTLD_LOCAL);
  aot_float_env_restore(floats);
  if (!handle || !find_functions(handle)) {
    const char *why = dlerror();
    snprintf(library.failure, sizeof library.failure, "%.190s", why ? why : DN_SONAME);
  } else if (library.dnnl_version()->major != DNNL_VERSION_MAJOR ||
             library.dnnl_engine_create(&library.engine, dnnl_cpu, 0) != dnnl_success) {
    snprintf(library.failure, sizeof library.failure, "%s has no engine for this processor", DN_SONAME);
  }
}

const dn_library_t *dn_library(void) {
  pthread_once(&once, open_library);
  return &library;
}

int dn_begin(void) {
  const int before = most_threads && set_threads ? most_threads() : 1;
  if (before != 1) set_threads(1);
  return before;
}

void dn_end(int before) {
  if (before != 1) set_threads(before);
}
