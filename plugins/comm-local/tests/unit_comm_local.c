/* comm-local: the conformance of communicators, with delays; and what goes wrong. On queues of a device:
 * tests/runtime/unit_ranks_on_queues.c. */
#include "kit/ranks/tests/conformance.h"
#include "local_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void conforms(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= 5; n++) {
    tr_rank_t ranks[TR_MAX_RANKS];
    cl_meeting_t how[TR_MAX_RANKS];
    lr_make(ranks, how, n, rn_conformance);
    for (uint32_t i = 0; i < n; i++) how[i].faults = (cl_faults_t){.delay_ns = 300000, .seed = n};
    tr_run(ranks, n);
    tr_assert_well(ranks, n);
  }
}

static void tells_other_programs_apart(void **state) {
  (void)state;
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, rn_disagree);
  tr_run(ranks, 3);
  tr_assert_well(ranks, 3);
}

/* ---- faults ---- */

/* Gathers until it fails. */
static const char *gather_on(const aot_communicator_t *c, aot_group_t *g) {
  uint32_t own = 1, all[TR_MAX_RANKS];
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

static void all_say(const tr_rank_t *ranks, uint32_t n, uint32_t but, const char *text) {
  for (uint32_t i = 0; i < n; i++) {
    if (i == but) continue;
    assert_null(ranks[i].wrong);
    if (!strstr(ranks[i].text, text)) fail_msg("rank %u says: %s", i, ranks[i].text);
  }
}

static void names_the_dead(void **state) {
  (void)state;
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, gather_on);
  how[1].faults.die_at = 7;
  tr_run(ranks, 3);
  all_say(ranks, 3, 1, "rank 1 will not come");
  all_say(ranks, 3, 1, "all_gather of 12 bytes, exchange 7");
}

static void names_who_hangs(void **state) {
  (void)state;
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, gather_on);
  for (uint32_t i = 0; i < 3; i++) how[i].patience_ns = 300000000;
  how[2].faults.hang_at = 4;
  tr_run(ranks, 3);
  all_say(ranks, 3, 2, "rank 2 was not heard of in time");
}

static void names_who_never_came(void **state) {
  (void)state;
  tr_rank_t ranks[TR_MAX_RANKS];
  cl_meeting_t how[TR_MAX_RANKS];
  lr_make(ranks, how, 3, gather_on);
  for (uint32_t i = 0; i < 3; i++) how[i].patience_ns = 200000000;
  tr_run(ranks, 2); /* rank 2 is missing */
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(ranks[i].joined, AOT_E_UNAVAILABLE);
    assert_non_null(strstr(ranks[i].text, "rank 2"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conforms),        cmocka_unit_test(tells_other_programs_apart), cmocka_unit_test(names_the_dead),
      cmocka_unit_test(names_who_hangs), cmocka_unit_test(names_who_never_came),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
