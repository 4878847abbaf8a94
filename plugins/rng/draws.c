#include "draws.h"

static aot_status_t add_ports(em_t *e, int32_t role_seed, int32_t role_offset, uint32_t first) {
  const aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_I64};
  const uint32_t second = role_offset == AOT_ROLE_REGION ? first + 1 : first;
  AOT_TRY(e->host->edit->input_add(e->prog, e->graph, role_seed, first, &t, aot_str("seed"), &rg_of(e)->stream->seed));
  return e->host->edit->input_add(e->prog, e->graph, role_offset, second, &t, aot_str("offset"),
                                  &rg_of(e)->stream->offset);
}

aot_status_t rg_stream_open(em_t *e) {
  int32_t kind;
  aot_str_t name;
  if (e->status != AOT_OK || rg_of(e)->stream->seed.id != AOT_NO_ID) return e->status;
  const aot_graph_api_t *g = e->host->graph;
  e->status = g->graph_info(e->prog, e->graph, &kind, &name);
  for (uint32_t i = 0; i < g->n_inputs(e->prog, e->graph); i++) {
    const aot_port_t port = g->inputs(e->prog, e->graph)[i];
    if (port.role == AOT_ROLE_SEED || port.role == AOT_ROLE_OFFSET)
      em_fail(e, AOT_E_UNIMPLEMENTED, "run the stage once, over the whole program",
              "the program has explicit draws already, beside operators that draw hidden numbers");
  }
  if (e->status != AOT_OK) return e->status;
  if (kind == AOT_GRAPH_REGION)
    e->status = add_ports(e, AOT_ROLE_REGION, AOT_ROLE_REGION, g->n_inputs(e->prog, e->graph));
  else e->status = add_ports(e, AOT_ROLE_SEED, AOT_ROLE_OFFSET, 0);
  return e->status;
}

/* Draws are on the device of their seed; for another device the seed is copied first. */
static void find_seed(em_t *e, const aot_type_t *shape, em_x_t *out) {
  rg_stream_t *s = rg_of(e)->stream;
  if (rg_stream_open(e) != AOT_OK) return;
  const aot_type_t t = em_type(e, em_v(s->seed));
  out[0] = em_v(s->seed);
  out[1] = em_v(s->offset);
  if (t.device == shape->device && (t.device == AOT_DEVICE_CPU || t.device_index == shape->device_index)) return;
  const int32_t index = shape->device_index;
  if (s->there_seed.id == AOT_NO_ID || s->device != shape->device || s->device_index != index) {
    const em_x_t device = em_device(shape->device, index);
    const em_x_t there = EM(e, "_to_copy", out[0], em_none(), em_none(), device);
    const em_x_t offset = EM(e, "_to_copy", out[1], em_none(), em_none(), device);
    if (e->status != AOT_OK) return;
    s->there_seed = em_value(e, there);
    s->there_offset = em_value(e, offset);
    s->device = shape->device;
    s->device_index = index;
  }
  out[0] = em_v(s->there_seed);
  out[1] = em_v(s->there_offset);
}

static em_x_t draw(em_t *e, const char *op, const aot_type_t *shape, uint32_t n_more, const em_x_t *more,
                   int64_t span) {
  em_x_t args[8];
  find_seed(e, shape, args);
  if (e->status != AOT_OK) return em_none();
  args[2] = em_i(rg_of(e)->stream->next);
  for (uint32_t i = 0; i < n_more; i++) args[3 + i] = more[i];
  rg_of(e)->stream->next += span;
  return em_call(e, op, 3 + n_more, args);
}

static em_x_t sizes_of(const aot_type_t *t) { return aot_arg_ints(t->sizes, (uint32_t)t->rank); }

em_x_t rg_uniform(em_t *e, const aot_type_t *shape, int32_t dtype) {
  return draw(e, "aot.philox_uniform.default", shape, 2, (em_x_t[]){sizes_of(shape), em_dtype(dtype)}, 1);
}
em_x_t rg_normal(em_t *e, const aot_type_t *shape, int32_t dtype) {
  return draw(e, "aot.philox_normal.default", shape, 2, (em_x_t[]){sizes_of(shape), em_dtype(dtype)}, 1);
}
em_x_t rg_bits(em_t *e, const aot_type_t *shape) {
  return draw(e, "aot.philox_bits.default", shape, 1, (em_x_t[]){sizes_of(shape)}, 1);
}
em_x_t rg_randint(em_t *e, const aot_type_t *shape, em_x_t low, em_x_t high) {
  return draw(e, "aot.philox_randint.default", shape, 4, (em_x_t[]){low, high, sizes_of(shape), em_dtype(AOT_I64)}, 1);
}
em_x_t rg_sample(em_t *e, const char *op, const aot_type_t *shape, uint32_t n, const em_x_t *parameters) {
  return draw(e, op, shape, n, parameters, RG_REJECTION_SPAN);
}

em_x_t rg_chance(em_t *e, const aot_type_t *shape, double p) {
  return EM(e, "lt.Scalar", rg_uniform(e, shape, AOT_F32), em_f(p));
}
