#include "attempt.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct nl_attempt {
  void (*run)(void *);
  void (*drop)(void *);
  void *arg;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  int has_ended, is_forgotten;
};

static void drop(nl_attempt_t *a) {
  pthread_mutex_destroy(&a->lock);
  pthread_cond_destroy(&a->ended);
  if (a->drop) a->drop(a->arg);
  free(a);
}

static void *go(void *arg) {
  nl_attempt_t *a = arg;
  a->run(a->arg);
  pthread_mutex_lock(&a->lock);
  a->has_ended = 1;
  const int is_forgotten = a->is_forgotten;
  pthread_cond_signal(&a->ended);
  pthread_mutex_unlock(&a->lock);
  if (is_forgotten) drop(a);
  return NULL;
}

nl_attempt_t *nl_attempt_begin(void (*run)(void *), void *arg) {
  nl_attempt_t *a = calloc(1, sizeof *a);
  pthread_t thread;
  if (!a) return NULL;
  *a = (nl_attempt_t){.run = run, .arg = arg};
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->ended, NULL);
  if (pthread_create(&thread, NULL, go, a) == 0) {
    pthread_detach(thread);
    return a;
  }
  drop(a);
  return NULL;
}

int nl_attempt_ends(nl_attempt_t *a, uint64_t within_ns) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (time_t)(within_ns / 1000000000u);
  end.tv_nsec += (long)(within_ns % 1000000000u);
  if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
  pthread_mutex_lock(&a->lock);
  while (!a->has_ended && pthread_cond_timedwait(&a->ended, &a->lock, &end) == 0) continue;
  const int has_ended = a->has_ended;
  pthread_mutex_unlock(&a->lock);
  return has_ended;
}

void nl_attempt_forget(nl_attempt_t *a, void (*drop_arg)(void *)) {
  pthread_mutex_lock(&a->lock);
  a->drop = drop_arg;
  a->is_forgotten = 1;
  const int has_ended = a->has_ended;
  pthread_mutex_unlock(&a->lock);
  if (has_ended) drop(a);
}
