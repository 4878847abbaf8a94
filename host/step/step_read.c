/* From the program's ports and rules to the step's tables, with the checks that let the rest of the step trust them. */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdarg.h>
#include <string.h>

static aot_status_t refuse(const aoth_step_t *s, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static aot_status_t refuse(const aoth_step_t *s, const char *code, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, code, "%s", text);
  return AOT_E_CONTRACT;
}

static void *table(aoth_step_t *s, size_t n, size_t size) { return kit_arena_alloc(s->arena, 16, (n + 1) * size); }

/* ---- ports ---- */

static aot_status_t read_ports(aoth_step_t *s, const aot_port_t *ports, uint32_t n, aoth_slot_t **out_slots,
                               aot_tensor_t **out_views) {
  aoth_slot_t *slots = table(s, n, sizeof *slots);
  *out_slots = slots;
  *out_views = table(s, n, sizeof **out_views);
  if (!slots || !*out_views)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (uint32_t i = 0; i < n; i++) {
    slots[i].role = ports[i].role;
    slots[i].index = ports[i].index;
    slots[i].at = AOTH_NOWHERE;
    if (ports[i].value.id != AOT_NO_ID) AOT_TRY(aoth_graph_value_type(s->prog, ports[i].value, &slots[i].type));
    if (aot_role_is_leaf(ports[i].role) || ports[i].role == AOT_ROLE_UPDATE || ports[i].role == AOT_ROLE_GRADIENT) {
      if (!ports[i].index || ports[i].index >= s->leaves.n)
        return refuse(s, "run.ports", "a port of the program names leaf %u, but there are %u", ports[i].index,
                      s->leaves.n - 1);
    }
  }
  return AOT_OK;
}

static aot_graph_t find_graph(aot_prog_t *p, int32_t kind, uint32_t number) {
  aot_str_t name;
  int32_t its_kind;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    if (aoth_graph_graph_info(p, (aot_graph_t){g}, &its_kind, &name) == AOT_OK && its_kind == kind && number-- == 0)
      return (aot_graph_t){g};
  return (aot_graph_t){AOT_NO_ID};
}

static aot_status_t read_call(aoth_step_t *s, int32_t kind, uint32_t number, aoth_step_call_t *c) {
  aot_graph_t g = find_graph(s->prog, kind, number);
  if (g.id == AOT_NO_ID) return AOT_OK;
  c->present = 1;
  c->kind = kind;
  c->number = number;
  c->n_in = aoth_graph_n_inputs(s->prog, g);
  c->n_out = aoth_graph_n_outputs(s->prog, g);
  AOT_TRY(read_ports(s, aoth_graph_inputs(s->prog, g), c->n_in, &c->in, &c->in_views));
  return read_ports(s, aoth_graph_outputs(s->prog, g), c->n_out, &c->out, &c->out_views);
}

/* Numbers from 0 on, each once: how many there are of a role among the outputs, or a complaint. */
static uint32_t count_role(const aoth_step_call_t *c, int32_t role, int32_t other) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n_out; i++)
    if ((c->out[i].role == role || c->out[i].role == other) && c->out[i].index < c->n_out && c->out[i].index + 1 > n)
      n = c->out[i].index + 1;
  return n;
}

static aot_status_t index_forward(aoth_step_t *s) {
  const aoth_step_call_t *f = aoth_step_first(s);
  s->n_saved = count_role(f, AOT_ROLE_SAVED, AOT_ROLE_SAVED);
  s->n_bases = count_role(f, AOT_ROLE_BASE, AOT_ROLE_BASE);
  s->n_outputs = count_role(f, AOT_ROLE_USER_OUTPUT, AOT_ROLE_LOSS);
  s->saved = table(s, s->n_saved, sizeof *s->saved);
  if (!s->saved) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  memset(s->saved, 0xff, s->n_saved * sizeof *s->saved);
  for (uint32_t i = 0; i < f->n_out; i++) {
    if (f->out[i].role != AOT_ROLE_SAVED) continue;
    if (f->out[i].index >= s->n_saved || s->saved[f->out[i].index] != AOT_NO_INDEX)
      return refuse(s, "run.ports", "the forward saves slot %u twice", f->out[i].index);
    s->saved[f->out[i].index] = i;
  }
  return AOT_OK;
}

const aoth_step_call_t *aoth_step_first(const aoth_step_t *s) {
  return &s->call[s->call[AOTH_CALL_STEP].present ? AOTH_CALL_STEP : AOTH_CALL_FORWARD];
}

static int is_of_call(const aoth_slot_t *p) { return !aot_role_is_leaf(p->role) || p->role == AOT_ROLE_USER_INPUT; }

/* An output at home belongs to whom the input there belongs. */
static aot_status_t order_ports(aoth_step_t *s, aoth_step_call_t *c) {
  uint32_t n_in = 0, n_out = 0;
  c->in_order = table(s, c->n_in, sizeof *c->in_order);
  c->out_order = table(s, c->n_out, sizeof *c->out_order);
  if (!c->in_order || !c->out_order)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (int fresh = 1; fresh >= 0; fresh--) {
    for (uint32_t i = 0; i < c->n_in; i++)
      if (is_of_call(&c->in[i]) == fresh) c->in_order[n_in++] = i;
    for (uint32_t i = 0; i < c->n_out; i++)
      if ((!aoth_step_is_at_home(c, i) || is_of_call(&c->in[c->home[i]])) == fresh) c->out_order[n_out++] = i;
    if (fresh) c->n_fresh_in = n_in;
    if (fresh) c->n_fresh_out = n_out;
  }
  return AOT_OK;
}

/* A step brings its new values home itself, so that nothing is left to do after it but what rules say of inputs. Where
 * versions of leaves are requested, each call counts them. */
static int can_settle(const aoth_step_t *s, const aoth_step_call_t *c) {
  for (uint32_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].kind == AOT_RULE_RESTRIDE) return 0;
  return c->home && !s->has_entry_rules && !s->exec.leaf_is && !s->call[AOTH_CALL_BACKWARD].present;
}

/* New values of a step are where the old ones did (aot/graph.h, AOT_GRAPH_STEP). */
static aot_status_t find_homes(aoth_step_t *s, aoth_step_call_t *c) {
  uint32_t *of_leaf = table(s, s->leaves.n, sizeof *of_leaf), offset = AOT_NO_INDEX; /* input port + 1 */
  c->home = c->present ? table(s, c->n_out, sizeof *c->home) : NULL;
  if (!of_leaf || (c->present && !c->home))
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (aot_role_is_leaf(c->in[i].role)) of_leaf[c->in[i].index] = i + 1;
    if (c->in[i].role == AOT_ROLE_OFFSET) offset = i;
  }
  for (uint32_t o = 0; o < c->n_out; o++) {
    const aoth_slot_t *p = &c->out[o];
    c->home[o] = p->role == AOT_ROLE_OFFSET ? offset : AOT_NO_INDEX;
    if (p->role == AOT_ROLE_UPDATE && of_leaf[p->index]) c->home[o] = of_leaf[p->index] - 1;
    if (p->role == AOT_ROLE_UPDATE && c->home[o] == AOT_NO_INDEX)
      return refuse(s, "run.ports", "the step computes a new value of leaf %u, which it does not take", p->index);
  }
  return AOT_OK;
}

static aot_status_t check_backward(aoth_step_t *s) {
  const aoth_step_call_t *b = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < b->n_in; i++) {
    const aoth_slot_t *p = &b->in[i];
    if (p->role == AOT_ROLE_SAVED && (p->index >= s->n_saved || s->saved[p->index] == AOT_NO_INDEX))
      return refuse(s, "run.ports", "the backward reads saved slot %u, which the forward does not save", p->index);
    if (p->role == AOT_ROLE_TANGENT && p->index >= s->n_outputs)
      return refuse(s, "run.ports", "the backward takes a tangent of output %u, but there are %u outputs", p->index,
                    s->n_outputs);
    if (!aot_role_is_leaf(p->role) && p->role != AOT_ROLE_SAVED && p->role != AOT_ROLE_TANGENT &&
        p->role != AOT_ROLE_SEED && p->role != AOT_ROLE_OFFSET && p->role != AOT_ROLE_TOKEN)
      return refuse(s, "run.ports", "input %u of the backward has role %d, which a backward does not take", i, p->role);
  }
  for (uint32_t i = 0; i < b->n_out; i++)
    if (b->out[i].role == AOT_ROLE_GRADIENT) s->gradient[b->out[i].index] = i;
  for (uint32_t i = 0; i < s->n_rules; i++) { /* the members' gradients are views of their base's */
    uint32_t port = s->rules[i].kind == AOT_RULE_ENTRY_VIEW ? s->gradient[s->rules[i].b] : AOT_NO_INDEX;
    const aot_type_t *t = port == AOT_NO_INDEX ? NULL : &b->out[port].type;
    if (t && t->kind == AOT_TYPE_TENSOR && (t->rank != 1 || t->strides[0] != 1 || t->offset != 0))
      return refuse(s, "run.ports", "the gradient of leaf %u, which others are views of, is not contiguous",
                    s->rules[i].b);
  }
  return AOT_OK;
}

static aot_status_t check_update(const aoth_step_t *s) {
  const aoth_step_call_t *u = &s->call[AOTH_CALL_UPDATE], *b = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < u->n_in; i++) {
    const aoth_slot_t *p = &u->in[i];
    if (p->role == AOT_ROLE_HYPER && p->index != AOT_HYPER_LR)
      return refuse(s, "run.ports", "the optimizer takes hyper-parameter %u; only the learning rate (0) is given",
                    aoth_port_number(p->role, p->index));
    if (p->role == AOT_ROLE_GRADIENT) {
      uint32_t port = s->gradient[p->index];
      aot_str_t name = aoth_leaf_name(&s->leaves.leaf[p->index]);
      if (port == AOT_NO_INDEX || b->out[port].type.kind == AOT_TYPE_NONE)
        return refuse(s, "run.ports", "the optimizer reads the gradient of %.*s, which the backward does not compute",
                      (int)name.size, name.data);
    } else if (!aot_role_is_leaf(p->role) && p->role != AOT_ROLE_HYPER) {
      return refuse(s, "run.ports", "input %u of the optimizer's graph has role %d, which it does not take", i,
                    p->role);
    }
  }
  return AOT_OK;
}

/* ---- rules ---- */

static aot_status_t read_rules(aoth_step_t *s) {
  size_t n_dims = 0, at = 0;
  s->n_rules = aoth_graph_n_rules(s->prog);
  s->rules = table(s, s->n_rules, sizeof *s->rules);
  s->now = table(s, s->n_rules, sizeof *s->now);
  if (!s->rules || !s->now)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (uint32_t i = 0; i < s->n_rules; i++) {
    aot_rule_t *r = &s->rules[i];
    AOT_TRY(aoth_graph_rule(s->prog, i, r));
    if (r->rank < 0 || r->rank > AOT_MAX_RANK)
      return refuse(s, "run.rules", "boundary rule %u has rank %d", i, r->rank);
    if (aoth_rule_makes_output(r->kind) && r->a < s->n_rules + s->n_outputs && r->a + 1 > s->n_outputs)
      s->n_outputs = r->a + 1;
    if ((r->kind == AOT_RULE_COPY_BACK || r->kind == AOT_RULE_RESTRIDE) && (!r->a || r->a >= s->leaves.n))
      return refuse(s, "run.rules", "boundary rule %u names leaf %u, but there are %u", i, r->a, s->leaves.n - 1);
    if (r->kind == AOT_RULE_COPY_BACK || r->kind == AOT_RULE_RESTRIDE)
      s->changed[r->a] |= r->kind == AOT_RULE_COPY_BACK ? AOTH_CHANGED_NUMBERS : AOTH_CHANGED_SHAPE;
    n_dims += 2 * (size_t)r->rank;
  }
  s->rule_dims = table(s, n_dims, sizeof *s->rule_dims);
  if (!s->rule_dims) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (uint32_t i = 0; i < s->n_rules; i++) {
    s->now[i] = s->rules[i];
    s->now[i].sizes = s->rule_dims + at;
    s->now[i].strides = s->rule_dims + at + s->rules[i].rank;
    at += 2 * (size_t)s->rules[i].rank;
  }
  return AOT_OK;
}

/* ---- entry rules ---- */

/* New numbers are seen through all views; a new shape only by the tensor itself. What a duplicate is of may be a
 * view. */
static void spread_changes(aoth_step_t *s) {
  for (uint32_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].kind == AOT_RULE_ENTRY_VIEW)
      s->changed[s->rules[i].a] |= s->changed[s->rules[i].b] & AOTH_CHANGED_NUMBERS;
  for (uint32_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].kind == AOT_RULE_ENTRY_SAME) s->changed[s->rules[i].a] |= s->changed[s->rules[i].b];
}

static aot_status_t check_entry_rule(const aoth_step_t *s, uint32_t i) {
  const aot_rule_t *r = &s->rules[i];
  const aoth_leaf_t *a = &s->leaves.leaf[r->a < s->leaves.n ? r->a : 0],
                    *b = &s->leaves.leaf[r->b < s->leaves.n ? r->b : 0];
  if (a->info.role != AOT_ROLE_USER_INPUT || b->info.role != AOT_ROLE_USER_INPUT || s->entry[r->a] != AOT_NO_INDEX)
    return refuse(s, "run.rules",
                  "boundary rule %u says at the entry what leaf %u is, which must be a user input without such a rule",
                  i, r->a);
  const aoth_step_call_t *first = aoth_step_first(s);
  for (uint32_t k = 0; k < first->n_in; k++) {
    const aoth_slot_t *p = &first->in[k];
    if (p->role == AOT_ROLE_USER_INPUT && p->index == r->a)
      return refuse(
          s, "run.rules",
          "input %u shares memory with another, but the program still reads it on its own; add the stage functionalize",
          a->info.ordinal);
  }
  return AOT_OK;
}

static aot_status_t read_entry_rules(aoth_step_t *s) {
  unsigned char *is_base = table(s, s->leaves.n, 1);
  s->entry = table(s, s->leaves.n, sizeof *s->entry);
  if (!s->entry || !is_base)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  memset(s->entry, 0xff, s->leaves.n * sizeof *s->entry);
  s->n_given = s->leaves.n_inputs;
  for (uint32_t i = 0; i < s->n_rules; i++) {
    const aot_rule_t *r = &s->rules[i];
    if (r->kind != AOT_RULE_ENTRY_SAME && r->kind != AOT_RULE_ENTRY_VIEW) continue;
    AOT_TRY(check_entry_rule(s, i));
    s->entry[r->a] = i;
    s->has_entry_rules = 1;
    if (r->kind == AOT_RULE_ENTRY_SAME || is_base[r->b]) continue;
    is_base[r->b] = 1;
    s->n_given--;
  }
  for (uint32_t k = 0; k < s->leaves.n_inputs; k++)
    if (is_base[s->leaves.input[k]] != (k >= s->n_given))
      return refuse(s, "run.rules", "user input %u is a base of others, but not behind the caller's inputs", k);
  spread_changes(s);
  return AOT_OK;
}

/* An updated value that no rule brings home would be lost without a word. */
static aot_status_t check_updates(aoth_step_t *s) {
  unsigned char *has_rule = table(s, s->leaves.n, 1);
  if (!has_rule) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  for (uint32_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].kind == AOT_RULE_COPY_BACK) has_rule[s->rules[i].a] = 1;
  for (int k = 0; k < AOTH_N_CALLS; k++)
    for (uint32_t i = 0; i < s->call[k].n_out; i++) {
      const aoth_slot_t *p = &s->call[k].out[i];
      if (p->role != AOT_ROLE_UPDATE || has_rule[p->index]) continue;
      aot_str_t name = aoth_leaf_name(&s->leaves.leaf[p->index]);
      return refuse(s, "run.rules", "the program computes a new value of %.*s, but no boundary rule copies it back",
                    (int)name.size, name.data);
    }
  return AOT_OK;
}

aot_status_t aoth_step_read(aoth_step_t *s) {
  static const int32_t kinds[AOTH_N_CALLS] = {AOT_GRAPH_FORWARD, AOT_GRAPH_BACKWARD, AOT_GRAPH_UPDATE, AOT_GRAPH_STEP,
                                              AOT_GRAPH_STEP};
  if (aoth_graph_graph_find(s->prog, AOT_GRAPH_JOINT).id != AOT_NO_ID)
    return refuse(s, "run.joint",
                  "the program is a joint graph that was not divided; add a partition stage before the backend");
  for (int k = 0; k < AOTH_N_CALLS; k++) AOT_TRY(read_call(s, kinds[k], k == AOTH_CALL_APPLY, &s->call[k]));
  if (!aoth_step_first(s)->present) return refuse(s, "run.ports", "the program has no forward graph");
  s->gradient = table(s, s->leaves.n, sizeof *s->gradient);
  s->changed = table(s, s->leaves.n, 1);
  if (!s->gradient || !s->changed)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
  memset(s->gradient, 0xff, s->leaves.n * sizeof *s->gradient);
  AOT_TRY(index_forward(s));
  AOT_TRY(find_homes(s, &s->call[AOTH_CALL_STEP]));
  AOT_TRY(find_homes(s, &s->call[AOTH_CALL_APPLY]));
  AOT_TRY(read_rules(s));
  AOT_TRY(read_entry_rules(s));
  for (int k = 0; k < AOTH_N_CALLS; k++) {
    AOT_TRY(order_ports(s, &s->call[k]));
    s->call[k].can_settle = can_settle(s, &s->call[k]);
  }
  AOT_TRY(check_backward(s));
  AOT_TRY(check_update(s));
  AOT_TRY(check_updates(s));
  s->updates = table(s, s->leaves.n, sizeof *s->updates);
  s->told = table(s, s->leaves.n_inputs, sizeof *s->told);
  s->given = table(s, s->leaves.n_inputs, sizeof *s->given);
  s->fed = table(s, 0, sizeof *s->fed);
  s->after = table(s, s->leaves.n, sizeof *s->after);
  s->outputs = table(s, s->n_outputs, sizeof *s->outputs);
  s->bases = table(s, s->n_bases, sizeof *s->bases);
  s->planned_for = table(s, s->sizes.n, sizeof *s->planned_for);
  s->symbols = table(s, s->sizes.n, sizeof *s->symbols);
  s->learned = table(s, s->sizes.n, sizeof *s->learned);
  return s->symbols && s->learned && s->updates && s->told && s->given && s->fed && s->after && s->outputs &&
                 s->bases && s->planned_for
             ? AOT_OK
             : aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the tables of the program's ports");
}
