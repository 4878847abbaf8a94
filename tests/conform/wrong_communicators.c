/* comm-local with a function that is wrong. */
#include "wrong_units.h"

#include <aot/inline.h>
#include <hub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrong_communicator {
  rn_communicator_t base;   /* first: its table's self */
  aot_communicator_t right; /* the functions that were replaced */
  aot_host_t host;
  fault_t fault;
} wrong_communicator_t;

static const wrong_communicator_t *of(const aot_communicator_t *c) { return c->head.self; }

static aot_status_t join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how, aot_group_t **out) {
  const wrong_communicator_t *w = of(c);
  char name[128];
  cl_meeting_t m = {.name = name, .rank = how->rank, .n_ranks = how->n_ranks, .patience_ns = how->patience_ns};
  rn_transport_t t;
  rn_error_t error = {""};
  snprintf(name, sizeof name, "%.*s", (int)how->rendezvous.size, how->rendezvous.data);
  if (w->fault == FAULT_ranks_endless) m.patience_ns = UINT64_C(1) << 60;
  if (w->fault == FAULT_ranks_any && m.rank >= m.n_ranks) m.rank = 0, m.n_ranks = 1;
  if (m.rank >= m.n_ranks) return rn_tell(c, ctx, AOT_E_OPTION, "there is no such rank");
  const aot_status_t status = cl_meet(&m, &t, &error);
  return status == AOT_OK ? rn_group_open(c, ctx, &t, out) : rn_tell(c, ctx, status, error.text);
}

static aot_status_t info_of_first(const aot_communicator_t *c, const aot_group_t *g, aot_group_info_t *out) {
  const aot_status_t status = of(c)->right.info(c, g, out);
  out->rank = 0;
  return status;
}

static aot_status_t split_unsorted(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g, uint32_t colour,
                                   uint32_t key, aot_group_t **out) {
  (void)key;
  return of(c)->right.split(c, ctx, g, colour, 0, out);
}

static void leave_not(const aot_communicator_t *c, aot_group_t *g) { (void)c, (void)g; }

static aot_status_t gather_short(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g, aot_collective_t what) {
  AOT_TRY(of(c)->right.collect(c, ctx, g, &what));
  if (what.kind == AOT_COLLECTIVE_ALL_GATHER && what.to.nbytes > 100000)
    ((char *)(uintptr_t)what.to.address)[what.to.nbytes - 1] = 0;
  return AOT_OK;
}

/* A maximum of f32 without NaN, as of fmaxf(). */
static void drop_nan(const aot_collective_t *c) {
  float *at = (float *)(uintptr_t)c->to.address;
  if (c->reduce != AOT_REDUCE_MAX || c->dtype != AOT_F32 || c->device) return;
  for (uint64_t i = 0; i < c->to.nbytes / sizeof *at; i++)
    if (at[i] != at[i]) at[i] = 1;
}

static aot_status_t collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g, const aot_collective_t *what) {
  const wrong_communicator_t *w = of(c);
  aot_collective_t own = *what;
  if (w->fault == FAULT_ranks_short_gather) return gather_short(c, ctx, g, own);
  if (w->fault == FAULT_ranks_mean_is_sum && own.reduce == AOT_REDUCE_AVG) own.reduce = AOT_REDUCE_SUM;
  if (w->fault == FAULT_ranks_any_size && own.kind == AOT_COLLECTIVE_ALL_GATHER && own.to.nbytes < own.from.nbytes * 2)
    own.from.nbytes = own.to.nbytes;
  if (w->fault == FAULT_ranks_before_their_turn) own.queue = NULL, own.device = NULL;
  const aot_status_t status = w->right.collect(c, ctx, g, &own);
  if (w->fault == FAULT_ranks_max_drops_nan && status == AOT_OK) drop_nan(&own);
  return w->fault == FAULT_ranks_say_nothing && status == AOT_E_CONTRACT ? AOT_OK : status;
}

static void destroy(const aot_table_t *t) { free(t->self); }

const aot_table_t *wrong_communicator(const aot_host_t *host, fault_t fault) {
  wrong_communicator_t *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->host = *host;
  w->fault = fault;
  rn_communicator_init(&w->base, &w->host, AOT_COMMUNICATOR_ORDERED | AOT_COMMUNICATOR_CONCURRENT);
  w->base.table.join = join;
  w->base.table.head.destroy = destroy;
  w->right = w->base.table;
  w->base.table.collect = collect;
  if (fault == FAULT_ranks_misplaced) w->base.table.info = info_of_first;
  if (fault == FAULT_ranks_unsorted) w->base.table.split = split_unsorted;
  if (fault == FAULT_ranks_leak) w->base.table.leave = leave_not;
  return &w->base.table.head;
}
