/* scan and while_loop. The gradient of a loop iterates over its steps from last to first and runs the gradient of the
 * body (region.c) on the carries at the start of each step.
 *
 *     scan        the forward saves them as further rows (loop_history.c); the backward is a scan over reversed rows
 *     while_loop  the trip count is unknown, so nothing is saved: the backward counts the steps and recomputes the loop
 *                 up to each of them. n steps cost n * n / 2 executions of the body and the memory of one.
 *
 * A carry has a gradient between steps if its initial value has one. Cotangents of other carries end in the last step,
 * as in PyTorch 2.11 (scan.py, "partial grad handling", and while_loop.py); scan's argument `through` disables this. */
#include "joint.h"

#include "kit/base/errors.h"
#include <stdio.h>

typedef struct loop {
  aot_graph_t body, vjp;
  uint32_t n_carries, n_xs, n_more, n_in, n_out; /* of the body */
  uint32_t at_carries, at_xs, at_more;           /* arguments */
  em_x_t *in;     /* by input of the body: what the node has for it; a number stays one */
  uint8_t *needs; /* by input: a gradient is wanted */
  uint8_t *given; /* by output: it has a cotangent in some step */
} loop_t;

/* Lists of arguments that grow. */
typedef struct row {
  em_x_t *at;
  uint32_t n;
} row_t;

static em_x_t push(row_t *r, em_x_t v) { return r->at[r->n++] = v; }

static void push_all(row_t *r, const em_x_t *from, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) push(r, from[i]);
}

static row_t new_row(em_t *a, const loop_t *l) {
  return (row_t){em_scratch(a, 4 * ((uint64_t)l->n_in + l->n_out) + 8, sizeof(em_x_t)), 0};
}

/* The tensors of a row as one argument. */
static em_x_t listed(em_t *a, const row_t *r) {
  uint32_t *ids = em_scratch(a, r->n, sizeof *ids), n = 0;
  for (uint32_t i = 0; ids && i < r->n; i++)
    if (em_is_value(r->at[i])) ids[n++] = (uint32_t)r->at[i].u.i;
  return aot_arg_values(ids, n);
}

/* ---- regions ---- */

static em_t region_begin(em_t *a) {
  em_t r = *a;
  if (r.status == AOT_OK) r.status = r.host->edit->graph_create(r.prog, AOT_GRAPH_REGION, aot_str(""), &r.graph);
  return r;
}

static em_x_t region_end(em_t *a, const em_t *r) {
  a->status = r->status;
  return aot_arg_int_kind(AOT_ARG_GRAPH, r->graph.id);
}

/* An input of the type of `like`; with is_row: of one of its rows. A number needs none. */
static em_x_t region_input(em_t *r, em_x_t like, int is_row) {
  aot_type_t t = {.kind = AOT_TYPE_TENSOR};
  aot_value_t v;
  ag_type_t of;
  if (r->status != AOT_OK || !em_is_value(like)) return like;
  of = ag_type(r, like);
  t.dtype = of.dtype;
  t.device = of.device;
  t.device_index = of.device_index;
  t.rank = of.rank - is_row;
  t.sizes = of.sizes + is_row;
  const uint32_t index = r->host->graph->n_inputs(r->prog, r->graph);
  r->status = r->host->edit->input_add(r->prog, r->graph, AOT_ROLE_REGION, index, &t, aot_str(""), &v);
  return ag_v(v.id);
}

static void region_inputs(em_t *r, row_t *out, const em_x_t *like, uint32_t n, int is_row) {
  for (uint32_t i = 0; i < n; i++) push(out, region_input(r, like[i], is_row));
}

static void region_output(em_t *r, em_x_t v) {
  if (r->status != AOT_OK) return;
  r->status =
      r->host->edit->output_add(r->prog, r->graph, AOT_ROLE_REGION, r->host->graph->n_outputs(r->prog, r->graph),
                                (aot_value_t){(uint32_t)v.u.i}, aot_str(""));
}

static void call_region(em_t *a, aot_graph_t region, const row_t *operands, uint32_t n_out, em_x_t *out) {
  em_x_t *args = em_scratch(a, (uint64_t)operands->n + 2, sizeof *args);
  if (!args) return;
  args[0] = aot_arg_int_kind(AOT_ARG_GRAPH, region.id);
  args[1] = em_none();
  memcpy(args + 2, operands->at, operands->n * sizeof *args);
  ag_call_n(a, "higher_order.invoke_subgraph", operands->n + 2, args, n_out, out);
}

/* ---- the loop ---- */

static void read_list(em_t *a, uint32_t at, em_x_t *out, uint8_t *needs, uint32_t *out_n) {
  const em_x_t *list = &a->info.args[at];
  *out_n = list->kind == AOT_ARG_VALUES || list->kind == AOT_ARG_INTS ? list->n : 0;
  for (uint32_t k = 0; k < *out_n; k++) {
    out[k] = list->kind == AOT_ARG_VALUES ? ag_v(list->u.ids[k]) : em_i(list->u.ints[k]);
    needs[k] = (uint8_t)(em_is_value(out[k]) && ag_needs_at(a, at, k));
  }
}

/* A size that is no operand is in the body as an expression, and in the type of its input. */
static void name_sizes(em_t *a, loop_t *l) {
  for (uint32_t i = 0; i < l->n_in; i++) {
    aot_type_t t = {0};
    if (l->in[i].kind != AOT_ARG_NONE) continue;
    if (a->host->graph->value_type(a->prog, a->host->graph->inputs(a->prog, l->body)[i].value, &t) != AOT_OK) continue;
    if (t.kind == AOT_TYPE_SYMINT) l->in[i] = em_i(t.expr);
  }
}

/* PyTorch's way, which is not what a derivative is. */
static void warn_of_cut(em_t *a, uint32_t carry) {
  char text[200];
  snprintf(text, sizeof text,
           "what %.*s carries as %u begins with a value that has no gradient: as in PyTorch, none passes there from "
           "step to step",
           (int)a->desc->name.size, a->desc->name.data, carry);
  aot_diag_t d = kit_diag(AOT_SEVERITY_WARNING, "autograd.carry-without-gradient", text);
  d.hint = aot_str("begin with a value that requires a gradient");
  d.node = a->node;
  a->host->diag(a->host, a->ctx, &d);
}

/* What the node has, and what its body's gradient takes and gives. graph: the body's argument; xs: is there a list
 * to loop over? */
static void read_loop(em_t *a, uint32_t graph, int xs, int through, loop_t *l) {
  int any = 0;
  memset(l, 0, sizeof *l);
  l->body.id = (uint32_t)a->info.args[graph].u.i;
  l->n_in = a->host->graph->n_inputs(a->prog, l->body);
  l->n_out = a->host->graph->n_outputs(a->prog, l->body);
  l->at_carries = graph + 1;
  l->at_xs = graph + 1 + (uint32_t)xs;
  l->at_more = l->at_xs + 1;
  l->in = em_scratch(a, (uint64_t)l->n_in + 1, sizeof *l->in);
  l->needs = em_scratch(a, (uint64_t)l->n_in + 1, 1);
  l->given = em_scratch(a, (uint64_t)l->n_out + 1, 1);
  if (a->status != AOT_OK) return;
  if (ag_n_listed(a) != l->n_in) {
    em_fail(a, AOT_E_INVALID, "", "the body takes %u operands, %u are given", l->n_in, ag_n_listed(a));
    return;
  }
  read_list(a, l->at_carries, l->in, l->needs, &l->n_carries);
  if (xs) read_list(a, l->at_xs, l->in + l->n_carries, l->needs + l->n_carries, &l->n_xs);
  read_list(a, l->at_more, l->in + l->n_carries + l->n_xs, l->needs + l->n_carries + l->n_xs, &l->n_more);
  name_sizes(a, l);
  for (uint32_t i = 0; i < l->n_in; i++) any |= l->needs[i];
  for (uint32_t i = 0; any && i < l->n_carries; i++) {
    if (l->needs[i] || !em_is_value(l->in[i]) || !ag_able(a, (uint32_t)l->in[i].u.i)) continue;
    if (through) l->needs[i] = 1;
    else warn_of_cut(a, i);
  }
  for (uint32_t k = 0; k < l->n_out; k++)
    l->given[k] = (uint8_t)(em_is_value(ag_g(a, k)) || (k < l->n_carries && l->needs[k]));
  a->status = ag_region_vjp(a, l->body, l->needs, l->given, &l->vjp);
}

/* What the backward carries: cotangents of carries, sums of gradients of what every step reads. */
static void begin_sums(em_t *a, const loop_t *l, row_t *out) {
  for (uint32_t k = 0; k < l->n_carries; k++)
    if (l->given[k]) push(out, em_is_value(ag_g(a, k)) ? ag_contiguous(a, ag_g(a, k)) : ag_zeros_like(a, ag_y(a, k)));
  for (uint32_t m = l->n_carries + l->n_xs; m < l->n_in; m++)
    if (l->needs[m]) push(out, ag_zeros_like(a, l->in[m]));
}

/* One step back, as the region's outputs: sums at its beginning -> sums at its end, then gradients of the rows.
 * operands: of the body, then the cotangents that are given. */
static void step_back(em_t *r, const loop_t *l, const row_t *sums, const row_t *operands) {
  em_x_t *gradients = em_scratch(r, (uint64_t)l->n_in + 1, sizeof *gradients);
  em_x_t *of = em_scratch(r, (uint64_t)l->n_in + 1, sizeof *of);
  uint32_t n = 0, s = 0, i;
  if (!gradients || !of) return;
  for (i = 0; i < l->n_in; i++) n += l->needs[i];
  call_region(r, l->vjp, operands, n, gradients);
  for (i = 0, n = 0; i < l->n_in; i++)
    if (l->needs[i]) of[i] = gradients[n++];
  for (i = 0; i < l->n_carries; i++)
    if (l->given[i]) region_output(r, l->needs[i] ? of[i] : ag_zeros_like(r, sums->at[s])), s++;
  for (i = l->n_carries + l->n_xs; i < l->n_in; i++)
    if (l->needs[i]) region_output(r, AG_OP(r, "add.Tensor", sums->at[s++], of[i]));
  for (i = l->n_carries; i < l->n_carries + l->n_xs; i++)
    if (l->needs[i]) region_output(r, of[i]);
}

/* Sums after the first step are the gradients. Returns how many there are. */
static uint32_t set_sums(em_t *a, const loop_t *l, const em_x_t *sums) {
  uint32_t s = 0;
  for (uint32_t k = 0; k < l->n_carries; k++)
    if (l->given[k]) ag_set_at(a, l->at_carries, k, sums[s++]);
  for (uint32_t m = 0; m < l->n_more; m++)
    if (l->needs[l->n_carries + l->n_xs + m]) ag_set_at(a, l->at_more, m, sums[s++]);
  return s;
}

/* ---- scan ---- */

static em_x_t reversed(em_t *a, em_x_t x) {
  const int64_t first = 0;
  return AG_OP(a, "flip", x, em_list(a, &first, 1));
}

/* Rows of the backward: cotangents of ys, what is carried into each step, xs. */
static void push_rows(em_t *a, const loop_t *l, row_t *out) {
  for (uint32_t k = l->n_carries; k < l->n_out; k++)
    if (l->given[k]) push(out, reversed(a, ag_g(a, k)));
  for (uint32_t k = 0; k < l->n_carries; k++)
    push(out, reversed(a, ag_y(a, ag_history_of(a, l->body, l->n_carries, k))));
  for (uint32_t k = 0; k < l->n_xs; k++) push(out, reversed(a, l->in[l->n_carries + k]));
}

static em_x_t scan_region(em_t *a, const loop_t *l, const row_t *sums, const row_t *rows) {
  em_t r = region_begin(a);
  row_t s = new_row(a, l), x = new_row(a, l), more = new_row(a, l), operands = new_row(a, l);
  const uint32_t n_given_ys = rows->n - l->n_carries - l->n_xs;
  uint32_t given = 0;
  if (a->status != AOT_OK) return em_none();
  region_inputs(&r, &s, sums->at, sums->n, 0);
  region_inputs(&r, &x, rows->at, rows->n, 1);
  region_inputs(&r, &more, l->in + l->n_carries + l->n_xs, l->n_more, 0);
  push_all(&operands, x.at + n_given_ys, l->n_carries + l->n_xs);
  push_all(&operands, more.at, more.n);
  for (uint32_t k = 0; k < l->n_carries; k++) given += l->given[k];
  push_all(&operands, s.at, given);
  push_all(&operands, x.at, n_given_ys);
  step_back(&r, l, &s, &operands);
  return region_end(a, &r);
}

void ag_rule_scan(em_t *a) {
  em_x_t args[4], *out;
  row_t sums, rows, more;
  loop_t l;
  read_loop(a, 0, 1, ag_is_set(a, "through", 0), &l);
  if (a->status != AOT_OK) return;
  sums = new_row(a, &l), rows = new_row(a, &l), more = new_row(a, &l);
  out = em_scratch(a, (uint64_t)l.n_in + l.n_out + 1, sizeof *out);
  if (a->status != AOT_OK) return;
  for (uint32_t k = 0; k < l.n_carries; k++)
    if (ag_history_of(a, l.body, l.n_carries, k) == AG_NO_ARG)
      em_fail(a, AOT_E_INVALID, "take prints and assertions out of the loop",
              "a scan with effects in its body is not differentiated");
  if (a->status != AOT_OK) return;
  begin_sums(a, &l, &sums);
  push_rows(a, &l, &rows);
  push_all(&more, l.in + l.n_carries + l.n_xs, l.n_more);
  args[0] = scan_region(a, &l, &sums, &rows);
  args[1] = listed(a, &sums);
  args[2] = listed(a, &rows);
  args[3] = listed(a, &more);
  ag_call_n(a, "higher_order.scan", 4, args, l.n_in + l.n_out, out);
  uint32_t n = set_sums(a, &l, out);
  for (uint32_t k = 0; k < l.n_xs; k++)
    if (l.needs[l.n_carries + k]) ag_set_at(a, l.at_xs, k, reversed(a, out[n++]));
}

/* ---- while_loop ---- */

/* Regions on (carries, k, t, more), k the number of the step: what the loop's own condition says; k < t; the body,
 * and k + 1. */
typedef struct forth {
  em_x_t said, until, step;
} forth_t;

/* The inputs of such a region; operands gets those of the body. */
static void forth_inputs(em_t *r, const loop_t *l, em_x_t number, row_t *operands, em_x_t *k, em_x_t *t) {
  region_inputs(r, operands, l->in, l->n_carries, 0);
  *k = region_input(r, number, 0);
  *t = region_input(r, number, 0);
  region_inputs(r, operands, l->in + l->n_carries, l->n_more, 0);
}

static forth_t forth_regions(em_t *a, const loop_t *l, aot_graph_t cond, em_x_t number) {
  row_t said = new_row(a, l), until = new_row(a, l), step = new_row(a, l);
  em_x_t *out = em_scratch(a, (uint64_t)l->n_out + 1, sizeof *out), k, t;
  forth_t f = {em_none(), em_none(), em_none()};
  if (a->status != AOT_OK) return f;
  em_t r = region_begin(a);
  forth_inputs(&r, l, number, &said, &k, &t);
  call_region(&r, cond, &said, 1, out);
  region_output(&r, out[0]);
  f.said = region_end(a, &r);
  r = region_begin(a);
  forth_inputs(&r, l, number, &until, &k, &t);
  region_output(&r, AG_OP(&r, "lt.Tensor", k, t));
  f.until = region_end(a, &r);
  r = region_begin(a);
  forth_inputs(&r, l, number, &step, &k, &t);
  call_region(&r, l->body, &step, l->n_carries, out);
  for (uint32_t i = 0; i < l->n_carries; i++) region_output(&r, out[i]);
  region_output(&r, AG_OP(&r, "add.Scalar", k, em_i(1)));
  f.step = region_end(a, &r);
  return f;
}

/* The loop from its beginning: until its own condition ends it, or for `t` steps. in: carries, then more. out: carries,
 * then how many steps there were. */
static void run_forth(em_t *a, const loop_t *l, em_x_t cond, em_x_t step, const em_x_t *in, em_x_t zero, em_x_t t,
                      em_x_t *out) {
  row_t carried = new_row(a, l), more = new_row(a, l);
  if (a->status != AOT_OK) return;
  push_all(&carried, in, l->n_carries);
  push(&carried, zero);
  push(&more, t);
  push_all(&more, in + l->n_carries, l->n_more);
  const em_x_t args[] = {cond, step, listed(a, &carried), listed(a, &more)};
  ag_call_n(a, "higher_order.while_loop", 4, args, l->n_carries + 1, out);
}

/* On (t, sums, init, more): is there a step before t? It, backwards. */
static void back_regions(em_t *a, const loop_t *l, const row_t *sums, em_x_t number, const forth_t *f, em_x_t *out_cond,
                         em_x_t *out_step) {
  row_t s = new_row(a, l), in = new_row(a, l), operands = new_row(a, l), ignored = new_row(a, l);
  em_x_t *carries = em_scratch(a, (uint64_t)l->n_carries + 1, sizeof *carries), t;
  uint32_t given = 0;
  if (a->status != AOT_OK) return;
  em_t r = region_begin(a);
  t = region_input(&r, number, 0);
  region_inputs(&r, &ignored, sums->at, sums->n, 0);
  region_inputs(&r, &ignored, l->in, l->n_in, 0);
  region_output(&r, AG_OP(&r, "gt.Scalar", t, em_i(0)));
  *out_cond = region_end(a, &r);
  r = region_begin(a);
  t = region_input(&r, number, 0);
  region_inputs(&r, &s, sums->at, sums->n, 0);
  region_inputs(&r, &in, l->in, l->n_in, 0);
  t = AG_OP(&r, "sub.Scalar", t, em_i(1));
  region_output(&r, t);
  run_forth(&r, l, f->until, f->step, in.at, ag_zeros_like(&r, t), t, carries);
  push_all(&operands, carries, l->n_carries);
  push_all(&operands, in.at + l->n_carries, l->n_more);
  for (uint32_t k = 0; k < l->n_carries; k++) given += l->given[k];
  push_all(&operands, s.at, given);
  step_back(&r, l, &s, &operands);
  *out_step = region_end(a, &r);
}

void ag_rule_while_loop(em_t *a) {
  const aot_graph_t cond = {(uint32_t)a->info.args[0].u.i};
  em_x_t args[4], *out, number;
  row_t sums, carried, more;
  forth_t forth;
  loop_t l;
  read_loop(a, 1, 0, 0, &l);
  if (a->status != AOT_OK || l.n_carries == 0) return;
  sums = new_row(a, &l), carried = new_row(a, &l), more = new_row(a, &l);
  out = em_scratch(a, (uint64_t)l.n_in + l.n_out + 2, sizeof *out);
  if (a->status != AOT_OK) return;
  ag_type_t type = ag_type(a, l.in[0]);
  type.rank = 0;
  type.dtype = AOT_I64;
  number = ag_zeros(a, &type);
  forth = forth_regions(a, &l, cond, number);
  run_forth(a, &l, forth.said, forth.step, l.in, number, number, out);
  begin_sums(a, &l, &sums);
  push(&carried, out[l.n_carries]);
  push_all(&carried, sums.at, sums.n);
  push_all(&more, l.in, l.n_in);
  back_regions(a, &l, &sums, number, &forth, &args[0], &args[1]);
  args[2] = listed(a, &carried);
  args[3] = listed(a, &more);
  ag_call_n(a, "higher_order.while_loop", 4, args, 1 + sums.n, out);
  set_sums(a, &l, out + 1);
}
