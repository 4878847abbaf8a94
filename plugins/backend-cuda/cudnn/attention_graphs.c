#include "attention_graphs.h"

#include <aot/base.h>
#include <math.h>
#include <string.h>

typedef struct draft {
  const gc_attention_t *a;
  gc_dnn_graph_t *g;
  uint32_t scale, minus_infinity, keep_scale;
} draft_t;

static int is_of_keys(int what) {
  return what == GC_ATT_K || what == GC_ATT_V || what == GC_ATT_GK || what == GC_ATT_GV;
}
static int64_t heads_of(const gc_attention_t *a, int what) {
  return is_of_keys(what) ? a->n_head / a->share : a->n_head;
}
static int64_t positions_of(const gc_attention_t *a, int what) { return is_of_keys(what) ? a->n_key : a->n_query; }
static int64_t width_of(const gc_attention_t *a, int what) {
  const int has_width_v = what == GC_ATT_V || what == GC_ATT_O || what == GC_ATT_GO || what == GC_ATT_GV;
  return has_width_v ? a->width_v : a->width;
}

/* [batch, head, position, element] */
static void geometry(const gc_attention_t *a, int what, int64_t sizes[4], int64_t strides[4]) {
  const int64_t s[4] = {a->n_batch, heads_of(a, what), positions_of(a, what), width_of(a, what)};
  const int64_t by[4] = {a->strides[what].batch, a->strides[what].head, a->strides[what].position, 1};
  memcpy(sizes, s, sizeof s);
  memcpy(strides, by, sizeof by);
  if (what == GC_ATT_BIAS) memcpy(sizes, a->bias_sizes, sizeof a->bias_sizes);
  if (what == GC_ATT_BIAS || what == GC_ATT_KEEP) sizes[3] = a->n_key;
}

static int32_t dtype_of(const gc_attention_t *a, int what) {
  return what == GC_ATT_BIAS ? a->bias_dtype : what == GC_ATT_KEEP ? a->keep_dtype : a->dtype;
}

static void swap_last(int64_t list[4]) {
  const int64_t last = list[3];
  list[3] = list[2];
  list[2] = last;
}

/* A number of a row, [batch, head, query, 1] */
static uint32_t add_row(draft_t *d, int32_t kind) {
  const gc_attention_t *a = d->a;
  const int64_t sizes[4] = {a->n_batch, a->n_head, a->n_query, 1};
  const int64_t strides[4] = {a->n_head * a->n_query, a->n_query, 1, 1};
  return gc_dnn_tensor(d->g, kind, AOT_F32, 4, sizes, strides);
}

static uint32_t add_query_sums(const gc_attention_t *a, gc_dnn_graph_t *g) {
  const int64_t of_head = a->n_query * a->width;
  const int64_t sizes[4] = {a->n_batch, a->n_head, a->n_query, a->width};
  const int64_t strides[4] = {a->n_head * of_head, of_head, a->width, 1};
  return gc_dnn_tensor(g, GC_DNN_MEMORY, AOT_F32, 4, sizes, strides);
}

/* Tensors in memory, numbered as in the header; those named by a bit of `transposed` with the last two dimensions
 * swapped. */
static draft_t begin(const gc_attention_t *a, uint32_t transposed, gc_dnn_graph_t *out) {
  draft_t d = {.a = a, .g = out};
  memset(out, 0, sizeof *out);
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++) {
    int64_t sizes[4], strides[4];
    geometry(a, what, sizes, strides);
    if (transposed >> what & 1) swap_last(sizes), swap_last(strides);
    if (what == GC_ATT_STATS || what == GC_ATT_SUMS) add_row(&d, GC_DNN_MEMORY);
    else if (what == GC_ATT_GQ_SUMS) add_query_sums(a, out);
    else gc_dnn_tensor(out, GC_DNN_MEMORY, dtype_of(a, what), 4, sizes, strides);
  }
  d.scale = gc_dnn_number(out, 4, (float)a->scale);
  d.minus_infinity = gc_dnn_number(out, 4, -INFINITY);
  d.keep_scale = gc_dnn_number(out, 4, (float)a->keep_scale);
  return d;
}

/* A number for each query and key, [batch, head, query, key], by rows. */
static uint32_t add_scores(draft_t *d, int32_t dtype) {
  const gc_attention_t *a = d->a;
  const int64_t n = a->n_query * a->n_key;
  const int64_t sizes[4] = {a->n_batch, a->n_head, a->n_query, a->n_key}, strides[4] = {a->n_head * n, n, a->n_key, 1};
  return gc_dnn_tensor(d->g, GC_DNN_VIRTUAL, dtype, 4, sizes, strides);
}

static uint32_t matmul(draft_t *d, uint32_t x, uint32_t b, uint32_t y) {
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_MATMUL, 0, AOT_F32, -1, x, b, GC_DNN_NONE, y});
  return y;
}
static uint32_t pointwise(draft_t *d, int32_t mode, uint32_t x, uint32_t b, uint32_t y) {
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_POINTWISE, mode, AOT_F32, -1, x, b, GC_DNN_NONE, y});
  return y;
}
static uint32_t reduce(draft_t *d, int32_t mode, uint32_t x, uint32_t y) {
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_REDUCTION, mode, AOT_F32, -1, x, GC_DNN_NONE, GC_DNN_NONE, y});
  return y;
}
static uint32_t reshape(draft_t *d, uint32_t x, uint32_t y) {
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_RESHAPE, 0, AOT_F32, -1, x, GC_DNN_NONE, GC_DNN_NONE, y});
  return y;
}

/* The transpose of scores, rounded to f16 or bf16. */
static uint32_t transposed_half(draft_t *d, uint32_t scores) {
  const uint32_t y = add_scores(d, d->a->dtype);
  swap_last(d->g->tensors[y].sizes);
  swap_last(d->g->tensors[y].strides);
  return reshape(d, scores, y);
}

/* Of each score its row or its column. */
static uint32_t add_index(draft_t *d, uint32_t scores, int32_t axis) {
  const uint32_t y = add_scores(d, AOT_I32);
  gc_dnn_op(d->g,
            (gc_dnn_op_t){GC_DNN_POINTWISE, GC_DNN_GEN_INDEX, AOT_F32, axis, scores, GC_DNN_NONE, GC_DNN_NONE, y});
  return y;
}

static uint32_t causal(draft_t *d, uint32_t x) {
  if (!d->a->is_causal) return x;
  const uint32_t row = add_index(d, x, 2), column = add_index(d, x, 3);
  const uint32_t is_seen = add_scores(d, AOT_BOOL), y = add_scores(d, AOT_F32);
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_POINTWISE, GC_DNN_CMP_GE, AOT_BOOL, -1, row, column, GC_DNN_NONE, is_seen});
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_POINTWISE, GC_DNN_SELECT, AOT_F32, -1, x, d->minus_infinity, is_seen, y});
  return y;
}

/* Tiles of keys that engines compute at a time end at multiples of this. */
enum { TILE = 128 };

/* Keys beyond the last have scores of 0, not of -inf: in cuDNN 9.14, and in 9.19 where the last tile is half full
 * (PyTorch's issue 196678). Where the sum of exponentials is below exp(-88), exp(0 - its log) is infinite, and times a
 * key of zeros it makes the gradient of the query a NaN. With the causal mask engines hide them. */
static uint32_t without_keys_beyond(draft_t *d, uint32_t x) {
  if (d->a->is_causal || d->a->n_key % TILE == 0) return x;
  const uint32_t column = add_index(d, x, 3), n_key = gc_dnn_number(d->g, 4, (float)d->a->n_key);
  const uint32_t is_key = pointwise(d, GC_DNN_CMP_LT, column, n_key, add_scores(d, AOT_BOOL));
  const uint32_t y = add_scores(d, AOT_F32);
  gc_dnn_op(d->g, (gc_dnn_op_t){GC_DNN_POINTWISE, GC_DNN_SELECT, AOT_F32, -1, x, d->minus_infinity, is_key, y});
  return y;
}

/* scale q k^T + bias */
static uint32_t biased_scores(draft_t *d) {
  const uint32_t scores = matmul(d, GC_ATT_Q, GC_ATT_K, add_scores(d, AOT_F32));
  const uint32_t scaled = pointwise(d, GC_DNN_MUL, scores, d->scale, add_scores(d, AOT_F32));
  return d->a->bias_dtype ? pointwise(d, GC_DNN_ADD, scaled, GC_ATT_BIAS, add_scores(d, AOT_F32)) : scaled;
}

/* x where it is stored, 0 elsewhere, both not scaled yet */
static uint32_t kept(draft_t *d, uint32_t x) {
  return d->a->keep_dtype ? pointwise(d, GC_DNN_MUL, x, GC_ATT_KEEP, add_scores(d, AOT_F32)) : x;
}
static uint32_t keep_scaled(draft_t *d, uint32_t x, int32_t dtype) {
  return d->a->keep_dtype ? pointwise(d, GC_DNN_MUL, x, d->keep_scale, add_scores(d, dtype)) : x;
}

/* o = drop(softmax(mask(scale q k^T + bias))) v. Without the stats no engine takes it. */
void gc_attention_forward(const gc_attention_t *a, gc_dnn_graph_t *out) {
  draft_t d = begin(a, 1u << GC_ATT_K, out);
  const uint32_t s = causal(&d, biased_scores(&d));
  const uint32_t max = reduce(&d, GC_DNN_MAX, s, add_row(&d, GC_DNN_VIRTUAL));
  const uint32_t below = pointwise(&d, GC_DNN_SUB, s, max, add_scores(&d, AOT_F32));
  const uint32_t e = pointwise(&d, GC_DNN_EXP, below, GC_DNN_NONE, add_scores(&d, AOT_F32));
  const uint32_t sum = reduce(&d, GC_DNN_SUM, e, add_row(&d, GC_DNN_VIRTUAL));
  const uint32_t log = pointwise(&d, GC_DNN_LOG, sum, GC_DNN_NONE, add_row(&d, GC_DNN_VIRTUAL));
  pointwise(&d, GC_DNN_ADD, max, log, GC_ATT_STATS);
  const int32_t rounded = a->keep_dtype ? AOT_F32 : a->dtype;
  const uint32_t p = pointwise(&d, GC_DNN_DIV, e, sum, add_scores(&d, rounded));
  matmul(&d, keep_scaled(&d, kept(&d, p), a->dtype), GC_ATT_V, GC_ATT_O);
}

/* The gradient of keys or values, y: where heads share them, that of every head of queries, summed. */
static void give_shared(draft_t *d, uint32_t x, uint32_t b, uint32_t y) {
  const gc_attention_t *a = d->a;
  const gc_dnn_tensor_t *to = &d->g->tensors[y];
  const int64_t n = to->sizes[2] * to->sizes[3];
  const int64_t sizes[4] = {a->n_batch, a->n_head, to->sizes[2], to->sizes[3]};
  const int64_t strides[4] = {a->n_head * n, n, to->sizes[3], 1};
  if (a->share == 1) {
    matmul(d, x, b, y);
    return;
  }
  const uint32_t whole = gc_dnn_tensor(d->g, GC_DNN_VIRTUAL, a->dtype, 4, sizes, strides);
  reduce(d, GC_DNN_SUM, matmul(d, x, b, whole), y);
}

/* p = exp(mask(scale q k^T + bias - stats))     gv = drop(p)^T go
 * gs = scale p (drop(go v^T) - rowsum(go o))    gq = gs k     gk = gs^T q
 * The sums of rows have a factor since no engine takes them without one. It is 1: cuDNN 9.14 and 9.19 leave out any
 * other (an H200), so dropout's factor is in drop(go v^T) and not after all. */
void gc_attention_backward(const gc_attention_t *a, int order, gc_dnn_graph_t *out) {
  draft_t d = begin(a, 1u << GC_ATT_K | 1u << GC_ATT_V, out);
  const uint32_t one = gc_dnn_number(out, 4, 1);
  int64_t sizes[4], strides[4];

  geometry(a, GC_ATT_O, sizes, strides);
  strides[2] = a->width_v;
  strides[1] = a->n_query * strides[2];
  strides[0] = a->n_head * strides[1];
  const uint32_t product = gc_dnn_tensor(out, GC_DNN_VIRTUAL, AOT_F32, 4, sizes, strides);
  pointwise(&d, GC_DNN_MUL, GC_ATT_GO, GC_ATT_O, product);
  const uint32_t row = reduce(&d, GC_DNN_SUM, product, add_row(&d, GC_DNN_VIRTUAL));
  pointwise(&d, GC_DNN_MUL, row, one, GC_ATT_SUMS);

  const uint32_t s = pointwise(&d, GC_DNN_SUB, biased_scores(&d), GC_ATT_STATS, add_scores(&d, AOT_F32));
  const uint32_t seen = causal(&d, without_keys_beyond(&d, s));
  const uint32_t p = pointwise(&d, GC_DNN_EXP, seen, GC_DNN_NONE, add_scores(&d, AOT_F32));
  give_shared(&d, transposed_half(&d, keep_scaled(&d, kept(&d, p), AOT_F32)), GC_ATT_GO, GC_ATT_GV);

  const uint32_t gp = kept(&d, matmul(&d, GC_ATT_GO, GC_ATT_V, add_scores(&d, AOT_F32)));
  const uint32_t dropped = keep_scaled(&d, gp, AOT_F32);
  const uint32_t centered = pointwise(&d, GC_DNN_SUB, dropped, GC_ATT_SUMS, add_scores(&d, AOT_F32));
  const uint32_t unscaled = pointwise(&d, GC_DNN_MUL, centered, p, add_scores(&d, AOT_F32));
  const uint32_t gs = pointwise(&d, GC_DNN_MUL, unscaled, d.scale, add_scores(&d, AOT_F32));
  give_shared(&d, transposed_half(&d, gs), GC_ATT_Q, GC_ATT_GK);

  geometry(a, GC_ATT_K, sizes, strides);
  const uint32_t k = reshape(&d, GC_ATT_K, gc_dnn_tensor(out, GC_DNN_VIRTUAL, AOT_F32, 4, sizes, strides));
  if (order == GC_ATT_ORDERED) matmul(&d, gs, k, GC_ATT_GQ);
  else pointwise(&d, GC_DNN_IDENTITY, matmul(&d, gs, k, GC_ATT_GQ_SUMS), GC_DNN_NONE, GC_ATT_GQ);
}
