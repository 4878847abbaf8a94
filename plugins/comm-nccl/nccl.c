#include "nccl.h"

#include <aot/communicator.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  size_t at;
  int since; /* the version; 0: the oldest has it */
} functions[] = {
    {"ncclGetVersion", offsetof(nl_nccl_t, get_version), 0},
    {"ncclGetErrorString", offsetof(nl_nccl_t, get_error_string), 0},
    {"ncclGetLastError", offsetof(nl_nccl_t, get_last_error), 0},
    {"ncclGetUniqueId", offsetof(nl_nccl_t, get_unique_id), 0},
    {"ncclCommInitRank", offsetof(nl_nccl_t, comm_init_rank), 0},
    {"ncclCommDestroy", offsetof(nl_nccl_t, comm_destroy), 0},
    {"ncclCommAbort", offsetof(nl_nccl_t, comm_abort), 0},
    {"ncclCommGetAsyncError", offsetof(nl_nccl_t, comm_get_async_error), 0},
    {"ncclAllGather", offsetof(nl_nccl_t, all_gather), 0},
    {"ncclReduceScatter", offsetof(nl_nccl_t, reduce_scatter), 0},
    {"ncclAllReduce", offsetof(nl_nccl_t, all_reduce), 0},
    {"ncclGroupStart", offsetof(nl_nccl_t, group_start), 0},
    {"ncclGroupEnd", offsetof(nl_nccl_t, group_end), 0},
    {"ncclBroadcast", offsetof(nl_nccl_t, broadcast), 0},
    {"ncclSend", offsetof(nl_nccl_t, send), 0},
    {"ncclRecv", offsetof(nl_nccl_t, recv), 0},
    {"ncclAlltoAll", offsetof(nl_nccl_t, all_to_all), 22800},
    {"ncclCommInitRankConfig", offsetof(nl_nccl_t, comm_init_rank_config), 22800},
    {"ncclCommWindowRegister", offsetof(nl_nccl_t, window_register), 22800},
    {"ncclCommWindowDeregister", offsetof(nl_nccl_t, window_deregister), 22800},
    {"ncclMemAlloc", offsetof(nl_nccl_t, mem_alloc), 22800},
    {"ncclMemFree", offsetof(nl_nccl_t, mem_free), 22800},
};

/* A function that an older library has already, if it has, is not yet the one that is meant. */
static void hide_later(nl_nccl_t *out) {
  static void *const none = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (out->version < functions[i].since) memcpy((char *)out + functions[i].at, &none, sizeof none);
}

int nl_open(nl_nccl_t *out, const char *path, char *why, size_t size) {
  const char *file = path && path[0] ? path : "libnccl.so.2";
  *out = (nl_nccl_t){.library = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
  if (!out->library) {
    snprintf(why, size,
             "NCCL cannot be opened: %s; name its file in the option 'library', or its folder in LD_LIBRARY_PATH",
             dlerror());
    return -1;
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *symbol = dlsym(out->library, functions[i].name);
    memcpy((char *)out + functions[i].at, &symbol, sizeof symbol);
    if (symbol || functions[i].since) continue;
    snprintf(why, size, "%s has no function %s: NCCL 2.18 or later is needed", file, functions[i].name);
    return -1;
  }
  if (out->get_version(&out->version) == 0 && out->version >= NL_OLDEST) {
    hide_later(out);
    return 0;
  }
  snprintf(why, size, "%s is NCCL %d.%d, and 2.18 or later is needed", file, out->version / 10000,
           out->version / 100 % 100);
  return -1;
}

nl_config_t nl_copying_config(void) {
  enum { VERSION = 22809 /* 2.28.9 */, CTA_POLICY_ZERO = 2 };
  const nl_config_t config = {.size = sizeof config,
                              .magic = 0xcafebeefu,
                              .version = VERSION,
                              .blocking = INT_MIN,
                              .cga_cluster_size = INT_MIN,
                              .min_ctas = INT_MIN,
                              .max_ctas = INT_MIN,
                              .split_share = INT_MIN,
                              .traffic_class = INT_MIN,
                              .collnet_enable = INT_MIN,
                              .cta_policy = CTA_POLICY_ZERO,
                              .shrink_share = INT_MIN,
                              .nvls_ctas = INT_MIN,
                              .n_channels_per_net_peer = INT_MIN,
                              .nvlink_centric_sched = INT_MIN};
  return config;
}

int nl_dtype(int32_t dtype) {
  switch (dtype) {
    case AOT_F32: return NL_F32;
    case AOT_F64: return NL_F64;
    case AOT_F16: return NL_F16;
    case AOT_BF16: return NL_BF16;
    case AOT_I64: return NL_I64;
    case AOT_I32: return NL_I32;
    case AOT_I8: return NL_I8;
    case AOT_U8: return NL_U8;
    default: return -1;
  }
}

int nl_reduce(int32_t reduce) {
  static const int ops[] = {-1, NL_SUM, NL_MAX, NL_MIN, NL_AVG, NL_PRODUCT};
  return reduce > 0 && reduce < (int32_t)(sizeof ops / sizeof *ops) ? ops[reduce] : -1;
}
