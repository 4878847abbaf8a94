#include "gpu_libraries.h"

#include <pthread.h>
#include <stdio.h>

typedef struct open_call {
  const gc_libraries_t *l;
  const gc_device_t *device;
  int has_nvrtc;
  char why[256];
} open_call_t;

static void *open_nvrtc(void *self) {
  open_call_t *o = self;
  o->has_nvrtc = nv_nvrtc_open(o->l->nvrtc, o->l->nvrtc_folder, o->why, sizeof o->why);
  return NULL;
}

static void *open_cudnn(void *self) {
  const open_call_t *o = self;
  o->device->driver.ctx_set_current(o->device->context);
  gc_cudnn_ready(o->l->cudnn);
  return NULL;
}

int gc_libraries_open(const gc_libraries_t *l, gc_device_t *device, aot_ctx_t *ctx, const char **out_code, char *why,
                      size_t size) {
  open_call_t o = {.l = l, .device = device};
  pthread_t threads[2];
  const int has_first = pthread_create(&threads[0], NULL, open_nvrtc, &o) == 0;
  int has_cublaslt = gc_cublaslt_open(l->cublaslt, why, size) == 0;
  const int has_context = gc_device_enter(device, ctx) == AOT_OK;
  const int has_second = has_context && l->cudnn && pthread_create(&threads[1], NULL, open_cudnn, &o) == 0;
  has_cublaslt = has_cublaslt && has_context && gc_cublaslt_start(l->cublaslt, why, size) == 0;
  if (has_first) pthread_join(threads[0], NULL);
  else open_nvrtc(&o);
  if (has_second) pthread_join(threads[1], NULL);
  *out_code = !has_context ? "told" : has_cublaslt ? "no-nvrtc" : "no-cublas";
  if (!has_context) snprintf(why, size, "there is no context");
  else if (has_cublaslt && !o.has_nvrtc) snprintf(why, size, "%s", o.why);
  return has_cublaslt && o.has_nvrtc ? 0 : -1;
}
