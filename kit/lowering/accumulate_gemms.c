/* Sums of matrix products of few terms: the gradient of a weight that every step of a recurrent network reads.
 *
 *     %a = mm %x0, %y0    %b = mm %x1, %y1    %c = add %a, %b    %d = mm %x2, %y2    %e = add %c, %d    ..
 *
 * Such a product takes the time of its result's memory, and a sum again. Where nothing else reads the parts,
 * operands are collected side by side instead, and multiplied at once,
 *
 *     x0 y0 + x1 y1 + x2 y2 = [x0 x1 x2] [y0; y1; y2]
 *
 * as many at a time as take no more memory than the sum. Of halves a sum is rounded once a time, not once a product. */
#include "transaction.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

enum { WORTH_IT = 3 }; /* a sum of two is read where it is used, as its parts would be */

struct lw_product_sum {
  uint32_t n_products, n_left; /* to be collected */
  uint32_t last;               /* the node that is the sum */
  int64_t n_terms;             /* collected, and not multiplied yet */
  int has_begun;
  lw_tensor_t x, y, sum; /* [m, depth], [depth, n], [m, n] */
};

/* ---- finding sums ---- */

/* How many terms take the memory of the sum. */
static int64_t depth_of(const lw_tensor_t *sum) {
  const int64_t rows = sum->sizes[0], columns = sum->sizes[1];
  return rows + columns ? rows * columns / (rows + columns) : 0;
}

/* Collecting copies the operands, in a step more; it saves that the sum is read and written. */
static int is_worth_collecting(const lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *sum) {
  const lw_costs_t *c = &b->machine->target->costs;
  const int64_t n_terms = x->sizes[1], n_copied = n_terms * (sum->sizes[0] + sum->sizes[1]);
  const double n_saved = 2.0 * (double)(sum->sizes[0] * sum->sizes[1] - n_copied);
  return n_terms > 0 && 2 * n_terms <= depth_of(sum) &&
         n_saved * (double)aot_dtype_size(sum->dtype) / c->bytes_a_ns > c->step_ns;
}

static int is_product(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  if (!aot_str_eq(name, aot_str("aten.mm.default"))) return 0;
  const lw_tensor_t *x = lw_arg_tensor(b, 0), *y = lw_arg_tensor(b, 1), *sum = lw_type(b, 0);
  return lw_is_product(x, y, sum) && sum->rank == 2 && is_worth_collecting(b, x, sum);
}

/* The sum that the node's operand k is, or a product of; NULL: something else reads it, too. */
static lw_product_sum_t *part(const lw_build_t *b, lw_product_sum_t *const *of_value, uint32_t k) {
  const uint32_t row = lw_arg_row(b, k);
  if (row == AOT_NO_ID || b->n_uses[row - b->value_begin] != 1) return NULL;
  const lw_tensor_t *t = &lw_value(b, row)->t, *whole = lw_type(b, 0);
  return t->dtype == whole->dtype && lw_same_sizes(t, whole) ? of_value[row - b->value_begin] : NULL;
}

/* An add of two parts, one of them a single product, which becomes a part of the other's sum. */
static lw_product_sum_t *add_part(lw_build_t *b, lw_product_sum_t *const *of_value) {
  lw_product_sum_t *x = part(b, of_value, 0), *y = part(b, of_value, 1);
  if (!x || !y || (x->n_products > 1 && y->n_products > 1)) return NULL;
  const uint32_t product = y->n_products == 1 ? 1 : 0;
  AOT_ASSERT(lw_node_of(b, lw_arg_row(b, product)) != LW_NONE); /* parts are results of nodes */
  lw_product_sum_t *sum = product == 1 ? x : y;
  b->product_sums[lw_node_of(b, lw_arg_row(b, product))] = sum;
  sum->n_products++;
  return sum;
}

aot_status_t lw_find_product_sums(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  lw_product_sum_t **of_value = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * sizeof *of_value), *sum;
  b->product_sums = lw_pool_alloc(b->pool, ((uint64_t)b->graph->n_nodes + 1) * sizeof *b->product_sums);
  if (!of_value || !b->product_sums) return lw_no_memory(b->error, "for the schedule");
  /* a kernel that writes in place counts on reads being where they stand */
  if (b->has_inplace_custom_kernels) return AOT_OK;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    b->node = &nodes[i];
    if (is_product(b)) {
      if (!(sum = lw_pool_alloc(b->pool, sizeof *sum))) return lw_no_memory(b->error, "for the schedule");
      sum->n_products = 1;
    } else if (!lw_is_sum(b) || !(sum = add_part(b, of_value))) {
      continue;
    }
    of_value[nodes[i].result_begin - b->value_begin] = b->product_sums[i] = sum;
    sum->last = i;
  }
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    if (b->product_sums[i] && b->product_sums[i]->n_products < WORTH_IT) b->product_sums[i] = NULL;
  return AOT_OK;
}

int lw_is_product_sum(const lw_build_t *b, uint32_t node) { return b->product_sums && b->product_sums[node]; }

/* ---- nodes ---- */

/* [rows, columns] of the tensor's dtype, in memory the way that the tensor is. */
static aot_status_t new_like(lw_build_t *b, const lw_tensor_t *t, int64_t rows, int64_t columns, lw_tensor_t *out) {
  const int is_by_rows = t->strides[0] >= t->strides[1];
  *out = (lw_tensor_t){.dtype = t->dtype, .rank = 2};
  out->sizes[0] = rows;
  out->sizes[1] = columns;
  out->strides[0] = is_by_rows ? columns : 1;
  out->strides[1] = is_by_rows ? 1 : rows;
  return lw_new_tensor(b, out);
}

static aot_status_t begin(lw_build_t *b, lw_product_sum_t *s, const lw_tensor_t *x, const lw_tensor_t *y) {
  const int64_t depth = depth_of(lw_type(b, 0));
  AOT_ASSERT(depth > 0 && s->n_products >= WORTH_IT && s->n_terms == 0);
  s->n_left = s->n_products;
  AOT_TRY(new_like(b, x, x->sizes[0], depth, &s->x));
  AOT_TRY(new_like(b, y, depth, y->sizes[1], &s->y));
  s->sum = *lw_type(b, 0);
  s->sum.offset = 0;
  lw_make_contiguous(&s->sum);
  return lw_new_tensor(b, &s->sum);
}

static aot_status_t multiply(lw_build_t *b, lw_product_sum_t *s) {
  lw_tensor_t x = s->x, y = s->y;
  AOT_ASSERT(s->n_terms > 0 && s->n_terms <= s->x.sizes[1]);
  x.sizes[1] = y.sizes[0] = s->n_terms;
  s->n_terms = 0;
  const lw_tensor_t *so_far = s->has_begun ? &s->sum : NULL;
  s->has_begun = 1;
  return b->machine->target->product(b, &x, &y, so_far, &s->sum, 1, so_far != NULL);
}

static aot_status_t collect(lw_build_t *b, lw_product_sum_t *s) {
  const lw_tensor_t x = *lw_arg_tensor(b, 0), y = *lw_arg_tensor(b, 1);
  if (!s->n_left) AOT_TRY(begin(b, s, &x, &y));
  if (s->n_terms + x.sizes[1] > s->x.sizes[1]) AOT_TRY(multiply(b, s));
  lw_tensor_t x_place = s->x, y_place = s->y;
  x_place.sizes[1] = y_place.sizes[0] = x.sizes[1];
  x_place.offset += s->n_terms * s->x.strides[1];
  y_place.offset += s->n_terms * s->y.strides[0];
  s->n_terms += x.sizes[1];
  AOT_ASSERT(s->n_terms <= s->x.sizes[1]); /* they have room next to the others */
  AOT_TRY(lw_copy(b, &x_place, &x));
  AOT_TRY(lw_copy(b, &y_place, &y));
  return --s->n_left ? AOT_OK : multiply(b, s);
}

aot_status_t lw_lower_product_sum(lw_build_t *b) {
  const uint32_t at = (uint32_t)(b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)) - b->graph->node_begin;
  lw_product_sum_t *s = b->product_sums[at];
  lw_save(b, s, sizeof *s);
  if (is_product(b)) return collect(b, s);
  AOT_ASSERT(at != s->last || (s->has_begun && s->n_left == 0)); /* all products are in it */
  if (at == s->last) lw_bind(b, 0, &s->sum);
  return AOT_OK;
}
