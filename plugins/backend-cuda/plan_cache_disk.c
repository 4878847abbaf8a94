#include "plan_cache_disk.h"

#include "kit/base/sealed_file.h"
#include "gpu_clock.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_THREADS = 8 };

/* ---- on the disk ---- */

void gc_plans_keep_in(gc_cudnn_t *c, const char *folder, const char *device) {
  c->kept_in = folder;
  c->identity = XXH3_64bits_withSeed(device, strlen(device), c->version);
}

static kf_key_t key_of(const gc_cudnn_t *c, const gc_dnn_plan_t *p) {
  return kf_key(p->text, strlen(p->text), c->identity);
}

static int kept_path(const gc_cudnn_t *c, kf_key_t key, char *out, size_t size) {
  if (!c->kept_in) return 0;
  const int n = snprintf(out, size, "%s/cuda-%016llx%016llx.plan", c->kept_in, (unsigned long long)key.high64,
                         (unsigned long long)key.low64);
  return n > 0 && (size_t)n < size;
}

int gc_plans_read(gc_cudnn_t *c, gc_dnn_plan_t *p) {
  char path[4096];
  size_t nbytes = 0;
  const kf_key_t key = key_of(c, p);
  char *words = kept_path(c, key, path, sizeof path) ? kf_read(path, key, &nbytes) : NULL;
  const int is_read = words && gc_dnn_plan_from_words(c, words, nbytes, p);
  free(words);
  c->n_kept += (uint32_t)is_read;
  return is_read;
}

static void write_words(const gc_cudnn_t *c, const gc_dnn_plan_t *p, const char *words, size_t nbytes) {
  char path[4096];
  const kf_key_t key = key_of(c, p);
  if (kept_path(c, key, path, sizeof path)) kf_write(c->kept_in, path, key, words, nbytes);
}

void gc_plans_write(const gc_cudnn_t *c, const gc_dnn_plan_t *p) {
  size_t nbytes = 0;
  char *words = c->kept_in && p->desc ? gc_dnn_plan_words(c, p, &nbytes) : NULL;
  if (words) write_words(c, p, words, nbytes);
  free(words);
}

/* ---- on threads ---- */

typedef struct gc_plans_making making_t;

typedef struct made {
  struct made *next;
  gc_dnn_plan_t *plan; /* that waits */
  char *words;         /* NULL: not made */
  size_t nbytes;
} made_t;

typedef struct worker {
  making_t *all;
  gc_cudnn_t cudnn; /* with its own handle, while it works */
  pthread_t thread;
} worker_t;

struct gc_plans_making {
  const gc_driver_t *driver;
  gc_context_t context;
  double begin_ms; /* when the first was requested */
  worker_t workers[MOST_THREADS];
  uint32_t n_workers;
  made_t *first;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t has_changed;
  made_t *last, *next; /* next: that no thread has taken yet; NULL: none */
  int is_complete;
};

/* NULL: there will be none any more. */
static made_t *take(making_t *m) {
  pthread_mutex_lock(&m->lock);
  while (!m->next && !m->is_complete) pthread_cond_wait(&m->has_changed, &m->lock);
  made_t *made = m->next;
  if (made) m->next = made->next;
  pthread_mutex_unlock(&m->lock);
  return made;
}

static void *make_some(void *self) {
  worker_t *w = self;
  w->all->driver->ctx_set_current(w->all->context);
  if (w->cudnn.create(&w->cudnn.handle)) return NULL;
  for (made_t *made; (made = take(w->all)) != NULL;) {
    gc_dnn_plan_t plan = {.text = made->plan->text};
    gc_dnn_build(&w->cudnn, made->plan->graph, &plan);
    if (!plan.desc) continue;
    made->words = gc_dnn_plan_words(&w->cudnn, &plan, &made->nbytes);
    w->cudnn.desc_destroy(plan.desc);
  }
  w->cudnn.destroy(w->cudnn.handle);
  return NULL;
}

void gc_plans_begin(gc_cudnn_t *c, const gc_driver_t *driver, gc_context_t context) {
  making_t *m = calloc(1, sizeof *m);
  if (!m) return;
  m->driver = driver;
  m->context = context;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->has_changed, NULL);
  c->making = m;
}

int gc_plans_make(gc_cudnn_t *c, gc_dnn_plan_t *p) {
  making_t *m = c->making;
  made_t *made = calloc(1, sizeof *made);
  if (!made) return 0;
  made->plan = p;
  if (!m->first) m->begin_ms = gc_now_ms();
  if (!m->first) m->first = made;
  pthread_mutex_lock(&m->lock);
  if (m->last) m->last->next = made;
  m->last = made;
  if (!m->next) m->next = made;
  pthread_cond_signal(&m->has_changed);
  pthread_mutex_unlock(&m->lock);
  if (m->n_workers == MOST_THREADS) return 1;
  worker_t *w = &m->workers[m->n_workers];
  *w = (worker_t){.all = m, .cudnn = *c};
  m->n_workers += pthread_create(&w->thread, NULL, make_some, w) == 0;
  return 1;
}

/* What a thread could not make is made here, or refused with a reason. Is it there, as it was treated as? */
static int end_one(gc_cudnn_t *c, const made_t *made) {
  gc_dnn_plan_t *p = made->plan;
  const uint64_t taken = p->workspace_nbytes;
  if (made->words && gc_dnn_plan_from_words(c, made->words, made->nbytes, p)) {
    write_words(c, p, made->words, made->nbytes);
  } else {
    gc_dnn_build(c, p->graph, p);
    gc_plans_write(c, p);
  }
  free(p->graph);
  p->graph = NULL;
  c->n_made += p->desc != NULL;
  return p->desc && p->workspace_nbytes == taken;
}

uint32_t gc_plans_end(gc_cudnn_t *c, double *ms) {
  making_t *m = c->making;
  uint32_t n_other = 0;
  if (!m) return 0;
  pthread_mutex_lock(&m->lock);
  m->is_complete = 1;
  pthread_cond_broadcast(&m->has_changed);
  pthread_mutex_unlock(&m->lock);
  for (uint32_t k = 0; k < m->n_workers; k++) pthread_join(m->workers[k].thread, NULL);
  if (m->first) *ms += gc_now_ms() - m->begin_ms;
  for (made_t *made = m->first, *next; made; made = next) {
    next = made->next;
    n_other += !end_one(c, made);
    free(made->words);
    free(made);
  }
  pthread_mutex_destroy(&m->lock);
  pthread_cond_destroy(&m->has_changed);
  free(m);
  c->making = NULL;
  return n_other;
}
