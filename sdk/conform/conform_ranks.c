#include <sdk/conform/conform_ranks.h>

#include <aot/inline.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <trainer/trial/child.h>
#include <unistd.h>

#define MOST_NS UINT64_C(20000000000)

void aoth_rank_fail(aoth_rank_t *r, const char *format, ...) {
  va_list args;
  if (r->t.end == AOTH_CONFORM_FAILED) return;
  va_start(args, format);
  r->t.end = AOTH_CONFORM_FAILED;
  vsnprintf(r->t.why, sizeof r->t.why, format, args);
  va_end(args);
}

void aoth_rank_hear(aoth_rank_t *r) { aoth_trial_hear(&r->t, &r->arena, &r->ctx); }

int aoth_rank_went(aoth_rank_t *r, aot_status_t status, const char *doing) {
  char told[400];
  if (status == AOT_OK) return r->t.end == AOTH_CONFORM_PASSED;
  aoth_first_error(aoth_sink_text(r->ctx.sink), told, sizeof told);
  if (*told && (status == AOT_E_UNIMPLEMENTED || status == AOT_E_EXHAUSTED))
    aoth_trial_end(&r->t, AOTH_CONFORM_REFUSED, "%s: %s", doing, told);
  else aoth_rank_fail(r, "%s answers status %d: %s", doing, (int)status, *told ? told : "and does not say why");
  return 0;
}

int aoth_rank_was_refused(aoth_rank_t *r, aot_status_t status, const char *doing) {
  const int is_told = r->ctx.n_diags > 0;
  aoth_rank_hear(r);
  if (status == AOT_OK) aoth_rank_fail(r, "%s is not refused", doing);
  else if (!aoth_is_refusal(status) && status != AOT_E_CONTRACT && status != AOT_E_UNIMPLEMENTED)
    aoth_rank_fail(r, "%s answers status %d, which is none of refusal", doing, (int)status);
  else if (!is_told) aoth_rank_fail(r, "%s is refused without a diagnostic", doing);
  return r->t.end == AOTH_CONFORM_PASSED;
}

/* ---- groups ---- */

int aoth_rank_join(aoth_rank_t *r) {
  char place[96], told[400];
  snprintf(place, sizeof place, "%s.%u", r->place, r->n_joined++);
  const aot_join_t how = {.struct_size = sizeof how,
                          .rank = r->rank,
                          .n_ranks = r->n_ranks,
                          .rendezvous = aot_str(place),
                          .patience_ns = r->patience_ns};
  r->group = NULL;
  r->status = r->f->join(r->c, &r->ctx, &how, &r->group);
  if (r->status == AOT_OK && r->group) return 1;
  aoth_first_error(aoth_sink_text(r->ctx.sink), told, sizeof told);
  if (r->status == AOT_OK) aoth_rank_fail(r, "join answers no group");
  else if (!aoth_is_refusal(r->status) && r->status != AOT_E_UNIMPLEMENTED)
    aoth_rank_fail(r, "join answers status %d: %s", (int)r->status, told);
  else if (!*told) aoth_rank_fail(r, "join is refused with status %d and without a diagnostic", (int)r->status);
  else aoth_trial_end(&r->t, AOTH_CONFORM_REFUSED, "join: %s", told);
  return 0;
}

void aoth_rank_leave(aoth_rank_t *r) {
  r->f->leave(r->c, r->group);
  r->group = NULL;
}

aot_status_t aoth_rank_collect(aoth_rank_t *r, aot_group_t *g, aot_collective_t what, void *to, uint64_t to_nbytes,
                               const void *from, uint64_t from_nbytes) {
  what.struct_size = sizeof what;
  what.to = (aot_buffer_t){(uintptr_t)to, to_nbytes};
  what.from = (aot_buffer_t){(uintptr_t)from, from_nbytes};
  what.what = aot_str("conform");
  return r->f->collect(r->c, &r->ctx, g, &what);
}

aot_status_t aoth_rank_barrier(aoth_rank_t *r, aot_group_t *g) {
  return aoth_rank_collect(r, g, (aot_collective_t){.kind = AOT_COLLECTIVE_BARRIER}, NULL, 0, NULL, 0);
}

int aoth_rank_group_is_well(aoth_rank_t *r, aot_group_t *g) {
  aot_str_t text = {NULL, 0};
  const aot_status_t status = r->f->failure(r->c, g, &text);
  if (status != AOT_OK) aoth_rank_fail(r, "failure answers status %d of a group in which nothing failed", (int)status);
  return status == AOT_OK;
}

int aoth_rank_group_has_failed(aoth_rank_t *r, const char *named) {
  char said[400];
  aot_str_t text = {NULL, 0};
  const aot_status_t status = r->f->failure(r->c, r->group, &text);
  snprintf(said, sizeof said, "%.*s", (int)text.size, text.size ? text.data : "");
  if (status == AOT_OK || !*said) aoth_rank_fail(r, "failure has no sentence of a group that has failed");
  if (named && !strstr(said, named)) aoth_rank_fail(r, "failure does not name '%s': %s", named, said);
  aoth_rank_hear(r);
  return r->t.end == AOTH_CONFORM_PASSED &&
         aoth_rank_was_refused(r, aoth_rank_barrier(r, r->group), "a collective of a group that has failed");
}

/* ---- threads and processes ---- */

typedef struct run_state {
  aoth_rank_t *r;
  aoth_rank_act_t act;
  pthread_t thread;
  pid_t process;
} run_state_t;

static int make_unit(aoth_rank_t *r) {
  if (!aoth_trial_judge(&r->t, aoth_instance_try(r->t.s, r->t.stage, &r->unit))) return 0;
  r->f = &r->unit.table.communicator;
  r->c = r->unit.self;
  aoth_rank_hear(r);
  return 1;
}

static void drop_unit(aoth_rank_t *r) {
  if (r->t.end == AOTH_CONFORM_PASSED) aoth_instance_destroy(r->t.s, r->t.stage, &r->unit);
}

static void *run_in_thread(void *self) {
  const run_state_t *one = self;
  one->act(one->r);
  return NULL;
}

static void run_threads(run_state_t *all, uint32_t n) {
  uint32_t n_made = 0, n_begun = 0;
  while (n_made < n && make_unit(all[n_made].r)) n_made++;
  if (n_made < n) return;
  while (n_begun < n && pthread_create(&all[n_begun].thread, NULL, run_in_thread, &all[n_begun]) == 0) n_begun++;
  if (n_begun < n) aoth_rank_fail(all[n_begun].r, "no thread could be made for it");
  for (uint32_t i = 0; i < n_begun; i++) pthread_join(all[i].thread, NULL);
  for (uint32_t i = 0; i < n; i++) drop_unit(all[i].r);
}

static void run_in_process(const run_state_t *one) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (aoth_contain_after_fork() && make_unit(one->r)) {
    one->act(one->r);
    drop_unit(one->r);
  }
  fflush(NULL);
  _exit(0);
}

static void run_processes(run_state_t *all, uint32_t n) {
  fflush(NULL);
  for (uint32_t i = 0; i < n; i++) {
    all[i].process = fork();
    if (all[i].process == 0) run_in_process(&all[i]);
    if (all[i].process < 0) aoth_rank_fail(all[i].r, "no process could be made for it");
  }
  for (uint32_t i = 0; i < n; i++) {
    int status = 0;
    if (all[i].process < 0 || waitpid(all[i].process, &status, 0) < 0) continue;
    if (WIFSIGNALED(status)) aoth_rank_fail(all[i].r, "its process died of %s", aoth_signal_name(WTERMSIG(status)));
    else if (WEXITSTATUS(status)) aoth_rank_fail(all[i].r, "its process ended with status %d", WEXITSTATUS(status));
  }
}

/* FAILED before REFUSED before the rest. */
static void end_as_worst(aoth_trial_t *t, const aoth_rank_t *ranks, uint32_t n) {
  static const int ends[] = {AOTH_CONFORM_FAILED, AOTH_CONFORM_REFUSED, AOTH_CONFORM_NOT};
  for (uint32_t k = 0; k < 3; k++)
    for (uint32_t i = 0; i < n; i++) {
      if (ranks[i].t.end != ends[k]) continue;
      aoth_trial_end(t, ends[k], "rank %u of %u: %s", i, n, ranks[i].t.why);
      return;
    }
}

const aoth_rank_t *aoth_ranks_run(aoth_trial_t *t, uint32_t n, uint64_t patience_ns, aoth_rank_act_t act,
                                  const void *what) {
  const uint64_t limit =
      (uint64_t)(t->c->line->timeout / 2 * 1e9); /* so that what hangs is reported before the trial is ended */
  const uint32_t refused = t->n_refused_ranks;
  run_state_t all[AOTH_MOST_RANKS];
  aoth_instance_t unit;
  if (refused && n >= refused) {
    aoth_trial_end(t, AOTH_CONFORM_REFUSED, "join of %u ranks was refused before", refused);
    return NULL;
  }
  if (!aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, &unit))) return NULL;
  const int is_concurrent = (unit.table.communicator.head.flags & AOT_COMMUNICATOR_CONCURRENT) != 0;
  aoth_instance_destroy(t->s, t->stage, &unit);
  void *shared = mmap(NULL, n * sizeof(aoth_rank_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "no memory for %u ranks", n);
    return NULL;
  }
  aoth_rank_t *ranks = shared;
  for (uint32_t i = 0; i < n; i++) {
    ranks[i] = (aoth_rank_t){.t = *t, .rank = i, .n_ranks = n, .what = what};
    ranks[i].patience_ns = patience_ns ? patience_ns : limit < MOST_NS ? limit : MOST_NS;
    snprintf(ranks[i].place, sizeof ranks[i].place, "/tmp/aothost-conform-%ld", (long)getpid());
    all[i] = (run_state_t){.r = &ranks[i], .act = act};
  }
  if (is_concurrent) run_threads(all, n);
  else run_processes(all, n);
  end_as_worst(t, ranks, n);
  return ranks;
}

int aoth_ranks_run_worlds(aoth_trial_t *t, aoth_rank_act_t act, const char *about) {
  const uint32_t n = t->number + 1;
  if (n > AOTH_MOST_RANKS) return 0;
  aoth_trial_about(t, "%s by %u rank%s", about, n, n == 1 ? "" : "s");
  aoth_ranks_run(t, n, 0, act, NULL);
  return 1;
}
