/* Loops over dimension 0 of their inputs, unrolled: a copy of the body for each step (torch/_higher_order_ops: scan.py, map.py,
 * associative_scan.py).
 *
 *     scan              carries, y[t] = f(carries, x[t], more)
 *     map               y[t] = f(x[t], more)
 *     associative_scan  y[0] = x[0]    y[t] = f(y[t - 1], x[t], more)
 *
 * PyTorch associates an associative_scan in a tree; sums may round differently. The body is traced with slices that lie
 * contiguously: operands are brought into the order that it was traced with. */
#include "at_formula.h"
#include "region_body.h"

/* Copies of nodes, at most; a longer loop is one that a backend must run. */
#define MOST_COPIES (1 << 15)

typedef struct loop {
  at_emit_t *e;
  at_body_t body;
  at_x xs, more;       /* lists */
  at_x *inputs;        /* of a step: carries, slices, more */
  at_x *outputs;       /* of a step: carries, ys */
  uint32_t n_carries, n_ys;
  int carries_are_ys;  /* associative_scan */
  int64_t steps;
  uint32_t *ys;        /* [n_ys][steps] */
} loop_t;

static uint32_t length(at_x list) { return list.kind == AOT_ARG_VALUES || list.kind == AOT_ARG_INTS ? list.n : 0; }

static at_x item(at_x list, uint32_t i) {
  return list.kind == AOT_ARG_VALUES ? at_v((aot_value_t){list.u.ids[i]}) : at_i(list.u.ints[i]);
}

static void *room(at_emit_t *e, uint64_t n, uint64_t size) {
  void *p = e->host->alloc(e->ctx, AOT_ARENA_SCRATCH, 8, (n + 1) * size);
  if (!p && e->status == AOT_OK) e->status = AOT_E_EXHAUSTED;
  return p;
}

/* As the body's input i was traced. */
static at_x as_traced(loop_t *l, uint32_t i, at_x x) {
  aot_type_t t;
  if (l->e->status != AOT_OK || x.kind != AOT_ARG_VALUE) return x;
  t = at_type(l->e, at_v(l->e->host->graph->inputs(l->e->prog, l->body.graph)[i].value));
  return t.kind == AOT_TYPE_TENSOR ? at_laid_out(l->e, x, &t) : x;
}

static at_x slice(loop_t *l, uint32_t i, int64_t t) { return AT(l->e, "select.int", item(l->xs, i), at_i(0), at_i(t)); }

/* Memory, and what does not change from step to step. */
static void open(loop_t *l, uint32_t n_carries, at_x xs, at_x more) {
  at_emit_t *e = l->e;
  uint32_t n_in = n_carries + length(xs) + length(more);
  l->xs = xs;
  l->more = more;
  l->n_carries = n_carries;
  l->steps = length(xs) ? TYPE(item(xs, 0)).sizes[0] : 0;
  if (l->body.n_outputs < n_carries || l->body.n_inputs != n_in)
    at_emit_fail(e, "", "%s: its body takes %u operands and gives %u results; %u are given, %u of them carried", e->row->name,
                 l->body.n_inputs, l->body.n_outputs, n_in, n_carries);
  if (e->status == AOT_OK && AOT_DIM_IS_SYM(l->steps))
    at_emit_fail(e, "export with a fixed size of dimension 0", "%s over a symbolic number of steps cannot be unrolled", e->row->name);
  else if (e->status == AOT_OK && l->steps * (int64_t)(l->body.n_nodes + length(xs) + 1) > MOST_COPIES)
    at_emit_fail(e, "", "%s: %lld steps of %u nodes are too many to be unrolled, which is done up to %d nodes", e->row->name,
                 (long long)l->steps, l->body.n_nodes, MOST_COPIES);
  if (e->status != AOT_OK) return;
  l->n_ys = l->carries_are_ys ? n_carries : l->body.n_outputs - n_carries;
  l->inputs = room(e, n_in, sizeof *l->inputs);
  l->outputs = room(e, l->body.n_outputs, sizeof *l->outputs);
  l->ys = room(e, (uint64_t)l->n_ys * (uint64_t)l->steps, sizeof *l->ys);
  if (e->status != AOT_OK) return;
  for (uint32_t i = 0; i < length(more); i++)
    l->inputs[n_carries + length(xs) + i] = as_traced(l, n_carries + length(xs) + i, item(more, i));
}

static void keep_ys(loop_t *l, int64_t t, const at_x *from) {
  for (uint32_t k = 0; k < l->n_ys; k++) l->ys[k * (uint64_t)l->steps + (uint64_t)t] = at_value(l->e, from[k]).id;
}

static void step(loop_t *l, int64_t t) {
  const uint32_t mark = l->e->infer->n_pool;
  for (uint32_t i = 0; i < l->n_carries; i++) l->inputs[i] = as_traced(l, i, l->inputs[i]);
  for (uint32_t i = 0; i < length(l->xs); i++) l->inputs[l->n_carries + i] = as_traced(l, l->n_carries + i, slice(l, i, t));
  at_body_copy(&l->body, l->inputs, l->body.n_inputs, l->outputs);
  for (uint32_t i = 0; i < l->n_carries; i++) l->inputs[i] = l->outputs[i];
  keep_ys(l, t, l->carries_are_ys ? l->outputs : l->outputs + l->n_carries);
  l->e->infer->n_pool = mark;
}

/* The ys of all steps, stacked; nothing of nothing where there are no steps. */
static at_x stacked(loop_t *l, uint32_t k, const aot_type_t *t) {
  at_emit_t *e = l->e;
  if (l->steps == 0) return at_filled(e, t->sizes, t->rank, at_i(0), t->dtype, item(l->xs, 0));
  return AT(e, "stack", aot_arg_values(l->ys + k * (uint64_t)l->steps, (uint32_t)l->steps), at_i(0));
}

static void give(loop_t *l, aot_value_t *out) {
  const uint32_t n_carries = l->carries_are_ys ? 0 : l->n_carries;
  for (uint32_t i = 0; i < n_carries && l->e->status == AOT_OK; i++) out[i] = at_value(l->e, l->inputs[i]);
  for (uint32_t k = 0; k < l->n_ys && l->e->status == AOT_OK; k++) {
    const aot_type_t t = at_result_type(l->e, n_carries + k);
    out[n_carries + k] = at_value(l->e, stacked(l, k, &t));
  }
}

static aot_graph_t body_of(at_emit_t *e) { return (aot_graph_t){(uint32_t)e->info.args[0].u.i}; }

aot_status_t at_dc_scan(at_emit_t *e, aot_value_t *out) {
  loop_t l = {.e = e};
  at_x init = IN("init");
  at_body_open(&l.body, e, body_of(e));
  open(&l, length(init), IN("xs"), IN("additional_inputs"));
  for (uint32_t i = 0; e->status == AOT_OK && i < l.n_carries; i++) l.inputs[i] = item(init, i);
  for (int64_t t = 0; e->status == AOT_OK && t < l.steps; t++) step(&l, t);
  give(&l, out);
  at_body_close(&l.body);
  return e->status;
}

aot_status_t at_dc_map(at_emit_t *e, aot_value_t *out) {
  loop_t l = {.e = e};
  at_body_open(&l.body, e, body_of(e));
  open(&l, 0, IN("xs"), IN("additional_inputs"));
  for (int64_t t = 0; e->status == AOT_OK && t < l.steps; t++) step(&l, t);
  give(&l, out);
  at_body_close(&l.body);
  return e->status;
}

aot_status_t at_dc_associative_scan(at_emit_t *e, aot_value_t *out) {
  loop_t l = {.e = e, .carries_are_ys = 1};
  at_body_open(&l.body, e, body_of(e));
  open(&l, length(IN("xs")), IN("xs"), IN("additional_inputs"));
  for (uint32_t i = 0; e->status == AOT_OK && l.steps > 0 && i < l.n_carries; i++) l.inputs[i] = slice(&l, i, 0);
  if (e->status == AOT_OK && l.steps > 0) keep_ys(&l, 0, l.inputs);
  for (int64_t t = 1; e->status == AOT_OK && t < l.steps; t++) step(&l, t);
  give(&l, out);
  at_body_close(&l.body);
  return e->status;
}
