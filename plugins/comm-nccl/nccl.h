/* NCCL, opened at run time: its types as far as they are used here, and its functions in a table. Names, numbers and
 * signatures are those of nccl.h (2.18 and later). Functions answer 0 or an error number; those at the end of the table
 * are of later versions, and NULL before. */
#ifndef NL_NCCL_H
#define NL_NCCL_H

#include <stddef.h>
#include <stdint.h>

#define NL_OLDEST 21800 /* 10000 * major + 100 * minor + patch */
#define NL_IN_PROGRESS 7

typedef void *nl_comm_t; /* ncclComm_t */
typedef struct nl_id {   /* ncclUniqueId */
  char bytes[128];
} nl_id_t;

/* ncclConfig_t of 2.28, which later versions know; INT_MIN and NULL: as NCCL has it */
typedef struct nl_config {
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char *net_name;
  int split_share, traffic_class;
  const char *comm_name;
  int collnet_enable, cta_policy, shrink_share, nvls_ctas, n_channels_per_net_peer, nvlink_centric_sched;
} nl_config_t;

/* ncclDataType_t */
enum { NL_I8 = 0, NL_U8 = 1, NL_I32 = 2, NL_I64 = 4, NL_F16 = 6, NL_F32 = 7, NL_F64 = 8, NL_BF16 = 9 };
#define NL_WINDOW_SYMMETRIC 1 /* NCCL_WIN_COLL_SYMMETRIC: it lies alike on all ranks */
/* ncclRedOp_t */
enum { NL_SUM = 0, NL_PRODUCT = 1, NL_MAX = 2, NL_MIN = 3, NL_AVG = 4 };

typedef struct nl_nccl {
  void *library;
  int version;
  int (*get_version)(int *out);
  const char *(*get_error_string)(int error);
  const char *(*get_last_error)(nl_comm_t comm);
  int (*get_unique_id)(nl_id_t *out);
  int (*comm_init_rank)(nl_comm_t *out, int n_ranks, nl_id_t id, int rank);
  int (*comm_destroy)(nl_comm_t comm);
  int (*comm_abort)(nl_comm_t comm);
  int (*comm_get_async_error)(nl_comm_t comm, int *out);
  int (*all_gather)(const void *from, void *to, size_t n, int dtype, nl_comm_t comm, void *stream);
  int (*reduce_scatter)(const void *from, void *to, size_t n, int dtype, int op, nl_comm_t comm, void *stream);
  int (*all_reduce)(const void *from, void *to, size_t n, int dtype, int op, nl_comm_t comm, void *stream);
  int (*group_start)(void); /* what the thread puts from here on is one piece of work .. */
  int (*group_end)(void);   /* .. which is on its stream now */
  int (*broadcast)(const void *from, void *to, size_t n, int dtype, int root, nl_comm_t comm, void *stream);
  int (*send)(const void *from, size_t n, int dtype, int to, nl_comm_t comm, void *stream);
  int (*recv)(void *to, size_t n, int dtype, int from, nl_comm_t comm, void *stream);
  /* since 2.28 */
  int (*all_to_all)(const void *from, void *to, size_t n, int dtype, nl_comm_t comm, void *stream);
  int (*comm_init_rank_config)(nl_comm_t *out, int n_ranks, nl_id_t id, int rank, nl_config_t *config);
  int (*window_register)(nl_comm_t comm, void *begin, size_t nbytes, void **out, int flags);
  int (*window_deregister)(nl_comm_t comm, void *window);
  int (*mem_alloc)(void **out, size_t nbytes); /* of memory that may be a window */
  int (*mem_free)(void *memory);
} nl_nccl_t;

/* path: a file, or empty: libnccl.so.2 as the loader finds it. 0, or -1 with a sentence in `why`; a library that was
 * opened stays so. */
int nl_open(nl_nccl_t *out, const char *path, char *why, size_t size);
nl_config_t nl_copying_config(void); /* collectives take no multiprocessor where copy engines can do them */
int nl_dtype(int32_t dtype);         /* of AOT_F32, ..; -1: NCCL has none */
int nl_reduce(int32_t reduce);       /* of AOT_REDUCE_SUM, ..; -1: NCCL has none */

#endif
