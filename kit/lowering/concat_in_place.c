/* Parts of joins (concat.h) that are made in their places, and not copied there. A reshape that has to copy is a join
 * of one part.
 *
 *     %dq, %dk, %dv = attention_backward ..     %a = transpose %dq     %b = reshape %a     %whole = cat [%b, ..]
 *
 * Where a part and its views are read by nothing else, its maker may write it to its place by strides: lw_place_of
 * determines where. The place goes through views backward, each checked whether it really sees the part there. */
#include "concat.h"

#include <aot/assert.h>

enum {
  LEAST_RUN = 64, /* bytes side by side, for code that writes by strides .. */
  RUN_STEP = 16   /* .. and by vectors */
};

/* How the operand of a view must lie for the view to be at *place, which becomes that: a step along one of its
 * dimensions is found among those of the view, where the operand lies row by row. 0: in no way that is known. */
static int go_back(lw_build_t *b, lw_tensor_t *place) {
  lw_tensor_t dense = *lw_arg_tensor(b, 0), seen, check;
  lw_make_contiguous(&dense);
  dense.storage = place->storage;
  if (!lw_see(b, &dense, &seen) || seen.offset) return 0;
  lw_tensor_t out = dense;
  out.offset = place->offset;
  for (int32_t e = 0; e < dense.rank; e++) {
    int32_t found = -1;
    for (int32_t d = 0; d < seen.rank && dense.sizes[e] > 1; d++)
      if (seen.sizes[d] > 1 && seen.strides[d] <= dense.strides[e] &&
          (found < 0 || seen.strides[d] > seen.strides[found]))
        found = d;
    if (dense.sizes[e] <= 1) continue;
    if (found < 0 || seen.strides[found] <= 0 || dense.strides[e] % seen.strides[found]) return 0;
    out.strides[e] = dense.strides[e] / seen.strides[found] * place->strides[found];
  }
  if (!lw_see(b, &out, &check) || !lw_same_geometry(&check, place)) return 0;
  *place = out;
  return 1;
}

/* From the part back to its maker, whose result is to be at the place; of_loops: a loop's, too. */
static void place_part(lw_build_t *b, uint32_t row, lw_tensor_t place, int of_loops) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_node_t *join = b->node;
  AOT_ASSERT(place.storage < b->out->n_storages);
  int is_view = 1;
  for (uint32_t i; is_view && b->n_uses[row - b->value_begin] == 1 && (i = lw_node_of(b, row)) != LW_NONE;) {
    b->node = &nodes[i];
    is_view = b->group[i] == LW_NONE && lw_is_plain_view(b);
    if (is_view && !go_back(b, &place)) break;
    if (is_view) row = lw_arg_row(b, 0);
  }
  b->node = join;
  const int is_free =
      !is_view && !b->places[row - b->value_begin] && (of_loops || b->group[lw_node_of(b, row)] == LW_NONE);
  lw_tensor_t *kept = is_free ? lw_pool_alloc(b->pool, sizeof *kept) : NULL;
  if (!kept) return;
  *kept = place;
  b->places[row - b->value_begin] = kept;
}

/* The result, in memory of its own or where another join wants it. */
static aot_status_t place_whole(lw_build_t *b, lw_tensor_t *out) {
  lw_tensor_t **place = &b->places[b->node->result_begin - b->value_begin];
  *out = *lw_type(b, 0);
  if (lw_place_of(b, 0)) {
    *out = **place;
    return AOT_OK;
  }
  lw_result_geometry(out);
  *place = lw_pool_alloc(b->pool, sizeof **place);
  if (!*place) return lw_no_memory(b->error, "for a joined tensor");
  AOT_TRY(lw_new_tensor(b, out));
  **place = *out;
  return AOT_OK;
}

static aot_status_t place_parts(lw_build_t *b, const lw_join_t *j) {
  lw_tensor_t whole;
  int64_t at = 0;
  AOT_TRY(place_whole(b, &whole));
  const int64_t index_nbytes = whole.strides[j->dim] * (int64_t)aot_dtype_size(whole.dtype);
  for (uint32_t k = 0; k < j->n; k++) {
    const int64_t before = at * index_nbytes;
    const lw_tensor_t place = lw_place_in(&whole, j, k, &at);
    const int64_t run = at * index_nbytes - before;
    if (j->parts[k]->dtype == whole.dtype && run >= LEAST_RUN && run % RUN_STEP == 0 && before % RUN_STEP == 0)
      place_part(b, j->rows[k], place, 1);
  }
  AOT_ASSERT(at == whole.sizes[j->dim]);
  return AOT_OK;
}

/* A reshape that no strides express copies; not if its operand's maker writes where the result is to have it:
 * attention, another join. Loops keep to their own order. */
static aot_status_t place_source(lw_build_t *b) {
  lw_tensor_t place, seen;
  if (lw_place_of(b, 0) || !lw_is_plain_view(b) || lw_see(b, lw_arg_tensor(b, 0), &seen)) return AOT_OK;
  place = *lw_type(b, 0);
  lw_make_contiguous(&place);
  AOT_TRY(lw_new_tensor(b, &place)); /* what no step uses takes no memory */
  if (!go_back(b, &place)) return AOT_OK;
  for (int32_t d = 0; d < place.rank; d++) {
    const int64_t run = place.sizes[d] * (int64_t)aot_dtype_size(place.dtype);
    if (place.strides[d] == 1 && run >= LEAST_RUN && run % RUN_STEP == 0) place_part(b, lw_arg_row(b, 0), place, 0);
  }
  return AOT_OK;
}

aot_status_t lw_find_places(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  b->places = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * sizeof *b->places);
  if (!b->places) return lw_no_memory(b->error, "for the schedule");
  /* a kernel that writes in place counts on memory of its own */
  if (b->has_inplace_custom_kernels) return AOT_OK;
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) { /* a join of joins before these */
    lw_join_t j;
    b->node = &nodes[i];
    if (b->group[i] != LW_NONE) continue;
    if (lw_is_join(b) ? lw_read_join(b, &j) : lw_region_stack(b, &j)) AOT_TRY(place_parts(b, &j));
    else if (!lw_is_join(b)) AOT_TRY(place_source(b));
  }
  return AOT_OK;
}
