/* The meeting in a file: the conformance of communicators (the ranks are threads here), and what goes wrong. What NCCL
 * does is tested with its double: tests/e2e/cuda_nccl.sh. */
#include "kit/ranks/tests/conformance.h"
#include "kit/ranks/tests/threaded_ranks.h"
#include "file_ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 5 };

static aot_status_t join(const void *how, rn_transport_t *out, rn_error_t *error) { return fr_join(how, out, error); }

/* Of n ranks the first n_come. */
static void meet(tr_rank_t *ranks, tr_join_fn join_by, uint32_t n, uint32_t n_come, uint64_t patience_ns,
                 tr_test_fn test) {
  char path[64];
  fr_how_t how[MOST];
  snprintf(path, sizeof path, "/tmp/aot-unit-file-ranks-%d", (int)getpid());
  for (uint32_t i = 0; i < n; i++) {
    how[i] = (fr_how_t){path, i, n, patience_ns};
    ranks[i] = (tr_rank_t){.join = join_by, .how = &how[i], .test = test};
  }
  tr_run(ranks, n_come);
  unlink(path);
}

static void conforms(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= MOST; n++) {
    tr_rank_t ranks[MOST];
    meet(ranks, join, n, n, UINT64_C(20000000000), rn_conformance);
    tr_assert_well(ranks, n);
  }
}

static void tells_other_programs_apart(void **state) {
  (void)state;
  tr_rank_t ranks[MOST];
  meet(ranks, join, 3, 3, UINT64_C(20000000000), rn_disagree);
  tr_assert_well(ranks, 3);
}

/* Of three ranks the last one does not continue: it leaves, or is late. */
static const char *gather_until(const aot_communicator_t *c, aot_group_t *g, uint64_t late_us) {
  uint32_t own = 1, all[MOST];
  aot_group_info_t info = {.struct_size = sizeof info};
  c->info(c, g, &info);
  const aot_collective_t gather = {.struct_size = sizeof gather,
                                   .kind = AOT_COLLECTIVE_ALL_GATHER,
                                   .to = {(uintptr_t)all, 4 * (uint64_t)info.n_ranks},
                                   .from = {(uintptr_t)&own, 4}};
  for (int i = 0; i < 10; i++) {
    if (i == 6 && info.rank == 2 && late_us == 0) return NULL;
    if (i == 6 && info.rank == 2) usleep((useconds_t)late_us);
    if (c->collect(c, NULL, g, &gather) != AOT_OK) return NULL;
  }
  return "nothing failed";
}
static const char *leaves(const aot_communicator_t *c, aot_group_t *g) { return gather_until(c, g, 0); }
static const char *is_late(const aot_communicator_t *c, aot_group_t *g) { return gather_until(c, g, 900000); }

static void names_who_is_not_there(void **state) {
  (void)state;
  tr_rank_t ranks[MOST];
  meet(ranks, join, 3, 3, UINT64_C(20000000000), leaves);
  for (uint32_t i = 0; i < 2; i++)
    if (ranks[i].wrong || !strstr(ranks[i].text, "rank 2 will not come"))
      fail_msg("rank %u says: %s", i, ranks[i].text);
  meet(ranks, join, 3, 3, 200000000, is_late);
  for (uint32_t i = 0; i < 2; i++)
    if (ranks[i].wrong || !strstr(ranks[i].text, "nothing was heard of rank 2 within 0.2 s"))
      fail_msg("rank %u says: %s", i, ranks[i].text);
  meet(ranks, join, 3, 2, 200000000, leaves);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(ranks[i].joined, AOT_E_UNAVAILABLE);
    assert_non_null(strstr(ranks[i].text, "nothing was seen of rank 2 at /tmp/aot-unit-file-ranks"));
  }
}

/* Ranks of this test are threads: the process of one that has left has ended, too, while the caller for it was
 * asleep. */
static atomic_int one_has_left;
static void (*leave_in_good_order)(void *self);

int kill(pid_t process, int signal) {
  (void)process, (void)signal;
  usleep(1000);
  errno = ESRCH;
  return one_has_left ? -1 : 0;
}

static void leave_and_end(void *self) {
  leave_in_good_order(self);
  one_has_left = 1;
}

static aot_status_t join_to_end(const void *how, rn_transport_t *out, rn_error_t *error) {
  const aot_status_t status = fr_join(how, out, error);
  leave_in_good_order = out->leave;
  out->leave = leave_and_end;
  return status;
}

static const char *passes_a_barrier(const aot_communicator_t *c, aot_group_t *g) {
  const aot_collective_t barrier = {.struct_size = sizeof barrier, .kind = AOT_COLLECTIVE_BARRIER};
  return c->collect(c, NULL, g, &barrier) == AOT_OK ? NULL : "the barrier is not passed";
}

static void may_end_behind_a_barrier(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) {
    tr_rank_t ranks[MOST];
    one_has_left = 0;
    meet(ranks, join_to_end, 2, 2, UINT64_C(20000000000), passes_a_barrier);
    tr_assert_well(ranks, 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conforms),
      cmocka_unit_test(tells_other_programs_apart),
      cmocka_unit_test(names_who_is_not_there),
      cmocka_unit_test(may_end_behind_a_barrier),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
