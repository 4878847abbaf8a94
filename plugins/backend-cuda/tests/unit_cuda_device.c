/* The CUDA device by its table, as a host sees it, on whatever libcuda.so.1 is found: the driver's double in the suite,
 * a GPU where there is one (then AOT_CUDA_DOUBLE says nothing, and the tests of the double alone are left out). */
#include "cuda_device.h"

#include <aot/inline.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char told[1024]; /* the last diagnostic */

static aot_status_t AOT_CALL diag(const aot_host_t *host, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)host, (void)ctx;
  snprintf(told, sizeof told, "%.*s [%.*s]", (int)d->message.size, d->message.data, (int)d->code.size, d->code.data);
  return AOT_OK;
}
static const aot_host_t host = {.head = {.struct_size = sizeof host}, .diag = diag};

typedef struct fixture {
  const aot_device_t *d;
  aot_queue_t *one, *two;
  aot_timeline_t *t;
} fixture_t;

static fixture_t begin(void) {
  fixture_t w;
  aot_status_t status;
  told[0] = 0;
  gc_device_t *g = gc_device_create(&host, NULL, 0, 600, &status);
  if (!g) fail_msg("%s", told);
  w.d = &g->table;
  assert_int_equal(w.d->queue_create(w.d, NULL, AOT_QUEUE_COPY, &w.one), AOT_OK);
  assert_int_equal(w.d->queue_create(w.d, NULL, AOT_QUEUE_COMPUTE, &w.two), AOT_OK);
  assert_int_equal(w.d->timeline_create(w.d, NULL, &w.t), AOT_OK);
  return w;
}

static void end(const fixture_t *w) {
  w->d->timeline_destroy(w->d, NULL, w->t);
  w->d->queue_destroy(w->d, NULL, w->one);
  w->d->queue_destroy(w->d, NULL, w->two);
  w->d->head.destroy(&w->d->head);
}

static aot_buffer_t alloc(const fixture_t *w, uint64_t nbytes) {
  aot_buffer_t b;
  assert_int_equal(w->d->alloc(w->d, NULL, nbytes, &b), AOT_OK);
  assert_int_equal(b.nbytes, nbytes);
  assert_int_equal(b.address % 64, 0);
  return b;
}
static char *pinned(const fixture_t *w, uint64_t nbytes) {
  void *memory;
  assert_int_equal(w->d->host_alloc(w->d, NULL, nbytes, &memory), AOT_OK);
  return memory;
}
static aot_point_t at(const fixture_t *w, uint64_t value) { return (aot_point_t){w->t, value}; }
static aot_status_t wait_for(const fixture_t *w, uint64_t value) {
  return w->d->wait_host(w->d, NULL, at(w, value), UINT64_C(20000000000));
}

static int is_double(const fixture_t *w) {
  aot_device_info_t info = {.struct_size = sizeof info};
  w->d->info(w->d, &info);
  return info.name.size >= 8 && memcmp(info.name.data, "a double", 8) == 0;
}

static void it_tells_what_it_is(void **state) {
  fixture_t w = begin();
  aot_device_info_t info = {.struct_size = sizeof info};
  (void)state;
  assert_int_equal(w.d->info(w.d, &info), AOT_OK);
  assert_memory_equal(info.architecture.data, "sm_", 3);
  assert_true(info.name.size > 0);
  assert_true(info.total_nbytes >= info.free_nbytes && info.free_nbytes > 0);
  assert_int_equal(info.flags & AOT_DEVICE_HOST_VISIBLE, 0);
  end(&w);
}

/* one: write, signal. two: wait, copy, fill, read, signal. The host waits for the last of them alone. */
static void queues_wait_for_each_other(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    fixture_t w = begin();
    const aot_buffer_t b = alloc(&w, 100), c = alloc(&w, 100);
    char *from = pinned(&w, 100), *to = pinned(&w, 100);
    memset(from, 'a' + round, 100);
    /* the wait is on its queue before anything raises it */
    assert_int_equal(w.d->wait(w.d, NULL, w.two, at(&w, 1)), AOT_OK);
    assert_int_equal(w.d->copy(w.d, NULL, w.two, c, b.address), AOT_OK);
    assert_int_equal(w.d->fill(w.d, NULL, w.two, (aot_buffer_t){c.address + 90, 10}, 'z'), AOT_OK);
    assert_int_equal(w.d->read(w.d, NULL, w.two, to, c), AOT_OK);
    assert_int_equal(w.d->signal(w.d, NULL, w.two, at(&w, 2)), AOT_OK);
    assert_int_equal(w.d->value(w.d, w.t), 0);
    assert_int_equal(w.d->write(w.d, NULL, w.one, b, from), AOT_OK);
    assert_int_equal(w.d->signal(w.d, NULL, w.one, at(&w, 1)), AOT_OK);
    assert_int_equal(wait_for(&w, 2), AOT_OK);
    assert_int_equal(to[0], 'a' + round);
    assert_int_equal(to[89], 'a' + round);
    assert_int_equal(to[90], 'z');
    assert_int_equal(w.d->value(w.d, w.t), 2);
    w.d->free(w.d, NULL, b);
    w.d->free(w.d, NULL, c);
    w.d->host_free(w.d, NULL, from, 100);
    w.d->host_free(w.d, NULL, to, 100);
    end(&w);
  }
}

/* ---- points that a queue stands after ---- */

static gc_result_t (*put_wait)(gc_stream_t stream, gc_address_t at, uint64_t value, unsigned flags);
static int n_waits; /* that the driver was requested */

static gc_result_t count_wait(gc_stream_t stream, gc_address_t at, uint64_t value, unsigned flags) {
  n_waits++;
  return put_wait(stream, at, value, flags);
}

/* A queue's own points, and those that it has waited for, are not waited for again; points of others are. */
static void a_queue_waits_for_a_point_once(void **state) {
  (void)state;
  fixture_t w = begin();
  gc_device_t *g = w.d->head.self;
  aot_timeline_t *other[6];
  const struct {
    aot_queue_t *on;
    int n_waits;         /* of these the driver hears */
    uint64_t value;      /* of w.t; 0: the timeline `other` at 1, */
    uint32_t other;      /* which is raised before */
    uint64_t raised_now; /* by queue one, before; 0: none is */
  } rows[] = {
      {w.two, 1, 2, 0, 2}, /* another queue's point */
      {w.two, 0, 2, 0, 0}, /* again */
      {w.two, 0, 1, 0, 0}, /* an earlier one */
      {w.one, 0, 2, 0, 0}, /* its own */
      {w.two, 1, 3, 0, 3}, /* a later one */
      {w.two, 1, 0, 0, 0},
      {w.two, 1, 0, 1, 0},
      {w.two, 1, 0, 2, 0},
      {w.two, 1, 0, 3, 0},
      /* more timelines than it keeps: again, which does no harm */
      {w.two, 1, 0, 4, 0},
      {w.two, 0, 0, 4, 0},
      {w.two, 1, 3, 0, 0},
  };
  put_wait = g->driver.stream_wait_value;
  g->driver.stream_wait_value = count_wait;
  for (int k = 0; k < 6; k++) {
    assert_int_equal(w.d->timeline_create(w.d, NULL, &other[k]), AOT_OK);
    assert_int_equal(w.d->signal_host(w.d, NULL, (aot_point_t){other[k], 1}), AOT_OK);
  }
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const aot_point_t point = rows[k].value ? at(&w, rows[k].value) : (aot_point_t){other[rows[k].other], 1};
    if (rows[k].raised_now) assert_int_equal(w.d->signal(w.d, NULL, w.one, at(&w, rows[k].raised_now)), AOT_OK);
    n_waits = 0;
    assert_int_equal(w.d->wait(w.d, NULL, rows[k].on, point), AOT_OK);
    if (n_waits != rows[k].n_waits) fail_msg("row %zu: %d waits", k, n_waits);
    assert_int_equal(wait_for(&w, rows[k].raised_now), AOT_OK);
  }
  for (int k = 0; k < 6; k++) w.d->timeline_destroy(w.d, NULL, other[k]);
  /* another timeline, where an old one was: a queue has seen nothing of it */
  aot_timeline_t *fresh;
  assert_int_equal(w.d->timeline_create(w.d, NULL, &fresh), AOT_OK);
  n_waits = 0;
  assert_int_equal(w.d->wait(w.d, NULL, w.two, (aot_point_t){fresh, 1}), AOT_OK);
  assert_int_equal(n_waits, 1);
  assert_int_equal(w.d->signal(w.d, NULL, w.one, (aot_point_t){fresh, 1}), AOT_OK);
  assert_int_equal(w.d->signal(w.d, NULL, w.two, at(&w, 4)), AOT_OK);
  assert_int_equal(wait_for(&w, 4), AOT_OK);
  w.d->timeline_destroy(w.d, NULL, fresh);
  end(&w);
}

static void the_host_raises_what_a_queue_waits_for(void **state) {
  fixture_t w = begin();
  const aot_buffer_t b = alloc(&w, 8);
  uint64_t *to = (uint64_t *)(void *)pinned(&w, 8);
  (void)state;
  *to = 0;
  w.d->wait(w.d, NULL, w.one, at(&w, 5));
  w.d->fill(w.d, NULL, w.one, b, 7);
  w.d->read(w.d, NULL, w.one, to, b);
  w.d->signal(w.d, NULL, w.one, at(&w, 6));
  assert_int_equal(w.d->wait_host(w.d, NULL, at(&w, 6), 20000000), AOT_E_UNAVAILABLE);
  assert_non_null(strstr(told, "is at 0 and was not raised to 6"));
  assert_int_equal(*to, 0);
  assert_int_equal(w.d->signal_host(w.d, NULL, at(&w, 5)), AOT_OK);
  assert_int_equal(w.d->signal_host(w.d, NULL, at(&w, 5)), AOT_E_INVALID);
  assert_int_equal(wait_for(&w, 6), AOT_OK);
  assert_int_equal(*to, UINT64_C(0x0707070707070707));
  w.d->free(w.d, NULL, b);
  w.d->host_free(w.d, NULL, to, 8);
  end(&w);
}

/* ---- words that waits look at ---- */

typedef struct words {
  gc_device_t *device;
  uint64_t *wrong; /* in the host's memory, set by a queue */
  int n_looks;
} words_t;

static void look(void *self) {
  words_t *w = self;
  w->n_looks++;
  if (*w->wrong) gc_device_fault(w->device, AOT_E_RANGE, "test.wrong", "a word was set", 0);
  *w->wrong = 0;
}

/* Work that fails sets a word; the host hears of it by its next wait, once, and queues call nothing on the host. */
static void a_wait_tells_what_it_sees_in_words_of_the_host(void **state) {
  (void)state;
  fixture_t w = begin();
  const aot_buffer_t b = alloc(&w, 8);
  words_t words = {w.d->head.self, (uint64_t *)(void *)pinned(&w, 8), 0};
  gc_lookout_t l = {.look = look, .self = &words};
  *words.wrong = 0;
  gc_device_look_at(words.device, &l);
  w.d->fill(w.d, NULL, w.one, b, 1);
  w.d->signal(w.d, NULL, w.one, at(&w, 1));
  assert_int_equal(wait_for(&w, 1), AOT_OK);
  assert_int_equal(words.n_looks, 1);
  for (uint64_t k = 2; k < 4; k++) {
    w.d->read(w.d, NULL, w.one, words.wrong, b);
    w.d->signal(w.d, NULL, w.one, at(&w, k));
    if (k == 2) {
      assert_int_equal(wait_for(&w, 2), AOT_E_RANGE);
      assert_string_equal(told, "a word was set [test.wrong]");
      assert_int_equal(wait_for(&w, 2), AOT_OK);
    }
  }
  assert_int_equal(words.device->driver.stream_synchronize(gc_queue_stream(w.one)), GC_SUCCESS);
  const int n_looks = words.n_looks;
  gc_device_look_away(words.device, &l); /* again, so nothing is lost */
  gc_device_look_away(words.device, &l);
  assert_int_equal(words.n_looks, n_looks + 1);
  assert_int_equal(wait_for(&w, 3), AOT_E_RANGE);
  w.d->free(w.d, NULL, b);
  w.d->host_free(w.d, NULL, words.wrong, 8);
  end(&w);
}

static void memory_that_is_not_there_is_told_in_numbers(void **state) {
  fixture_t w = begin();
  aot_buffer_t b;
  (void)state;
  assert_int_equal(w.d->alloc(w.d, NULL, UINT64_C(1) << 45, &b), AOT_E_EXHAUSTED);
  assert_non_null(strstr(told, "has no memory for 35184372088832 bytes: "));
  assert_non_null(strstr(told, "are free, "));
  const aot_buffer_t nothing = alloc(&w, 0);
  assert_true(nothing.address != 0);
  assert_int_equal(w.d->write(w.d, NULL, w.one, nothing, NULL), AOT_OK);
  assert_int_equal(w.d->free(w.d, NULL, nothing), AOT_OK);
  end(&w);
}

/* ---- memory that other processes may map ---- */

static uint64_t free_nbytes(const fixture_t *w) {
  aot_device_info_t info = {.struct_size = sizeof info};
  w->d->info(w->d, &info);
  return info.free_nbytes;
}

/* Of a device among several ranks: large buffers are such memory, small ones are not. */
static void large_buffers_may_be_mapped_by_others(void **state) {
  fixture_t w = begin();
  gc_device_t *g = w.d->head.self;
  const uint64_t page = g->shared.granularity, before = free_nbytes(&w);
  (void)state;
  if (!page) {
    end(&w);
    skip();
  }
  assert_false(g->is_shared); /* alone */
  g->is_shared = 1;
  const aot_buffer_t large = alloc(&w, page + 1), small = alloc(&w, page - 1);
  char *to = pinned(&w, 1);
  assert_int_equal(atomic_load(&g->own_nbytes), 2 * page);
  assert_true(before - free_nbytes(&w) >= 2 * page);
  w.d->fill(w.d, NULL, w.one, large, 7);
  w.d->read(w.d, NULL, w.one, to, (aot_buffer_t){large.address + page, 1});
  w.d->signal(w.d, NULL, w.one, at(&w, 1));
  assert_int_equal(wait_for(&w, 1), AOT_OK);
  assert_int_equal(*to, 7);
  gc_result_t result = 1;
  assert_int_equal(gc_shared_memory_give_back(&g->shared, small.address, &result), 0);
  assert_int_equal(w.d->free(w.d, NULL, small), AOT_OK);
  assert_int_equal(w.d->free(w.d, NULL, large), AOT_OK);
  assert_int_equal(atomic_load(&g->own_nbytes), 0);
  /* its addresses are without an owner from now on */
  for (int k = 0; k < 4; k++) {
    const aot_buffer_t next = alloc(&w, page);
    assert_true(next.address + page <= large.address || large.address + 2 * page <= next.address);
    assert_int_equal(w.d->free(w.d, NULL, next), AOT_OK);
  }
  aot_buffer_t none;
  assert_int_equal(w.d->alloc(w.d, NULL, UINT64_C(1) << 45, &none), AOT_E_EXHAUSTED);
  assert_non_null(strstr(told, "has no memory for 35184372088832 bytes: "));
  w.d->host_free(w.d, NULL, to, 1);
  end(&w);
}

static gc_result_t no_memory_of_that_kind(gc_memory_t *out, size_t nbytes, const gc_memory_wish_t *wish,
                                          unsigned long long flags) {
  (void)out, (void)nbytes, (void)wish, (void)flags;
  return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}
static void a_driver_without_such_memory_gives_its_usual(void **state) {
  fixture_t w = begin();
  gc_device_t *g = w.d->head.self;
  gc_result_t result;
  (void)state;
  g->is_shared = 1;
  g->driver.mem_create = no_memory_of_that_kind;
  const aot_buffer_t b = alloc(&w, UINT64_C(4) << 20);
  assert_int_equal(gc_shared_memory_give_back(&g->shared, b.address, &result), 0);
  assert_int_equal(w.d->free(w.d, NULL, b), AOT_OK);
  end(&w);
}

static void a_device_that_is_not_there_is_told(void **state) {
  aot_status_t status;
  (void)state;
  assert_null(gc_device_create(&host, NULL, 1000, 600, &status));
  assert_int_equal(status, AOT_E_NOT_FOUND);
  assert_non_null(strstr(told, "there is no device cuda 1000: the driver has "));
}

static void ends_well(pid_t child) {
  int how = 0;
  waitpid(child, &how, 0);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
}

/* In a process of its own: the context is lost for good. */
static void a_lost_device_fails_every_wait_and_frees_what_it_had(void **state) {
  (void)state;
  fixture_t first = begin();
  const int can_fork = is_double(&first); /* a child of a process that has used a GPU cannot */
  end(&first);
  if (!can_fork) skip();
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    fixture_t w = begin();
    const aot_buffer_t b = alloc(&w, 64);
    w.d->fill(w.d, NULL, w.one, (aot_buffer_t){b.address + (UINT64_C(1) << 40), 64}, 0); /* in no buffer */
    w.d->signal(w.d, NULL, w.one, at(&w, 1));
    if (wait_for(&w, 1) != AOT_E_DATA_LOSS ||
        !strstr(told, "lost, its memory contents are gone: CUDA_ERROR_ILLEGAL_ADDRESS"))
      _exit(1);
    if (w.d->fill(w.d, NULL, w.two, b, 0) != AOT_E_DATA_LOSS || w.d->free(w.d, NULL, b) != AOT_OK) _exit(2);
    end(&w);
    _exit(0);
  }
  ends_well(child);
}

/* Who uses memory that was returned loses the device, as on a GPU. */
static void memory_that_is_given_back_is_no_buffer(void **state) {
  (void)state;
  fixture_t first = begin();
  const int can_fork = is_double(&first);
  end(&first);
  if (!can_fork) skip();
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    fixture_t w = begin();
    gc_device_t *g = w.d->head.self;
    g->is_shared = 1;
    const aot_buffer_t b = alloc(&w, g->shared.granularity);
    if (w.d->free(w.d, NULL, b) != AOT_OK) _exit(1);
    w.d->fill(w.d, NULL, w.one, (aot_buffer_t){b.address, 64}, 0);
    w.d->signal(w.d, NULL, w.one, at(&w, 1));
    if (wait_for(&w, 1) != AOT_E_DATA_LOSS) _exit(2);
    end(&w);
    _exit(0);
  }
  ends_well(child);
}

typedef struct worker {
  const fixture_t *w;
  int failed;
} worker_t;

/* Queues of several threads: the context is set on each. */
static void *works(void *self) {
  worker_t *k = self;
  const aot_device_t *d = k->w->d;
  aot_queue_t *q;
  aot_timeline_t *t;
  aot_buffer_t b;
  void *memory;
  k->failed = d->queue_create(d, NULL, AOT_QUEUE_COMPUTE, &q) || d->timeline_create(d, NULL, &t) ||
              d->alloc(d, NULL, 4096, &b) || d->host_alloc(d, NULL, 4096, &memory);
  for (uint64_t i = 1; i <= 50 && !k->failed; i++) {
    unsigned char *bytes = memory;
    k->failed = d->fill(d, NULL, q, b, (uint8_t)i) || d->read(d, NULL, q, memory, b) ||
                d->signal(d, NULL, q, (aot_point_t){t, i}) ||
                d->wait_host(d, NULL, (aot_point_t){t, i}, UINT64_C(20000000000)) || bytes[4095] != i;
  }
  return NULL;
}
static void threads_have_queues_of_their_own(void **state) {
  fixture_t w = begin();
  pthread_t threads[4];
  worker_t workers[4] = {{&w, 0}, {&w, 0}, {&w, 0}, {&w, 0}};
  (void)state;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, works, &workers[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) assert_int_equal(workers[i].failed, 0);
  end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_tells_what_it_is),
      cmocka_unit_test(queues_wait_for_each_other),
      cmocka_unit_test(a_queue_waits_for_a_point_once),
      cmocka_unit_test(the_host_raises_what_a_queue_waits_for),
      cmocka_unit_test(a_wait_tells_what_it_sees_in_words_of_the_host),
      cmocka_unit_test(memory_that_is_not_there_is_told_in_numbers),
      cmocka_unit_test(large_buffers_may_be_mapped_by_others),
      cmocka_unit_test(a_driver_without_such_memory_gives_its_usual),
      cmocka_unit_test(a_device_that_is_not_there_is_told),
      cmocka_unit_test(a_lost_device_fails_every_wait_and_frees_what_it_had),
      cmocka_unit_test(memory_that_is_given_back_is_no_buffer),
      cmocka_unit_test(threads_have_queues_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
