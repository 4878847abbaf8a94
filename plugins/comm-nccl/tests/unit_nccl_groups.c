/* Collectives on a stream, on the doubles of CUDA and NCCL: ranks that are processes, and meet in a file. */
#include "kit/cuda/symbols.h"
#include "kit/ranks/tests/threaded_ranks.h"
#include "file_ranks.h"
#include "nccl_groups.h"
#include "staging.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
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

/* Two at once, one after the other in memory. */
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

/* ---- windows ---- */

enum { PAGE = 2 << 20, GATHERED = 5000 };

typedef struct wish { /* CUmemAllocationProp */
  int type, handle_types, location_type, location;
  void *windows;
  uint64_t flags;
} wish_t;
typedef struct access { /* CUmemAccessDesc */
  int location_type, location, flags;
} access_t;
typedef struct mapping { /* functions of cuda.h */
  int (*create)(uint64_t *out, size_t nbytes, const wish_t *wish, unsigned long long flags);
  int (*release)(uint64_t handle);
  int (*reserve)(uint64_t *out, size_t nbytes, size_t alignment, uint64_t wanted, unsigned long long flags);
  int (*map)(uint64_t at, size_t nbytes, size_t offset, uint64_t handle, unsigned long long flags);
  int (*unmap)(uint64_t at, size_t nbytes);
  int (*set_access)(uint64_t at, size_t nbytes, const access_t *access, size_t n);
  void (*count_windows)(uint64_t *out_made, uint64_t *out_given_back, uint64_t *out_between); /* the double's */
} mapping_t;

static int find_mapping(const gpu_t *gpu, mapping_t *out) {
  char why[128];
  const nv_symbol_t cuda[] = {
      {"cuMemCreate", &out->create}, {"cuMemRelease", &out->release}, {"cuMemAddressReserve", &out->reserve},
      {"cuMemMap", &out->map},       {"cuMemUnmap", &out->unmap},     {"cuMemSetAccess", &out->set_access}};
  const nv_symbol_t nccl[] = {{"aot_double_count_windows", &out->count_windows}};
  return nv_find_symbols(gpu->s.driver.library, cuda, sizeof cuda / sizeof *cuda, why, sizeof why) &&
         nv_find_symbols(gpu->nccl.library, nccl, 1, why, sizeof why);
}

/* Pages as backend-cuda has them: what others may map, at addresses that are without an owner afterwards. 0: none. */
static uint64_t map_pages(const mapping_t *m, uint32_t n) {
  const wish_t wish = {.type = 1, .handle_types = 1, .location_type = 1};
  const access_t access = {.location_type = 1, .flags = 3};
  uint64_t handle, at;
  const size_t nbytes = (size_t)n * PAGE;
  if (m->create(&handle, nbytes, &wish, 0) || m->reserve(&at, nbytes, PAGE, 0, 0)) return 0;
  return m->map(at, nbytes, 0, handle, 0) || m->release(handle) || m->set_access(at, nbytes, &access, 1) ? 0 : at;
}

typedef struct windows_test {
  gpu_t gpu;
  mapping_t m;
  aot_group_t *g;
  uint32_t rank, n;
} windows_test_t;

static const char *begin_windows(windows_test_t *t, const aot_communicator_t *c, aot_group_t *g,
                                 uint64_t windows_from) {
  aot_group_info_t info = {.struct_size = sizeof info};
  const char *wrong = open_gpu(c, &t->gpu);
  t->g = g;
  c->info(c, g, &info);
  t->rank = info.rank;
  t->n = info.n_ranks;
  if (wrong) return wrong;
  nl_memory_open(&t->gpu.groups.memory);
  t->gpu.groups.windows_from = windows_from;
  return find_mapping(&t->gpu, &t->m) ? NULL : "the doubles have no such functions";
}

static const char *gather(windows_test_t *t, uint64_t from, uint64_t to, char first) {
  const nl_driver_t *cu = &t->gpu.s.driver;
  const uint64_t whole = (uint64_t)t->n * GATHERED;
  const aot_collective_t all = {.struct_size = sizeof all,
                                .kind = AOT_COLLECTIVE_ALL_GATHER,
                                .dtype = AOT_U8,
                                .to = {to, whole},
                                .from = {from, GATHERED},
                                .device = &t->gpu.device};
  const aot_collective_t *const one = &all;
  for (uint64_t i = 0; i < GATHERED; i++) t->gpu.s.host_out[i] = (char)(byte_of(t->rank, 0, i) + first);
  cu->memcpy_to_device(from, t->gpu.s.host_out, GATHERED, t->gpu.s.stream);
  if (collect(&t->gpu, t->g, &one, 1) != AOT_OK) return "a gather is refused";
  cu->memcpy_to_host(t->gpu.s.host_in, to, whole, t->gpu.s.stream);
  if (cu->stream_synchronize(t->gpu.s.stream)) return "the device is lost";
  for (uint64_t i = 0; i < whole; i++)
    if (t->gpu.s.host_in[i] != (char)(byte_of((uint32_t)(i / GATHERED), 0, i % GATHERED) + first))
      return "what is gathered is another's";
  return NULL;
}

static const char *counts(const windows_test_t *t, uint64_t made, uint64_t given_back, uint64_t between) {
  static char text[120];
  uint64_t is_made, is_given_back, is_between;
  t->m.count_windows(&is_made, &is_given_back, &is_between);
  if (is_made == made && is_given_back == given_back && is_between == between) return NULL;
  snprintf(text, sizeof text, "%d windows, %d given back, %d gathers between windows; not %d, %d, %d", (int)is_made,
           (int)is_given_back, (int)is_between, (int)made, (int)given_back, (int)between);
  return text;
}

/* Two allocations, and two others when those are gone. */
static const char *become_windows(const aot_communicator_t *c, aot_group_t *g) {
  windows_test_t t = {.rank = 0};
  const char *wrong = begin_windows(&t, c, g, GATHERED);
  for (uint64_t round = 0; round < 3 && !wrong; round++) {
    const uint64_t from = map_pages(&t.m, 1), to = map_pages(&t.m, 2);
    if (!from || !to) wrong = "there are no pages";
    if (!wrong) wrong = gather(&t, from + 256, to, (char)round);
    if (!wrong) wrong = counts(&t, 2 * round + 2, 2 * round, 2 * round + 1);
    if (!wrong) wrong = gather(&t, from, to + PAGE - 300, 7);
    if (!wrong) wrong = counts(&t, 2 * round + 2, 2 * round, 2 * round + 2);
    if (!wrong && (t.m.unmap(from, PAGE) || t.m.unmap(to, 2 * PAGE))) wrong = "pages cannot be given back";
  }
  if (t.gpu.s.context) close_gpu(&t.gpu, g);
  return wrong ? wrong : counts(&t, 6, 6, 6);
}

/* On the last rank the second gather's buffer stands elsewhere: with windows that would be wrong, and without it is
 * right. */
static const char *go_without(const aot_communicator_t *c, aot_group_t *g) {
  windows_test_t t = {.rank = 0};
  const char *wrong = begin_windows(&t, c, g, GATHERED);
  const uint64_t both = wrong ? 0 : map_pages(&t.m, 1), is_last = t.rank + 1 == t.n, to = both + PAGE / 2;
  if (!wrong) wrong = gather(&t, both, to, 1);
  if (!wrong) wrong = counts(&t, 1, 0, 1);
  if (!wrong) wrong = gather(&t, both + 512 * is_last, to, 2);
  if (!wrong) wrong = gather(&t, both, to, 3);
  if (!wrong) wrong = counts(&t, 1, 0, 1);
  if (t.gpu.s.context) close_gpu(&t.gpu, g);
  return wrong ? wrong : counts(&t, 1, 1, 1);
}

/* Buffers of another size on the last rank, and of memory that nothing else may map. */
static const char *have_none(const aot_communicator_t *c, aot_group_t *g, uint64_t windows_from) {
  windows_test_t t = {.rank = 0};
  const char *wrong = begin_windows(&t, c, g, windows_from);
  const uint64_t both = wrong ? 0 : map_pages(&t.m, 1 + (windows_from && t.rank + 1 == t.n));
  if (!wrong) wrong = gather(&t, both, both + PAGE / 2, 1);
  if (!wrong) wrong = gather(&t, t.gpu.s.out, t.gpu.s.in, 2);
  if (t.gpu.s.context) close_gpu(&t.gpu, g);
  return wrong ? wrong : counts(&t, 0, 0, 0);
}
static const char *differ_in_size(const aot_communicator_t *c, aot_group_t *g) { return have_none(c, g, GATHERED); }
static const char *want_none(const aot_communicator_t *c, aot_group_t *g) { return have_none(c, g, 0); }

/* The last rank cannot make its second window: the first goes, too, the others' second is not used, and what follows is
 * right. */
static const char *fail_to_make(const aot_communicator_t *c, aot_group_t *g) {
  windows_test_t t = {.rank = 0};
  const char *wrong = begin_windows(&t, c, g, GATHERED);
  const uint64_t from = wrong ? 0 : map_pages(&t.m, 1), to = wrong ? 0 : map_pages(&t.m, 1),
                 is_last = t.rank + 1 == t.n;
  if (is_last) setenv("AOT_NCCL_DOUBLE", "no-window-at=2", 1);
  if (!wrong) wrong = gather(&t, from, to, 1);
  if (!wrong) wrong = gather(&t, from + 512 * is_last, to, 2);
  if (!wrong) wrong = counts(&t, 2 - is_last, 1, 0);
  if (t.gpu.s.context) close_gpu(&t.gpu, g);
  return wrong;
}

/* ---- ranks ---- */

static aot_status_t join(const void *how, rn_transport_t *out, rn_error_t *error) { return fr_join(how, out, error); }

/* Until all have ended. A rank that dies (a sanitizer ends it) takes the others along, which would wait for it. */
static void wait_for(pid_t *children, uint32_t n) {
  for (uint32_t n_left = n; n_left; n_left--) {
    int status;
    const pid_t ended = wait(&status);
    for (uint32_t i = 0; i < n; i++) {
      if (children[i] == ended) children[i] = 0;
      if (children[i] && status) kill(children[i], SIGKILL);
    }
  }
}

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
  wait_for(children, n);
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

static void memory_that_is_alike_becomes_windows(void **state) {
  (void)state;
  for (uint32_t n = 2; n <= MOST; n++) meet(n, become_windows);
}

static void buffers_that_stand_elsewhere_are_no_windows(void **state) {
  (void)state;
  for (uint32_t n = 2; n <= MOST; n++) meet(n, go_without);
  meet(3, differ_in_size);
}

static void windows_that_are_not_wanted_or_cannot_be_made_are_none(void **state) {
  (void)state;
  meet(2, want_none);
  meet(3, fail_to_make);
  setenv("AOT_NCCL_DOUBLE", "no-memory=1", 1); /* a machine where NCCL has no windows at all */
  meet(2, differ_in_size);
  setenv("AOT_NCCL_DOUBLE", "version=22700", 1);
  meet(2, differ_in_size);
  unsetenv("AOT_NCCL_DOUBLE");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exchanges_by_one_call),
      cmocka_unit_test(exchanges_by_letters),
      cmocka_unit_test(refuses_uneven_pieces),
      cmocka_unit_test(memory_that_is_alike_becomes_windows),
      cmocka_unit_test(buffers_that_stand_elsewhere_are_no_windows),
      cmocka_unit_test(windows_that_are_not_wanted_or_cannot_be_made_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
