#include "flops.h"

#include "value_size.h"
#include <aot/assert.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <math.h>
#include <string.h>

/* The shape of operand k, which may be absent. */
static nc_shape_t operand(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t k, const int64_t *dims) {
  const uint32_t *rows = AOT_SNAP_ROWS(s, uint32_t, operands) + node->operand_begin;
  const nc_shape_t none = {0};
  return k < node->n_operands && rows[k] != AOT_NO_ID ? nc_shape(s, rows[k], dims) : none;
}

static nc_shape_t result(const aot_snapshot_t *s, const aot_snap_node_t *node, uint32_t r, const int64_t *dims) {
  const nc_shape_t none = {0};
  return r < node->n_results ? nc_shape(s, node->result_begin + r, dims) : none;
}

/* A window w [c_out, c_in / groups, ..] that goes over x [n, c_in, ..] makes y [n, c_out, ..]. Matrices of a batch, and
 * keys next to their queries, may look like it. */
static int is_window(const nc_shape_t *x, const nc_shape_t *w, const nc_shape_t *y) {
  const int32_t r = x->rank;
  if (r < 3 || w->rank != r || y->rank != r || w->numel == 0) return 0;
  const int is_product = x->sizes[r - 1] == w->sizes[r - 1] || x->sizes[r - 1] == w->sizes[r - 2];
  if (x->sizes[0] == w->sizes[0] && is_product) return 0;
  return y->sizes[0] == x->sizes[0] && y->sizes[1] == w->sizes[0] && x->sizes[1] % w->sizes[1] == 0;
}

/* Each element of the result is a sum over the window; so is each of both gradients. 0: it is no such node. */
static double window_flops(const aot_snapshot_t *s, const aot_snap_node_t *node, const int64_t *dims) {
  const nc_shape_t a = operand(s, node, 0, dims), b = operand(s, node, 1, dims), c = operand(s, node, 2, dims),
                   y = result(s, node, 0, dims), z = result(s, node, 1, dims);
  if (node->n_results == 1 && is_window(&a, &b, &y))
    return 2 * (double)y.numel * (double)(b.numel / (uint64_t)b.sizes[0]);
  if (node->n_results < 2 || !is_window(&b, &c, &a)) return 0;
  return 2 * ((y.rank > 0) + (z.rank > 0)) * (double)a.numel * (double)(c.numel / (uint64_t)c.sizes[0]);
}

/* A product of m x k and k x n, batch times: its three sizes report 2 * batch * m * n * k. */
static double product_flops(const aot_snapshot_t *s, const aot_snap_node_t *node, const int64_t *dims) {
  nc_shape_t largest[2] = {{0}, {0}}, out = {0};
  double batch = 1;
  for (uint32_t k = 0; k < node->n_operands; k++) {
    const nc_shape_t t = operand(s, node, k, dims);
    if (t.numel > largest[0].numel) largest[1] = largest[0], largest[0] = t;
    else if (t.numel > largest[1].numel) largest[1] = t;
  }
  AOT_ASSERT(largest[0].numel >= largest[1].numel);
  for (uint32_t r = 0; r < node->n_results; r++) {
    const nc_shape_t t = result(s, node, r, dims);
    if (t.numel > out.numel) out = t;
  }
  for (int32_t d = 0; d + 2 < out.rank && out.rank == largest[0].rank && out.rank == largest[1].rank; d++)
    if (out.sizes[d] == largest[0].sizes[d] && out.sizes[d] == largest[1].sizes[d]) batch *= (double)out.sizes[d];
  return 2 * sqrt((double)largest[0].numel * (double)largest[1].numel * (double)out.numel / (batch < 1 ? 1 : batch));
}

uint64_t nc_flops(const aot_snapshot_t *s, uint32_t node, const int64_t *dims) {
  const aot_snap_node_t *n = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + node;
  if (!(AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[n->op].flags & AOT_OP_HEAVY)) return 0;
  const double window = window_flops(s, n, dims), flops = window > 0 ? window : product_flops(s, n, dims);
  return flops < (double)INT64_MAX ? (uint64_t)flops : INT64_MAX;
}
