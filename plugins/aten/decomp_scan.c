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
#include "region_body.h"

/* Copies of nodes, at most; a longer loop is one that a backend must run. */
#define MOST_COPIES (1 << 15)

static uint32_t length(at_x list) { return list.kind == AOT_ARG_VALUES || list.kind == AOT_ARG_INTS ? list.n : 0; }

static at_x item(at_x list, uint32_t i) {
  if (list.kind == AOT_ARG_VALUES && list.u.ids[i] == AOT_NO_ID) return at_none(); /* a size: it stands in the body as an expression */
  return list.kind == AOT_ARG_VALUES ? at_v((aot_value_t){list.u.ids[i]}) : at_i(list.u.ints[i]);
}

static void *room(at_emit_t *e, uint64_t n, uint64_t size) {
  void *p = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, (n + 1) * size);
  if (!p && e->status == AOT_OK) e->status = AOT_E_EXHAUSTED;
  return p;
}

static aot_graph_t body_of(at_emit_t *e) { return (aot_graph_t){(uint32_t)e->info.args[0].u.i}; }

/* ---- scan, unrolled ---- */

typedef struct loop {
  at_emit_t *e;
  at_body_t body;
  at_x xs;
  at_x *inputs;  /* of a step: carries, slices, more */
  at_x *outputs; /* of a step: carries, ys */
  uint32_t n_carries, n_ys;
  int64_t steps;
  uint32_t *ys;  /* [n_ys][steps] */
} loop_t;

/* As the body's input i was traced. */
static at_x as_traced(loop_t *l, uint32_t i, at_x x) {
  aot_type_t t;
  if (l->e->status != AOT_OK || x.kind != AOT_ARG_VALUE) return x;
  t = at_type(l->e, at_v(l->e->host->graph->inputs(l->e->prog, l->body.graph)[i].value));
  return t.kind == AOT_TYPE_TENSOR ? at_laid_out(l->e, x, &t) : x;
}

static void check(loop_t *l, uint32_t n_in) {
  at_emit_t *e = l->e;
  if (l->body.n_outputs < l->n_carries || l->body.n_inputs != n_in)
    at_emit_fail(e, "", "%s: its body takes %u operands and gives %u results; %u are given, %u of them carried", e->row->name,
                 l->body.n_inputs, l->body.n_outputs, n_in, l->n_carries);
  if (e->status == AOT_OK && AOT_DIM_IS_SYM(l->steps))
    at_emit_fail(e, "export with a fixed size of dimension 0", "%s over a symbolic number of steps cannot be unrolled", e->row->name);
  if (e->status == AOT_OK && l->steps * (int64_t)(l->body.n_nodes + length(l->xs) + 1) > MOST_COPIES)
    at_emit_fail(e, "", "%s: %lld steps of %u nodes are too many to be unrolled, which is done up to %d nodes", e->row->name,
                 (long long)l->steps, l->body.n_nodes, MOST_COPIES);
}

/* Memory, and what does not change from step to step. */
static void begin(loop_t *l) {
  at_emit_t *e = l->e;
  const at_x init = IN("init"), more = IN("additional_inputs");
  uint32_t first_more;
  at_body_open(&l->body, e, body_of(e));
  l->xs = IN("xs");
  l->n_carries = length(init);
  l->steps = length(l->xs) ? TYPE(item(l->xs, 0)).sizes[0] : 0;
  first_more = l->n_carries + length(l->xs);
  check(l, first_more + length(more));
  if (e->status != AOT_OK) return;
  l->n_ys = l->body.n_outputs - l->n_carries;
  l->inputs = room(e, l->body.n_inputs, sizeof *l->inputs);
  l->outputs = room(e, l->body.n_outputs, sizeof *l->outputs);
  l->ys = room(e, (uint64_t)l->n_ys * (uint64_t)l->steps, sizeof *l->ys);
  for (uint32_t i = 0; e->status == AOT_OK && i < l->n_carries; i++) l->inputs[i] = item(init, i);
  for (uint32_t i = 0; e->status == AOT_OK && i < length(more); i++)
    l->inputs[first_more + i] = as_traced(l, first_more + i, item(more, i));
}

static void step(loop_t *l, int64_t t) {
  at_emit_t *e = l->e;
  const uint32_t mark = e->infer->n_pool, n = l->n_carries;
  for (uint32_t i = 0; i < n; i++) l->inputs[i] = as_traced(l, i, l->inputs[i]);
  for (uint32_t i = 0; i < length(l->xs); i++)
    l->inputs[n + i] = as_traced(l, n + i, AT(e, "select.int", item(l->xs, i), at_i(0), at_i(t)));
  at_body_copy(&l->body, l->inputs, l->body.n_inputs, l->outputs);
  for (uint32_t i = 0; i < n; i++) l->inputs[i] = l->outputs[i];
  for (uint32_t k = 0; k < l->n_ys; k++) l->ys[k * (uint64_t)l->steps + (uint64_t)t] = VAL(l->outputs[n + k]).id;
  e->infer->n_pool = mark;
}

/* The ys of all steps, stacked; nothing of nothing where there are no steps. */
static at_x stacked(loop_t *l, uint32_t k, const aot_type_t *t) {
  at_emit_t *e = l->e;
  if (l->steps == 0) return at_filled(e, t->sizes, t->rank, at_i(0), t->dtype, item(l->xs, 0));
  return AT(e, "stack", aot_arg_values(l->ys + k * (uint64_t)l->steps, (uint32_t)l->steps), at_i(0));
}

aot_status_t at_dc_scan(at_emit_t *e, aot_value_t *out) {
  loop_t l = {.e = e};
  begin(&l);
  for (int64_t t = 0; e->status == AOT_OK && t < l.steps; t++) step(&l, t);
  for (uint32_t i = 0; e->status == AOT_OK && i < l.n_carries; i++) out[i] = VAL(l.inputs[i]);
  for (uint32_t k = 0; e->status == AOT_OK && k < l.n_ys; k++) {
    const aot_type_t t = at_result_type(e, l.n_carries + k);
    out[l.n_carries + k] = VAL(stacked(&l, k, &t));
  }
  at_body_close(&l.body);
  return e->status;
}

/* ---- map ---- */

aot_status_t at_dc_map(at_emit_t *e, aot_value_t *out) {
  const at_x first = AT(e, "higher_order.scan", e->info.args[0], aot_arg_values(NULL, 0), IN("xs"), IN("additional_inputs"));
  for (uint32_t i = 0; e->status == AOT_OK && i < e->info.n_results; i++) out[i] = VAL(at_nth(first, i));
  return e->status;
}

/* ---- associative_scan ---- */

/* The same body with each output twice. */
static aot_graph_t body_twice(at_emit_t *e) {
  const aot_host_t *h = e->host;
  at_emit_t inner = *e;
  at_body_t b;
  at_x *inputs, *outputs;
  at_body_open(&b, &inner, body_of(e));
  inputs = room(&inner, b.n_inputs, sizeof *inputs);
  outputs = room(&inner, b.n_outputs, sizeof *outputs);
  inner.before = aot_no_node();
  if (inner.status == AOT_OK) inner.status = h->edit->graph_create(e->prog, AOT_GRAPH_REGION, aot_str(""), &inner.info.graph);
  for (uint32_t i = 0; inner.status == AOT_OK && i < b.n_inputs; i++) {
    aot_type_t t = {0};
    aot_value_t v = aot_no_value();
    inner.status = h->graph->value_type(e->prog, h->graph->inputs(e->prog, b.graph)[i].value, &t);
    if (inner.status == AOT_OK)
      inner.status = h->edit->input_add(e->prog, inner.info.graph, AOT_ROLE_REGION, i, &t, aot_str(""), &v);
    inputs[i] = at_v(v);
  }
  if (inner.status == AOT_OK) at_body_copy(&b, inputs, b.n_inputs, outputs);
  for (uint32_t k = 0; inner.status == AOT_OK && k < 2 * b.n_outputs; k++)
    inner.status = h->edit->output_add(e->prog, inner.info.graph, AOT_ROLE_REGION, k, at_value(&inner, outputs[k % b.n_outputs]),
                                       aot_str(""));
  at_body_close(&b);
  e->status = inner.status;
  return inner.info.graph;
}

aot_status_t at_dc_associative_scan(at_emit_t *e, aot_value_t *out) {
  const at_x xs = IN("xs");
  const uint32_t n = length(xs);
  uint32_t *first = room(e, n, sizeof *first), *rest = room(e, n, sizeof *rest);
  aot_graph_t body = body_twice(e);
  at_x ys;
  if (e->status != AOT_OK) return e->status;
  for (uint32_t i = 0; i < n; i++) first[i] = VAL(AT(e, "select.int", item(xs, i), at_i(0), at_i(0))).id;
  for (uint32_t i = 0; i < n; i++) rest[i] = VAL(AT(e, "slice.Tensor", item(xs, i), at_i(0), at_i(1), at_i(INT64_MAX))).id;
  ys = AT(e, "higher_order.scan", aot_arg_int_kind(AOT_ARG_GRAPH, body.id), aot_arg_values(first, n), aot_arg_values(rest, n),
          IN("additional_inputs"), at_b(1));
  for (uint32_t i = 0; e->status == AOT_OK && i < n; i++) {
    const uint32_t parts[] = {VAL(AT(e, "slice.Tensor", item(xs, i), at_i(0), at_i(0), at_i(1))).id, VAL(at_nth(ys, n + i)).id};
    if (e->status == AOT_OK) out[i] = VAL(AT(e, "cat", aot_arg_values(parts, 2), at_i(0)));
  }
  return e->status;
}
