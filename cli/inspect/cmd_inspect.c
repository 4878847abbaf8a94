/* aothost inspect: what a program or model holds, for people or as JSON. One walk collects, two printers report. */
#include <cli/base/commands.h>
#include <device/hetero/hetero.h>
#include <cli/inspect/moves_view.h>
#include <cli/inspect/inspect_memory.h>
#include <cli/plugins/unit_json.h>

#include <aot/ext/saved.h>
#include <aot/inline.h>
#include <ir/saved_slots.h>
#include <ir/text/words.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [s0*2, 64] */
static void dims_text(aot_prog_t *p, const int64_t *dims, int32_t rank, kit_text_t *out) {
  kit_text_z(out, "[");
  for (int32_t i = 0; i < rank; i++) {
    if (i) kit_text_z(out, ", ");
    aoth_dim_print(p, dims[i], out);
  }
  kit_text_z(out, "]");
}

static void type_text(aot_prog_t *p, const aot_type_t *t, kit_text_t *out) {
  static const char *const kinds[] = {"none", "", "symint", "symfloat", "symbool", "token"};
  if (t->kind != AOT_TYPE_TENSOR) {
    kit_text_z(out, t->kind >= 0 && t->kind <= 5 ? kinds[t->kind] : "?");
    return;
  }
  kit_text_z(out, aot_dtype_name(t->dtype));
  dims_text(p, t->sizes, t->rank, out);
}

/* ---- numbers ---- */

/* Elements with every symbol at its hint. */
static uint64_t numel(aot_prog_t *p, const aot_type_t *t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t->rank; i++) {
    const int64_t size = aoth_graph_dim_hint(p, t->sizes[i]);
    n *= size > 0 ? (uint64_t)size : 0;
  }
  return n;
}

typedef struct op_count {
  const aot_op_desc_t *op;
  uint32_t n;
} op_count_t;

static int compare_counts(const void *a, const void *b) {
  const op_count_t *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  const int order = memcmp(x->op->name.data, y->op->name.data,
                           (size_t)(x->op->name.size < y->op->name.size ? x->op->name.size : y->op->name.size));
  return order ? order : (x->op->name.size > y->op->name.size) - (x->op->name.size < y->op->name.size);
}

typedef struct inspection {
  aot_prog_t *p;
  op_count_t *ops; /* only those in use, most used first */
  uint32_t n_ops, n_nodes;
  uint64_t n_parameters, parameter_bytes, buffer_bytes, n_trained;
} inspection_t;

static uint32_t nodes_of(aot_prog_t *p, uint32_t graph, op_count_t *counts, uint32_t n_counts) {
  uint32_t n = 0;
  for (aot_node_t k = aoth_graph_first(p, (aot_graph_t){graph}); k.id != AOT_NO_ID; k = aoth_graph_next(p, k), n++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (counts && aoth_graph_node_info(p, k, &info) == AOT_OK && info.op.id < n_counts) counts[info.op.id].n++;
  }
  return n;
}

static void count_leaves(inspection_t *in) {
  for (uint32_t i = 1; i < aoth_graph_n_leaves(in->p); i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (aoth_graph_leaf_info(in->p, (aot_leaf_t){i}, &leaf) != AOT_OK) continue;
    const uint64_t n = numel(in->p, &leaf.type), bytes = n * aot_dtype_size(leaf.type.dtype);
    if (leaf.role == AOT_ROLE_BUFFER) in->buffer_bytes += bytes;
    if (leaf.role != AOT_ROLE_PARAMETER) continue;
    in->n_parameters += n;
    in->parameter_bytes += bytes;
    if (leaf.flags & AOT_LEAF_REQUIRES_GRAD) in->n_trained += n;
  }
}

static int collect(inspection_t *in, aot_prog_t *p) {
  const uint32_t n = aoth_graph_n_ops(p);
  in->p = p;
  in->ops = calloc(n + 1u, sizeof *in->ops);
  if (!in->ops) return 0;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) in->n_nodes += nodes_of(p, g, in->ops, n);
  for (uint32_t i = 1; i < n; i++) {
    if (!in->ops[i].n) continue;
    in->ops[in->n_ops] = (op_count_t){aoth_graph_op_desc(p, (aot_op_t){i}), in->ops[i].n};
    in->n_ops++;
  }
  if (in->n_ops) qsort(in->ops, in->n_ops, sizeof *in->ops, compare_counts);
  count_leaves(in);
  return 1;
}

static int is_graph(aot_prog_t *p, uint32_t g, int32_t *out_kind, aot_str_t *out_name) {
  return aoth_graph_graph_info(p, (aot_graph_t){g}, out_kind, out_name) == AOT_OK; /* else: erased */
}

/* ---- for people ---- */

static void print_ports(aot_prog_t *p, const char *title, const aot_port_t *ports, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    kit_text_t type = {0};
    aot_type_t t;
    if (ports[i].value.id != AOT_NO_ID && aoth_graph_value_type(p, ports[i].value, &t) == AOT_OK)
      type_text(p, &t, &type);
    printf("  %-6s %-14s %5u  %-24s %.*s\n", i ? "" : title, aoth_role_name(ports[i].role),
           aoth_port_number(ports[i].role, ports[i].index), type.data ? type.data : "none", (int)ports[i].name.size,
           ports[i].name.size ? ports[i].name.data : "");
    kit_text_deinit(&type);
  }
}

static void print_graphs(const inspection_t *in, int with_regions) {
  for (uint32_t g = 1; g < aoth_graph_n_graphs(in->p); g++) {
    int32_t kind;
    aot_str_t name;
    const aot_graph_t graph = {g};
    if (!is_graph(in->p, g, &kind, &name) || (kind == AOT_GRAPH_REGION && !with_regions)) continue;
    printf("\ngraph %.*s: %s, %u nodes, %u inputs, %u outputs\n", (int)name.size, name.size ? name.data : "",
           aoth_graph_kind_name(kind), nodes_of(in->p, g, NULL, 0), aoth_graph_n_inputs(in->p, graph),
           aoth_graph_n_outputs(in->p, graph));
    print_ports(in->p, "in", aoth_graph_inputs(in->p, graph), aoth_graph_n_inputs(in->p, graph));
    print_ports(in->p, "out", aoth_graph_outputs(in->p, graph), aoth_graph_n_outputs(in->p, graph));
  }
}

static void print_leaves(const inspection_t *in) {
  const uint32_t n = aoth_graph_n_leaves(in->p);
  if (n > 1) printf("\n%5s  %-11s %-20s %12s  %-5s %s\n", "leaf", "role", "type", "bytes", "grad", "name");
  for (uint32_t i = 1; i < n; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    kit_text_t type = {0}, names = {0};
    if (aoth_graph_leaf_info(in->p, (aot_leaf_t){i}, &leaf) != AOT_OK) continue;
    type_text(in->p, &leaf.type, &type);
    for (uint32_t k = 0; k < leaf.n_names; k++)
      kit_text_f(&names, "%s%.*s", k ? " = " : "", (int)leaf.names[k].size, leaf.names[k].data);
    printf("%5u  %-11s %-20s %12llu  %-5s %s\n", i - 1, aoth_role_name(leaf.role), type.data ? type.data : "",
           (unsigned long long)(numel(in->p, &leaf.type) * aot_dtype_size(leaf.type.dtype)),
           leaf.flags & AOT_LEAF_REQUIRES_GRAD ? "yes" : "", names.data ? names.data : "");
    kit_text_deinit(&type);
    kit_text_deinit(&names);
  }
}

static void print_rules(const inspection_t *in) {
  for (uint32_t i = 0; i < aoth_graph_n_rules(in->p); i++) {
    aot_rule_t r;
    kit_text_t geometry = {0};
    if (aoth_graph_rule(in->p, i, &r) != AOT_OK) continue;
    if (r.dtype) kit_text_f(&geometry, " as %s", aot_dtype_name(r.dtype));
    if (r.sizes) {
      kit_text_z(&geometry, " sizes ");
      dims_text(in->p, r.sizes, r.rank, &geometry);
    }
    if (r.strides) {
      kit_text_z(&geometry, " strides ");
      dims_text(in->p, r.strides, r.rank, &geometry);
    }
    printf("%s  %-12s %u %u%s\n", i ? "" : "\nboundary\n", aoth_rule_name(r.kind), aoth_rule_a_number(&r),
           aoth_rule_b_number(&r), geometry.data ? geometry.data : "");
    kit_text_deinit(&geometry);
  }
}

static void print_symbols(const inspection_t *in) {
  for (uint32_t i = 0; i < aoth_graph_n_symbols(in->p); i++) {
    aot_symbol_info_t s = {.struct_size = sizeof s};
    if (aoth_graph_symbol_info(in->p, i, &s) != AOT_OK) continue;
    printf("%s  %.*s: from %lld", i ? "" : "\nsymbols\n", (int)s.name.size, s.name.data, (long long)s.min);
    if (s.max == INT64_MAX) printf(" on");
    else printf(" to %lld", (long long)s.max);
    printf(", traced at %lld\n", (long long)s.hint);
  }
}

/* ---- memory at the boundary ---- */

typedef int (*input_test_t)(aot_prog_t *p, const aot_port_t *port);

static aot_graph_t entry_graph(aot_prog_t *p) {
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  return forward.id != AOT_NO_ID ? forward : aoth_graph_graph_find(p, AOT_GRAPH_JOINT);
}

static int is_static(aot_prog_t *p, const aot_port_t *port) {
  (void)p;
  return aoth_input_is_static(port);
}

static int is_to_detach(aot_prog_t *p, const aot_port_t *port) {
  const aot_graph_t joint = aoth_graph_graph_find(p, AOT_GRAPH_JOINT);
  const aot_graph_t gradients = joint.id != AOT_NO_ID ? joint : aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD);
  return gradients.id != AOT_NO_ID && aoth_input_to_detach(p, port, gradients);
}

static const struct { /* lists of inputs of the forward (or joint) graph, by number */
  const char *key, *title;
  input_test_t test;
} input_lists[] = {{"static_inputs", "static inputs", is_static},
                   {"inputs_to_detach", "inputs to detach", is_to_detach}};
#define N_INPUT_LISTS (sizeof input_lists / sizeof *input_lists)

static const struct {
  uint32_t bit;
  const char *word;
} holders[] = {{AOT_HELD_INPUT, "input"},
               {AOT_HELD_STATIC, "static"},
               {AOT_HELD_OUTPUT, "output"},
               {AOT_HELD_GRADIENT, "gradient"}};
#define N_HOLDERS (sizeof holders / sizeof *holders)

/* Of a partitioned program: the forward's outputs, and which owns each slot; n_slots 0 for any other. */
typedef struct slots {
  const aot_port_t *ports;
  uint32_t n_ports, n_slots;
  uint32_t *held; /* by slot; free() it */
} slots_t;

static slots_t find_slots(aot_prog_t *p) {
  slots_t s = {0};
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  if (forward.id == AOT_NO_ID || aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD).id == AOT_NO_ID) return s;
  s.ports = aoth_graph_outputs(p, forward);
  s.n_ports = aoth_graph_n_outputs(p, forward);
  s.held = calloc(s.n_ports + (size_t)1, sizeof *s.held);
  if (!s.held || aoth_saved_held(p, s.held, s.n_ports, &s.n_slots) != AOT_OK) s.n_slots = 0;
  return s;
}

static uint64_t type_bytes(aot_prog_t *p, const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR ? numel(p, t) * aot_dtype_size(t->dtype) : 0;
}

static void print_slots(aot_prog_t *p) {
  slots_t s = find_slots(p);
  if (s.n_slots) printf("\n%5s  %-20s %12s  %s\n", "saved", "type", "bytes", "memory");
  for (uint32_t i = 0; i < s.n_ports && s.n_slots; i++) {
    kit_text_t type = {0}, held = {0};
    aot_type_t t;
    if (s.ports[i].role != AOT_ROLE_SAVED || aoth_graph_value_type(p, s.ports[i].value, &t) != AOT_OK) continue;
    type_text(p, &t, &type);
    for (size_t k = 0; k < N_HOLDERS; k++)
      if (s.held[s.ports[i].index] & holders[k].bit)
        kit_text_f(&held, "%s%s", held.size ? ", " : "held by ", holders[k].word);
    printf("%5u  %-20s %12llu  %s\n", s.ports[i].index, type.data ? type.data : "",
           (unsigned long long)type_bytes(p, &t), held.size ? held.data : "donated");
    kit_text_deinit(&type);
    kit_text_deinit(&held);
  }
  free(s.held);
}

static void print_input_lists(aot_prog_t *p) {
  const aot_graph_t g = entry_graph(p);
  for (size_t k = 0, shown = 0; k < N_INPUT_LISTS && g.id != AOT_NO_ID; k++) {
    const aot_port_t *ports = aoth_graph_inputs(p, g);
    kit_text_t numbers = {0};
    for (uint32_t i = 0; i < aoth_graph_n_inputs(p, g); i++)
      if (input_lists[k].test(p, &ports[i])) kit_text_f(&numbers, " %u", i);
    if (numbers.size) printf("%s%s:%s\n", shown++ ? "" : "\n", input_lists[k].title, numbers.data);
    kit_text_deinit(&numbers);
  }
}

/* ---- a program that is divided among backends ---- */

/* {BACKEND: {nodes, parts}}; empty: it is not. */
static json_t *shares_json(aot_prog_t *p) {
  json_t *shares = json_object();
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_graph_t part;
      aot_str_t device;
      aot_str_t backend;
      if (aoth_graph_node_info(p, n, &info) != AOT_OK || !aoth_is_part_call(p, &info, &part, &backend, &device))
        continue;
      json_t *name = aoth_str_json(backend), *share = json_object_get(shares, json_string_value(name));
      const json_int_t n_nodes = json_integer_value(json_object_get(share, "nodes")) + nodes_of(p, part.id, NULL, 0);
      const json_int_t n_parts = json_integer_value(json_object_get(share, "parts")) + 1;
      json_object_set_new(shares, json_string_value(name), json_pack("{s:I, s:I}", "nodes", n_nodes, "parts", n_parts));
      json_decref(name);
    }
  return shares;
}

static void print_shares(aot_prog_t *p) {
  json_t *shares = shares_json(p), *share;
  const char *backend;
  if (json_object_size(shares)) printf("\nbackends\n");
  json_object_foreach(shares, backend, share)
      printf("  %-20s %u nodes in %u parts\n", backend, (unsigned)json_integer_value(json_object_get(share, "nodes")),
             (unsigned)json_integer_value(json_object_get(share, "parts")));
  json_decref(shares);
}

static void print_moves(aot_ctx_t *ctx, aot_prog_t *p) {
  json_t *moves = aoth_moves_json(ctx, p);
  aoth_moves_print(moves);
  json_decref(moves);
}

static void print_all(const inspection_t *in, const char *path, aot_ctx_t *ctx, kit_arena_t *arena, int verbose) {
  const char *properties = aoth_property_names(aoth_prog_properties(in->p), arena);
  printf("%s\n  %s%s%u nodes, %u operators, %u leaves\n", path, properties, *properties ? "; " : "", in->n_nodes,
         in->n_ops, aoth_graph_n_leaves(in->p) - 1);
  printf("  %llu parameters (%llu trained), %llu bytes; buffers %llu bytes\n", (unsigned long long)in->n_parameters,
         (unsigned long long)in->n_trained, (unsigned long long)in->parameter_bytes,
         (unsigned long long)in->buffer_bytes);
  print_graphs(in, verbose);
  print_leaves(in);
  print_slots(in->p);
  print_input_lists(in->p);
  print_rules(in);
  print_symbols(in);
  print_shares(in->p);
  print_moves(ctx, in->p);
  if (in->n_ops) printf("\noperators\n");
  for (uint32_t i = 0; i < in->n_ops; i++)
    printf("%7u  %.*s\n", in->ops[i].n, (int)in->ops[i].op->name.size, in->ops[i].op->name.data);
}

/* ---- for programs ---- */

static json_t *dims_json(aot_prog_t *p, const int64_t *dims, int32_t rank) {
  json_t *list = json_array();
  for (int32_t i = 0; dims && i < rank; i++) {
    kit_text_t t = {0};
    aoth_dim_print(p, dims[i], &t);
    json_array_append_new(list, AOT_DIM_IS_SYM(dims[i]) ? json_string(t.data ? t.data : "") : json_integer(dims[i]));
    kit_text_deinit(&t);
  }
  return list;
}

static json_t *type_json(aot_prog_t *p, const aot_type_t *t) {
  if (t->kind != AOT_TYPE_TENSOR) {
    kit_text_t text = {0};
    type_text(p, t, &text);
    json_t *kind = json_pack("{s:s}", "kind", text.data ? text.data : "");
    kit_text_deinit(&text);
    return kind;
  }
  return json_pack("{s:s, s:s, s:o, s:o}", "kind", "tensor", "dtype", aot_dtype_name(t->dtype), "shape",
                   dims_json(p, t->sizes, t->rank), "strides", dims_json(p, t->strides, t->rank));
}

static json_t *ports_json(aot_prog_t *p, const aot_port_t *ports, uint32_t n) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) {
    aot_type_t t;
    const int has_type = ports[i].value.id != AOT_NO_ID && aoth_graph_value_type(p, ports[i].value, &t) == AOT_OK;
    json_array_append_new(list,
                          json_pack("{s:s, s:I, s:o, s:o}", "role", aoth_role_name(ports[i].role), "index",
                                    (json_int_t)aoth_port_number(ports[i].role, ports[i].index), "name",
                                    aoth_str_json(ports[i].name), "type", has_type ? type_json(p, &t) : json_null()));
  }
  return list;
}

static json_t *graphs_json(const inspection_t *in) {
  json_t *list = json_array();
  for (uint32_t g = 1; g < aoth_graph_n_graphs(in->p); g++) {
    int32_t kind;
    aot_str_t name;
    const aot_graph_t graph = {g};
    if (!is_graph(in->p, g, &kind, &name)) continue;
    json_array_append_new(
        list,
        json_pack("{s:o, s:s, s:I, s:o, s:o}", "name", aoth_str_json(name), "kind", aoth_graph_kind_name(kind), "nodes",
                  (json_int_t)nodes_of(in->p, g, NULL, 0), "inputs",
                  ports_json(in->p, aoth_graph_inputs(in->p, graph), aoth_graph_n_inputs(in->p, graph)), "outputs",
                  ports_json(in->p, aoth_graph_outputs(in->p, graph), aoth_graph_n_outputs(in->p, graph))));
  }
  return list;
}

static json_t *leaves_json(const inspection_t *in) {
  json_t *list = json_array();
  for (uint32_t i = 1; i < aoth_graph_n_leaves(in->p); i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    json_t *names = json_array();
    aoth_graph_leaf_info(in->p, (aot_leaf_t){i}, &leaf);
    for (uint32_t k = 0; k < leaf.n_names; k++) json_array_append_new(names, aoth_str_json(leaf.names[k]));
    json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:b, s:I, s:b}", "role", aoth_role_name(leaf.role), "names",
                                          names, "type", type_json(in->p, &leaf.type), "requires_grad",
                                          (leaf.flags & AOT_LEAF_REQUIRES_GRAD) != 0, "bytes",
                                          (json_int_t)(numel(in->p, &leaf.type) * aot_dtype_size(leaf.type.dtype)),
                                          "has_data", leaf.data != NULL));
  }
  return list;
}

static json_t *rules_json(const inspection_t *in) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < aoth_graph_n_rules(in->p); i++) {
    aot_rule_t r;
    if (aoth_graph_rule(in->p, i, &r) != AOT_OK) continue;
    json_array_append_new(list,
                          json_pack("{s:s, s:I, s:I, s:s?, s:o, s:o}", "kind", aoth_rule_name(r.kind), "a",
                                    (json_int_t)aoth_rule_a_number(&r), "b", (json_int_t)aoth_rule_b_number(&r),
                                    "dtype", r.dtype ? aot_dtype_name(r.dtype) : NULL, "shape",
                                    dims_json(in->p, r.sizes, r.rank), "strides", dims_json(in->p, r.strides, r.rank)));
  }
  return list;
}

static json_t *symbols_json(const inspection_t *in) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < aoth_graph_n_symbols(in->p); i++) {
    aot_symbol_info_t s = {.struct_size = sizeof s};
    if (aoth_graph_symbol_info(in->p, i, &s) != AOT_OK) continue;
    json_array_append_new(
        list, json_pack("{s:o, s:I, s:o, s:I}", "name", aoth_str_json(s.name), "min", (json_int_t)s.min, "max",
                        s.max == INT64_MAX ? json_null() : json_integer(s.max), "hint", (json_int_t)s.hint));
  }
  return list;
}

static json_t *slots_json(aot_prog_t *p) {
  slots_t s = find_slots(p);
  json_t *list = json_array();
  for (uint32_t i = 0; i < s.n_ports && s.n_slots; i++) {
    aot_type_t t;
    if (s.ports[i].role != AOT_ROLE_SAVED || aoth_graph_value_type(p, s.ports[i].value, &t) != AOT_OK) continue;
    const uint32_t held = s.held[s.ports[i].index];
    json_t *by = json_array();
    for (size_t k = 0; k < N_HOLDERS; k++)
      if (held & holders[k].bit) json_array_append_new(by, json_string(holders[k].word));
    json_array_append_new(list, json_pack("{s:I, s:o, s:I, s:b, s:o}", "slot", (json_int_t)s.ports[i].index, "type",
                                          type_json(p, &t), "bytes", (json_int_t)type_bytes(p, &t), "donated",
                                          held == 0, "held_by", by));
  }
  free(s.held);
  return list;
}

static json_t *input_list_json(aot_prog_t *p, input_test_t test) {
  const aot_graph_t g = entry_graph(p);
  json_t *list = json_array();
  const aot_port_t *ports = g.id != AOT_NO_ID ? aoth_graph_inputs(p, g) : NULL;
  for (uint32_t i = 0; ports && i < aoth_graph_n_inputs(p, g); i++)
    if (test(p, &ports[i])) json_array_append_new(list, json_integer(i));
  return list;
}

static json_t *inspection_json(const inspection_t *in, aot_ctx_t *ctx, const char *path) {
  json_t *ops = json_object();
  for (uint32_t i = 0; i < in->n_ops; i++) {
    json_t *name = aoth_str_json(in->ops[i].op->name);
    json_object_set_new(ops, json_string_value(name), json_integer(in->ops[i].n));
    json_decref(name);
  }
  json_t *json =
      json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "file", path, "properties",
                aoth_properties_json(aoth_prog_properties(in->p)), "nodes", (json_int_t)in->n_nodes, "parameters",
                (json_int_t)in->n_parameters, "trained_parameters", (json_int_t)in->n_trained, "parameter_bytes",
                (json_int_t)in->parameter_bytes, "buffer_bytes", (json_int_t)in->buffer_bytes, "graphs",
                graphs_json(in), "leaves", leaves_json(in), "saved", slots_json(in->p), "boundary", rules_json(in),
                "symbols", symbols_json(in), "operators", ops);
  for (size_t k = 0; json && k < N_INPUT_LISTS; k++)
    json_object_set_new(json, input_lists[k].key, input_list_json(in->p, input_lists[k].test));
  json_t *shares = shares_json(in->p);
  if (json && json_object_size(shares)) json_object_set(json, "backends", shares);
  json_decref(shares);
  json_t *moves = aoth_moves_json(ctx, in->p);
  if (json && json_array_size(moves)) json_object_set(json, "moves", moves);
  json_decref(moves);
  return json;
}

/* ---- the command ---- */

static aot_status_t inspect(aoth_cli_t *cli, const char *import_id) {
  aoth_session_t *s = cli->session;
  inspection_t in = {0};
  AOT_TRY(aoth_session_import(s, import_id, NULL, cli->positional[0], NULL));
  if (!collect(&in, aoth_session_prog(s))) return AOT_E_EXHAUSTED;
  aot_status_t status = AOT_OK;
  if (cli->common.json_path) {
    json_t *json = inspection_json(&in, aoth_session_ctx(s), cli->positional[0]);
    status = aoth_cli_json(cli, json);
    json_decref(json);
  }
  if (!cli->common.json_path || strcmp(cli->common.json_path, "-") != 0)
    print_all(&in, cli->positional[0], aoth_session_ctx(s), aoth_session_ctx(s)->session, cli->common.verbose);
  free(in.ops);
  return status;
}

static int inspect_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_memory_flags_t memory = {0};
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {
      {
          .name = "--import",
          .value = "ID",
          .help = "the importer; found out from the file when left out, ir for text",
          .text = &memory.import_id,
      },
      {.name = "--memory", .help = "the memory that a step takes; FILE may be a pipeline", .set = &memory.on},
      {
          .name = "--use",
          .value = "STAGE",
          .help = "of a program: run this unit first; may repeat, the backend is asked",
          .list = &memory.uses,
          .with_name = 1,
      },
      {
          .name = "--with",
          .value = "K=V",
          .help = "an option of the --use before it; may repeat",
          .list = &memory.uses,
          .with_name = 1,
      },
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &memory.model},
      {.name = "--top", .value = "N", .help = "list so many of the largest buffers (16)", .text = &memory.top},
      {
          .name = "--budget",
          .value = "B",
          .help = "exit with status 1 if the peak exceeds B: bytes (64MiB) or a fraction of the all-saved peak (0.5)",
          .text = &memory.budget,
      },
      {.name = "--simulated", .help = "also what the partition stage's own simulator says", .set = &memory.simulated},
      {.name = "--unit", .value = "ID", .help = "also what this backend or partitioner says", .text = &memory.unit},
      {.name = "--plot", .value = "F", .help = "draw it: F.svg or F.html", .text = &memory.plot, .writes = 1},
  };
  int code = aoth_cli_init(&cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  if (code == AOTH_CLI_GO) {
    const int ready = aoth_cli_session(&cli) && aoth_inspect_flags_fit(&cli, &memory);
    if (!ready) code = AOTH_EXIT_INPUT;
    else code = memory.on ? aoth_inspect_memory(&cli, &memory) : aoth_exit_code(inspect(&cli, memory.import_id));
  }
  free(memory.uses.items);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_inspect = {
    .name = "inspect",
    .usage = "inspect FILE [options]",
    .summary = "print graphs, signatures, parameters and operator counts; plan memory with --memory",
    .text = "Reads a program in text (.ir) or a model and tells its graphs with their signatures, its leaves\n"
            "(parameters, buffers, constants, inputs) with types and sizes, boundary rules, symbols with ranges,\n"
            "and how often each operator is used; of a partitioned program also what is saved and who else holds\n"
            "its memory (`donated`: nobody), which inputs stay in place, which to detach. Sizes of symbolic tensors\n"
            "are those at tracing. -v shows region graphs, too.\n"
            "\n"
            "--memory compiles a pipeline, or runs the stages named over a program, and tells the memory of one\n"
            "training step as the backend plans it: a chart over its steps, the peak, the largest buffers alive there\n"
            "with their operators and modules. Nothing is run. docs/MEMORY.md explains the numbers and the JSON keys.\n"
            "Status 1 when it does not fit a --budget.\n"
            "\n"
            "  aothost inspect gpt.pt2\n"
            "  aothost inspect 03.partition-mincut.ir --json - | jq .operators\n"
            "  aothost inspect pipelines/quickstart.yaml --memory --budget 64MiB --plot memory.html\n"
            "  aothost inspect 03.partition-mincut.ir --memory --use backend-cpu --with threads=1\n",
    .main = inspect_main,
};
