/* Joining tensors (cat, stack, selections' gradients): every part is copied to its place in the result, converted when
 * dtypes differ; unless it is made there. A reshape that has to copy is a join of one part.
 *
 *     %dq, %dk, %dv = attention_backward ..     %a = transpose %dq     %b = reshape %a     %whole = cat [%b, ..]
 *
 * Where a part and its views are read by nothing else, its maker may write it to its place by strides: lw_place_of tells
 * where. The place goes through views backward, each asked whether it really sees the part there. */
#include "lower.h"

#include <string.h>

enum {
  MAX_PARTS = 256,
  LEAST_RUN = 64, /* bytes side by side, for whoever writes by strides .. */
  RUN_STEP = 16   /* .. and by vectors */
};

typedef struct join {
  const lw_tensor_t *parts[MAX_PARTS];
  uint32_t rows[MAX_PARTS];
  uint32_t n;
  int64_t dim;
  int is_stack; /* every part is one index of a new dimension */
} join_t;

/* Tensors of a list argument; 0: an element that is none. */
static uint32_t read_parts(const lw_build_t *b, join_t *out) {
  const aot_snap_arg_t *a = lw_arg(b, 0);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + a->i;
  if (a->kind != AOT_ARG_VALUES || a->n > MAX_PARTS) return 0;
  for (uint32_t k = 0; k < a->n; k++) {
    if (rows[k] == AOT_NO_ID || lw_value(b, rows[k])->kind != AOT_TYPE_TENSOR) return 0;
    out->parts[k] = &lw_value(b, rows[k])->t;
    out->rows[k] = rows[k];
  }
  return a->n;
}

/* A sum of selections' gradients that is a stack (region_sums.c). */
static int read_region_stack(lw_build_t *b, join_t *out) {
  lw_stack_t stack;
  if (!lw_region_stack(b, &stack)) return 0;
  *out = (join_t){.n = (uint32_t)stack.n, .dim = stack.dim, .is_stack = 1};
  for (uint32_t k = 0; k < out->n; k++) {
    out->rows[k] = stack.rows[k];
    out->parts[k] = &lw_value(b, stack.rows[k])->t;
  }
  return 1;
}

/* cat, stack(tensors, dim). 0: parts that do not fit their result, or get imaginary parts there. */
static int read_join(const lw_build_t *b, int is_stack, join_t *out) {
  const lw_tensor_t *whole = lw_type(b, 0);
  int64_t total = 0;
  out->n = read_parts(b, out);
  out->is_stack = is_stack;
  out->dim = lw_arg_int(b, 1, 0);
  if (out->dim < 0) out->dim += whole->rank;
  if (!out->n || out->dim < 0 || out->dim >= whole->rank) return 0;
  for (uint32_t k = 0; k < out->n; k++) {
    if (out->parts[k]->rank != whole->rank - is_stack) return 0; /* the empty tensor that old code begins with */
    if (aot_dtype_is_complex(whole->dtype) && out->parts[k]->dtype != whole->dtype) return 0;
    total += is_stack ? 1 : out->parts[k]->sizes[out->dim];
    for (int32_t d = 0; d < whole->rank; d++)
      if (d != out->dim && out->parts[k]->sizes[is_stack && d > out->dim ? d - 1 : d] != whole->sizes[d]) return 0;
  }
  return total == whole->sizes[out->dim];
}

/* Of part k, `at` indices along the dimension; moves *at on. */
static lw_tensor_t place_in(const lw_tensor_t *whole, const join_t *j, uint32_t k, int64_t *at) {
  lw_tensor_t place = *whole;
  place.offset += *at * whole->strides[j->dim];
  *at += j->is_stack ? 1 : j->parts[k]->sizes[j->dim];
  if (!j->is_stack) {
    place.sizes[j->dim] = j->parts[k]->sizes[j->dim];
    return place;
  }
  for (int64_t d = j->dim; d + 1 < whole->rank; d++) {
    place.sizes[d] = place.sizes[d + 1];
    place.strides[d] = place.strides[d + 1];
  }
  place.rank--;
  return place;
}

/* ---- parts that are made in their places ---- */

/* How the operand of a view must lie for the view to lie at *place, which becomes that: a step along one of its
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

/* From the part back to its maker, whose result is to lie at the place; of_loops: a loop's, too. */
static void place_part(lw_build_t *b, uint32_t row, lw_tensor_t place, int of_loops) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes), *join = b->node;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values);
  int is_view = 1;
  while (is_view && b->n_uses[row - b->value_begin] == 1 && values[row].def) {
    b->node = &nodes[values[row].def];
    is_view = b->group[lw_node_of(b, row)] == LW_NONE && lw_is_plain_view(b);
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

static aot_status_t lower_cat(lw_build_t *b);
static aot_status_t lower_stack(lw_build_t *b);

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
  if (!*place) return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a joined tensor");
  AOT_TRY(lw_new_tensor(b, out));
  **place = *out;
  return AOT_OK;
}

static aot_status_t place_parts(lw_build_t *b, const join_t *j) {
  lw_tensor_t whole;
  int64_t at = 0;
  AOT_TRY(place_whole(b, &whole));
  const int64_t index_nbytes = whole.strides[j->dim] * (int64_t)aot_dtype_size(whole.dtype);
  for (uint32_t k = 0; k < j->n; k++) {
    const int64_t before = at * index_nbytes;
    const lw_tensor_t place = place_in(&whole, j, k, &at);
    const int64_t run = at * index_nbytes - before;
    if (j->parts[k]->dtype == whole.dtype && run >= LEAST_RUN && run % RUN_STEP == 0 && before % RUN_STEP == 0)
      place_part(b, j->rows[k], place, 1);
  }
  return AOT_OK;
}

/* A reshape that no strides express copies; not if its operand's maker writes where the result is to have it: attention,
 * another join. Loops keep to their own order. */
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
  if (!b->places) return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the schedule");
  if (b->machine->custom->n_nodes) return AOT_OK;  /* kernels that write in place count on memory of its own */
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) { /* a join of joins before these */
    join_t j;
    b->node = &nodes[i];
    const int is_stack = lw_op(b)->lower == lower_stack, is_join = is_stack || lw_op(b)->lower == lower_cat;
    if (b->group[i] != LW_NONE) continue;
    if (is_join ? read_join(b, is_stack, &j) : read_region_stack(b, &j)) AOT_TRY(place_parts(b, &j));
    else if (!is_join) AOT_TRY(place_source(b));
  }
  return AOT_OK;
}

const lw_tensor_t *lw_place_of(const lw_build_t *b, uint32_t k) {
  const lw_tensor_t *place = b->places ? b->places[b->node->result_begin + k - b->value_begin] : NULL;
  return place && place->dtype == lw_type(b, k)->dtype && lw_same_sizes(place, lw_type(b, k)) ? place : NULL;
}

/* ---- nodes ---- */

static aot_status_t join(lw_build_t *b, const join_t *j) {
  lw_tensor_t whole;
  int64_t at = 0;
  const lw_tensor_t *place = lw_place_of(b, 0);
  if (place) lw_bind(b, 0, place);
  else AOT_TRY(lw_result(b, 0, &whole));
  whole = *lw_type(b, 0);
  for (uint32_t k = 0; k < j->n; k++) {
    const lw_tensor_t to = place_in(&whole, j, k, &at);
    if (j->parts[k]->storage == to.storage && lw_same_geometry(j->parts[k], &to)) continue; /* it was made there */
    AOT_TRY(lw_copy(b, &to, j->parts[k]));
  }
  return AOT_OK;
}

static aot_status_t lower_cat(lw_build_t *b) {
  join_t j;
  return read_join(b, 0, &j) ? join(b, &j) : LW_DECLINED;
}
static aot_status_t lower_stack(lw_build_t *b) {
  join_t j;
  return read_join(b, 1, &j) ? join(b, &j) : LW_DECLINED;
}
aot_status_t lw_lower_region_stack(lw_build_t *b) {
  join_t j;
  return read_region_stack(b, &j) ? join(b, &j)
                                  : lw_fail(b->error, AOT_E_INTERNAL, "internal", "a region does not fit its tensor");
}

static const lw_lowering_t rows[] = {
    {"aten.cat.default", lower_cat},
    {"aten.stack.default", lower_stack},
};
const lw_lowering_table_t lw_lowerings_joins = LW_TABLE(rows);
