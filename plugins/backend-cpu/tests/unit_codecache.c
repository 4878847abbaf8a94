/* The code cache under races, damage and without a compiler's help. */
#include "naive.h"

#include "codecache.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_PROCESSES = 2, N_THREADS = 4, N_SOURCES = 3, PATH_SIZE = 512 };

static void in_folder(int (*visit)(const char *path, void *self), const char *dir, void *self) {
  char path[PATH_SIZE];
  DIR *d = opendir(dir);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
      visit(path, self);
  closedir(d);
}

static int remove_file(const char *path, void *self) {
  (void)self;
  return unlink(path);
}

static int copy_unit_path(const char *path, void *self) {
  if (strstr(path, "/cpu-")) memcpy(self, path, strlen(path) + 1);
  return 0;
}

static int count_unit(const char *path, void *self) {
  *(int *)self += strstr(path, "/cpu-") != NULL;
  return 0;
}

static int count_work(const char *path, void *self) {
  *(int *)self += strstr(path, "/work-") != NULL;
  return 0;
}

static void make_folder(char *dir) {
  strcpy(dir, "/tmp/codecache-XXXXXX");
  assert_non_null(mkdtemp(dir));
}

static void remove_dir(const char *dir) {
  in_folder(remove_file, dir, NULL);
  assert_int_equal(rmdir(dir), 0);
}

/* 1: the function `answer` of source k was made and answers k. */
static int opens(bc_cache_t *cache, int k, bc_code_stats_t *stats) {
  char source[200];
  void *handle = NULL;
  lw_error_t error;
  int n = snprintf(source, sizeof source, "void answer(long *out) { *out = %d; }\n", k), answered = 0;
  if (bc_code_open(cache, source, (uint64_t)n, &handle, stats, &error) != AOT_OK) return 0;
  lw_loop_fn found = bc_code_find(handle, "answer");
  void (*answer)(long *);
  long out = -1;
  memcpy(&answer, &found, sizeof answer);
  if (found) answer(&out);
  answered = out == k;
  bc_code_close(handle);
  return answered;
}

typedef struct job {
  const char *dir;
  int first, n_right;
} job_t;

/* Every thread of every process makes all sources, the same ones at the same time as others. */
static void *make_all(void *self) {
  job_t *job = self;
  bc_cache_t cache;
  lw_error_t error;
  bc_code_stats_t stats = {0};
  if (bc_cache_init(&cache, job->dir, "cc", &error) != AOT_OK) return NULL;
  for (int k = 0; k < N_SOURCES; k++) job->n_right += opens(&cache, (job->first + k) % N_SOURCES, &stats);
  bc_cache_deinit(&cache);
  return NULL;
}

static int run_threads(const char *dir) {
  pthread_t threads[N_THREADS];
  job_t jobs[N_THREADS];
  int n_right = 0;
  for (int t = 0; t < N_THREADS; t++) {
    jobs[t] = (job_t){dir, t / 2, 0}; /* two and two begin with the same */
    if (pthread_create(&threads[t], NULL, make_all, &jobs[t])) return 0;
  }
  for (int t = 0; t < N_THREADS; t++) {
    pthread_join(threads[t], NULL);
    n_right += jobs[t].n_right;
  }
  return n_right == N_THREADS * N_SOURCES;
}

static void threads_and_processes_may_race(void **state) {
  char dir[PATH_SIZE];
  pid_t children[N_PROCESSES];
  int status, n_units = 0, n_work = 0;
  (void)state;
  make_folder(dir);
  for (int p = 0; p < N_PROCESSES; p++) {
    children[p] = fork();
    assert_true(children[p] >= 0);
    if (children[p] == 0) _exit(run_threads(dir) ? 0 : 1);
  }
  for (int p = 0; p < N_PROCESSES; p++) {
    assert_int_equal(waitpid(children[p], &status, 0), children[p]);
    assert_int_equal(status, 0);
  }
  in_folder(count_unit, dir, &n_units);
  in_folder(count_work, dir, &n_work);
  assert_int_equal(n_units, N_SOURCES);
  assert_int_equal(n_work, 0);
  remove_dir(dir);
}

static void damage(const char *path, long at) {
  int fd = open(path, O_RDWR);
  unsigned char byte;
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 0x10;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static void a_damaged_unit_is_made_again(void **state) {
  char dir[PATH_SIZE], unit[PATH_SIZE] = "";
  bc_cache_t cache;
  lw_error_t error;
  bc_code_stats_t stats = {0};
  struct stat st;
  (void)state;
  make_folder(dir);
  assert_int_equal(bc_cache_init(&cache, dir, "cc", &error), AOT_OK);
  assert_true(opens(&cache, 1, &stats) && opens(&cache, 1, &stats));
  assert_int_equal(stats.n_hits, 1);
  assert_int_equal(stats.n_compiled, 1);
  in_folder(copy_unit_path, dir, unit);
  assert_int_equal(stat(unit, &st), 0);
  const long at[] = {0, 30, (long)st.st_size / 3, (long)st.st_size / 2, (long)st.st_size - 50, (long)st.st_size - 1};
  for (uint32_t k = 0; k < sizeof at / sizeof *at; k++) {
    damage(unit, at[k]);
    assert_true(opens(&cache, 1, &stats));
    assert_int_equal(stats.n_compiled, 2 + k);
  }
  assert_int_equal(truncate(unit, st.st_size / 2), 0);
  assert_true(opens(&cache, 1, &stats));
  assert_int_equal(truncate(unit, 0), 0);
  assert_true(opens(&cache, 1, &stats) && opens(&cache, 1, &stats));
  assert_int_equal(stats.n_hits, 2);
  bc_cache_deinit(&cache);
  remove_dir(dir);
}

/* A whole file under the name of another source. */
static void a_unit_under_another_name_is_made_again(void **state) {
  char dir[PATH_SIZE], one[PATH_SIZE] = "", two[PATH_SIZE] = "";
  bc_cache_t cache;
  lw_error_t error;
  bc_code_stats_t stats = {0};
  (void)state;
  make_folder(dir);
  assert_int_equal(bc_cache_init(&cache, dir, "cc", &error), AOT_OK);
  assert_true(opens(&cache, 1, &stats));
  in_folder(copy_unit_path, dir, one);
  assert_int_equal(unlink(one), 0);
  assert_true(opens(&cache, 2, &stats));
  in_folder(copy_unit_path, dir, two);
  assert_int_equal(rename(two, one), 0);
  assert_true(opens(&cache, 1, &stats));
  assert_int_equal(stats.n_compiled, 3);
  bc_cache_deinit(&cache);
  remove_dir(dir);
}

static void several_units_are_made_at_once_or_none(void **state) {
  enum { MANY = 5 };
  char dir[PATH_SIZE], sources[MANY][200];
  bc_cache_t cache;
  lw_error_t error;
  bc_code_stats_t stats = {0};
  bc_code_unit_t units[MANY] = {0};
  bc_workers_t *workers = bc_workers_create(2);
  (void)state;
  make_folder(dir);
  assert_int_equal(bc_cache_init(&cache, dir, "cc", &error), AOT_OK);
  for (int round = 0; round < 2; round++) { /* compiled, then found */
    for (int k = 0; k < MANY; k++) {
      int n = snprintf(sources[k], sizeof sources[k], "long number_%d(void) { return %d; }\n", k, k);
      units[k] = (bc_code_unit_t){sources[k], (uint64_t)n, NULL};
    }
    assert_int_equal(bc_code_open_all(&cache, workers, units, MANY, &stats, &error), AOT_OK);
    for (int k = 0; k < MANY; k++) {
      char name[32];
      snprintf(name, sizeof name, "number_%d", k);
      assert_non_null(bc_code_find(units[k].handle, name));
      bc_code_close(units[k].handle);
    }
  }
  assert_int_equal(stats.n_compiled, MANY);
  assert_int_equal(stats.n_hits, MANY);
  units[3] = (bc_code_unit_t){"this is no C\n", 13, NULL};
  assert_int_equal(bc_code_open_all(&cache, workers, units, MANY, &stats, &error), AOT_E_UNAVAILABLE);
  assert_string_equal(error.code, "compiler-failed");
  for (int k = 0; k < MANY; k++) assert_null(units[k].handle);
  bc_workers_destroy(workers);
  bc_cache_deinit(&cache);
  remove_dir(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(several_units_are_made_at_once_or_none), cmocka_unit_test(threads_and_processes_may_race),
      cmocka_unit_test(a_damaged_unit_is_made_again), cmocka_unit_test(a_unit_under_another_name_is_made_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
