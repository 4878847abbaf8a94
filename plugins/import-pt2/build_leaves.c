/* build_leaves.c - the signature: leaves and input ports from the input specs, output ports and rules from the output
 * specs.
 *
 * Tied parameters arrive as several inputs that share one payload: they become one leaf with several names, the first
 * of the archive's order first, and every use of any of them reads the one port. */
#include "builder.h"
#include <aot/inline.h>
#include <string.h>

#define BAD_SIGNATURE "import-pt2.signature"

static const p2_graph_t *top(const p2_builder_t *b) { return &b->program->graphs[0]; }

/* Graph and signature name the same values. */
static aot_status_t check_name(p2_builder_t *b, const char *what, uint32_t i, const p2_argument_t *arg,
                               aot_str_t in_signature) {
  const int has_name = arg->kind == P2_ARG_TENSOR || arg->kind == P2_ARG_SYM_INT || arg->kind == P2_ARG_SYM_BOOL ||
                       arg->kind == P2_ARG_SYM_FLOAT;
  if (!has_name || !in_signature.size || aot_str_eq(arg->u.s, in_signature)) return AOT_OK;
  p2_fail(b->env, BAD_SIGNATURE, "%s %u of the graph is '%.*s', the signature says '%.*s'", what, i, P2_SHOW(arg->u.s),
          P2_SHOW(in_signature));
  p2_hint(b->env, "the archive is damaged: both are written from one list");
  return AOT_E_INVALID;
}

/* ---- tied tensors ---- */

/* Geometry and storage as bytes: equal keys, equal tensors. */
static aot_status_t identity_of(p2_builder_t *b, int32_t kind, const p2_weight_t *w, aot_str_t *out) {
  uint64_t n = sizeof kind + sizeof w->storage + sizeof w->dtype + sizeof w->offset + 2 * w->rank * sizeof *w->sizes;
  char *key, *p;
  AOT_TRY(p2_alloc(b->env, P2_SCRATCH, 8, n, 1, (void **)&key));
  p = key;
  memcpy(p, &kind, sizeof kind), p += sizeof kind;
  memcpy(p, &w->storage, sizeof w->storage), p += sizeof w->storage;
  memcpy(p, &w->dtype, sizeof w->dtype), p += sizeof w->dtype;
  memcpy(p, &w->offset, sizeof w->offset), p += sizeof w->offset;
  memcpy(p, w->sizes, w->rank * sizeof *w->sizes), p += w->rank * sizeof *w->sizes;
  memcpy(p, w->strides, w->rank * sizeof *w->strides);
  out->data = key;
  out->size = n;
  return AOT_OK;
}

/* next[i]: the next input that is the same tensor as i; first[i]: the first of them. */
static aot_status_t find_tied(p2_builder_t *b, uint32_t **out_first, uint32_t **out_next) {
  const p2_program_t *p = b->program;
  p2_names_t seen;
  uint32_t i, *last, *first, *next;
  memset(&seen, 0, sizeof seen);
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, p->n_input_specs, &last));
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, p->n_input_specs, &first));
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, p->n_input_specs, &next));
  for (i = 0; i < p->n_input_specs; i++) {
    const p2_input_spec_t *spec = &p->input_specs[i];
    const p2_weight_t *w = p2_weights_find(b->weights, spec->target);
    aot_str_t key = {NULL, 0};
    aot_status_t status;
    uint32_t earlier = 0;
    first[i] = last[i] = i;
    next[i] = AOT_NO_INDEX;
    if ((spec->kind != P2_IN_PARAMETER && spec->kind != P2_IN_BUFFER) || !w || !w->storage) continue;
    AOT_TRY(identity_of(b, spec->kind, w, &key));
    status = p2_names_add(b->env, &seen, key, i, &earlier);
    if (status == AOT_E_EXISTS) {
      first[i] = earlier;
      next[last[earlier]] = i;
      last[earlier] = i;
    } else {
      AOT_TRY(status);
    }
  }
  *out_first = first;
  *out_next = next;
  return AOT_OK;
}

/* ---- inputs ---- */

typedef struct inputs {
  p2_builder_t *b;
  aot_graph_t graph;
  p2_scope_t *scope;
  const uint32_t *first, *next;
  uint32_t n_user;
} inputs_t;

static int32_t role_of(int32_t kind) {
  return kind == P2_IN_PARAMETER  ? AOT_ROLE_PARAMETER
         : kind == P2_IN_BUFFER   ? AOT_ROLE_BUFFER
         : kind == P2_IN_CONSTANT ? AOT_ROLE_CONSTANT
                                  : AOT_ROLE_USER_INPUT;
}

/* The data of a parameter, buffer or constant must be what the graph says it is; its geometry is the payload's. */
static aot_status_t bind_data(p2_builder_t *b, aot_str_t fqn, aot_leaf_info_t *leaf) {
  const p2_weight_t *w = p2_weights_find(b->weights, fqn);
  int32_t i;
  if (!w || !w->storage) {
    p2_fail(b->env, "import-pt2.missing-weight", "the archive carries no data for '%.*s'", P2_SHOW(fqn));
    p2_hint(b->env, "custom objects are not supported; tensors are written by torch.export.save");
    return AOT_E_INVALID;
  }
  if (w->dtype != leaf->type.dtype)
    return p2_fail(b->env, "import-pt2.bad-weight", "the data of '%.*s' is %s, the graph says %s", P2_SHOW(fqn),
                   aot_dtype_name(w->dtype), aot_dtype_name(leaf->type.dtype));
  for (i = 0; i < leaf->type.rank && (uint32_t)leaf->type.rank == w->rank; i++)
    if (leaf->type.sizes[i] != w->sizes[i]) break;
  if ((uint32_t)leaf->type.rank != w->rank)
    return p2_fail(b->env, "import-pt2.bad-weight", "the data of '%.*s' has %u dimensions, the graph says %d",
                   P2_SHOW(fqn), (unsigned)w->rank, (int)leaf->type.rank);
  if (i < leaf->type.rank)
    return p2_fail(b->env, "import-pt2.bad-weight",
                   "the data of '%.*s' has size %lld in dimension %d, the graph says %lld", P2_SHOW(fqn),
                   (long long)w->sizes[i], (int)i, (long long)leaf->type.sizes[i]);
  if (leaf->role == AOT_ROLE_PARAMETER && w->requires_grad >= 0 &&
      w->requires_grad != ((leaf->flags & AOT_LEAF_REQUIRES_GRAD) != 0))
    return p2_fail(b->env, "import-pt2.bad-weight",
                   "parameter '%.*s' requires %s gradient by its weight's description, and %s by the graph",
                   P2_SHOW(fqn), w->requires_grad ? "a" : "no", w->requires_grad ? "none" : "one");
  leaf->type.strides = w->strides;
  leaf->type.offset = w->offset;
  leaf->data = w->data;
  leaf->nbytes = w->data ? w->nbytes : 0;
  return AOT_OK;
}

/* All names of a leaf, in the archive's order. A user input goes by its placeholder. */
static aot_status_t names_of(inputs_t *in, uint32_t i, aot_leaf_info_t *leaf) {
  const p2_input_spec_t *specs = in->b->program->input_specs;
  aot_str_t *names;
  uint32_t k, n = 0;
  for (k = i; k != AOT_NO_INDEX; k = in->next[k]) n++;
  AOT_TRY(P2_NEW(in->b->env, P2_SCRATCH, n, &names));
  for (n = 0, k = i; k != AOT_NO_INDEX; k = in->next[k])
    names[n++] = specs[k].kind == P2_IN_USER ? top(in->b)->inputs[k].u.s : specs[k].target;
  leaf->names = names;
  leaf->n_names = n;
  return AOT_OK;
}

static aot_status_t make_leaf(inputs_t *in, uint32_t i) {
  p2_builder_t *b = in->b;
  const p2_input_spec_t *spec = &b->program->input_specs[i];
  aot_str_t name = top(b)->inputs[i].u.s;
  uint32_t meta = p2_names_find(&top(b)->meta_index, name);
  aot_leaf_info_t leaf;
  aot_leaf_t id;
  aot_value_t value;
  memset(&leaf, 0, sizeof leaf);
  leaf.struct_size = sizeof leaf;
  leaf.role = role_of(spec->kind);
  AOT_TRY(p2_type_of_name(b, top(b), name, &leaf.type));
  if (spec->kind == P2_IN_USER) leaf.ordinal = in->n_user++;
  if (spec->kind == P2_IN_BUFFER && spec->persistent) leaf.flags |= AOT_LEAF_PERSISTENT;
  if (meta != P2_NO_ENTRY && top(b)->metas[meta].requires_grad &&
      (spec->kind == P2_IN_USER || spec->kind == P2_IN_PARAMETER)) {
    leaf.flags |= AOT_LEAF_REQUIRES_GRAD;
    leaf.type.flags |= AOT_TYPE_REQUIRES_GRAD;
  }
  if (spec->kind != P2_IN_USER) AOT_TRY(bind_data(b, spec->target, &leaf));
  AOT_TRY(names_of(in, i, &leaf));
  AOT_TRY(b->host->edit->leaf_create(b->prog, &leaf, &id));
  AOT_TRY(b->host->edit->input_add(b->prog, in->graph, leaf.role, id.id, &leaf.type, name, &value));
  b->leaf_of_input[i] = id.id;
  return p2_bind_value(b, in->scope, name, value);
}

/* A later name of a tied tensor: no port of its own. */
static aot_status_t share_leaf(inputs_t *in, uint32_t i) {
  const p2_graph_t *g = top(in->b);
  p2_bound_t what;
  in->b->leaf_of_input[i] = in->b->leaf_of_input[in->first[i]];
  AOT_TRY(p2_lookup(in->b, in->scope, g->inputs[in->first[i]].u.s, &what));
  return p2_bind(in->b, in->scope, g->inputs[i].u.s, what);
}

static aot_status_t one_input(inputs_t *in, uint32_t i) {
  p2_builder_t *b = in->b;
  const p2_input_spec_t *spec = &b->program->input_specs[i];
  const p2_argument_t *arg = &top(b)->inputs[i];
  p2_names_t *index = spec->kind == P2_IN_PARAMETER ? &b->leaf_of_parameter
                      : spec->kind == P2_IN_BUFFER  ? &b->leaf_of_buffer
                                                    : NULL;
  aot_status_t status;
  AOT_TRY(check_name(b, "input", i, arg, spec->value));
  if (spec->kind == P2_IN_OBJECT)
    return p2_fail(b->env, "import-pt2.custom-object",
                   "the model carries the custom object '%.*s', which is not supported", P2_SHOW(spec->target));
  /* effects: functionalize makes tokens again */
  if (spec->kind == P2_IN_TOKEN || spec->kind == P2_IN_PYTHON) return AOT_OK;
  if (arg->kind == P2_ARG_OTHER)
    return p2_fail(b->env, BAD_SIGNATURE, "input %u of the graph is no tensor, which is not supported", i);
  if (spec->kind == P2_IN_USER && arg->kind != P2_ARG_TENSOR && arg->kind != P2_ARG_SYM_INT &&
      arg->kind != P2_ARG_SYM_BOOL && arg->kind != P2_ARG_SYM_FLOAT)
    return AOT_OK; /* a Python number or None that tracing has fixed */
  if (arg->kind != P2_ARG_TENSOR) {
    p2_fail(b->env, BAD_SIGNATURE, "input %u of the graph is a symbolic number, which is not supported", i);
    p2_hint(b->env, "export with the number fixed, or pass it as a 0-dim tensor");
    return AOT_E_INVALID;
  }
  AOT_TRY(in->first[i] == i ? make_leaf(in, i) : share_leaf(in, i));
  AOT_TRY(p2_names_add(b->env, &b->leaf_of_placeholder, arg->u.s, b->leaf_of_input[i], NULL));
  if (!index) return AOT_OK;
  status = p2_names_add(b->env, index, spec->target, b->leaf_of_input[i], NULL);
  if (status == AOT_E_EXISTS)
    return p2_fail(b->env, BAD_SIGNATURE, "two inputs of the graph are '%.*s'", P2_SHOW(spec->target));
  return status;
}

aot_status_t p2_build_inputs(p2_builder_t *b, aot_graph_t g, p2_scope_t *s) {
  uint32_t i, n = b->program->n_input_specs, *first, *next;
  inputs_t in = {b, g, s, NULL, NULL, 0};
  if (n != top(b)->n_inputs)
    return p2_fail(b->env, BAD_SIGNATURE, "the graph has %u inputs, the signature describes %u", top(b)->n_inputs, n);
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, n, &b->leaf_of_input));
  AOT_TRY(find_tied(b, &first, &next));
  in.first = first;
  in.next = next;
  for (i = 0; i < n; i++) AOT_TRY(one_input(&in, i));
  return AOT_OK;
}

/* ---- outputs ---- */

/* The leaf that an output is the new value or the gradient of. */
static aot_status_t target_leaf(p2_builder_t *b, const p2_output_spec_t *spec, uint32_t *out) {
  const p2_names_t *index = spec->kind == P2_OUT_BUFFER ? &b->leaf_of_buffer
                            : spec->kind == P2_OUT_USER_INPUT || spec->kind == P2_OUT_INPUT_GRADIENT
                                ? &b->leaf_of_placeholder
                                : &b->leaf_of_parameter;
  *out = p2_names_find(index, spec->target);
  if (*out != P2_NO_ENTRY) return AOT_OK;
  return p2_fail(b->env, BAD_SIGNATURE, "an output belongs to '%.*s', which is no input of the graph",
                 P2_SHOW(spec->target));
}

static aot_status_t output_value(p2_builder_t *b, const p2_scope_t *s, uint32_t i, aot_value_t *out) {
  const p2_argument_t *arg = &top(b)->outputs[i];
  aot_diag_t d;
  p2_bound_t bound;
  *out = aot_no_value();
  if (arg->kind == P2_ARG_NONE) return AOT_OK;
  if (arg->kind == P2_ARG_TENSOR) {
    AOT_TRY(p2_lookup(b, s, arg->u.s, &bound));
    if (bound.kind != P2_BOUND_VALUE)
      return p2_fail(b->env, BAD_SIGNATURE, "output %u, '%.*s', is no tensor", i, P2_SHOW(arg->u.s));
    out->id = (uint32_t)bound.i;
    return AOT_OK;
  }
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_WARNING;
  d.code = aot_str("import-pt2.constant-output");
  d.message = aot_str("an output of the model is a Python number or a symbolic size; it is given back as None");
  d.node = aot_no_node();
  d.value = aot_no_value();
  return b->host->diag(b->host, b->ctx, &d);
}

static aot_status_t update(p2_builder_t *b, aot_graph_t g, uint32_t leaf, aot_value_t v, aot_str_t name) {
  aot_rule_t rule;
  memset(&rule, 0, sizeof rule);
  rule.kind = AOT_RULE_COPY_BACK;
  rule.a = leaf;
  AOT_TRY(b->host->edit->output_add(b->prog, g, AOT_ROLE_UPDATE, leaf, v, name));
  return b->host->edit->rule_add(b->prog, &rule);
}

/* An archive with its backward has the gradient of everything that requires one. */
static aot_status_t check_gradients(p2_builder_t *b, const uint8_t *has_gradient) {
  const p2_program_t *p = b->program;
  uint32_t i;
  for (i = 0; i < p->n_input_specs; i++) {
    aot_leaf_info_t leaf;
    const aot_leaf_t id = {b->leaf_of_input[i]};
    memset(&leaf, 0, sizeof leaf);
    leaf.struct_size = sizeof leaf;
    if (id.id == AOT_NO_ID || has_gradient[id.id]) continue;
    AOT_TRY(b->host->graph->leaf_info(b->prog, id, &leaf));
    if (leaf.flags & AOT_LEAF_REQUIRES_GRAD)
      return p2_fail(b->env, BAD_SIGNATURE, "the archive holds gradients, but none of '%.*s', which requires one",
                     P2_SHOW(top(b)->inputs[i].u.s));
  }
  return AOT_OK;
}

/* A tied parameter has one gradient, by any of its names. */
static aot_status_t gradient(p2_builder_t *b, aot_graph_t g, uint32_t leaf, aot_value_t v, aot_str_t name,
                             uint8_t *has_gradient) {
  if (has_gradient[leaf])
    return p2_fail(b->env, BAD_SIGNATURE, "two outputs are the gradient of one parameter: '%.*s' is the second",
                   P2_SHOW(name));
  has_gradient[leaf] = 1;
  return b->host->edit->output_add(b->prog, g, AOT_ROLE_GRADIENT, leaf, v, name);
}

aot_status_t p2_build_outputs(p2_builder_t *b, aot_graph_t g, const p2_scope_t *s) {
  const p2_program_t *p = b->program;
  uint32_t i, n_user = 0, leaf, n_gradients = 0;
  uint8_t *has_gradient;
  /* by leaf, of which there are no more than inputs */
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, p->n_input_specs + (uint64_t)1, &has_gradient));
  if (p->n_output_specs != top(b)->n_outputs)
    return p2_fail(b->env, BAD_SIGNATURE, "the graph has %u outputs, the signature describes %u", top(b)->n_outputs,
                   p->n_output_specs);
  for (i = 0; i < p->n_output_specs; i++) {
    const p2_output_spec_t *spec = &p->output_specs[i];
    aot_str_t name = top(b)->outputs[i].kind == P2_ARG_TENSOR ? top(b)->outputs[i].u.s : p2_str("");
    aot_value_t v;
    if (spec->kind == P2_OUT_TOKEN) continue;
    AOT_TRY(check_name(b, "output", i, &top(b)->outputs[i], spec->value));
    AOT_TRY(output_value(b, s, i, &v));
    if (spec->kind == P2_OUT_USER || spec->kind == P2_OUT_LOSS) {
      int32_t role = spec->kind == P2_OUT_LOSS ? AOT_ROLE_LOSS : AOT_ROLE_USER_OUTPUT;
      AOT_TRY(b->host->edit->output_add(b->prog, g, role, n_user++, v, name));
      continue;
    }
    AOT_TRY(target_leaf(b, spec, &leaf));
    if (spec->kind == P2_OUT_GRADIENT || spec->kind == P2_OUT_INPUT_GRADIENT) {
      AOT_TRY(gradient(b, g, leaf, v, name, has_gradient));
      n_gradients++;
    } else {
      AOT_TRY(update(b, g, leaf, v, name));
    }
  }
  return n_gradients ? check_gradients(b, has_gradient) : AOT_OK;
}
