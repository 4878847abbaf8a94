#include "lagrangian_bound.h"

#include "parametric.h"
#include <stdlib.h>
#include <string.h>

#define SHORTEST 1e-3 /* length of steps that is not worth a cut */
#define CLOSE 1e-6    /* to the target, relative: near enough */

int mc_prices_init(mc_prices_t *d, const mc_moments_t *h, uint64_t budget) {
  const size_t n = (size_t)h->m->j->n_nodes + 1, values = (size_t)h->m->j->n_values + 1;
  *d = (mc_prices_t){.h = h, .budget = (double)budget, .n_moments = n};
  double **by_moment[] = {&d->rate, &d->best_rate, &d->excess, &d->best_excess, &d->sums[0], &d->sums[1]};
  int is_there = 1;
  for (size_t i = 0; i < sizeof by_moment / sizeof *by_moment; i++)
    is_there = (*by_moment[i] = calloc(n + 1, sizeof(double))) && is_there;
  d->price = calloc(values, sizeof *d->price);
  d->runs = calloc(n, 1);
  d->decided = calloc(n, 1);
  d->again = calloc(n, sizeof *d->again);
  d->is_saved = calloc(values, 1);
  d->saved = calloc(values, 4);
  return is_there && d->price && d->runs && d->decided && d->again && d->is_saved && d->saved ? 0 : -2;
}

void mc_prices_deinit(mc_prices_t *d) {
  void *arrays[] = {d->rate,  d->best_rate, d->excess,  d->best_excess, d->sums[0],  d->sums[1],
                    d->price, d->runs,      d->decided, d->again,       d->is_saved, d->saved};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* Returns the sum of all rates. */
static double set_prices(mc_prices_t *d) {
  const mc_model_t *m = d->h->m;
  double *const *sums = d->sums;
  for (int side = 0; side < 2; side++) {
    sums[side][0] = 0;
    for (size_t n = 0; n < d->n_moments; n++)
      sums[side][n + 1] = sums[side][n] + (d->h->side[n] == side ? d->rate[n] : 0);
  }
  const double all = sums[0][d->n_moments] + sums[1][d->n_moments];
  for (uint32_t v = 0; v < m->j->n_values && m->one; v++) {
    const mc_across_t *a = &d->h->across[v];
    if (!a->nbytes) d->price[v] = 0;
    else d->price[v] = (sums[0][d->n_moments] - sums[0][a->from] + sums[1][a->until]) * (double)a->nbytes;
  }
  for (uint32_t v = 0; v < m->j->n_values && !m->one; v++) {
    double rate = m->j->def[v] == JG_NONE && !m->needs_slot[v] ? 0 : all;
    for (int side = 0; side < 2; side++) {
      const mc_span_t *s = &d->h->spans[v][side];
      if (s->first <= s->last) rate -= sums[side][s->last + 1] - sums[side][s->first];
    }
    d->price[v] = (rate > 0 ? rate : 0) * (double)mc_slot_nbytes(m, v) +
                  (sums[0][d->n_moments] - sums[0][d->h->kept_from[v]]) * (double)d->h->kept[v];
  }
  return all;
}

/* Slots of inputs that the backward reads under the cut's plan. */
static double input_slots(mc_prices_t *d) {
  const mc_model_t *m = d->h->m;
  const jg_joint_t *j = m->j;
  double sum = 0;
  memset(d->runs, 0, j->n_nodes);
  memset(d->is_saved, 0, j->n_values);
  for (uint32_t i = 0; i < d->n_saved; i++) d->is_saved[d->saved[i]] = 1;
  for (uint32_t i = 0; i < j->n_gradients; i++) {
    const uint32_t v = j->gradients[i];
    if (v != JG_NONE && j->def[v] != JG_NONE && !d->is_saved[v]) d->runs[j->def[v]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;)
    for (uint32_t k = j->operand_begin[n]; d->runs[n] && k < j->operand_begin[n + 1]; k++) {
      const uint32_t v = j->operands[k];
      if (d->is_saved[v]) continue;
      if (j->def[v] != JG_NONE) d->runs[j->def[v]] = 1;
      else if (m->needs_slot[v]) {
        d->is_saved[v] = 1;
        sum += (double)mc_slot_nbytes(m, v);
      }
    }
  return sum;
}

static void find_excess_of_step(mc_prices_t *d) {
  const mc_model_t *m = d->h->m;
  double across[2] = {0, 0};
  input_slots(d); /* what runs */
  for (int side = 0; side < 2; side++) memset(d->sums[side], 0, (d->n_moments + 1) * sizeof *d->sums[side]);
  for (uint32_t i = 0; i < d->n_saved; i++) {
    const mc_across_t *a = &d->h->across[d->saved[i]];
    d->sums[0][a->from] += (double)a->nbytes;
    across[1] += (double)a->nbytes;
    d->sums[1][a->until] -= (double)a->nbytes;
  }
  for (size_t n = 0; n < d->n_moments; n++) {
    const uint8_t side = d->h->side[n];
    across[0] += d->sums[0][n];
    across[1] += d->sums[1][n];
    if (side != MC_NO_MOMENT) d->excess[n] = (double)m->sure_nbytes + (double)d->h->held[n] + across[side] - d->budget;
  }
}

static void find_excess(mc_prices_t *d) {
  const mc_model_t *m = d->h->m;
  double saved = input_slots(d), held[2] = {0, 0}; /* of what is saved, how much is held anyway */
  for (int side = 0; side < 2; side++) memset(d->sums[side], 0, (d->n_moments + 1) * sizeof *d->sums[side]);
  for (uint32_t i = 0; i < d->n_saved; i++) {
    const uint32_t v = d->saved[i];
    const double nbytes = (double)mc_slot_nbytes(m, v);
    saved += nbytes;
    d->sums[0][d->h->kept_from[v]] -= (double)d->h->kept[v];
    for (int side = 0; side < 2; side++) {
      const mc_span_t *s = &d->h->spans[v][side];
      if (s->first > s->last) continue;
      d->sums[side][s->first] += nbytes;
      d->sums[side][s->last + 1] -= nbytes;
    }
  }
  for (size_t n = 0; n < d->n_moments; n++) {
    const uint8_t side = d->h->side[n];
    held[0] += d->sums[0][n];
    held[1] += d->sums[1][n];
    if (side != MC_NO_MOMENT)
      d->excess[n] = (double)m->sure_nbytes + (double)d->h->held[n] + saved - held[side] - d->budget;
  }
}

/* The bound at the rates at hand, and the excess of the cut's plan. */
static int evaluate(mc_prices_t *d, double *out_value) {
  const mc_model_t *m = d->h->m;
  uint32_t bad;
  double all = set_prices(d);
  int status = mc_parametric(m, d->price, d->decided, d->saved, &d->n_saved, out_value, &bad);
  *out_value += all * ((double)m->sure_nbytes - d->budget);
  for (size_t n = 0; n < d->n_moments; n++) *out_value += d->rate[n] * (double)d->h->held[n];
  if (status == 0) (m->one ? find_excess_of_step : find_excess)(d);
  return status;
}

static void keep_best(mc_prices_t *d, double value) {
  d->best = value;
  memcpy(d->best_rate, d->rate, d->n_moments * sizeof *d->rate);
  memcpy(d->best_excess, d->excess, d->n_moments * sizeof *d->excess);
}

static void return_to_best(mc_prices_t *d) {
  memcpy(d->rate, d->best_rate, d->n_moments * sizeof *d->rate);
  memcpy(d->excess, d->best_excess, d->n_moments * sizeof *d->excess);
}

/* So far that the bound would reach the target if it went on as it begins, times length. 0: there is nowhere to go. */
static int step(mc_prices_t *d, double missing, double length) {
  double square = 0;
  for (size_t n = 0; n < d->n_moments; n++)
    if (d->h->side[n] != MC_NO_MOMENT && (d->excess[n] > 0 || d->rate[n] > 0)) square += d->excess[n] * d->excess[n];
  for (size_t n = 0; n < d->n_moments && square > 0; n++) {
    const double rate = d->rate[n] + length * missing / square * d->excess[n];
    d->rate[n] = d->h->side[n] != MC_NO_MOMENT && rate > 0 ? rate : 0;
  }
  return square > 0;
}

int mc_prices_ascend(mc_prices_t *d, double target, const mc_ascent_t *how) {
  double length = how->length, value = 0;
  int status = 0;
  for (uint32_t i = 0, since = 0; i < how->most_cuts && length > SHORTEST; i++) {
    status = evaluate(d, &value);
    d->n_cuts++;
    if (status != 0) break;
    for (uint32_t n = 0; n < d->h->m->j->n_nodes; n++)
      d->again[n] += (d->runs[n] - d->again[n]) / (i < 16 ? i + 1 : 16);
    if (i == 0 || value > d->best) {
      keep_best(d, value);
      since = 0;
    } else if (++since == how->patience) {
      return_to_best(d);
      value = d->best;
      length *= 0.7;
      since = 0;
    }
    if (target - value <= CLOSE * target || !step(d, target - value, length)) break;
  }
  return status;
}
