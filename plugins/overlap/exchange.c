#include "exchange.h"

#include "step_nodes.h"

/* What a cast to a wider float reads, in its layout; none: v is not made by one. */
static aot_value_t find_narrow(em_t *e, aot_value_t v) {
  const aot_value_t from = ov_uncast(e, v);
  if (from.id == AOT_NO_ID) return from;
  const aot_type_t narrow = em_type(e, em_v(from)), wide = em_type(e, em_v(v));
  const int widens = aot_dtype_is_float(narrow.dtype) && aot_dtype_is_float(wide.dtype) &&
                     aot_dtype_size(narrow.dtype) < aot_dtype_size(wide.dtype);
  return widens && tn_is_row_major(narrow.rank, narrow.sizes, narrow.strides) ? from : aot_no_value();
}

static em_x_t piece(em_t *e, em_x_t all, int64_t n_rows, int64_t number, int32_t dtype) {
  const em_x_t rows = EM(e, "slice.Tensor", all, em_i(0), em_i(number * n_rows), em_i((number + 1) * n_rows), em_i(1));
  return em_cast(e, rows, dtype);
}

/* e looks at the scatter, and new nodes are in front of it. */
static em_x_t sum_of_pieces(em_t *e, aot_value_t narrow, int64_t n_ranks) {
  const aot_type_t part = em_result_type(e, 0);
  em_x_t all = EM(e, "aot.all_to_all.default", em_v(narrow), em_i(n_ranks), em_in(e, "group_name"));
  all = EM(e, "_c10d_functional.wait_tensor.default", all);
  em_x_t sum = piece(e, all, part.sizes[0], 0, part.dtype);
  for (int64_t r = 1; r < n_ranks; r++) sum = em_add(e, sum, piece(e, all, part.sizes[0], r, part.dtype));
  return sum;
}

/* What the wait waits for, if nothing else reads it and it is a sum over few ranks of a tensor of known sizes; e looks
 * at it, and new nodes are in front of it. None: it is something else. */
static aot_node_t find_scatter(em_t *e, aot_node_t wait) {
  if (em_look(e, wait) != AOT_OK || !ov_is_node(e, "_c10d_functional.wait_tensor.default")) return aot_no_node();
  const aot_value_t v = {e->info.operands[0]};
  const aot_node_t scatter = e->host->graph->value_def(e->prog, v);
  if (scatter.id == AOT_NO_ID || e->host->graph->n_uses(e->prog, v) != 1 || em_rewrite(e, scatter) != AOT_OK ||
      !ov_is_node(e, "_c10d_functional.reduce_scatter_tensor.default"))
    return aot_no_node();
  const em_x_t how = em_in(e, "reduce_op"), n_ranks = em_in(e, "group_size");
  const int is_sum = how.kind == AOT_ARG_STR && aot_str_eq((aot_str_t){how.u.chars, how.n}, aot_str("sum"));
  const int is_few = n_ranks.kind == AOT_ARG_INT && n_ranks.u.i <= OV_MOST_PIECES;
  return is_sum && is_few && !AOT_DIM_IS_SYM(em_result_type(e, 0).sizes[0]) ? scatter : aot_no_node();
}

static aot_status_t visit(em_t *e, aot_node_t wait, uint64_t least_nbytes, uint32_t *io_n) {
  const aot_graph_api_t *g = e->host->graph;
  const aot_node_t scatter = find_scatter(e, wait);
  if (scatter.id == AOT_NO_ID) return e->status;
  const aot_value_t wide = {e->info.operands[0]}, narrow = find_narrow(e, wide);
  if (narrow.id == AOT_NO_ID || ov_nbytes(e, narrow) < least_nbytes) return e->status;
  const aot_node_t cast = g->value_def(e->prog, wide);
  const aot_value_t sum = em_value(e, sum_of_pieces(e, narrow, em_in(e, "group_size").u.i));
  AOT_TRY(em_look(e, wait));
  em_take_over(e, e->info.first_result, sum, 1);
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, wait));
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->node_erase(e->prog, scatter));
  if (em_ok(e, AOT_OK) && g->n_uses(e->prog, wide) == 0) em_ok(e, e->host->edit->node_erase(e->prog, cast));
  ++*io_n;
  return e->status;
}

aot_status_t ov_exchange(em_t *e, uint64_t least_nbytes, uint32_t *io_n) {
  const aot_graph_api_t *g = e->host->graph;
  for (aot_node_t n = g->first(e->prog, e->graph), next; n.id != AOT_NO_ID; n = next) {
    next = g->next(e->prog, n);
    AOT_TRY(visit(e, n, least_nbytes, io_n));
  }
  return e->status;
}
