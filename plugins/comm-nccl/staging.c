#include "staging.h"

#include "kit/cuda/symbols.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NON_BLOCKING 1u /* CU_STREAM_NON_BLOCKING */

int nl_driver_open(nl_driver_t *out, int *out_n, char *why, size_t size) {
  char missing[128];
  *out = (nl_driver_t){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
  const nv_symbol_t symbols[] = {
      {"cuInit", &out->init},
      {"cuGetErrorString", &out->get_error_string},
      {"cuDeviceGetCount", &out->device_get_count},
      {"cuDeviceGet", &out->device_get},
      {"cuDevicePrimaryCtxRetain", &out->primary_ctx_retain},
      {"cuDevicePrimaryCtxRelease_v2", &out->primary_ctx_release},
      {"cuCtxSetCurrent", &out->ctx_set_current},
      {"cuMemAlloc_v2", &out->mem_alloc},
      {"cuMemFree_v2", &out->mem_free},
      {"cuMemHostAlloc", &out->mem_host_alloc},
      {"cuMemFreeHost", &out->mem_free_host},
      {"cuMemcpyHtoDAsync_v2", &out->memcpy_to_device},
      {"cuMemcpyDtoHAsync_v2", &out->memcpy_to_host},
      {"cuMemsetD8Async", &out->memset_bytes},
      {"cuStreamCreate", &out->stream_create},
      {"cuStreamDestroy_v2", &out->stream_destroy},
      {"cuStreamSynchronize", &out->stream_synchronize},
  };
  if (!out->library) {
    snprintf(why, size, "there is no CUDA driver on this machine: %s", dlerror());
    return -1;
  }
  if (!nv_find_symbols(out->library, symbols, sizeof symbols / sizeof *symbols, missing, sizeof missing)) {
    snprintf(why, size, "the CUDA driver is too old: %s", missing);
    return -1;
  }
  const int code = out->init(0), counted = code ? code : out->device_get_count(out_n);
  if (counted) snprintf(why, size, "the CUDA driver does not begin: error %d", counted);
  return counted ? -1 : 0;
}

int nl_staging_enter(const nl_staging_t *s) { return s->driver.ctx_set_current(s->context); }

int nl_staging_init(nl_staging_t *out, int ordinal, size_t nbytes, char *why, size_t size) {
  const nl_driver_t *const cu = &out->driver;
  const char *said = "";
  out->nbytes = nbytes;
  int code = cu->device_get(&out->device, ordinal);
  if (!code) code = cu->primary_ctx_retain(&out->context, out->device);
  if (!code) code = nl_staging_enter(out);
  if (!code) code = cu->stream_create(&out->stream, NON_BLOCKING);
  if (!code) code = cu->mem_alloc(&out->out, nbytes);
  if (!code) code = cu->mem_alloc(&out->in, nbytes);
  if (!code) code = cu->mem_host_alloc((void **)&out->host_out, nbytes, 0);
  if (!code) code = cu->mem_host_alloc((void **)&out->host_in, nbytes, 0);
  if (!code) return 0;
  cu->get_error_string(code, &said);
  snprintf(why, size, "%zu bytes of the device cuda %d cannot be had: %s", 2 * nbytes, ordinal, said ? said : "");
  nl_staging_deinit(out);
  return -1;
}

void nl_staging_deinit(nl_staging_t *s) {
  const nl_driver_t *const cu = &s->driver;
  if (!s->context) return;
  nl_staging_enter(s);
  if (s->out) cu->mem_free(s->out);
  if (s->in) cu->mem_free(s->in);
  if (s->host_out) cu->mem_free_host(s->host_out);
  if (s->host_in) cu->mem_free_host(s->host_in);
  if (s->stream) cu->stream_destroy(s->stream);
  cu->primary_ctx_release(s->device);
  s->context = NULL;
}
