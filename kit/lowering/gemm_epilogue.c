/* Products of f16 or bf16 that are added to a float tensor: the residual stream of a transformer under autocast.
 *
 *     %t = linear %x, %w, %v      bf16          product: x w + v + r, in float, rounded once
 *     %u = view %t                              nothing
 *     %y = add %r, %u             f32           nothing but its name
 *     %n = layer_norm %y          f32           a loop that reads y, and neither writes it nor reads r and t
 *
 * A library adds what it multiplies to a matrix of the result's type on the way. The product is made where the sum
 * is, and its own result is never in memory. Only one who reads all of it may see that: the result, what views of
 * all of it see, and a cast to float are read once, and r and the sum lie as the last view does. The sum may be where
 * r did, if nothing reads r later.
 *
 * It moves as many bytes as before, and those under a product's work, if r and the sum are in memory anyhow; more where
 * loops have them in registers, of which two may each compute for itself (duplicate_producers.c). So both must be
 * wanted there: no loop makes it, the program returns it, something that is no loop reads it, another such product for
 * one, or three loops that cannot be one since products are between them; two, of what is not computed twice
 * (embeddings). O(nodes + operands). */
#include "lower.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

struct lw_residual {
  uint32_t product, sum; /* nodes of the graph */
  uint32_t addend;       /* the sum's argument that is not the product */
  uint32_t bias; /* value, float, that the product's bias is a cast of; AOT_NO_ID: it is none, or there is no bias */
};

static const aot_snap_node_t *node_at(const lw_build_t *b, uint32_t i) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + i;
}

/* ---- who reads what ---- */

/* Loops are of one level if no way from one to the other leads through something else. */
enum { FIRST_LEVEL = 1, MANY = 3 };
typedef struct readers {
  uint32_t n, levels[MANY - 1]; /* of the loops, distinct; MANY: so many, or something that is no loop */
} readers_t;
typedef struct levels { /* by value */
  uint32_t *made;
  readers_t *readers; /* views pass on their own */
  uint8_t *is_once;   /* loops compute it once: it is read by place, reduced, or made of such in registers */
} levels_t;

static int is_view(const lw_build_t *b, const aot_snap_node_t *node) {
  return b->ops[node->op].kernel && rk_is_view(b->ops[node->op].kernel);
}

static int is_loop(const lw_build_t *b, const aot_snap_node_t *node) {
  const lw_op_t *op = &b->ops[node->op];
  return op->loop || op->rows || op->read || op->write;
}

static uint32_t level_of(const lw_build_t *b, const levels_t *l, const aot_snap_node_t *node) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
  uint32_t level = FIRST_LEVEL;
  for (uint32_t k = 0; k < node->n_operands; k++)
    if (operands[k] != AOT_NO_ID && l->made[operands[k] - b->value_begin] > level)
      level = l->made[operands[k] - b->value_begin];
  return level;
}

static void add_level(readers_t *r, uint32_t level) {
  AOT_ASSERT(r->n <= MANY);
  for (uint32_t k = 0; k < r->n && k < MANY - 1; k++)
    if (r->levels[k] == level) return;
  if (r->n < MANY - 1) r->levels[r->n] = level;
  if (r->n < MANY) r->n++;
}

static void add_readers(readers_t *r, const readers_t *more) {
  if (more->n == MANY) r->n = MANY;
  for (uint32_t k = 0; k < more->n && k < MANY - 1; k++) add_level(r, more->levels[k]);
}

static void find_readers(const lw_build_t *b, levels_t *l, const aot_snap_node_t *node) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
  const uint32_t level = level_of(b, l, node);
  for (uint32_t k = 0; k < node->n_operands; k++) {
    if (operands[k] == AOT_NO_ID) continue;
    readers_t *r = &l->readers[operands[k] - b->value_begin];
    for (uint32_t i = 0; is_view(b, node) && i < node->n_results; i++)
      add_readers(r, &l->readers[node->result_begin + i - b->value_begin]);
    if (is_view(b, node)) continue;
    if (is_loop(b, node)) add_level(r, level);
    else r->n = MANY;
  }
}

static int is_computed_once(const lw_build_t *b, const levels_t *l, const aot_snap_node_t *node) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
  int once = b->ops[node->op].read || b->ops[node->op].rows;
  for (uint32_t k = 0; k < node->n_operands; k++)
    once |= operands[k] != AOT_NO_ID && l->is_once[operands[k] - b->value_begin] &&
            l->readers[operands[k] - b->value_begin].n == 1;
  return once;
}

static aot_status_t init(lw_build_t *b, levels_t *l) {
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  l->made = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * sizeof *l->made);
  l->readers = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * sizeof *l->readers);
  b->residuals = lw_pool_alloc(b->pool, ((uint64_t)b->graph->n_nodes + 1) * sizeof(void *));
  l->is_once = lw_pool_alloc(b->pool, (uint64_t)b->n_values + 1);
  if (!l->made || !l->readers || !l->is_once || !b->residuals) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    const aot_snap_node_t *node = node_at(b, i);
    const uint32_t level = level_of(b, l, node) + (is_loop(b, node) || is_view(b, node) ? 0 : 1);
    for (uint32_t r = 0; r < node->n_results; r++) l->made[node->result_begin + r - b->value_begin] = level;
  }
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) l->readers[outputs[i].value - b->value_begin].n = MANY;
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) find_readers(b, l, node_at(b, i));
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    if (node_at(b, i)->n_results == 1)
      l->is_once[node_at(b, i)->result_begin - b->value_begin] = (uint8_t)is_computed_once(b, l, node_at(b, i));
  return AOT_OK;
}

/* What the value is a view of, or the value itself. */
static uint32_t viewed(const lw_build_t *b, uint32_t row) {
  for (uint32_t i; (i = lw_node_of(b, row)) != LW_NONE && is_view(b, node_at(b, i)) && node_at(b, i)->n_operands;) {
    const uint32_t of = AOT_SNAP_ROWS(b->s, uint32_t, operands)[node_at(b, i)->operand_begin];
    if (of == AOT_NO_ID) break;
    row = of;
  }
  return row;
}

/* The value is in memory anyhow. */
static int is_wanted(const lw_build_t *b, const levels_t *l, uint32_t row) {
  row = viewed(b, row);
  const uint32_t few = MANY - l->is_once[row - b->value_begin], made_by = lw_node_of(b, row);
  return l->readers[row - b->value_begin].n >= few || made_by == LW_NONE || !is_loop(b, node_at(b, made_by));
}

/* ---- finding ---- */

/* Of the node at hand. 0: it is no cast between float and halves. */
static int is_cast(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  const lw_tensor_t *from = lw_arg_tensor(b, 0), *to = b->node->n_results == 1 ? lw_type(b, 0) : NULL;
  return aot_str_eq(name, aot_str("aten._to_copy.default")) && from && to && lw_same_sizes(from, to) &&
         (lw_is_half(from) ? to->dtype == AOT_F32 : from->dtype == AOT_F32 && lw_is_half(to));
}

/* The node at hand is a product that can be added to what its bias may be added to. */
static int is_product(const lw_build_t *b) {
  lw_product_t p;
  if (b->node->n_results != 1 || !lw_is_half(lw_type(b, 0)) || !lw_read_product(b, &p) || p.alpha != 1) return 0;
  const lw_tensor_t *bias = p.addend_at == LW_NONE ? NULL : lw_arg_tensor(b, p.addend_at);
  return !bias || (p.beta == 1 && bias->rank == 1 && bias->sizes[0] == p.y.sizes[p.y.rank - 1]);
}

enum { MOST_LINKS = 8 }; /* views, and a cast */
typedef struct chain {
  uint32_t product, links[MOST_LINKS], n; /* nodes, from the sum on */
} chain_t;

/* The product that the value is, seen by views of all of it, and as float. 0: it is none, or another owner sees it. */
static int find_chain(lw_build_t *b, uint32_t row, chain_t *out) {
  for (out->n = 0;;) {
    const uint32_t i = out->product = lw_node_of(b, row);
    if (i == LW_NONE || b->n_uses[row - b->value_begin] != 1) return 0;
    b->node = node_at(b, i);
    if (lw_is_region_sum(b, i) || lw_is_product_sum(b, i)) return 0;
    if (is_product(b)) return lw_is_contiguous(lw_type(b, 0));
    if (out->n == MOST_LINKS || !(lw_is_plain_view(b) || (is_cast(b) && lw_is_half(lw_arg_tensor(b, 0))))) return 0;
    out->links[out->n++] = i;
    row = lw_arg_row(b, 0);
  }
}

static int lie_alike(const lw_tensor_t *a, const lw_tensor_t *t) {
  lw_tensor_t same = *a;
  same.dtype = t->dtype;
  return lw_same_geometry(&same, t);
}

/* How the product lies for the sum: dense, as its views see it. 0: none of them does. */
static aot_status_t see(lw_build_t *b, const chain_t *c, lw_tensor_t *out, int *is_seen) {
  b->node = node_at(b, c->product);
  *out = *lw_type(b, 0);
  *is_seen = 1;
  lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out)); /* views are queried what they see of it; what no step uses takes no memory */
  for (uint32_t k = c->n; *is_seen && k-- > 0;) {
    const lw_tensor_t of = *out;
    b->node = node_at(b, c->links[k]);
    if (is_cast(b)) *is_seen = lie_alike(&of, lw_type(b, 0)), out->dtype = AOT_F32;
    else *is_seen = lw_see(b, &of, out);
  }
  return AOT_OK;
}

/* The float value that the product's bias is a cast of. */
static uint32_t find_bias(lw_build_t *b, uint32_t product) {
  lw_product_t p;
  b->node = node_at(b, product);
  lw_read_product(b, &p);
  if (p.addend_at == LW_NONE) return AOT_NO_ID;
  const uint32_t i = lw_node_of(b, lw_arg_row(b, p.addend_at));
  if (i == LW_NONE) return AOT_NO_ID;
  b->node = node_at(b, i);
  return is_cast(b) ? lw_arg_row(b, 0) : AOT_NO_ID;
}

/* The product, the sum and what is between them are one. */
static aot_status_t join(lw_build_t *b, const chain_t *c, uint32_t sum, uint32_t addend) {
  lw_residual_t *r = lw_pool_alloc(b->pool, sizeof *r);
  if (!r) return lw_no_memory(b->error, "for the schedule");
  *r = (lw_residual_t){.product = c->product, .sum = sum, .addend = addend};
  AOT_ASSERT(!b->residuals[sum] && !b->residuals[c->product]); /* each is a part of one */
  b->residuals[sum] = b->residuals[c->product] = r;
  for (uint32_t k = 0; k < c->n; k++) b->residuals[c->links[k]] = r;
  r->bias = find_bias(b, r->product);
  if (r->bias == AOT_NO_ID) return AOT_OK;
  lw_product_t p; /* the cast is not read, what it reads is */
  b->node = node_at(b, r->product);
  lw_read_product(b, &p);
  AOT_ASSERT(b->n_uses[lw_arg_row(b, p.addend_at) - b->value_begin] > 0);
  b->n_uses[lw_arg_row(b, p.addend_at) - b->value_begin]--;
  b->n_uses[r->bias - b->value_begin]++;
  return AOT_OK;
}

/* The node at hand is a float sum of two tensors of its size. */
static int is_sum(const lw_build_t *b) {
  if (!lw_is_sum(b) || lw_type(b, 0)->dtype != AOT_F32) return 0;
  for (uint32_t k = 0; k < 2; k++)
    if (!lw_arg_tensor(b, k) || !lw_same_sizes(lw_arg_tensor(b, k), lw_type(b, 0))) return 0;
  return lw_numel(lw_type(b, 0)) > 0;
}

static aot_status_t find_residual(lw_build_t *b, levels_t *l, uint32_t sum) {
  const aot_snap_node_t *node = b->node = node_at(b, sum);
  if (lw_is_region_sum(b, sum) || lw_is_product_sum(b, sum) || !is_sum(b)) return AOT_OK;
  if (!is_wanted(b, l, node->result_begin)) return AOT_OK;
  const lw_tensor_t type = *lw_type(b, 0);
  for (uint32_t k = 0; k < 2 && !b->residuals[sum]; k++) {
    lw_tensor_t seen;
    chain_t chain;
    int is_seen;
    b->node = node;
    const uint32_t row = lw_arg_row(b, k), addend = lw_arg_row(b, 1 - k);
    if (!lie_alike(&lw_value(b, addend)->t, &type) || lw_value(b, addend)->t.dtype != AOT_F32 ||
        !is_wanted(b, l, addend) || !find_chain(b, row, &chain))
      continue;
    AOT_TRY(see(b, &chain, &seen, &is_seen));
    if (!is_seen || !lie_alike(&seen, &type)) continue;
    AOT_TRY(join(b, &chain, sum, 1 - k));
    l->readers[viewed(b, addend) - b->value_begin].n = MANY;
  }
  return AOT_OK;
}

/* Backward, so that a sum wants the one before it. What a product reads is read later than it is: no kernel may
 * write there meanwhile. */
aot_status_t lw_find_residuals(lw_build_t *b) {
  levels_t levels;
  b->residuals = NULL;
  if (!b->machine->adds_residuals || b->machine->is_watched || b->has_inplace_custom_kernels) return AOT_OK;
  AOT_TRY(init(b, &levels));
  for (uint32_t i = b->graph->n_nodes; i-- > 0;) AOT_TRY(find_residual(b, &levels, i));
  return AOT_OK;
}

int lw_is_residual(const lw_build_t *b, uint32_t node) { return b->residuals && b->residuals[node]; }

/* ---- nodes ---- */

/* A dense tensor as the product has its result. */
static lw_tensor_t as_result(const lw_product_t *p, const lw_tensor_t *type, const lw_tensor_t *dense) {
  lw_tensor_t t = *type;
  t.dtype = dense->dtype;
  if (p->is_folded) {
    AOT_ASSERT(p->y.rank == 2 && lw_numel(dense) % p->y.sizes[1] == 0);
    t.rank = 2;
    t.sizes[1] = p->y.sizes[1];
    t.sizes[0] = lw_numel(dense) / t.sizes[1];
  }
  lw_make_contiguous(&t);
  t.offset = dense->offset;
  t.storage = dense->storage;
  return t;
}

/* The bias as float. */
static aot_status_t read_bias(lw_build_t *b, const lw_residual_t *r, const lw_product_t *p, lw_tensor_t *out) {
  *out = r->bias == AOT_NO_ID ? *lw_arg_tensor(b, p->addend_at) : lw_value(b, r->bias)->t;
  if (r->bias != AOT_NO_ID) return lw_contiguous(b, out, out);
  const lw_tensor_t half = *out;
  out->dtype = AOT_F32;
  lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out));
  return lw_copy(b, out, &half);
}

/* As the sum is declared to lie. */
static aot_status_t read_addend(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  const lw_tensor_t read = *t;
  *out = *lw_type(b, 0);
  out->offset = read.offset;
  if (lw_same_geometry(out, &read)) {
    *out = read;
    return AOT_OK;
  }
  out->offset = 0;
  AOT_TRY(lw_new_tensor(b, out));
  return lw_copy(b, out, &read);
}

aot_status_t lw_lower_residual(lw_build_t *b) {
  const uint32_t at = (uint32_t)(b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)) - b->graph->node_begin;
  const lw_residual_t *r = b->residuals[at];
  AOT_ASSERT(r && r->product < r->sum); /* operands come before */
  lw_tensor_t result, addend, bias;
  lw_product_t p;
  if (at != r->sum) return AOT_OK;
  AOT_TRY(read_addend(b, lw_arg_tensor(b, r->addend), &addend));
  AOT_TRY(lw_result(b, 0, &result));
  b->node = node_at(b, r->product);
  const lw_tensor_t type = *lw_type(b, 0);
  if (!lw_read_product(b, &p))
    return lw_fail(b->error, AOT_E_INTERNAL, "internal", "a product is none where it is added");
  if (p.addend_at != LW_NONE) AOT_TRY(read_bias(b, r, &p, &bias));
  AOT_TRY(lw_fold_product(b, &p));
  addend = as_result(&p, &type, &addend);
  result = as_result(&p, &type, &result);
  b->out->n_residuals++;
  return b->machine->target->product_onto(b, &p.x, &p.y, p.addend_at == LW_NONE ? NULL : &bias, &addend, &result);
}
