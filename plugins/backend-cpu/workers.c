/* Between two jobs that follow each other at once a thread looks for the next without sleeping: waking one takes tens
 * of microseconds, longer where a processor is virtual and has nothing to do meanwhile. It looks for about as long as
 * that takes, so what it wastes is bounded, and only where the team has a processor for each thread. */
#define _GNU_SOURCE
#include "workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct worker {
  bc_workers_t *team;
  int32_t number;
  pthread_t thread;
} worker_t;

enum { LOOKS = 2000 }; /* with a pause each, 20 to 100 us */

struct bc_workers {
  int32_t n;     /* with the caller */
  int32_t looks; /* before sleep */
  worker_t *workers;
  int32_t n_started;
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  /* the job: changed under the lock, numbers are looked at without it, too */
  atomic_uint_fast64_t job; /* its number; a worker that has seen it has no other */
  atomic_int n_left;        /* parts of others that are not done */
  int32_t n_parts, n_asleep;
  int stop;
  int64_t size, chunk;
  bc_part_fn fn;
  void *arg;
};

static void run_part(const bc_workers_t *w, int32_t part) {
  int64_t begin = part * w->chunk, end = begin + w->chunk < w->size ? begin + w->chunk : w->size;
  w->fn(w->arg, part, begin, end);
}

static void pause_a_little(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void *work(void *arg) {
  worker_t *self = arg;
  bc_workers_t *w = self->team;
  uint64_t seen = 0;
  for (;;) {
    for (int32_t k = 0; k < w->looks && atomic_load(&w->job) == seen; k++) pause_a_little();
    pthread_mutex_lock(&w->lock);
    w->n_asleep++;
    while (!w->stop && atomic_load(&w->job) == seen) pthread_cond_wait(&w->wake, &w->lock);
    w->n_asleep--;
    seen = atomic_load(&w->job);
    const int has_part = self->number < w->n_parts, stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    if (stop) return NULL;
    if (!has_part) continue;
    run_part(w, self->number); /* the job stays until n_left is 0 */
    if (atomic_fetch_sub(&w->n_left, 1) > 1) continue;
    pthread_mutex_lock(&w->lock);
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
  }
}

static int32_t processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

bc_workers_t *bc_workers_create(int32_t n) {
  bc_workers_t *w = n > 1 ? calloc(1, sizeof *w) : NULL;
  if (!w) return NULL;
  w->workers = calloc((size_t)n, sizeof *w->workers);
  w->looks = n <= processors() ? LOOKS : 0;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->wake, NULL);
  pthread_cond_init(&w->done, NULL);
  for (int32_t k = 1; w->workers && k < n; k++) {
    w->workers[k] = (worker_t){.team = w, .number = k};
    if (pthread_create(&w->workers[k].thread, NULL, work, &w->workers[k])) break;
    w->n_started = k;
  }
  w->n = w->n_started + 1;
  return w;
}

void bc_workers_destroy(bc_workers_t *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->stop = 1;
  pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->lock);
  for (int32_t k = 1; k <= w->n_started; k++) pthread_join(w->workers[k].thread, NULL);
  pthread_cond_destroy(&w->wake);
  pthread_cond_destroy(&w->done);
  pthread_mutex_destroy(&w->lock);
  free(w->workers);
  free(w);
}

int32_t bc_parallel(bc_workers_t *w, int64_t n, int64_t grain, bc_part_fn fn, void *arg) {
  int64_t most = grain > 0 ? n / grain : n;
  int32_t n_parts = !w || most < 2 ? 1 : most < w->n ? (int32_t)most : w->n;
  if (n_parts == 1) {
    fn(arg, 0, 0, n);
    return 1;
  }
  int64_t chunk = (n + n_parts - 1) / n_parts;
  n_parts = (int32_t)((n + chunk - 1) / chunk); /* rounding up may leave the last parts empty */
  pthread_mutex_lock(&w->lock);
  w->fn = fn;
  w->arg = arg;
  w->size = n;
  w->chunk = chunk;
  w->n_parts = n_parts;
  atomic_store(&w->n_left, n_parts - 1);
  atomic_fetch_add(&w->job, 1);
  if (w->n_asleep) pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->lock);
  run_part(w, 0);
  for (int32_t k = 0; k < w->looks && atomic_load(&w->n_left) > 0; k++) pause_a_little();
  pthread_mutex_lock(&w->lock);
  while (atomic_load(&w->n_left) > 0) pthread_cond_wait(&w->done, &w->lock);
  pthread_mutex_unlock(&w->lock);
  return n_parts;
}
