/* Graphs of cuDNN's operations on whatever libcudnn.so.9 and libcuda.so.1 are found, against sums in double: cuDNN's
 * double in the suite, a GPU where there is one (then what only the double reports is left out). */
#include "cudnn/attention_graphs.h"
#include "kit/reference/rk_core.h"
#include "cudnn/conv_graphs.h"
#include "drawn.h"
#include "plan_cache_disk.h"
#include "plan_cache.h"

#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct fixture {
  gc_driver_t cu;
  gc_context_t context;
  gc_stream_t stream;
  gc_cudnn_t dnn;
  int is_double;
} fixture_t;

static int begin(void **state) {
  fixture_t *w = calloc(1, sizeof *w);
  char why[400] = "", name[64] = "";
  if (!w || gc_driver_open(&w->cu, why, sizeof why) || w->cu.primary_ctx_retain(&w->context, 0) ||
      w->cu.ctx_set_current(w->context) || w->cu.stream_create(&w->stream, GC_STREAM_NON_BLOCKING, 0) ||
      !gc_cudnn_ready(&w->dnn)) {
    fprintf(stderr, "%s%s\n", why, w ? w->dnn.why : "");
    return -1;
  }
  w->cu.device_get_name(name, sizeof name, 0);
  w->is_double = strncmp(name, "a double", 8) == 0;
  *state = w;
  return 0;
}
static int end(void **state) {
  fixture_t *w = *state;
  gc_dnn_forget_plans(&w->dnn);
  gc_cudnn_close(&w->dnn);
  w->cu.stream_destroy(w->stream);
  w->cu.primary_ctx_release(0);
  free(w);
  return 0;
}

/* ---- tensors: on the device, and as doubles here, by the place that each element has in memory ---- */

typedef struct array {
  gc_dnn_tensor_t type;
  int64_t n; /* elements of memory */
  double *v;
  gc_address_t at;
} array_t;

/* A key is seen, or hidden as masks hide it; all of them lie so low that exp(0 - their log sum) is infinite; a
 * probability is stored or dropped. */
static double bias_number(void) { return random_number() > -0.6 ? random_number() : -0x1p123; }
static double low_number(void) { return random_number() - 200; }
static double keep_number(void) { return random_number() > -0.4; }

static array_t make_array_of(const fixture_t *w, const gc_dnn_tensor_t *t, double (*number)(void)) {
  const size_t size = aot_dtype_size(t->dtype);
  array_t a = {.type = *t, .n = 1};
  for (int32_t d = 0; d < t->rank; d++) a.n += (t->sizes[d] - 1) * t->strides[d];
  a.v = calloc((size_t)a.n, sizeof *a.v);
  char *bytes = calloc((size_t)a.n, size);
  for (int64_t i = 0; i < a.n; i++) {
    rk_store_f(bytes + (size_t)i * size, t->dtype, number());
    a.v[i] = rk_load_f(bytes + (size_t)i * size, t->dtype);
  }
  assert_int_equal(w->cu.mem_alloc(&a.at, (size_t)a.n * size), GC_SUCCESS);
  assert_int_equal(w->cu.memcpy_to_device(a.at, bytes, (size_t)a.n * size, w->stream), GC_SUCCESS);
  assert_int_equal(w->cu.stream_synchronize(w->stream), GC_SUCCESS);
  free(bytes);
  return a;
}

static array_t make_array(const fixture_t *w, const gc_dnn_tensor_t *t) { return make_array_of(w, t, random_number); }

static void drop_array(const fixture_t *w, array_t *a) {
  w->cu.mem_free(a->at);
  free(a->v);
}

static int64_t place(const gc_dnn_tensor_t *t, int64_t i, int64_t j, int64_t k, int64_t l) {
  return i * t->strides[0] + j * t->strides[1] + k * t->strides[2] + l * t->strides[3];
}

/* The largest difference between what is on the device and `expected`, of elements that the tensor has. */
static double difference(const fixture_t *w, const array_t *a, const double *expected) {
  const gc_dnn_tensor_t *t = &a->type;
  const size_t size = aot_dtype_size(t->dtype);
  char *bytes = malloc((size_t)a->n * size);
  int64_t index[GC_DNN_MAX_RANK] = {0};
  double worst = 0;
  assert_int_equal(w->cu.memcpy_to_host(bytes, a->at, (size_t)a->n * size, w->stream), GC_SUCCESS);
  assert_int_equal(w->cu.stream_synchronize(w->stream), GC_SUCCESS);
  for (int32_t d = 0; d >= 0;) {
    int64_t at = 0;
    for (d = 0; d < t->rank; d++) at += index[d] * t->strides[d];
    const double v = rk_load_f(bytes + (size_t)at * size, t->dtype), e = fabs(v - expected[at]);
    if (!(e <= worst)) worst = e; /* a NaN is one, too */
    for (d = t->rank - 1; d >= 0 && ++index[d] == t->sizes[d]; d--) index[d] = 0;
  }
  free(bytes);
  return worst;
}

/* Of the n expected numbers the largest, not less than `least`: differences are reported by it. */
static double largest(const double *expected, int64_t n, double least) {
  for (int64_t i = 0; i < n; i++)
    if (fabs(expected[i]) > least) least = fabs(expected[i]);
  return least;
}

static void run(const fixture_t *w, const gc_dnn_graph_t *g, const gc_dnn_plan_t *p, const array_t *arrays,
                uint32_t n) {
  gc_address_t addresses[GC_DNN_MAX_TENSORS] = {0}, workspace = 0;
  char why[400];
  for (uint32_t k = 0; k < n; k++) addresses[k] = arrays[k].at;
  if (p->workspace_nbytes) assert_int_equal(w->cu.mem_alloc(&workspace, p->workspace_nbytes), GC_SUCCESS);
  const int status = gc_dnn_run(&w->dnn, p, g, addresses, workspace, w->stream);
  if (status) gc_cudnn_failed(&w->dnn, status, "run", why, sizeof why);
  if (status) fail_msg("%s", why);
  assert_int_equal(w->cu.stream_synchronize(w->stream), GC_SUCCESS);
  if (workspace) w->cu.mem_free(workspace);
}

static const gc_dnn_plan_t *plan_of(fixture_t *w, const gc_dnn_graph_t *g) {
  const gc_dnn_plan_t *p = gc_dnn_plan(&w->dnn, g);
  if (!p || !p->desc) fail_msg("%s", p ? p->why : "no memory");
  return p;
}

/* ---- attention ---- */

static int is_of_keys(int what) {
  return what == GC_ATT_K || what == GC_ATT_V || what == GC_ATT_GK || what == GC_ATT_GV;
}

static gc_attention_t attention(int64_t n_query, int64_t n_key, int64_t width, int64_t width_v, int is_causal,
                                int is_packed, int32_t dtype) {
  gc_attention_t a = {.dtype = dtype,
                      .n_batch = 2,
                      .n_head = 3,
                      .n_query = n_query,
                      .n_key = n_key,
                      .width = width,
                      .width_v = width_v,
                      .share = 1,
                      .scale = 0.3,
                      .is_causal = is_causal};
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    const int of_keys = is_of_keys(what);
    const int is_wide = what == GC_ATT_V || what == GC_ATT_O || what == GC_ATT_GO || what == GC_ATT_GV;
    const int64_t n = of_keys ? n_key : n_query, e = is_wide ? width_v : width;
    const int64_t pieces = is_packed && (what <= GC_ATT_V || (what >= GC_ATT_GQ && what <= GC_ATT_GV)) ? 3 : 1;
    a.strides[what].batch = pieces * n * a.n_head * e;
    a.strides[what].head = is_packed ? e : n * e;
    a.strides[what].position = is_packed ? pieces * a.n_head * e : e;
  }
  return a;
}

/* Heads of queries share those of keys. */
static void share_heads(gc_attention_t *a, int64_t share) {
  a->share = share;
  a->n_head *= share;
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++)
    if (!is_of_keys(what)) a->strides[what].batch *= share;
}

static void set_scores_strides(gc_attention_t *a, int what, const int64_t *sizes) {
  a->strides[what].position = a->n_key;
  a->strides[what].head = sizes[2] * a->n_key;
  a->strides[what].batch = sizes[1] * a->strides[what].head;
}

/* Added to scores: of each batch or of all, of each head or of all. */
static void add_bias(gc_attention_t *a, int32_t dtype, int of_batch, int of_head) {
  const int64_t sizes[] = {of_batch ? a->n_batch : 1, of_head ? a->n_head : 1, a->n_query};
  a->bias_dtype = dtype;
  memcpy(a->bias_sizes, sizes, sizeof sizes);
  set_scores_strides(a, GC_ATT_BIAS, sizes);
}

static void add_keep(gc_attention_t *a) {
  const int64_t sizes[] = {a->n_batch, a->n_head, a->n_query};
  a->keep_dtype = a->dtype;
  a->keep_scale = 1 / 0.7;
  set_scores_strides(a, GC_ATT_KEEP, sizes);
}

static double bias_at(const gc_attention_t *a, const array_t *t, int64_t b, int64_t h, int64_t i, int64_t j) {
  const array_t *bias = &t[GC_ATT_BIAS];
  if (!a->bias_dtype) return 0;
  return bias->v[place(&bias->type, a->bias_sizes[0] > 1 ? b : 0, a->bias_sizes[1] > 1 ? h : 0, i, j)];
}
static double keep_at(const gc_attention_t *a, const array_t *t, int64_t b, int64_t h, int64_t i, int64_t j) {
  return a->keep_dtype ? a->keep_scale * t[GC_ATT_KEEP].v[place(&t[GC_ATT_KEEP].type, b, h, i, j)] : 1;
}

/* By the definition; g: gradients too, into expected[GQ], [GK], [GV]. */
static void naive_attention(const gc_attention_t *a, const array_t *t, double **expected) {
  double *p = calloc((size_t)(a->n_query * a->n_key), sizeof *p), *gp = calloc((size_t)a->n_key, sizeof *gp);
  for (int64_t b = 0; b < a->n_batch; b++)
    for (int64_t h = 0; h < a->n_head; h++)
      for (int64_t i = 0; i < a->n_query; i++) {
        const int64_t n = a->is_causal && i + 1 < a->n_key ? i + 1 : a->n_key;
        double max = -INFINITY, sum = 0, rest = 0;
        for (int64_t j = 0; j < n; j++) {
          p[j] = 0;
          for (int64_t e = 0; e < a->width; e++)
            p[j] += a->scale * t[GC_ATT_Q].v[place(&t[GC_ATT_Q].type, b, h, i, e)] *
                    t[GC_ATT_K].v[place(&t[GC_ATT_K].type, b, h / a->share, j, e)];
          p[j] += bias_at(a, t, b, h, i, j);
          if (p[j] > max) max = p[j];
        }
        for (int64_t j = 0; j < n; j++) sum += p[j] = exp(p[j] - max);
        expected[GC_ATT_STATS][(b * a->n_head + h) * a->n_query + i] = max + log(sum);
        for (int64_t j = 0; j < n; j++) {
          p[j] /= sum;
          gp[j] = 0;
          for (int64_t e = 0; e < a->width_v; e++) {
            const double v = t[GC_ATT_V].v[place(&t[GC_ATT_V].type, b, h / a->share, j, e)];
            const double go = t[GC_ATT_GO].v[place(&t[GC_ATT_GO].type, b, h, i, e)];
            const double keep = keep_at(a, t, b, h, i, j);
            expected[GC_ATT_O][place(&t[GC_ATT_O].type, b, h, i, e)] += keep * p[j] * v;
            expected[GC_ATT_GV][place(&t[GC_ATT_GV].type, b, h / a->share, j, e)] += keep * p[j] * go;
            gp[j] += keep * go * v;
          }
          rest += gp[j] * p[j];
        }
        for (int64_t j = 0; j < n; j++)
          for (int64_t e = 0; e < a->width; e++) {
            const double gs = a->scale * p[j] * (gp[j] - rest);
            expected[GC_ATT_GQ][place(&t[GC_ATT_GQ].type, b, h, i, e)] +=
                gs * t[GC_ATT_K].v[place(&t[GC_ATT_K].type, b, h / a->share, j, e)];
            expected[GC_ATT_GK][place(&t[GC_ATT_GK].type, b, h / a->share, j, e)] +=
                gs * t[GC_ATT_Q].v[place(&t[GC_ATT_Q].type, b, h, i, e)];
          }
      }
  free(p);
  free(gp);
}

/* As they lie, not as the graph sees them: keys and values are transposed there. */
static gc_dnn_tensor_t as_it_lies(const gc_dnn_graph_t *g, uint32_t k) {
  gc_dnn_tensor_t t = g->tensors[k];
  const int is_swapped = t.strides[3] != 1 && t.sizes[3] != 1 && k != GC_ATT_STATS && k < GC_ATT_SUMS;
  if (!is_swapped) return t;
  t.sizes[2] = g->tensors[k].sizes[3], t.sizes[3] = g->tensors[k].sizes[2];
  t.strides[2] = g->tensors[k].strides[3], t.strides[3] = g->tensors[k].strides[2];
  return t;
}

static void check_attention_in(fixture_t *w, const gc_attention_t *a, int order, double (*bias)(void)) {
  gc_dnn_graph_t forward, backward;
  array_t t[GC_ATT_N_IN_MEMORY];
  double *expected[GC_ATT_N_IN_MEMORY];
  gc_attention_forward(a, &forward);
  gc_attention_backward(a, order, &backward);
  for (uint32_t k = 0; k < GC_ATT_N_IN_MEMORY; k++) {
    const gc_dnn_tensor_t lies = as_it_lies(&backward, k);
    t[k] = (array_t){.n = 1};
    if (k == GC_ATT_BIAS && a->bias_dtype) t[k] = make_array_of(w, &lies, bias);
    else if (k == GC_ATT_KEEP && a->keep_dtype) t[k] = make_array_of(w, &lies, keep_number);
    else if (k != GC_ATT_BIAS && k != GC_ATT_KEEP) t[k] = make_array(w, &lies);
    expected[k] = calloc((size_t)t[k].n, sizeof(double));
  }
  naive_attention(a, t, expected);
  run(w, &forward, plan_of(w, &forward), t, GC_ATT_N_IN_MEMORY);
  run(w, &backward, plan_of(w, &backward), t, GC_ATT_N_IN_MEMORY);
  static const struct {
    uint32_t what;
    double most;
  } wanted[] = {{GC_ATT_O, 8e-3}, {GC_ATT_STATS, 1e-4}, {GC_ATT_GQ, 1e-2}, {GC_ATT_GK, 1e-2}, {GC_ATT_GV, 1e-2}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    const uint32_t k = wanted[i].what;
    const double got = difference(w, &t[k], expected[k]);
    if (!(got <= wanted[i].most * largest(expected[k], t[k].n, 1)))
      fail_msg("attention of %d x %d x %d%s%s%s%s, in %s: tensor %u is off by %g", (int)a->n_query, (int)a->n_key,
               (int)a->width, a->is_causal ? ", causal" : "", a->bias_dtype ? ", a mask" : "",
               a->keep_dtype ? ", dropout" : "", order == GC_ATT_ORDERED ? "" : ", sums in any order",
               aot_dtype_name(a->dtype), k, got);
  }
  for (uint32_t k = 0; k < GC_ATT_N_IN_MEMORY; k++) {
    if (t[k].at) drop_array(w, &t[k]);
    free(expected[k]);
  }
}

/* GQ_SUMS begins with any numbers. */
static void check_attention(fixture_t *w, const gc_attention_t *a) {
  check_attention_in(w, a, GC_ATT_ORDERED, bias_number);
  check_attention_in(w, a, GC_ATT_IN_ANY_ORDER, bias_number);
}

static void attention_is_that_of_the_definition(void **state) {
  static const struct {
    int64_t n_query, n_key, width, width_v;
    int is_causal, is_packed;
    int32_t dtype;
  } cases[] = {
      {16, 16, 8, 8, 1, 1, AOT_BF16}, {7, 7, 16, 16, 0, 1, AOT_F16},  {9, 5, 8, 8, 0, 0, AOT_BF16},
      {5, 9, 8, 16, 1, 0, AOT_F16},   {1, 12, 64, 64, 0, 0, AOT_F16}, {33, 33, 32, 32, 1, 1, AOT_F16},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const gc_attention_t a = attention(cases[i].n_query, cases[i].n_key, cases[i].width, cases[i].width_v,
                                       cases[i].is_causal, cases[i].is_packed, cases[i].dtype);
    check_attention(*state, &a);
  }
}

static void masks_dropout_and_shared_heads_are_those_of_the_definition(void **state) {
  static const struct {
    int64_t n_query, n_key, width, share;
    int is_causal, of_batch, of_head, is_dropped;
    int32_t bias_dtype, dtype;
  } cases[] = {
      {16, 16, 8, 1, 0, 1, 0, 0, AOT_BF16, AOT_BF16}, {9, 21, 16, 1, 0, 0, 0, 0, AOT_F32, AOT_BF16},
      {12, 15, 8, 1, 0, 1, 1, 0, AOT_F32, AOT_F16},   {16, 24, 64, 2, 0, 1, 0, 0, AOT_BF16, AOT_BF16},
      {33, 33, 32, 3, 1, 0, 0, 0, 0, AOT_F16},        {16, 16, 8, 1, 0, 0, 0, 1, 0, AOT_BF16},
      {9, 21, 16, 1, 1, 0, 0, 1, 0, AOT_BF16},        {24, 40, 16, 2, 0, 1, 0, 1, AOT_BF16, AOT_BF16},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int is_packed = 0; is_packed <= (cases[i].share == 1 && cases[i].n_query == cases[i].n_key); is_packed++) {
      gc_attention_t a = attention(cases[i].n_query, cases[i].n_key, cases[i].width, cases[i].width, cases[i].is_causal,
                                   is_packed, cases[i].dtype);
      if (cases[i].share > 1) share_heads(&a, cases[i].share);
      if (cases[i].bias_dtype) add_bias(&a, cases[i].bias_dtype, cases[i].of_batch, cases[i].of_head);
      if (cases[i].is_dropped) add_keep(&a);
      check_attention(*state, &a);
    }
}

/* As drawn: two combinations that nothing thought of were wrong on a GPU. Rows of 16 keys and more see one. */
static void drawn_attention_is_that_of_the_definition(void **state) {
  fixture_t *w = *state;
  const int64_t most = w->is_double ? 50 : 200; /* keys */
  for (int i = 0; i < 12; i++) {
    const int64_t n_key = drawn(16, most), n_query = drawn(0, 2) ? drawn(1, most) : n_key, width = 8 * drawn(1, 16);
    const int64_t share = drawn(1, 3);
    const int is_causal = (int)drawn(0, 1), is_packed = share == 1 && n_query == n_key;
    gc_attention_t a = attention(n_query, n_key, width, width, is_causal, is_packed, drawn(0, 1) ? AOT_BF16 : AOT_F16);
    if (share > 1) share_heads(&a, share);
    if (!is_causal && drawn(0, 1)) add_bias(&a, drawn(0, 1) ? AOT_F32 : AOT_BF16, (int)drawn(0, 1), (int)drawn(0, 1));
    if (drawn(0, 1)) add_keep(&a);
    check_attention(w, &a);
  }
}

/* 21 keys leave a tile of an engine's unfilled, 64 do where tiles have 128, which 128 fill. */
static void scores_far_below_zero_have_finite_gradients(void **state) {
  static const int64_t n_keys[] = {21, 64, 128};
  for (size_t i = 0; i < sizeof n_keys / sizeof *n_keys; i++)
    for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
      gc_attention_t a = attention(9, n_keys[i], 64, 64, 0, 0, AOT_BF16);
      add_bias(&a, AOT_F32, 1, 0);
      if (is_dropped) add_keep(&a);
      check_attention_in(*state, &a, GC_ATT_ORDERED, low_number);
      check_attention_in(*state, &a, GC_ATT_IN_ANY_ORDER, low_number);
    }
}

/* The same gradients twice: tensor `what` of each run, which the caller frees. */
static void run_twice(fixture_t *w, const gc_attention_t *a, int order, array_t *t, char **out, uint32_t what) {
  gc_dnn_graph_t g;
  const size_t nbytes = (size_t)t[what].n * aot_dtype_size(t[what].type.dtype);
  gc_attention_backward(a, order, &g);
  for (int k = 0; k < 2; k++) {
    run(w, &g, plan_of(w, &g), t, GC_ATT_N_IN_MEMORY);
    out[k] = malloc(nbytes);
    assert_int_equal(w->cu.memcpy_to_host(out[k], t[what].at, nbytes, w->stream), GC_SUCCESS);
    assert_int_equal(w->cu.stream_synchronize(w->stream), GC_SUCCESS);
  }
}

/* Many keys, so that there are blocks of them side by side. */
static void ordered_sums_are_the_same_in_every_run(void **state) {
  fixture_t *w = *state;
  const gc_attention_t a = attention(64, 512, 64, 64, 0, 0, AOT_BF16);
  gc_dnn_graph_t forward, ordered, any;
  array_t t[GC_ATT_N_IN_MEMORY] = {{.n = 0}};
  char *of_ordered[2], *of_any[2];
  gc_attention_forward(&a, &forward);
  gc_attention_backward(&a, GC_ATT_ORDERED, &ordered);
  gc_attention_backward(&a, GC_ATT_IN_ANY_ORDER, &any);
  assert_false(gc_dnn_is_used(&ordered, GC_ATT_GQ_SUMS));
  assert_true(plan_of(w, &any)->workspace_nbytes < plan_of(w, &ordered)->workspace_nbytes);
  for (uint32_t k = 0; k < GC_ATT_N_IN_MEMORY; k++)
    if (gc_dnn_is_used(&any, k)) t[k] = make_array(w, (gc_dnn_tensor_t[]){as_it_lies(&any, k)});
  run(w, &forward, plan_of(w, &forward), t, GC_ATT_N_IN_MEMORY);

  run_twice(w, &a, GC_ATT_ORDERED, t, of_ordered, GC_ATT_GQ);
  const int64_t n = t[GC_ATT_GQ].n;
  assert_memory_equal(of_ordered[0], of_ordered[1], (size_t)n * 2);
  if (w->is_double) { /* whose sums lie as the tensor says; a GPU's engine has an order of its own for them */
    run_twice(w, &a, GC_ATT_IN_ANY_ORDER, t, of_any, GC_ATT_GQ_SUMS);
    assert_memory_not_equal(of_any[0], of_any[1], (size_t)n * 4);
    for (int k = 0; k < 2; k++) free(of_any[k]);
  }
  run_twice(w, &a, GC_ATT_IN_ANY_ORDER, t, of_any, GC_ATT_GQ);
  for (int64_t i = 0; i < n; i++) /* rounded once to bfloat16, of 8 bits */
    for (int k = 0; k < 2; k++) {
      const double v = rk_load_f(of_ordered[0] + 2 * i, AOT_BF16), u = rk_load_f(of_any[k] + 2 * i, AOT_BF16);
      if (!(fabs(u - v) <= 1e-3 + fabs(v) / 64)) fail_msg("element %d is %g ordered, and %g", (int)i, v, u);
    }
  for (int k = 0; k < 2; k++) free(of_ordered[k]), free(of_any[k]);
  for (uint32_t k = 0; k < GC_ATT_N_IN_MEMORY; k++)
    if (t[k].at) drop_array(w, &t[k]);
}

static void a_plan_is_kept_and_takes_any_number(void **state) {
  fixture_t *w = *state;
  gc_dnn_graph_t g;
  gc_attention_t a = attention(16, 16, 8, 8, 1, 1, AOT_BF16);
  gc_attention_forward(&a, &g);
  const gc_dnn_plan_t *p = plan_of(w, &g);
  a.scale = 0.7;
  gc_attention_forward(&a, &g);
  assert_ptr_equal(plan_of(w, &g), p);
  check_attention(w, &a);
  a.n_query = 15;
  gc_attention_forward(&a, &g);
  assert_ptr_not_equal(plan_of(w, &g), p);
}

static void what_no_engine_takes_is_told(void **state) {
  fixture_t *w = *state;
  gc_dnn_graph_t g;
  const gc_attention_t odd = attention(16, 16, 20, 20, 1, 0, AOT_BF16);
  gc_attention_forward(&odd, &g);
  const gc_dnn_plan_t *p = gc_dnn_plan(&w->dnn, &g);
  assert_non_null(p);
  assert_null(p->desc);
  assert_non_null(strstr(p->why, "cuDNN 9"));
  assert_ptr_equal(gc_dnn_plan(&w->dnn, &g), p); /* and it is not queried again */
}

static void plans_are_made_while_others_are_asked_for(void **state) {
  fixture_t *w = *state;
  gc_dnn_graph_t g;
  const gc_dnn_plan_t *taken[4], *odd;
  const gc_attention_t refused = attention(61, 16, 20, 20, 1, 0, AOT_BF16);
  const uint32_t n_made = w->dnn.n_made;
  double ms = 0;
  gc_plans_begin(&w->dnn, &w->cu, w->context);
  assert_non_null(w->dnn.making);
  for (int k = 0; k < 4; k++) {
    const gc_attention_t a = attention(61 + k, 16, 8, 8, 1, 0, AOT_BF16);
    gc_attention_forward(&a, &g);
    taken[k] = gc_dnn_plan(&w->dnn, &g);
    assert_non_null(taken[k]->graph); /* it waits, and has the workspace that such plans have */
    assert_null(taken[k]->desc);
    assert_int_equal(taken[k]->workspace_nbytes, 256);
    assert_ptr_equal(gc_dnn_plan(&w->dnn, &g), taken[k]);
  }
  gc_attention_forward(&refused, &g);
  odd = gc_dnn_plan(&w->dnn, &g);
  assert_non_null(odd->graph);
  const uint32_t n_other = gc_plans_end(&w->dnn, &ms);
  if (w->is_double) assert_int_equal(n_other, 1); /* the refused one */
  assert_true(ms > 0);
  assert_null(w->dnn.making);
  assert_int_equal(w->dnn.n_made, n_made + 4);
  for (int k = 0; k < 4; k++) assert_true(taken[k]->desc && !taken[k]->graph);
  assert_true(!odd->desc && !odd->graph && strstr(odd->why, "cuDNN 9"));
  assert_ptr_equal(gc_dnn_plan(&w->dnn, &g), odd);
  gc_plans_begin(&w->dnn, &w->cu, w->context); /* nothing requests anything */
  assert_int_equal(gc_plans_end(&w->dnn, &ms), 0);
}

static void memory_that_is_not_aligned_is_refused(void **state) {
  fixture_t *w = *state;
  gc_dnn_graph_t g;
  const gc_attention_t a = attention(16, 16, 8, 8, 1, 1, AOT_BF16);
  gc_address_t addresses[GC_DNN_MAX_TENSORS] = {0};
  if (!w->is_double) skip();
  gc_attention_forward(&a, &g);
  for (uint32_t k = 0; k < GC_ATT_N_IN_MEMORY; k++) addresses[k] = 4096;
  addresses[GC_ATT_V] += 8;
  assert_int_not_equal(gc_dnn_run(&w->dnn, plan_of(w, &g), &g, addresses, 4096, w->stream), 0);
}

/* What cuDNN 9.19 requested on an H100, and with sums in any order for an H200, in bytes. */
static void memory_is_planned_as_engines_ask_for_it(void **state) {
  static const struct {
    int64_t n_batch, n_head, share, n_query, n_key;
    uint64_t nbytes, in_any_order;
  } cases[] = {{32, 12, 1, 1024, 1024, 805306624, 256}, {2, 3, 1, 7, 7, 98560, 256},
               {2, 3, 1, 197, 197, 786688, 256},        {2, 3, 1, 100, 50, 196864, 256},
               {2, 3, 1, 50, 100, 98560, 256},          {1, 1, 1, 1, 1, 16640, 256},
               {4, 16, 2, 7, 7, 1163520, 114944},       {4, 16, 4, 197, 197, 11616512, 3227904}};
  gc_dnn_graph_t g;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gc_attention_t a = attention(cases[i].n_query, cases[i].n_key, 64, 64, 1, 0, AOT_BF16);
    a.n_batch = cases[i].n_batch;
    a.n_head = cases[i].n_head;
    a.share = cases[i].share;
    gc_attention_backward(&a, GC_ATT_ORDERED, &g);
    assert_int_equal(gc_dnn_usual_workspace(&g), cases[i].nbytes);
    gc_attention_backward(&a, GC_ATT_IN_ANY_ORDER, &g);
    assert_int_equal(gc_dnn_usual_workspace(&g), cases[i].in_any_order);
    gc_attention_forward(&a, &g);
    assert_int_equal(gc_dnn_usual_workspace(&g), 256);
  }
}

/* ---- convolutions ---- */

typedef struct conv_case {
  int32_t dtype, rank;
  int64_t n, c, k, groups;
  int64_t in[3], kernel[3], stride[3], pad[3], dilation[3];
  int is_channels_last;
} conv_case_t;

static void set_dense(int64_t *strides, const int64_t *sizes, int32_t rank, int is_channels_last) {
  int64_t n = is_channels_last ? sizes[1] : 1;
  strides[1] = 1;
  for (int32_t d = rank; d-- > 0;) {
    if (d == 1 && is_channels_last) continue;
    strides[d] = n;
    n *= sizes[d];
  }
}

static gc_conv_t conv_of(const conv_case_t *t) {
  gc_conv_t c = {.dtype = t->dtype, .rank = t->rank, .window = {.rank = t->rank}};
  const int64_t first[3][2] = {{t->n, t->c}, {t->k, t->c / t->groups}, {t->n, t->k}};
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t reach = t->in[d] + 2 * t->pad[d] - t->dilation[d] * (t->kernel[d] - 1) - 1;
    c.sizes[GC_CONV_X][2 + d] = t->in[d];
    c.sizes[GC_CONV_W][2 + d] = t->kernel[d];
    c.sizes[GC_CONV_Y][2 + d] = reach / t->stride[d] + 1;
    c.window.pad[d] = t->pad[d], c.window.stride[d] = t->stride[d], c.window.dilation[d] = t->dilation[d];
  }
  for (int i = 0; i < GC_CONV_N_TENSORS; i++) {
    memcpy(c.sizes[i], first[i], sizeof first[i]);
    set_dense(c.strides[i], c.sizes[i], t->rank + 2, t->is_channels_last);
  }
  return c;
}

static int next(const int64_t *sizes, int32_t rank, int64_t *index) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (++index[d] < sizes[d]) return 1;
    index[d] = 0;
  }
  return 0;
}
static int64_t place_in(const gc_dnn_tensor_t *t, const int64_t *index) {
  int64_t at = 0;
  for (int32_t d = 0; d < t->rank; d++) at += index[d] * t->strides[d];
  return at;
}

/* All terms, each given to what the direction wants. */
static void naive_conv(const gc_conv_t *c, int32_t kind, const array_t *t, double *out) {
  const gc_dnn_tensor_t *x = &t[GC_CONV_X].type, *w = &t[GC_CONV_W].type, *y = &t[GC_CONV_Y].type;
  const int64_t k_group = w->sizes[0] / (x->sizes[1] / w->sizes[1]);
  int64_t iy[GC_DNN_MAX_RANK] = {0}, r[GC_DNN_MAX_RANK] = {0};
  do {
    do { /* over [c, ..] of a window */
      int64_t ix[GC_DNN_MAX_RANK] = {iy[0], iy[1] / k_group * w->sizes[1] + r[0]};
      int64_t iw[GC_DNN_MAX_RANK] = {iy[1], r[0], r[1], r[2], r[3]};
      int is_inside = 1;
      for (int32_t d = 0; d < c->rank; d++) {
        ix[2 + d] = iy[2 + d] * c->window.stride[d] + iw[2 + d] * c->window.dilation[d] - c->window.pad[d];
        is_inside &= ix[2 + d] >= 0 && ix[2 + d] < x->sizes[2 + d];
      }
      if (!is_inside) continue;
      const int64_t ax = place_in(x, ix), aw = place_in(w, iw), ay = place_in(y, iy);
      if (kind == GC_DNN_CONV_FORWARD) out[ay] += t[GC_CONV_X].v[ax] * t[GC_CONV_W].v[aw];
      else if (kind == GC_DNN_CONV_DATA) out[ax] += t[GC_CONV_Y].v[ay] * t[GC_CONV_W].v[aw];
      else out[aw] += t[GC_CONV_Y].v[ay] * t[GC_CONV_X].v[ax];
    } while (next(w->sizes + 1, w->rank - 1, r));
  } while (next(y->sizes, y->rank, iy));
}

static void check_conv(fixture_t *w, const conv_case_t *one, int32_t kind) {
  static const uint32_t result[] = {
      [GC_DNN_CONV_FORWARD] = GC_CONV_Y, [GC_DNN_CONV_DATA] = GC_CONV_X, [GC_DNN_CONV_WEIGHTS] = GC_CONV_W};
  const gc_conv_t c = conv_of(one);
  gc_dnn_graph_t g;
  array_t t[GC_CONV_N_TENSORS];
  gc_conv_graph(&c, kind, &g);
  for (uint32_t k = 0; k < GC_CONV_N_TENSORS; k++) t[k] = make_array(w, &g.tensors[k]);
  double *expected = calloc((size_t)t[result[kind]].n, sizeof *expected);
  naive_conv(&c, kind, t, expected);
  run(w, &g, plan_of(w, &g), t, GC_CONV_N_TENSORS);
  const double got = difference(w, &t[result[kind]], expected) / largest(expected, t[result[kind]].n, 1e-3);
  const double most = one->dtype == AOT_F32 ? 4e-6 : one->dtype == AOT_F16 ? 1e-3 : 8e-3;
  if (!(got <= most))
    fail_msg(
        "%s, direction %d, %d of %d channels to %d in %d groups, %d x %d by %d x %d, steps %d x %d: off by %g of all",
        aot_dtype_name(one->dtype), kind, (int)one->n, (int)one->c, (int)one->k, (int)one->groups, (int)one->in[0],
        (int)one->in[1], (int)one->kernel[0], (int)one->kernel[1], (int)one->stride[0], (int)one->stride[1], got);
  for (uint32_t k = 0; k < GC_CONV_N_TENSORS; k++) drop_array(w, &t[k]);
  free(expected);
}

static void convolutions_are_those_of_the_definition(void **state) {
  static const conv_case_t cases[] = {
      {AOT_F32, 2, 2, 3, 4, 1, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
      {AOT_F32, 2, 1, 4, 6, 2, {9, 8}, {3, 2}, {2, 1}, {0, 1}, {1, 2}, 0},
      {AOT_F32, 2, 1, 4, 4, 4, {1, 12}, {1, 5}, {1, 3}, {0, 2}, {1, 1}, 0},
      {AOT_F32, 3, 1, 2, 3, 1, {4, 5, 3}, {2, 3, 1}, {1, 2, 1}, {1, 0, 0}, {1, 1, 1}, 0},
      {AOT_BF16, 2, 2, 8, 8, 1, {6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 0},
      {AOT_F16, 2, 2, 8, 16, 1, {6, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {AOT_F32, 2, 2, 8, 8, 1, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int32_t kind = GC_DNN_CONV_FORWARD; kind <= GC_DNN_CONV_WEIGHTS; kind++) check_conv(*state, &cases[i], kind);
}

static void drawn_convolutions_are_those_of_the_definition(void **state) {
  fixture_t *w = *state;
  static const int32_t dtypes[] = {AOT_F32, AOT_BF16, AOT_F16};
  for (int i = 0; i < (w->is_double ? 12 : 24); i++) {
    conv_case_t one = {.dtype = dtypes[drawn(0, 2)], .rank = 2 + !drawn(0, 3), .n = drawn(1, 5)};
    one.groups = drawn(0, 1) ? 1 : drawn(2, 8);
    one.c = one.groups * drawn(1, 16);
    one.k = one.groups * drawn(1, 16);
    one.is_channels_last = (int)drawn(0, 1);
    for (int32_t d = 0; d < one.rank; d++) {
      one.in[d] = drawn(1, one.rank == 3 ? 6 : 20);
      one.kernel[d] = drawn(1, one.rank == 3 ? 3 : 7);
      one.stride[d] = drawn(1, 3);
      one.dilation[d] = drawn(1, 2);
      const int64_t lacks = one.dilation[d] * (one.kernel[d] - 1) + 1 - one.in[d]; /* until a window fits */
      one.pad[d] = drawn(0, 2) + (lacks > 0 ? (lacks + 1) / 2 : 0);
    }
    for (int32_t kind = GC_DNN_CONV_FORWARD; kind <= GC_DNN_CONV_WEIGHTS; kind++) check_conv(w, &one, kind);
  }
}

/* ---- the library ---- */

static void a_missing_library_is_told(void **state) {
  gc_cudnn_t c = {.folder = "/nowhere"};
  char why[400];
  (void)state;
  assert_int_equal(gc_cudnn_open(&c, why, sizeof why), -1);
  assert_non_null(strstr(why, "cuDNN is not there (libcudnn.so.9): /nowhere/"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention_is_that_of_the_definition),
      cmocka_unit_test(masks_dropout_and_shared_heads_are_those_of_the_definition),
      cmocka_unit_test(drawn_attention_is_that_of_the_definition),
      cmocka_unit_test(scores_far_below_zero_have_finite_gradients),
      cmocka_unit_test(ordered_sums_are_the_same_in_every_run),
      cmocka_unit_test(a_plan_is_kept_and_takes_any_number),
      cmocka_unit_test(what_no_engine_takes_is_told),
      cmocka_unit_test(plans_are_made_while_others_are_asked_for),
      cmocka_unit_test(memory_that_is_not_aligned_is_refused),
      cmocka_unit_test(memory_is_planned_as_engines_ask_for_it),
      cmocka_unit_test(convolutions_are_those_of_the_definition),
      cmocka_unit_test(drawn_convolutions_are_those_of_the_definition),
      cmocka_unit_test(a_missing_library_is_told),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
