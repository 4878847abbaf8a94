/* Recurrent networks, unrolled over their steps: LSTM (Hochreiter and Schmidhuber 1997, with forget gates; projections
 * of Sak et al. 2014), GRU (Cho et al. 2014), Elman networks. x: input of a step, h: state, a(u) = u W^T + b.
 *
 *     lstm   i, f, g, o = ai(x) + ah(h), through sigmoid, sigmoid, tanh, sigmoid    c = f c + i g    h = o tanh(c)
 *     gru    r = sigmoid(ai + ah)    z = sigmoid(ai + ah)    n = tanh(ai + r ah)    h = n + z (h - n)
 *     rnn    h = tanh(ai + ah), or relu
 *
 * The products ai of all steps are one. A layer's parameters are w_ih, w_hh, b_ih, b_hh, w_hr, biases and projection
 * where there are any; the backward direction's follow.
 *
 * Packed sequences: row n of `data` is step t of sequence b, all sequences of step 0 first; sequences are sorted by
 * length, so that step t has the first batch_sizes[t] of them. They are spread to [steps, batch] by an index computed
 * from batch_sizes; where a sequence has no step t, its state stays as it was. */
#include "at_formula.h"

#include <string.h>

enum { RNN_TANH, RNN_RELU, RNN_GRU, RNN_LSTM };

typedef struct weights {
  em_x_t w_ih, w_hh, b_ih, b_hh, w_hr;
} weights_t;

typedef struct rnn {
  int kind;
  em_x_t active; /* [steps, batch, 1], bool: the sequence has that step; None: all have all */
  int64_t steps;
} rnn_t;

/* Between the products everything is float32 for halves, as PyTorch's kernels have it, the state too. */
typedef struct state {
  em_x_t h, c; /* [batch, features] */
} state_t;

static int kind_of(const char *name) {
  if (strstr(name, "lstm")) return RNN_LSTM;
  if (strstr(name, "gru")) return RNN_GRU;
  return strstr(name, "relu") ? RNN_RELU : RNN_TANH;
}

static em_x_t gates_of_input(em_t *e, em_x_t x, const weights_t *w) { return EM(e, "linear", x, w->w_ih, w->b_ih); }

/* A bias of f16 or bf16 is float32, so that its gradients of all steps are added in that. Weights are operands of
 * `linear` as they are, so that autocast casts each once for all steps, as PyTorch's cache of casts does. */
static em_x_t gates_of_state(em_t *e, em_x_t h, const weights_t *w) {
  if (em_is_none(w->b_hh)) return at_math(e, EM(e, "linear", h, w->w_hh));
  if (TYPE(w->b_hh).dtype == TYPE(h).dtype) return EM(e, "linear", h, w->w_hh, w->b_hh);
  return ADD(at_math(e, EM(e, "linear", h, w->w_hh)), w->b_hh);
}

static em_x_t part_of(em_t *e, em_x_t gates, int64_t i, int64_t n) {
  int64_t size = TYPE(gates).sizes[1];
  return EM(e, "slice.Tensor", gates, em_i(1), em_i(size / n * i), em_i(size / n * (i + 1)));
}

/* i, f, g, o of the summed products */
static void lstm_gates(em_t *e, em_x_t sum, em_x_t *out) {
  int i;
  for (i = 0; i < 4; i++) out[i] = i == 2 ? TANH(part_of(e, sum, i, 4)) : SIGMOID(part_of(e, sum, i, 4));
}

static state_t next_state(em_t *e, int kind, em_x_t ai, const weights_t *w, state_t s) {
  const int32_t dtype = TYPE(w->w_hh).dtype;
  em_x_t ah = gates_of_state(e, em_cast(e, s.h, dtype), w), r, z, n, g[4];
  ai = at_math(e, ai);
  if (kind == RNN_TANH) s.h = TANH(ADD(ai, ah));
  if (kind == RNN_RELU) s.h = EM(e, "relu", ADD(ai, ah));
  if (kind == RNN_GRU) {
    r = SIGMOID(ADD(part_of(e, ai, 0, 3), part_of(e, ah, 0, 3)));
    z = SIGMOID(ADD(part_of(e, ai, 1, 3), part_of(e, ah, 1, 3)));
    n = TANH(ADD(part_of(e, ai, 2, 3), MUL(r, part_of(e, ah, 2, 3))));
    s.h = ADD(n, MUL(z, SUB(s.h, n)));
  }
  if (kind == RNN_LSTM) {
    lstm_gates(e, ADD(ai, ah), g);
    s.c = ADD(MUL(g[1], s.c), MUL(g[0], g[2]));
    s.h = MUL(g[3], TANH(s.c));
    if (!em_is_none(w->w_hr)) s.h = at_math(e, EM(e, "linear", em_cast(e, s.h, dtype), w->w_hr));
  }
  return s;
}

/* ---- lists of values ---- */

static em_x_t nth_of(em_t *e, em_x_t list, uint32_t i) {
  if (list.kind == AOT_ARG_VALUE && i == 0) return list;
  if (list.kind == AOT_ARG_VALUES && i < list.n) return aot_arg_value((aot_value_t){list.u.ids[i]});
  em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: a list of tensors ends at %u", at_name(e), i);
  return em_none();
}

static uint32_t *room(em_t *e, int64_t n) {
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, ((size_t)n + 1) * sizeof *ids);
  if (ids == NULL && e->status == AOT_OK) e->status = AOT_E_EXHAUSTED;
  return ids;
}

static em_x_t stacked(em_t *e, const uint32_t *ids, uint32_t n) {
  return e->status == AOT_OK ? EM(e, "stack", aot_arg_values(ids, n), em_i(0)) : em_none();
}

static weights_t weights_at(em_t *e, em_x_t params, uint32_t layer, int has_biases, int projects) {
  uint32_t at = layer * (2 + 2 * (uint32_t)has_biases + (uint32_t)projects);
  weights_t w;
  w.w_ih = nth_of(e, params, at++);
  w.w_hh = nth_of(e, params, at++);
  w.b_ih = has_biases ? nth_of(e, params, at++) : em_none();
  w.b_hh = has_biases ? at_math(e, nth_of(e, params, at++)) : em_none();
  w.w_hr = projects ? nth_of(e, params, at) : em_none();
  return w;
}

/* ---- layers ---- */

/* One direction of one layer over [steps, batch, features]; the state ends as the last one. */
static em_x_t run_layer(em_t *e, const rnn_t *r, em_x_t x, const weights_t *w, state_t *s, int backwards) {
  em_x_t ai = gates_of_input(e, x, w);
  uint32_t *ids = room(e, r->steps);
  int64_t i;
  for (i = 0; i < r->steps && e->status == AOT_OK; i++) {
    int64_t t = backwards ? r->steps - 1 - i : i;
    uint32_t mark = at_infer(e)->n_pool;
    state_t new = next_state(e, r->kind, EM(e, "select.int", ai, em_i(0), em_i(t)), w, *s);
    if (!em_is_none(r->active)) {
      em_x_t here = EM(e, "select.int", r->active, em_i(0), em_i(t));
      new.h = WHERE(here, new.h, s->h);
      if (r->kind == RNN_LSTM) new.c = WHERE(here, new.c, s->c);
    }
    *s = new;
    ids[t] = VAL(em_cast(e, s->h, TYPE(w->w_hh).dtype)).id;
    at_infer(e)->n_pool = mark;
  }
  return stacked(e, ids, (uint32_t)r->steps);
}

/* All layers; the last states of layer l and direction d go to h and c, stacked. */
static em_x_t run_layers(em_t *e, const rnn_t *r, em_x_t x, em_x_t h0, em_x_t c0, em_x_t *out_h, em_x_t *out_c) {
  int has_biases = at_in_int(e, "has_biases", 1) != 0, d, directions = at_in_int(e, "bidirectional", 0) ? 2 : 1;
  int lstm = r->kind == RNN_LSTM;
  int projects = lstm && !at_same(at_infer(e), TYPE(h0).sizes[2], TYPE(c0).sizes[2]);
  int64_t layers = at_in_int(e, "num_layers", 1), l;
  double p = at_in_int(e, "train", 0) ? em_in_float(e, "dropout", 0.0) : 0.0;
  uint32_t *h = room(e, 2 * layers), *c = room(e, 2 * layers), n = 0;
  for (l = 0; l < layers && e->status == AOT_OK; l++) {
    em_x_t y[2];
    uint32_t ids[2];
    for (d = 0; d < directions && e->status == AOT_OK; d++, n++) {
      weights_t w = weights_at(e, IN("params"), n, has_biases, projects);
      state_t s;
      s.h = at_math(e, EM(e, "select.int", h0, em_i(0), em_i(n)));
      s.c = lstm ? at_math(e, EM(e, "select.int", c0, em_i(0), em_i(n))) : em_none();
      y[d] = run_layer(e, r, x, &w, &s, d);
      ids[d] = VAL(y[d]).id;
      h[n] = VAL(em_cast(e, s.h, TYPE(h0).dtype)).id;
      if (lstm) c[n] = VAL(em_cast(e, s.c, TYPE(c0).dtype)).id;
    }
    if (e->status != AOT_OK) break;
    x = directions == 2 ? EM(e, "cat", aot_arg_values(ids, 2), em_i(2)) : y[0];
    if (p > 0 && l + 1 < layers) x = EM(e, "dropout", x, em_f(p), em_b(1));
  }
  *out_h = stacked(e, h, n);
  *out_c = lstm ? stacked(e, c, n) : em_none();
  return x;
}

static void give_states(em_t *e, em_x_t y, em_x_t h, em_x_t c, aot_value_t *out) {
  out[0] = VAL(y);
  out[1] = VAL(h);
  if (e->desc->n_results > 2) out[2] = VAL(c);
}

static void first_states(em_t *e, const rnn_t *r, em_x_t *out_h, em_x_t *out_c) {
  em_x_t hx = IN("hx");
  *out_h = r->kind == RNN_LSTM ? nth_of(e, hx, 0) : hx;
  *out_c = r->kind == RNN_LSTM ? nth_of(e, hx, 1) : em_none();
}

/* lstm.input, gru.input, rnn_tanh.input, rnn_relu.input */
aot_status_t at_dc_rnn(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), h, c, y;
  int batch_first = at_in_int(e, "batch_first", 0) != 0;
  rnn_t r = {kind_of(at_name(e)), em_none(), 0};
  if (batch_first) x = EM(e, "transpose.int", x, em_i(0), em_i(1));
  r.steps = TYPE(x).sizes[0];
  if (AOT_DIM_IS_SYM(r.steps)) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "export with a fixed sequence length",
            "%s over a symbolic number of steps cannot be unrolled", at_name(e));
    return e->status;
  }
  first_states(e, &r, &h, &c);
  y = run_layers(e, &r, x, h, c, &h, &c);
  if (batch_first) y = EM(e, "transpose.int", y, em_i(0), em_i(1));
  give_states(e, y, h, c, out);
  return e->status;
}

/* lstm.data, gru.data, ..: row of step t and sequence b is sum(batch_sizes[0 .. t - 1]) + b, where b <
 * batch_sizes[t] */
aot_status_t at_dc_rnn_packed(em_t *e, aot_value_t *out) {
  em_x_t data = IN("data"), sizes = IN("batch_sizes"), h, c, y, row, flat;
  rnn_t r = {kind_of(at_name(e)), em_none(), TYPE(sizes).sizes[0]};
  aot_type_t t = at_result_type(e, 0);
  int64_t grid[3], dims[2];
  uint32_t id;
  if (AOT_DIM_IS_SYM(r.steps)) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "export with a fixed sequence length",
            "%s over a symbolic number of steps cannot be unrolled", at_name(e));
    return e->status;
  }
  first_states(e, &r, &h, &c);
  grid[0] = r.steps;
  grid[1] = TYPE(h).sizes[1];
  sizes = at_unsqueeze(e, sizes, 1);
  row = ADD(SUB(EM(e, "cumsum", sizes, em_i(0)), sizes), at_range(e, grid[1], sizes)); /* [steps, batch] */
  r.active = LT(at_range(e, grid[1], sizes), sizes);
  row = WHERE(r.active, row, em_i(0));
  r.active = at_unsqueeze(e, r.active, 2);
  dims[0] = at_mul(at_infer(e), grid[0], grid[1]);
  flat = at_reshaped(e, row, dims, 1);
  grid[2] = TYPE(data).sizes[1];
  y = run_layers(e, &r, at_reshaped(e, EM(e, "index_select", data, em_i(0), flat), grid, 3), h, c, &h, &c);
  dims[1] = t.sizes[1];
  y = at_reshaped(e, WHERE(r.active, y, em_f(0.0)), dims, 2);
  id = VAL(flat).id;
  if (e->status != AOT_OK) return e->status;
  y = EM(e, "index_put", at_filled(e, t.sizes, t.rank, em_f(0.0), t.dtype, data), aot_arg_values(&id, 1), y, em_b(1));
  give_states(e, y, h, c, out);
  return e->status;
}

/* ---- one step ---- */

/* lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell */
aot_status_t at_dc_rnn_cell(em_t *e, aot_value_t *out) {
  int kind = kind_of(at_name(e));
  em_x_t hx = IN("hx");
  weights_t w = {IN("w_ih"), IN("w_hh"), IN("b_ih"), at_math(e, IN("b_hh")), em_none()};
  state_t s;
  s.h = at_math(e, kind == RNN_LSTM ? nth_of(e, hx, 0) : hx);
  s.c = kind == RNN_LSTM ? at_math(e, nth_of(e, hx, 1)) : em_none();
  s = next_state(e, kind, gates_of_input(e, IN("input"), &w), &w, s);
  out[0] = VAL(em_cast(e, s.h, at_result_type(e, 0).dtype));
  if (kind == RNN_LSTM) out[1] = VAL(em_cast(e, s.c, at_result_type(e, 1).dtype));
  return e->status;
}

/* _thnn_fused_lstm_cell: from the products on; the workspace keeps the four gates */
aot_status_t at_dc_fused_lstm_cell(em_t *e, aot_value_t *out) {
  em_x_t sum = ADD(at_math(e, IN("input_gates")), at_math(e, IN("hidden_gates"))), g[4], c;
  uint32_t ids[4], i;
  if (at_in_has(e, "input_bias")) sum = ADD(sum, at_math(e, IN("input_bias")));
  if (at_in_has(e, "hidden_bias")) sum = ADD(sum, at_math(e, IN("hidden_bias")));
  lstm_gates(e, sum, g);
  c = ADD(MUL(g[1], at_math(e, IN("cx"))), MUL(g[0], g[2]));
  for (i = 0; i < 4; i++) ids[i] = VAL(g[i]).id;
  out[0] = VAL(em_cast(e, MUL(g[3], TANH(c)), at_result_type(e, 0).dtype));
  out[1] = VAL(em_cast(e, c, at_result_type(e, 1).dtype));
  if (e->status != AOT_OK) return e->status;
  out[2] = VAL(em_cast(e, EM(e, "cat", aot_arg_values(ids, 4), em_i(1)), at_result_type(e, 2).dtype));
  return e->status;
}

/* With T = tanh(c) and gc the gradient of c:   gc += gh o (1 - T^2)
 *     i: gc g i (1 - i)    f: gc cx f (1 - f)    g: gc i (1 - g^2)    o: gh T o (1 - o)    cx: gc f */
aot_status_t at_dc_fused_lstm_cell_backward(em_t *e, aot_value_t *out) {
  static const int64_t batch = 0;
  em_x_t gates = at_math(e, IN("workspace")), cx = at_math(e, IN("cx")), t = TANH(at_math(e, IN("cy")));
  em_x_t gh = at_in_has(e, "grad_hy") ? at_math(e, IN("grad_hy")) : em_f(0.0);
  em_x_t gc = at_in_has(e, "grad_cy") ? at_math(e, IN("grad_cy")) : em_f(0.0), g[4], d[4], one = em_f(1.0), all;
  uint32_t ids[4], i;
  for (i = 0; i < 4; i++) g[i] = part_of(e, gates, i, 4);
  gc = ADD(MUL(MUL(g[3], SUB(one, MUL(t, t))), gh), gc);
  d[0] = MUL(MUL(gc, g[2]), MUL(g[0], SUB(one, g[0])));
  d[1] = MUL(MUL(gc, cx), MUL(g[1], SUB(one, g[1])));
  d[2] = MUL(MUL(gc, g[0]), SUB(one, MUL(g[2], g[2])));
  d[3] = MUL(MUL(MUL(t, gh), g[3]), SUB(one, g[3]));
  for (i = 0; i < 4; i++) ids[i] = VAL(d[i]).id;
  if (e->status != AOT_OK) return e->status;
  all = EM(e, "cat", aot_arg_values(ids, 4), em_i(1));
  out[0] = VAL(em_cast(e, all, at_result_type(e, 0).dtype));
  out[1] = VAL(em_cast(e, MUL(gc, g[1]), at_result_type(e, 1).dtype));
  out[2] = aot_no_value();
  if (at_in_int(e, "has_bias", 0))
    out[2] = VAL(em_cast(e, at_summed(e, all, &batch, 1, 0), at_result_type(e, 2).dtype));
  return e->status;
}
