/* Mistakes with streams, one each, on the driver's double: every one is found, and its right twin is not reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(uint64_t *out, size_t nbytes);
int cuMemFree_v2(uint64_t address);
int cuMemHostAlloc(void **out, size_t nbytes, unsigned flags);
int cuStreamCreate(void **out, unsigned flags);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t nbytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t nbytes, void *stream);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t nbytes, void *stream);
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t nbytes, void *stream);
int cuStreamWaitValue64_v2(void *stream, uint64_t word, uint64_t value, unsigned flags);
int cuStreamWriteValue64_v2(void *stream, uint64_t word, uint64_t value, unsigned flags);
int cuEventCreate(void **out, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamQuery(void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **out);
int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags);
int cuGraphLaunch(void *exec, void *stream);
int aot_double_enqueue(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes);

enum { SUCCESS = 0, ILLEGAL_ADDRESS = 700, NBYTES = 256 };
enum {
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  CAPTURED_EVENT = 907
};
enum { WITHOUT_TIME = 2 };

typedef struct fixture {
  void *context, *one, *two, *host;
  uint64_t a, b;
  uint64_t *word;
} fixture_t;

static fixture_t w;

/* A kernel, as far as the double knows one: it adds to the first element that its argument names. */
typedef struct pair {
  uint64_t to, from;
} pair_t;
static int copy_element(void *argument) {
  const pair_t *p = argument;
  memcpy((void *)(uintptr_t)p->to, (const void *)(uintptr_t)p->from, 2);
  return 0;
}
static void kernel(void *stream, uint64_t to, uint64_t from) {
  const pair_t p = {to, from};
  assert_int_equal(aot_double_enqueue(stream, copy_element, &p, sizeof p), SUCCESS);
}
static void order(void) { /* two continues when one has come here */
  cuStreamWriteValue64_v2(w.one, (uint64_t)(uintptr_t)w.word, 1, 0);
  cuStreamWaitValue64_v2(w.two, (uint64_t)(uintptr_t)w.word, 1, 0);
}
static void from_host(void *stream, uint64_t to) { cuMemcpyHtoDAsync_v2(to, w.host, NBYTES, stream); }
static void to_host(void *stream, uint64_t from) { cuMemcpyDtoHAsync_v2(w.host, from, NBYTES, stream); }

static void write_then_read(int is_ordered) {
  from_host(w.one, w.a);
  if (is_ordered) order();
  to_host(w.two, w.a);
}
static void read_then_write(int is_ordered) {
  to_host(w.one, w.a);
  if (is_ordered) order();
  cuMemsetD8Async(w.a + 8, 3, 8, w.two);
}
static void write_then_write(int is_ordered) {
  cuMemsetD8Async(w.a, 3, NBYTES, w.one);
  if (is_ordered) order();
  cuMemcpyDtoDAsync_v2(w.a, w.b, 8, w.two);
}
static void kernel_reads_what_is_copied(int is_ordered) {
  from_host(w.one, w.a);
  if (is_ordered) order();
  kernel(w.two, w.b, w.a);
}
static void kernel_writes_what_is_copied_out(int is_ordered) {
  kernel(w.one, w.b, w.a);
  if (is_ordered) order();
  to_host(w.two, w.b);
}
/* the signal is in front of what it should report */
static void signal_too_early(int is_ordered) {
  if (!is_ordered) order();
  from_host(w.one, w.a);
  if (is_ordered) order();
  kernel(w.two, w.b, w.a);
}

static void *make_event(void) {
  void *event = NULL;
  assert_int_equal(cuEventCreate(&event, WITHOUT_TIME), SUCCESS);
  return event;
}
static void order_by_event(void *before, void *behind) {
  void *event = make_event();
  cuEventRecord(event, before);
  cuStreamWaitEvent(behind, event, 0);
}
static void kernel_reads_before_the_event(int is_ordered) {
  from_host(w.one, w.a);
  if (is_ordered) order_by_event(w.one, w.two);
  kernel(w.two, w.b, w.a);
}
/* One is captured, and two next to it: what two computes is read by one after the join, or in front of it. */
static void captured_work_is_read_early(int is_ordered) {
  void *graph = NULL, *exec = NULL;
  cuStreamBeginCapture_v2(w.one, 1);
  cuMemsetD8Async(w.a, 3, NBYTES, w.one);
  order_by_event(w.one, w.two);
  cuMemsetD8Async(w.b, 4, NBYTES, w.two);
  if (is_ordered) order_by_event(w.two, w.one);
  kernel(w.one, w.a, w.b);
  if (!is_ordered) order_by_event(w.two, w.one);
  assert_int_equal(cuStreamEndCapture(w.one, &graph), SUCCESS);
  assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), SUCCESS);
  for (int k = 0; k < 3; k++) cuGraphLaunch(exec, w.one);
}
/* .. and it writes what one has still to read. */
static void captured_work_begins_early(int is_ordered) {
  void *graph = NULL, *exec = NULL;
  cuStreamBeginCapture_v2(w.one, 1);
  if (!is_ordered) order_by_event(w.one, w.two);
  kernel(w.one, w.a, w.b);
  if (is_ordered) order_by_event(w.one, w.two);
  cuMemsetD8Async(w.b, 4, NBYTES, w.two);
  order_by_event(w.two, w.one);
  assert_int_equal(cuStreamEndCapture(w.one, &graph), SUCCESS);
  assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), SUCCESS);
  for (int k = 0; k < 3; k++) cuGraphLaunch(exec, w.one);
}

static void (*const mistakes[])(int is_ordered) = {
    write_then_read,
    read_then_write,
    write_then_write,
    kernel_reads_what_is_copied,
    kernel_writes_what_is_copied_out,
    signal_too_early,
    kernel_reads_before_the_event,
    captured_work_is_read_early,
    captured_work_begins_early,
};

/* Every time in a process of its own: a trap is the end of a driver. */
static void begin(void) {
  void *memory;
  assert_int_equal(cuInit(0), SUCCESS);
  cuDevicePrimaryCtxRetain(&w.context, 0);
  cuCtxSetCurrent(w.context);
  cuStreamCreate(&w.one, 1);
  cuStreamCreate(&w.two, 1);
  cuMemAlloc_v2(&w.a, NBYTES);
  cuMemAlloc_v2(&w.b, NBYTES);
  cuMemHostAlloc(&memory, 8, 0);
  w.word = memory;
  *w.word = 0;
  cuMemHostAlloc(&w.host, NBYTES, 0);
  memset(w.host, 1, NBYTES);
  from_host(w.one, w.a);
  cuMemsetD8Async(w.b, 2, NBYTES, w.one);
  assert_int_equal(cuCtxSynchronize(), SUCCESS);
}

static int run_in_child(void (*work)(int is_ordered), int is_ordered) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    begin();
    work(is_ordered);
    _exit(cuCtxSynchronize() == ILLEGAL_ADDRESS);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void each_mistake_is_found(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
    if (run_in_child(mistakes[k], 1)) fail_msg("mistake %zu: what is right is told", k);
    if (!run_in_child(mistakes[k], 0)) fail_msg("mistake %zu is not found", k);
  }
}

static void other_bytes_need_no_order(int is_ordered) {
  (void)is_ordered;
  cuMemsetD8Async(w.a, 3, 8, w.one);
  cuMemsetD8Async(w.a + 8, 3, 8, w.two);
  kernel(w.one, w.b, w.a); /* of one stream, in its order */
  cuMemsetD8Async(w.b + 64, 3, 8, w.two);
}
static void the_host_waits_between(int is_ordered) {
  (void)is_ordered;
  from_host(w.one, w.a);
  cuCtxSynchronize();
  kernel(w.two, w.b, w.a);
  cuCtxSynchronize();
  cuMemsetD8Async(w.b, 3, 8, w.one);
}

/* Two is captured next to one: what may not be done then has the errors of a driver. */
static void captures_are_kept_to(int is_ordered) {
  void *graph = NULL, *event = make_event(), *other = make_event();
  (void)is_ordered;
  cuEventRecord(other, w.two);
  cuStreamBeginCapture_v2(w.one, 1);
  assert_int_equal(cuStreamWaitEvent(w.one, other, 0), CAPTURE_ISOLATION);
  cuEventRecord(event, w.one);
  assert_int_equal(cuStreamWaitEvent(w.two, event, 0), SUCCESS);
  cuMemsetD8Async(w.b, 4, NBYTES, w.two);
  assert_int_equal(cuStreamQuery(w.two), CAPTURE_UNSUPPORTED);
  assert_int_equal(cuStreamEndCapture(w.two, &graph), CAPTURE_UNMATCHED);
  assert_int_equal(cuStreamEndCapture(w.one, &graph), CAPTURE_UNJOINED);
  assert_int_equal(cuStreamWaitEvent(w.two, event, 0), CAPTURED_EVENT);
  assert_int_equal(cuStreamQuery(w.two), SUCCESS);
}

static void what_is_right_is_not_told(void **state) {
  (void)state;
  assert_int_equal(run_in_child(other_bytes_need_no_order, 0), 0);
  assert_int_equal(run_in_child(the_host_waits_between, 0), 0);
  assert_int_equal(run_in_child(captures_are_kept_to, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_mistake_is_found),
      cmocka_unit_test(what_is_right_is_not_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
