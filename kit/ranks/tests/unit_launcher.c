/* What launchers report by the environment: who, where, and where to meet. */
#include "kit/ranks/launcher.h"

#include <aot/ext/env.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* An environment is a list of names and values, to a NULL; head.self of the host and of its extension. */
static const char *AOT_CALL get(const aot_ext_env_t *x, aot_ctx_t *ctx, const char *name) {
  const char *const *list = x->head.self;
  (void)ctx;
  for (; list[0]; list += 2)
    if (strcmp(list[0], name) == 0) return list[1];
  return NULL;
}
static const void *AOT_CALL get_ext(const aot_table_t *t, const char *id) {
  return strcmp(id, AOT_EXT_ENV) == 0 ? t->self : NULL;
}

static void expect(const char *const *list, int one_machine, int is_told, const char *address) {
  aot_ext_env_t env = {.head = {.struct_size = sizeof env, .self = (void *)(uintptr_t)list}, .get = get};
  const aot_host_t host = {.head = {.struct_size = sizeof host, .self = &env, .get_ext = get_ext}};
  char out[RN_ADDRESS] = "";
  assert_int_equal(rn_told_one_machine(&host, NULL), one_machine);
  assert_int_equal(rn_told_address(&host, NULL, out), is_told);
  assert_string_equal(out, address);
}
#define EXPECT(one_machine, is_told, address, ...)                                                                     \
  expect((const char *const[]){__VA_ARGS__, NULL}, one_machine, is_told, address)

static void torchrun_tells_an_address(void **state) {
  (void)state;
  EXPECT(0, 1, "node1:29501", "RANK", "3", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "node1",
         "MASTER_PORT", "29500");
  EXPECT(1, 1, "node1:29501", "RANK", "3", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "4", "MASTER_ADDR", "node1",
         "MASTER_PORT", "29500");
  EXPECT(-1, 1, "[fe80::1]:2", "RANK", "0", "WORLD_SIZE", "4", "MASTER_ADDR", "fe80::1", "MASTER_PORT", "1");
  EXPECT(1, 0, "", "RANK", "0", "WORLD_SIZE", "1");
  EXPECT(-1, 0, "", "HOME", "/root");
  EXPECT(-1, -1, "MASTER_PORT is 65535, and no port of 1 to 65534", "MASTER_ADDR", "a", "MASTER_PORT", "65535");
  EXPECT(-1, -1, "MASTER_PORT is 29500x, and no port of 1 to 65534", "MASTER_ADDR", "a", "MASTER_PORT", "29500x");
  EXPECT(-1, -1, "MASTER_PORT is 0, and no port of 1 to 65534", "MASTER_ADDR", "a", "MASTER_PORT", "0");
  EXPECT(-1, -1, "MASTER_ADDR is a, and MASTER_PORT is not set", "MASTER_ADDR", "a");
}

static void srun_tells_hosts_and_a_job(void **state) {
  (void)state;
  EXPECT(0, 1, "gpu07:16234", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_STEP_NUM_NODES", "2",
         "SLURM_STEP_NODELIST", "gpu[07,12]", "SLURM_JOB_NODELIST", "gpu[01-12]", "SLURM_JOB_ID", "981234");
  EXPECT(1, 1, "a:15007", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_NNODES", "1", "SLURM_NODELIST", "a",
         "SLURM_JOB_ID", "7");
  EXPECT(0, 1, "b:4001", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_NTASKS_PER_NODE", "2", "SLURM_NODELIST",
         "b,c", "MASTER_PORT", "4000", "SLURM_JOB_ID", "7");
  EXPECT(0, 1, "d:4001", "SLURM_PROCID", "0", "SLURM_NTASKS", "4", "SLURM_NNODES", "2", "SLURM_NODELIST", "b,c",
         "MASTER_ADDR", "d", "MASTER_PORT", "4000");
  /* Of a job in which torchrun has started this process, torchrun reports. */
  EXPECT(0, 1, "b:4001", "RANK", "0", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR", "b", "MASTER_PORT",
         "4000", "SLURM_PROCID", "0", "SLURM_NNODES", "1", "SLURM_NODELIST", "c", "SLURM_JOB_ID", "7");
}

static void the_first_of_a_list_of_hosts(void **state) {
  static const char *const lists[][2] = {{"a", "a"},
                                         {"a,b", "a"},
                                         {"gpu[07-09,12],cpu1", "gpu07"},
                                         {"rack[1-2]n[003,005-9]x,b", "rack1n003x"},
                                         {"n[5]", "n5"},
                                         {"n[5", "n5"},
                                         {"", ""}};
  char out[32];
  (void)state;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    rn_first_host(lists[i][0], out, sizeof out);
    assert_string_equal(out, lists[i][1]);
  }
  rn_first_host("a-name-that-is-longer", out, 7);
  assert_string_equal(out, "a-name");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(torchrun_tells_an_address),
      cmocka_unit_test(srun_tells_hosts_and_a_job),
      cmocka_unit_test(the_first_of_a_list_of_hosts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
