/* export_graph.c - a graph of the program as the record Graph: nodes in order, the types of all values, regions
 * inside out. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* ---- types ---- */

static json_t *dims_json(p2_writer_t *w, const int64_t *dims, int32_t n) {
  json_t *list = json_array();
  for (int32_t i = 0; i < n; i++)
    if (json_array_append_new(list, p2_dim_json(w, dims[i])) != 0) {
      json_decref(list);
      return NULL;
    }
  return list;
}

json_t *p2_tensor_meta(p2_writer_t *w, const aot_type_t *t) {
  const char *device = p2_device_name(t->device);
  if (t->dtype == AOT_U32 || t->dtype == AOT_U64)
    return p2_cannot(w, "export-pt2.dtype", "%s has no number in archives of schema 8.17", aot_dtype_name(t->dtype));
  if (!device) return p2_cannot(w, "export-pt2.device", "device %d has no name", (int)t->device);
  json_t *index = t->device_index ? json_integer(t->device_index - 1) : json_null();
  return json_pack("{s:i, s:o, s:b, s:{s:s, s:o}, s:o, s:o, s:i}", "dtype", (int)t->dtype, "sizes",
                   dims_json(w, t->sizes, t->rank), "requires_grad", (t->flags & AOT_TYPE_REQUIRES_GRAD) != 0, "device",
                   "type", device, "index", index, "strides", dims_json(w, t->strides, t->rank), "storage_offset",
                   p2_dim_json(w, t->offset), "layout", (int)AOT_LAYOUT_STRIDED);
}

/* The value's entry in the tables of its graph, and what it is as a result: an Argument. */
static json_t *result_json(p2_writer_t *w, p2_page_t *page, aot_value_t v) {
  aot_type_t t;
  const aot_str_t name = w->value_names[v.id];
  memset(&t, 0, sizeof t);
  if (w->host->graph->value_type(w->prog, v, &t) != AOT_OK) return NULL;
  if (t.kind == AOT_TYPE_NONE) return json_pack("{s:b}", "as_none", 1);
  if (t.kind == AOT_TYPE_TENSOR) {
    t.flags &= ~AOT_TYPE_REQUIRES_GRAD; /* archives say it of parameters and inputs alone */
    if (json_object_setn_new(page->tensor_values, name.data, (size_t)name.size, p2_tensor_meta(w, &t)) != 0)
      return NULL;
    return p2_as_tensor(name);
  }
  if (t.kind == AOT_TYPE_SYMINT) {
    if (json_object_setn_new(page->sym_ints, name.data, (size_t)name.size, p2_dim_json(w, t.expr)) != 0) return NULL;
    if (AOT_DIM_IS_SYM(t.expr) && p2_dim_known(w, page, t.expr, name) != AOT_OK) return NULL;
    return json_pack("{s:{s:o}}", "as_sym_int", "as_name", p2_text_json(name));
  }
  if (t.kind == AOT_TYPE_SYMBOOL && !AOT_DIM_IS_SYM(t.expr)) {
    json_object_setn_new(page->sym_bools, name.data, (size_t)name.size, json_pack("{s:b}", "as_bool", t.expr != 0));
    return json_pack("{s:{s:o}}", "as_sym_bool", "as_name", p2_text_json(name));
  }
  return p2_cannot(w, "export-pt2.value",
                   "a result is a symbolic float, a condition on sizes or a token, which is not written to archives");
}

/* ---- nodes ---- */

/* Where the user's model has the node: innermost module and source line, as our importer and PyTorch's tools read
 * them. */
static json_t *metadata_json(p2_writer_t *w, aot_origin_t origin) {
  static const char module[] = "torch.nn.modules.module.Module";
  json_t *metadata = json_object();
  aot_origin_info_t o;
  char text[1200];
  memset(&o, 0, sizeof o);
  o.struct_size = sizeof o;
  if (origin.id == AOT_NO_ID || w->host->graph->origin_info(w->prog, origin, &o) != AOT_OK) return metadata;
  if (o.source_file.size) {
    snprintf(text, sizeof text, "  File \"%.*s\", line %u, in forward\n", P2_SHOW(o.source_file), (unsigned)o.line);
    json_object_set_new(metadata, "stack_trace", json_string(text));
  }
  if (o.module_path.size) {
    snprintf(text, sizeof text, "L__self__,,%s;L__self__.%.*s,%.*s,%s", module, P2_SHOW(o.module_path),
             P2_SHOW(o.module_path), module);
    json_object_set_new(metadata, "nn_module_stack", json_string(text));
  }
  return metadata;
}

/* A number where the schema has a tensor. PyTorch takes it as it is in arithmetic alone
 * (should_allow_numbers_as_tensors in torch/csrc/utils/python_arg_parser.cpp); everywhere else it has to be a 0-dim
 * tensor. */
static int is_bare_number(const aot_op_desc_t *d, const aot_schema_arg_t *slot, const aot_arg_t *a) {
  static const char *const takes_numbers[] = {"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor",
                                              "aten.div.Tensor"};
  if (slot->type != AOT_STYPE_TENSOR || slot->flags & AOT_SARG_LIST) return 0;
  if (a->kind != AOT_ARG_INT && a->kind != AOT_ARG_FLOAT && a->kind != AOT_ARG_BOOL) return 0;
  for (size_t i = 0; i < sizeof takes_numbers / sizeof *takes_numbers; i++)
    if (p2_str_is(d->name, takes_numbers[i])) return 0;
  return 1;
}

/* bool, integer, float, complex: what type promotion asks first. */
static int category(int32_t dtype) {
  if (dtype == AOT_BOOL) return 0;
  if (aot_dtype_is_complex(dtype)) return 3;
  return aot_dtype_is_float(dtype) ? 2 : 1;
}

/* A wrapped number gives way to every tensor of its category: it takes the dtype of the operand that decides, or, when
 * it is of a higher category than all of them, PyTorch's default for it. */
static void wrapped_type(p2_writer_t *w, const aot_node_info_t *n, const aot_arg_t *a, aot_type_t *out) {
  const int own = a->kind == AOT_ARG_BOOL ? 0 : a->kind == AOT_ARG_INT ? 1 : 2;
  int best = -1;
  memset(out, 0, sizeof *out);
  out->kind = AOT_TYPE_TENSOR;
  out->device = AOT_DEVICE_CPU;
  for (uint32_t i = 0; i < n->n_operands; i++) {
    aot_type_t t;
    if (n->operands[i] == AOT_NO_ID || w->host->graph->value_type(w->prog, (aot_value_t){n->operands[i]}, &t) != AOT_OK)
      continue;
    if (t.kind != AOT_TYPE_TENSOR || category(t.dtype) <= best) continue;
    best = category(t.dtype);
    out->dtype = t.dtype;
    out->device = t.device;
    out->device_index = t.device_index;
  }
  if (own > best) out->dtype = own == 0 ? AOT_BOOL : own == 1 ? AOT_I64 : AOT_F32;
}

/* A node scalar_tensor(number) before the node; the argument that names it. */
static json_t *number_tensor(p2_writer_t *w, p2_page_t *page, const aot_node_info_t *n, const aot_arg_t *a) {
  static const aot_schema_arg_t scalar = {.type = AOT_STYPE_SCALAR};
  aot_type_t t;
  aot_str_t name;
  wrapped_type(w, n, a, &t);
  const aot_arg_t dtype = aot_arg_dtype(t.dtype);
  const aot_arg_t device = aot_arg_device(t.device, t.device_index);
  if (p2_identifier(w, page, p2_str("scalar_tensor"), "scalar_tensor", &name) != AOT_OK) return NULL;
  json_t *inputs = json_pack("[o, o, o]", p2_named_json(p2_str("s"), p2_argument_json(w, page, &scalar, a), 0),
                             p2_named_json(p2_str("dtype"), p2_argument_json(w, page, &scalar, &dtype), 1),
                             p2_named_json(p2_str("device"), p2_argument_json(w, page, &scalar, &device), 1));
  if (json_object_setn_new(page->tensor_values, name.data, (size_t)name.size, p2_tensor_meta(w, &t)) != 0) return NULL;
  json_t *outputs = json_pack("[o]", p2_as_tensor(name));
  if (p2_add_node(page, "torch.ops.aten.scalar_tensor.default", inputs, outputs, json_object(), json_null(), name) !=
      AOT_OK)
    return NULL;
  return p2_as_tensor(name);
}

/* Arguments up to the last positional one that is not at its default, keyword ones where they are not. */
static json_t *inputs_json(p2_writer_t *w, p2_page_t *page, const aot_op_desc_t *d, const aot_node_info_t *n) {
  const int region = (d->flags & AOT_OP_REGION) != 0;
  json_t *inputs = json_array();
  uint32_t last = 0;
  for (uint32_t i = 0; i < n->n_args; i++) {
    const aot_schema_arg_t *slot = &d->args[i < d->n_args ? i : d->n_args - 1];
    if (region || !(slot->flags & AOT_SARG_KWONLY)) last = region || !p2_is_preset(slot, &n->args[i]) ? i + 1 : last;
  }
  for (uint32_t i = 0; i < n->n_args; i++) {
    const aot_schema_arg_t *slot = &d->args[i < d->n_args ? i : d->n_args - 1];
    const int keyword = !region && slot->flags & AOT_SARG_KWONLY;
    if (keyword ? p2_is_preset(slot, &n->args[i]) : i >= last) continue;
    if (slot->type == AOT_STYPE_GENERATOR) continue;
    json_t *argument = is_bare_number(d, slot, &n->args[i]) ? number_tensor(w, page, n, &n->args[i])
                                                            : p2_argument_json(w, page, slot, &n->args[i]);
    if (json_array_append_new(inputs, p2_named_json(region ? p2_str("") : slot->name, argument, keyword)) != 0) {
      json_decref(inputs);
      return NULL;
    }
  }
  return inputs;
}

/* One Argument a result of the schema; a Tensor[] takes all node results but those of the others. */
static json_t *outputs_json(p2_writer_t *w, p2_page_t *page, const aot_op_desc_t *d, const aot_node_info_t *n) {
  const int region = (d->flags & AOT_OP_REGION) != 0;
  const uint32_t n_rows = region || d->n_results == 0 ? n->n_results : d->n_results;
  json_t *outputs = json_array();
  uint32_t next = n->first_result.id;
  for (uint32_t i = 0; i < n_rows; i++) {
    const int list = !region && d->results[i].flags & AOT_SARG_LIST;
    const uint32_t count = list ? n->n_results - (n_rows - 1) : 1;
    json_t *names = list ? json_array() : NULL, *one = NULL;
    for (uint32_t k = 0; k < count; k++, next++) {
      one = result_json(w, page, (aot_value_t){next});
      if (list && one) json_array_append(names, json_object_get(one, "as_tensor"));
      if (list) json_decref(one);
    }
    if (json_array_append_new(outputs, list ? json_pack("{s:o}", "as_tensors", names) : one) != 0) {
      json_decref(outputs);
      return NULL;
    }
  }
  return outputs;
}

/* full_like(loss, 1): the tangent that a joint graph starts with, right after its loss. */
static aot_status_t put_tangent(p2_writer_t *w, p2_page_t *page) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (w->tangent.id == AOT_NO_ID) return AOT_OK;
  AOT_TRY(p2_identifier(w, page, p2_str("full_like"), "tangent", &w->value_names[w->tangent.id]));
  const aot_str_t name = w->value_names[w->tangent.id];
  json_t *inputs =
      json_pack("[o, o, o, o]", p2_named_json(p2_str("self"), p2_as_tensor(w->value_names[w->loss.id]), 0),
                p2_named_json(p2_str("fill_value"), json_pack("{s:i}", "as_int", 1), 0),
                p2_named_json(p2_str("pin_memory"), json_pack("{s:b}", "as_bool", 0), 1),
                p2_named_json(p2_str("memory_format"), json_pack("{s:i}", "as_memory_format", AOT_MEMORY_PRESERVE), 1));
  json_t *result = result_json(w, page, w->tangent);
  return p2_add_node(page, "torch.ops.aten.full_like.default", inputs, json_pack("[o]", result), json_object(),
                     json_null(), name);
}

/* "aten.add.Tensor" -> "add" */
static aot_str_t short_name_of(aot_str_t op) {
  const char *dot = memchr(op.data, '.', (size_t)op.size);
  aot_str_t rest = op;
  if (!dot) return op;
  rest.data = dot + 1;
  rest.size = op.size - (uint64_t)(rest.data - op.data);
  dot = memchr(rest.data, '.', (size_t)rest.size);
  if (dot) rest.size = (uint64_t)(dot - rest.data);
  return rest;
}

/* A node of one result is called like it; one of several, and one with regions, whose result is a tuple, like its
 * operator. */
static aot_status_t name_results(p2_writer_t *w, p2_page_t *page, const aot_node_info_t *n, const aot_op_desc_t *d,
                                 aot_str_t *out) {
  const aot_str_t short_name = short_name_of(d->name);
  const int single = n->n_results == 1 && !(d->flags & AOT_OP_REGION);
  for (uint32_t i = 0; i < n->n_results; i++)
    AOT_TRY(p2_name_value(w, page, (aot_value_t){n->first_result.id + i}, single ? short_name : p2_str("getitem")));
  if (single) {
    *out = w->value_names[n->first_result.id];
    return AOT_OK;
  }
  return p2_identifier(w, page, short_name, "node", out);
}

/* An archive has no word for a node through which no gradient flows: what reads its results reads them detached. */
static aot_status_t put_detached(p2_writer_t *w, p2_page_t *page, const aot_node_info_t *n) {
  for (uint32_t i = 0; i < n->n_results; i++) {
    const aot_value_t v = {n->first_result.id + i};
    const aot_str_t of = w->value_names[v.id];
    aot_type_t t;
    memset(&t, 0, sizeof t);
    AOT_TRY(w->host->graph->value_type(w->prog, v, &t));
    if (t.kind != AOT_TYPE_TENSOR || !aot_dtype_is_float(t.dtype)) continue;
    AOT_TRY(p2_identifier(w, page, p2_str("detach"), "detach", &w->value_names[v.id]));
    json_t *inputs = json_pack("[o]", p2_named_json(p2_str("self"), p2_as_tensor(of), 0));
    AOT_TRY(p2_add_node(page, "torch.ops.aten.detach.default", inputs, json_pack("[o]", result_json(w, page, v)),
                        json_object(), json_null(), w->value_names[v.id]));
  }
  return AOT_OK;
}

static aot_status_t put_node(p2_writer_t *w, p2_page_t *page, aot_node_t node) {
  const aot_op_desc_t *d;
  aot_node_info_t n;
  aot_str_t name, target;
  memset(&n, 0, sizeof n);
  n.struct_size = sizeof n;
  w->node = node;
  AOT_TRY(w->host->graph->node_info(w->prog, node, &n));
  d = w->host->graph->op_desc(w->prog, n.op);
  for (uint32_t i = 0; i < n.n_operands; i++)
    if (n.operands[i] != AOT_NO_ID && n.operands[i] == w->tangent.id && !w->value_names[w->tangent.id].size) {
      p2_cannot(w, "export-pt2.order", "the node reads the loss's tangent and stands before the loss");
      return AOT_E_INVALID;
    }
  json_t *inputs = inputs_json(w, page, d, &n); /* sizes that it needs get their nodes here */
  aot_status_t status = inputs ? name_results(w, page, &n, d, &name) : AOT_E_INVALID;
  if (status == AOT_OK) status = p2_join(w->env, p2_str("torch.ops."), d->name, "", &target);
  json_t *outputs = status == AOT_OK ? outputs_json(w, page, d, &n) : NULL;
  if (!outputs) {
    json_decref(inputs);
    return w->env->error.code ? AOT_E_INVALID : AOT_E_EXHAUSTED;
  }
  AOT_TRY(p2_add_node(page, target.data, inputs, outputs, metadata_json(w, n.origin),
                      d->flags & AOT_OP_REGION ? json_false() : json_null(), name));
  if (n.flags & AOT_NODE_NO_GRAD && w->loss.id == AOT_NO_ID) AOT_TRY(put_detached(w, page, &n));
  const uint32_t after_loss = w->loss.id - n.first_result.id;
  return w->loss.id != AOT_NO_ID && n.n_results && after_loss < n.n_results ? put_tangent(w, page) : AOT_OK;
}

/* ---- a graph ---- */

json_t *p2_graph_json(p2_writer_t *w, aot_graph_t g, p2_page_t *page, json_t *inputs) {
  json_t *graph = json_pack("{s:o, s:[], s:[], s:{}, s:{}, s:{}, s:b, s:{}, s:{}}", "inputs", inputs, "outputs",
                            "nodes", "tensor_values", "sym_int_values", "sym_bool_values", "is_single_tensor_return", 0,
                            "custom_obj_values", "sym_float_values");
  if (!graph) return NULL;
  page->graph = g;
  page->nodes = json_object_get(graph, "nodes");
  page->tensor_values = json_object_get(graph, "tensor_values");
  page->sym_ints = json_object_get(graph, "sym_int_values");
  page->sym_bools = json_object_get(graph, "sym_bool_values");
  aot_status_t status = AOT_OK;
  if (w->loss.id != AOT_NO_ID && w->host->graph->value_def(w->prog, w->loss).id == AOT_NO_ID && g.id == w->top.id)
    status = put_tangent(w, page);
  for (aot_node_t n = w->host->graph->first(w->prog, g); status == AOT_OK && n.id != AOT_NO_ID;
       n = w->host->graph->next(w->prog, n))
    status = put_node(w, page, n);
  w->node = aot_no_node();
  if (status == AOT_OK) return graph;
  json_decref(graph);
  return NULL;
}

/* ---- regions ---- */

static aot_status_t region_json(p2_writer_t *w, aot_graph_t g) {
  const aot_graph_api_t *api = w->host->graph;
  p2_page_t page;
  json_t *inputs = json_array(), *metas = json_object(), *sizes = json_object(), *bools = json_object();
  aot_status_t status = AOT_OK;
  memset(&page, 0, sizeof page);
  page.tensor_values = metas;
  page.sym_ints = sizes;
  page.sym_bools = bools;
  for (uint32_t i = 0; status == AOT_OK && i < api->n_inputs(w->prog, g); i++) {
    const aot_port_t port = api->inputs(w->prog, g)[i];
    status = p2_name_value(w, &page, port.value, port.name.size ? port.name : p2_str("arg"));
    if (status == AOT_OK && json_array_append_new(inputs, result_json(w, &page, port.value)) != 0)
      status = AOT_E_INVALID;
  }
  json_t *graph = status == AOT_OK ? p2_graph_json(w, g, &page, json_incref(inputs)) : NULL;
  for (uint32_t i = 0; graph && i < api->n_outputs(w->prog, g); i++) {
    const aot_value_t v = api->outputs(w->prog, g)[i].value;
    json_t *out = v.id == AOT_NO_ID ? json_pack("{s:b}", "as_none", 1) : p2_as_tensor(w->value_names[v.id]);
    json_array_append_new(json_object_get(graph, "outputs"), out);
  }
  if (graph) {
    json_object_update_missing(page.tensor_values, metas);
    json_object_update_missing(page.sym_ints, sizes);
    json_object_update_missing(page.sym_bools, bools);
  }
  json_decref(inputs);
  json_decref(metas);
  json_decref(sizes);
  json_decref(bools);
  w->graphs[g.id] = graph;
  return graph ? AOT_OK : w->env->error.code ? AOT_E_INVALID : AOT_E_EXHAUSTED;
}

typedef struct frame { /* of the walk: a graph whose nodes are being looked at */
  aot_graph_t graph;
  aot_node_t next;
  uint32_t arg;
} frame_t;

/* A region of the frame's nodes that is not written yet; none: the frame is at its end. */
static aot_graph_t next_region(p2_writer_t *w, frame_t *f) {
  const aot_graph_api_t *g = w->host->graph;
  for (; f->next.id != AOT_NO_ID; f->next = g->next(w->prog, f->next), f->arg = 0) {
    aot_node_info_t n;
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    if (g->node_info(w->prog, f->next, &n) != AOT_OK) continue;
    for (; f->arg < n.n_args; f->arg++) {
      const aot_graph_t region = {(uint32_t)n.args[f->arg].u.i};
      if (n.args[f->arg].kind == AOT_ARG_GRAPH && !w->graphs[region.id]) return region;
    }
  }
  return (aot_graph_t){AOT_NO_ID};
}

static aot_status_t name_region(p2_writer_t *w, aot_graph_t g) {
  int32_t kind;
  aot_str_t name = {NULL, 0};
  p2_page_t names;
  AOT_TRY(w->host->graph->graph_info(w->prog, g, &kind, &name));
  memset(&names, 0, sizeof names);
  AOT_TRY(p2_identifier(w, &names, name, "region", &w->graph_names[g.id]));
  for (uint32_t number = 0;
       p2_names_add(w->env, &w->graph_name_index, w->graph_names[g.id], g.id, NULL) == AOT_E_EXISTS; number++) {
    char tail[16];
    snprintf(tail, sizeof tail, "_r%u", (unsigned)number);
    AOT_TRY(p2_join(w->env, name, p2_str(""), tail, &w->graph_names[g.id]));
  }
  return AOT_OK;
}

/* Depth first with a stack of its own; regions never contain themselves. */
aot_status_t p2_regions_write(p2_writer_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  frame_t *stack = NULL;
  uint32_t n = 1, capacity = 0;
  AOT_TRY(p2_grow(w->env, (void **)&stack, 0, &capacity, sizeof *stack));
  stack[0] = (frame_t){w->top, g->first(w->prog, w->top), 0};
  while (n > 0) {
    const aot_graph_t region = next_region(w, &stack[n - 1]);
    if (region.id != AOT_NO_ID) {
      AOT_TRY(p2_grow(w->env, (void **)&stack, n, &capacity, sizeof *stack));
      stack[n++] = (frame_t){region, g->first(w->prog, region), 0};
      continue;
    }
    const aot_graph_t done = stack[--n].graph;
    if (n == 0) return AOT_OK;
    AOT_TRY(name_region(w, done));
    AOT_TRY(region_json(w, done));
  }
  return AOT_OK;
}
