/* local_ranks N PIPELINE [--set KEY=VALUE ..] [--on RANK:KEY=VALUE ..]: runs a pipeline as N ranks, which are threads
 * of this process and meet by comm-local. Prints each rank's losses, `rank R step S loss X` in 17 digits, and what it
 * has held and been handed; or, of ranks that fail, their messages. Status 0: all have trained; 2: some have not. */
#include <aot/inline.h>
#include <compiler/run_ranks.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <step/api.h>
#include <string.h>
#include <trainer/train.h>

#define MAX_SETS 64

typedef struct rank {
  uint32_t number, n;
  const char *pipeline;
  const char *sets[MAX_SETS + 4];
  uint32_t n_sets;
  char own_sets[3][64];
  /* out */
  aot_status_t status;
  aoth_sink_t *sink;
  aoth_train_result_t train;
  aot_group_info_t traffic;
  uint64_t leaf_nbytes, arena_nbytes;
} rank_t;

static aot_status_t train(rank_t *r, aoth_session_t *s, aothost_t *h, const aoth_pipeline_t *p) {
  AOT_TRY(aothost_compile(h, AOTHOST_OPTIMIZER | AOTHOST_STEP));
  const aoth_feed_ranks_t ranks = {r->number, r->n, aoth_session_first_draw(s)};
  AOT_TRY(aoth_train(aoth_api_step(h), aoth_session_prog(s), &p->run.train, &ranks, s, NULL, r->sink, NULL, &r->train));
  r->traffic = aoth_session_traffic_of_ranks(s);
  r->leaf_nbytes = aoth_step_sizes(aoth_api_step(h)).nbytes_leaves;
  aot_exe_stats_t stats = {.struct_size = sizeof stats};
  if (aoth_session_exe_stats(s, &stats) == AOT_OK) r->arena_nbytes = stats.arena_nbytes;
  return AOT_OK;
}

static void *run(void *arg) {
  rank_t *r = arg;
  aoth_session_config_t config = {.sink = r->sink, .no_cache = 1};
  aoth_overrides_t overrides = {.sets = r->sets, .n_sets = r->n_sets};
  aoth_pipeline_t *p = NULL;
  aoth_session_t *s = aoth_session_create(&config);
  r->status = s ? aoth_pipeline_load(r->pipeline, &overrides, r->sink, &p) : AOT_E_EXHAUSTED;
  if (r->status == AOT_OK) r->status = aoth_pipeline_check(s, p);
  aothost_t *h = r->status == AOT_OK ? aoth_api_wrap(s, p, NULL) : NULL;
  if (h) r->status = train(r, s, h, p);
  aothost_close(h);
  if (s && r->status != AOT_OK) aoth_session_give_up(s);
  aoth_session_destroy(s);
  aoth_pipeline_destroy(p);
  return NULL;
}

static void prepare(rank_t *r, uint32_t number, uint32_t n, int argc, char **argv) {
  *r = (rank_t){.number = number, .n = n, .pipeline = argv[2], .sink = aoth_sink_create(NULL)};
  snprintf(r->own_sets[0], sizeof r->own_sets[0], "run.ranks=comm-local");
  snprintf(r->own_sets[1], sizeof r->own_sets[1], "run.ranks-with.ranks=%u", n);
  snprintf(r->own_sets[2], sizeof r->own_sets[2], "run.ranks-with.rank=%u", number);
  for (int i = 0; i < 3; i++) r->sets[r->n_sets++] = r->own_sets[i];
  for (int i = 3; i + 1 < argc && r->n_sets < MAX_SETS; i += 2) {
    char *text = argv[i + 1];
    if (strcmp(argv[i], "--on") == 0 && strtoul(text, &text, 10) != number) continue;
    r->sets[r->n_sets++] = text + (*text == ':');
  }
}

static void print(const rank_t *r) {
  if (r->status != AOT_OK) {
    printf("rank %u failed:\n%s", r->number, aoth_sink_text(r->sink));
    return;
  }
  for (uint32_t i = 0; i < r->train.n_log; i++)
    printf("rank %u step %lld loss %.17g\n", r->number, (long long)r->train.log[i].step, r->train.log[i].loss);
  printf("rank %u leaves %llu arena %llu gathered %llu scattered %llu\n", r->number, (unsigned long long)r->leaf_nbytes,
         (unsigned long long)r->arena_nbytes, (unsigned long long)r->traffic.gathered_nbytes,
         (unsigned long long)r->traffic.scattered_nbytes);
}

int main(int argc, char **argv) {
  const uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
  rank_t *ranks = calloc((size_t)n + 1, sizeof *ranks);
  pthread_t *threads = calloc((size_t)n + 1, sizeof *threads);
  int failed = !ranks || !threads || n == 0;
  for (uint32_t r = 0; !failed && r < n; r++) {
    prepare(&ranks[r], r, n, argc, argv);
    failed = pthread_create(&threads[r], NULL, run, &ranks[r]) != 0;
  }
  for (uint32_t r = 0; !failed && r < n; r++) pthread_join(threads[r], NULL);
  for (uint32_t r = 0; ranks && r < n; r++) {
    if (ranks[r].sink) print(&ranks[r]);
    failed |= ranks[r].status != AOT_OK;
    aoth_train_deinit(&ranks[r].train);
    aoth_sink_destroy(ranks[r].sink);
  }
  free(ranks);
  free(threads);
  return failed ? 2 : 0;
}
