/* Recurrent networks: input [steps, batch, features], or batch first, or packed [rows, features]; states [layers *
 * directions, batch, hidden], where an LSTM with projections has a smaller h than c. */
#include "shape_rules.h"

#include <string.h>

/* Parameters of a layer and direction. */
static uint32_t n_params(at_infer_t *c, int lstm, const aot_type_t *h, const aot_type_t *cell) {
  return 2 + 2 * (uint32_t)at_bool(c, "has_biases") + (uint32_t)(lstm && at_differs(c, h->sizes[2], cell->sizes[2]));
}

static void check_params(at_infer_t *c, int lstm, const aot_type_t *x, const aot_type_t *h, const aot_type_t *cell) {
  int64_t directions = at_bool(c, "bidirectional") ? 2 : 1, layers = at_int(c, "num_layers");
  uint32_t n = at_list_size(c, "params");
  aot_type_t w;
  if (x->dtype != h->dtype) at_fail(c, "%s of an input and a state of different dtypes", c->row->name);
  if (layers < 1 || layers > n || (int64_t)n != n_params(c, lstm, h, cell) * layers * directions) {
    at_fail(c, "%s of %lld layers in %lld directions takes %u parameters for each, not %u in all", c->row->name,
            (long long)layers, (long long)directions, n_params(c, lstm, h, cell), n);
    return;
  }
  if (at_differs(c, h->sizes[0], layers * directions))
    at_fail(c, "%s: the first state has %lld layers and directions, not %lld", c->row->name,
            (long long)at_hint(c, h->sizes[0]), (long long)(layers * directions));
  if (c->status != AOT_OK) return;
  w = at_list_item(c, "params", 0);
  if (w.rank != 2 || at_differs(c, w.sizes[1], x->sizes[x->rank - 1]))
    at_fail(c, "%s of an input with %lld features; the first weight takes %lld", c->row->name,
            (long long)at_hint(c, x->sizes[x->rank - 1]), (long long)(w.rank == 2 ? at_hint(c, w.sizes[1]) : 0));
}

void at_shape_rnn(at_infer_t *c) {
  int lstm = strstr(c->row->name, "lstm") != NULL, packed = strstr(c->row->name, ".data") != NULL;
  int batch_first = !packed && at_bool(c, "batch_first");
  aot_type_t x = at_tensor(c, packed ? "data" : "input"), h = lstm ? at_list_item(c, "hx", 0) : at_tensor(c, "hx"),
             cell = h;
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank), *strides = at_dims(c, 3), width;
  if (lstm) cell = at_list_item(c, "hx", 1);
  if (x.rank != (packed ? 2 : 3) || h.rank != 3 || cell.rank != 3)
    at_fail(c, "%s of an input of rank %d with a state of rank %d", c->row->name, (int)x.rank, (int)h.rank);
  if (c->status != AOT_OK) return;
  check_params(c, lstm, &x, &h, &cell);
  if (!packed && at_differs(c, x.sizes[batch_first ? 0 : 1], h.sizes[1]))
    at_fail(c, "%s of %lld sequences with a state of %lld", c->row->name,
            (long long)at_hint(c, x.sizes[batch_first ? 0 : 1]), (long long)at_hint(c, h.sizes[1]));
  if (!packed && at_same(c, x.sizes[batch_first ? 1 : 0], 0)) at_fail(c, "%s over no steps", c->row->name);
  if (packed && at_tensor(c, "batch_sizes").rank != 1) at_fail(c, "%s: batch_sizes must be a vector", c->row->name);
  width = at_bool(c, "bidirectional") ? at_mul(c, h.sizes[2], 2) : h.sizes[2];
  sizes[x.rank - 1] = width;
  strides[2] = 1;
  strides[0] = width;
  strides[1] = batch_first ? at_mul(c, width, sizes[0]) : width;
  if (batch_first) at_put_strided(c, x.dtype, sizes, strides, 3);
  else at_put(c, x.dtype, sizes, x.rank);
  at_put(c, h.dtype, h.sizes, 3);
  if (lstm) at_put(c, cell.dtype, cell.sizes, 3);
}

void at_shape_rnn_cell(at_infer_t *c) {
  int lstm = strstr(c->row->name, "lstm") != NULL;
  aot_type_t x = at_tensor(c, "input"), h = lstm ? at_list_item(c, "hx", 0) : at_tensor(c, "hx"), cell = h;
  if (lstm) cell = at_list_item(c, "hx", 1);
  if (x.rank != 2 || h.rank != 2 || cell.rank != 2 || at_differs(c, x.sizes[0], h.sizes[0]))
    at_fail(c, "%s of an input of rank %d with a state of rank %d; both are [batch, features]", c->row->name,
            (int)x.rank, (int)h.rank);
  at_put(c, h.dtype, h.sizes, h.rank);
  if (lstm) at_put(c, cell.dtype, cell.sizes, cell.rank);
}

/* hy, cy and the gates */
void at_shape_fused_lstm_cell(at_infer_t *c) {
  aot_type_t gates = at_tensor(c, "input_gates"), cx = at_tensor(c, "cx");
  if (gates.rank != 2 || cx.rank != 2) at_fail(c, "%s takes gates and a state of rank 2", c->row->name);
  at_put(c, cx.dtype, cx.sizes, cx.rank);
  at_put(c, cx.dtype, cx.sizes, cx.rank);
  at_put(c, gates.dtype, gates.sizes, gates.rank);
}

void at_shape_fused_lstm_cell_backward(at_infer_t *c) {
  aot_type_t gates = at_tensor(c, "workspace"), cx = at_tensor(c, "cx");
  if (gates.rank != 2) at_fail(c, "%s takes a workspace of rank 2", c->row->name);
  at_put(c, gates.dtype, gates.sizes, gates.rank);
  at_put(c, cx.dtype, cx.sizes, cx.rank);
  if (at_bool(c, "has_bias") && c->status == AOT_OK) at_put(c, gates.dtype, gates.sizes + 1, 1);
  else at_put_none(c);
}
