#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct { const char *name; size_t at; } functions[] = {
    {"cuInit", offsetof(gc_driver_t, init)},
    {"cuDriverGetVersion", offsetof(gc_driver_t, driver_get_version)},
    {"cuGetErrorName", offsetof(gc_driver_t, get_error_name)},
    {"cuGetErrorString", offsetof(gc_driver_t, get_error_string)},
    {"cuDeviceGetCount", offsetof(gc_driver_t, device_get_count)},
    {"cuDeviceGet", offsetof(gc_driver_t, device_get)},
    {"cuDeviceGetName", offsetof(gc_driver_t, device_get_name)},
    {"cuDeviceGetAttribute", offsetof(gc_driver_t, device_get_attribute)},
    {"cuDeviceTotalMem_v2", offsetof(gc_driver_t, device_total_mem)},
    {"cuDevicePrimaryCtxRetain", offsetof(gc_driver_t, primary_ctx_retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(gc_driver_t, primary_ctx_release)},
    {"cuCtxSetCurrent", offsetof(gc_driver_t, ctx_set_current)},
    {"cuCtxSynchronize", offsetof(gc_driver_t, ctx_synchronize)},
    {"cuMemGetInfo_v2", offsetof(gc_driver_t, mem_get_info)},
    {"cuMemAlloc_v2", offsetof(gc_driver_t, mem_alloc)},
    {"cuMemFree_v2", offsetof(gc_driver_t, mem_free)},
    {"cuMemHostAlloc", offsetof(gc_driver_t, mem_host_alloc)},
    {"cuMemFreeHost", offsetof(gc_driver_t, mem_free_host)},
    {"cuMemcpyHtoDAsync_v2", offsetof(gc_driver_t, memcpy_to_device)},
    {"cuMemcpyDtoHAsync_v2", offsetof(gc_driver_t, memcpy_to_host)},
    {"cuMemcpyDtoDAsync_v2", offsetof(gc_driver_t, memcpy_on_device)},
    {"cuMemsetD8Async", offsetof(gc_driver_t, memset_bytes)},
    {"cuStreamCreateWithPriority", offsetof(gc_driver_t, stream_create)},
    {"cuStreamDestroy_v2", offsetof(gc_driver_t, stream_destroy)},
    {"cuStreamSynchronize", offsetof(gc_driver_t, stream_synchronize)},
    {"cuStreamQuery", offsetof(gc_driver_t, stream_query)},
    {"cuStreamWaitValue64_v2", offsetof(gc_driver_t, stream_wait_value)},
    {"cuStreamWriteValue64_v2", offsetof(gc_driver_t, stream_write_value)},
    {"cuEventCreate", offsetof(gc_driver_t, event_create)},
    {"cuEventDestroy_v2", offsetof(gc_driver_t, event_destroy)},
    {"cuEventRecord", offsetof(gc_driver_t, event_record)},
    {"cuStreamWaitEvent", offsetof(gc_driver_t, stream_wait_event)},
    {"cuEventElapsedTime", offsetof(gc_driver_t, event_elapsed)},
    {"cuModuleLoadData", offsetof(gc_driver_t, module_load_data)},
    {"cuModuleUnload", offsetof(gc_driver_t, module_unload)},
    {"cuModuleGetFunction", offsetof(gc_driver_t, module_get_function)},
    {"cuFuncSetAttribute", offsetof(gc_driver_t, func_set_attribute)},
    {"cuLaunchKernel", offsetof(gc_driver_t, launch_kernel)},
    {"cuLaunchHostFunc", offsetof(gc_driver_t, launch_host_func)},
    {"cuStreamBeginCapture_v2", offsetof(gc_driver_t, stream_begin_capture)},
    {"cuStreamEndCapture", offsetof(gc_driver_t, stream_end_capture)},
    {"cuGraphInstantiateWithFlags", offsetof(gc_driver_t, graph_instantiate)},
    {"cuGraphLaunch", offsetof(gc_driver_t, graph_launch)},
    {"cuGraphExecDestroy", offsetof(gc_driver_t, graph_exec_destroy)},
    {"cuGraphDestroy", offsetof(gc_driver_t, graph_destroy)},
};

/* A driver may do without them. */
static const struct { const char *name; size_t at; } further[] = {
    {"cuMemGetAllocationGranularity", offsetof(gc_driver_t, mem_granularity)},
    {"cuMemCreate", offsetof(gc_driver_t, mem_create)},
    {"cuMemRelease", offsetof(gc_driver_t, mem_release)},
    {"cuMemAddressReserve", offsetof(gc_driver_t, mem_address_reserve)},
    {"cuMemAddressFree", offsetof(gc_driver_t, mem_address_free)},
    {"cuMemMap", offsetof(gc_driver_t, mem_map)},
    {"cuMemUnmap", offsetof(gc_driver_t, mem_unmap)},
    {"cuMemSetAccess", offsetof(gc_driver_t, mem_set_access)},
};
/* clang-format on */

int gc_driver_open(gc_driver_t *out, char *why, size_t size) {
  char buffer[128];
  memset(out, 0, sizeof *out);
  out->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!out->library) {
    snprintf(why, size, "there is no CUDA driver on this machine: %s", dlerror());
    return -1;
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(out->library, functions[i].name);
    if (!function) {
      snprintf(why, size, "the CUDA driver is too old: it has no %s (%d.%d or later is needed)", functions[i].name,
               GC_OLDEST_DRIVER / 1000, GC_OLDEST_DRIVER % 1000 / 10);
      return -1;
    }
    memcpy((char *)out + functions[i].at, &function, sizeof function);
  }
  for (size_t i = 0; i < sizeof further / sizeof *further; i++) {
    void *function = dlsym(out->library, further[i].name);
    memcpy((char *)out + further[i].at, &function, sizeof function);
  }
  if (out->driver_get_version(&out->version) == GC_SUCCESS && out->version < GC_OLDEST_DRIVER) {
    snprintf(why, size, "the driver is for CUDA %d.%d; %d.%d or later is needed", out->version / 1000,
             out->version % 1000 / 10, GC_OLDEST_DRIVER / 1000, GC_OLDEST_DRIVER % 1000 / 10);
    return -1;
  }
  const gc_result_t result = out->init(0);
  if (result == GC_SUCCESS) return 0;
  snprintf(why, size, "the CUDA driver does not start: %s", gc_driver_error(out, result, buffer, sizeof buffer));
  return -1;
}

const char *gc_driver_error(const gc_driver_t *d, gc_result_t error, char *buffer, size_t size) {
  const char *name = NULL, *text = NULL;
  if (d->get_error_name(error, &name) != GC_SUCCESS || !name) name = "an error without a name";
  if (d->get_error_string(error, &text) != GC_SUCCESS || !text) text = "unknown";
  snprintf(buffer, size, "%s, %d (%s)", name, error, text);
  return buffer;
}
