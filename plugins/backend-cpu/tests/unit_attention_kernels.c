/* Attention against its definition in double: lengths from 1 to 300, masks, shared heads, halves, strides. The
 * definition's gradients are held against central differences of its output. */
#include "naive.h"

#include "attention_halves.h"
#include "attention_kernels.h"
#include "exp_f32.h"
#include "half_kernels.h"
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
  int64_t batch, heads, share, n_query, n_key, width, width_v;
  int causal;
  double scale;
  const float *mask;   /* [n_query][n_key] */
  const uint8_t *seen; /* the same */
  int multiplies_halves;
  int alike;     /* all keys of a query are seen, or none: the mask is read with stride 0 */
  int32_t dtype; /* 0: float32 */
  double *q, *k, *v, *go;
} problem_t;

static int64_t n_q(const problem_t *p) { return p->batch * p->heads * p->n_query * p->width; }
static int64_t n_k(const problem_t *p) { return p->batch * p->heads / p->share * p->n_key * p->width; }
static int64_t n_v(const problem_t *p) { return p->batch * p->heads / p->share * p->n_key * p->width_v; }
static int64_t n_o(const problem_t *p) { return p->batch * p->heads * p->n_query * p->width_v; }

static void *zeros(int64_t n, size_t size) {
  void *x = calloc((size_t)n + 1, size);
  assert_non_null(x);
  return x;
}

/* ---- the definition ---- */

/* Probabilities of a query in double; the log of their sum. */
static double probabilities(const problem_t *p, int64_t head, int64_t i, double *out) {
  const double *q = p->q + (head * p->n_query + i) * p->width, *k = p->k + head / p->share * p->n_key * p->width;
  double most = -INFINITY, sum = 0;
  for (int64_t j = 0; j < p->n_key; j++) {
    double s = 0;
    for (int64_t d = 0; d < p->width; d++) s += q[d] * k[j * p->width + d];
    s *= p->scale;
    if (p->mask) s += p->mask[i * p->n_key + j];
    if ((p->seen && !p->seen[i * p->n_key + j]) || (p->causal && j > i)) s = -INFINITY;
    out[j] = s;
    most = s > most ? s : most;
  }
  for (int64_t j = 0; j < p->n_key; j++) sum += out[j] = most == -INFINITY ? 0 : exp(out[j] - most);
  for (int64_t j = 0; j < p->n_key; j++) out[j] = sum > 0 ? out[j] / sum : 0;
  return most + log(sum);
}

static void naive_forward(const problem_t *p, double *o, double *lse) {
  double *row = zeros(p->n_key, sizeof *row);
  for (int64_t head = 0; head < p->batch * p->heads; head++)
    for (int64_t i = 0; i < p->n_query; i++) {
      const double *v = p->v + head / p->share * p->n_key * p->width_v;
      const double l = probabilities(p, head, i, row);
      if (lse) lse[head * p->n_query + i] = l;
      for (int64_t d = 0; d < p->width_v; d++) {
        double s = 0;
        for (int64_t j = 0; j < p->n_key; j++) s += row[j] * v[j * p->width_v + d];
        o[(head * p->n_query + i) * p->width_v + d] = s;
      }
    }
  free(row);
}

static void naive_backward(const problem_t *p, double *dq, double *dk, double *dv) {
  double *row = zeros(p->n_key, sizeof *row), *dp = zeros(p->n_key, sizeof *dp);
  for (int64_t head = 0; head < p->batch * p->heads; head++)
    for (int64_t i = 0; i < p->n_query; i++) {
      const int64_t first = head / p->share * p->n_key, query = head * p->n_query + i;
      const double *go = p->go + query * p->width_v;
      double sum = 0;
      probabilities(p, head, i, row);
      for (int64_t j = 0; j < p->n_key; j++) {
        dp[j] = 0;
        for (int64_t d = 0; d < p->width_v; d++) {
          dp[j] += go[d] * p->v[(first + j) * p->width_v + d];
          dv[(first + j) * p->width_v + d] += row[j] * go[d];
        }
        sum += row[j] * dp[j];
      }
      for (int64_t j = 0; j < p->n_key; j++)
        for (int64_t d = 0; d < p->width; d++) {
          const double ds = row[j] * (dp[j] - sum) * p->scale;
          dq[query * p->width + d] += ds * p->k[(first + j) * p->width + d];
          dk[(first + j) * p->width + d] += ds * p->q[query * p->width + d];
        }
    }
  free(row);
  free(dp);
}

/* d <output, go> / dx at every element of x */
static void check_differences(const problem_t *p, double *x, int64_t n, const double *gradient) {
  double *o = zeros(n_o(p), sizeof *o);
  const double step = 1e-5;
  for (int64_t i = 0; i < n; i++) {
    const double was = x[i];
    double sum[2] = {0};
    for (int side = 0; side < 2; side++) {
      x[i] = was + (side ? step : -step);
      naive_forward(p, o, NULL);
      for (int64_t k = 0; k < n_o(p); k++) sum[side] += o[k] * p->go[k];
    }
    x[i] = was;
    if (!(fabs((sum[1] - sum[0]) / (2 * step) - gradient[i]) < 1e-6)) fail_msg("the definition's gradient is wrong");
  }
  free(o);
}

/* ---- what is tested ---- */

static double get(const problem_t *p, const void *x, int64_t at) {
  float f = 0;
  if (p->dtype == AOT_F32) return ((const float *)x)[at];
  bc_convert_to_f32(p->dtype, (const uint16_t *)x + at, 1, &f);
  return f;
}

static void put(const problem_t *p, double number, void *x, int64_t at) {
  const float f = (float)number;
  if (p->dtype == AOT_F32) ((float *)x)[at] = f;
  else bc_narrow(p->dtype, &f, 1, (uint16_t *)x + at);
}

static double *filled(const problem_t *p, int64_t n, uint32_t seed) {
  float *x = zeros(n, sizeof *x);
  double *y = zeros(n, sizeof *y);
  naive_random(x, n, seed);
  for (int64_t i = 0; i < n; i++) {
    put(p, x[i], x, i); /* to what its dtype holds */
    y[i] = get(p, x, i);
  }
  free(x);
  return y;
}

/* As [batch][position][head][element], or with heads before positions; rows with a gap after them. */
typedef struct tensor {
  void *data;
  int64_t heads, positions, width, n;
  bc_rows_t rows;
} tensor_t;

static tensor_t tensor(const problem_t *p, const double *from, int64_t heads, int64_t positions, int64_t width,
                       int positions_first) {
  const int64_t row = width + positions_first * 3;
  tensor_t t = {.heads = heads, .positions = positions, .width = width, .n = p->batch * heads * positions};
  t.data = zeros(t.n * row, sizeof(float));
  t.rows = (bc_rows_t){.data = t.data, .position = positions_first ? heads * row : row};
  t.rows.lead[0] = heads * positions * row;
  t.rows.lead[1] = positions_first ? row : positions * row;
  for (int64_t i = 0; from && i < t.n * width; i++) {
    const int64_t e = i % width, s = i / width % positions, h = i / width / positions;
    const int64_t at = h / heads * t.rows.lead[0] + h % heads * t.rows.lead[1] + s * t.rows.position + e;
    put(p, from[i], t.data, at);
  }
  return t;
}

static void near(const problem_t *p, const tensor_t *t, const double *expected, const char *what) {
  const double rounded = p->multiplies_halves ? 2e-2 : 8e-3;
  const double tolerance = p->dtype == AOT_F32 ? 3e-5 : p->dtype == AOT_F16 ? 1e-3 : rounded;
  for (int64_t i = 0; i < t->n * t->width; i++) {
    const int64_t e = i % t->width, s = i / t->width % t->positions, h = i / t->width / t->positions;
    const double got =
        get(p, t->data, h / t->heads * t->rows.lead[0] + h % t->heads * t->rows.lead[1] + s * t->rows.position + e);
    if (!(fabs(got - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
      fail_msg("%s[%lld]: %.9g, not %.9g", what, (long long)i, got, expected[i]);
  }
}

static bc_attention_t describe(const problem_t *p, const tensor_t *q, const tensor_t *k, const tensor_t *v) {
  return (bc_attention_t){
      .dtype = p->dtype,
      .n_lead = 2,
      .lead = {p->batch, p->heads},
      .share = p->share,
      .n_query = p->n_query,
      .n_key = p->n_key,
      .width = p->width,
      .width_v = p->width_v,
      .scale = p->scale,
      .causal = p->causal,
      .q = q->rows,
      .k = k->rows,
      .v = v->rows,
      .mask = p->mask ? (const void *)p->mask : p->seen,
      .mask_dtype = p->mask ? AOT_F32 : AOT_BOOL,
      .mask_query = p->n_key,
      .mask_key = !p->alike,
  };
}

/* As the step does it with n_threads. */
static void run_backward(const bc_attention_t *a, const tensor_t *go, const tensor_t *dq, const tensor_t *dk,
                         const tensor_t *dv, int64_t n_threads) {
  const int64_t n_parts = bc_attention_parts(a, n_threads);
  const uint64_t n_sums = bc_attention_sums(a);
  float *work = aligned_alloc(64, bc_attention_backward_work(a) * sizeof *work + 64);
  float *sums = zeros((int64_t)n_sums * n_parts, sizeof *sums);
  for (int64_t head = 0; head < bc_attention_key_heads(a); head++) {
    for (int64_t part = 0; part < n_parts; part++)
      bc_attention_backward(a, go->rows, dq->rows, head, part, n_parts, sums + part * (int64_t)n_sums, work);
    bc_attention_finish(a, dk->rows, dv->rows, head, n_parts, sums);
  }
  free(work);
  free(sums);
}

static void check(problem_t p) {
  if (!p.dtype) p.dtype = AOT_F32;
  if (!p.batch) p.batch = 1;
  if (!p.heads) p.heads = 1;
  if (!p.share) p.share = 1;
  if (p.scale == 0) p.scale = 0.3;
  const int64_t key_heads = p.heads / p.share;
  p.q = filled(&p, n_q(&p), 1);
  p.k = filled(&p, n_k(&p), 2);
  p.v = filled(&p, n_v(&p), 3);
  p.go = filled(&p, n_o(&p), 4);
  double *o = zeros(n_o(&p), sizeof *o), *lse = zeros(p.batch * p.heads * p.n_query, sizeof *lse);
  double *dq = zeros(n_q(&p), sizeof *dq), *dk = zeros(n_k(&p), sizeof *dk), *dv = zeros(n_v(&p), sizeof *dv);
  naive_forward(&p, o, lse);
  naive_backward(&p, dq, dk, dv);
  if (p.n_query < 8 && p.n_key < 8 && p.dtype == AOT_F32) {
    check_differences(&p, p.q, n_q(&p), dq);
    check_differences(&p, p.k, n_k(&p), dk);
    check_differences(&p, p.v, n_v(&p), dv);
  }
  for (int way = 0; way < 2; way++) {
    tensor_t q = tensor(&p, p.q, p.heads, p.n_query, p.width, way),
             k = tensor(&p, p.k, key_heads, p.n_key, p.width, way);
    tensor_t v = tensor(&p, p.v, key_heads, p.n_key, p.width_v, way);
    tensor_t go = tensor(&p, p.go, p.heads, p.n_query, p.width_v, way);
    tensor_t t_o = tensor(&p, NULL, p.heads, p.n_query, p.width_v, !way);
    tensor_t t_q = tensor(&p, NULL, p.heads, p.n_query, p.width, way);
    tensor_t t_k = tensor(&p, NULL, key_heads, p.n_key, p.width, way);
    tensor_t t_v = tensor(&p, NULL, key_heads, p.n_key, p.width_v, !way);
    bc_attention_t a = describe(&p, &q, &k, &v);
    int failed = 0;
    a.failed = &failed;
    bc_attention_halves_t *halves = p.multiplies_halves ? bc_attention_halves_create(&a, 0, 2) : NULL;
    a.halves = halves;
    a.lane = a.halves != NULL;
    const int64_t n = bc_attention_blocks(&a);
    float *work = aligned_alloc(64, bc_attention_forward_work(&a) * sizeof *work + 64);
    float *sums = zeros(p.batch * p.heads * p.n_query, sizeof *sums);
    bc_attention_forward(&a, t_o.rows, way ? NULL : sums, 0, n / 2, work); /* in two parts, as threads would */
    bc_attention_forward(&a, t_o.rows, way ? NULL : sums, n / 2, n, work);
    near(&p, &t_o, o, "o");
    for (int64_t i = 0; !way && i < p.batch * p.heads * p.n_query; i++)
      if (!(sums[i] == lse[i] || fabs(sums[i] - lse[i]) <= 2e-5 * (1 + fabs(lse[i]))))
        fail_msg("lse[%lld]: %.9g, not %.9g", (long long)i, sums[i], lse[i]);
    bc_attention_halves_destroy(halves);
    halves = p.multiplies_halves ? bc_attention_halves_create(&a, 1, 2) : NULL;
    a.halves = halves;
    run_backward(&a, &go, &t_q, &t_k, &t_v, way ? 7 : 1);
    bc_attention_halves_destroy(halves);
    assert_int_equal(failed, 0);
    near(&p, &t_q, dq, "dq");
    near(&p, &t_k, dk, "dk");
    near(&p, &t_v, dv, "dv");
    free(q.data), free(k.data), free(v.data), free(go.data), free(t_o.data), free(t_q.data), free(t_k.data);
    free(t_v.data), free(work), free(sums);
  }
  free(p.q), free(p.k), free(p.v), free(p.go), free(o), free(lse), free(dq), free(dk), free(dv);
}

static void small_ones_against_differences(void **state) {
  (void)state;
  check((problem_t){.batch = 2, .heads = 2, .n_query = 5, .n_key = 6, .width = 3, .width_v = 4});
  check((problem_t){.batch = 2, .heads = 2, .n_query = 6, .n_key = 5, .width = 3, .width_v = 4, .causal = 1});
  check((problem_t){.batch = 2, .heads = 4, .share = 2, .n_query = 5, .n_key = 6, .width = 3, .width_v = 4});
}

static void lengths_from_1_to_300(void **state) {
  static const int64_t lengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 300};
  (void)state;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int causal = 0; causal < 2; causal++)
      check((problem_t){.n_query = lengths[i], .n_key = lengths[i], .width = 16, .width_v = 16, .causal = causal});
  check((problem_t){.n_query = 70, .n_key = 300, .width = 20, .width_v = 7, .causal = 1});
  check((problem_t){.n_query = 300, .n_key = 70, .width = 7, .width_v = 33, .causal = 1});
  check((problem_t){.n_query = 1, .n_key = 300, .width = 5, .width_v = 16});
}

static void shared_heads(void **state) {
  (void)state;
  check((problem_t){.batch = 2, .heads = 6, .share = 3, .n_query = 70, .n_key = 140, .width = 8, .width_v = 16});
}

static void masks(void **state) {
  enum { Q = 90, K = 150 };
  float *mask = zeros(Q * K, sizeof *mask);
  uint8_t *seen = zeros(Q * K, 1);
  (void)state;
  naive_random(mask, Q * K, 9);
  for (int i = 0; i < Q * K; i++) {
    seen[i] = i % 3 != 0 && i / K != 2 && i / K != 77; /* two queries see nothing */
    mask[i] = i % 7 == 0 || i / K == 4 ? -INFINITY : mask[i];
  }
  /* a query that sees nothing of the first block of keys, one of the last */
  for (int j = 0; j < 130; j++) seen[6 * K + j] = 0;
  for (int j = 100; j < K; j++) mask[6 * K + j] = -INFINITY;
  /* 16 queries and more that see everything, but for one key */
  for (int i = 15 * K; i < 50 * K; i++) {
    seen[i] = i != 35 * K + 140;
    mask[i] = i == 35 * K + 140 ? 1 : 0;
  }
  check((problem_t){.heads = 2, .n_query = Q, .n_key = K, .width = 16, .width_v = 16, .mask = mask});
  check((problem_t){.heads = 2, .n_query = Q, .n_key = K, .width = 16, .width_v = 16, .seen = seen});
  for (int i = 0; i < Q * K; i++) seen[i] = i / K < 50 && i / K != 20;
  check((problem_t){
      .heads = 2, .n_query = Q, .n_key = K, .width = 16, .width_v = 16, .seen = seen, .alike = 1, .causal = 1});
  free(mask);
  free(seen);
}

static void halves(void **state) {
  static const int32_t dtypes[] = {AOT_BF16, AOT_F16};
  (void)state;
  for (int i = 0; i < 2; i++) {
    check((problem_t){.dtype = dtypes[i], .heads = 2, .n_query = 100, .n_key = 140, .width = 16, .width_v = 16});
    check(
        (problem_t){.dtype = dtypes[i], .heads = 2, .n_query = 65, .n_key = 65, .width = 5, .width_v = 9, .causal = 1});
  }
}

/* Blocks with a rest of queries and of keys, shared heads, widths that are no whole vectors. */
static void products_of_halves(void **state) {
  (void)state;
  for (int causal = 0; causal < 2; causal++) {
    problem_t p = {
        .dtype = AOT_BF16, .multiplies_halves = 1, .heads = 2, .n_query = 197, .n_key = 197, .causal = causal};
    p.width = p.width_v = 16;
    check(p);
    p.width = 21, p.width_v = 36;
    check(p);
    p.n_query = 128, p.n_key = 300;
    check(p);
    p.n_query = 300, p.n_key = 70, p.share = 2;
    check(p);
  }
}

/* Scores far apart: the maximum moves from block to block, and nothing overflows. */
static void large_scores(void **state) {
  (void)state;
  check((problem_t){.n_query = 40, .n_key = 290, .width = 16, .width_v = 16, .scale = 3});
}

/* Which thread takes which blocks, and when, changes no bits. */
static void division_changes_no_bits(void **state) {
  problem_t p = {.batch = 1,
                 .heads = 2,
                 .share = 1,
                 .n_query = 150,
                 .n_key = 150,
                 .width = 24,
                 .width_v = 24,
                 .causal = 1,
                 .scale = 0.3,
                 .dtype = AOT_F32};
  double *x = filled(&p, n_q(&p), 5);
  const tensor_t q = tensor(&p, x, 2, 150, 24, 0), k = tensor(&p, x, 2, 150, 24, 1), v = tensor(&p, x, 2, 150, 24, 1);
  const bc_attention_t a = describe(&p, &q, &k, &v);
  const int64_t n = bc_attention_blocks(&a);
  float *work = zeros((int64_t)bc_attention_forward_work(&a), sizeof *work);
  tensor_t r[2][4];
  (void)state;
  for (int way = 0; way < 2; way++) {
    for (int i = 0; i < 4; i++) r[way][i] = tensor(&p, NULL, 2, 150, 24, 0);
    for (int64_t i = 0; way && i < n; i++) bc_attention_forward(&a, r[way][0].rows, NULL, n - 1 - i, n - i, work);
    if (!way) bc_attention_forward(&a, r[way][0].rows, NULL, 0, n, work);
    run_backward(&a, &q, &r[way][1], &r[way][2], &r[way][3], 4);
  }
  for (int i = 0; i < 4; i++) {
    assert_memory_equal(r[0][i].data, r[1][i].data, (size_t)(r[0][i].n * 24) * sizeof(float));
    free(r[0][i].data), free(r[1][i].data);
  }
  free(x), free(work), free(q.data), free(k.data), free(v.data);
}

static void memory_grows_with_keys_alone(void **state) {
  const bc_attention_t a = {.dtype = AOT_F32,
                            .n_lead = 1,
                            .lead = {1},
                            .share = 1,
                            .n_query = 1 << 16,
                            .n_key = 1 << 16,
                            .width = 64,
                            .width_v = 64};
  (void)state;
  assert_true(bc_attention_forward_work(&a) < 64 * 1024);
  assert_true(bc_attention_backward_work(&a) + bc_attention_sums(&a) < 200 * (uint64_t)a.n_key);
}

/* A hidden score is -inf: half of a causal block. */
static void exponentials_of_what_is_hidden_do_not_underflow(void **state) {
  static const float hidden[] = {-INFINITY, -1e30f, -200, -104.5f};
  (void)state;
  for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++) {
    volatile float x = hidden[k], y = 1;
    feclearexcept(FE_ALL_EXCEPT);
    y = exp_f32(x);
    assert_false(fetestexcept(FE_UNDERFLOW));
    assert_true(y == 0);
  }
  for (int k = -1039; k < 887; k++) {
    const float x = (float)k / 10;
    const double exact = exp((double)x), digit = fmax(exact * 0x1p-22, 0x1p-149); /* two of the last */
    assert_true(fabs((double)exp_f32(x) - exact) <= digit);
  }
  assert_true(exp_f32(INFINITY) == INFINITY);
  assert_true(isnan(exp_f32(NAN)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exponentials_of_what_is_hidden_do_not_underflow),
                                     cmocka_unit_test(small_ones_against_differences),
                                     cmocka_unit_test(lengths_from_1_to_300),
                                     cmocka_unit_test(shared_heads),
                                     cmocka_unit_test(masks),
                                     cmocka_unit_test(halves),
                                     cmocka_unit_test(products_of_halves),
                                     cmocka_unit_test(large_scores),
                                     cmocka_unit_test(division_changes_no_bits),
                                     cmocka_unit_test(memory_grows_with_keys_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
