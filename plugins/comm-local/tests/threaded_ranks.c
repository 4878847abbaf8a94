#include "threaded_ranks.h"

#include "common/ranks/rank_group.h"
#include <aot/inline.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t AOT_CALL silent(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)h;
  (void)ctx;
  (void)d;
  return AOT_OK;
}
const aot_host_t tr_host = {.head = {.struct_size = sizeof tr_host}, .diag = silent};

static void *run(void *arg) {
  tr_rank_t *r = arg;
  rn_communicator_t c;
  rn_transport_t t;
  rn_error_t error = {""};
  aot_group_t *g;
  aot_str_t text;
  rn_communicator_init(&c, &tr_host, AOT_COMMUNICATOR_ORDERED);
  r->joined = cl_meet(&r->how, &t, &error);
  snprintf(r->text, sizeof r->text, "%s", error.text);
  if (r->joined != AOT_OK) return NULL;
  r->joined = rn_group_open(&c.table, NULL, &t, &g);
  r->wrong = r->test(&c.table, g);
  c.table.failure(&c.table, g, &text);
  snprintf(r->text, sizeof r->text, "%.*s", (int)text.size, text.data);
  c.table.leave(&c.table, g);
  return NULL;
}

void tr_run(tr_rank_t *ranks, uint32_t n) {
  pthread_t threads[TR_MAX_RANKS];
  for (uint32_t i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, run, &ranks[i]) != 0) abort();
  for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

void tr_make(tr_rank_t *ranks, uint32_t n, tr_test_fn test) {
  memset(ranks, 0, n * sizeof *ranks);
  for (uint32_t i = 0; i < n; i++)
    ranks[i] = (tr_rank_t){.how = {.name = "unit", .rank = i, .n_ranks = n, .patience_ns = UINT64_C(20000000000)},
                           .test = test};
}
