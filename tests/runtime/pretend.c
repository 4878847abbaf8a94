#include "pretend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <device/host_device.h>
#include <math.h>
#include <string.h>

/* w starts as 1, 2, 3. */
const char pretend_text[] = "aot 1\n"
                            "properties imported functional partitioned\n"
                            "symbol s0 in [1, 8] hint 2\n"
                            "leaf 0 parameter \"w\" \"tied.w\" : f32[3] grad data \"0000803f0000004000004040\"\n"
                            "leaf 1 buffer \"calls\" : i64[] {persistent}\n"
                            "leaf 2 user_input 0 \"x\" : f32[s0, 3]\n"
                            "leaf 3 state \"m.w\" : f32[3]\n"
                            "rule copy_back 1\n"
                            "rule copy_back 0\n"
                            "rule copy_back 3\n"
                            "graph @forward forward {\n"
                            "  in %w = parameter 0 : f32[3]\n"
                            "  in %c = buffer 1 : i64[]\n"
                            "  in %x = user_input 2 : f32[s0, 3]\n"
                            "  %loss : f32[] = tiny.add.Tensor %x, %w\n"
                            "  %y : f32[s0, 3] = tiny.add.Tensor %x, %w\n"
                            "  %s : f32[s0, 3] = tiny.add.Tensor %x, %w\n"
                            "  %c1 : i64[] = tiny.add.Tensor %c, 1\n"
                            "  out loss 0 = %loss\n"
                            "  out user_output 1 = %y\n"
                            "  out update 1 = %c1\n"
                            "  out saved 0 = %s\n"
                            "}\n"
                            "graph @backward backward {\n"
                            "  in %w = parameter 0 : f32[3]\n"
                            "  in %s = saved 0 : f32[s0, 3]\n"
                            "  in %tl = tangent 0 : f32[]\n"
                            "  in %ty = tangent 1 : f32[s0, 3]\n"
                            "  %gw : f32[3] = tiny.add.Tensor %w, %tl\n"
                            "  %gx : f32[s0, 3] = tiny.add.Tensor %ty, %s\n"
                            "  out gradient 0 = %gw\n"
                            "  out gradient 2 = %gx\n"
                            "}\n"
                            "graph @update update {\n"
                            "  in %lr = hyper 0 : f64[]\n"
                            "  in %w = parameter 0 : f32[3]\n"
                            "  in %g = gradient 0 : f32[3]\n"
                            "  in %m = state 3 : f32[3]\n"
                            "  %w1 : f32[3] = tiny.add.Tensor %w, %g\n"
                            "  %m1 : f32[3] = tiny.add.Tensor %m, %g\n"
                            "  out update 0 = %w1\n"
                            "  out update 3 = %m1\n"
                            "}\n";

/* Ports arrive in the geometry of their types: contiguous here. */
static float *f32(const aot_tensor_t *t) { return (float *)t->data + t->offset; }

static void forward(const pretend_t *p, const aot_tensor_t *in, const aot_tensor_t *out) {
  const float *w = f32(&in[0]), *x = f32(&in[2]);
  int64_t rows = in[2].sizes[0];
  float loss = 0;
  for (int64_t i = 0; i < rows * 3; i++) {
    f32(&out[1])[i] = x[i] * w[i % 3];
    loss += x[i] * w[i % 3];
    f32(&out[3])[i] = x[i];
  }
  *f32(&out[0]) = p->poison_at && p->n_calls == (uint32_t)p->poison_at ? NAN : loss;
  *(int64_t *)out[2].data = *(const int64_t *)in[1].data + 1;
}

static void backward(const aot_tensor_t *in, const aot_tensor_t *out) {
  const float *w = f32(&in[0]), *x = f32(&in[1]), *ty = f32(&in[3]), tl = *f32(&in[2]);
  int64_t rows = in[1].sizes[0];
  for (int k = 0; k < 3; k++) f32(&out[0])[k] = 0;
  for (int64_t i = 0; i < rows * 3; i++) {
    f32(&out[0])[i % 3] += (tl + ty[i]) * x[i];
    f32(&out[1])[i] = (tl + ty[i]) * w[i % 3];
  }
}

static void update(const aot_tensor_t *in, const aot_tensor_t *out) {
  double lr = *(const double *)in[0].data;
  for (int k = 0; k < 3; k++) {
    float m = f32(&in[3])[k] + f32(&in[2])[k];
    f32(&out[1])[k] = m;
    f32(&out[0])[k] = f32(&in[1])[k] - (float)lr * m;
  }
}

/* Inputs and outputs must not overlap, and must be aligned: an executable may count on both. */
static void check_memory(const aot_tensor_t *in, uint64_t n_in, const aot_tensor_t *out, uint64_t n_out) {
  for (uint64_t i = 0; i < n_out; i++) {
    const char *a = out[i].data, *b = a + out[i].nbytes;
    assert_int_equal((uintptr_t)a % AOTH_ALIGN, 0);
    for (uint64_t k = 0; k < n_in; k++)
      assert_true((const char *)in[k].data >= b || (const char *)in[k].data + in[k].nbytes <= a);
    for (uint64_t k = 0; k < i; k++)
      assert_true((const char *)out[k].data >= b || (const char *)out[k].data + out[k].nbytes <= a);
  }
  for (uint64_t k = 0; k < n_in; k++) assert_int_equal((uintptr_t)in[k].data % AOTH_ALIGN, 0);
}

static aot_status_t run(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                        uint64_t *known) {
  const aot_tensor_t *inputs = what->inputs, *outputs = what->outputs;
  const int32_t graph_kind = what->graph.kind;
  pretend_t *p = self;
  (void)known;
  check_memory(inputs, what->n_inputs, outputs, what->n_outputs);
  assert_null(open);
  assert_int_equal(what->graph.n_symbols, 1);
  if (graph_kind == AOT_GRAPH_FORWARD) {
    p->n_calls++;
    assert_int_equal(symbols[0], inputs[2].sizes[0]);
    forward(p, inputs, outputs);
  }
  if (graph_kind == AOT_GRAPH_BACKWARD) backward(inputs, outputs);
  if (graph_kind == AOT_GRAPH_UPDATE) update(inputs, outputs);
  return AOT_OK;
}

void pretend_init(pretend_t *p) {
  memset(p, 0, sizeof *p);
  world_init(&p->world);
  if (world_parse(&p->world, pretend_text) != AOT_OK) fail_msg("%s", aoth_sink_text(p->world.sink));
  assert_int_equal(aoth_queue_init(&p->queue, &p->world.ctx, aoth_host_device()), AOT_OK);
  p->exec = (aoth_exec_t){.self = p, .queue = &p->queue, .run = run};
}

void pretend_deinit(pretend_t *p) {
  assert_int_equal(aoth_queue_deinit(&p->queue), AOT_OK);
  world_deinit(&p->world);
}

aoth_step_t *pretend_step(pretend_t *p) {
  aoth_step_t *s = NULL;
  if (aoth_step_create(p->world.p, &p->exec, p->world.sink, &s) != AOT_OK) fail_msg("%s", pretend_said(p));
  return s;
}

const char *pretend_said(const pretend_t *p) {
  const char *text = aoth_sink_text(p->world.sink);
  return text ? text : "";
}
