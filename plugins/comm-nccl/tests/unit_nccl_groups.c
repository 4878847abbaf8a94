/* Collectives on a stream, on the doubles of CUDA and NCCL: ranks that are processes, and meet in a file. */
#include "common/ranks/tests/threaded_ranks.h"
#include "file_ranks.h"
#include "nccl_groups.h"
#include "staging.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 4, PIECE = 3000, NBYTES = 4 * MOST * PIECE };
#define LONG_NS UINT64_C(60000000000)

/* ---- a device that is a stream and a little memory ---- */

typedef struct gpu {
  aot_device_t device;
  aot_ext_stream_t stream;
  nl_staging_t s;
  int (*write_value)(void *stream, uint64_t word, uint64_t value, unsigned flags);
  nl_nccl_t nccl;
  nl_groups_t groups;
} gpu_t;

static aot_status_t AOT_CALL host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  const gpu_t *gpu = d->head.self;
  (void)ctx;
  return gpu->s.driver.mem_host_alloc(out, nbytes, 0) ? AOT_E_EXHAUSTED : AOT_OK;
}
static aot_status_t AOT_CALL host_free(const aot_device_t *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes) {
  const gpu_t *gpu = d->head.self;
  (void)ctx, (void)nbytes;
  return gpu->s.driver.mem_free_host(memory) ? AOT_E_INTERNAL : AOT_OK;
}
static aot_status_t AOT_CALL enter(const aot_ext_stream_t *x, aot_ctx_t *ctx) {
  const gpu_t *gpu = x->head.self;
  (void)ctx;
  return nl_staging_enter(&gpu->s) ? AOT_E_INTERNAL : AOT_OK;
}
static void *AOT_CALL stream_of(const aot_ext_stream_t *x, const aot_queue_t *q) {
  const gpu_t *gpu = x->head.self;
  (void)q;
  return gpu->s.stream;
}
static aot_status_t AOT_CALL mark(const aot_ext_stream_t *x, aot_ctx_t *ctx, aot_queue_t *q, uint64_t *word,
                                  uint64_t value) {
  const gpu_t *gpu = x->head.self;
  (void)ctx, (void)q;
  return gpu->write_value(gpu->s.stream, (uint64_t)(uintptr_t)word, value, 0) ? AOT_E_INTERNAL : AOT_OK;
}

static const char *open_gpu(const aot_communicator_t *c, gpu_t *out) {
  static char why[300];
  int n_devices;
  if (nl_open(&out->nccl, NULL, why, sizeof why)) return why;
  if (nl_driver_open(&out->s.driver, &n_devices, why, sizeof why)) return why;
  if (nl_staging_init(&out->s, 0, NBYTES, why, sizeof why)) return why;
  void *symbol = dlsym(out->s.driver.library, "cuStreamWriteValue64_v2");
  memcpy(&out->write_value, &symbol, sizeof symbol);
  out->device = (aot_device_t){
      .head = {.struct_size = sizeof out->device, .self = out}, .host_alloc = host_alloc, .host_free = host_free};
  out->stream = (aot_ext_stream_t){
      .head = {.struct_size = sizeof out->stream, .self = out}, .enter = enter, .stream = stream_of, .mark = mark};
  nl_groups_init(&out->groups, c, &out->nccl, LONG_NS);
  out->groups.has_failed = fr_has_failed;
  return NULL;
}

static void close_gpu(gpu_t *gpu, aot_group_t *g) {
  nl_forget(&gpu->groups, g);
  nl_groups_deinit(&gpu->groups);
  nl_staging_deinit(&gpu->s);
}

static aot_status_t collect(gpu_t *gpu, aot_group_t *g, const aot_collective_t *const *what, uint64_t n) {
  return nl_collect(&gpu->groups, NULL, g, what, n, &gpu->stream);
}

/* ---- exchanges ---- */

static char byte_of(uint32_t from, uint32_t to, uint64_t i) { return (char)(from * 97 + to * 31 + i * 7 + 1); }

/* Two at once, one behind the other in memory. */
static const char *exchange_two(gpu_t *gpu, aot_group_t *g, uint32_t rank, uint32_t n) {
  const uint64_t whole = (uint64_t)n * PIECE;
  const uint64_t pieces[MOST] = {PIECE, PIECE, PIECE, PIECE};
  aot_collective_t both[2];
  const aot_collective_t *const list[2] = {&both[0], &both[1]};
  for (uint64_t i = 0; i < 2 * whole; i++)
    gpu->s.host_out[i] = byte_of(rank, (uint32_t)(i / PIECE % n), i % PIECE + i / whole);
  gpu->s.driver.memcpy_to_device(gpu->s.out, gpu->s.host_out, 2 * whole, gpu->s.stream);
  for (uint32_t k = 0; k < 2; k++)
    both[k] = (aot_collective_t){.struct_size = sizeof both[k],
                                 .kind = AOT_COLLECTIVE_ALL_TO_ALL,
                                 .dtype = AOT_U8,
                                 .to = {gpu->s.in + k * whole, whole},
                                 .from = {gpu->s.out + k * whole, whole},
                                 .send = k ? pieces : NULL,
                                 .receive = k ? pieces : NULL,
                                 .device = &gpu->device};
  if (collect(gpu, g, list, 2) != AOT_OK) return "two exchanges are refused";
  gpu->s.driver.memcpy_to_host(gpu->s.host_in, gpu->s.in, 2 * whole, gpu->s.stream);
  gpu->s.driver.stream_synchronize(gpu->s.stream);
  for (uint64_t i = 0; i < 2 * whole; i++)
    if (gpu->s.host_in[i] != byte_of((uint32_t)(i / PIECE % n), rank, i % PIECE + i / whole))
      return "what an exchange brings is another's";
  return NULL;
}

static const char *exchanges(const aot_communicator_t *c, aot_group_t *g) {
  gpu_t gpu = {.nccl = {0}};
  aot_group_info_t info = {.struct_size = sizeof info};
  const char *wrong = open_gpu(c, &gpu);
  c->info(c, g, &info);
  if (!wrong) wrong = exchange_two(&gpu, g, info.rank, info.n_ranks);
  c->info(c, g, &info);
  if (!wrong && info.gathered_nbytes < 2 * (info.n_ranks - 1) * (uint64_t)PIECE) wrong = "its bytes are not counted";
  if (gpu.s.context) close_gpu(&gpu, g);
  return wrong;
}

/* Of two pieces one is larger: what a stream has no call for. */
static const char *exchanges_unevenly(const aot_communicator_t *c, aot_group_t *g) {
  static const uint64_t send[] = {4, 8}, receive[] = {8, 4};
  gpu_t gpu = {.nccl = {0}};
  aot_str_t text;
  const char *wrong = open_gpu(c, &gpu);
  const aot_collective_t uneven = {.struct_size = sizeof uneven,
                                   .kind = AOT_COLLECTIVE_ALL_TO_ALL,
                                   .dtype = AOT_U8,
                                   .to = {gpu.s.in, 12},
                                   .from = {gpu.s.out, 12},
                                   .send = send,
                                   .receive = receive,
                                   .device = &gpu.device};
  const aot_collective_t *const one = &uneven;
  if (!wrong && collect(&gpu, g, &one, 1) != AOT_E_UNIMPLEMENTED) wrong = "pieces of different sizes are taken";
  c->failure(c, g, &text);
  if (!wrong && !strstr(text.data, "all_to_all: on queues all pieces are of one size")) wrong = "another sentence";
  if (gpu.s.context) close_gpu(&gpu, g);
  return wrong;
}

/* ---- ranks ---- */

static aot_status_t join(const void *how, rn_transport_t *out, rn_error_t *error) { return fr_join(how, out, error); }

static void meet(uint32_t n, tr_test_fn test) {
  char path[64];
  pid_t children[MOST];
  tr_rank_t *ranks = mmap(NULL, MOST * sizeof *ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(ranks != MAP_FAILED);
  snprintf(path, sizeof path, "/dev/shm/aot-unit-nccl-groups-%d", (int)getpid());
  for (uint32_t i = 0; i < n; i++) {
    const fr_how_t how = {.path = path, .rank = i, .n_ranks = n, .patience_ns = LONG_NS};
    ranks[i] = (tr_rank_t){.join = join, .how = &how, .test = test, .joined = AOT_E_INTERNAL};
    children[i] = fork();
    if (children[i]) continue;
    tr_run(&ranks[i], 1);
    exit(0);
  }
  for (uint32_t i = 0; i < n; i++) waitpid(children[i], NULL, 0);
  unlink(path);
  tr_assert_well(ranks, n);
  munmap(ranks, MOST * sizeof *ranks);
}

static void exchanges_by_one_call(void **state) {
  (void)state;
  for (uint32_t n = 1; n <= MOST; n++) meet(n, exchanges);
}

/* NCCL before 2.28 has none: letters, of which those of both exchanges go together. */
static void exchanges_by_letters(void **state) {
  (void)state;
  setenv("AOT_NCCL_DOUBLE", "version=22700", 1);
  for (uint32_t n = 1; n <= MOST; n++) meet(n, exchanges);
  unsetenv("AOT_NCCL_DOUBLE");
}

static void refuses_uneven_pieces(void **state) {
  (void)state;
  meet(2, exchanges_unevenly);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exchanges_by_one_call),
      cmocka_unit_test(exchanges_by_letters),
      cmocka_unit_test(refuses_uneven_pieces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
