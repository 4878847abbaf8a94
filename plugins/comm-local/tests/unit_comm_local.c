/* comm-local: the conformance of communicators, with delays; on queues of the strict device; and what goes wrong. */
#include "common/ranks/tests/conformance.h"
#include "../../device-strict/strict_device.h"
#include "hub.h"

#include <aot/inline.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MAX_RANKS 8u

typedef struct rank {
  cl_meeting_t how;
  const char *(*test)(const aot_communicator_t *c, aot_group_t *g);
  const char *wrong;
  aot_status_t joined;
  char text[320];
} rank_t;

static aot_status_t AOT_CALL silent(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)h;
  (void)ctx;
  (void)d;
  return AOT_OK;
}
static const aot_host_t host = {.head = {.struct_size = sizeof host}, .diag = silent};

static void *run(void *arg) {
  rank_t *r = arg;
  rn_communicator_t c;
  rn_transport_t t;
  rn_error_t error = {""};
  aot_group_t *g;
  aot_str_t text;
  rn_communicator_init(&c, &host, AOT_COMMUNICATOR_ORDERED);
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

static void run_all(rank_t *ranks, uint32_t n) {
  pthread_t threads[MAX_RANKS];
  for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, run, &ranks[i]), 0);
  for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void make(rank_t *ranks, uint32_t n, const char *(*test)(const aot_communicator_t *c, aot_group_t *g)) {
  memset(ranks, 0, n * sizeof *ranks);
  for (uint32_t i = 0; i < n; i++)
    ranks[i] =
        (rank_t){.how = {.name = "unit", .rank = i, .n_ranks = n, .patience_ns = UINT64_C(20000000000)}, .test = test};
}

static void conforms(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 5; n++) {
    rank_t ranks[MAX_RANKS];
    make(ranks, n, rn_conformance);
    for (uint32_t i = 0; i < n; i++) ranks[i].how.faults = (cl_faults_t){.delay_ns = 300000, .seed = n};
    run_all(ranks, n);
    for (uint32_t i = 0; i < n; i++) {
      if (ranks[i].wrong) fail_msg("%u ranks, rank %u: %s: %s", n, i, ranks[i].wrong, ranks[i].text);
      assert_int_equal(ranks[i].joined, AOT_OK);
    }
  }
}

static void tells_other_programs_apart(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, rn_disagree);
  run_all(ranks, 3);
  for (uint32_t i = 0; i < 3; i++)
    if (ranks[i].wrong) fail_msg("rank %u: %s: %s", i, ranks[i].wrong, ranks[i].text);
}

/* ---- on queues ---- */

static aot_status_t AOT_CALL fail_work(void *self, aot_status_t before) {
  (void)self;
  return before == AOT_OK ? AOT_E_DATA_LOSS : before;
}

/* Memory that the host cannot touch; a queue that runs late: written, gathered, added up, read, without a wait between. */
static const char *work_on_queue(const aot_communicator_t *c, aot_group_t *g, int fails) {
  const aot_device_t *d = &sd_device_create(&host, &(sd_options_t){.seed = 3, .takes_host_work = 1})->table;
  const aot_ext_host_work_t *work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  aot_group_info_t info = {.struct_size = sizeof info};
  aot_queue_t *q = NULL;
  aot_timeline_t *t = NULL;
  aot_buffer_t own = {0, 0}, all = {0, 0};
  int32_t from = 0, to[MAX_RANKS] = {0};
  c->info(c, g, &info);
  from = (int32_t)info.rank + 1;
  int ok = d->queue_create(d, NULL, AOT_QUEUE_COLLECTIVE, &q) == AOT_OK && d->timeline_create(d, NULL, &t) == AOT_OK &&
           d->alloc(d, NULL, 4, &own) == AOT_OK && d->alloc(d, NULL, 4 * (uint64_t)info.n_ranks, &all) == AOT_OK &&
           d->write(d, NULL, q, own, &from) == AOT_OK;
  if (fails && info.rank == 0) ok = ok && work->enqueue(work, NULL, q, fail_work, NULL) == AOT_OK;
  const aot_collective_t gather = {.struct_size = sizeof gather,
                                   .kind = AOT_COLLECTIVE_ALL_GATHER,
                                   .to = all,
                                   .from = own,
                                   .device = d,
                                   .queue = q,
                                   .what = aot_str("weights")};
  const aot_collective_t sum = {.struct_size = sizeof sum,
                                .kind = AOT_COLLECTIVE_ALL_REDUCE,
                                .reduce = AOT_REDUCE_SUM,
                                .dtype = AOT_I32,
                                .to = all,
                                .from = all,
                                .device = d,
                                .queue = q};
  ok = ok && c->collect(c, NULL, g, &gather) == AOT_OK && c->collect(c, NULL, g, &sum) == AOT_OK &&
       d->read(d, NULL, q, to, all) == AOT_OK && d->signal(d, NULL, q, (aot_point_t){t, 1}) == AOT_OK;
  c->info(c, g, &info);
  ok = ok && info.n_collectives == 0; /* nothing has run yet */
  const aot_status_t status = d->wait_host(d, NULL, (aot_point_t){t, 1}, UINT64_MAX);
  aot_str_t text;
  const aot_status_t failed = c->failure(c, g, &text);
  for (uint32_t r = 0; !fails && r < info.n_ranks; r++) ok = ok && to[r] == (int32_t)((r + 1) * info.n_ranks);
  d->head.destroy(&d->head);
  if (!ok) return "the queue or its results";
  if (fails) return status != AOT_OK && failed != AOT_OK ? NULL : "nothing failed";
  return status == AOT_OK && failed == AOT_OK ? NULL : "the point has failed";
}
static const char *work_well(const aot_communicator_t *c, aot_group_t *g) { return work_on_queue(c, g, 0); }
static const char *work_badly(const aot_communicator_t *c, aot_group_t *g) { return work_on_queue(c, g, 1); }

static void collects_on_queues(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, work_well);
  run_all(ranks, 3);
  for (uint32_t i = 0; i < 3; i++)
    if (ranks[i].wrong) fail_msg("rank %u: %s: %s", i, ranks[i].wrong, ranks[i].text);
}

/* What was to come before it has failed on one rank: no rank waits for it. */
static void a_failed_queue_ends_all(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, work_badly);
  run_all(ranks, 3);
  for (uint32_t i = 0; i < 3; i++) {
    if (ranks[i].wrong) fail_msg("rank %u: %s: %s", i, ranks[i].wrong, ranks[i].text);
    if (!strstr(ranks[i].text, "rank 0: what weights was to come after has failed")) fail_msg("%s", ranks[i].text);
  }
}

/* ---- faults ---- */

/* Gathers until it fails. */
static const char *gather_on(const aot_communicator_t *c, aot_group_t *g) {
  uint32_t own = 1, all[MAX_RANKS];
  aot_group_info_t info = {.struct_size = sizeof info};
  c->info(c, g, &info);
  const aot_collective_t gather = {.struct_size = sizeof gather,
                                   .kind = AOT_COLLECTIVE_ALL_GATHER,
                                   .to = {(uintptr_t)all, 4 * (uint64_t)info.n_ranks},
                                   .from = {(uintptr_t)&own, 4}};
  for (int i = 0; i < 100; i++)
    if (c->collect(c, NULL, g, &gather) != AOT_OK) return NULL;
  return "nothing failed";
}

static void all_say(const rank_t *ranks, uint32_t n, uint32_t but, const char *text) {
  for (uint32_t i = 0; i < n; i++) {
    if (i == but) continue;
    assert_null(ranks[i].wrong);
    if (!strstr(ranks[i].text, text)) fail_msg("rank %u says: %s", i, ranks[i].text);
  }
}

static void names_the_dead(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, gather_on);
  ranks[1].how.faults.die_at = 7;
  run_all(ranks, 3);
  all_say(ranks, 3, 1, "rank 1 will not come");
  all_say(ranks, 3, 1, "all_gather of 12 bytes, exchange 7");
}

static void names_who_hangs(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, gather_on);
  for (uint32_t i = 0; i < 3; i++) ranks[i].how.patience_ns = 300000000;
  ranks[2].how.faults.hang_at = 4;
  run_all(ranks, 3);
  all_say(ranks, 3, 2, "rank 2 was not heard of in time");
}

static void names_who_never_came(void **state) {
  (void)state;
  rank_t ranks[MAX_RANKS];
  make(ranks, 3, gather_on);
  for (uint32_t i = 0; i < 3; i++) ranks[i].how.patience_ns = 200000000;
  run_all(ranks, 2); /* rank 2 is missing */
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(ranks[i].joined, AOT_E_UNAVAILABLE);
    assert_non_null(strstr(ranks[i].text, "rank 2"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conforms),
      cmocka_unit_test(tells_other_programs_apart),
      cmocka_unit_test(collects_on_queues),
      cmocka_unit_test(a_failed_queue_ends_all),
      cmocka_unit_test(names_the_dead),
      cmocka_unit_test(names_who_hangs),
      cmocka_unit_test(names_who_never_came),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
