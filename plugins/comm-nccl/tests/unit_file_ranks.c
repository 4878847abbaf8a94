/* The meeting in a file: the conformance of communicators (the ranks are threads here), and what goes wrong. What NCCL does
 * is tested with its double: tests/e2e/cuda_nccl.sh. */
#include "common/ranks/tests/conformance.h"
#include "file_ranks.h"

#include <aot/inline.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 5 };

typedef const char *(*test_fn)(const aot_communicator_t *c, aot_group_t *g);

typedef struct rank {
  fr_how_t how;
  test_fn test;
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
  r->joined = fr_join(&r->how, &t, &error);
  snprintf(r->text, sizeof r->text, "%s", error.text);
  if (r->joined != AOT_OK) return NULL;
  r->joined = rn_group_open(&c.table, NULL, &t, &g);
  r->wrong = r->test(&c.table, g);
  c.table.failure(&c.table, g, &text);
  snprintf(r->text, sizeof r->text, "%.*s", (int)text.size, text.data);
  c.table.leave(&c.table, g);
  return NULL;
}

/* Of n ranks the first n_come. */
static void meet(rank_t *ranks, uint32_t n, uint32_t n_come, uint64_t patience_ns, test_fn test) {
  static char path[64];
  pthread_t threads[MOST];
  snprintf(path, sizeof path, "/tmp/aot-unit-file-ranks-%d", (int)getpid());
  for (uint32_t i = 0; i < n; i++) ranks[i] = (rank_t){.how = {path, i, n, patience_ns}, .test = test};
  for (uint32_t i = 0; i < n_come; i++)
    if (pthread_create(&threads[i], NULL, run, &ranks[i]) != 0) abort();
  for (uint32_t i = 0; i < n_come; i++) pthread_join(threads[i], NULL);
  unlink(path);
}

static void conforms(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= MOST; n++) {
    rank_t ranks[MOST];
    meet(ranks, n, n, UINT64_C(20000000000), rn_conformance);
    for (uint32_t i = 0; i < n; i++) {
      if (ranks[i].wrong) fail_msg("%u ranks, rank %u: %s: %s", n, i, ranks[i].wrong, ranks[i].text);
      assert_int_equal(ranks[i].joined, AOT_OK);
    }
  }
}

static void tells_other_programs_apart(void **state) {
  (void)state;
  rank_t ranks[MOST];
  meet(ranks, 3, 3, UINT64_C(20000000000), rn_disagree);
  for (uint32_t i = 0; i < 3; i++)
    if (ranks[i].wrong) fail_msg("rank %u: %s: %s", i, ranks[i].wrong, ranks[i].text);
}

/* Of three ranks the last one does not go on: it leaves, or is late. */
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
  rank_t ranks[MOST];
  meet(ranks, 3, 3, UINT64_C(20000000000), leaves);
  for (uint32_t i = 0; i < 2; i++)
    if (ranks[i].wrong || !strstr(ranks[i].text, "rank 2 will not come"))
      fail_msg("rank %u says: %s", i, ranks[i].text);
  meet(ranks, 3, 3, 200000000, is_late);
  for (uint32_t i = 0; i < 2; i++)
    if (ranks[i].wrong || !strstr(ranks[i].text, "nothing was heard of rank 2 within 0.2 s"))
      fail_msg("rank %u says: %s", i, ranks[i].text);
  meet(ranks, 3, 2, 200000000, leaves);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(ranks[i].joined, AOT_E_UNAVAILABLE);
    assert_non_null(strstr(ranks[i].text, "the others have not come to /tmp/aot-unit-file-ranks"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conforms),
      cmocka_unit_test(tells_other_programs_apart),
      cmocka_unit_test(names_who_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
