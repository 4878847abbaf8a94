/* Gradients of slices and selections: a region of a tensor that is 0 elsewhere, and sums of them.
 *
 *     %a = slice_backward %x, ..     %b = slice_backward %y, ..     %c = add %a, %b
 *     %d = select_backward %z, ..    %e = add %c, %d
 *
 * Summed as they are, each makes a whole tensor and each sum reads two: a recurrent network spends half of its step
 * so. Where nothing else reads the parts, the sum is one tensor: zeros, the first region copied, every further one
 * added where its add is. The additions left out are of zeros. And where selections have each index of a dimension once
 * (query, key and value of one projection), the sum stacks them (concat.h), and there are no zeros. */
#include "concat.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

enum { NO_REGION, REGION, SUM };        /* what a value is */
enum { PLAIN, DEFERRED, ADDS, STACKS }; /* what a node does (lw_build_t.regions) */
enum { MOST_STACKED = 64 };             /* selections: a bit each */

static aot_str_t op_name(const lw_build_t *b) {
  return aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
}

/* ---- regions ---- */

static int64_t clamp(int64_t at, int64_t size) { return at < 0 ? 0 : at > size ? size : at; }

static int can_add(int32_t dtype) {
  return dtype == AOT_F32 || dtype == AOT_F64 || dtype == AOT_F16 || dtype == AOT_BF16;
}

/* The part of `whole` that slice_backward(grad, sizes, dim, start, end, step) or select_backward(grad, sizes, dim,
 * index) writes: what grad has. 0: arguments that do not fit. */
static int region_of(const lw_build_t *b, const lw_tensor_t *whole, lw_tensor_t *out) {
  const lw_tensor_t *grad = lw_arg_tensor(b, 0);
  const int is_select = aot_str_eq(op_name(b), aot_str("aten.select_backward.default"));
  int64_t dim = lw_arg_int(b, 2, 0), start = lw_arg_int(b, 3, 0), step = is_select ? 1 : lw_arg_int(b, 5, 1);
  if (!grad || grad->dtype != whole->dtype || !can_add(whole->dtype)) return 0;
  if (dim < 0) dim += whole->rank;
  if (dim < 0 || dim >= whole->rank || step < 1 || grad->rank != whole->rank - is_select) return 0;
  const int64_t size = whole->sizes[dim];
  if (start < 0) start += size;
  if (is_select && (start < 0 || start >= size)) return 0;
  start = clamp(start, size);
  *out = *whole;
  out->offset += start * whole->strides[dim];
  if (is_select) {
    for (int64_t d = dim; d + 1 < whole->rank; d++) {
      out->sizes[d] = whole->sizes[d + 1];
      out->strides[d] = whole->strides[d + 1];
    }
    out->sizes[--out->rank] = 0;
    out->strides[out->rank] = 0;
  } else {
    out->sizes[dim] = grad->sizes[dim];
    out->strides[dim] *= step;
    if (grad->sizes[dim] > 0 && start + (grad->sizes[dim] - 1) * step >= size) return 0;
  }
  for (int32_t d = 0; d < out->rank; d++)
    if (out->sizes[d] != grad->sizes[d]) return 0;
  return 1;
}

/* ---- finding sums ---- */

static int is_region_node(const lw_build_t *b) {
  const aot_str_t name = op_name(b);
  lw_tensor_t region;
  if (!aot_str_eq(name, aot_str("aten.slice_backward.default")) &&
      !aot_str_eq(name, aot_str("aten.select_backward.default")))
    return 0;
  return b->node->n_results == 1 && region_of(b, lw_type(b, 0), &region);
}

static int is_part(const lw_build_t *b, const uint8_t *kind, uint32_t row) {
  if (row == AOT_NO_ID || b->n_uses[row - b->value_begin] != 1 || kind[row - b->value_begin] == NO_REGION) return 0;
  const lw_tensor_t *t = &lw_value(b, row)->t, *whole = lw_type(b, 0);
  return t->dtype == whole->dtype && lw_same_sizes(t, whole);
}

/* An add of two parts, the later one a region: the sum so far stays where it is. */
static int is_sum_node(const lw_build_t *b, const uint8_t *kind) {
  if (!lw_is_sum(b)) return 0;
  const uint32_t x = lw_arg_row(b, 0), y = lw_arg_row(b, 1);
  return is_part(b, kind, x) && is_part(b, kind, y) &&
         (kind[x - b->value_begin] == REGION || kind[y - b->value_begin] == REGION);
}

/* The index that the region's node selects of the dimension. -1: it selects none of it. */
static int64_t selected(lw_build_t *b, const aot_snap_node_t *region_node, int64_t dim) {
  const aot_snap_node_t *node = b->node;
  b->node = region_node;
  const int64_t rank = lw_type(b, 0)->rank;
  int64_t at = lw_arg_int(b, 2, 0), index = lw_arg_int(b, 3, 0);
  const int is_select = aot_str_eq(op_name(b), aot_str("aten.select_backward.default"));
  b->node = node;
  at += at < 0 ? rank : 0;
  if (!is_select || at != dim) return -1;
  return index < 0 ? index + lw_type(b, 0)->sizes[dim] : index;
}

/* The regions of the sum that is the node at hand, if all are selections of one dimension that have each index once;
 * and its other adds. 0: they are not. */
static int read_stack(lw_build_t *b, lw_join_t *out, uint32_t *adds, uint32_t *n_adds) {
  const aot_snap_node_t *const nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_node_t *const sum = b->node;
  const lw_tensor_t *whole = lw_type(b, 0);
  uint64_t seen = 0;
  int fits = 1;
  *out = (lw_join_t){.dim = -1, .is_stack = 1};
  *n_adds = 0;
  for (const aot_snap_node_t *node = sum, *next; node && fits; node = next) {
    next = NULL;
    b->node = node;
    for (uint32_t k = 0; k < 2 && fits; k++) {
      AOT_ASSERT(lw_node_of(b, lw_arg_row(b, k)) != LW_NONE); /* parts are results of nodes */
      const aot_snap_node_t *maker = &nodes[lw_node_of(b, lw_arg_row(b, k))];
      b->node = maker;
      if (!is_region_node(b)) {
        next = maker;
        fits = *n_adds < MOST_STACKED;
        if (fits) adds[(*n_adds)++] = (uint32_t)(maker - nodes);
      } else {
        for (int64_t d = 0; d < whole->rank && out->dim < 0; d++)
          if (selected(b, maker, d) >= 0) out->dim = d;
        const int64_t index = out->dim < 0 ? -1 : selected(b, maker, out->dim);
        fits = index >= 0 && index < MOST_STACKED && !(seen >> index & 1u);
        if (fits) {
          out->rows[index] = lw_arg_row(b, 0);
          out->parts[index] = lw_arg_tensor(b, 0);
          seen |= UINT64_C(1) << index;
        }
        out->n++;
      }
      b->node = node;
    }
  }
  b->node = sum;
  return fits && out->n == whole->sizes[out->dim];
}

static void find_stack(lw_build_t *b, uint32_t node) {
  uint32_t adds[MOST_STACKED], n_adds;
  lw_join_t stack;
  if (!read_stack(b, &stack, adds, &n_adds)) return;
  b->regions[node] = STACKS;
  for (uint32_t k = 0; k < n_adds; k++) {
    AOT_ASSERT(b->regions[adds[k]] == ADDS);
    b->regions[adds[k]] = DEFERRED;
  }
}

int lw_region_stack(lw_build_t *b, lw_join_t *out) {
  uint32_t adds[MOST_STACKED], n_adds;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  return b->regions && b->regions[b->node - nodes] == STACKS && read_stack(b, out, adds, &n_adds);
}

aot_status_t lw_find_regions(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  uint8_t *kind = lw_pool_alloc(b->pool, (uint64_t)b->n_values + 1); /* by value */
  b->regions = lw_pool_alloc(b->pool, (uint64_t)b->graph->n_nodes + 1);
  if (!kind || !b->regions) return lw_no_memory(b->error, "for the schedule");
  /* a kernel that writes in place counts on reads being where they stand */
  if (b->has_inplace_custom_kernels) return AOT_OK;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    b->node = &nodes[i];
    if (is_region_node(b)) {
      kind[nodes[i].result_begin - b->value_begin] = REGION;
    } else if (is_sum_node(b, kind)) {
      kind[nodes[i].result_begin - b->value_begin] = SUM;
      b->regions[i] = ADDS;
      for (uint32_t k = 0; k < 2; k++)
        if (kind[lw_arg_row(b, k) - b->value_begin] == REGION) b->regions[lw_node_of(b, lw_arg_row(b, k))] = DEFERRED;
    }
  }
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) {
    b->node = &nodes[i];
    if (b->regions[i] == ADDS) find_stack(b, i);
  }
  return AOT_OK;
}

int lw_is_region_sum(const lw_build_t *b, uint32_t node) {
  AOT_ASSERT(b->regions && node < b->graph->n_nodes);
  return b->regions[node] != PLAIN;
}

/* ---- nodes ---- */

/* Zeros with this region in them. */
static aot_status_t fill_region(lw_build_t *b, const aot_snap_node_t *region_node, const lw_tensor_t *whole) {
  const aot_snap_node_t *node = b->node;
  lw_tensor_t region;
  if (lw_numel(whole)) AOT_TRY(lw_fill_zero(b, whole));
  b->node = region_node;
  const int fits = region_of(b, whole, &region);
  const lw_tensor_t *grad = lw_arg_tensor(b, 0);
  b->node = node;
  return fits ? lw_copy(b, &region, grad)
              : lw_fail(b->error, AOT_E_INTERNAL, "internal", "a region does not fit its tensor");
}

static aot_status_t lower_region(lw_build_t *b) {
  lw_tensor_t whole, region;
  if (b->regions[b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) - b->graph->node_begin] == DEFERRED)
    return AOT_OK;
  if (b->node->n_results != 1 || !region_of(b, lw_type(b, 0), &region)) return LW_DECLINED;
  AOT_TRY(lw_result_dense(b, 0, &whole));
  return fill_region(b, b->node, &whole);
}

static aot_status_t lower_stack(lw_build_t *b) {
  lw_join_t stack;
  return lw_region_stack(b, &stack) ? lw_lower_join(b, &stack)
                                    : lw_fail(b->error, AOT_E_INTERNAL, "internal", "a region does not fit its tensor");
}

static aot_status_t lower_add(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const int does = b->regions[b->node - nodes];
  if (does == DEFERRED) return AOT_OK;
  if (does == STACKS) return lower_stack(b);
  if (does != ADDS) return LW_DECLINED;
  const uint32_t x = lw_arg_row(b, 0), y = lw_arg_row(b, 1);
  const int x_deferred = b->regions[lw_node_of(b, x)] == DEFERRED,
            y_deferred = b->regions[lw_node_of(b, y)] == DEFERRED;
  AOT_ASSERT(x_deferred || y_deferred); /* one of the two is a region */
  lw_tensor_t whole, region;
  if (x_deferred && y_deferred) {
    AOT_TRY(lw_result_dense(b, 0, &whole));
    AOT_TRY(fill_region(b, &nodes[lw_node_of(b, x)], &whole));
  } else {
    whole = lw_value(b, x_deferred ? y : x)->t;
    lw_bind(b, 0, &whole);
  }
  const aot_snap_node_t *node = b->node;
  b->node = &nodes[lw_node_of(b, y_deferred ? y : x)];
  const int fits = region_of(b, &whole, &region);
  const lw_tensor_t *grad = lw_arg_tensor(b, 0);
  b->node = node;
  return fits ? b->machine->target->add(b, &region, grad)
              : lw_fail(b->error, AOT_E_INTERNAL, "internal", "a region does not fit its tensor");
}

static const lw_lowering_t rows[] = {
    {"aten.slice_backward.default", lower_region},
    {"aten.select_backward.default", lower_region},
    {"aten.add.Tensor", lower_add},
};
const lw_lowering_table_t lw_lowerings_regions = LW_TABLE(rows);
