#include "lower_bound.h"

#include "lagrangian_bound.h"
#include "kit/base/vector.h"
#include "parametric.h"
#include <stdlib.h>
#include <string.h>

#define CLOSE 1e-6    /* below the target, relative: a case is done */
#define ROUNDING 1e-9 /* of sums of doubles, relative */

typedef struct bound_case {
  double bound;
  uint8_t *decided; /* owned */
  double *rate;     /* owned */
  uint32_t node;    /* that divides it, JG_NONE: none does */
} bound_case_t;

typedef struct tree {
  mc_prices_t prices;
  double target;
  bound_case_t *open;
  uint32_t n_open, capacity;
} tree_t;

/* Costly and large, and the cuts disagree about it. */
static uint32_t find_divider(const tree_t *t) {
  const mc_model_t *m = t->prices.h->m;
  uint32_t best = JG_NONE;
  double most = 0;
  for (uint32_t n = 0; n < m->j->n_nodes; n++) {
    if (!m->j->early[n] || m->j->late[n] || m->is_fixed[n] || t->prices.decided[n] || m->cost[n] == 0) continue;
    double bytes = 0;
    for (uint32_t v = m->j->result_begin[n]; v < m->j->result_begin[n + 1]; v++) bytes += (double)m->j->nbytes[v];
    const double again = t->prices.again[n],
                 score = again * (1 - again) * ((double)m->cost[n] / t->target + bytes / t->prices.budget);
    if (score <= most) continue;
    most = score;
    best = n;
  }
  return best;
}

static int push(tree_t *t, double bound) {
  const size_t n = t->prices.n_moments;
  bound_case_t *open = kit_grow(t->open, &t->capacity, (uint64_t)t->n_open + 1, sizeof *open);
  if (!open) return -2;
  t->open = open;
  bound_case_t *c = &t->open[t->n_open++];
  *c = (bound_case_t){bound, malloc(n), malloc(n * sizeof(double)), find_divider(t)};
  if (!c->decided || !c->rate) return -2;
  memcpy(c->decided, t->prices.decided, n);
  memcpy(c->rate, t->prices.best_rate, n * sizeof(double));
  return 0;
}

static void case_deinit(bound_case_t *c) {
  free(c->decided);
  free(c->rate);
}

static uint32_t weakest(const tree_t *t) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < t->n_open; i++)
    if (t->open[i].bound < t->open[best].bound) best = i;
  return best;
}

/* One half of a case: prices continue from where the whole had them. */
static int try_half(tree_t *t, const bound_case_t *whole, uint8_t decision) {
  static const mc_ascent_t how = {40, 8, 1.0};
  const size_t n = t->prices.n_moments;
  memcpy(t->prices.decided, whole->decided, n);
  memcpy(t->prices.rate, whole->rate, n * sizeof(double));
  t->prices.decided[whole->node] = decision;
  const int status = mc_prices_ascend(&t->prices, t->target, &how);
  if (status != 0) return status == -1 ? 0 : status; /* no plan is such */
  const double bound = t->prices.best > whole->bound ? t->prices.best : whole->bound;
  return bound < t->target * (1 - CLOSE) ? push(t, bound) : 0;
}

static int divide(tree_t *t, uint32_t most_cuts) {
  int status = 0;
  while (status == 0 && t->n_open > 0 && t->prices.n_cuts < most_cuts) {
    const uint32_t i = weakest(t);
    bound_case_t whole = t->open[i];
    if (whole.node == JG_NONE) break;
    t->open[i] = t->open[--t->n_open];
    status = try_half(t, &whole, MC_NOT_AGAIN);
    if (status == 0) status = try_half(t, &whole, MC_AGAIN);
    case_deinit(&whole);
  }
  return status;
}

int mc_lower_bound(const mc_moments_t *h, uint64_t budget, double target, const uint32_t most_cuts[2],
                   double *out_bound) {
  const mc_ascent_t how = {most_cuts[0], 25, 1.5};
  tree_t t = {.target = target};
  *out_bound = 0;
  int status = mc_prices_init(&t.prices, h, budget);
  if (status == 0) status = mc_prices_ascend(&t.prices, target, &how);
  if (status == 0) status = push(&t, t.prices.best);
  if (status == 0 && t.prices.best < target * (1 - CLOSE)) status = divide(&t, t.prices.n_cuts + most_cuts[1]);
  if (status == 0) {
    const double bound = t.n_open && t.open[weakest(&t)].bound < target ? t.open[weakest(&t)].bound : target;
    *out_bound = bound > 0 ? bound * (1 - ROUNDING) : 0;
  }
  for (uint32_t i = 0; i < t.n_open; i++) case_deinit(&t.open[i]);
  free(t.open);
  mc_prices_deinit(&t.prices);
  return status;
}
