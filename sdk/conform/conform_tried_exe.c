#include <sdk/conform/conform_tried_exe.h>

#include <aot/inline.h>
#include <device/host_device.h>
#include <ir/tables.h>
#include <math.h>
#include <compiler/backend_stage.h>
#include <sandbox/call.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/child.h>

#define PATIENCE_NS UINT64_C(10000000000)
#define NEAR 1e-4 /* of two runs of the same code */

/* ---- a program that it takes whole ---- */

static int is_plain(aot_prog_t *p) {
  const aot_graph_t g = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  if (g.id == AOT_NO_ID || aoth_graph_n_symbols(p) || aoth_graph_first(p, g).id == AOT_NO_ID) return 0;
  for (int are_outputs = 0; are_outputs < 2; are_outputs++) {
    const aot_port_t *ports = are_outputs ? aoth_graph_outputs(p, g) : aoth_graph_inputs(p, g);
    const uint32_t n = are_outputs ? aoth_graph_n_outputs(p, g) : aoth_graph_n_inputs(p, g);
    for (uint32_t i = 0; i < n; i++) {
      aot_type_t type;
      if (aoth_graph_value_type(p, ports[i].value, &type) != AOT_OK || type.kind != AOT_TYPE_TENSOR) return 0;
    }
  }
  return 1;
}

int aoth_tried_compile(aoth_trial_t *t) {
  const aoth_conform_program_t *p;
  for (uint32_t i = 0; (p = aoth_trial_nth(t, "plain", i)); i++) {
    if (aoth_trial_program(t, p) && is_plain(t->s->now.prog) && aoth_trial_run(t)) {
      aoth_trial_about(t, "program %s", p->name);
      return 1;
    }
    if (t->end == AOTH_CONFORM_FAILED) return 0;
    t->end = AOTH_CONFORM_PASSED;
  }
  aoth_trial_end(t, AOTH_CONFORM_NOT,
                 "it takes no program of class plain whole; --program F.ir gives one that it does");
  return 0;
}

/* ---- calls ---- */

int aoth_tried_exe_went(aoth_tried_exe_t *x, aot_status_t status, const char *doing) {
  char told[400];
  if (status == AOT_OK) return x->t->end == AOTH_CONFORM_PASSED;
  aoth_first_error(aoth_sink_text(x->ctx.sink), told, sizeof told);
  const int is_lacking = status == AOT_E_EXHAUSTED || status == AOT_E_UNAVAILABLE || status == AOT_E_NOT_FOUND;
  if (x->t->end == AOTH_CONFORM_PASSED) /* what the machine lacks is no fault of the unit's */
    aoth_trial_end(x->t, is_lacking && *told ? AOTH_CONFORM_REFUSED : AOTH_CONFORM_FAILED, "%s answers status %d: %s",
                   doing, (int)status, *told ? told : "and does not say why");
  return 0;
}

int aoth_tried_load(aoth_trial_t *t, const aoth_stage_t *device, aoth_tried_exe_t *out) {
  aoth_session_t *s = t->s;
  aoth_loaded_t loaded;
  aoth_stage_t own;
  if (!device && aoth_trial_own_device(t, &own)) device = &own;
  *out = (aoth_tried_exe_t){.t = t, .device = aoth_host_device()};
  if (device && !aoth_trial_judge(t, aoth_instance_try(s, device, &out->device_unit))) return 0;
  if (device) {
    out->device = out->device_unit.self;
    out->device_stage = *device;
  }
  if (!aoth_trial_judge(t, aoth_instance_try(s, t->stage, &out->unit))) return 0;
  aoth_trial_hear(t, &out->arena, &out->ctx);
  const aot_status_t status =
      aoth_backend_load(s, t->stage, &out->unit, s->now.artifact, s->now.artifact_nbytes, out->device, &loaded);
  if (!aoth_trial_judge(t, status)) return 0;
  out->exe = loaded.exe;
  out->self = loaded.self;
  return aoth_tried_exe_went(out, out->device->queue_create(out->device, &out->ctx, AOT_QUEUE_COMPUTE, &out->queue),
                             "queue_create") &&
         aoth_tried_exe_went(out, out->device->timeline_create(out->device, &out->ctx, &out->line), "timeline_create");
}

int aoth_tried_drop(aoth_tried_exe_t *x) {
  if (x->exe.head.destroy) x->exe.head.destroy(&x->self->head);
  const int ok = aoth_tried_exe_went(x, x->device->queue_destroy(x->device, &x->ctx, x->queue), "queue_destroy") &&
                 aoth_tried_exe_went(x, x->device->timeline_destroy(x->device, &x->ctx, x->line), "timeline_destroy");
  aoth_instance_destroy(x->t->s, x->t->stage, &x->unit);
  if (x->device_unit.unit) aoth_instance_destroy(x->t->s, &x->device_stage, &x->device_unit);
  aoth_sink_destroy(x->ctx.sink);
  kit_arena_destroy(x->arena);
  return ok;
}

/* Bytes that the geometry reaches. */
static uint64_t reach(const aoth_tensor_t *t) {
  int64_t last = t->offset;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] == 0) return 0;
    last += (t->sizes[d] - 1) * t->strides[d];
  }
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

static int make_tensor(aoth_tried_exe_t *x, aot_value_t v, aoth_tensor_t *out) {
  aot_type_t type;
  if (aoth_graph_value_type(x->t->s->now.prog, v, &type) != AOT_OK) return 0;
  *out = aoth_tensor_make(NULL, type.dtype, type.rank, type.sizes);
  for (int32_t d = 0; d < type.rank; d++) out->strides[d] = type.strides[d];
  out->offset = type.offset;
  out->nbytes = reach(out);
  out->data = calloc(1, (size_t)out->nbytes + 1);
  return out->data != NULL;
}

/* By place in the order of sizes; no two seeds give the same. */
static void fill(const aoth_tensor_t *x, uint32_t seed) {
  aoth_walk_t w;
  uint32_t i = seed * 7;
  for (aoth_walk_begin(&w, x, NULL); w.left > 0; aoth_walk_next(&w), i++)
    kit_element_store(x->dtype, w.at[0], aot_dtype_is_float(x->dtype) ? (i * 37 % 41) * 0.0625 - 1.25 : i % 2);
}

/* On the device, with the contents of the host's copy. */
static int place(aoth_tried_exe_t *x, const aoth_tensor_t *t, aot_tensor_t *out) {
  aot_buffer_t b;
  *out = aoth_tensor_view(t);
  if (!aoth_tried_exe_went(x, x->device->alloc(x->device, &x->ctx, t->nbytes, &b), "alloc")) return 0;
  out->data = (void *)(uintptr_t)b.address;
  return !t->nbytes || aoth_tried_exe_went(x, x->device->write(x->device, &x->ctx, x->queue, b, t->data), "write");
}

static aot_graph_at_t graph_at(void) {
  return (aot_graph_at_t){.struct_size = sizeof(aot_graph_at_t), .kind = AOT_GRAPH_FORWARD};
}

int aoth_tried_bind(aoth_tried_exe_t *x, uint32_t seed, aoth_tried_call_t *out) {
  aot_prog_t *p = x->t->s->now.prog;
  const aot_graph_t g = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  const aot_graph_at_t at = graph_at();
  aot_exe_plan_t plan = {.struct_size = sizeof plan};
  *out = (aoth_tried_call_t){.n_inputs = aoth_graph_n_inputs(p, g), .n_outputs = aoth_graph_n_outputs(p, g)};
  const uint32_t n = out->n_inputs + out->n_outputs;
  out->tensors = calloc(n + 1u, sizeof *out->tensors);
  out->views = calloc(n + 1u, sizeof *out->views);
  if (!out->tensors || !out->views) return aoth_tried_exe_went(x, AOT_E_EXHAUSTED, "the trial's memory");
  for (uint32_t i = 0; i < n; i++) {
    const aot_port_t *ports = i < out->n_inputs ? aoth_graph_inputs(p, g) : aoth_graph_outputs(p, g);
    const aot_port_t *port = &ports[i < out->n_inputs ? i : i - out->n_inputs];
    if (!make_tensor(x, port->value, &out->tensors[i]))
      return aoth_tried_exe_went(x, AOT_E_EXHAUSTED, "the trial's memory");
    if (i < out->n_inputs) fill(&out->tensors[i], seed + i);
    if (!place(x, &out->tensors[i], &out->views[i])) return 0;
  }
  if (!aoth_tried_exe_went(x, x->exe.plan(x->self, &x->ctx, &at, &plan), "plan") ||
      !aoth_tried_exe_went(x, x->device->alloc(x->device, &x->ctx, plan.arena.nbytes, &out->arena), "alloc"))
    return 0;
  const aot_binding_t binding = {.struct_size = sizeof binding,
                                 .graph = at,
                                 .inputs = out->views,
                                 .outputs = out->views + out->n_inputs,
                                 .n_inputs = out->n_inputs,
                                 .n_outputs = out->n_outputs,
                                 .arena = out->arena};
  return aoth_tried_exe_went(x, x->exe.bind(x->self, &x->ctx, &binding, &out->bound), "bind");
}

int aoth_tried_unbind(aoth_tried_exe_t *x, aoth_tried_call_t *c) {
  int ok = 1;
  if (c->bound) x->exe.unbind(x->self, c->bound);
  for (uint32_t i = 0; i < c->n_inputs + c->n_outputs; i++) {
    const aot_buffer_t b = {(uintptr_t)c->views[i].data, c->views[i].nbytes};
    ok &= aoth_tried_exe_went(x, x->device->free(x->device, &x->ctx, b), "free");
    free(c->tensors[i].data);
  }
  ok &= aoth_tried_exe_went(x, x->device->free(x->device, &x->ctx, c->arena), "free");
  free(c->tensors);
  free(c->views);
  return ok;
}

int aoth_tried_submit_behind(aoth_tried_exe_t *x, const aoth_tried_call_t *c, aot_point_t wait) {
  const aot_point_t point = {x->line, ++x->raised};
  const aot_submission_t s = {.struct_size = sizeof s,
                              .queue = x->queue,
                              .waits = &wait,
                              .n_waits = wait.timeline != NULL,
                              .signals = &point,
                              .n_signals = 1};
  return aoth_tried_exe_went(x, x->exe.submit(x->self, &x->ctx, c->bound, &s), "submit");
}

int aoth_tried_submit(aoth_tried_exe_t *x, const aoth_tried_call_t *c) {
  return aoth_tried_submit_behind(x, c, (aot_point_t){NULL, 0});
}

int aoth_tried_wait_all(aoth_tried_exe_t *x) {
  const aot_point_t point = {x->line, x->raised};
  return aoth_tried_exe_went(x, x->device->wait_host(x->device, &x->ctx, point, PATIENCE_NS),
                             "wait_host behind a submission");
}

static int read_outputs(aoth_tried_exe_t *x, aoth_tried_call_t *c, aot_queue_t *q) {
  for (uint32_t i = c->n_inputs; i < c->n_inputs + c->n_outputs; i++) {
    const aot_buffer_t from = {(uintptr_t)c->views[i].data, c->tensors[i].nbytes};
    if (from.nbytes &&
        !aoth_tried_exe_went(x, x->device->read(x->device, &x->ctx, q, c->tensors[i].data, from), "read"))
      return 0;
  }
  return aoth_tried_exe_went(x, x->device->signal(x->device, &x->ctx, q, (aot_point_t){x->line, ++x->raised}),
                             "signal") &&
         aoth_tried_wait_all(x);
}

int aoth_tried_fetch(aoth_tried_exe_t *x, aoth_tried_call_t *c) { return read_outputs(x, c, x->queue); }

int aoth_tried_fetch_by(aoth_tried_exe_t *x, aoth_tried_call_t *c, aot_queue_t *q, uint64_t behind) {
  return aoth_tried_exe_went(x, x->device->wait(x->device, &x->ctx, q, (aot_point_t){x->line, behind}), "wait") &&
         read_outputs(x, c, q);
}

int aoth_tried_refill(aoth_tried_exe_t *x, aoth_tried_call_t *c, uint32_t seed, aot_queue_t *q) {
  for (uint32_t i = 0; i < c->n_inputs; i++) {
    const aot_buffer_t to = {(uintptr_t)c->views[i].data, c->tensors[i].nbytes};
    fill(&c->tensors[i], seed + i);
    if (to.nbytes && !aoth_tried_exe_went(x, x->device->write(x->device, &x->ctx, q, to, c->tensors[i].data), "write"))
      return 0;
  }
  return 1;
}

/* The number of the first element that differs, -1: none. */
static int64_t first_difference(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  aoth_walk_t w;
  int64_t i = 0;
  for (aoth_walk_begin(&w, a, b); w.left > 0; aoth_walk_next(&w), i++) {
    if (memcmp(w.at[0], w.at[1], (size_t)aot_dtype_size(a->dtype)) == 0) continue;
    const double x = kit_element_load(a->dtype, w.at[0]), y = kit_element_load(b->dtype, w.at[1]);
    if (!aot_dtype_is_float(a->dtype) || !(fabs(x - y) <= NEAR * (1 + fabs(y)))) return i;
  }
  return -1;
}

int aoth_tried_same_outputs(aoth_tried_exe_t *x, const aoth_tried_call_t *got, const aoth_tried_call_t *wanted,
                            const char *when) {
  for (uint32_t i = got->n_inputs; i < got->n_inputs + got->n_outputs; i++) {
    const int64_t at = first_difference(&got->tensors[i], &wanted->tensors[i]);
    if (at < 0) continue;
    aoth_trial_end(x->t, AOTH_CONFORM_FAILED, "output %u differs from element %lld on %s", i - got->n_inputs,
                   (long long)at, when);
    return 0;
  }
  return 1;
}
