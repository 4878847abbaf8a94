/* Calls and leaves in the caller's memory. bound_program PIPELINE MODEL PROGRAM ALIAS_PROGRAM BACKEND: the mlp, with
 * sgd; bound_program.ir, of a batch of any size; alias_program.ir. */
#include "api_check.h"

#include <stdlib.h>

static int is_shared; /* the device's memory is the host's */

/* Zeros at a multiple of 64, or 4 bytes after it, a few times over. Never freed: the process is short. */
static void *room(uint64_t nbytes, int misplaced) {
  char *memory = calloc(1, (size_t)nbytes + 192);
  if (!memory) exit(2);
  return memory + (64 - (uintptr_t)memory % 64) + 4 * misplaced;
}

/* A descriptor with sizes and strides of its own: those that are got do not last. */
static void keep_geometry(aot_tensor_t *t) {
  int64_t *dims = room(2 * (uint64_t)t->rank * sizeof(int64_t), 0);
  t->sizes = memcpy(dims, t->sizes, (size_t)t->rank * sizeof(int64_t));
  t->strides = memcpy(dims + t->rank, t->strides, (size_t)t->rank * sizeof(int64_t));
}

/* Memory for a port as the planned call has it. */
static aot_tensor_t memory_for(aothost_call_t *c, const char *key, int misplaced) {
  aot_tensor_t t = {0};
  CHECK(aothost_call_shape(c, key, &t) == AOT_OK && !t.data);
  keep_geometry(&t);
  t.data = room(t.nbytes, misplaced);
  return t;
}

static int equal(const aot_tensor_t *a, const aot_tensor_t *b) {
  return a->nbytes == b->nbytes && memcmp(a->data, b->data, (size_t)a->nbytes) == 0;
}

/* What the first call of the handle gives, which is bound to nothing. */
static aot_tensor_t kept(aothost_t *h, const char *key) {
  aot_tensor_t t = {0};
  CHECK(aothost_get(h, key, &t) == AOT_OK);
  keep_geometry(&t);
  void *copy = room(t.nbytes, 0);
  memcpy(copy, t.data, (size_t)t.nbytes);
  t.data = copy;
  return t;
}

/* ---- a call ---- */

static void everything_bound(aothost_t *h, const aot_tensor_t *in, int misplaced) {
  aothost_call_t *c = NULL;
  aot_tensor_t x, y, loss, dw, db, got, expected_w, expected_b;
  CHECK(aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK);
  const float expected = number(h, "output.0");
  expected_w = kept(h, "grad.m.0.weight");
  expected_b = kept(h, "grad.m.4.bias");
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_shape(c, "output.0", &got) == AOT_E_PRECONDITION);
  CHECK(aothost_call_plan(c, in, 2) == AOT_OK);
  x = memory_for(c, "input.0", misplaced);
  y = memory_for(c, "input.1", misplaced ? 2 : 0);
  loss = memory_for(c, "output.0", misplaced);
  dw = memory_for(c, "grad.m.0.weight", misplaced);
  db = memory_for(c, "grad.m.4.bias", misplaced);
  memcpy(x.data, in[0].data, (size_t)in[0].nbytes);
  memcpy(y.data, in[1].data, (size_t)in[1].nbytes);
  CHECK(aothost_call_bind(c, "input.0", &x) == AOT_OK && aothost_call_bind(c, "output.0", &loss) == AOT_OK);
  CHECK(aothost_call_forward(c, NULL, 0, 0) == AOT_E_PRECONDITION);
  CHECK(strstr(last_message, "input 1 is not bound") != NULL);
  CHECK(aothost_call_bind(c, "input.1", &y) == AOT_OK);
  CHECK(aothost_call_bind(c, "grad.m.0.weight", &dw) == AOT_OK && aothost_call_bind(c, "grad.m.4.bias", &db) == AOT_OK);
  CHECK(aothost_call_forward(c, in, 2, 0) == AOT_E_INVALID); /* which of the two? */
  for (int round = 0; round < 3; round++) {
    *(float *)loss.data = -1;
    memset(dw.data, 0, (size_t)dw.nbytes);
    CHECK(aothost_call_forward(c, NULL, 0, 0) == AOT_OK && *(float *)loss.data == expected);
    CHECK(aothost_call_backward(c, NULL, 0) == AOT_OK && equal(&dw, &expected_w) && equal(&db, &expected_b));
  }
  CHECK(aothost_call_get(c, "output.0", &got) == AOT_OK && (misplaced || got.data == loss.data));
  CHECK(aothost_call_get(c, "grad.m.0.weight", &got) == AOT_OK && (misplaced || got.data == dw.data));
  ((float *)x.data)[0] += 1; /* the next run sees it */
  CHECK(aothost_call_forward(c, NULL, 0, 0) == AOT_OK && *(float *)loss.data != expected);
  CHECK(aothost_call_bind(c, "output.0", NULL) == AOT_OK && aothost_call_backward(c, NULL, 0) == AOT_E_PRECONDITION);
  *(float *)loss.data = -1;
  CHECK(aothost_call_forward(c, NULL, 0, 0) == AOT_OK && *(float *)loss.data == -1);
  aothost_call_close(c);
}

/* Saved values are the caller's: the backward reads what is in his memory then. */
static void saved_values(aothost_t *h, const aot_tensor_t *in) {
  aothost_call_t *c = NULL;
  aot_tensor_t saved[16], got, expected, one;
  char key[32];
  uint32_t n_bound = 0;
  static float ones = 1;
  CHECK(aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK);
  expected = kept(h, "grad.m.0.weight");
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_plan(c, in, 2) == AOT_OK);
  CHECK(aothost_n_saved(h) > 1 && aothost_n_saved(h) <= 16);
  for (uint32_t k = 0; k < aothost_n_saved(h); k++) {
    snprintf(key, sizeof key, "saved.%u", k);
    CHECK(aothost_call_plan(c, in, 2) == AOT_OK);
    if (aothost_call_shape(c, key, &got) == AOT_E_NOT_FOUND) continue;
    saved[n_bound] = memory_for(c, key, 0);
    CHECK(aothost_call_bind(c, key, &saved[n_bound++]) == AOT_OK);
  }
  CHECK(n_bound > 1 && aothost_call_forward(c, in, 2, 0) == AOT_OK);
  one = (aot_tensor_t){.data = &ones, .nbytes = sizeof ones, .dtype = AOT_F32};
  CHECK(aothost_call_backward(c, &one, 1) == AOT_OK);
  CHECK(aothost_call_get(c, "grad.m.0.weight", &got) == AOT_OK && equal(&got, &expected));
  for (uint32_t k = 0; k < n_bound; k++)
    if (saved[k].dtype == AOT_F32) memset(saved[k].data, 0, (size_t)saved[k].nbytes);
  if (is_shared) { /* elsewhere the copy on the device is read, which is as it was */
    CHECK(aothost_call_backward(c, &one, 1) == AOT_OK);
    CHECK(aothost_call_get(c, "grad.m.0.weight", &got) == AOT_OK && !equal(&got, &expected));
  }
  saved[0].data = (char *)saved[0].data + 4;
  CHECK(aothost_call_bind(c, "saved.0", &saved[0]) == AOT_OK);
  if (is_shared) CHECK(aothost_call_forward(c, in, 2, 0) == AOT_E_INVALID && strstr(last_message, "saved value 0"));
  snprintf(key, sizeof key, "saved.%u", aothost_n_saved(h));
  CHECK(aothost_call_bind(c, key, &saved[0]) == AOT_E_NOT_FOUND && strstr(last_message, "there is no saved.") != NULL);
  aothost_call_close(c);
}

static void wrong_memory(aothost_t *h, const aot_tensor_t *in) {
  aothost_call_t *c = NULL;
  aot_tensor_t t, whole;
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_plan(c, in, 2) == AOT_OK);
  whole = memory_for(c, "grad.m.0.weight", 0);
  t = whole;
  t.dtype = AOT_I32;
  CHECK(aothost_call_bind(c, "grad.m.0.weight", &t) == AOT_OK && aothost_call_forward(c, in, 2, 0) == AOT_E_INVALID);
  CHECK(strstr(last_message, "the gradient of m.0.weight is i32[32, 16], the program has f32[32, 16] there") != NULL);
  CHECK(aothost_call_bind(c, "grad.m.0.weight", NULL) == AOT_OK && aothost_call_forward(c, in, 2, 0) == AOT_OK);
  t = whole;
  t.nbytes = 8;
  CHECK(aothost_call_bind(c, "grad.m.0.weight", &t) == AOT_E_INVALID);
  /* memory that is written is nothing else's */
  aot_tensor_t bias = {0};
  CHECK(aothost_call_bind(c, "grad.m.0.weight", &whole) == AOT_OK);
  CHECK(aothost_call_plan(c, in, 2) == AOT_OK && aothost_call_shape(c, "grad.m.4.bias", &bias) == AOT_OK);
  bias.data = (char *)whole.data + 1024;
  CHECK(aothost_call_bind(c, "grad.m.4.bias", &bias) == AOT_OK && aothost_call_forward(c, in, 2, 0) == AOT_E_INVALID);
  CHECK(strstr(last_message, "the gradient of m.0.weight and that bound to the gradient of m.4.bias overlap") != NULL);
  CHECK(aothost_call_bind(c, "grad.m.4.bias", NULL) == AOT_OK && aothost_call_forward(c, in, 2, 0) == AOT_OK);
  CHECK(aothost_bind(h, "param.m.0.weight", &whole) == AOT_OK && aothost_call_forward(c, in, 2, 0) == AOT_E_INVALID);
  CHECK(strstr(last_message, "that bound to m.0.weight overlap") ||
        strstr(last_message, "bound to m.0.weight and that"));
  CHECK(aothost_bind(h, "param.m.0.weight", NULL) == AOT_OK && aothost_reset(h) == AOT_OK);
  CHECK(aothost_call_bind(c, "output.7", &whole) == AOT_E_NOT_FOUND);
  CHECK(aothost_call_bind(c, "param.m.0.weight", &whole) == AOT_E_NOT_FOUND);
  CHECK(aothost_bind(h, "grad.m.0.weight", &whole) == AOT_E_NOT_FOUND);
  t = whole;
  t.sizes = (const int64_t[]){16, 32};
  t.strides = NULL;
  CHECK(aothost_bind(h, "param.m.0.weight", &t) == AOT_E_INVALID &&
        strstr(last_message, "expected f32[32, 16]") != NULL);
  t = whole;
  t.data = (char *)whole.data + 4;
  if (is_shared) CHECK(aothost_bind(h, "param.m.0.weight", &t) == AOT_E_INVALID);
  aothost_call_close(c);
}

/* ---- a leaf ---- */

/* w is read and updated where the caller has it; its gradient may be another when the update comes. */
static void parameter_bound(aothost_t *h, const aot_tensor_t *in) {
  aot_tensor_t w, dw, got;
  aothost_call_t *c = NULL;
  CHECK(aothost_reset(h) == AOT_OK && aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK);
  const float loss = number(h, "output.0");
  w = kept(h, "param.m.0.weight");
  const aot_tensor_t before = kept(h, "param.m.0.weight"), gradient = kept(h, "grad.m.0.weight");
  CHECK(aothost_bind(h, "param.m.0.weight", &w) == AOT_OK);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && number(h, "output.0") == loss);
  CHECK(aothost_backward(h, NULL, 0) == AOT_OK && aothost_update(h, 0.5) == AOT_OK);
  CHECK(aothost_get(h, "param.m.0.weight", &got) == AOT_OK && got.data == w.data);
  for (int i = 0; i < 32 * 16; i++)
    CHECK(((float *)w.data)[i] == ((float *)before.data)[i] - 0.5f * ((float *)gradient.data)[i]);
  /* the caller's gradient */
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_plan(c, in, 2) == AOT_OK);
  dw = memory_for(c, "grad.m.0.weight", 0);
  CHECK(aothost_call_bind(c, "grad.m.0.weight", &dw) == AOT_OK);
  CHECK(aothost_call_forward(c, in, 2, 0) == AOT_OK && aothost_call_backward(c, NULL, 0) == AOT_OK);
  const float was = ((float *)w.data)[3];
  memset(dw.data, 0, (size_t)dw.nbytes);
  ((float *)dw.data)[3] = 2;
  CHECK(aothost_call_update(c, 0.25) == AOT_OK && aothost_get(h, "param.m.0.weight", &got) == AOT_OK);
  CHECK(((float *)w.data)[3] == was - 0.5f);
  aothost_call_close(c);
  /* back to the model file's, there; and back to the library's memory */
  CHECK(aothost_reset(h) == AOT_OK && aothost_get(h, "param.m.0.weight", &got) == AOT_OK && equal(&w, &before));
  ((float *)w.data)[0] += 1;
  CHECK(aothost_forward(h, in, 2) == AOT_OK && number(h, "output.0") != loss);
  ((float *)w.data)[0] -= 1;
  CHECK(aothost_bind(h, "param.m.0.weight", NULL) == AOT_OK);
  memset(w.data, 0, (size_t)w.nbytes);
  CHECK(aothost_get(h, "param.m.0.weight", &got) == AOT_OK && got.data != w.data);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && fabsf(number(h, "output.0") - loss) < 1e-5f);
}

/* ---- sizes ---- */

static void any_batch(aothost_t *h) {
  static const int64_t four[1] = {4};
  static float weights[4] = {1, 2, 3, 4}, x[3 * 4] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  aothost_call_t *c = NULL;
  aot_tensor_t w = {.data = weights, .nbytes = sizeof weights, .dtype = AOT_F32, .rank = 1, .sizes = four}, in, out[3],
               dw;
  CHECK(aothost_set(h, "param.w", &w) == AOT_OK && aothost_call_open(h, &c) == AOT_OK);
  for (int64_t batch = 1; batch <= 3; batch++) {
    const int64_t sizes[2] = {batch, 4};
    in = (aot_tensor_t){.nbytes = 0, .dtype = AOT_F32, .rank = 2, .sizes = sizes}; /* no data yet */
    CHECK(aothost_call_plan(c, &in, 1) == AOT_OK);
    for (int k = 0; k < 3; k++) {
      char key[24];
      snprintf(key, sizeof key, "output.%d", k);
      CHECK(aothost_call_plan(c, &in, 1) == AOT_OK); /* also while memory for another batch is bound */
      out[k] = memory_for(c, key, 0);
      CHECK(aothost_call_bind(c, key, &out[k]) == AOT_OK);
    }
    CHECK(out[1].sizes[0] == batch && out[2].sizes[0] == 4 && out[2].sizes[1] == batch && out[0].rank == 0 &&
          out[2].strides[1] == 4);
    in.data = x;
    in.nbytes = (uint64_t)batch * 16;
    CHECK(aothost_call_forward(c, &in, 1, 0) == AOT_OK && aothost_call_backward(c, NULL, 0) == AOT_OK);
    float expected = 0;
    for (int i = 0; i < batch * 4; i++) expected += x[i] * weights[i % 4] * x[i] * weights[i % 4];
    CHECK(*(float *)out[0].data == expected);
    for (int i = 0; i < batch * 4; i++) CHECK(((float *)out[1].data)[i] == x[i] * weights[i % 4]);
    for (int i = 0; i < batch * 4; i++) /* the view, at the strides that it has */
      CHECK(((float *)out[2].data)[i % 4 * out[2].strides[0] + i / 4 * out[2].strides[1]] == x[i] * weights[i % 4]);
    CHECK(aothost_call_get(c, "grad.w", &dw) == AOT_OK && dw.sizes[0] == 4);
    if (batch < 3) { /* memory for another batch does not fit */
      const int64_t more[2] = {batch + 1, 4};
      in.sizes = more;
      in.nbytes += 16;
      CHECK(aothost_call_forward(c, &in, 1, 0) == AOT_E_INVALID &&
            strstr(last_message, "the memory bound to output 1"));
    }
  }
  aothost_call_close(c);
}

/* An output whose size the run reports has it afterwards, and what is bound to it must have that size. */
static void told_by_the_run(aothost_config_t *config) {
  static const char pipeline[] = "aot: 1\nvars: {backend: backend-ref}\n"
                                 "stages: [{use: functionalize}, {use: \"${backend}\"}]\n";
  static const char program[] = "aot 1\nproperties imported\nsymbol u0 in [0, 8] hint 3\n"
                                "leaf 0 user_input 0 \"x\" : f32[8]\ngraph @main forward {\n"
                                "  in %x = user_input 0 : f32[8]\n"
                                "  %places : i64[u0, 1] = aten.nonzero.default %x\n"
                                "  out user_output 0 = %places\n}\n";
  static const int64_t eight[1] = {8}, places[2] = {3, 1};
  static float data[8] = {0, 1, 0, 1, 0, 0, 0, 1};
  const aot_tensor_t x = {.data = data, .nbytes = sizeof data, .dtype = AOT_F32, .rank = 1, .sizes = eight};
  const aot_tensor_t out = {.data = room(64, 0), .nbytes = 24, .dtype = AOT_I64, .rank = 2, .sizes = places};
  aot_tensor_t t;
  aothost_call_t *c = NULL;
  aothost_t *h = NULL;
  config->model = "nonzero.ir";
  config->model_data = program;
  config->model_nbytes = sizeof program - 1;
  CHECK(aothost_open_text(pipeline, sizeof pipeline - 1, "p.yaml", config, &h) == AOT_OK);
  CHECK(aothost_compile(h, 0) == AOT_OK && aothost_call_open(h, &c) == AOT_OK);
  CHECK(aothost_call_plan(c, &x, 1) == AOT_OK && aothost_call_shape(c, "output.0", &t) == AOT_E_PRECONDITION);
  CHECK(strstr(last_message, "known when the call has run") != NULL);
  CHECK(aothost_call_bind(c, "output.0", &out) == AOT_OK && aothost_call_forward(c, &x, 1, 0) == AOT_OK);
  CHECK(((int64_t *)out.data)[0] == 1 && ((int64_t *)out.data)[1] == 3 && ((int64_t *)out.data)[2] == 7);
  CHECK(aothost_call_shape(c, "output.0", &t) == AOT_OK && t.sizes[0] == 3);
  data[0] = 1;
  CHECK(aothost_call_forward(c, &x, 1, 0) == AOT_E_INVALID && strstr(last_message, "the program has i64[4, 1] there"));
  CHECK(aothost_call_get(c, "output.0", &t) == AOT_E_NOT_FOUND);
  data[0] = 0;
  CHECK(aothost_call_forward(c, &x, 1, 0) == AOT_OK);
  aothost_close(h);
}

/* ---- inputs that share memory ---- */

/* alias_program.ir: x += 1, then sum(y * w), and x and y as they are then. What is bound goes along when the program is
 * another, for the way in which the inputs share memory; so does what is in flight. */
static void shared_inputs(aothost_t *h) {
  static const int64_t four[1] = {4};
  static float weights[4] = {1, 2, 3, 4};
  float *storage = room(64, 0), *apart = room(64, 0);
  aot_tensor_t w = {.data = weights, .nbytes = sizeof weights, .dtype = AOT_F32, .rank = 1, .sizes = four}, x = w,
               y = w;
  aot_tensor_t loss, got;
  aothost_call_t *c = NULL, *other = NULL;
  CHECK(aothost_set(h, "param.w", &w) == AOT_OK);
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_open(h, &other) == AOT_OK);
  x.data = storage;
  y.data = apart;
  for (int i = 0; i < 4; i++) storage[i] = apart[i] = (float)i;
  const aot_tensor_t in[2] = {x, y};
  CHECK(aothost_call_plan(c, in, 2) == AOT_OK);
  loss = memory_for(c, "output.0", 0);
  CHECK(aothost_call_bind(c, "output.0", &loss) == AOT_OK && aothost_call_bind(c, "input.0", &x) == AOT_OK);
  for (int round = 0; round < 4; round++) {
    const int is_shared_now = round % 2;
    y.data = is_shared_now ? storage : apart;
    CHECK(aothost_call_bind(c, "input.1", &y) == AOT_OK);
    CHECK(aothost_call_forward(c, NULL, 0, 0) == AOT_OK);
    CHECK(*(float *)loss.data == (is_shared_now ? 30 : 20)); /* y is x + 1, or was left alone */
    CHECK(storage[1] == 1);                                  /* the program's x is a copy */
    CHECK(aothost_call_forward(other, in, 2, 0) == AOT_OK);
    CHECK(aothost_call_get(other, "output.0", &got) == AOT_OK && *(float *)got.data == 20);
    CHECK(aothost_call_backward(c, NULL, 0) == AOT_OK && aothost_call_get(c, "grad.w", &got) == AOT_OK);
    CHECK(((float *)got.data)[3] == (is_shared_now ? 4 : 3));
    CHECK(aothost_call_backward(other, NULL, 0) == AOT_OK && aothost_call_get(other, "grad.w", &got) == AOT_OK);
    CHECK(((float *)got.data)[3] == 3);
  }
  y.data = apart;
  CHECK(aothost_call_bind(c, "input.1", &y) == AOT_OK && aothost_call_forward(c, NULL, 0, AOTHOST_IN_PLACE) == AOT_OK);
  CHECK(storage[1] == 2 && apart[1] == 1); /* now it is the caller's */
}

/* ---- a step graph ---- */

static void step_bound(aothost_t *h, const aot_tensor_t *in) {
  aothost_call_t *c = NULL;
  CHECK(aothost_step(h, in, 2, 0.5) == AOT_OK && aothost_step(h, in, 2, 0.5) == AOT_OK);
  const float second = number(h, "output.0");
  CHECK(aothost_reset(h) == AOT_OK && aothost_step(h, NULL, 0, 0.5) == AOT_E_PRECONDITION); /* none were given yet */
  CHECK(aothost_step(h, in, 2, 0.5) == AOT_OK && aothost_step(h, NULL, 0, 0.5) == AOT_OK);
  CHECK(number(h, "output.0") == second);
  aot_tensor_t w = kept(h, "param.m.0.weight"), x, y, loss, got;
  const aot_tensor_t after = kept(h, "param.m.0.weight");
  CHECK(aothost_reset(h) == AOT_OK && aothost_bind(h, "param.m.0.weight", &w) == AOT_OK);
  CHECK(aothost_reset(h) == AOT_OK); /* into w */
  CHECK(aothost_call_open(h, &c) == AOT_OK && aothost_call_plan(c, in, 2) == AOT_OK);
  x = memory_for(c, "input.0", 0);
  y = memory_for(c, "input.1", 0);
  loss = memory_for(c, "output.0", 0);
  memcpy(x.data, in[0].data, (size_t)in[0].nbytes);
  memcpy(y.data, in[1].data, (size_t)in[1].nbytes);
  CHECK(aothost_call_bind(c, "input.0", &x) == AOT_OK && aothost_call_bind(c, "input.1", &y) == AOT_OK);
  CHECK(aothost_call_bind(c, "output.0", &loss) == AOT_OK);
  CHECK(aothost_call_step(c, NULL, 0, 0.5) == AOT_OK && aothost_call_step(c, NULL, 0, 0.5) == AOT_OK);
  CHECK(*(float *)loss.data == second && aothost_get(h, "param.m.0.weight", &got) == AOT_OK && equal(&w, &after));
}

int main(int argc, char **argv) {
  static const char any_size[] = "aot: 1\nvars: {backend: backend-ref}\nstages: [{use: functionalize}, {use: "
                                 "autograd}, {use: partition-default}, {use: \"${backend}\"}]\n";
  char backend[64];
  const char *sets[] = {backend, "run.train.optimizer=sgd"};
  aothost_config_t config = {0};
  aothost_t *h = NULL;
  aot_tensor_t in[2];
  if (argc < 6) return 2;
  make_inputs(in);
  snprintf(backend, sizeof backend, "vars.backend=%s", argv[5]);
  is_shared = strstr(argv[1], "strict") == NULL;
  config.struct_size = sizeof config;
  config.message = note;
  config.sets = sets;
  config.n_sets = 2;
  config.model = argv[2];
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK && aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  everything_bound(h, in, 0);
  everything_bound(h, in, 1);
  saved_values(h, in);
  wrong_memory(h, in);
  parameter_bound(h, in);
  aothost_close(h);
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK);
  CHECK(aothost_compile(h, AOTHOST_OPTIMIZER | AOTHOST_STEP) == AOT_OK && aothost_has_step(h));
  step_bound(h, in);
  aothost_close(h);
  config.model = argv[3];
  config.n_sets = 1;
  CHECK(aothost_open_text(any_size, sizeof any_size - 1, "p.yaml", &config, &h) == AOT_OK);
  CHECK(aothost_compile(h, 0) == AOT_OK);
  any_batch(h);
  aothost_close(h);
  config.model = argv[4];
  CHECK(aothost_open_text(any_size, sizeof any_size - 1, "p.yaml", &config, &h) == AOT_OK);
  CHECK(aothost_compile(h, 0) == AOT_OK);
  shared_inputs(h);
  aothost_close(h);
  told_by_the_run(&config);
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
