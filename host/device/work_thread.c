#include <device/work_thread.h>

#include <aot/assert.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct item {
  struct item *next;
  aot_host_work_t work;
  void *self;
} item_t;

struct aoth_work_thread {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  item_t *first, **end;
  int is_ending;
};

static item_t *take(aoth_work_thread_t *t) {
  pthread_mutex_lock(&t->lock);
  while (!t->first && !t->is_ending) pthread_cond_wait(&t->changed, &t->lock);
  AOT_ASSERT(t->first || t->end == &t->first);
  item_t *i = t->first;
  if (i && !(t->first = i->next)) t->end = &t->first;
  pthread_mutex_unlock(&t->lock);
  return i;
}

static void *run(void *self) {
  aot_status_t status = AOT_OK;
  for (item_t *i; (i = take(self)) != NULL; free(i)) status = i->work(i->self, status);
  return NULL;
}

aoth_work_thread_t *aoth_work_thread_create(void) {
  aoth_work_thread_t *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->end = &t->first;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  if (pthread_create(&t->thread, NULL, run, t) == 0) return t;
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  free(t);
  return NULL;
}

int aoth_work_thread_put(aoth_work_thread_t *t, aot_host_work_t work, void *self) {
  item_t *i = malloc(sizeof *i);
  if (!i) return 0;
  *i = (item_t){NULL, work, self};
  pthread_mutex_lock(&t->lock);
  AOT_ASSERT(!t->is_ending && !*t->end);
  *t->end = i;
  t->end = &i->next;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->lock);
  return 1;
}

void aoth_work_thread_destroy(aoth_work_thread_t *t) {
  pthread_mutex_lock(&t->lock);
  t->is_ending = 1;
  pthread_cond_signal(&t->changed);
  pthread_mutex_unlock(&t->lock);
  pthread_join(t->thread, NULL);
  AOT_ASSERT(!t->first);
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  free(t);
}
