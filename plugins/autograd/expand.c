/* Makes the graph differentiable. Marks, in forward order, what depends on a differentiable leaf; a marked node without
 * a rule for a relevant operand is replaced by its decomposition, whose nodes are visited next. Nodes with neither are
 * collected and reported in one error. O(nodes), new ones included. */
#include "joint.h"
#include "no_rule.h"

#include <stdio.h>

#define MAX_NAMED 24 /* operators named in the error */

typedef struct missing_rule {
  aot_op_t op;
  aot_node_t first;
  uint32_t count;
  uint32_t arg; /* the argument without a gradient, or one of these: */
#define NO_RULE AG_NO_ARG
#define NOT_SO (AG_NO_ARG - 1)      /* a rule that does not hold for this node */
#define NOT_COMPLEX (AG_NO_ARG - 2) /* one that does not hold for complex numbers */
} missing_rule_t;

typedef struct list {
  missing_rule_t rows[MAX_NAMED];
  uint32_t n, n_nodes, n_more;
} list_t;

aot_status_t ag_joint_grow(ag_joint_t *j) {
  uint32_t n = j->a.host->graph->n_values(j->a.prog);
  uint8_t *more;
  if (n <= j->n_needs) return AOT_OK;
  n += n / 2 + 64;
  more = em_scratch(&j->a, n, 1);
  if (!more) return AOT_E_EXHAUSTED;
  if (j->n_needs) memcpy(more, j->needs, j->n_needs);
  j->needs = more;
  j->n_needs = n;
  j->site.needs = more;
  return AOT_OK;
}

/* Does the loaded node read a value that needs a gradient? *out_uncovered: an argument that does and that its rule
 * lacks, or AG_NO_ARG. */
static int reads(ag_joint_t *j, uint64_t covered, uint32_t *out_uncovered) {
  uint32_t i, k, any = 0;
  *out_uncovered = AG_NO_ARG;
  for (i = 0; i < j->a.info.n_args; i++)
    for (k = 0; k < ag_n_operands(&j->a.info.args[i]); k++) {
      uint32_t v = ag_operand(&j->a.info.args[i], k);
      if (v == AOT_NO_ID || !j->needs[v]) continue;
      any = 1;
      if (!(covered >> (i < 63 ? i : 63) & 1)) *out_uncovered = i;
    }
  return (int)any;
}

static void record(list_t *l, ag_joint_t *j, uint32_t arg) {
  uint32_t i;
  l->n_nodes++;
  for (i = 0; i < l->n && l->rows[i].op.id != j->a.info.op.id; i++) {}
  if (i == MAX_NAMED) {
    l->n_more++;
    return;
  }
  if (i == l->n) {
    l->rows[l->n].op = j->a.info.op;
    l->rows[l->n].first = j->a.node;
    l->rows[l->n].arg = arg;
    l->rows[l->n++].count = 0;
  }
  l->rows[i].count++;
}

/* The new value takes over the uses and the name. */
static aot_status_t replace(ag_joint_t *j, aot_value_t from, aot_value_t to) {
  aot_str_t name = j->a.host->graph->value_name(j->a.prog, from);
  if (name.size && j->a.host->graph->value_name(j->a.prog, to).size == 0)
    AOT_TRY(j->a.host->edit->name_set(j->a.prog, to, name));
  return j->a.host->edit->uses_replace(j->a.prog, from, to);
}

static aot_status_t decomposition(em_t *a, aot_value_t *out) { return a->host->edit->decompose(a->prog, a->node, out); }

/* Put what `make` puts before the loaded node in its place. *out_next: the first node to look at. */
static aot_status_t put_in_place(ag_joint_t *j, ag_prepare_fn make, aot_node_t *out_next) {
  const aot_host_t *h = j->a.host;
  aot_node_t n = j->a.node, before = h->graph->prev(j->a.prog, n), m;
  uint32_t k, n_results, first, flags, n_old = h->graph->n_nodes(j->a.prog);
  aot_value_t *values;
  aot_node_info_t info;
  AOT_TRY(ag_load(&j->a, n)); /* itself, not what it holds */
  n_results = j->a.info.n_results;
  first = j->a.info.first_result.id;
  flags = j->a.info.flags;
  values = em_scratch(&j->a, n_results, sizeof *values);
  if (!values) return AOT_E_EXHAUSTED;
  AOT_TRY(make(&j->a, values));
  for (k = 0; k < n_results; k++) {
    aot_value_t from;
    from.id = first + k;
    if (values[k].id != AOT_NO_ID) AOT_TRY(replace(j, from, values[k]));
  }
  AOT_TRY(h->edit->node_erase(j->a.prog, n));
  *out_next = before.id == AOT_NO_ID ? h->graph->first(j->a.prog, j->a.graph) : h->graph->next(j->a.prog, before);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  /* checkpoint tags continue to the parts: new nodes, whose ids are higher than all before */
  for (m = *out_next; flags && m.id != AOT_NO_ID && m.id >= n_old; m = h->graph->next(j->a.prog, m)) {
    AOT_TRY(h->graph->node_info(j->a.prog, m, &info));
    AOT_TRY(h->edit->flags_set(j->a.prog, m, info.flags | flags));
  }
  return AOT_OK;
}

static uint32_t why_not(const ag_bound_t *b, int is_complex, uint32_t uncovered) {
  if (!ag_has_rule(b)) return NO_RULE;
  if (is_complex && !b->complex_way) return NOT_COMPLEX;
  return uncovered != AG_NO_ARG ? uncovered : NOT_SO;
}

/* One node: *out_next is where to continue. */
static aot_status_t look_at(ag_joint_t *j, list_t *missing, aot_node_t *out_next) {
  const ag_bound_t *b;
  uint32_t uncovered, k, able = 0;
  int is_complex;
  *out_next = j->a.host->graph->next(j->a.prog, j->a.node);
  b = &j->site.rules[j->a.info.op.id];
  is_complex = ag_has_rule(b) && em_touches_complex(&j->a);
  if (ag_stops(&j->a) || !reads(j, is_complex ? b->complex_covered : b->covered, &uncovered)) return AOT_OK;
  for (k = 0; k < j->a.info.n_results; k++)
    able += ag_able(&j->a, j->a.info.first_result.id + k) && !(k > 0 && b->first_only);
  if (j->a.status != AOT_OK || able == 0) return j->a.status;
  if (!ag_has_rule(b) || uncovered != AG_NO_ARG || (b->when && !b->when(&j->a))) {
    aot_status_t status = j->a.status;
    if (status == AOT_OK) status = put_in_place(j, decomposition, out_next);
    j->n_decomposed += status == AOT_OK;
    if (status != AOT_E_UNIMPLEMENTED) return status;
    record(missing, j, why_not(b, is_complex, uncovered)); /* and continue, to find the others */
  }
  if (b->prepare) {
    aot_status_t status = put_in_place(j, b->prepare, out_next);
    if (status != AOT_E_UNIMPLEMENTED) return status;
  }
  for (k = 0; k < j->a.info.n_results; k++)
    if (ag_able(&j->a, j->a.info.first_result.id + k) && !(k > 0 && b->first_only))
      j->needs[j->a.info.first_result.id + k] = 1;
  return AOT_OK;
}

/* ---- the report ---- */

static void say(ag_joint_t *j, int32_t severity, const char *text, const char *hint, aot_node_t node) {
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = severity;
  d.code = aot_str("autograd.no-rule");
  d.message = aot_str(text);
  d.hint = aot_str(hint);
  d.node = node;
  d.value = aot_no_value();
  j->a.host->diag(j->a.host, j->a.ctx, &d);
}

/* Why the operator is left without a rule, or NULL. */
static const char *reason_of(aot_str_t op) {
  for (uint32_t i = 0; i < ag_n_no_rules(); i++)
    if (aot_str_eq(op, aot_str(ag_no_rule_at(i)->op))) return ag_no_rule_at(i)->reason;
  return NULL;
}

static aot_status_t report(ag_joint_t *j, const list_t *l) {
  char text[2048], line[256];
  size_t at;
  uint32_t i;
  at = (size_t)snprintf(text, sizeof text, "no derivative rule for %u operator%s (%u node%s):", l->n,
                        l->n == 1 ? "" : "s", l->n_nodes, l->n_nodes == 1 ? "" : "s");
  for (i = 0; i < l->n && at + 200 < sizeof text; i++) {
    const aot_op_desc_t *d = j->a.host->graph->op_desc(j->a.prog, l->rows[i].op);
    at += (size_t)snprintf(text + at, sizeof text - at, "%s %.*s", i ? "," : "", (int)d->name.size, d->name.data);
    if (l->rows[i].arg == NOT_SO) at += (size_t)snprintf(text + at, sizeof text - at, " (with these arguments)");
    if (l->rows[i].arg == NOT_COMPLEX) at += (size_t)snprintf(text + at, sizeof text - at, " (of complex numbers)");
    if (l->rows[i].arg < d->n_args)
      at += (size_t)snprintf(text + at, sizeof text - at, " (argument %.*s)", (int)d->args[l->rows[i].arg].name.size,
                             d->args[l->rows[i].arg].name.data);
  }
  if (l->n_more) snprintf(text + at, sizeof text - at, " and others in %u more nodes", l->n_more);
  say(j, AOT_SEVERITY_ERROR, text,
      "freeze what needs the gradient, detach the operand, or bring a derivative (aot.derivative/1) with the "
      "operator's plugin",
      l->rows[0].first);
  for (i = 0; i < l->n; i++) {
    const aot_op_desc_t *d = j->a.host->graph->op_desc(j->a.prog, l->rows[i].op);
    const char *reason = l->rows[i].arg == NO_RULE ? reason_of(d->name) : NULL;
    snprintf(line, sizeof line, "%.*s%s%s%s: %u node%s, the first here", (int)d->name.size, d->name.data,
             reason ? " (" : "", reason ? reason : "", reason ? ")" : "", l->rows[i].count,
             l->rows[i].count == 1 ? "" : "s");
    say(j, AOT_SEVERITY_NOTE, line, "", l->rows[i].first);
  }
  return AOT_E_UNIMPLEMENTED;
}

aot_status_t ag_joint_expand(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  list_t *missing = em_scratch(&j->a, 1, sizeof *missing);
  /* A decomposition that contains itself ends here; an unrolled network of many steps does not. */
  uint64_t budget = 64 * (uint64_t)api->n_nodes(j->a.prog) + (1u << 20);
  aot_node_t n, next;
  if (!missing) return AOT_E_EXHAUSTED;
  for (n = api->first(j->a.prog, j->a.graph); n.id != AOT_NO_ID; n = next) {
    AOT_TRY(ag_joint_grow(j));
    AOT_TRY(ag_load(&j->a, n));
    ag_look_through(&j->a);
    AOT_TRY(look_at(j, missing, &next));
    if (budget-- == 0) {
      em_fail(&j->a, AOT_E_INVALID, "", "decomposing %.*s does not end", (int)j->a.desc->name.size,
              j->a.desc->name.data);
      return j->a.status;
    }
  }
  return missing->n ? report(j, missing) : AOT_OK;
}
