#include "pareto_plans.h"

#include "kit/base/vector.h"
#include "kit/partition/save_all.h"
#include "kit/graph/split.h"
#include "isomorphic_blocks.h"
#include "lower_bound.h"
#include "parametric.h"
#include "recompute_cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define END UINT32_MAX
enum { MAX_RATES = 24, RATES_A_COUNT = 6, MAX_SEGMENTS = 64, PARTS = 8, LARGE = 20000, STEPS = 1000000 };
/* Of the bound: nodes * cuts, and how many cuts; the same for cases, and up to how many nodes there are any. */
enum { CUTS = 500000, MOST_CUTS = 600, LEAST_CUTS = 24, CUTS_OF_CASES = 4000000, CASES_UP_TO = 5000 };

/* ---- one plan from its spec ---- */

typedef struct maker {
  const mc_candidates_t *c;
  double *price;
  uint8_t *is_boundary;
  uint32_t *saved;
  uint32_t n_saved, bad;
} maker_t;

static int maker_init(maker_t *k, const mc_candidates_t *c) {
  size_t n = (size_t)c->m->j->n_values + 1;
  *k = (maker_t){.c = c, .price = calloc(n, sizeof *k->price), .is_boundary = calloc(n, 1), .saved = calloc(n, 4)};
  return k->price && k->is_boundary && k->saved ? 0 : -2;
}

static void maker_deinit(maker_t *k) {
  free(k->price);
  free(k->is_boundary);
  free(k->saved);
}

static void set_prices(maker_t *k, const mc_spec_t *spec) {
  const mc_model_t *m = k->c->m;
  uint32_t boundaries[MAX_SEGMENTS];
  memset(k->is_boundary, 0, (size_t)m->j->n_values + 1);
  for (int side = 0; side < 2; side++) {
    uint32_t n = spec->segments[side] > 1 ? mc_segments_place(&k->c->segments, spec->segments[side], boundaries) : 0;
    mc_segments_mark(&k->c->segments, m, boundaries, n, side ? spec->at : 0, side ? END : spec->at, k->is_boundary);
  }
  for (uint32_t v = 0; v < m->j->n_values; v++) {
    double rate = spec->rate[k->c->segments.position[v] != JG_NONE && k->c->segments.position[v] < spec->at ? 0 : 1];
    int is_free = m->j->def[v] == JG_NONE ? !m->needs_slot[v] : k->is_boundary[v];
    k->price[v] = is_free ? 0 : rate * (double)mc_slot_nbytes(m, v);
  }
}

static int make(maker_t *k, const mc_spec_t *spec, mc_numbers_t *out_numbers, double *out_value) {
  set_prices(k, spec);
  int status = mc_parametric(k->c->m, k->price, NULL, k->saved, &k->n_saved, out_value, &k->bad);
  if (status == 0 && out_numbers) status = mc_plan_measure(k->c->m, k->saved, k->n_saved, out_numbers);
  return status;
}

/* ---- the list ---- */

static int add(mc_candidates_t *c, const maker_t *k, const mc_spec_t *spec, const mc_numbers_t *numbers) {
  uint32_t at = 0, end, *saved;
  if (numbers->bad != JG_NONE) return 0;
  while (at < c->n && (c->list[at].numbers.cost < numbers->cost)) at++;
  if (at > 0 && c->list[at - 1].numbers.peak <= numbers->peak) return 0;
  if (at < c->n && c->list[at].numbers.cost == numbers->cost && c->list[at].numbers.peak <= numbers->peak) return 0;
  for (end = at; end < c->n && c->list[end].numbers.peak >= numbers->peak; end++) {}
  void *grown = kit_grow(c->list, &c->capacity, (uint64_t)c->n + 1, sizeof *c->list);
  if (!grown) return -2;
  c->list = grown;
  saved = malloc(((size_t)k->n_saved + 1) * sizeof *saved);
  if (!saved) return -2;
  memcpy(saved, k->saved, (size_t)k->n_saved * sizeof *saved);
  for (uint32_t i = at; i < end; i++) free(c->list[i].saved);
  memmove(c->list + at + 1, c->list + end, (c->n - end) * sizeof *c->list);
  c->n = c->n - (end - at) + 1;
  c->list[at] = (mc_candidate_t){*spec, *numbers, saved, k->n_saved, 0};
  return 0;
}

static int attempt(mc_candidates_t *c, maker_t *k, const mc_spec_t *spec, mc_numbers_t *out_numbers,
                   double *out_value) {
  int status = make(k, spec, out_numbers, out_value);
  c->n_tried++;
  return status == 0 ? add(c, k, spec, out_numbers) : status;
}

static mc_spec_t plain_spec(uint32_t segments, double rate) {
  return (mc_spec_t){{segments, segments}, {rate, rate}, END};
}

/* ---- rates: corners of the curve of least cost ---- */

typedef struct corner {
  double rate, cost, saved;
} corner_t;

static int try_rate(mc_candidates_t *c, maker_t *k, double rate, corner_t *out) {
  mc_spec_t spec = plain_spec(1, rate);
  mc_numbers_t numbers;
  double value;
  int status = attempt(c, k, &spec, &numbers, &value);
  if (status != 0) return status;
  *out = (corner_t){rate, (double)numbers.cost, (double)numbers.saved};
  c->rates[c->n_rates++] = rate;
  return 0;
}

static void rates_at_ends(const mc_model_t *m, double *out_low, double *out_high) {
  double cost = 1, bytes = 1;
  for (uint32_t n = 0; n < m->j->n_nodes; n++)
    if (m->j->early[n]) cost += (double)m->cost[n];
  for (uint32_t v = m->j->n_inputs; v < m->j->n_values; v++)
    if (jg_is_forward_value(m->j, v)) bytes += (double)m->j->nbytes[v];
  *out_high = cost;
  *out_low =
      1e-3 * (double)MC_PS_PER_NODE / bytes; /* all bytes together weigh less than any node that costs something */
}

/* Between two neighbouring corners, the rate at which both are equally good: if something is better there, it is a
 * corner, too. */
static int find_corners(mc_candidates_t *c, maker_t *k) {
  corner_t corner[MAX_RATES + 2];
  uint8_t is_edge[MAX_RATES + 2] = {0}; /* nothing is between corner i and the next */
  uint32_t n = 2;
  double low, high;
  rates_at_ends(c->m, &low, &high);
  int status = try_rate(c, k, low, &corner[0]);
  if (status == 0) status = try_rate(c, k, high, &corner[1]);
  while (status == 0 && c->n_rates < MAX_RATES) {
    uint32_t widest = n;
    double most = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
      if (!is_edge[i] && corner[i].saved - corner[i + 1].saved > most) {
        most = corner[i].saved - corner[i + 1].saved;
        widest = i;
      }
    if (widest == n) break;
    corner_t a = corner[widest], b = corner[widest + 1], middle;
    double rate = (b.cost - a.cost) / (a.saved - b.saved);
    if (!(rate > low)) {
      is_edge[widest] = 1;
      continue;
    }
    status = try_rate(c, k, rate, &middle);
    if (status != 0) break;
    if (middle.saved >= a.saved || middle.saved <= b.saved) {
      is_edge[widest] = 1;
      continue;
    }
    memmove(corner + widest + 2, corner + widest + 1, (n - widest - 1) * sizeof *corner);
    memmove(is_edge + widest + 1, is_edge + widest, n - widest);
    corner[widest + 1] = middle;
    n++;
  }
  return status;
}

static int by_rate(const void *pa, const void *pb) {
  double a = *(const double *)pa, b = *(const double *)pb;
  return (a > b) - (a < b);
}

/* ---- segments ---- */

static int try_segments(mc_candidates_t *c, maker_t *k) {
  static const uint32_t counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  uint32_t boundaries[MAX_SEGMENTS], rates = c->n_rates < RATES_A_COUNT ? c->n_rates : RATES_A_COUNT;
  mc_numbers_t numbers;
  double value;
  int status = 0;
  if (c->m->j->n_nodes > LARGE) rates = rates < 2 ? rates : 2;
  for (size_t i = 0; i < sizeof counts / sizeof *counts && status == 0; i++) {
    if (mc_segments_place(&c->segments, counts[i], boundaries) + 1 < counts[i]) break;
    for (uint32_t r = 0; r < rates && status == 0; r++) {
      uint32_t which = c->n_rates - 1 - r * (c->n_rates - 1) / (rates > 1 ? rates : 1);
      mc_spec_t spec = plain_spec(counts[i], c->rates[which]);
      status = attempt(c, k, &spec, &numbers, &value);
    }
  }
  return status;
}

/* ---- mixtures ---- */

/* The widest step of the list that was not searched: the left one of the two. c->n: none is wide. */
static uint32_t widest_step(const mc_candidates_t *c, const uint64_t *done, uint32_t n_done) {
  uint64_t most = c->list[0].numbers.peak / 100;
  uint32_t best = c->n;
  for (uint32_t i = 0; i + 1 < c->n; i++) {
    uint64_t step = c->list[i].numbers.peak - c->list[i + 1].numbers.peak;
    int seen = 0;
    for (uint32_t d = 0; d < n_done; d++) seen |= done[d] == c->list[i].numbers.peak;
    if (seen || step <= most) continue;
    most = step;
    best = i;
  }
  return best;
}

/* The plan of the left neighbour after `at`, that of the right one before it; where one is a mixture itself, its
 * larger part. */
static mc_spec_t mixture(const mc_spec_t *left, const mc_spec_t *right, uint32_t at, uint32_t n_early) {
  int l = left->at != END && left->at >= n_early / 2 ? 0 : 1, r = right->at != END && right->at < n_early / 2 ? 1 : 0;
  return (mc_spec_t){{right->segments[r], left->segments[l]}, {right->rate[r], left->rate[l]}, at};
}

static int try_mixtures(mc_candidates_t *c, maker_t *k) {
  uint32_t rounds = c->m->j->n_nodes > LARGE ? 3 : 10, n_done = 0;
  uint64_t done[16];
  mc_numbers_t numbers;
  double value;
  int status = 0;
  while (status == 0 && n_done < rounds && c->n > 1) {
    uint32_t i = widest_step(c, done, n_done);
    if (i == c->n) break;
    mc_candidate_t left = c->list[i], right = c->list[i + 1];
    done[n_done++] = left.numbers.peak;
    for (uint32_t part = 1; part < PARTS && status == 0; part++) {
      mc_spec_t spec = mixture(&left.spec, &right.spec, c->segments.n_early * part / PARTS, c->segments.n_early);
      status = attempt(c, k, &spec, &numbers, &value);
    }
  }
  return status;
}

/* ---- steps ---- */

/* The members [from, to) of a class are saved, or no longer, whichever most of them are not. The plan at hand is in
 * `saved`. */
static int try_step(mc_candidates_t *c, maker_t *k, const mc_layers_t *l, uint32_t from, uint32_t to,
                    const mc_candidate_t *of) {
  mc_numbers_t numbers;
  uint32_t n_in = 0, n = 0;
  memset(k->is_boundary, 0, (size_t)c->m->j->n_values + 1);
  for (uint32_t i = 0; i < of->n_saved; i++) k->is_boundary[of->saved[i]] = 1;
  for (uint32_t i = from; i < to; i++) n_in += k->is_boundary[l->members[i]];
  for (uint32_t i = from; i < to; i++) k->is_boundary[l->members[i]] = 2 * n_in < to - from;
  for (uint32_t v = c->m->j->n_inputs; v < c->m->j->n_values; v++)
    if (k->is_boundary[v]) k->saved[n++] = v;
  k->n_saved = n;
  c->n_tried++;
  int status = mc_plan_measure(c->m, k->saved, k->n_saved, &numbers);
  return status == 0 ? add(c, k, &of->spec, &numbers) : status;
}

/* The plan before the widest gap, among those not yet expanded. c->n: none. */
static uint32_t next_to_expand(const mc_candidates_t *c) {
  uint32_t best = c->n;
  uint64_t most = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    uint64_t gap = i + 1 < c->n ? c->list[i].numbers.peak - c->list[i + 1].numbers.peak : c->list[i].numbers.peak;
    if (c->list[i].is_expanded || gap <= most) continue;
    most = gap;
    best = i;
  }
  return best;
}

static int expand(mc_candidates_t *c, maker_t *k, const mc_layers_t *l, uint32_t which, uint32_t most_tried) {
  mc_candidate_t of = c->list[which]; /* the list moves while it grows */
  int status = 0;
  c->list[which].is_expanded = 1;
  of.saved = malloc(((size_t)of.n_saved + 1) * sizeof *of.saved);
  if (!of.saved) return -2;
  memcpy(of.saved, c->list[which].saved, (size_t)of.n_saved * sizeof *of.saved);
  for (uint32_t i = 0; i < l->n_classes && status == 0 && c->n_tried < most_tried; i++) {
    uint32_t begin = l->begin[i], end = l->begin[i + 1], middle = (begin + end) / 2;
    status = try_step(c, k, l, begin, end, &of);
    if (status == 0 && end - begin > 1) status = try_step(c, k, l, begin, middle, &of);
    if (status == 0 && end - begin > 1) status = try_step(c, k, l, middle, end, &of);
  }
  free(of.saved);
  return status;
}

/* As many as take about as long as the rest of the search. */
static int try_steps(mc_candidates_t *c, maker_t *k) {
  const uint32_t most_tried = c->n_tried + STEPS / (c->m->j->n_nodes + 1);
  mc_layers_t l;
  int status = mc_layers_init(&l, c->m);
  for (uint32_t i = next_to_expand(c); status == 0 && i < c->n && c->n_tried < most_tried; i = next_to_expand(c))
    status = expand(c, k, &l, i, most_tried);
  mc_layers_deinit(&l);
  return status;
}

/* ---- all of it ---- */

static int measure_all_saved(mc_candidates_t *c, maker_t *k) {
  if (pt_save_all(c->m->j, k->saved, &k->n_saved) != 0) return -2;
  return mc_plan_measure(c->m, k->saved, k->n_saved, &c->all_saved);
}

int mc_candidates_init(mc_candidates_t *c, const mc_model_t *m, uint32_t *out_bad) {
  maker_t k = {0};
  memset(c, 0, sizeof *c);
  c->m = m;
  c->rates = calloc(MAX_RATES + 2, sizeof *c->rates);
  int status = mc_segments_init(&c->segments, m);
  if (status == 0) status = c->rates && maker_init(&k, c) == 0 ? 0 : -2;
  if (status == 0) status = mc_moments_init(&c->moments, m);
  c->least = m->sure_nbytes + c->moments.least;
  if (status == 0) status = measure_all_saved(c, &k);
  if (status == 0) status = find_corners(c, &k);
  if (status == 0) qsort(c->rates, c->n_rates, sizeof *c->rates, by_rate);
  if (status == 0) status = try_segments(c, &k);
  if (status == 0) status = try_mixtures(c, &k);
  if (status == 0) status = try_steps(c, &k);
  if (status == 0 && c->n == 0) status = -1; /* everything runs something twice that must not */
  *out_bad = k.bad;
  maker_deinit(&k);
  return status;
}

void mc_candidates_deinit(mc_candidates_t *c) {
  mc_segments_deinit(&c->segments);
  mc_moments_deinit(&c->moments);
  for (uint32_t i = 0; i < c->n; i++) free(c->list[i].saved);
  free(c->list);
  free(c->rates);
  memset(c, 0, sizeof *c);
}

uint32_t mc_candidates_first(const mc_candidates_t *c, uint64_t budget, uint32_t from) {
  while (from < c->n && c->list[from].numbers.peak > budget) from++;
  return from;
}

void mc_candidates_plan(const mc_candidates_t *c, uint32_t i, uint32_t *out_saved, uint32_t *out_n_saved) {
  memcpy(out_saved, c->list[i].saved, (size_t)c->list[i].n_saved * sizeof *out_saved);
  *out_n_saved = c->list[i].n_saved;
}

static uint32_t between(uint32_t least, uint32_t n, uint32_t most) { return n < least ? least : n > most ? most : n; }

int mc_candidates_bound(const mc_candidates_t *c, uint64_t budget, double *out_bound) {
  const uint32_t n = c->m->j->n_nodes, first = mc_candidates_first(c, budget, 0);
  const uint32_t cuts[2] = {between(LEAST_CUTS, CUTS / (n + 1), MOST_CUTS),
                            n > CASES_UP_TO ? 0 : CUTS_OF_CASES / (n + 1)};
  double target = 0;
  for (uint32_t i = 0; i < n; i++) target += first == c->n && c->m->j->early[i] ? (double)c->m->cost[i] : 0;
  if (first < c->n) target = (double)c->list[first].numbers.cost;
  return mc_lower_bound(&c->moments, budget, target, cuts, out_bound);
}
