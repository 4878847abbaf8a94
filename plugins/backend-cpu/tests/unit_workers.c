/* The team of threads: every index is done once, parts are as the sizes say, jobs follow each other. */
#include "naive.h"

#include "workers.h"
#include <stdlib.h>
#include <string.h>

typedef struct job {
  int count[1000];
  int32_t part_of[1000];
} job_t;
static void mark(void *arg, int32_t part, int64_t begin, int64_t end) {
  job_t *j = arg;
  for (int64_t i = begin; i < end; i++) {
    j->count[i]++;
    j->part_of[i] = part;
  }
}

static void every_index_is_done_once(void **state) {
  bc_workers_t *w = bc_workers_create(3);
  (void)state;
  for (int64_t n = 0; n < 1000; n += 37) {
    job_t j;
    memset(&j, 0, sizeof j);
    int32_t parts = bc_parallel(w, n, 1, mark, &j);
    assert_in_range(parts, 1, 3);
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(j.count[i], i < n);
  }
  bc_workers_destroy(w);
}

static void small_jobs_stay_with_the_caller(void **state) {
  bc_workers_t *w = bc_workers_create(2);
  job_t j;
  (void)state;
  assert_int_equal(bc_parallel(w, 100, 60, mark, &j), 1);
  assert_int_equal(bc_parallel(w, 120, 60, mark, &j), 2);
  assert_int_equal(j.part_of[59], 0);
  assert_int_equal(j.part_of[60], 1);
  assert_int_equal(bc_parallel(NULL, 120, 1, mark, &j), 1);
  assert_null(bc_workers_create(1));
  bc_workers_destroy(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_index_is_done_once),
                                     cmocka_unit_test(small_jobs_stay_with_the_caller)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
