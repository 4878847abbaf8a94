/* What no exported program may hold. See export_file.h.
 *
 * Some of it is what the boundary of an archive has no word for (a new geometry of an input), some what makes gradients
 * of the loss alone mean something else than the model's (another output that requires a gradient). All complaints
 * are made. */
#include <cli/export/export_file.h>
#include <sandbox/session.h>

#include <aot/contract.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct rules {
  aoth_session_t *s;
  aot_prog_t *p;
  aot_graph_t graph;
  int joint;
  int64_t loss;
  uint32_t n_bad;
} rules_t;

static void bad(rules_t *r, const char *code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void bad(rules_t *r, const char *code, const char *hint, const char *format, ...) {
  va_list list;
  va_start(list, format);
  aoth_sink_v(r->s->config.sink, AOT_SEVERITY_ERROR, NULL, code, format, list);
  va_end(list);
  if (hint) aoth_sink_line(r->s->config.sink, "hint: %s", hint);
  r->n_bad++;
}

static aot_leaf_info_t leaf_of(const rules_t *r, uint32_t leaf) {
  aot_leaf_info_t info = {.struct_size = sizeof info};
  aoth_graph_leaf_info(r->p, (aot_leaf_t){leaf}, &info);
  return info;
}

/* parameter "fc.weight" */
static const char *leaf_text(const rules_t *r, uint32_t leaf, char *out, size_t size) {
  static const char *const roles[] = {"leaf", "parameter", "buffer", "constant", "user input", "state"};
  const aot_leaf_info_t l = leaf_of(r, leaf);
  const aot_str_t name = l.n_names ? l.names[0] : aot_str("");
  const char *role = l.role >= 1 && l.role <= AOT_ROLE_STATE ? roles[l.role] : roles[0];
  if (l.role == AOT_ROLE_USER_INPUT)
    snprintf(out, size, "%s %u \"%.*s\"", role, l.ordinal, (int)(name.size < 200 ? name.size : 200),
             name.size ? name.data : "");
  else snprintf(out, size, "%s \"%.*s\"", role, (int)(name.size < 200 ? name.size : 200), name.size ? name.data : "");
  return out;
}

/* ---- the boundary ---- */

static void check_geometry(rules_t *r) {
  char name[300];
  for (uint32_t i = 0; i < aoth_graph_n_rules(r->p); i++) {
    aot_rule_t rule;
    if (aoth_graph_rule(r->p, i, &rule) != AOT_OK || rule.kind != AOT_RULE_RESTRIDE) continue;
    bad(r, "export.metadata-mutation", "return the changed tensor instead of changing it in place",
        "%s gets another shape or other strides in place (as by t_() or resize_()); an exported program cannot do that "
        "to its caller",
        leaf_text(r, rule.a, name, sizeof name));
  }
}

static void check_update(rules_t *r, const aot_port_t *port) {
  char name[300];
  const aot_leaf_info_t l = leaf_of(r, port->index);
  leaf_text(r, port->index, name, sizeof name);
  if (l.n_names > 1)
    bad(r, "export.duplicate-mutated-inputs",
        "give each name a tensor of its own, or change the tensor outside the model",
        "%s is updated and is one tensor under %u names; an exported program takes each name as an input of its own",
        name, l.n_names);
  if (!r->joint) return;
  if (l.role == AOT_ROLE_PARAMETER)
    bad(r, "export.parameter-mutated", "update parameters outside the model",
        "%s is updated by the model whose joint program is asked for", name);
  else if (l.flags & AOT_LEAF_REQUIRES_GRAD)
    bad(r, "export.mutated-input-requires-grad", "clone the input before it is changed, or export without --joint",
        "%s is changed in place and requires a gradient; its gradient would be that of the value before the change",
        name);
}

/* Elements of a leaf in memory, as addresses. */
typedef struct span {
  uintptr_t begin, end;
  uint32_t leaf;
  int is_updated;
} span_t;

static int compare_spans(const void *a, const void *b) {
  const span_t *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->leaf > y->leaf) - (x->leaf < y->leaf);
}

static int span_of(const aot_leaf_info_t *l, span_t *out) {
  const aot_type_t *t = &l->type;
  uint64_t last = (uint64_t)t->offset;
  if (!l->data || !l->nbytes || AOT_DIM_IS_SYM(t->offset)) return 0;
  for (int32_t i = 0; i < t->rank; i++) {
    if (AOT_DIM_IS_SYM(t->sizes[i]) || AOT_DIM_IS_SYM(t->strides[i]) || t->sizes[i] == 0) return 0;
    last += (uint64_t)((t->sizes[i] - 1) * t->strides[i]);
  }
  out->begin = (uintptr_t)l->data + (uintptr_t)(t->offset * (int64_t)aot_dtype_size(t->dtype));
  out->end = (uintptr_t)l->data + (uintptr_t)((last + 1) * aot_dtype_size(t->dtype));
  return 1;
}

/* Leaves that overlap in memory, one of them updated: sorted by begin, each is held against the one that reaches
 * furthest. */
static void check_overlap(rules_t *r, const unsigned char *updated) {
  const uint32_t n = aoth_graph_n_leaves(r->p);
  uint32_t n_spans = 0;
  span_t *spans = calloc(n + (size_t)1, sizeof *spans);
  for (uint32_t i = 1; spans && i < n; i++) {
    const aot_leaf_info_t l = leaf_of(r, i);
    if (!span_of(&l, &spans[n_spans])) continue;
    spans[n_spans].leaf = i;
    spans[n_spans++].is_updated = updated[i];
  }
  if (n_spans) qsort(spans, n_spans, sizeof *spans, compare_spans);
  for (uint32_t i = 1, furthest = 0; i < n_spans; i++) {
    char a[300], b[300];
    if (spans[i].begin < spans[furthest].end && (spans[i].is_updated || spans[furthest].is_updated))
      bad(r, "export.aliased-mutated-inputs", "give each a storage of its own",
          "%s and %s share memory and one of them is updated; an exported program takes them as separate inputs",
          leaf_text(r, spans[furthest].leaf, a, sizeof a), leaf_text(r, spans[i].leaf, b, sizeof b));
    if (spans[i].end > spans[furthest].end) furthest = i;
  }
  free(spans);
}

static void check_updates(rules_t *r) {
  unsigned char *updated = calloc(aoth_graph_n_leaves(r->p) + (size_t)1, 1);
  const aot_port_t *outputs = aoth_graph_outputs(r->p, r->graph);
  for (uint32_t i = 0; updated && i < aoth_graph_n_outputs(r->p, r->graph); i++) {
    if (outputs[i].role != AOT_ROLE_UPDATE) continue;
    updated[outputs[i].index] = 1;
    check_update(r, &outputs[i]);
  }
  if (updated) check_overlap(r, updated);
  free(updated);
}

static void check_inputs(rules_t *r) {
  const aot_port_t *inputs = aoth_graph_inputs(r->p, r->graph);
  for (uint32_t i = 0; i < aoth_graph_n_inputs(r->p, r->graph); i++) {
    const int32_t role = inputs[i].role;
    if (role == AOT_ROLE_SEED || role == AOT_ROLE_OFFSET)
      bad(r, "export.random", "export before the stage that makes random numbers explicit",
          "the program takes the state of its random numbers as an input, which is no input of an exported program");
    if (role == AOT_ROLE_TOKEN)
      bad(r, "export.effect", NULL, "the program orders effects by a token, which is no input of an exported program");
    if (role == AOT_ROLE_STATE)
      bad(r, "export.state", "export before the optimizer is added", "the program holds the state of an optimizer");
    if (role == AOT_ROLE_SEED || role == AOT_ROLE_TOKEN) return; /* one complaint says it all */
  }
}

/* ---- the joint program ---- */

static int is_user(const aot_port_t *port) { return port->role == AOT_ROLE_USER_OUTPUT || port->role == AOT_ROLE_LOSS; }

static const aot_port_t *user_output(const rules_t *r, int64_t number) {
  const aot_port_t *outputs = aoth_graph_outputs(r->p, r->graph);
  for (uint32_t i = 0; i < aoth_graph_n_outputs(r->p, r->graph); i++)
    if (is_user(&outputs[i]) && outputs[i].index == number) return &outputs[i];
  return NULL;
}

/* The number given, the output that the program calls its loss, or the only one. */
static int64_t find_loss(rules_t *r) {
  const aot_port_t *outputs = aoth_graph_outputs(r->p, r->graph);
  uint32_t n = 0;
  int64_t only = -1, marked = -1;
  for (uint32_t i = 0; i < aoth_graph_n_outputs(r->p, r->graph); i++) {
    if (!is_user(&outputs[i])) continue;
    only = outputs[i].index;
    if (outputs[i].role == AOT_ROLE_LOSS) marked = only;
    n++;
  }
  if (r->loss >= 0) {
    if (user_output(r, r->loss)) return r->loss;
    bad(r, "export.joint-needs-loss-index", NULL, "--loss %lld: the model has %u outputs", (long long)r->loss, n);
    return -1;
  }
  if (marked >= 0 || n == 1) return marked >= 0 ? marked : only;
  bad(r, "export.joint-needs-loss-index", "--loss K names it, counted from 0",
      "the model has %u outputs; which of them is the loss that the joint program holds the gradients of?", n);
  return -1;
}

static void check_loss_shape(rules_t *r, const aot_port_t *port) {
  aot_type_t t;
  kit_text_t text = {0};
  int is_scalar = aoth_graph_value_type(r->p, port->value, &t) == AOT_OK && t.kind == AOT_TYPE_TENSOR;
  for (int32_t i = 0; is_scalar && i < t.rank; i++) is_scalar = t.sizes[i] == 1;
  if (is_scalar) return;
  for (int32_t i = 0; t.kind == AOT_TYPE_TENSOR && i < t.rank; i++) {
    if (i) kit_text_z(&text, ", ");
    aoth_dim_print(r->p, t.sizes[i], &text);
  }
  bad(r, "export.loss-not-scalar", "take the sum or the mean of it in the model",
      "output %u is the loss, but its shape is [%s]: it has to be one number", port->index, text.data ? text.data : "");
  kit_text_deinit(&text);
}

/* Which outputs gradients are wanted of: those with a tangent. A graph without any was exported so, with those of
 * its loss. */
static void check_tangents(rules_t *r) {
  const aot_port_t *inputs = aoth_graph_inputs(r->p, r->graph);
  int has_loss = 0, has_other = 0;
  for (uint32_t i = 0; i < aoth_graph_n_inputs(r->p, r->graph); i++) {
    if (inputs[i].role != AOT_ROLE_TANGENT) continue;
    if (inputs[i].index == r->loss) {
      has_loss = 1;
      continue;
    }
    has_other = 1;
    bad(r, "export.output-requires-grad", "detach every output but the loss in the model",
        "output %u requires a gradient and is not the loss (output %lld); an exported joint program holds the "
        "gradients of its "
        "loss alone",
        inputs[i].index, (long long)r->loss);
  }
  const aot_port_t *loss = user_output(r, r->loss);
  if (!has_loss && (has_other || !loss || loss->role != AOT_ROLE_LOSS))
    bad(r, "export.loss-without-grad", NULL,
        "output %lld is the loss, but it depends on nothing that requires a gradient", (long long)r->loss);
}

static void check_gradients(rules_t *r) {
  const aot_port_t *outputs = aoth_graph_outputs(r->p, r->graph);
  char name[300];
  for (uint32_t i = 0; i < aoth_graph_n_outputs(r->p, r->graph); i++) {
    if (outputs[i].role != AOT_ROLE_GRADIENT || outputs[i].value.id != AOT_NO_ID) continue;
    if (leaf_of(r, outputs[i].index).role != AOT_ROLE_PARAMETER) continue;
    bad(r, "export.parameter-without-gradient", "freeze it (requires_grad = False) before torch.export, or use it",
        "%s requires a gradient and the loss does not depend on it", leaf_text(r, outputs[i].index, name, sizeof name));
  }
}

/* The loss gets its role: a reader of the file has no other way to know it. */
static aot_status_t mark_loss(rules_t *r) {
  const uint32_t n = aoth_graph_n_outputs(r->p, r->graph);
  aot_port_t *ports = calloc(n + (size_t)1, sizeof *ports);
  if (!ports) return AOT_E_EXHAUSTED;
  memcpy(ports, aoth_graph_outputs(r->p, r->graph), n * sizeof *ports);
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < n && status == AOT_OK; i++) { /* names live in the program */
    if (is_user(&ports[i])) ports[i].role = ports[i].index == r->loss ? AOT_ROLE_LOSS : AOT_ROLE_USER_OUTPUT;
  }
  status = aoth_edit_outputs_clear(r->p, r->graph);
  for (uint32_t i = 0; i < n && status == AOT_OK; i++)
    status = aoth_edit_output_add(r->p, r->graph, ports[i].role, ports[i].index, ports[i].value, ports[i].name);
  free(ports);
  return status;
}

/* Before the gradients are there: the loss is one number, and something can have a gradient. */
static void check_loss(rules_t *r) {
  const int64_t loss = find_loss(r);
  int requires_grad = 0;
  if (loss < 0) return;
  const aot_port_t *port = user_output(r, loss);
  if (port->value.id != AOT_NO_ID) check_loss_shape(r, port);
  else bad(r, "export.loss-not-scalar", NULL, "output %lld is the loss, but it is None", (long long)loss);
  for (uint32_t i = 1; i < aoth_graph_n_leaves(r->p); i++)
    requires_grad |= (leaf_of(r, i).flags & AOT_LEAF_REQUIRES_GRAD) != 0;
  if (!requires_grad)
    bad(r, "export.loss-without-grad", "export without --joint",
        "output %lld is the loss, but no parameter and no input requires a gradient", (long long)loss);
}

static void warn_of_absent_data(const rules_t *r) {
  uint32_t n = 0, first = 0;
  char name[300];
  for (uint32_t i = aoth_graph_n_leaves(r->p); --i > 0;) {
    const aot_leaf_info_t l = leaf_of(r, i);
    if (l.role == AOT_ROLE_USER_INPUT || l.data) continue;
    int is_empty = 0;
    for (int32_t k = 0; k < l.type.rank; k++) is_empty |= l.type.sizes[k] == 0;
    if (!is_empty) first = i, n++;
  }
  if (n)
    aoth_sink_report(r->s->config.sink, AOT_SEVERITY_WARNING, NULL, "export.no-data",
                     "%u of the program's tensors have no data and are written as zeros, %s first", n,
                     leaf_text(r, first, name, sizeof name));
}

static rules_t rules_of(aoth_session_t *s, int joint, int64_t loss) {
  rules_t r = {.s = s, .p = aoth_session_prog(s), .joint = joint, .loss = loss};
  r.graph = aoth_graph_graph_find(r.p, AOT_GRAPH_JOINT);
  if (r.graph.id == AOT_NO_ID) r.graph = aoth_graph_graph_find(r.p, AOT_GRAPH_FORWARD);
  return r;
}

aot_status_t aoth_export_check(aoth_session_t *s, int joint, int64_t loss) {
  rules_t r = rules_of(s, joint, loss);
  check_geometry(&r);
  check_updates(&r);
  check_inputs(&r);
  if (joint) check_loss(&r);
  if (r.n_bad) return AOT_E_INVALID;
  warn_of_absent_data(&r);
  return AOT_OK;
}

aot_status_t aoth_export_check_joint(aoth_session_t *s, int64_t loss) {
  rules_t r = rules_of(s, 1, loss);
  r.loss = find_loss(&r);
  check_tangents(&r);
  check_gradients(&r);
  return r.n_bad ? AOT_E_INVALID : mark_loss(&r);
}
