/* Ports of the UPDATE graph, in order: HYPER lr, STATE step (when the rule counts steps), then for each parameter
 * PARAMETER, GRADIENT, its STATEs. Outputs: the step, then for each parameter UPDATE(parameter), UPDATE(states). States
 * start at zero and have the parameter's dtype, sizes and strides; the step is a 0-dim f64. A group has a step of its
 * own and STATE lr-scale, a 0-dim f64, before its first parameter. Linear in parameters x patterns of groups. */
#include "update.h"

#include "kit/base/errors.h"
#include <aot/ext/leaf_part.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define MAX_STATES 3

typedef struct group { /* of parameters with the same options */
  const opt_rule_t *rule;
  uint32_t number; /* 0: parameters of no group */
  int has_begun;
  opt_adam_step_t adam;
  opt_sgd_step_t sgd;
  uint32_t n_state_names;
  const char *state_names[MAX_STATES];
} group_t;

typedef struct builder {
  em_t emit;
  group_t *groups; /* n_groups, of which the first is that of all other parameters */
  uint32_t n_groups;
  const aot_graph_api_t *graph;
  const aot_edit_api_t *edit;
  em_x_t lr;
  uint32_t n_params;
  uint32_t n_known;     /* leaves before our own */
  unsigned char *ruled; /* by leaf: a COPY_BACK rule is there already */
} builder_t;

static const aot_type_t scalar_f64 = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F64};

/* The status of an edit goes where the emitter keeps the first failure. */
static int ok(builder_t *b, aot_status_t status) { return em_ok(&b->emit, status); }

static void fail(builder_t *b, aot_status_t status, const char *code, const char *message, const char *hint,
                 aot_value_t at) {
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, message);
  d.hint = aot_str(hint);
  d.value = at;
  em_tell(&b->emit, status, &d);
}

/* "adamw.exp_avg.fc.weight" [graph] */
static aot_str_t state_name(builder_t *b, const group_t *g, const char *state, aot_str_t param) {
  size_t size = strlen(g->rule->id) + strlen(state) + (size_t)param.size + 3;
  char *text = b->emit.host->alloc(b->emit.host, b->emit.ctx, AOT_ARENA_GRAPH, 1, size);
  if (!text) {
    ok(b, AOT_E_EXHAUSTED);
    return aot_str("");
  }
  snprintf(text, size, "%s.%s%s%.*s", g->rule->id, state, param.size ? "." : "", (int)param.size,
           param.data ? param.data : "");
  return aot_str(text);
}

static em_x_t add_input(builder_t *b, int32_t role, uint32_t index, const aot_type_t *type, aot_str_t name) {
  aot_value_t v = aot_no_value();
  if (b->emit.status == AOT_OK) ok(b, b->edit->input_add(b->emit.prog, b->emit.graph, role, index, type, name, &v));
  return em_v(v);
}

/* "adamw.step", of a group "adamw.step.1" [graph] */
static aot_str_t group_name(builder_t *b, const group_t *g, const char *state) {
  char number[16];
  snprintf(number, sizeof number, "%u", g->number);
  return state_name(b, g, state, aot_str(g->number ? number : ""));
}

/* A state leaf that starts at zero, and the input that reads it. */
static em_x_t add_state(builder_t *b, aot_str_t name, const aot_type_t *like, uint32_t flags, uint32_t *out_leaf) {
  aot_leaf_info_t info = {
      .struct_size = sizeof info, .role = AOT_ROLE_STATE, .flags = flags, .n_names = 1, .names = &name, .type = *like};
  aot_leaf_t leaf = {AOT_NO_ID};
  info.type.flags = 0;
  if (b->emit.status != AOT_OK || !ok(b, b->edit->leaf_create(b->emit.prog, &info, &leaf))) return em_none();
  *out_leaf = leaf.id;
  return add_input(b, AOT_ROLE_STATE, leaf.id, &info.type, name);
}

/* The new value of a leaf, and the rule that brings it home. */
static void add_output(builder_t *b, uint32_t leaf, em_x_t v, aot_str_t name) {
  aot_rule_t rule = {.kind = AOT_RULE_COPY_BACK, .a = leaf};
  if (b->emit.status != AOT_OK) return;
  if (!ok(b, b->edit->output_add(b->emit.prog, b->emit.graph, AOT_ROLE_UPDATE, leaf, em_value(&b->emit, v), name)))
    return;
  if (leaf < b->n_known && b->ruled[leaf]) return;
  ok(b, b->edit->rule_add(b->emit.prog, &rule));
}

static int counts_steps(const opt_rule_t *r) { return r->kind == OPT_RULE_ADAM || opt_sgd_counts(&r->sgd); }

/* A leaf that the update only reads: the caller may set it before a step. */
static em_x_t add_lr_scale(builder_t *b, const group_t *g) {
  const aot_str_t name = group_name(b, g, "lr-scale");
  aot_leaf_info_t info = {.struct_size = sizeof info,
                          .role = AOT_ROLE_STATE,
                          .n_names = 1,
                          .names = &name,
                          .type = scalar_f64,
                          .data = &g->rule->lr_scale,
                          .nbytes = sizeof g->rule->lr_scale};
  aot_leaf_t leaf = {AOT_NO_ID};
  if (b->emit.status != AOT_OK || !ok(b, b->edit->leaf_create(b->emit.prog, &info, &leaf))) return em_none();
  return add_input(b, AOT_ROLE_STATE, leaf.id, &info.type, name);
}

static void name_states(group_t *g) {
  const opt_rule_t *r = g->rule;
  if (r->kind == OPT_RULE_ADAM) {
    g->state_names[g->n_state_names++] = "exp_avg";
    g->state_names[g->n_state_names++] = "exp_avg_sq";
    if (r->adam.amsgrad) g->state_names[g->n_state_names++] = "max_exp_avg_sq";
  } else if (r->sgd.momentum != 0) {
    g->state_names[g->n_state_names++] = "momentum_buffer";
  }
}

/* What the parameters of a group share: before the first of them. */
static void begin_group(builder_t *b, group_t *g) {
  const opt_rule_t *r = g->rule;
  em_x_t lr = b->lr, step = em_none();
  uint32_t leaf = AOT_NO_ID;
  const aot_str_t name = group_name(b, g, "step");
  g->has_begun = 1;
  name_states(g);
  if (g->number) lr = em_mul(&b->emit, lr, add_lr_scale(b, g));
  if (counts_steps(r)) step = add_state(b, name, &scalar_f64, 0, &leaf);
  if (b->emit.status != AOT_OK) return;
  if (r->kind == OPT_RULE_ADAM) {
    g->adam = opt_adam_begin(&b->emit, &r->adam, lr, step);
    add_output(b, leaf, g->adam.step, name);
  } else {
    g->sgd = opt_sgd_begin(&b->emit, &r->sgd, lr, step);
    if (leaf != AOT_NO_ID) add_output(b, leaf, g->sgd.step, name);
  }
}

static group_t *group_of(builder_t *b, const aot_leaf_info_t *leaf) {
  uint32_t i = 1;
  while (i < b->n_groups && !opt_rule_matches(b->groups[i].rule, leaf->names, leaf->n_names)) i++;
  group_t *g = &b->groups[i < b->n_groups ? i : 0];
  if (!g->has_begun) begin_group(b, g);
  return g;
}

/* New values of one parameter and its states, in place of the old ones in `states`. */
static em_x_t apply_rule(builder_t *b, group_t *g, em_x_t param, em_x_t grad, em_x_t *states, const aot_type_t *type) {
  if (g->rule->kind == OPT_RULE_SGD)
    return opt_sgd_update(&b->emit, &g->rule->sgd, &g->sgd, param, grad, &states[0], type->dtype);
  opt_adam_values_t old = {param, states[0], states[1], states[2]};
  opt_adam_values_t now = opt_adam_update(&b->emit, &g->rule->adam, &g->adam, old, grad, type->dtype);
  states[0] = now.exp_avg;
  states[1] = now.exp_avg_sq;
  states[2] = now.max_exp_avg_sq;
  return now.param;
}

/* [..] complex as [.., 2] real; a complex parameter is updated as its parts are, as PyTorch does. */
static int parts_of(aot_type_t *t, int64_t *sizes) {
  if (t->rank == AOT_MAX_RANK) return 0;
  if (t->rank) memcpy(sizes, t->sizes, (size_t)t->rank * sizeof *sizes);
  sizes[t->rank++] = 2;
  t->sizes = sizes;
  t->strides = NULL;
  t->offset = 0;
  t->dtype = aot_dtype_part(t->dtype);
  return 1;
}

static void add_param(builder_t *b, const aot_leaf_info_t *leaf, uint32_t id, aot_value_t gradient) {
  aot_type_t type = leaf->type, grad_type;
  aot_str_t name = leaf->n_names ? leaf->names[0] : aot_str(""), names[MAX_STATES];
  em_x_t states[MAX_STATES];
  uint32_t leaves[MAX_STATES];
  if (!ok(b, b->graph->value_type(b->emit.prog, gradient, &grad_type))) return;
  int64_t sizes[AOT_MAX_RANK];
  const int parts = aot_dtype_is_complex(type.dtype);
  if ((!aot_dtype_is_float(type.dtype) && !parts) || grad_type.dtype != type.dtype ||
      (parts && type.rank == AOT_MAX_RANK)) {
    char text[300];
    snprintf(text, sizeof text,
             "parameter %.*s is %s, its gradient %s; the optimizer updates floats and complex numbers by gradients of "
             "the same dtype",
             (int)(name.size > 120 ? 120 : name.size), name.data, aot_dtype_name(type.dtype),
             aot_dtype_name(grad_type.dtype));
    fail(b, AOT_E_UNIMPLEMENTED, "optimizer.dtype", text, "", gradient);
    return;
  }
  group_t *g = group_of(b, leaf);
  em_x_t param = add_input(b, AOT_ROLE_PARAMETER, id, &type, name);
  em_x_t grad = add_input(b, AOT_ROLE_GRADIENT, id, &grad_type, name);
  if (parts && parts_of(&type, sizes)) {
    param = EM(&b->emit, "view_as_real", param);
    grad = EM(&b->emit, "view_as_real", grad);
  }
  for (uint32_t k = 0; k < g->n_state_names; k++) {
    names[k] = state_name(b, g, g->state_names[k], name);
    states[k] = add_state(b, names[k], &type, leaf->flags & AOT_LEAF_PART_FLAGS, &leaves[k]);
  }
  for (uint32_t k = g->n_state_names; k < MAX_STATES; k++) states[k] = em_none();
  param = apply_rule(b, g, param, grad, states, &type);
  add_output(b, id, parts ? EM(&b->emit, "view_as_complex", param) : param, name);
  for (uint32_t k = 0; k < g->n_state_names && b->emit.status == AOT_OK; k++)
    add_output(b, leaves[k], states[k], names[k]);
  b->n_params++;
}

/* Ports are copied out of the host one at a time: our own edits may move them. */
static void add_params(builder_t *b, aot_graph_t backward) {
  uint32_t n = b->graph->n_outputs(b->emit.prog, backward);
  for (uint32_t i = 0; i < n && b->emit.status == AOT_OK; i++) {
    aot_port_t port = b->graph->outputs(b->emit.prog, backward)[i];
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (port.role != AOT_ROLE_GRADIENT || port.value.id == AOT_NO_ID) continue;
    if (!ok(b, b->graph->leaf_info(b->emit.prog, (aot_leaf_t){port.index}, &leaf))) return;
    if (leaf.role == AOT_ROLE_PARAMETER) add_param(b, &leaf, port.index, port.value);
  }
}

static void find_rules(builder_t *b) {
  aot_prog_t *prog = b->emit.prog;
  b->n_known = b->graph->n_leaves(prog);
  b->ruled = b->emit.host->alloc(b->emit.host, b->emit.ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)b->n_known + 1);
  if (!b->ruled) {
    ok(b, AOT_E_EXHAUSTED);
    return;
  }
  for (uint32_t i = 0; i < b->graph->n_rules(prog); i++) {
    aot_rule_t rule;
    if (ok(b, b->graph->rule(prog, i, &rule)) && rule.kind == AOT_RULE_COPY_BACK && rule.a < b->n_known)
      b->ruled[rule.a] = 1;
  }
}

static void list_groups(builder_t *b, const opt_rule_t *rule, const opt_groups_t *groups) {
  b->n_groups = 1 + groups->n;
  b->groups = b->emit.host->alloc(b->emit.host, b->emit.ctx, AOT_ARENA_SCRATCH, sizeof(void *),
                                  b->n_groups * sizeof *b->groups);
  if (!b->groups) {
    ok(b, AOT_E_EXHAUSTED);
    return;
  }
  for (uint32_t i = 0; i < b->n_groups; i++)
    b->groups[i] = (group_t){.rule = i ? &groups->rule[i - 1] : rule, .number = i};
}

static void warn_of_empty(builder_t *b) {
  for (uint32_t i = 1; i < b->n_groups; i++) {
    const aot_str_t patterns = b->groups[i].rule->patterns;
    char text[200];
    if (b->groups[i].has_begun) continue;
    snprintf(text, sizeof text, "option groups, rule %u, \"%.*s\", matches no parameter that has a gradient", i,
             (int)(patterns.size < 80 ? patterns.size : 80), patterns.data);
    const aot_diag_t d = kit_diag(AOT_SEVERITY_WARNING, "optimizer.groups", text);
    b->emit.host->diag(b->emit.host, b->emit.ctx, &d);
  }
}

aot_status_t opt_add_update(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const opt_rule_t *rule,
                            const opt_groups_t *groups) {
  builder_t b = {.emit = em_make(host, ctx, prog, (aot_graph_t){AOT_NO_ID}), .graph = host->graph, .edit = host->edit};
  aot_graph_t backward = host->graph->graph_find(prog, AOT_GRAPH_BACKWARD);
  if (host->graph->graph_find(prog, AOT_GRAPH_UPDATE).id != AOT_NO_ID)
    fail(&b, AOT_E_PRECONDITION, "optimizer.twice", "the program has an optimizer's update already",
         "name one optimizer: in run.train, or as a stage", aot_no_value());
  if (backward.id == AOT_NO_ID)
    fail(&b, AOT_E_PRECONDITION, "optimizer.backward", "the program has no backward graph",
         "add a partition stage before it", aot_no_value());
  b.emit.code = "optimizer.operator";
  b.emit.what = "the update";
  if (b.emit.status == AOT_OK) find_rules(&b);
  if (b.emit.status == AOT_OK) list_groups(&b, rule, groups);
  if (b.emit.status != AOT_OK) return b.emit.status;
  AOT_TRY(host->edit->graph_create(prog, AOT_GRAPH_UPDATE, aot_str("update"), &b.emit.graph));
  b.lr = add_input(&b, AOT_ROLE_HYPER, AOT_HYPER_LR, &scalar_f64, aot_str("lr"));
  add_params(&b, backward);
  if (b.emit.status == AOT_OK && b.n_params == 0)
    fail(&b, AOT_E_PRECONDITION, "optimizer.empty",
         "no parameter of the program has a gradient, so there is nothing to train", "", aot_no_value());
  if (b.emit.status == AOT_OK) warn_of_empty(&b);
  return b.emit.status;
}
