/* Calls in flight: forwards before their backwards, in any order, give what they give one by one.
 * calls_program PIPELINE MODEL PROGRAM BACKEND: the mlp; calls_program.ir, which draws numbers and changes a buffer. */
#include "api_check.h"

#include <stdlib.h>

#define N_CALLS 5

/* ---- the mlp ---- */

static aot_tensor_t inputs_of(int k, float *x, aot_tensor_t *y) {
  aot_tensor_t in[2];
  make_inputs(in);
  for (int i = 0; i < 8 * 16; i++) x[i] = (float)cos(0.3 * i + k);
  in[0].data = x;
  *y = in[1];
  return in[0];
}

typedef struct result {
  float loss, gradient[16];
} result_t;

static result_t result_of(aothost_call_t *c) {
  result_t r = {-1, {0}};
  aot_tensor_t t;
  if (aothost_call_get(c, "output.0", &t) == AOT_OK) r.loss = ((const float *)t.data)[t.offset];
  if (aothost_call_get(c, "grad.m.0.weight", &t) == AOT_OK)
    memcpy(r.gradient, (const float *)t.data + t.offset, sizeof r.gradient);
  return r;
}

static int same(const result_t *a, const result_t *b) { return memcmp(a, b, sizeof *a) == 0; }

static void in_any_order(aothost_t *h) {
  static const int order[N_CALLS] = {2, 0, 4, 1, 3};
  static float x[N_CALLS][8 * 16];
  aothost_call_t *c[N_CALLS] = {NULL};
  aot_tensor_t in[2], tangent;
  result_t alone[N_CALLS], r;
  for (int k = 0; k < N_CALLS; k++) {
    in[0] = inputs_of(k, x[k], &in[1]);
    CHECK(aothost_call_open(h, &c[k]) == AOT_OK);
    CHECK(aothost_call_forward(c[k], in, 2, 0) == AOT_OK && aothost_call_backward(c[k], NULL, 0) == AOT_OK);
    alone[k] = result_of(c[k]);
    CHECK(alone[k].loss > 0 && (k == 0 || !same(&alone[k], &alone[k - 1])));
  }
  for (int k = 0; k < N_CALLS; k++) {
    in[0] = inputs_of(k, x[k], &in[1]);
    CHECK(aothost_call_forward(c[k], in, 2, 0) == AOT_OK);
    memset(x[k], 0, sizeof x[k]); /* the inputs were copied */
    CHECK(aothost_call_get(c[k], "grad.m.0.weight", &tangent) == AOT_E_NOT_FOUND);
  }
  for (int i = 0; i < N_CALLS; i++) CHECK(aothost_call_backward(c[order[i]], NULL, 0) == AOT_OK);
  for (int k = 0; k < N_CALLS; k++) CHECK((r = result_of(c[k]), same(&r, &alone[k])));
  /* again, with another tangent */
  static float two = 2;
  aothost_call_close(c[0]);
  CHECK(aothost_call_get(c[1], "output.0", &tangent) == AOT_OK);
  tangent.data = &two;
  tangent.nbytes = sizeof two;
  tangent.offset = 0;
  CHECK(aothost_call_backward(c[1], &tangent, 1) == AOT_OK);
  r = result_of(c[1]);
  for (int i = 0; i < 16; i++) CHECK(r.gradient[i] == 2 * alone[1].gradient[i]);
  /* the first call of the handle is one more, and a closed one makes room */
  in[0] = inputs_of(0, x[0], &in[1]);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && number(h, "output.0") == alone[0].loss);
  CHECK(aothost_call_open(h, &c[0]) == AOT_OK && aothost_call_backward(c[0], NULL, 0) == AOT_E_PRECONDITION);
  CHECK(aothost_call_backward(c[3], NULL, 0) == AOT_OK && (r = result_of(c[3]), same(&r, &alone[3])));
  for (int k = 0; k < N_CALLS - 1; k++) aothost_call_close(c[k]); /* the last goes with the handle */
  CHECK(aothost_backward(h, NULL, 0) == AOT_OK);
}

/* What the backward reads in addition to what was saved must be what the forward read. */
static void changed_since(aothost_t *h) {
  static float x[2][8 * 16];
  aothost_call_t *a = NULL, *b = NULL;
  aot_tensor_t in[2], w;
  result_t before, after;
  CHECK(aothost_call_open(h, &a) == AOT_OK && aothost_call_open(h, &b) == AOT_OK);
  in[0] = inputs_of(1, x[0], &in[1]);
  CHECK(aothost_call_forward(a, in, 2, 0) == AOT_OK && aothost_call_forward(b, in, 2, 0) == AOT_OK);
  CHECK(aothost_call_update(a, 0.1) == AOT_E_PRECONDITION); /* no gradients yet */
  CHECK(aothost_call_backward(a, NULL, 0) == AOT_OK);
  before = result_of(a);
  CHECK(aothost_call_update(a, 0.1) == AOT_OK);
  CHECK(aothost_call_backward(b, NULL, 0) == AOT_E_PRECONDITION);
  CHECK(strstr(last_message, "was modified after the forward that this backward belongs to") != NULL);
  CHECK(aothost_call_forward(b, in, 2, 0) == AOT_OK && aothost_call_backward(b, NULL, 0) == AOT_OK);
  after = result_of(b);
  CHECK(after.loss < before.loss); /* parameters are of all calls */
  CHECK(aothost_call_forward(b, in, 2, 0) == AOT_OK);
  CHECK(aothost_get(h, "param.m.2.weight", &w) == AOT_OK && aothost_set(h, "param.m.2.weight", &w) == AOT_OK);
  CHECK(aothost_call_backward(b, NULL, 0) == AOT_E_PRECONDITION && strstr(last_message, "m.2.weight") != NULL);
  CHECK(aothost_call_forward(b, in, 2, 0) == AOT_OK && aothost_reset(h) == AOT_OK);
  CHECK(aothost_call_backward(b, NULL, 0) == AOT_E_PRECONDITION);
}

/* ---- random numbers, and a buffer ---- */

static const int64_t n64[1] = {64};

static aot_tensor_t vector(float *data) {
  aot_tensor_t t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.nbytes = 64 * sizeof *data;
  t.dtype = AOT_F32;
  t.rank = 1;
  t.sizes = n64;
  return t;
}

/* The gradient of w: 2 b where the number was stored, else 0; so b, in a bit mask of 64 places. 0: neither. */
static float mask_of(aothost_call_t *c, uint64_t *mask) {
  aot_tensor_t t;
  float b = 0;
  *mask = 0;
  if (aothost_call_get(c, "grad.w", &t) != AOT_OK) return 0;
  const float *g = (const float *)t.data + t.offset;
  for (int i = 0; i < 64; i++)
    if (g[i] != 0) *mask |= (uint64_t)1 << i, b = g[i] / 2;
  for (int i = 0; i < 64; i++)
    if (g[i] != 0 && g[i] != 2 * b) return 0;
  return b;
}

static void draws_and_buffers(aothost_t *h) {
  float ones[64];
  uint64_t mask[3], again;
  aothost_call_t *c[3] = {NULL};
  aot_tensor_t t;
  for (int i = 0; i < 64; i++) ones[i] = 1;
  aot_tensor_t x = vector(ones);
  CHECK(aothost_set(h, "param.w", &x) == AOT_OK && aothost_set(h, "buffer.b", &x) == AOT_OK);
  CHECK(aothost_seed(h, 7, 0) == AOT_OK);
  for (int k = 0; k < 3; k++)
    CHECK(aothost_call_open(h, &c[k]) == AOT_OK && aothost_call_forward(c[k], &x, 1, 0) == AOT_OK);
  CHECK(aothost_seed(h, 8, 100) == AOT_OK); /* of later forwards */
  for (int k = 2; k >= 0; k--) {
    CHECK(aothost_call_backward(c[k], NULL, 0) == AOT_OK);
    CHECK(mask_of(c[k], &mask[k]) == (float)(k + 1)); /* what b held when that forward began */
    CHECK(aothost_call_get(c[k], "output.0", &t) == AOT_OK);
    int kept = 0;
    for (int i = 0; i < 64; i++) kept += mask[k] >> i & 1;
    CHECK(((const float *)t.data)[t.offset] ==
          (float)(2 * kept * (k + 1))); /* the backward kept what the forward did */
  }
  CHECK(mask[0] != mask[1] && mask[1] != mask[2]);
  CHECK(aothost_get(h, "buffer.b", &t) == AOT_OK && ((const float *)t.data)[t.offset] == 4);
  CHECK(aothost_seed(h, 7, 0) == AOT_OK && aothost_call_forward(c[1], &x, 1, 0) == AOT_OK);
  CHECK(aothost_call_backward(c[1], NULL, 0) == AOT_OK && mask_of(c[1], &again) == 4 && again == mask[0]);
}

int main(int argc, char **argv) {
  static const char drawing[] = "aot: 1\nvars: {partition: partition-default, backend: backend-ref}\n"
                                "stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: \"${partition}\"}, "
                                "{use: \"${backend}\"}]\n";
  char backend[64];
  const char *sets[] = {backend, "vars.partition=partition-mincut"};
  aothost_config_t config = {0};
  aothost_t *h = NULL;
  if (argc < 5) return 2;
  snprintf(backend, sizeof backend, "vars.backend=%s", argv[4]);
  config.struct_size = sizeof config;
  config.message = note;
  config.sets = sets;
  config.n_sets = 2;
  config.model = argv[2];
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK);
  aothost_call_t *early = NULL;
  CHECK(aothost_call_open(h, &early) == AOT_E_PRECONDITION && !early);
  CHECK(aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  in_any_order(h);
  changed_since(h);
  aothost_close(h);
  config.model = argv[3];
  for (config.n_sets = 1; config.n_sets <= 2;
       config.n_sets++) { /* what is saved is another matter for each partition */
    CHECK(aothost_open_text(drawing, sizeof drawing - 1, "p.yaml", &config, &h) == AOT_OK);
    CHECK(aothost_compile(h, 0) == AOT_OK);
    draws_and_buffers(h);
    aothost_close(h);
  }
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
