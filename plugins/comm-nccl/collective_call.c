#include "collective_call.h"

#include <aot/inline.h>

int nl_goes_on(int code) { return !code || code == NL_IN_PROGRESS; }

/* Pieces that are all alike; without NCCL's own call, each with its rank by a letter, the rank's own as well. */
static int exchange(const nl_nccl_t *nccl, nl_comm_t comm, uint32_t n, const aot_collective_t *w, void *stream) {
  const uint64_t piece = w->to.nbytes / n;
  const char *from = (const char *)(uintptr_t)w->from.address;
  char *to = (char *)(uintptr_t)w->to.address;
  if (nccl->all_to_all) return nccl->all_to_all(from, to, piece, NL_U8, comm, stream);
  int code = nccl->group_start();
  for (uint32_t r = 0; r < n && nl_goes_on(code); r++) {
    code = nccl->send(from + r * piece, piece, NL_U8, (int)r, comm, stream);
    if (nl_goes_on(code)) code = nccl->recv(to + r * piece, piece, NL_U8, (int)r, comm, stream);
  }
  const int ended = nccl->group_end(); /* after a failure, too */
  return nl_goes_on(code) ? ended : code;
}

/* What is only moved goes as bytes; NCCL counts elements of a rank's part. */
int nl_call(const nl_nccl_t *nccl, nl_comm_t comm, uint32_t n_ranks, const aot_collective_t *w, void *stream) {
  const int dtype = nl_dtype(w->dtype), op = nl_reduce(w->reduce);
  const uint64_t size = aot_dtype_size(w->dtype);
  const void *from = (const void *)(uintptr_t)w->from.address;
  void *to = (void *)(uintptr_t)w->to.address;
  switch (w->kind) {
    case AOT_COLLECTIVE_ALL_GATHER: return nccl->all_gather(from, to, w->from.nbytes, NL_U8, comm, stream);
    case AOT_COLLECTIVE_BROADCAST: return nccl->broadcast(from, to, w->to.nbytes, NL_U8, (int)w->root, comm, stream);
    case AOT_COLLECTIVE_ALL_TO_ALL: return exchange(nccl, comm, n_ranks, w, stream);
    case AOT_COLLECTIVE_REDUCE_SCATTER:
      return nccl->reduce_scatter(from, to, w->to.nbytes / size, dtype, op, comm, stream);
    default: return nccl->all_reduce(from, to, w->to.nbytes / size, dtype, op, comm, stream);
  }
}

static int are_alike(const uint64_t *pieces, uint32_t n_ranks, uint64_t piece) {
  for (uint32_t r = 0; pieces && r < n_ranks; r++)
    if (pieces[r] != piece) return 0;
  return 1;
}

static const char *refuse_exchange(const aot_collective_t *w, uint32_t n_ranks) {
  const uint64_t piece = w->to.nbytes / n_ranks;
  if (w->to.nbytes != w->from.nbytes || piece * n_ranks != w->to.nbytes || !are_alike(w->send, n_ranks, piece) ||
      !are_alike(w->receive, n_ranks, piece))
    return "on queues all pieces are of one size";
  return NULL;
}

const char *nl_refuse(const aot_collective_t *w, uint32_t n_ranks) {
  const uint64_t to = w->to.nbytes, from = w->from.nbytes;
  const int reduces = w->kind == AOT_COLLECTIVE_ALL_REDUCE || w->kind == AOT_COLLECTIVE_REDUCE_SCATTER;
  if (w->kind == AOT_COLLECTIVE_ALL_TO_ALL) return refuse_exchange(w, n_ranks);
  if (!reduces && w->kind != AOT_COLLECTIVE_ALL_GATHER && w->kind != AOT_COLLECTIVE_BROADCAST)
    return "on queues there are all_gather, reduce_scatter, all_reduce, broadcast and all_to_all";
  if (reduces && (nl_dtype(w->dtype) < 0 || nl_reduce(w->reduce) < 0)) return "NCCL has no such reduction";
  if (w->kind == AOT_COLLECTIVE_ALL_GATHER && to != n_ranks * from)
    return "the result is not as large as the ranks' tensors";
  if (w->kind == AOT_COLLECTIVE_REDUCE_SCATTER && from != n_ranks * to)
    return "a rank's part is not its share of the tensor";
  if (w->kind == AOT_COLLECTIVE_ALL_REDUCE && from != to) return "the result is not as large as the tensor";
  return w->kind == AOT_COLLECTIVE_BROADCAST && w->root >= n_ranks ? "there is no such root" : NULL;
}
