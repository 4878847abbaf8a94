/* Handles are independent: several threads open, compile, train and close at once, with calls in flight and memory of
 * their own bound, and another thread deletes what was exported. Each gets what it would have got alone.
 * thread_program PIPELINE MODEL, for a model with inputs f32[8, 16] and i64[8] and a loss. Run under the thread
 * sanitizer, too. */
#include <aothost_dlpack.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define N_THREADS 6
#define N_ROUNDS 2
#define N_STEPS 3

/* What a thread does, and what came of it. */
typedef struct job {
  const char *pipeline, *model, *sets[3];
  uint32_t flags;
  int failed; /* the line that failed; 0: none */
  float losses[N_STEPS], gradients[N_STEPS];
  DLManagedTensorVersioned *exported; /* a parameter, for the first thread */
} job_t;

static const char *const backends[] = {"vars.backend=backend-ref", "vars.backend=backend-cpu"};
static const char *const partitions[] = {"vars.partition=partition-default", "vars.partition=partition-mincut"};

static void make_inputs(aot_tensor_t in[2]) {
  static const int64_t x_sizes[2] = {8, 16}, y_sizes[1] = {8};
  static const int64_t y_data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const float x_data[8 * 16] = {0.5f, -1.0f, 2.0f, 0.25f}; /* shared by all: inputs are only read */
  memset(in, 0, 2 * sizeof *in);
  in[0] = (aot_tensor_t){
      .data = (void *)(uintptr_t)x_data, .nbytes = sizeof x_data, .dtype = AOT_F32, .rank = 2, .sizes = x_sizes};
  in[1] = (aot_tensor_t){
      .data = (void *)(uintptr_t)y_data, .nbytes = sizeof y_data, .dtype = AOT_I64, .rank = 1, .sizes = y_sizes};
}

static void on_message(void *self, int32_t severity, const char *text) {
  (void)severity;
  fprintf(stderr, "%s, %s: %s", ((job_t *)self)->sets[0], ((job_t *)self)->sets[1], text);
}

#define NEED(x)                                                                                                        \
  if (!(x)) return __LINE__

static int number_of(aothost_call_t *c, const char *key, float *out) {
  aot_tensor_t t;
  if (aothost_call_get(c, key, &t) != AOT_OK || t.dtype != AOT_F32) return 0;
  memcpy(out, (const float *)t.data + t.offset, sizeof *out);
  return 1;
}

/* Steps of two forwards in flight, whose backwards come in the other order. */
static int train(job_t *j, aothost_t *h) {
  aot_tensor_t in[2];
  aothost_call_t *a, *b;
  make_inputs(in);
  NEED(aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  NEED(aothost_call_open(h, &a) == AOT_OK && aothost_call_open(h, &b) == AOT_OK);
  float loss[16] __attribute__((aligned(64)));
  const aot_tensor_t output = {.data = loss, .nbytes = sizeof *loss, .dtype = AOT_F32};
  NEED(aothost_call_bind(a, "output.0", &output) == AOT_OK);
  for (int step = 0; step < N_STEPS; step++) {
    NEED(aothost_call_forward(a, in, 2, 0) == AOT_OK && aothost_call_forward(b, in, 2, 0) == AOT_OK);
    NEED(aothost_call_backward(b, NULL, 0) == AOT_OK && aothost_call_backward(a, NULL, 0) == AOT_OK);
    NEED(number_of(b, "output.0", &j->losses[step]) && number_of(b, "grad.m.4.bias", &j->gradients[step]));
    NEED(aothost_call_update(step % 2 ? a : b, 0.01) == AOT_OK);
  }
  NEED(loss[0] > 0);
  aothost_call_close(a);
  if (j->exported) j->exported->deleter(j->exported);
  NEED(aothost_to_dlpack(h, "param.m.0.weight", &j->exported) == AOT_OK);
  return 0;
}

static void *run(void *arg) {
  job_t *j = arg;
  aothost_t *h;
  aothost_config_t config;
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.model = j->model;
  config.sets = j->sets;
  config.n_sets = 3;
  config.flags = j->flags;
  config.message = on_message;
  config.message_self = j;
  for (int round = 0; round < N_ROUNDS && !j->failed; round++) {
    j->failed = aothost_open(j->pipeline, &config, &h) == AOT_OK ? train(j, h) : __LINE__;
    aothost_close(h);
  }
  return NULL;
}

static job_t make_job(char **argv, int i) {
  job_t j = {.pipeline = argv[1], .model = argv[2]};
  j.sets[0] = backends[i % 2];
  j.sets[1] = partitions[i / 2 % 2];
  j.sets[2] = "run.train.steps=1";
  j.flags = (i % 3 ? AOTHOST_NO_CACHE : 0) | (i % 2 ? AOTHOST_CONTAIN : 0);
  return j;
}

int main(int argc, char **argv) {
  job_t jobs[N_THREADS], alone;
  pthread_t threads[N_THREADS];
  int n_failed = 0;
  if (argc < 3) return 2;
  for (int i = 0; i < N_THREADS; i++) {
    jobs[i] = make_job(argv, i);
    if (pthread_create(&threads[i], NULL, run, &jobs[i]) != 0) return 2;
  }
  for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < N_THREADS; i++) {
    alone = make_job(argv, i);
    run(&alone);
    const float *mine = jobs[i].exported ? jobs[i].exported->dl_tensor.data : NULL;
    const float *others = alone.exported ? alone.exported->dl_tensor.data : NULL;
    const int same_weight = mine && others && memcmp(mine, others, 64) == 0;
    if (mine) jobs[i].exported->deleter(jobs[i].exported);
    if (others) alone.exported->deleter(alone.exported);
    const int same = memcmp(alone.losses, jobs[i].losses, sizeof alone.losses) == 0 &&
                     memcmp(alone.gradients, jobs[i].gradients, sizeof alone.gradients) == 0 && same_weight;
    if (!alone.failed && !jobs[i].failed && same) continue;
    n_failed++;
    fprintf(stderr, "thread %d: line %d, alone line %d, loss %g instead of %g\n", i, jobs[i].failed, alone.failed,
            (double)jobs[i].losses[N_STEPS - 1], (double)alone.losses[N_STEPS - 1]);
  }
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
