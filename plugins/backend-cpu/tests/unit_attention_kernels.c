/* Attention against the definition in double, and its backward against central differences of the definition. */
#include "naive.h"

#include "attention_kernels.h"
#include <stdlib.h>
#include <string.h>

enum { B = 2, H = 4, Q = 5, K = 6, W = 3, V = 4 };

typedef struct problem {
  int64_t heads_kv;
  int causal;
  double scale;
  const float *mask;   /* [Q][K] */
  const uint8_t *seen; /* [Q][K] */
  float q[B * H * Q * W], k[B * H * K * W], v[B * H * K * V];
} problem_t;

/* One output element's row: probabilities of query i in double. */
static void probabilities(const problem_t *p, int b, int h, int i, double *out) {
  int64_t kv = h / (H / p->heads_kv);
  double most = -INFINITY, sum = 0;
  for (int j = 0; j < K; j++) {
    double s = 0;
    for (int d = 0; d < W; d++)
      s += (double)p->q[((b * H + h) * Q + i) * W + d] * p->k[((b * p->heads_kv + kv) * K + j) * W + d];
    s *= p->scale;
    if (p->mask) s += p->mask[i * K + j];
    if ((p->seen && !p->seen[i * K + j]) || (p->causal && j > i)) s = -INFINITY;
    out[j] = s;
    most = s > most ? s : most;
  }
  for (int j = 0; j < K; j++) sum += out[j] = most == -INFINITY ? 0 : exp(out[j] - most);
  for (int j = 0; j < K; j++) out[j] = sum > 0 ? out[j] / sum : 0;
}

static void naive_forward(const problem_t *p, double *o) {
  double prob[K];
  for (int b = 0; b < B; b++)
    for (int h = 0; h < H; h++)
      for (int i = 0; i < Q; i++) {
        probabilities(p, b, h, i, prob);
        for (int d = 0; d < V; d++) {
          double s = 0;
          for (int j = 0; j < K; j++) s += prob[j] * p->v[((b * p->heads_kv + h / (H / p->heads_kv)) * K + j) * V + d];
          o[((b * H + h) * Q + i) * V + d] = s;
        }
      }
}

static bc_rows_t rows(float *x, int64_t heads, int64_t positions, int64_t width) {
  return (bc_rows_t){x, heads * positions * width, positions * width, width};
}

static bc_attention_t describe(problem_t *p) {
  bc_attention_t a;
  memset(&a, 0, sizeof a);
  a.n_batch = B, a.n_head = H, a.n_head_kv = p->heads_kv, a.n_query = Q, a.n_key = K, a.width = W, a.width_v = V;
  a.scale = p->scale, a.causal = p->causal, a.mask = p->mask, a.bool_mask = p->seen;
  a.mask_query = K, a.mask_key = 1;
  a.q = rows(p->q, H, Q, W), a.k = rows(p->k, p->heads_kv, K, W), a.v = rows(p->v, p->heads_kv, K, V);
  return a;
}

static void fill(problem_t *p) {
  naive_random(p->q, B * H * Q * W, 1);
  naive_random(p->k, B * H * K * W, 2);
  naive_random(p->v, B * H * K * V, 3);
}

/* d <output, go> / dx at every element of x */
static void differences(problem_t *p, float *x, int64_t n, const float *go, double *out) {
  static double o[B * H * Q * V];
  const float step = 1.0f / 256;
  for (int64_t i = 0; i < n; i++) {
    double sum[2];
    float was = x[i];
    for (int side = 0; side < 2; side++) {
      x[i] = was + (side ? step : -step);
      naive_forward(p, o);
      sum[side] = 0;
      for (int k = 0; k < B * H * Q * V; k++) sum[side] += o[k] * go[k];
    }
    x[i] = was;
    out[i] = (sum[1] - sum[0]) / (2 * step);
  }
}

static void near(const float *got, const double *expected, int64_t n, const char *what) {
  for (int64_t i = 0; i < n; i++)
    if (fabs(got[i] - expected[i]) > 2e-3 * (1 + fabs(expected[i])))
      fail_msg("%s[%d]: %g, not %g", what, (int)i, got[i], expected[i]);
}

static void check(problem_t *p) {
  static float o[B * H * Q * V], go[B * H * Q * V], dq[B * H * Q * W], dk[B * H * K * W], dv[B * H * K * V];
  static double expected[B * H * Q * V + B * H * K * V];
  bc_attention_t a;
  fill(p);
  a = describe(p);
  float *work = malloc(bc_attention_work(&a) * sizeof *work);
  bc_attention_forward(&a, rows(o, H, Q, V), 0, 1, work); /* in two parts, as threads would */
  bc_attention_forward(&a, rows(o, H, Q, V), 1, B * p->heads_kv, work);
  naive_forward(p, expected);
  assert_close(o, expected, B * H * Q * V);
  naive_random(go, B * H * Q * V, 4);
  bc_attention_backward(&a, rows(go, H, Q, V), rows(dq, H, Q, W), rows(dk, p->heads_kv, K, W),
                        rows(dv, p->heads_kv, K, V), 0, B * p->heads_kv, work);
  differences(p, p->q, B * H * Q * W, go, expected);
  near(dq, expected, B * H * Q * W, "dq");
  differences(p, p->k, B * p->heads_kv * K * W, go, expected);
  near(dk, expected, B * p->heads_kv * K * W, "dk");
  differences(p, p->v, B * p->heads_kv * K * V, go, expected);
  near(dv, expected, B * p->heads_kv * K * V, "dv");
  free(work);
}

static void plain(void **state) {
  problem_t p = {.heads_kv = H, .scale = 0.5};
  (void)state;
  check(&p);
}
static void causal(void **state) {
  problem_t p = {.heads_kv = H, .scale = 0.5, .causal = 1};
  (void)state;
  check(&p);
}
static void shared_key_heads(void **state) {
  problem_t p = {.heads_kv = 2, .scale = 0.7};
  (void)state;
  check(&p);
}
static void added_mask(void **state) {
  float mask[Q * K];
  problem_t p = {.heads_kv = H, .scale = 0.5, .mask = mask};
  (void)state;
  naive_random(mask, Q * K, 9);
  mask[3] = -INFINITY;
  check(&p);
}
static void bool_mask_with_a_row_that_sees_nothing(void **state) {
  uint8_t seen[Q * K];
  problem_t p = {.heads_kv = H, .scale = 0.5, .seen = seen};
  (void)state;
  for (int i = 0; i < Q * K; i++) seen[i] = i % 3 != 0 && i / K != 2;
  check(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(causal),
                                     cmocka_unit_test(shared_key_heads), cmocka_unit_test(added_mask),
                                     cmocka_unit_test(bool_mask_with_a_row_that_sees_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
