/* Collectives of comm-local on queues of device-strict: two plugins together. */
#include "local_ranks.h"
#include "strict_device.h"

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static aot_status_t AOT_CALL fail_work(void *self, aot_status_t before) {
  (void)self;
  return before == AOT_OK ? AOT_E_DATA_LOSS : before;
}

/* Memory that the host cannot touch; a queue that runs late: written, gathered, added up, read, without a wait
 * between. */
static const char *work_on_queue(const aot_communicator_t *c, aot_group_t *g, int fails) {
  const aot_device_t *d = &sd_device_create(&tr_host, &(sd_options_t){.seed = 3, .takes_host_work = 1})->table;
  const aot_ext_host_work_t *work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  aot_group_info_t info = {.struct_size = sizeof info};
  aot_queue_t *q = NULL;
  aot_timeline_t *t = NULL;
  aot_buffer_t own = {0, 0}, all = {0, 0};
  int32_t from = 0, to[TR_MAX_RANKS] = {0};
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
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, work_well);
  tr_run(ranks, 3);
  tr_assert_well(ranks, 3);
}

/* What was to come before it has failed on one rank: no rank waits for it. */
static void a_failed_queue_ends_all(void **state) {
  (void)state;
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, work_badly);
  tr_run(ranks, 3);
  tr_assert_well(ranks, 3);
  for (uint32_t i = 0; i < 3; i++)
    if (!strstr(ranks[i].text, "rank 0: what weights was to come after has failed")) fail_msg("%s", ranks[i].text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collects_on_queues),
      cmocka_unit_test(a_failed_queue_ends_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
