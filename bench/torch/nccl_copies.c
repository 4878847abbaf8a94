/* A libnccl.so.2 whose collectives hand nothing to other ranks: each copies the rank's own bytes to where the result
 * is, on its stream. Everything else is the real library's. A step with it takes what the step does without
 * communication: what it takes less than the real one is exposed. Losses mean nothing. bench/torch/ranks.py, side
 * `copies`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { UNHANDLED_CUDA_ERROR = 1 };

typedef struct unique_id {
  char bytes[128];
} unique_id_t;

static int n_ranks, own_rank; /* of the last communicator: the bench has one of all ranks */

static void find(const char *library, const char *name, void *out) {
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL), *symbol = opened ? dlsym(opened, name) : NULL;
  memcpy(out, &symbol, sizeof symbol);
}

static size_t size_of(int type) { /* ncclDataType_t */
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

static int copy(void *to, const void *from, size_t nbytes, void *stream) {
  static int (*on_device)(uint64_t to, uint64_t from, size_t nbytes, void *stream);
  if (to == from || !nbytes) return 0;
  if (!on_device) find("libcuda.so.1", "cuMemcpyDtoDAsync_v2", &on_device);
  return on_device((uintptr_t)to, (uintptr_t)from, nbytes, stream) ? UNHANDLED_CUDA_ERROR : 0;
}

API int ncclAllGather(const void *from, void *to, size_t n, int type, void *comm, void *stream) {
  int failed = 0;
  (void)comm;
  for (int r = 0; r < n_ranks && !failed; r++)
    failed = copy((char *)to + (size_t)r * n * size_of(type), from, n * size_of(type), stream);
  return failed;
}
API int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  (void)op, (void)comm;
  return copy(to, (const char *)from + (size_t)own_rank * n * size_of(type), n * size_of(type), stream);
}
API int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  (void)op, (void)comm;
  return copy(to, from, n * size_of(type), stream);
}
API int ncclAlltoAll(const void *from, void *to, size_t n, int type, void *comm, void *stream) {
  (void)comm;
  return copy(to, from, (size_t)n_ranks * n * size_of(type), stream);
}
API int ncclGroupStart(void) { return 0; }
API int ncclGroupEnd(void) { return 0; }

API int ncclCommInitRank(void **out, int n, unique_id_t id, int rank) {
  int (*real)(void **, int, unique_id_t, int);
  find("libnccl.so.2", "ncclCommInitRank", &real);
  n_ranks = n;
  own_rank = rank;
  return real(out, n, id, rank);
}

/* ---- as they are ---- */

#define NCCL "libnccl.so.2"
API int ncclGetVersion(int *out) {
  int (*real)(int *);
  return find(NCCL, "ncclGetVersion", &real), real(out);
}
API const char *ncclGetErrorString(int error) {
  const char *(*real)(int);
  return find(NCCL, "ncclGetErrorString", &real), real(error);
}
API const char *ncclGetLastError(void *comm) {
  const char *(*real)(void *);
  return find(NCCL, "ncclGetLastError", &real), real(comm);
}
API int ncclGetUniqueId(unique_id_t *out) {
  int (*real)(unique_id_t *);
  return find(NCCL, "ncclGetUniqueId", &real), real(out);
}
API int ncclCommDestroy(void *comm) {
  int (*real)(void *);
  return find(NCCL, "ncclCommDestroy", &real), real(comm);
}
API int ncclCommAbort(void *comm) {
  int (*real)(void *);
  return find(NCCL, "ncclCommAbort", &real), real(comm);
}
API int ncclCommGetAsyncError(void *comm, int *out) {
  int (*real)(void *, int *);
  return find(NCCL, "ncclCommGetAsyncError", &real), real(comm, out);
}
API int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream) {
  int (*real)(const void *, void *, size_t, int, int, void *, void *);
  return find(NCCL, "ncclBroadcast", &real), real(from, to, n, type, root, comm, stream);
}
API int ncclSend(const void *from, size_t n, int type, int to, void *comm, void *stream) {
  int (*real)(const void *, size_t, int, int, void *, void *);
  return find(NCCL, "ncclSend", &real), real(from, n, type, to, comm, stream);
}
API int ncclRecv(void *to, size_t n, int type, int from, void *comm, void *stream) {
  int (*real)(void *, size_t, int, int, void *, void *);
  return find(NCCL, "ncclRecv", &real), real(to, n, type, from, comm, stream);
}
