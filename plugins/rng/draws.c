#include "draws.h"

static aot_status_t add_ports(rg_emit_t *e, int32_t role_seed, int32_t role_offset, uint32_t first) {
  const aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_I64};
  const uint32_t second = role_offset == AOT_ROLE_REGION ? first + 1 : first;
  AOT_TRY(e->host->edit->input_add(e->prog, e->graph, role_seed, first, &t, aot_str("seed"), &e->stream->seed));
  return e->host->edit->input_add(e->prog, e->graph, role_offset, second, &t, aot_str("offset"), &e->stream->offset);
}

aot_status_t rg_stream_open(rg_emit_t *e) {
  int32_t kind;
  aot_str_t name;
  if (e->status != AOT_OK || e->stream->seed.id != AOT_NO_ID) return e->status;
  const aot_graph_api_t *g = e->host->graph;
  e->status = g->graph_info(e->prog, e->graph, &kind, &name);
  for (uint32_t i = 0; i < g->n_inputs(e->prog, e->graph); i++) {
    const aot_port_t port = g->inputs(e->prog, e->graph)[i];
    if (port.role == AOT_ROLE_SEED || port.role == AOT_ROLE_OFFSET)
      rg_fail(e, AOT_E_UNIMPLEMENTED, "run the stage once, over the whole program",
              "the program has explicit draws already, beside operators that draw hidden numbers");
  }
  if (e->status != AOT_OK) return e->status;
  if (kind == AOT_GRAPH_REGION) e->status = add_ports(e, AOT_ROLE_REGION, AOT_ROLE_REGION, g->n_inputs(e->prog, e->graph));
  else e->status = add_ports(e, AOT_ROLE_SEED, AOT_ROLE_OFFSET, 0);
  return e->status;
}

/* Draws lie where their seed lies: on another device it is copied there first. */
static void find_seed(rg_emit_t *e, const aot_type_t *shape, rg_x *out) {
  rg_stream_t *s = e->stream;
  if (rg_stream_open(e) != AOT_OK) return;
  const aot_type_t t = rg_type(e, rg_v(s->seed));
  out[0] = rg_v(s->seed);
  out[1] = rg_v(s->offset);
  if (t.device == shape->device && (t.device == AOT_DEVICE_CPU || t.device_index == shape->device_index)) return;
  const int32_t index = shape->device_index;
  if (s->there_seed.id == AOT_NO_ID || s->device != shape->device || s->device_index != index) {
    const rg_x device = aot_arg_int_kind(AOT_ARG_DEVICE, shape->device + 256 * ((int64_t)index + 1));
    const rg_x there = RG(e, "_to_copy", out[0], rg_none(), rg_none(), device);
    const rg_x offset = RG(e, "_to_copy", out[1], rg_none(), rg_none(), device);
    if (e->status != AOT_OK) return;
    s->there_seed = rg_value(e, there);
    s->there_offset = rg_value(e, offset);
    s->device = shape->device;
    s->device_index = index;
  }
  out[0] = rg_v(s->there_seed);
  out[1] = rg_v(s->there_offset);
}

static rg_x draw(rg_emit_t *e, const char *op, const aot_type_t *shape, uint32_t n_more, const rg_x *more, int64_t span) {
  rg_x args[8];
  find_seed(e, shape, args);
  if (e->status != AOT_OK) return rg_none();
  args[2] = rg_i(e->stream->next);
  for (uint32_t i = 0; i < n_more; i++) args[3 + i] = more[i];
  e->stream->next += span;
  return rg_call(e, op, 3 + n_more, args);
}

static rg_x sizes_of(const aot_type_t *t) { return aot_arg_ints(t->sizes, (uint32_t)t->rank); }

rg_x rg_uniform(rg_emit_t *e, const aot_type_t *shape, int32_t dtype) {
  return draw(e, "aot.philox_uniform.default", shape, 2, (rg_x[]){sizes_of(shape), rg_dtype(dtype)}, 1);
}
rg_x rg_normal(rg_emit_t *e, const aot_type_t *shape, int32_t dtype) {
  return draw(e, "aot.philox_normal.default", shape, 2, (rg_x[]){sizes_of(shape), rg_dtype(dtype)}, 1);
}
rg_x rg_bits(rg_emit_t *e, const aot_type_t *shape) {
  return draw(e, "aot.philox_bits.default", shape, 1, (rg_x[]){sizes_of(shape)}, 1);
}
rg_x rg_randint(rg_emit_t *e, const aot_type_t *shape, rg_x low, rg_x high) {
  return draw(e, "aot.philox_randint.default", shape, 4, (rg_x[]){low, high, sizes_of(shape), rg_dtype(AOT_I64)}, 1);
}
rg_x rg_sample(rg_emit_t *e, const char *op, const aot_type_t *shape, uint32_t n, const rg_x *parameters) {
  return draw(e, op, shape, n, parameters, RG_REJECTION_SPAN);
}

rg_x rg_chance(rg_emit_t *e, const aot_type_t *shape, double p) {
  return RG(e, "lt.Scalar", rg_uniform(e, shape, AOT_F32), rg_f(p));
}
