/* Loops over dimension 0 of their inputs (torch/_higher_order_ops: scan.py, map.py, associative_scan.py).
 *
 *     scan              carries, y[t] = f(carries, x[t], more)
 *         unrolled, a copy of the body for each step: for who cannot run a loop
 *     map               y[t] = f(x[t], more)
 *         a scan that carries nothing
 *     associative_scan  y[0] = x[0]    y[t] = f(y[t - 1], x[t], more)
 *         a scan over x[1..] whose body gives what it carries as y, too
 *
 * PyTorch associates an associative_scan in a tree; sums may round differently. The body is traced with slices that lie
 * contiguously: operands of a copy are brought into the order that it was traced with. */
#include "at_formula.h"
#include "kit/emit/inline_body.h"

/* Copies of nodes, at most; a longer loop is one that a backend must run. */
#define MOST_COPIES (1 << 15)

static uint32_t length(em_x_t list) { return list.kind == AOT_ARG_VALUES || list.kind == AOT_ARG_INTS ? list.n : 0; }

static em_x_t item(em_x_t list, uint32_t i) {
  /* a size: it is in the body as an expression */
  if (list.kind == AOT_ARG_VALUES && list.u.ids[i] == AOT_NO_ID) return em_none();
  return list.kind == AOT_ARG_VALUES ? em_v((aot_value_t){list.u.ids[i]}) : em_i(list.u.ints[i]);
}

static aot_graph_t body_of(em_t *e) { return (aot_graph_t){(uint32_t)e->info.args[0].u.i}; }

/* ---- scan, unrolled ---- */

typedef struct loop {
  em_t *e;
  em_inliner_t body;
  aot_graph_t graph;                     /* the body */
  uint32_t n_inputs, n_outputs, n_nodes; /* of it */
  em_x_t xs;
  em_x_t *inputs;  /* of a step: carries, slices, more */
  em_x_t *outputs; /* of a step: carries, ys */
  uint32_t n_carries, n_ys;
  int64_t steps;
  uint32_t *ys; /* [n_ys][steps] */
} loop_t;

/* As the body's input i was traced. */
static em_x_t as_traced(loop_t *l, uint32_t i, em_x_t x) {
  aot_type_t t;
  if (l->e->status != AOT_OK || x.kind != AOT_ARG_VALUE) return x;
  t = at_type(l->e, em_v(l->e->host->graph->inputs(l->e->prog, l->graph)[i].value));
  return t.kind == AOT_TYPE_TENSOR ? at_laid_out(l->e, x, &t) : x;
}

static void check(loop_t *l, uint32_t n_in) {
  em_t *e = l->e;
  if (l->n_outputs < l->n_carries || l->n_inputs != n_in)
    em_fail(e, AOT_E_UNIMPLEMENTED, "",
            "%s: its body takes %u operands and gives %u results; %u are given, %u of them carried", at_name(e),
            l->n_inputs, l->n_outputs, n_in, l->n_carries);
  if (e->status == AOT_OK && AOT_DIM_IS_SYM(l->steps))
    em_fail(e, AOT_E_UNIMPLEMENTED, "export with a fixed size of dimension 0",
            "%s over a symbolic number of steps cannot be unrolled", at_name(e));
  if (e->status == AOT_OK && l->steps * (int64_t)(l->n_nodes + length(l->xs) + 1) > MOST_COPIES)
    em_fail(e, AOT_E_UNIMPLEMENTED, "",
            "%s: %lld steps of %u nodes are too many to be unrolled, which is done up to %d nodes", at_name(e),
            (long long)l->steps, l->n_nodes, MOST_COPIES);
}

/* Memory, and what does not change from step to step. */
static void begin(loop_t *l) {
  em_t *e = l->e;
  const em_x_t init = IN("init"), more = IN("additional_inputs");
  uint32_t first_more;
  em_inline_open(&l->body, e);
  l->graph = body_of(e);
  l->n_inputs = e->host->graph->n_inputs(e->prog, l->graph);
  l->n_outputs = e->host->graph->n_outputs(e->prog, l->graph);
  for (aot_node_t n = e->host->graph->first(e->prog, l->graph); n.id != AOT_NO_ID; n = e->host->graph->next(e->prog, n))
    l->n_nodes++;
  l->xs = IN("xs");
  l->n_carries = length(init);
  l->steps = length(l->xs) ? TYPE(item(l->xs, 0)).sizes[0] : 0;
  first_more = l->n_carries + length(l->xs);
  check(l, first_more + length(more));
  if (e->status != AOT_OK) return;
  l->n_ys = l->n_outputs - l->n_carries;
  l->inputs = em_scratch(e, l->n_inputs, sizeof *l->inputs);
  l->outputs = em_scratch(e, l->n_outputs, sizeof *l->outputs);
  l->ys = em_scratch(e, (uint64_t)l->n_ys * (uint64_t)l->steps, sizeof *l->ys);
  for (uint32_t i = 0; e->status == AOT_OK && i < l->n_carries; i++) l->inputs[i] = item(init, i);
  for (uint32_t i = 0; e->status == AOT_OK && i < length(more); i++)
    l->inputs[first_more + i] = as_traced(l, first_more + i, item(more, i));
}

static void step(loop_t *l, int64_t t) {
  em_t *e = l->e;
  const uint32_t mark = at_infer(e)->n_pool, n = l->n_carries;
  for (uint32_t i = 0; i < n; i++) l->inputs[i] = as_traced(l, i, l->inputs[i]);
  for (uint32_t i = 0; i < length(l->xs); i++)
    l->inputs[n + i] = as_traced(l, n + i, EM(e, "select.int", item(l->xs, i), em_i(0), em_i(t)));
  em_inline(&l->body, l->graph, l->n_inputs, l->inputs, l->outputs);
  for (uint32_t i = 0; i < n; i++) l->inputs[i] = l->outputs[i];
  for (uint32_t k = 0; k < l->n_ys; k++) l->ys[k * (uint64_t)l->steps + (uint64_t)t] = VAL(l->outputs[n + k]).id;
  at_infer(e)->n_pool = mark;
}

/* The ys of all steps, stacked; nothing of nothing where there are no steps. */
static em_x_t stacked(loop_t *l, uint32_t k, const aot_type_t *t) {
  em_t *e = l->e;
  if (l->steps == 0) return at_filled(e, t->sizes, t->rank, em_i(0), t->dtype, item(l->xs, 0));
  return EM(e, "stack", aot_arg_values(l->ys + k * (uint64_t)l->steps, (uint32_t)l->steps), em_i(0));
}

aot_status_t at_dc_scan(em_t *e, aot_value_t *out) {
  loop_t l = {.e = e};
  begin(&l);
  for (int64_t t = 0; e->status == AOT_OK && t < l.steps; t++) step(&l, t);
  for (uint32_t i = 0; e->status == AOT_OK && i < l.n_carries; i++) out[i] = VAL(l.inputs[i]);
  for (uint32_t k = 0; e->status == AOT_OK && k < l.n_ys; k++) {
    const aot_type_t t = at_result_type(e, l.n_carries + k);
    out[l.n_carries + k] = VAL(stacked(&l, k, &t));
  }
  em_inline_close(&l.body);
  return e->status;
}

/* ---- map ---- */

aot_status_t at_dc_map(em_t *e, aot_value_t *out) {
  const em_x_t first =
      EM(e, "higher_order.scan", e->info.args[0], aot_arg_values(NULL, 0), IN("xs"), IN("additional_inputs"));
  for (uint32_t i = 0; e->status == AOT_OK && i < e->info.n_results; i++) out[i] = VAL(em_nth(first, i));
  return e->status;
}

/* ---- associative_scan ---- */

/* Inputs of the graph like those of the body. */
static void copy_inputs(em_t *e, aot_graph_t body, uint32_t n, em_x_t *inputs) {
  for (uint32_t i = 0; e->status == AOT_OK && i < n; i++) {
    const em_x_t like = em_v(e->host->graph->inputs(e->prog, body)[i].value);
    const aot_type_t t = em_type(e, like);
    aot_value_t v = aot_no_value();
    em_ok(e, e->host->edit->input_add(e->prog, e->graph, AOT_ROLE_REGION, i, &t, aot_str(""), &v));
    inputs[i] = em_v(v);
  }
}

/* The same body with each output twice. */
static aot_graph_t body_twice(em_t *e) {
  const aot_host_t *h = e->host;
  const aot_graph_t body = body_of(e);
  const uint32_t n_inputs = h->graph->n_inputs(e->prog, body), n_outputs = h->graph->n_outputs(e->prog, body);
  em_t inner = *e;
  em_inliner_t in;
  em_x_t *inputs = em_scratch(&inner, n_inputs, sizeof *inputs),
         *outputs = em_scratch(&inner, n_outputs, sizeof *outputs);
  em_inline_open(&in, &inner);
  inner.before = aot_no_node();
  if (inner.status == AOT_OK)
    inner.status = h->edit->graph_create(e->prog, AOT_GRAPH_REGION, aot_str(""), &inner.graph);
  copy_inputs(&inner, body, n_inputs, inputs);
  if (inner.status == AOT_OK) em_inline(&in, body, n_inputs, inputs, outputs);
  for (uint32_t k = 0; inner.status == AOT_OK && k < 2 * n_outputs; k++)
    inner.status = h->edit->output_add(e->prog, inner.graph, AOT_ROLE_REGION, k,
                                       em_value(&inner, outputs[k % n_outputs]), aot_str(""));
  em_inline_close(&in);
  e->status = inner.status;
  return inner.graph;
}

aot_status_t at_dc_associative_scan(em_t *e, aot_value_t *out) {
  const em_x_t xs = IN("xs");
  const uint32_t n = length(xs);
  uint32_t *first = em_scratch(e, n, sizeof *first), *rest = em_scratch(e, n, sizeof *rest);
  aot_graph_t body = body_twice(e);
  em_x_t ys;
  if (e->status != AOT_OK) return e->status;
  for (uint32_t i = 0; i < n; i++) first[i] = VAL(EM(e, "select.int", item(xs, i), em_i(0), em_i(0))).id;
  for (uint32_t i = 0; i < n; i++)
    rest[i] = VAL(EM(e, "slice.Tensor", item(xs, i), em_i(0), em_i(1), em_i(INT64_MAX))).id;
  ys = EM(e, "higher_order.scan", aot_arg_int_kind(AOT_ARG_GRAPH, body.id), aot_arg_values(first, n),
          aot_arg_values(rest, n), IN("additional_inputs"), em_b(1));
  for (uint32_t i = 0; e->status == AOT_OK && i < n; i++) {
    const uint32_t parts[] = {VAL(EM(e, "slice.Tensor", item(xs, i), em_i(0), em_i(0), em_i(1))).id,
                              VAL(em_nth(ys, n + i)).id};
    if (e->status == AOT_OK) out[i] = VAL(EM(e, "cat", aot_arg_values(parts, 2), em_i(0)));
  }
  return e->status;
}
