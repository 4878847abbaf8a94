#include "gpu_libraries.h"

#include <pthread.h>
#include <stdio.h>

typedef struct opening {
  const gc_libraries_t *l;
  const gc_driver_t *driver;
  gc_context_t context;
  int has_nvrtc;
  char why[256];
} opening_t;

static void *open_nvrtc(void *self) {
  opening_t *o = self;
  o->has_nvrtc = nv_nvrtc_open(o->l->nvrtc, o->l->nvrtc_folder, o->why, sizeof o->why);
  return NULL;
}

static void *open_cudnn(void *self) {
  const opening_t *o = self;
  o->driver->ctx_set_current(o->context);
  gc_cudnn_ready(o->l->cudnn);
  return NULL;
}

int gc_libraries_open(const gc_libraries_t *l, const gc_driver_t *driver, gc_context_t context, const char **out_code,
                      char *why, size_t size) {
  opening_t nvrtc = {l, driver, context, 0, ""}, cudnn = nvrtc;
  pthread_t threads[2];
  const int has_first = pthread_create(&threads[0], NULL, open_nvrtc, &nvrtc) == 0;
  const int has_second = l->cudnn && pthread_create(&threads[1], NULL, open_cudnn, &cudnn) == 0;
  driver->ctx_set_current(context);
  const int has_cublaslt = gc_cublaslt_open(l->cublaslt, why, size) == 0;
  if (has_first) pthread_join(threads[0], NULL);
  else open_nvrtc(&nvrtc);
  if (has_second) pthread_join(threads[1], NULL);
  *out_code = has_cublaslt ? "no-nvrtc" : "no-cublas";
  if (has_cublaslt && !nvrtc.has_nvrtc) snprintf(why, size, "%s", nvrtc.why);
  return has_cublaslt && nvrtc.has_nvrtc ? 0 : -1;
}
