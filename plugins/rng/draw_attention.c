/* Attention with dropout.
 *
 * Forward: without dropout the operator stays whole, in halves it becomes one that receives what to keep; else the
 * operator set writes it out as products, scale, mask, softmax and native_dropout, which the walk meets next. Backwards
 * of device kernels, in joint graphs that came with their backward, are written out with the forward's draw, which
 * their operand philox_seed (rng_state) leads to. With P = exp(S - lse), D = keep / (1 - p), y the output:
 *
 *     dv = (P D)^T g     dP = D (g v^T)     dS = P (dP - rowsum(g y))     dq = s dS k     dk = s dS^T q */
#include "random_rules.h"

#include <math.h>
#include <string.h>

static int is_named(const em_t *e, const char *part) {
  char name[128];
  const uint64_t n = e->desc->name.size < sizeof name - 1 ? e->desc->name.size : sizeof name - 1;
  memcpy(name, e->desc->name.data, n);
  name[n] = '\0';
  return strstr(name, part) != NULL;
}

/* ---- which draw a state represents ---- */

static aot_status_t remember(em_t *e, aot_value_t state, int64_t number) {
  rg_attention_draws_t *d = rg_of(e)->attention;
  if (d->n == d->capacity) {
    const uint32_t capacity = 2 * d->capacity + 16;
    rg_attention_draw_t *more =
        e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, (uint64_t)capacity * sizeof *more);
    if (!more) return AOT_E_EXHAUSTED;
    if (d->n) memcpy(more, d->at, d->n * sizeof *more);
    d->at = more;
    d->capacity = capacity;
  }
  d->at[d->n++] = (rg_attention_draw_t){state.id, rg_of(e)->stream->seed, rg_of(e)->stream->offset, number};
  return AOT_OK;
}

/* Rows are in order of their values, which are numbered as they are made. */
static const rg_attention_draw_t *recall(const em_t *e, em_x_t state) {
  const rg_attention_draws_t *d = rg_of(e)->attention;
  uint32_t low = 0, high = d->n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (d->at[middle].state < (uint32_t)state.u.i) low = middle + 1;
    else high = middle;
  }
  return state.kind == AOT_ARG_VALUE && low < d->n && d->at[low].state == (uint32_t)state.u.i ? &d->at[low] : NULL;
}

static int is_state_name(aot_str_t name) {
  return aot_str_eq(name, aot_str("philox_seed")) || aot_str_eq(name, aot_str("rng_state"));
}

/* In halves, whose parts would be computed in float32, it stays whole, and what is stored is its operand: the draw that
 * native_dropout would have taken of the probabilities. */
static int stays_whole(em_t *e, double p) {
  const aot_type_t q = em_type(e, em_in(e, "query"));
  return is_named(e, "aten.scaled_dot_product_attention.default") && q.rank == 4 && p < 1 &&
         (q.dtype == AOT_BF16 || q.dtype == AOT_F16);
}

static void keep_whole(em_t *e, double p, aot_value_t *out) {
  const em_x_t q = em_in(e, "query"), k = em_in(e, "key");
  const aot_type_t of_q = em_type(e, q), of_k = em_type(e, k);
  aot_type_t scores = of_q;
  int64_t sizes[AOT_MAX_RANK];
  if (e->status != AOT_OK) return;
  memcpy(sizes, of_q.sizes, 3 * sizeof *sizes);
  sizes[3] = of_k.sizes[2];
  scores.sizes = sizes;
  const em_x_t keep = em_cast(e, rg_chance(e, &scores, 1.0 - p), of_q.dtype);
  out[0] =
      em_value(e, EM(e, "aot.dropout_attention.default", q, k, em_in(e, "value"), em_in(e, "attn_mask"), keep, em_f(p),
                     em_b(em_in_bool(e, "is_causal", 0)), em_in(e, "scale"), em_b(em_in_bool(e, "enable_gqa", 0))));
}

void rg_attention(em_t *e, aot_value_t *out) {
  const double p = em_in_float(e, "dropout_p", 0);
  if (p == 0) {
    rg_of(e)->is_left = 1;
    return;
  }
  if (stays_whole(e, p)) {
    keep_whole(e, p, out);
    return;
  }
  if (rg_stream_open(e) == AOT_OK) e->status = e->host->edit->decompose(e->prog, e->node, out);
  for (uint32_t i = 0; e->status == AOT_OK && i < e->desc->n_results && i < e->info.n_results; i++)
    if (is_state_name(e->desc->results[i].name) && out[i].id != AOT_NO_ID)
      e->status = remember(e, out[i], rg_of(e)->stream->next);
}

/* ---- backward ---- */

typedef struct call {
  em_x_t q, k, v, g, y; /* [batch, heads, steps, features] in the dtype of computation */
  double scale, p;
  int steps_first;
} call_t;

static em_x_t swapped(em_t *e, em_x_t x, int64_t a, int64_t b) { return EM(e, "transpose.int", x, em_i(a), em_i(b)); }

static em_x_t read_tensor(em_t *e, const call_t *c, const char *name) {
  em_x_t x = em_in(e, name);
  const int32_t dtype = em_type(e, x).dtype;
  x = em_cast(e, x, dtype == AOT_F64 ? AOT_F64 : AOT_F32);
  return c->steps_first ? swapped(e, x, 1, 2) : x;
}

static call_t read_call(em_t *e) {
  call_t c = {.p = em_in_float(e, "dropout_p", 0), .steps_first = !is_named(e, "_scaled_dot_product")};
  c.q = read_tensor(e, &c, "query");
  c.k = read_tensor(e, &c, "key");
  c.v = read_tensor(e, &c, "value");
  c.y = read_tensor(e, &c, "out");
  c.g = read_tensor(e, &c, em_in(e, "grad_out_").kind == AOT_ARG_VALUE ? "grad_out_" : "grad_out");
  const aot_type_t q = em_type(e, c.q), k = em_type(e, c.k);
  if (e->status == AOT_OK && (q.rank != 4 || k.rank != 4 || q.sizes[1] != k.sizes[1]))
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s with dropout: query and key must have rank 4 and as many heads each",
            (int)e->desc->name.size, e->desc->name.data);
  if (e->status == AOT_OK)
    c.scale = em_in_float(e, "scale", 1.0 / sqrt((double)e->host->graph->dim_hint(e->prog, q.sizes[3])));
  return c;
}

static em_x_t range(em_t *e, int64_t n, const aot_type_t *like) {
  const em_x_t device = em_device(like->device, like->device_index);
  return EM(e, "arange", em_i(n), em_dtype(AOT_I64), em_none(), device);
}

/* Row i sees column j <= i; flash attention aligns the last row with the last column. */
static em_x_t causal(em_t *e, const aot_type_t *q, const aot_type_t *k) {
  em_x_t rows = EM(e, "unsqueeze", range(e, q->sizes[2], q), em_i(1)), columns = range(e, k->sizes[2], k);
  int64_t shift = 0;
  if (e->status == AOT_OK && is_named(e, "flash") && q->sizes[2] != k->sizes[2]) {
    int64_t minus = 0;
    e->status = e->host->edit->dim_make(e->prog, AOT_EXPR_MUL, q->sizes[2], -1, 0, &minus);
    if (e->status == AOT_OK) e->status = e->host->edit->dim_make(e->prog, AOT_EXPR_ADD, k->sizes[2], minus, 0, &shift);
  }
  if (shift != 0) rows = EM(e, "add.Scalar", rows, em_i(shift));
  return EM(e, "le.Tensor", columns, rows);
}

/* The log sum exp with as many rows as there are, and a dimension more. */
static em_x_t row_sums(em_t *e, const aot_type_t *q, int32_t dtype) {
  em_x_t lse = em_in(e, "logsumexp");
  if (em_type(e, lse).rank == 4) lse = EM(e, "squeeze.dim", lse, em_i(3));
  if (e->status == AOT_OK && em_type(e, lse).sizes[2] != q->sizes[2])
    lse = EM(e, "slice.Tensor", lse, em_i(2), em_i(0), em_i(q->sizes[2]));
  return EM(e, "unsqueeze", em_cast(e, lse, dtype), em_i(3));
}

static em_x_t probabilities(em_t *e, const call_t *c) {
  const aot_type_t q = em_type(e, c->q), k = em_type(e, c->k);
  const em_x_t bias = em_in(e, "attn_bias");
  em_x_t s = EM(e, "mul.Scalar", EM(e, "matmul", c->q, swapped(e, c->k, 2, 3)), em_f(c->scale));
  if (bias.kind == AOT_ARG_VALUE) s = EM(e, "add.Tensor", s, em_cast(e, bias, q.dtype));
  if (e->status != AOT_OK) return s;
  const em_x_t p = EM(e, "exp", EM(e, "sub.Tensor", s, row_sums(e, &q, q.dtype)));
  return em_in_bool(e, "is_causal", 0) ? EM(e, "where.ScalarOther", causal(e, &q, &k), p, em_f(0)) : p;
}

static em_x_t row_sum(em_t *e, em_x_t x) {
  const int64_t last = -1;
  return EM(e, "sum.dim_IntList", x, aot_arg_ints(&last, 1), em_b(1));
}

static void give(em_t *e, const call_t *c, em_x_t x, uint32_t i, aot_value_t *out) {
  const em_x_t mask = em_in(e, "grad_input_mask");
  if (i >= e->info.n_results || (mask.kind == AOT_ARG_BOOLS && i < mask.n && !mask.u.ints[i])) return;
  if (c->steps_first) x = swapped(e, x, 1, 2);
  const aot_type_t t = em_result_type(e, i);
  if (t.kind == AOT_TYPE_TENSOR) out[i] = em_value(e, em_cast(e, x, t.dtype));
}

static void give_bias(em_t *e, em_x_t ds, aot_value_t *out) {
  const em_x_t bias = em_in(e, "attn_bias"), mask = em_in(e, "grad_input_mask");
  if (e->info.n_results < 4 || bias.kind != AOT_ARG_VALUE ||
      (mask.kind == AOT_ARG_BOOLS && mask.n > 3 && !mask.u.ints[3]))
    return;
  const aot_type_t t = em_type(e, bias);
  if (e->status != AOT_OK || em_result_type(e, 3).kind != AOT_TYPE_TENSOR) return;
  out[3] = em_value(e, em_cast(e, EM(e, "sum_to_size", ds, aot_arg_ints(t.sizes, (uint32_t)t.rank)), t.dtype));
}

void rg_attention_backward(em_t *e, aot_value_t *out) {
  if (em_in_float(e, "dropout_p", 0) == 0) {
    rg_of(e)->is_left = 1;
    return;
  }
  const em_x_t seed = em_in(e, "philox_seed");
  const rg_attention_draw_t *forward = recall(e, seed.kind == AOT_ARG_VALUE ? seed : em_in(e, "rng_state"));
  if (!forward) {
    em_fail(e, AOT_E_UNIMPLEMENTED,
            "export the model without its backward, and let the stage autograd differentiate it",
            "%.*s drops with the numbers of a forward that is not in this graph", (int)e->desc->name.size,
            e->desc->name.data);
    return;
  }
  rg_stream_t stream = *rg_of(e)->stream, *own = rg_of(e)->stream;
  const call_t c = read_call(e);
  const em_x_t p = probabilities(e, &c);
  const aot_type_t t = em_type(e, p);
  stream.seed = forward->seed;
  stream.offset = forward->offset;
  stream.next = forward->number;
  if (e->status != AOT_OK) return;
  rg_of(e)->stream = &stream;
  const em_x_t keep = rg_chance(e, &t, 1.0 - c.p);
  rg_of(e)->stream = own;
  const em_x_t scale = em_f(c.p < 1 ? 1.0 / (1.0 - c.p) : 0.0);
  const em_x_t dropped = EM(e, "mul.Scalar", EM(e, "mul.Tensor", p, keep), scale);
  const em_x_t dp = EM(e, "mul.Scalar", EM(e, "mul.Tensor", EM(e, "matmul", c.g, swapped(e, c.v, 2, 3)), keep), scale);
  const em_x_t ds = EM(e, "mul.Tensor", p, EM(e, "sub.Tensor", dp, row_sum(e, EM(e, "mul.Tensor", c.g, c.y))));
  give(e, &c, EM(e, "mul.Scalar", EM(e, "matmul", ds, c.k), em_f(c.scale)), 0, out);
  give(e, &c, EM(e, "mul.Scalar", EM(e, "matmul", swapped(e, ds, 2, 3), c.q), em_f(c.scale)), 1, out);
  give(e, &c, EM(e, "matmul", swapped(e, dropped, 2, 3), c.g), 2, out);
  give_bias(e, ds, out);
}
