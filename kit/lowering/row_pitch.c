/* Rows of matrices that begin at multiples of what a target reads at once.
 *
 *     %scores = linear %x, %w      30,522 columns of f16 or bf16: every second row begins at an odd multiple of 4 bytes
 *     %loss, %g = ..               a loop: reads the scores, writes their gradient
 *     %dw = mm (t %g), %x          a product again
 *
 * Libraries multiply such rows at a third of their rate. Where products or loops make a tensor, and only they read it,
 * by views that strides express, nothing minds that its rows lie further apart: it gets a place (b->places) with a
 * larger stride from row to row. */
#include "lower.h"

#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

enum { /* bytes */
       VECTOR = 16,
       LEAST_ROW = 1024,   /* what is added stays small next to it */
       LEAST_WHOLE = 65536 /* of a tensor that is worth it */
};

typedef struct pitches {
  lw_tensor_t **of;       /* by value: how it would lie; NULL: as it is declared */
  uint32_t *maker;        /* by value: the one whose place makes it lie so */
  uint8_t *is_bad;        /* by maker: something else reads it who must not */
  uint8_t *is_multiplied; /* by maker: by a product, or it is one */
} pitches_t;

static int is_product(const lw_build_t *b) { return lw_op(b)->lower == lw_lowerings_products.lower; }

/* The node's result with rows further apart. 0: it needs none. */
static int with_pitch(const lw_build_t *b, lw_tensor_t *out) {
  const int64_t align = b->machine->target->row_nbytes;
  if (b->node->n_results != 1) return 0;
  *out = *lw_type(b, 0);
  const int64_t size = (int64_t)aot_dtype_size(out->dtype), row = out->rank ? out->sizes[out->rank - 1] * size : 0;
  if (!out->dtype || out->rank < 2 || row < LEAST_ROW || row % VECTOR == 0 || lw_numel(out) * size < LEAST_WHOLE ||
      out->offset || !lw_is_contiguous(out))
    return 0;
  AOT_ASSERT(align > 0 && align % size == 0);
  int64_t stride = (row + align - 1) / align * align / size;
  for (int32_t d = out->rank - 2; d >= 0; stride *= out->sizes[d--]) out->strides[d] = stride;
  return 1;
}

static aot_status_t set(lw_build_t *b, pitches_t *p, uint32_t value, const lw_tensor_t *t, uint32_t maker) {
  AOT_ASSERT(value < b->n_values && maker <= value); /* views come after what they see */
  p->of[value] = lw_pool_alloc(b->pool, sizeof *t);
  if (!p->of[value]) return lw_no_memory(b->error, "for the schedule");
  *p->of[value] = *t;
  p->maker[value] = maker;
  return AOT_OK;
}

static aot_status_t see_operands(lw_build_t *b, pitches_t *p, int reads_rows) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->node->operand_begin;
  const int multiplies = is_product(b);
  lw_tensor_t view;
  for (uint32_t k = 0; k < b->node->n_operands; k++) {
    const uint32_t value = operands[k] - b->value_begin;
    if (operands[k] == AOT_NO_ID || !p->of[value]) continue;
    const uint32_t maker = p->maker[value];
    p->is_multiplied[maker] |= (uint8_t)multiplies;
    if (reads_rows) continue;
    if (lw_is_plain_view(b) && lw_arg_row(b, 0) == operands[k] && lw_see(b, p->of[value], &view))
      AOT_TRY(set(b, p, b->node->result_begin - b->value_begin, &view, maker));
    else p->is_bad[maker] = 1;
  }
  return AOT_OK;
}

/* Nodes in order, so that views of views are seen. */
static aot_status_t see_nodes(lw_build_t *b, pitches_t *p) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    lw_tensor_t t;
    b->node = &nodes[i];
    const int is_sum = lw_is_product_sum(b, i) || lw_is_region_sum(b, i) || lw_is_residual(b, i);
    const int goes_by_rows = !is_sum && (b->group[i] != LW_NONE || is_product(b));
    const uint32_t value = nodes[i].result_begin - b->value_begin;
    AOT_TRY(see_operands(b, p, goes_by_rows));
    if (!goes_by_rows || !with_pitch(b, &t) || b->places[value]) continue;
    AOT_TRY(lw_new_tensor(b, &t)); /* views are queried what they see of it; what no step uses takes no memory */
    AOT_TRY(set(b, p, value, &t, value));
    p->is_multiplied[value] = (uint8_t)is_product(b);
  }
  for (uint32_t i = 0; i < b->graph->n_outputs; i++) {
    const uint32_t value = outputs[i].value - b->value_begin;
    if (outputs[i].value != AOT_NO_ID && p->of[value]) p->is_bad[p->maker[value]] = 1;
  }
  return AOT_OK;
}

static void place_all(lw_build_t *b, const pitches_t *p) {
  for (uint32_t v = 0; v < b->n_values; v++)
    if (p->of[v] && p->maker[v] == v && !p->is_bad[v] && p->is_multiplied[v]) b->places[v] = p->of[v];
}

aot_status_t lw_find_pitches(lw_build_t *b) {
  const size_t n = (size_t)b->n_values + 1;
  if (!b->machine->target->row_nbytes || b->has_inplace_custom_kernels) return AOT_OK;
  pitches_t p = {calloc(n, sizeof *p.of), calloc(n, sizeof *p.maker), calloc(n, 1), calloc(n, 1)};
  aot_status_t status =
      p.of && p.maker && p.is_bad && p.is_multiplied ? see_nodes(b, &p) : lw_no_memory(b->error, "for the schedule");
  if (status == AOT_OK) place_all(b, &p);
  free(p.of);
  free(p.maker);
  free(p.is_bad);
  free(p.is_multiplied);
  return status;
}
