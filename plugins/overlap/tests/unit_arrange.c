/* Arrangements of random steps: what must hold of each, however good it is; and small ones by hand. */
#include "arrange.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_NODES = 60, N_JOBS = 12 };

typedef struct step {
  double ns[N_NODES];
  uint32_t operand_begin[N_NODES + 1], operands[4 * N_NODES];
  ov_job_t jobs[N_JOBS];
  ov_problem_t p;
} step_t;

static uint32_t draw(uint64_t *state, uint32_t below) { return (uint32_t)(kit_splitmix64(state) % below); }

static int waits_of(const step_t *s, uint32_t node) {
  for (uint32_t j = 0; j < s->p.n_jobs; j++)
    if (s->jobs[j].wait == node) return (int)j;
  return -1;
}

/* So many nodes that take no time yet, and jobs; a link of a byte a nanosecond. */
static void begin(step_t *s, uint32_t n_nodes, uint32_t n_jobs, double margin) {
  memset(s, 0, sizeof *s);
  s->p = (ov_problem_t){.n_nodes = n_nodes,
                        .ns = s->ns,
                        .operand_begin = s->operand_begin,
                        .operands = s->operands,
                        .jobs = s->jobs,
                        .n_jobs = n_jobs,
                        .margin = margin,
                        .link = ov_link_of(0, 1)};
}

/* Jobs a node each and a wait after; then nodes that may go later, and read what was reduced or each other. */
static void make(step_t *s, uint64_t seed) {
  begin(s, N_NODES, 0, 1 + draw(&seed, 4));
  s->p.bucket = draw(&seed, 200);
  s->p.ahead = draw(&seed, 300);
  s->p.link = ov_link_of(draw(&seed, 20), 1 + draw(&seed, 4));
  for (uint32_t i = 0; i < N_NODES; i++) s->ns[i] = draw(&seed, 50);
  uint32_t at = draw(&seed, 3);
  for (; s->p.n_jobs < N_JOBS && at + 2 < N_NODES; at += 2 + draw(&seed, 4)) {
    const int kind = (int)draw(&seed, 3);
    s->ns[at] = s->ns[at + 1] = 0;
    s->jobs[s->p.n_jobs++] = (ov_job_t){.kind = kind,
                                        .group = draw(&seed, 2),
                                        .at = at,
                                        .ready = kind == OV_GATHER ? 0 : at,
                                        .wait = at + 1,
                                        .need = kind == OV_GATHER ? at + 1 : N_NODES,
                                        .nbytes = 1 + draw(&seed, 100),
                                        .n_ranks = 2 + draw(&seed, 6)};
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < N_NODES; i++) {
    s->operand_begin[i] = n;
    if (waits_of(s, i) >= 0 || (i + 1 < N_NODES && waits_of(s, i + 1) >= 0) || draw(&seed, 3)) continue;
    for (uint32_t k = 0; k < 2 && i; k++) {
      const uint32_t from = draw(&seed, i);
      const int job = waits_of(s, from);
      if ((job >= 0 && s->jobs[job].kind != OV_GATHER) || s->operand_begin[from + 1] > s->operand_begin[from])
        s->operands[n++] = from;
    }
    s->operand_begin[i + 1] = n;
  }
  s->operand_begin[N_NODES] = n;
}

static void check(const step_t *s, const ov_plan_t *plan, uint64_t seed) {
  uint32_t n_listed = 0, last_wait = 0;
  for (uint32_t b = 0; b < plan->n_buckets; b++) {
    const ov_bucket_t *k = &plan->buckets[b];
    const ov_job_t *first = &s->jobs[plan->list[k->first]];
    uint64_t nbytes = 0;
    n_listed += k->n;
    if (b && k->start < plan->buckets[b - 1].start)
      fail_msg("seed %llu: buckets are out of order", (unsigned long long)seed);
    for (uint32_t i = 0; i < k->n; i++) {
      const ov_job_t *j = &s->jobs[plan->list[k->first + i]];
      nbytes += j->nbytes;
      if (j->in != b || j->kind != first->kind || j->group != first->group || k->start < j->ready || k->start > j->need)
        fail_msg("seed %llu: job %u is not right in its bucket", (unsigned long long)seed, plan->list[k->first + i]);
    }
    if (k->n > 1 && nbytes > s->p.bucket) fail_msg("seed %llu: a bucket is too large", (unsigned long long)seed);
    if (first->kind == OV_GATHER) continue;
    if (k->wait < k->start || k->wait < last_wait || k->wait > k->need)
      fail_msg("seed %llu: bucket %u is waited for at %u", (unsigned long long)seed, b, k->wait);
    last_wait = k->wait;
  }
  if (n_listed != s->p.n_jobs) fail_msg("seed %llu: jobs are lost", (unsigned long long)seed);
  for (uint32_t i = 0; i < N_NODES; i++) /* nothing reads what is yet to come */
    for (uint32_t o = s->operand_begin[i]; o < s->operand_begin[i + 1]; o++) {
      const int job = waits_of(s, s->operands[o]);
      const uint32_t place = job >= 0 ? s->jobs[job].in + 1 : plan->behind[s->operands[o]];
      if (place && plan->behind[i] < place && plan->buckets[place - 1].wait > i)
        fail_msg("seed %llu: node %u reads too early", (unsigned long long)seed, i);
    }
  if (plan->step_ns + 1e-6 < plan->compute_ns || plan->step_ns > plan->compute_ns + plan->collective_ns + 1e-6)
    fail_msg("seed %llu: a step of %g with %g of nodes", (unsigned long long)seed, plan->step_ns, plan->compute_ns);
}

static void random_steps(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 4000; seed++) {
    static step_t s;
    ov_plan_t plan;
    make(&s, seed);
    assert_int_equal(ov_arrange(&s.p, &plan), 0);
    check(&s, &plan, seed);
    ov_plan_deinit(&plan);
  }
}

/* Four layers of 100 ns whose gathers take 50: each begins while the layer before is computed, and only the first is
 * waited for. Of two that may lie about at once, no third is begun. If they may take eight times as long, each begins
 * as soon as that lets it. */
static void gathers_hide_behind_layers(void **state) {
  (void)state;
  static step_t s;
  ov_plan_t plan;
  begin(&s, 12, 4, 1);
  s.p.ahead = 200;
  for (uint32_t l = 0; l < 4; l++) {
    s.ns[3 * l + 2] = 100;
    s.jobs[l] =
        (ov_job_t){.kind = OV_GATHER, .at = 3 * l, .wait = 3 * l + 1, .need = 3 * l + 1, .nbytes = 100, .n_ranks = 2};
  }
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_int_equal(plan.n_buckets, 4);
  assert_true(plan.step_ns == 450);
  for (uint32_t b = 2; b < 4; b++) assert_true(plan.buckets[b].start >= 3 * b - 3);
  ov_plan_deinit(&plan);
  s.p.margin = 8;
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_true(plan.step_ns == 450);
  for (uint32_t b = 0; b < 4; b++) assert_int_equal(plan.buckets[b].start, b < 2 ? 0 : 3 * (b - 2) + 1);
  ov_plan_deinit(&plan);
  for (uint32_t l = 0; l < 4; l++) s.jobs[l].n_ranks = 1; /* nothing to do */
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_true(plan.step_ns == 400);
  ov_plan_deinit(&plan);
}

/* Weights and norms by turns, of two dtypes: a bucket for each, not one for every parameter. What is read first, with
 * no time in front of it, comes alone. */
static void groups_fill_buckets_of_their_own(void **state) {
  (void)state;
  static step_t s;
  ov_plan_t plan;
  begin(&s, 24, 8, 1);
  s.p.bucket = 300;
  s.p.ahead = 1000;
  for (uint32_t k = 0; k < 8; k++) {
    s.ns[3 * k + 2] = 1000;
    s.jobs[k] = (ov_job_t){.kind = OV_GATHER,
                           .group = k % 2,
                           .at = 3 * k,
                           .wait = 3 * k + 1,
                           .need = 3 * k + 1,
                           .nbytes = k % 2 ? 1 : 100,
                           .n_ranks = 2};
  }
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_int_equal(plan.n_buckets, 3); /* 100 and 300 bytes of weights, 4 of norms */
  assert_int_equal(s.jobs[1].in, s.jobs[7].in);
  assert_int_equal(s.jobs[2].in, s.jobs[6].in);
  assert_true(s.jobs[0].in != s.jobs[2].in && s.jobs[0].in != s.jobs[1].in && s.jobs[2].in != s.jobs[1].in);
  ov_plan_deinit(&plan);
}

/* Gradients of two layers, and an optimizer's node after each: that runs when its gradient has come, not before,
 * though collectives take some times what they are said to. */
static void updates_run_as_gradients_arrive(void **state) {
  (void)state;
  static step_t s;
  ov_plan_t plan;
  begin(&s, 8, 2, 4);
  for (uint32_t l = 0; l < 2; l++) { /* layer, scatter, wait, update */
    s.ns[4 * l] = 400;
    s.ns[4 * l + 3] = 10;
    s.jobs[l] = (ov_job_t){.kind = OV_SCATTER,
                           .at = 4 * l + 1,
                           .ready = 4 * l + 1,
                           .wait = 4 * l + 2,
                           .need = 8,
                           .nbytes = 100,
                           .n_ranks = 2};
    s.operands[l] = 4 * l + 2;
    s.operand_begin[4 * l + 4] = l + 1;
    for (uint32_t i = 4 * l + 5; i <= 8; i++) s.operand_begin[i] = l + 1;
  }
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_int_equal(plan.behind[3], 1);
  assert_int_equal(plan.buckets[0].wait, 5); /* the second layer has taken longer */
  assert_int_equal(plan.behind[7], 2);
  assert_true(plan.step_ns == 400 + 400 + 10 + 40 + 10);
  ov_plan_deinit(&plan);
  s.ns[0] = s.ns[4] = 100; /* four times 50 is more than the second layer takes */
  assert_int_equal(ov_arrange(&s.p, &plan), 0);
  assert_int_equal(plan.buckets[0].wait, 8);
  assert_true(plan.step_ns == 100 + 100 + 10 + 40 + 10);
  ov_plan_deinit(&plan);
}

/* Messages by size and hop, and what a ring of them takes. */
static void links_are_read(void **state) {
  (void)state;
  static const char text[] = "8: 0=6 1000=8 3000=16; 64: 0=20 1000=40";
  static const char *const wrong[] = {"",       "8 0=6", "8: ", "8: 0=6 0=7", "8: 0=6 10=5", "8: 0=6; 8: 0=7",
                                      "0: 0=6", "8: x=6"};
  ov_link_t link;
  assert_null(ov_link_read(text, strlen(text), &link));
  assert_true(ov_collective_ns(&link, OV_GATHER, 1, 1, 4000) == 0);
  assert_true(ov_collective_ns(&link, OV_GATHER, 2, 2, 1000) == 7000); /* 500 bytes, half the way from 6 to 8 us */
  assert_true(ov_collective_ns(&link, OV_REDUCE, 2, 2, 1000) == 14000);
  assert_true(ov_collective_ns(&link, OV_SCATTER, 2, 8, 10000) == 24000);      /* after the last size, at its rate */
  assert_true(ov_collective_ns(&link, OV_GATHER, 2, 16, 2000) == 40000);       /* two ranks of two machines */
  assert_true(ov_collective_ns(&link, OV_GATHER, 101, 101, 0) == 100 * 20000); /* more than any row: the last */
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (!ov_link_read(wrong[i], strlen(wrong[i]), &link)) fail_msg("'%s' was read", wrong[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_steps),
      cmocka_unit_test(gathers_hide_behind_layers),
      cmocka_unit_test(groups_fill_buckets_of_their_own),
      cmocka_unit_test(updates_run_as_gradients_arrive),
      cmocka_unit_test(links_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
