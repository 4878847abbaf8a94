/* export_signature.c - inputs and outputs of the archive: leaves become placeholders and input specs, ports become
 * output specs.
 *
 * Order as PyTorch writes and reads it: parameters, buffers, constants, user inputs; new values of buffers and inputs,
 * user outputs, gradients. Names of outputs are keys of tables there, so a value that is a new value or a gradient
 * twice gets an alias. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- leaves ---- */

typedef struct kind_row {
  int32_t role;
  const char *prefix;    /* of placeholders */
  const char *otherwise; /* name of a leaf that has none */
} kind_row_t;

static const kind_row_t kinds[] = {{AOT_ROLE_PARAMETER, "p_", "parameter"},
                                   {AOT_ROLE_BUFFER, "b_", "buffer"},
                                   {AOT_ROLE_CONSTANT, "c_", "lifted_tensor"},
                                   {AOT_ROLE_USER_INPUT, "", "input"}};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static int compare_ordinals(const void *a, const void *b) {
  const p2_leaf_out_t *x = a, *y = b;
  return (x->info.ordinal > y->info.ordinal) - (x->info.ordinal < y->info.ordinal);
}

/* A module path that no leaf has yet; numbered when the program knows none. */
static aot_status_t fqn_of(p2_writer_t *w, p2_names_t *taken, aot_str_t name, const kind_row_t *kind, aot_str_t *out) {
  aot_status_t status = name.size ? p2_names_add(w->env, taken, name, 0, NULL) : AOT_E_EXISTS;
  *out = name;
  for (uint32_t number = 0; status == AOT_E_EXISTS; number++) {
    char tail[16];
    snprintf(tail, sizeof tail, "_%u", (unsigned)number);
    AOT_TRY(p2_join(w->env, name.size ? name : p2_str(kind->otherwise), p2_str(""), tail, out));
    status = p2_names_add(w->env, taken, *out, 0, NULL);
  }
  return status;
}

static aot_status_t name_leaf(p2_writer_t *w, p2_page_t *page, p2_names_t *taken, const kind_row_t *kind,
                              p2_leaf_out_t *l) {
  const uint32_t n = kind->role == AOT_ROLE_USER_INPUT || !l->info.n_names ? 1 : l->info.n_names;
  aot_str_t *fqns, *placeholders;
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n, &fqns));
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n, &placeholders));
  for (uint32_t i = 0; i < n; i++) {
    const aot_str_t name = i < l->info.n_names ? l->info.names[i] : p2_str("");
    AOT_TRY(fqn_of(w, taken, name, kind, &fqns[i]));
    const int has_own = i == 0 && l->value.id != AOT_NO_ID && w->host->graph->value_name(w->prog, l->value).size;
    if (has_own)
      AOT_TRY(p2_identifier(w, page, w->host->graph->value_name(w->prog, l->value), kind->otherwise, &placeholders[i]));
    else if (*kind->prefix) AOT_TRY(p2_placeholder(w, page, kind->prefix, fqns[i], &placeholders[i]));
    else AOT_TRY(p2_identifier(w, page, fqns[i], kind->otherwise, &placeholders[i]));
  }
  if (l->value.id != AOT_NO_ID) w->value_names[l->value.id] = placeholders[0];
  l->fqns = fqns;
  l->placeholders = placeholders;
  l->n_names = n;
  return AOT_OK;
}

static aot_status_t read_leaf(p2_writer_t *w, uint32_t leaf, const aot_value_t *values, p2_leaf_out_t *out) {
  out->info.struct_size = sizeof out->info;
  out->value = values[leaf];
  return w->host->graph->leaf_info(w->prog, (aot_leaf_t){leaf}, &out->info);
}

aot_status_t p2_leaves_collect(p2_writer_t *w, p2_page_t *page) {
  const aot_graph_api_t *g = w->host->graph;
  const uint32_t n = g->n_leaves(w->prog);
  aot_value_t *values;
  p2_names_t taken;
  memset(&taken, 0, sizeof taken);
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n, &values));
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n + UINT64_C(1), &w->leaves)); /* one to look at a leaf of another role */
  for (uint32_t i = 0; i < g->n_inputs(w->prog, w->top); i++) {
    const aot_port_t *port = &g->inputs(w->prog, w->top)[i];
    if (port->role <= AOT_ROLE_USER_INPUT) values[port->index] = port->value;
  }
  for (size_t k = 0; k < N_KINDS; k++) {
    const uint32_t first = w->n_leaves;
    for (uint32_t i = 1; i < n; i++) {
      AOT_TRY(read_leaf(w, i, values, &w->leaves[w->n_leaves]));
      if (w->leaves[w->n_leaves].info.role == kinds[k].role) w->n_leaves++;
    }
    if (kinds[k].role == AOT_ROLE_USER_INPUT && w->n_leaves > first)
      qsort(w->leaves + first, w->n_leaves - first, sizeof *w->leaves, compare_ordinals);
    for (uint32_t i = first; i < w->n_leaves; i++) AOT_TRY(name_leaf(w, page, &taken, &kinds[k], &w->leaves[i]));
  }
  return AOT_OK;
}

/* ---- inputs ---- */

static json_t *input_spec(const p2_leaf_out_t *l, uint32_t i) {
  json_t *arg =
      l->info.role == AOT_ROLE_USER_INPUT ? p2_as_tensor(l->placeholders[i]) : p2_tensor_argument(l->placeholders[i]);
  json_t *fqn = p2_text_json(l->fqns[i]);
  switch (l->info.role) {
    case AOT_ROLE_PARAMETER: return json_pack("{s:{s:o, s:o}}", "parameter", "arg", arg, "parameter_name", fqn);
    case AOT_ROLE_BUFFER:
      return json_pack("{s:{s:o, s:o, s:b}}", "buffer", "arg", arg, "buffer_name", fqn, "persistent",
                       (l->info.flags & AOT_LEAF_PERSISTENT) != 0);
    case AOT_ROLE_CONSTANT:
      return json_pack("{s:{s:o, s:o}}", "tensor_constant", "arg", arg, "tensor_constant_name", fqn);
    default: json_decref(fqn); return json_pack("{s:{s:o}}", "user_input", "arg", arg);
  }
}

static int put_inputs(p2_writer_t *w, json_t *inputs, json_t *specs, json_t *metas) {
  int failed = 0;
  for (uint32_t k = 0; k < w->n_leaves; k++) {
    const p2_leaf_out_t *l = &w->leaves[k];
    for (uint32_t i = 0; i < l->n_names; i++) {
      const aot_str_t name = l->placeholders[i];
      aot_type_t t = l->info.type;
      t.flags = l->info.flags & AOT_LEAF_REQUIRES_GRAD ? AOT_TYPE_REQUIRES_GRAD : 0;
      failed |= json_array_append_new(inputs, p2_as_tensor(name));
      failed |= json_array_append_new(specs, input_spec(l, i));
      failed |= json_object_setn_new(metas, name.data, (size_t)name.size, p2_tensor_meta(w, &t));
    }
  }
  return failed;
}

/* ---- outputs ---- */

typedef struct outputs {
  p2_writer_t *w;
  p2_page_t *page;
  json_t *list, *specs;
  p2_names_t updates, gradients; /* names that are keys already */
  const p2_leaf_out_t **by_leaf; /* leaf number -> its row */
  uint32_t n_user;
} outputs_t;

static json_t *any_argument(p2_writer_t *w, aot_value_t v) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (v.id == AOT_NO_ID || w->host->graph->value_type(w->prog, v, &t) != AOT_OK || t.kind == AOT_TYPE_NONE)
    return json_pack("{s:b}", "as_none", 1);
  if (t.kind == AOT_TYPE_SYMINT)
    return json_pack("{s:{s:o}}", "as_sym_int", "as_name", p2_text_json(w->value_names[v.id]));
  return p2_as_tensor(w->value_names[v.id]);
}

/* The name of the value, or of an alias of it. */
static aot_status_t key_name(outputs_t *o, p2_names_t *keys, aot_value_t v, aot_str_t *out) {
  p2_writer_t *w = o->w;
  aot_type_t t;
  *out = w->value_names[v.id];
  aot_status_t status = p2_names_add(w->env, keys, *out, v.id, NULL);
  if (status != AOT_E_EXISTS) return status;
  memset(&t, 0, sizeof t);
  AOT_TRY(w->host->graph->value_type(w->prog, v, &t));
  t.flags = 0;
  const aot_str_t of = *out;
  AOT_TRY(p2_identifier(w, o->page, p2_str("alias"), "alias", out));
  if (json_object_setn_new(o->page->tensor_values, out->data, (size_t)out->size, p2_tensor_meta(w, &t)) != 0)
    return AOT_E_INVALID;
  json_t *inputs = json_pack("[o]", p2_named_json(p2_str("self"), p2_as_tensor(of), 0));
  AOT_TRY(p2_add_node(o->page, "torch.ops.aten.alias.default", inputs, json_pack("[o]", p2_as_tensor(*out)),
                      json_object(), json_null(), *out));
  return p2_names_add(w->env, keys, *out, v.id, NULL);
}

static aot_status_t put(outputs_t *o, json_t *argument, json_t *spec) {
  const int failed = json_array_append_new(o->list, argument) | json_array_append_new(o->specs, spec);
  return failed ? AOT_E_EXHAUSTED : AOT_OK;
}

/* buffer_mutation and its like, gradient_to_parameter and its like: by the role of the leaf. */
static aot_status_t put_of_leaf(outputs_t *o, const aot_port_t *port) {
  const p2_leaf_out_t *l = o->by_leaf[port->index];
  const int is_update = port->role == AOT_ROLE_UPDATE, is_user = l && l->info.role == AOT_ROLE_USER_INPUT;
  const char *kind = "gradient_to_parameter", *key = "parameter_name";
  aot_str_t name;
  if (!l) return AOT_OK;
  if (is_update) kind = "parameter_mutation";
  if (is_update && l->info.role == AOT_ROLE_BUFFER) kind = "buffer_mutation", key = "buffer_name";
  if (is_user) kind = is_update ? "user_input_mutation" : "gradient_to_user_input", key = "user_input_name";
  if (l->info.role == AOT_ROLE_CONSTANT || (!is_update && l->info.role == AOT_ROLE_BUFFER)) {
    p2_cannot(o->w, "export-pt2.signature", "'%.*s' is %s, which an archive's signature has no word for",
              P2_SHOW(l->fqns[0]), is_update ? "a constant with a new value" : "a buffer or constant with a gradient");
    return AOT_E_INVALID;
  }
  AOT_TRY(key_name(o, is_update ? &o->updates : &o->gradients, port->value, &name));
  return put(o, p2_as_tensor(name),
             json_pack("{s:{s:o, s:o}}", kind, "arg", p2_tensor_argument(name), key,
                       p2_text_json(is_user ? l->placeholders[0] : l->fqns[0])));
}

static aot_status_t put_user(outputs_t *o, const aot_port_t *port) {
  if (!port)
    return put(o, json_pack("{s:b}", "as_none", 1), json_pack("{s:{s:{s:b}}}", "user_output", "arg", "as_none", 1));
  if (port->role == AOT_ROLE_LOSS)
    return put(o, any_argument(o->w, port->value),
               json_pack("{s:{s:o}}", "loss_output", "arg", p2_tensor_argument(o->w->value_names[port->value.id])));
  return put(o, any_argument(o->w, port->value),
             json_pack("{s:{s:o}}", "user_output", "arg", any_argument(o->w, port->value)));
}

static aot_status_t put_outputs(outputs_t *o) {
  const aot_graph_api_t *g = o->w->host->graph;
  const uint32_t n = g->n_outputs(o->w->prog, o->w->top);
  const aot_port_t *ports = g->outputs(o->w->prog, o->w->top), **user;
  AOT_TRY(P2_NEW(o->w->env, P2_SCRATCH, n, &user));
  for (uint32_t i = 0; i < n; i++) {
    if (ports[i].role == AOT_ROLE_UPDATE) AOT_TRY(put_of_leaf(o, &ports[i]));
    if (ports[i].role != AOT_ROLE_USER_OUTPUT && ports[i].role != AOT_ROLE_LOSS) continue;
    if (ports[i].index >= n) {
      p2_cannot(o->w, "export-pt2.signature", "user output %u has %u outputs before it", (unsigned)ports[i].index,
                (unsigned)n);
      return AOT_E_INVALID;
    }
    user[ports[i].index] = &ports[i];
    if (ports[i].index >= o->n_user) o->n_user = ports[i].index + 1;
  }
  for (uint32_t i = 0; i < o->n_user; i++) AOT_TRY(put_user(o, user[i]));
  for (uint32_t i = 0; i < n; i++)
    if (ports[i].role == AOT_ROLE_GRADIENT && ports[i].value.id != AOT_NO_ID) AOT_TRY(put_of_leaf(o, &ports[i]));
  return AOT_OK;
}

/* Leaves by number: leaf_info has none, so the ports report. */
static aot_status_t index_leaves(outputs_t *o) {
  const aot_graph_api_t *g = o->w->host->graph;
  uint32_t *row_of_value;
  AOT_TRY(P2_NEW(o->w->env, P2_SCRATCH, g->n_values(o->w->prog), &row_of_value));
  AOT_TRY(P2_NEW(o->w->env, P2_SCRATCH, g->n_leaves(o->w->prog), &o->by_leaf));
  for (uint32_t i = 0; i < o->w->n_leaves; i++)
    if (o->w->leaves[i].value.id != AOT_NO_ID) row_of_value[o->w->leaves[i].value.id] = i;
  for (uint32_t i = 0; i < g->n_inputs(o->w->prog, o->w->top); i++) {
    const aot_port_t *port = &g->inputs(o->w->prog, o->w->top)[i];
    if (port->role <= AOT_ROLE_USER_INPUT) o->by_leaf[port->index] = &o->w->leaves[row_of_value[port->value.id]];
  }
  return AOT_OK;
}

/* ---- how the module is called: positional inputs, one output or a tuple ---- */

static json_t *leaf_spec(void) { return json_pack("{s:n, s:n, s:[]}", "type", "context", "children_spec"); }

static json_t *tuple_spec(uint32_t n) {
  json_t *children = json_array();
  for (uint32_t i = 0; i < n; i++) json_array_append_new(children, leaf_spec());
  return json_pack("{s:s, s:s, s:o}", "type", "builtins.tuple", "context", "null", "children_spec", children);
}

/* torch.utils._pytree.treespec_dumps: [1, spec] as text. Takes the spec. */
static json_t *spec_text(json_t *spec) {
  json_t *both = json_pack("[i, o]", 1, spec), *text = NULL;
  char *bytes = both ? json_dumps(both, JSON_ENSURE_ASCII) : NULL;
  if (bytes) text = json_string(bytes);
  free(bytes);
  json_decref(both);
  return text;
}

static json_t *call_signature(const p2_writer_t *w, uint32_t n_outputs) {
  json_t *names = json_array();
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->n_leaves; i++) {
    if (w->leaves[i].info.role != AOT_ROLE_USER_INPUT) continue;
    json_array_append_new(names, p2_text_json(w->leaves[i].placeholders[0]));
    n++;
  }
  json_t *keywords = json_pack("{s:s, s:s, s:[]}", "type", "builtins.dict", "context", "[]", "children_spec");
  json_t *in = json_pack("{s:s, s:s, s:[o, o]}", "type", "builtins.tuple", "context", "null", "children_spec",
                         tuple_spec(n), keywords);
  json_t *out = n_outputs == 1 ? leaf_spec() : tuple_spec(n_outputs);
  return json_pack("[{s:s, s:{s:[], s:[], s:o, s:o, s:o}}]", "fqn", "", "signature", "inputs", "outputs", "in_spec",
                   spec_text(in), "out_spec", spec_text(out), "forward_arg_names", names);
}

/* ---- the module ---- */

static json_t *top_graph(p2_writer_t *w, p2_page_t *page, json_t *input_specs, outputs_t *o) {
  json_t *inputs = json_array(), *metas = json_object();
  json_t *graph =
      put_inputs(w, inputs, input_specs, metas) == 0 ? p2_graph_json(w, w->top, page, json_incref(inputs)) : NULL;
  o->list = graph ? json_object_get(graph, "outputs") : NULL;
  if (graph && (json_object_update_missing(page->tensor_values, metas) != 0 || index_leaves(o) != AOT_OK ||
                put_outputs(o) != AOT_OK)) {
    json_decref(graph);
    graph = NULL;
  }
  json_decref(inputs);
  json_decref(metas);
  return graph;
}

json_t *p2_module_json(p2_writer_t *w) {
  p2_page_t page;
  memset(&page, 0, sizeof page);
  if (p2_leaves_collect(w, &page) != AOT_OK) return NULL;
  json_t *input_specs = json_array(), *output_specs = json_array();
  outputs_t o = {.w = w, .page = &page, .specs = output_specs};
  json_t *graph = top_graph(w, &page, input_specs, &o);
  if (!graph) {
    json_decref(input_specs);
    json_decref(output_specs);
    return NULL;
  }
  return json_pack("{s:o, s:{s:o, s:o}, s:o, s:{}, s:{}}", "graph", graph, "signature", "input_specs", input_specs,
                   "output_specs", output_specs, "module_call_graph", call_signature(w, o.n_user), "metadata",
                   "treespec_namedtuple_fields");
}
