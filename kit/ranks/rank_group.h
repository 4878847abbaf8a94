/* The collectives of communicator/1 over one primitive: every rank hands a piece to each other rank.
 *
 *     barrier           nothing                            reduce_scatter   piece r to rank r; then the pieces are
 *     reduced all_gather        the whole to everyone              all_reduce       a reduce_scatter of shares, then an
 *     all_gather broadcast         root's whole to everyone           all_to_all       piece r to rank r
 *
 * A transport brings that exchange and nothing else. Every exchange carries what its rank believes that it is about
 * (rn_claim_t): ranks that do not say the same are distinguished before a byte is looked at. */
#ifndef PLUGINS_COMMON_RANK_GROUP_H
#define PLUGINS_COMMON_RANK_GROUP_H

#include "last_collectives.h"
#include <aot/communicator.h>
#include <aot/host.h>

typedef struct rn_error {
  char text[320];
} rn_error_t;

typedef struct rn_piece {
  void *at;
  uint64_t nbytes;
} rn_piece_t;

/* What a rank says that an exchange is about; equal on all ranks, or they run different programs. */
typedef struct rn_claim {
  uint64_t number; /* of the group's exchanges, from 1 */
  uint64_t nbytes; /* of the collective's larger side; 0 where pieces differ */
  int32_t kind, reduce, dtype;
  uint32_t root;
} rn_claim_t;

/* By rank; a rank's own pieces are not looked at. Sizes of both sides agree where claims do, but for ALL_TO_ALL. */
typedef struct rn_exchange {
  rn_claim_t claim;
  const rn_piece_t *send, *receive;
  const char *what; /* for messages */
} rn_exchange_t;

typedef struct rn_transport {
  void *self;
  uint32_t rank, n_ranks;
  /* AOT_E_UNAVAILABLE with the ranks that are gone or late; AOT_E_CONTRACT with those whose claim is another */
  aot_status_t (*exchange)(void *self, const rn_exchange_t *x, rn_error_t *error);
  aot_status_t (*split)(void *self, uint32_t colour, uint32_t key, struct rn_transport *out, rn_error_t *error);
  void (*abort)(void *self, const char *reason);
  void (*leave)(void *self);
} rn_transport_t;

/* A communicator: its members of the table but `join`, and a group over a transport, which is left with it. host is
 * borrowed as long as the table. */
typedef struct rn_communicator {
  aot_communicator_t table; /* head.self: this */
  const aot_host_t *host;
  char record[RN_RECORD_PATH]; /* where the last collectives are written when a group fails; empty: nowhere */
} rn_communicator_t;
void rn_communicator_init(rn_communicator_t *c, const aot_host_t *host, uint32_t flags);
aot_status_t rn_group_open(const aot_communicator_t *c, aot_ctx_t *ctx, const rn_transport_t *t, aot_group_t **out);

/* For a communicator that does some collectives by itself. Of a group: its transport [borrow until leave]; bytes that
 * came by a collective, which is counted; the first failure, which reports the other ranks, and is that of the group it
 * was split from, too. [any-thread] */
const rn_transport_t *rn_group_transport(const aot_group_t *g);
void rn_group_count(aot_group_t *g, uint64_t gathered, uint64_t scattered);
void rn_group_fail(aot_group_t *g, aot_status_t status, const char *text);

/* An error of the communicator's; ctx may be NULL. */
aot_status_t rn_tell(const aot_communicator_t *c, aot_ctx_t *ctx, aot_status_t status, const char *text);

const char *rn_collective_name(int32_t kind);
/* "ranks 1 and 3", of those whose byte is set */
void rn_print_ranks(const uint8_t *is_meant, uint32_t n_ranks, char *out, uint64_t size);
/* The sentence about claims that differ. */
void rn_print_difference(const rn_claim_t *own, uint32_t own_rank, const rn_claim_t *other, uint32_t other_rank,
                         rn_error_t *out);

#endif
