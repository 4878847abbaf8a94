/* aot/communicator.h - unit kind communicator/1: ranks that run one program, and what they hand to each other.
 *
 *     join -> group         all ranks of the run: those that were launched together, or that name one meeting place
 *     split -> group        of a group those of one colour: a row or a column of a mesh
 *     collect(group, ..)    every rank of the group says the same, in the same order; then all of them have the results
 *
 * On a queue of a device a collective is work like any other (device.h): waits and signals around it say what it comes
 * after and what comes after it, and nothing blocks. Without a queue it works on the host's memory, and is done when
 * the function returns.
 *
 * Sums are made in the order of ranks, so that all ranks have the same bits, and any communicator that says ORDERED the
 * bits of any other.
 *
 * What fails: a rank that dies, leaves or aborts, or that is not heard of within the time that join was given, fails
 * what the others wait for; the first failure of a group is kept, with a sentence that names the ranks and the
 * collective, and every later collective of the group fails with it. Nobody tries again: the run has ended.
 *
 * Table functions: [run-thread] for one group; several groups at once, where the table says CONCURRENT. join, split and
 * leave are collectives themselves, without a queue. */
#ifndef AOT_COMMUNICATOR_H
#define AOT_COMMUNICATOR_H

#include <aot/base.h>
#include <aot/device.h>
#include <aot/status.h>

typedef struct aot_group aot_group_t; /* ranks, as one of them sees them; the communicator's, opaque */

#define AOT_COMMUNICATOR_ORDERED 1u    /* head.flags: sums are made in the order of ranks */
#define AOT_COMMUNICATOR_CONCURRENT 2u /* groups may be used at once, each by a thread */
#define AOT_COMMUNICATOR_STREAMS 4u    /* queues may be those of a device that has aot.stream/1 */
/* Where some ranks have NaN, MAX and MIN are those of the numbers of the others, as NCCL computes them. Without the
 * flag they are NaN, as PyTorch's amax and amin are. */
#define AOT_COMMUNICATOR_DROPS_NAN 8u

/* How a process finds the others. What is 0 or empty the launcher knows, or the unit's options say. */
typedef struct aot_join {
  uint32_t struct_size;
  uint32_t rank;    /* counted from 0; meant where n_ranks is not 0 */
  uint32_t n_ranks; /* 0: not said */
  uint32_t reserved;
  aot_str_t rendezvous; /* where ranks meet: a name, or an address */
  uint64_t patience_ns; /* what is waited for another rank, at most; 0: 30 s */
} aot_join_t;

typedef struct aot_group_info {
  uint32_t struct_size;
  uint32_t rank, n_ranks; /* in this group */
  uint32_t reserved;
  /* since join, with those of groups that were split from this one */
  uint64_t n_collectives;
  uint64_t gathered_nbytes;  /* that came from other ranks: by gathers, broadcasts and exchanges .. */
  uint64_t scattered_nbytes; /* .. and by reductions */
  uint64_t spent_ns;         /* within collectives, waits for others included */
} aot_group_info_t;

/* Bytes of `from`, of `to`, with n ranks. Elements of `dtype` count where something is reduced. */
#define AOT_COLLECTIVE_BARRIER 1        /* 0, 0: nobody goes on before all have come */
#define AOT_COLLECTIVE_ALL_GATHER 2     /* b, n b: the ranks' one after another */
#define AOT_COLLECTIVE_REDUCE_SCATTER 3 /* n b, b: the rank's part of the reduction */
#define AOT_COLLECTIVE_ALL_REDUCE 4     /* b, b */
#define AOT_COLLECTIVE_BROADCAST 5      /* b, b: root's; `from` is read there alone */
#define AOT_COLLECTIVE_ALL_TO_ALL 6     /* pieces one after another: piece r goes to rank r, and comes from there */

#define AOT_REDUCE_SUM 1
#define AOT_REDUCE_MAX 2
#define AOT_REDUCE_MIN 3
#define AOT_REDUCE_AVG 4 /* the sum over n */
#define AOT_REDUCE_PRODUCT 5

typedef struct aot_collective {
  uint32_t struct_size;
  int32_t kind;   /* AOT_COLLECTIVE_* */
  int32_t reduce; /* AOT_REDUCE_* */
  int32_t dtype;  /* AOT_F32, .. */
  uint32_t root;  /* of a broadcast */
  uint32_t reserved;
  aot_buffer_t to, from; /* they may be one, but where several ranks' parts stand in one of them, and not overlap */
  const uint64_t *send, *receive; /* ALL_TO_ALL: bytes of each piece; NULL: all alike. Copied */
  const aot_device_t *device;     /* NULL: the host's memory, and no queue */
  aot_queue_t *queue;             /* of that device */
  aot_str_t what;                 /* what it is for, in messages; copied */
} aot_collective_t;

typedef struct aot_communicator {
  aot_table_t head; /* flags: AOT_COMMUNICATOR_* */
  aot_status_t(AOT_CALL *join)(const struct aot_communicator *c, aot_ctx_t *ctx, const aot_join_t *how,
                               aot_group_t **out);
  /* ranks with the same colour, in the order of `key`, then of their ranks; device memory stays where it is */
  aot_status_t(AOT_CALL *split)(const struct aot_communicator *c, aot_ctx_t *ctx, aot_group_t *g, uint32_t colour,
                                uint32_t key, aot_group_t **out);
  /* nothing of it is under way; groups split from it have been left */
  void(AOT_CALL *leave)(const struct aot_communicator *c, aot_group_t *g);
  aot_status_t(AOT_CALL *info)(const struct aot_communicator *c, const aot_group_t *g, aot_group_info_t *out);
  /* ctx NULL: failures are not diagnosed, `failure` has their sentence. AOT_E_UNAVAILABLE: a rank is gone or late;
   * AOT_E_CONTRACT: ranks do not say the same */
  aot_status_t(AOT_CALL *collect)(const struct aot_communicator *c, aot_ctx_t *ctx, aot_group_t *g,
                                  const aot_collective_t *what);
  /* The group's first failure so far, also of what a queue does; AOT_OK: none. out_text: [borrow until leave] */
  aot_status_t(AOT_CALL *failure)(const struct aot_communicator *c, const aot_group_t *g, aot_str_t *out_text);
  /* This rank goes no further: what the others wait for fails, with this reason. [any-thread] */
  void(AOT_CALL *abort)(const struct aot_communicator *c, aot_group_t *g, aot_str_t reason);
} aot_communicator_t;

#endif
