/* Outputs and gradients of the arms, element by element. All are laid next to one arm, the reference: the first, unless
 * others agree with more of the rest; so of three arms the odd one out is named, wherever it is. */
#include <cli/ab/ab.h>
#include <trainer/trial/differences.h>

#include <aot/inline.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct aoth_ab_agreement agreement_t;

static int same_bytes(const aoth_tensor_t *a, const aoth_tensor_t *b) { /* both contiguous: they are in files */
  const size_t size = (size_t)aot_dtype_size(a->dtype), n = (size_t)aoth_tensor_numel(a) * size;
  return n == 0 || memcmp((const char *)a->data + (size_t)a->offset * size,
                          (const char *)b->data + (size_t)b->offset * size, n) == 0;
}

static void note_worst(agreement_t *g, const char *key, int last, double max_abs) {
  if (max_abs < g->max_abs || (max_abs == 0 && !isinf(max_abs))) return;
  if (max_abs == g->max_abs && g->worst[0]) return;
  snprintf(g->worst, sizeof g->worst, "%s%s", key, last ? " of the last step" : "");
}

static void add_key(agreement_t *g, const char *key, int last, const aoth_tensor_t *got, const aoth_tensor_t *wanted,
                    double rtol, double atol) {
  g->n_keys++;
  if (!got || !wanted) {
    snprintf(g->worst, sizeof g->worst, "%s%s, which only one of the two has", key, last ? " of the last step" : "");
    g->max_abs = INFINITY;
    return;
  }
  const aoth_compare_t c = aoth_compare_tensors(got, wanted, rtol, atol);
  if (!c.same_type) {
    snprintf(g->worst, sizeof g->worst, "%s%s, of another shape or dtype", key, last ? " of the last step" : "");
    g->max_abs = INFINITY;
    return;
  }
  g->n_equal += (uint32_t)same_bytes(got, wanted);
  g->n_close += (uint32_t)c.ok;
  note_worst(g, key, last, c.max_abs);
  if (c.max_abs > g->max_abs) g->max_abs = c.max_abs;
  if (c.max_rel > g->max_rel) g->max_rel = c.max_rel;
}

typedef struct comparison {
  const aoth_ab_t *ab;
  int last;
  agreement_t *outputs, *gradients;
} comparison_t;

static void compare_key(void *self, const char *key, const aoth_tensor_t *got, const aoth_tensor_t *wanted) {
  const comparison_t *c = self;
  add_key(strncmp(key, "grad.", 5) == 0 ? c->gradients : c->outputs, key, c->last, got, wanted, c->ab->rtol,
          c->ab->atol);
}

/* 1: within tolerance throughout. */
static int compare_arms(const aoth_ab_t *ab, const aoth_ab_arm_run_t *got, const aoth_ab_arm_run_t *wanted,
                        agreement_t *outputs, agreement_t *gradients) {
  memset(outputs, 0, sizeof *outputs);
  memset(gradients, 0, sizeof *gradients);
  for (int last = 0; last < 2; last++)
    if (got->results[last] && wanted->results[last])
      aoth_results_walk(got->results[last], wanted->results[last], compare_key,
                        &(comparison_t){ab, last, outputs, gradients});
  return outputs->n_close == outputs->n_keys && gradients->n_close == gradients->n_keys;
}

static int has_results(const aoth_ab_arm_run_t *a) { return aoth_ab_alive(a) && a->results[0]; }

/* Every arm against `reference`; answers how many agree with it. */
static uint32_t compare_all(aoth_ab_t *ab, int64_t reference) {
  uint32_t n = 0;
  ab->reference = reference;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    if (!has_results(a)) continue;
    a->differs = !compare_arms(ab, a, &ab->arms[reference], &a->outputs, &a->gradients);
    n += !a->differs;
  }
  return n;
}

void aoth_ab_compare_results(aoth_ab_t *ab) {
  uint32_t n = 0, best = 0;
  int64_t reference = -1, tried = -1;
  for (uint32_t i = 0; i < ab->n_arms; i++) n += (uint32_t)has_results(&ab->arms[i]);
  ab->reference = -1;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    if (!has_results(&ab->arms[i])) continue;
    const uint32_t agreeing = compare_all(ab, i);
    tried = i;
    if (agreeing > best) reference = i;
    if (agreeing > best) best = agreeing;
    if (2 * best >= n) break; /* a half or more: no other can have more, or none that precedes it */
  }
  if (reference >= 0 && reference != tried) compare_all(ab, reference);
}
