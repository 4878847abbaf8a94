/* Attention with dropout.
 *
 * Forward: the operator set writes it out as products, scale, mask, softmax and native_dropout, which the walk meets next;
 * without dropout the operator stays whole. Backwards of device kernels, in joint graphs that came with their backward, are
 * written out with the forward's draw, which their operand philox_seed (rng_state) leads to. With P = exp(S - lse), D = keep
 * / (1 - p), y the output:
 *
 *     dv = (P D)^T g     dP = D (g v^T)     dS = P (dP - rowsum(g y))     dq = s dS k     dk = s dS^T q */
#include "random_rules.h"

#include <math.h>
#include <string.h>

static int is_named(const rg_emit_t *e, const char *part) {
  char name[128];
  const uint64_t n = e->desc->name.size < sizeof name - 1 ? e->desc->name.size : sizeof name - 1;
  memcpy(name, e->desc->name.data, n);
  name[n] = '\0';
  return strstr(name, part) != NULL;
}

/* ---- which draw a state stands for ---- */

static aot_status_t remember(rg_emit_t *e, aot_value_t state, int64_t number) {
  rg_attention_draws_t *d = e->attention;
  if (d->n == d->capacity) {
    const uint32_t capacity = 2 * d->capacity + 16;
    rg_attention_draw_t *more = e->host->alloc(e->ctx, AOT_ARENA_SCRATCH, 8, (uint64_t)capacity * sizeof *more);
    if (!more) return AOT_E_EXHAUSTED;
    if (d->n) memcpy(more, d->at, d->n * sizeof *more);
    d->at = more;
    d->capacity = capacity;
  }
  d->at[d->n++] = (rg_attention_draw_t){state.id, e->stream->seed, e->stream->offset, number};
  return AOT_OK;
}

/* Rows are in order of their values, which are numbered as they are made. */
static const rg_attention_draw_t *recall(const rg_emit_t *e, rg_x state) {
  const rg_attention_draws_t *d = e->attention;
  uint32_t low = 0, high = d->n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (d->at[middle].state < (uint32_t)state.u.i) low = middle + 1;
    else high = middle;
  }
  return state.kind == AOT_ARG_VALUE && low < d->n && d->at[low].state == (uint32_t)state.u.i ? &d->at[low] : NULL;
}

static int is_state_name(aot_str_t name) { return aot_str_eq(name, aot_str("philox_seed")) || aot_str_eq(name, aot_str("rng_state")); }

void rg_attention(rg_emit_t *e, aot_value_t *out) {
  if (rg_in_float(e, "dropout_p", 0) == 0) {
    e->is_left = 1;
    return;
  }
  if (rg_stream_open(e) == AOT_OK) e->status = e->host->edit->decompose(e->prog, e->node, out);
  for (uint32_t i = 0; e->status == AOT_OK && i < e->desc->n_results && i < e->info.n_results; i++)
    if (is_state_name(e->desc->results[i].name) && out[i].id != AOT_NO_ID) e->status = remember(e, out[i], e->stream->next);
}

/* ---- backward ---- */

typedef struct call {
  rg_x q, k, v, g, y; /* [batch, heads, steps, features] in the dtype of computation */
  double scale, p;
  int steps_first;
} call_t;

static rg_x swapped(rg_emit_t *e, rg_x x, int64_t a, int64_t b) { return RG(e, "transpose.int", x, rg_i(a), rg_i(b)); }

static rg_x read_tensor(rg_emit_t *e, const call_t *c, const char *name) {
  rg_x x = rg_in(e, name);
  const int32_t dtype = rg_type(e, x).dtype;
  x = rg_cast(e, x, dtype == AOT_F64 ? AOT_F64 : AOT_F32);
  return c->steps_first ? swapped(e, x, 1, 2) : x;
}

static call_t read_call(rg_emit_t *e) {
  call_t c = {.p = rg_in_float(e, "dropout_p", 0), .steps_first = !is_named(e, "_scaled_dot_product")};
  c.q = read_tensor(e, &c, "query");
  c.k = read_tensor(e, &c, "key");
  c.v = read_tensor(e, &c, "value");
  c.y = read_tensor(e, &c, "out");
  c.g = read_tensor(e, &c, rg_in(e, "grad_out_").kind == AOT_ARG_VALUE ? "grad_out_" : "grad_out");
  const aot_type_t q = rg_type(e, c.q), k = rg_type(e, c.k);
  if (e->status == AOT_OK && (q.rank != 4 || k.rank != 4 || q.sizes[1] != k.sizes[1]))
    rg_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s with dropout: query and key must have rank 4 and as many heads each",
            (int)e->desc->name.size, e->desc->name.data);
  if (e->status == AOT_OK) c.scale = rg_in_float(e, "scale", 1.0 / sqrt((double)e->host->graph->dim_hint(e->prog, q.sizes[3])));
  return c;
}

static rg_x range(rg_emit_t *e, int64_t n, const aot_type_t *like) {
  const rg_x device = aot_arg_int_kind(AOT_ARG_DEVICE, like->device + 256 * ((int64_t)like->device_index + 1));
  return RG(e, "arange", rg_i(n), rg_dtype(AOT_I64), rg_none(), device);
}

/* Row i sees column j <= i; flash attention aligns the last row with the last column. */
static rg_x causal(rg_emit_t *e, const aot_type_t *q, const aot_type_t *k) {
  rg_x rows = RG(e, "unsqueeze", range(e, q->sizes[2], q), rg_i(1)), columns = range(e, k->sizes[2], k);
  int64_t shift = 0;
  if (e->status == AOT_OK && is_named(e, "flash") && q->sizes[2] != k->sizes[2]) {
    int64_t minus = 0;
    e->status = e->host->edit->dim_make(e->prog, AOT_EXPR_MUL, q->sizes[2], -1, 0, &minus);
    if (e->status == AOT_OK) e->status = e->host->edit->dim_make(e->prog, AOT_EXPR_ADD, k->sizes[2], minus, 0, &shift);
  }
  if (shift != 0) rows = RG(e, "add.Scalar", rows, rg_i(shift));
  return RG(e, "le.Tensor", columns, rows);
}

/* The log sum exp with as many rows as there are, and a dimension more. */
static rg_x row_sums(rg_emit_t *e, const aot_type_t *q, int32_t dtype) {
  rg_x lse = rg_in(e, "logsumexp");
  if (rg_type(e, lse).rank == 4) lse = RG(e, "squeeze.dim", lse, rg_i(3));
  if (e->status == AOT_OK && rg_type(e, lse).sizes[2] != q->sizes[2])
    lse = RG(e, "slice.Tensor", lse, rg_i(2), rg_i(0), rg_i(q->sizes[2]));
  return RG(e, "unsqueeze", rg_cast(e, lse, dtype), rg_i(3));
}

static rg_x probabilities(rg_emit_t *e, const call_t *c) {
  const aot_type_t q = rg_type(e, c->q), k = rg_type(e, c->k);
  const rg_x bias = rg_in(e, "attn_bias");
  rg_x s = RG(e, "mul.Scalar", RG(e, "matmul", c->q, swapped(e, c->k, 2, 3)), rg_f(c->scale));
  if (bias.kind == AOT_ARG_VALUE) s = RG(e, "add.Tensor", s, rg_cast(e, bias, q.dtype));
  if (e->status != AOT_OK) return s;
  const rg_x p = RG(e, "exp", RG(e, "sub.Tensor", s, row_sums(e, &q, q.dtype)));
  return rg_in_bool(e, "is_causal", 0) ? RG(e, "where.ScalarOther", causal(e, &q, &k), p, rg_f(0)) : p;
}

static rg_x row_sum(rg_emit_t *e, rg_x x) {
  const int64_t last = -1;
  return RG(e, "sum.dim_IntList", x, aot_arg_ints(&last, 1), rg_b(1));
}

static void give(rg_emit_t *e, const call_t *c, rg_x x, uint32_t i, aot_value_t *out) {
  const rg_x mask = rg_in(e, "grad_input_mask");
  if (i >= e->info.n_results || (mask.kind == AOT_ARG_BOOLS && i < mask.n && !mask.u.ints[i])) return;
  if (c->steps_first) x = swapped(e, x, 1, 2);
  const aot_type_t t = rg_result_type(e, i);
  if (t.kind == AOT_TYPE_TENSOR) out[i] = rg_value(e, rg_cast(e, x, t.dtype));
}

static void give_bias(rg_emit_t *e, rg_x ds, aot_value_t *out) {
  const rg_x bias = rg_in(e, "attn_bias"), mask = rg_in(e, "grad_input_mask");
  if (e->info.n_results < 4 || bias.kind != AOT_ARG_VALUE || (mask.kind == AOT_ARG_BOOLS && mask.n > 3 && !mask.u.ints[3])) return;
  const aot_type_t t = rg_type(e, bias);
  if (e->status != AOT_OK || rg_result_type(e, 3).kind != AOT_TYPE_TENSOR) return;
  out[3] = rg_value(e, rg_cast(e, RG(e, "sum_to_size", ds, aot_arg_ints(t.sizes, (uint32_t)t.rank)), t.dtype));
}

void rg_attention_backward(rg_emit_t *e, aot_value_t *out) {
  if (rg_in_float(e, "dropout_p", 0) == 0) {
    e->is_left = 1;
    return;
  }
  const rg_x seed = rg_in(e, "philox_seed");
  const rg_attention_draw_t *forward = recall(e, seed.kind == AOT_ARG_VALUE ? seed : rg_in(e, "rng_state"));
  if (!forward) {
    rg_fail(e, AOT_E_UNIMPLEMENTED, "export the model without its backward, and let the stage autograd differentiate it",
            "%.*s drops with the numbers of a forward that is not in this graph", (int)e->desc->name.size, e->desc->name.data);
    return;
  }
  rg_stream_t stream = *e->stream, *own = e->stream;
  const call_t c = read_call(e);
  const rg_x p = probabilities(e, &c);
  const aot_type_t t = rg_type(e, p);
  stream.seed = forward->seed;
  stream.offset = forward->offset;
  stream.next = forward->number;
  if (e->status != AOT_OK) return;
  e->stream = &stream;
  const rg_x keep = rg_chance(e, &t, 1.0 - c.p);
  e->stream = own;
  const rg_x scale = rg_f(c.p < 1 ? 1.0 / (1.0 - c.p) : 0.0);
  const rg_x dropped = RG(e, "mul.Scalar", RG(e, "mul.Tensor", p, keep), scale);
  const rg_x dp = RG(e, "mul.Scalar", RG(e, "mul.Tensor", RG(e, "matmul", c.g, swapped(e, c.v, 2, 3)), keep), scale);
  const rg_x ds = RG(e, "mul.Tensor", p, RG(e, "sub.Tensor", dp, row_sum(e, RG(e, "mul.Tensor", c.g, c.y))));
  give(e, &c, RG(e, "mul.Scalar", RG(e, "matmul", ds, c.k), rg_f(c.scale)), 0, out);
  give(e, &c, RG(e, "mul.Scalar", RG(e, "matmul", swapped(e, ds, 2, 3), c.q), rg_f(c.scale)), 1, out);
  give(e, &c, RG(e, "matmul", swapped(e, dropped, 2, 3), c.g), 2, out);
  give_bias(e, ds, out);
}
