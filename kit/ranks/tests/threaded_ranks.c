#include "threaded_ranks.h"

#include <aot/inline.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

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
  r->joined = r->join(r->how, &t, &error);
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

void tr_assert_well(const tr_rank_t *ranks, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (ranks[i].wrong) fail_msg("rank %u of %u: %s: %s", i, n, ranks[i].wrong, ranks[i].text);
    if (ranks[i].joined != AOT_OK) fail_msg("rank %u of %u has not joined: %s", i, n, ranks[i].text);
  }
}
