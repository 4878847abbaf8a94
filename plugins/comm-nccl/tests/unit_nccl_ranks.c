/* Ranks that have an address in common and nothing else, on the doubles of CUDA and NCCL, each a process: the
 * conformance of communicators, parts of parts, and what goes wrong. */
#include "kit/ranks/tests/conformance.h"
#include "kit/ranks/tests/threaded_ranks.h"
#include "nccl_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 5 };
#define LONG_NS UINT64_C(20000000000)

static aot_status_t join(const void *how, rn_transport_t *out, rn_error_t *error) { return nl_join(how, out, error); }

/* One rank, from its libraries on: those of the double are a process's. */
static void be_rank(tr_rank_t *rank, const nl_how_t *how) {
  nl_nccl_t nccl;
  nl_driver_t driver;
  int n_devices;
  nl_how_t own = *how;
  rank->joined = AOT_E_INTERNAL;
  if (nl_open(&nccl, NULL, rank->text, sizeof rank->text)) return;
  if (nl_driver_open(&driver, &n_devices, rank->text, sizeof rank->text)) return;
  own.nccl = &nccl;
  own.driver = &driver;
  rank->how = &own;
  tr_run(rank, 1);
  if (getenv("NCCL_COMM_ID") && rank->joined == AOT_OK) rank->wrong = "NCCL_COMM_ID is still set";
}

/* Of n ranks the first n_come. What a rank says is a constant of the program, at the same address in all of them. */
static tr_rank_t *meet(uint32_t n, uint32_t n_come, uint64_t patience_ns, tr_test_fn test) {
  static int port; /* another one for each meeting */
  char address[64];
  pid_t children[MOST];
  tr_rank_t *ranks = mmap(NULL, MOST * sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(ranks != MAP_FAILED);
  snprintf(address, sizeof address, "127.0.0.1:%d", 10000 + (int)getpid() % 10000 + port++);
  for (uint32_t i = 0; i < n_come; i++) {
    const nl_how_t how = {.address = address, .rank = i, .n_ranks = n, .patience_ns = patience_ns};
    ranks[i] = (tr_rank_t){.join = join, .test = test, .joined = AOT_E_INTERNAL};
    children[i] = fork();
    if (children[i]) continue;
    be_rank(&ranks[i], &how);
    exit(0);
  }
  for (uint32_t i = 0; i < n_come; i++) waitpid(children[i], NULL, 0);
  return ranks;
}

static void conforms(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= MOST; n++) tr_assert_well(meet(n, n, LONG_NS, rn_conformance), n);
}

static void tells_other_programs_apart(void **state) {
  (void)state;
  tr_assert_well(meet(3, 3, LONG_NS, rn_disagree), 3);
}

static aot_status_t gather(const aot_communicator_t *c, aot_group_t *g, uint32_t own, uint32_t *all, uint32_t n) {
  const aot_collective_t what = {.struct_size = sizeof what,
                                 .kind = AOT_COLLECTIVE_ALL_GATHER,
                                 .to = {(uintptr_t)all, 4 * (uint64_t)n},
                                 .from = {(uintptr_t)&own, 4}};
  return c->collect(c, NULL, g, &what);
}

/* Four ranks as two rows, in which ranks stand the other way round; of each row its first alone. */
static const char *divides(const aot_communicator_t *c, aot_group_t *g) {
  uint32_t all[MOST] = {0};
  aot_group_t *row, *alone;
  aot_group_info_t whole = {.struct_size = sizeof whole}, in_row = {.struct_size = sizeof in_row};
  c->info(c, g, &whole);
  if (c->split(c, NULL, g, whole.rank / 2, 9 - whole.rank, &row) != AOT_OK) return "no rows";
  c->info(c, row, &in_row);
  if (in_row.n_ranks != 2 || in_row.rank != 1 - whole.rank % 2) return "another place in the row";
  if (gather(c, row, whole.rank, all, 2) != AOT_OK) return "no gather in a row";
  if (all[0] != whole.rank / 2 * 2 + 1 || all[1] != whole.rank / 2 * 2) return "what is gathered is not the row's";
  if (c->split(c, NULL, row, in_row.rank, 0, &alone) != AOT_OK) return "no part of a row";
  if (gather(c, alone, whole.rank, all, 1) != AOT_OK || all[0] != whole.rank) return "alone";
  c->leave(c, alone);
  c->leave(c, row);
  if (gather(c, g, 7 + whole.rank, all, 4) != AOT_OK || all[3] != 10) return "the whole is no more";
  return NULL;
}

static void parts_have_ranks_of_their_own(void **state) {
  (void)state;
  tr_assert_well(meet(4, 4, LONG_NS, divides), 4);
}

/* Of three ranks the last one does not continue: it gives up, or is late. */
static const char *gather_until(const aot_communicator_t *c, aot_group_t *g, int gives_up) {
  uint32_t all[MOST];
  aot_group_info_t info = {.struct_size = sizeof info};
  c->info(c, g, &info);
  for (int i = 0; i < 10; i++) {
    if (i == 6 && info.rank == 2 && gives_up) return c->abort(c, g, (aot_str_t){"no memory", 9}), NULL;
    if (i == 6 && info.rank == 2) usleep(2500000);
    if (gather(c, g, 1, all, info.n_ranks) != AOT_OK) return NULL;
  }
  return "nothing failed";
}
static const char *gives_up(const aot_communicator_t *c, aot_group_t *g) { return gather_until(c, g, 1); }
static const char *is_late(const aot_communicator_t *c, aot_group_t *g) { return gather_until(c, g, 0); }

static void both_say(const tr_rank_t *ranks, const char *sentence) {
  for (uint32_t i = 0; i < 2; i++)
    if (ranks[i].wrong || !strstr(ranks[i].text, sentence)) fail_msg("rank %u says: %s", i, ranks[i].text);
}

static void names_who_is_not_there(void **state) {
  (void)state;
  both_say(meet(3, 3, LONG_NS, gives_up), "rank 2 has given up: no memory");
  both_say(meet(3, 3, UINT64_C(1000000000), is_late), "exchange 7: nothing was heard of rank 2 within 1 s");
  const tr_rank_t *ranks = meet(3, 2, UINT64_C(1000000000), gives_up);
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(ranks[i].joined, AOT_E_UNAVAILABLE);
  both_say(ranks, "of 3: not all ranks have come within 1 s to 127.0.0.1:");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conforms),
      cmocka_unit_test(tells_other_programs_apart),
      cmocka_unit_test(parts_have_ranks_of_their_own),
      cmocka_unit_test(names_who_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
