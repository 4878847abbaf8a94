#include "cudnn.h"

#include "kit/cuda/symbols.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define OLDEST 90000 /* the names of descriptors and attributes stay within 9 */

int gc_cudnn_failed(const gc_cudnn_t *c, int status, const char *what, char *why, size_t size) {
  char words[256] = "";
  c->last_error(words, sizeof words);
  words[sizeof words - 1] = 0;
  snprintf(why, size, "cuDNN %zu, %s: %s%s%s", c->version, what, c->error_string(status), words[0] ? ": " : "", words);
  return -1;
}

static void *open_library(const char *folder, char *why, size_t size) {
  static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9",
                                      "/usr/local/cuda/lib/libcudnn.so.9"};
  char path[512];
  void *library = NULL;
  if (folder && snprintf(path, sizeof path, "%s/libcudnn.so.9", folder) < (int)sizeof path)
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; !folder && !library && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) snprintf(why, size, "cuDNN is not there (libcudnn.so.9): %s", dlerror());
  return library;
}

int gc_cudnn_open(gc_cudnn_t *c, char *why, size_t size) {
  c->library = open_library(c->folder, why, size);
  if (!c->library) return -1;
  const nv_symbol_t symbols[] = {
      {"cudnnGetVersion", &c->get_version},
      {"cudnnGetErrorString", &c->error_string},
      {"cudnnGetLastErrorString", &c->last_error},
      {"cudnnCreate", &c->create},
      {"cudnnDestroy", &c->destroy},
      {"cudnnSetStream", &c->set_stream},
      {"cudnnBackendCreateDescriptor", &c->desc_create},
      {"cudnnBackendDestroyDescriptor", &c->desc_destroy},
      {"cudnnBackendSetAttribute", &c->desc_set},
      {"cudnnBackendGetAttribute", &c->desc_get},
      {"cudnnBackendFinalize", &c->desc_finalize},
      {"cudnnBackendExecute", &c->execute},
  };
  if (!nv_find_symbols(c->library, symbols, sizeof symbols / sizeof *symbols, why, size)) return -1;
  c->version = c->get_version();
  if (c->version >= OLDEST) return 0;
  snprintf(why, size, "cuDNN is of version %zu, and 9.0 is the oldest that is used", c->version);
  return -1;
}

int gc_cudnn_start(gc_cudnn_t *c, char *why, size_t size) {
  const int status = c->create(&c->handle);
  return status ? gc_cudnn_failed(c, status, "start", why, size) : 0;
}

int gc_cudnn_start_for(gc_cudnn_t *c, const char *device, char *why, size_t size) {
  int status = c->desc_create(GC_DNN_DEVICE_PROPERTIES, &c->device);
  if (!status) status = c->desc_set(c->device, GC_DNN_DEVICE_JSON, GC_DNN_T_CHAR, (int64_t)strlen(device), device);
  if (!status) status = c->desc_finalize(c->device);
  return status ? gc_cudnn_failed(c, status, "properties of the device", why, size) : 0;
}

enum { UNKNOWN, READY, MISSING };

int gc_cudnn_ready(gc_cudnn_t *c) {
  char why[sizeof c->why] = "";
  if (c->state == UNKNOWN) {
    c->state = gc_cudnn_open(c, why, sizeof why) || gc_cudnn_start(c, why, sizeof why) ? MISSING : READY;
    memcpy(c->why, why, sizeof why);
  }
  return c->state == READY;
}

void gc_cudnn_close(gc_cudnn_t *c) {
  if (c->device) c->desc_destroy(c->device);
  if (c->handle) c->destroy(c->handle);
  c->device = c->handle = NULL;
}
