/* exported_program.c - graphs, signature and payload configs. See exported_program.h.
 *
 * Nested graphs are met while a graph's arguments are read and wait in a list; the loop in p2_decode_program takes them
 * in turn, so nothing recurses. Linear in the JSON. */
#include "exported_fields.h"
#include <string.h>

#define BAD_FIELD "import-pt2.bad-field"

/* ---- graphs ---- */

static aot_status_t arguments(p2_decoder_t *d, const p2_at_t *up, json_t *object, const char *key,
                              const p2_argument_t **out, uint32_t *out_n) {
  p2_at_t at = p2_at_key(up, key);
  p2_argument_t *list;
  json_t *j = NULL;
  uint32_t i;
  AOT_TRY(p2_field(d, up, object, key, &j));
  AOT_TRY(p2_want_array(d, &at, j, out_n));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, *out_n, &list));
  for (i = 0; i < *out_n; i++) {
    p2_at_t here = p2_at_index(&at, i);
    AOT_TRY(p2_decode_argument(d, &here, json_array_get(j, i), &list[i]));
  }
  *out = list;
  return AOT_OK;
}

/* graphsafe_run_with_rng_state(op, .., rng_state=state) is read with the state in front. */
static void put_state_first(aot_str_t target, p2_input_t *list, uint32_t n) {
  uint32_t i = 0;
  if (!p2_str_is(target, "torch.ops.higher_order.graphsafe_run_with_rng_state")) return;
  while (i < n && !p2_str_is(list[i].name, "rng_state")) i++;
  if (i == n) return;
  p2_input_t state = list[i];
  state.name.size = 0;
  for (; i > 0; i--) list[i] = list[i - 1];
  list[0] = state;
}

static aot_status_t node_inputs(p2_decoder_t *d, const p2_at_t *up, json_t *object, p2_node_t *out) {
  p2_at_t at = p2_at_key(up, "inputs");
  p2_input_t *list;
  json_t *j = NULL, *value = NULL;
  uint32_t i;
  AOT_TRY(p2_field(d, up, object, "inputs", &j));
  AOT_TRY(p2_want_array(d, &at, j, &out->n_inputs));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, out->n_inputs, &list));
  for (i = 0; i < out->n_inputs; i++) {
    p2_at_t here = p2_at_index(&at, i), arg = p2_at_key(&here, "arg");
    AOT_TRY(p2_field(d, &here, json_array_get(j, i), "arg", &value));
    AOT_TRY(p2_maybe_string(d, &here, json_array_get(j, i), "name", &list[i].name));
    AOT_TRY(p2_decode_argument(d, &arg, value, &list[i].arg));
  }
  put_state_first(out->target, list, out->n_inputs);
  out->inputs = list;
  return AOT_OK;
}

/* with_effects(token, op, ..) -> (token, ..) is read as op: nodes are in the order of their effects. An operator that
 * gives nothing has one result there, None. */
static void take_out_token(p2_node_t *n) {
  if (!p2_str_is(n->target, "torch.ops.higher_order.with_effects")) return;
  if (n->n_inputs < 2 || n->inputs[1].arg.kind != P2_ARG_OPERATOR || n->n_outputs < 1) return;
  n->target = n->inputs[1].arg.u.s;
  n->inputs += 2;
  n->n_inputs -= 2;
  n->outputs += 1;
  n->n_outputs -= 1;
  if (n->n_outputs == 1 && n->outputs[0].kind == P2_ARG_NONE) n->n_outputs = 0;
}

static aot_status_t node(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_node_t *out) {
  p2_at_t meta = p2_at_key(at, "metadata");
  json_t *m;
  AOT_TRY(p2_field_string(d, at, j, "target", &out->target));
  AOT_TRY(p2_maybe_string(d, at, j, "name", &out->name));
  AOT_TRY(node_inputs(d, at, j, out));
  AOT_TRY(arguments(d, at, j, "outputs", &out->outputs, &out->n_outputs));
  take_out_token(out);
  if (!out->name.size && out->n_outputs && out->outputs[0].kind == P2_ARG_TENSOR) out->name = out->outputs[0].u.s;
  m = json_object_get(j, "metadata");
  if (!json_is_object(m)) return AOT_OK;
  AOT_TRY(p2_maybe_string(d, &meta, m, "nn_module_stack", &out->module_stack));
  AOT_TRY(p2_maybe_string(d, &meta, m, "stack_trace", &out->stack_trace));
  AOT_TRY(p2_maybe_string(d, &meta, m, "custom", &out->custom));
  return p2_maybe_string(d, &meta, m, "from_node", &out->from_node);
}

static aot_status_t tensor_values(p2_decoder_t *d, const p2_at_t *up, json_t *object, p2_graph_t *out) {
  p2_at_t at = p2_at_key(up, "tensor_values");
  json_t *j = NULL, *value;
  p2_meta_t *metas;
  aot_str_t *names;
  const char *key;
  AOT_TRY(p2_field(d, up, object, "tensor_values", &j));
  AOT_TRY(p2_want_object(d, &at, j));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, json_object_size(j), &metas));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, json_object_size(j), &names));
  json_object_foreach(j, key, value) {
    p2_at_t here = p2_at_key(&at, key);
    AOT_TRY(p2_decode_meta(d, &here, value, &metas[out->n_metas]));
    names[out->n_metas] = p2_str(key);
    AOT_TRY(p2_names_add(d->e, &out->meta_index, p2_str(key), out->n_metas, NULL));
    out->n_metas++;
  }
  out->metas = metas;
  out->meta_names = names;
  return AOT_OK;
}

/* sym_int_values, sym_bool_values, sym_float_values: from a name to a number or an expression. */
static aot_status_t sym_values(p2_decoder_t *d, const p2_at_t *up, json_t *object, const char *field, p2_names_t *index,
                               const p2_dim_t **out, uint32_t *out_n) {
  p2_at_t at = p2_at_key(up, field);
  json_t *j = json_object_get(object, field), *value;
  p2_dim_t *dims;
  const char *key;
  *out_n = 0;
  if (!j || json_is_null(j)) return AOT_OK;
  AOT_TRY(p2_want_object(d, &at, j));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, json_object_size(j), &dims));
  json_object_foreach(j, key, value) {
    p2_at_t here = p2_at_key(&at, key);
    json_t *number = json_object_get(value, "as_float");
    double f = 0;
    if (number) {
      AOT_TRY(p2_want_float(d, &here, number, &f));
      memcpy(&dims[*out_n].value, &f, sizeof f);
    } else {
      AOT_TRY(p2_decode_dim(d, &here, value, &dims[*out_n]));
    }
    AOT_TRY(p2_names_add(d->e, index, p2_str(key), *out_n, NULL));
    ++*out_n;
  }
  *out = dims;
  return AOT_OK;
}

static aot_status_t graph(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_graph_t *out) {
  p2_at_t nodes_at = p2_at_key(at, "nodes");
  json_t *list = NULL;
  p2_node_t *nodes;
  uint32_t i;
  AOT_TRY(arguments(d, at, j, "inputs", &out->inputs, &out->n_inputs));
  AOT_TRY(arguments(d, at, j, "outputs", &out->outputs, &out->n_outputs));
  AOT_TRY(tensor_values(d, at, j, out));
  AOT_TRY(sym_values(d, at, j, "sym_int_values", &out->sym_int_index, &out->sym_ints, &out->n_sym_ints));
  AOT_TRY(sym_values(d, at, j, "sym_bool_values", &out->sym_bool_index, &out->sym_bools, &out->n_sym_bools));
  AOT_TRY(sym_values(d, at, j, "sym_float_values", &out->sym_float_index, &out->sym_floats, &out->n_sym_floats));
  AOT_TRY(p2_field(d, at, j, "nodes", &list));
  AOT_TRY(p2_want_array(d, &nodes_at, list, &out->n_nodes));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, out->n_nodes, &nodes));
  for (i = 0; i < out->n_nodes; i++) {
    p2_at_t here = p2_at_index(&nodes_at, i);
    AOT_TRY(node(d, &here, json_array_get(list, i), &nodes[i]));
  }
  out->nodes = nodes;
  return AOT_OK;
}

/* ---- signature ---- */

typedef struct spec_row {
  const char *key;
  int32_t kind;
  const char *target; /* the field that names the thing, NULL: none */
} spec_row_t;

static const spec_row_t input_rows[] = {{"user_input", P2_IN_USER, NULL},
                                        {"parameter", P2_IN_PARAMETER, "parameter_name"},
                                        {"buffer", P2_IN_BUFFER, "buffer_name"},
                                        {"tensor_constant", P2_IN_CONSTANT, "tensor_constant_name"},
                                        {"constant_input", P2_IN_PYTHON, "name"},
                                        {"token", P2_IN_TOKEN, NULL},
                                        {"custom_obj", P2_IN_OBJECT, "custom_obj_name"}};
static const spec_row_t output_rows[] = {{"user_output", P2_OUT_USER, NULL},
                                         {"loss_output", P2_OUT_LOSS, NULL},
                                         {"buffer_mutation", P2_OUT_BUFFER, "buffer_name"},
                                         {"parameter_mutation", P2_OUT_PARAMETER, "parameter_name"},
                                         {"user_input_mutation", P2_OUT_USER_INPUT, "user_input_name"},
                                         {"gradient_to_parameter", P2_OUT_GRADIENT, "parameter_name"},
                                         {"gradient_to_user_input", P2_OUT_INPUT_GRADIENT, "user_input_name"},
                                         {"token", P2_OUT_TOKEN, NULL}};

/* "arg" of a spec: {"name": ..}, in user inputs and outputs an Argument. Its name, if it has one. */
static aot_str_t spec_value(json_t *spec) {
  json_t *arg = json_object_get(spec, "arg"), *inner = json_object_iter_value(json_object_iter(arg));
  const char *name = json_string_value(json_object_get(arg, "name"));
  if (!name) name = json_string_value(json_object_get(inner, "name"));
  if (!name) name = json_string_value(json_object_get(inner, "as_name"));
  return p2_str(name ? name : "");
}

static aot_status_t spec(p2_decoder_t *d, const p2_at_t *at, json_t *j, const spec_row_t *rows, size_t n_rows,
                         const char *what, const spec_row_t **out_row, json_t **out_value, aot_str_t *out_target) {
  const char *key = NULL;
  p2_at_t here;
  size_t i;
  AOT_TRY(p2_union(d, at, j, &key, out_value));
  for (i = 0; i < n_rows && strcmp(key, rows[i].key) != 0; i++) {}
  if (i == n_rows) return p2_unknown_key(d, at, what, key);
  here = p2_at_key(at, rows[i].key);
  *out_row = &rows[i];
  if (rows[i].target) AOT_TRY(p2_field_string(d, &here, *out_value, rows[i].target, out_target));
  return AOT_OK;
}

static aot_status_t input_specs(p2_decoder_t *d, const p2_at_t *up, json_t *signature, p2_program_t *out) {
  p2_at_t at = p2_at_key(up, "input_specs");
  const spec_row_t *row = NULL;
  p2_input_spec_t *list;
  json_t *j = NULL, *value = NULL;
  uint32_t i;
  AOT_TRY(p2_field(d, up, signature, "input_specs", &j));
  AOT_TRY(p2_want_array(d, &at, j, &out->n_input_specs));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, out->n_input_specs, &list));
  for (i = 0; i < out->n_input_specs; i++) {
    p2_at_t here = p2_at_index(&at, i), inner;
    AOT_TRY(spec(d, &here, json_array_get(j, i), input_rows, sizeof input_rows / sizeof *input_rows, "input_spec", &row,
                 &value, &list[i].target));
    list[i].kind = row->kind;
    list[i].value = spec_value(value);
    list[i].persistent = 1;
    inner = p2_at_key(&here, row->key);
    if (row->kind == P2_IN_BUFFER) AOT_TRY(p2_maybe_bool(d, &inner, value, "persistent", &list[i].persistent));
  }
  out->input_specs = list;
  return AOT_OK;
}

static aot_status_t output_specs(p2_decoder_t *d, const p2_at_t *up, json_t *signature, p2_program_t *out) {
  p2_at_t at = p2_at_key(up, "output_specs");
  const spec_row_t *row = NULL;
  p2_output_spec_t *list;
  json_t *j = NULL, *value = NULL;
  uint32_t i;
  AOT_TRY(p2_field(d, up, signature, "output_specs", &j));
  AOT_TRY(p2_want_array(d, &at, j, &out->n_output_specs));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, out->n_output_specs, &list));
  for (i = 0; i < out->n_output_specs; i++) {
    p2_at_t here = p2_at_index(&at, i);
    AOT_TRY(spec(d, &here, json_array_get(j, i), output_rows, sizeof output_rows / sizeof *output_rows, "output_spec",
                 &row, &value, &list[i].target));
    list[i].kind = row->kind;
    list[i].value = spec_value(value);
  }
  out->output_specs = list;
  return AOT_OK;
}

static aot_status_t ranges(p2_decoder_t *d, const p2_at_t *up, json_t *root, p2_program_t *out) {
  p2_at_t at = p2_at_key(up, "range_constraints");
  json_t *j = json_object_get(root, "range_constraints"), *value;
  p2_range_t *list;
  const char *key;
  if (!j || json_is_null(j)) return AOT_OK;
  AOT_TRY(p2_want_object(d, &at, j));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, json_object_size(j), &list));
  json_object_foreach(j, key, value) {
    p2_at_t here = p2_at_key(&at, key);
    p2_range_t *r = &list[out->n_ranges++];
    r->symbol = p2_str(key);
    r->min = INT64_MIN;
    r->max = INT64_MAX;
    AOT_TRY(p2_want_object(d, &here, value));
    AOT_TRY(p2_maybe_int(d, &here, value, "min_val", &r->min));
    AOT_TRY(p2_maybe_int(d, &here, value, "max_val", &r->max));
  }
  out->ranges = list;
  return AOT_OK;
}

static aot_status_t guards(p2_decoder_t *d, const p2_at_t *up, json_t *root, p2_program_t *out) {
  p2_at_t at = p2_at_key(up, "guards_code");
  json_t *j = json_object_get(root, "guards_code");
  aot_str_t *list;
  if (!j || json_is_null(j)) return AOT_OK;
  AOT_TRY(p2_want_array(d, &at, j, &out->n_guards));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, out->n_guards, &list));
  for (uint32_t i = 0; i < out->n_guards; i++) {
    p2_at_t here = p2_at_index(&at, i);
    AOT_TRY(p2_want_string(d, &here, json_array_get(j, i), &list[i]));
  }
  out->guards = list;
  return AOT_OK;
}

/* Major 8 is what PyTorch 2.6 and later write, 5 what 2.4 wrote; the minor only adds fields. */
static aot_status_t version(p2_decoder_t *d, const p2_at_t *up, json_t *root, p2_program_t *out) {
  p2_at_t at = p2_at_key(up, "schema_version");
  json_t *j = NULL;
  AOT_TRY(p2_field(d, up, root, "schema_version", &j));
  if (json_is_integer(j)) {
    out->schema_major = (int64_t)json_integer_value(j);
  } else {
    AOT_TRY(p2_field_int(d, &at, j, "major", &out->schema_major));
    AOT_TRY(p2_field_int(d, &at, j, "minor", &out->schema_minor));
  }
  if (out->schema_major == 8 || out->schema_major == 5) return AOT_OK;
  p2_bad(d->e, d->doc, &at, "import-pt2.schema-version", "schema version %lld.%lld is not known; 5.x and 8.x are read",
         (long long)out->schema_major, (long long)out->schema_minor);
  p2_hint(d->e, "export the model with PyTorch 2.6 or later");
  return AOT_E_INVALID;
}

aot_status_t p2_decode_program(p2_env_t *e, const p2_doc_t *doc, p2_program_t *out) {
  p2_at_t root = {NULL, NULL, 0}, module = p2_at_key(&root, "graph_module"), top = p2_at_key(&module, "graph");
  p2_at_t signature_at = p2_at_key(&module, "signature");
  json_t *module_json = NULL, *graph_json = NULL, *signature = NULL;
  p2_decoder_t d = {e, doc, NULL, 0, 0};
  uint32_t capacity = 0, i;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_want_object(&d, &root, doc->root));
  AOT_TRY(version(&d, &root, doc->root, out));
  AOT_TRY(p2_maybe_string(&d, &root, doc->root, "torch_version", &out->torch_version));
  AOT_TRY(ranges(&d, &root, doc->root, out));
  AOT_TRY(guards(&d, &root, doc->root, out));
  AOT_TRY(p2_field(&d, &root, doc->root, "graph_module", &module_json));
  AOT_TRY(p2_field(&d, &module, module_json, "graph", &graph_json));
  AOT_TRY(p2_field(&d, &module, module_json, "signature", &signature));
  AOT_TRY(input_specs(&d, &signature_at, signature, out));
  AOT_TRY(output_specs(&d, &signature_at, signature, out));
  if (out->n_guards) AOT_TRY(p2_decode_paths(e, module_json, out));
  AOT_TRY(p2_grow(e, (void **)&d.pending, 0, &d.pending_capacity, sizeof *d.pending));
  d.pending[d.n_pending].json = graph_json;
  d.pending[d.n_pending++].at = &top;
  for (i = 0; i < d.n_pending; i++) { /* grows while it runs */
    p2_pending_t item = d.pending[i];
    AOT_TRY(p2_grow(e, (void **)&out->graphs, i, &capacity, sizeof *out->graphs));
    memset(&out->graphs[i], 0, sizeof out->graphs[i]);
    if (i > 0) { /* a GraphArgument: {"name": .., "graph": Graph} */
      p2_at_t here = p2_at_key(item.at, "graph");
      AOT_TRY(p2_maybe_string(&d, item.at, item.json, "name", &out->graphs[i].name));
      AOT_TRY(p2_field(&d, item.at, item.json, "graph", &graph_json));
      AOT_TRY(graph(&d, &here, graph_json, &out->graphs[i]));
    } else {
      AOT_TRY(graph(&d, item.at, item.json, &out->graphs[i]));
    }
    out->n_graphs = i + 1;
  }
  return AOT_OK;
}

/* ---- payload configs ---- */

aot_status_t p2_decode_payloads(p2_env_t *e, const p2_doc_t *doc, p2_payload_t **out, uint32_t *out_n) {
  p2_at_t root = {NULL, NULL, 0}, at = p2_at_key(&root, "config");
  p2_decoder_t d = {e, doc, NULL, 0, 0};
  json_t *config = NULL, *value;
  const char *key;
  *out_n = 0;
  AOT_TRY(p2_field(&d, &root, doc->root, "config", &config));
  AOT_TRY(p2_want_object(&d, &at, config));
  AOT_TRY(P2_NEW(e, P2_SCRATCH, json_object_size(config), out));
  json_object_foreach(config, key, value) {
    p2_at_t here = p2_at_key(&at, key), meta = p2_at_key(&here, "tensor_meta");
    p2_payload_t *p = &(*out)[*out_n];
    json_t *m;
    p->fqn = p2_str(key);
    AOT_TRY(p2_field_string(&d, &here, value, "path_name", &p->path_name));
    AOT_TRY(p2_maybe_bool(&d, &here, value, "is_param", &p->is_param));
    AOT_TRY(p2_maybe_bool(&d, &here, value, "use_pickle", &p->use_pickle));
    m = json_object_get(value, "tensor_meta");
    p->has_meta = m && !json_is_null(m);
    if (p->has_meta) AOT_TRY(p2_decode_meta(&d, &meta, m, &p->meta));
    ++*out_n;
  }
  return AOT_OK;
}
