#include "kept_plans.h"

#include "common/kept/sealed_file.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 8 };

/* ---- on the disk ---- */

void gc_plans_keep_in(gc_cudnn_t *c, const char *folder, const char *device) {
  c->kept_in = folder;
  c->identity = XXH3_64bits_withSeed(device, strlen(device), c->version);
}

static kf_key_t key_of(const gc_cudnn_t *c, const gc_dnn_plan_t *p) {
  return XXH3_128bits_withSeed(p->text, strlen(p->text), c->identity);
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

typedef struct made {
  gc_dnn_plan_t *plan; /* that waits */
  char *words;         /* NULL: not made */
  size_t nbytes;
} made_t;

typedef struct worker {
  gc_plans_making_t *all;
  gc_cudnn_t cudnn; /* with its own handle, while it works */
  pthread_t thread;
} worker_t;

struct gc_plans_making {
  gc_cudnn_t *c;
  const gc_driver_t *driver;
  gc_context_t context;
  worker_t workers[MOST_THREADS];
  uint32_t n_workers, n;
  _Atomic uint32_t next;
  made_t made[];
};

static void *make_some(void *self) {
  worker_t *w = self;
  gc_plans_making_t *m = w->all;
  m->driver->ctx_set_current(m->context);
  if (w->cudnn.create(&w->cudnn.handle)) return NULL;
  for (uint32_t k; (k = atomic_fetch_add(&m->next, 1)) < m->n;) {
    gc_dnn_plan_t plan = {.text = m->made[k].plan->text};
    gc_dnn_build(&w->cudnn, m->made[k].plan->graph, &plan);
    if (!plan.desc) continue;
    m->made[k].words = gc_dnn_plan_words(&w->cudnn, &plan, &m->made[k].nbytes);
    w->cudnn.desc_destroy(plan.desc);
  }
  w->cudnn.destroy(w->cudnn.handle);
  return NULL;
}

gc_plans_making_t *gc_plans_begin(gc_cudnn_t *c, const gc_driver_t *driver, gc_context_t context) {
  gc_plans_making_t *m = calloc(1, sizeof *m + c->n_waiting * sizeof *m->made);
  if (!m) return NULL;
  m->c = c;
  m->driver = driver;
  m->context = context;
  for (gc_dnn_plan_t *p = c->plans; p; p = p->next)
    if (p->graph) m->made[m->n++].plan = p;
  while (m->n_workers < MOST_THREADS && m->n_workers < m->n) {
    worker_t *w = &m->workers[m->n_workers];
    *w = (worker_t){.all = m, .cudnn = *c};
    if (pthread_create(&w->thread, NULL, make_some, w) != 0) break;
    m->n_workers++;
  }
  return m;
}

/* Is it there, as it was taken to be? */
static int end_one(gc_cudnn_t *c, made_t *made) {
  gc_dnn_plan_t *p = made->plan;
  const uint64_t taken = p->workspace_nbytes;
  if (!made->words || !gc_dnn_plan_from_words(c, made->words, made->nbytes, p)) return 0;
  write_words(c, p, made->words, made->nbytes);
  gc_dnn_stop_waiting(c, p);
  c->n_made++;
  return p->workspace_nbytes == taken;
}

uint32_t gc_plans_end(gc_plans_making_t *m) {
  uint32_t n_other = !m;
  for (uint32_t k = 0; m && k < m->n_workers; k++) pthread_join(m->workers[k].thread, NULL);
  for (uint32_t k = 0; m && k < m->n; k++) {
    n_other += !end_one(m->c, &m->made[k]);
    free(m->made[k].words);
  }
  free(m);
  return n_other;
}
