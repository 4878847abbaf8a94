/* Loops: the body's steps are in the schedule once, with a jump back.
 *
 *     scan         results = init | rounds = 0 | B: row of each x | steps of the body | row of each y, carries copied
 *                  | jump to B while ++rounds < steps
 *     while_loop   results = init | B: steps of the condition | jump to end unless true | steps of the body | carries
 *                  copied | jump to B | end:
 *
 * What is carried is in the results' memory. Lifetimes are intervals over the list of steps: what the body reads from
 * outside and what it leaves in the results must last from before the loop until the jump back, so steps there are
 * reported to use it. */
#include "region_steps.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <string.h>

typedef struct loop {
  lw_value_t *operands; /* of the node */
  lw_value_t *inputs;   /* of the body: carries, a row of each x, more */
  lw_tensor_t *results, *outputs;
  uint32_t n_operands, n_carries, n_xs, n_results;
  int64_t *rounds; /* of a scan, that are over */
} loop_t;

static aot_status_t not_a_loop(lw_build_t *b, const char *what, uint32_t i) {
  return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "%s %u of a loop is not what its body has", what, i);
}

/* ---- a loop at its beginning ---- */

/* Lists: what is carried, then what is looped over; `first` is the first list's argument. */
static aot_status_t open(lw_build_t *b, uint32_t first, uint32_t n_xs, loop_t *l) {
  memset(l, 0, sizeof *l);
  l->n_results = b->node->n_results;
  l->n_carries = lw_arg(b, first)->kind == AOT_ARG_VALUES ? lw_arg(b, first)->n : 0;
  l->n_xs = n_xs;
  AOT_TRY(lw_region_operands(b, first, &l->operands, &l->n_operands));
  l->inputs = lw_pool_alloc(b->pool, ((uint64_t)l->n_operands + 1) * sizeof *l->inputs);
  l->results = lw_pool_alloc(b->pool, ((uint64_t)l->n_results + 1) * sizeof *l->results);
  l->outputs = lw_pool_alloc(b->pool, ((uint64_t)l->n_results + 1) * sizeof *l->outputs);
  if (!l->inputs || !l->results || !l->outputs) return lw_no_memory(b->error, "for a loop");
  memcpy(l->inputs, l->operands, l->n_operands * sizeof *l->inputs);
  if (l->n_carries > l->n_results) return not_a_loop(b, "the number of results,", l->n_results);
  for (uint32_t r = 0; r < l->n_results; r++) AOT_TRY(lw_result(b, r, &l->results[r]));
  for (uint32_t i = 0; i < l->n_carries; i++) {
    AOT_TRY(lw_copy_result(b, i, &l->results[i], &l->operands[i].t));
    l->inputs[i].t = l->results[i];
  }
  return AOT_OK;
}

/* The body's carries become those of the next step. One may be where another one is still read: those go by a copy. */
static aot_status_t carry(lw_build_t *b, const loop_t *l) {
  for (uint32_t i = 0; i < l->n_carries; i++) {
    lw_tensor_t *from = &l->outputs[i];
    int is_old = 0;
    for (uint32_t k = 0; k < l->n_carries; k++)
      is_old |= from->storage != LW_NONE && from->storage == l->results[k].storage;
    if (!is_old || (from->storage == l->results[i].storage && lw_same_geometry(from, &l->results[i]))) continue;
    lw_tensor_t aside = *from;
    lw_result_geometry(&aside);
    AOT_TRY(lw_new_tensor(b, &aside));
    AOT_TRY(lw_copy(b, &aside, from));
    *from = aside;
  }
  for (uint32_t i = 0; i < l->n_carries; i++)
    if (l->outputs[i].storage == LW_NONE || l->outputs[i].storage != l->results[i].storage)
      AOT_TRY(lw_copy_result(b, i, &l->results[i], &l->outputs[i]));
  return AOT_OK;
}

/* Back to `begin`. */
static aot_status_t jump_back(lw_build_t *b, const loop_t *l, uint32_t begin, lw_jump_t **out) {
  AOT_TRY(lw_add_jump(b, NULL, out));
  (*out)->target = begin;
  AOT_ASSERT(begin < b->out->n_steps);
  for (uint32_t i = 0; i < l->n_operands; i++)
    if (l->operands[i].kind == AOT_TYPE_TENSOR) lw_use_read(b, &l->operands[i].t);
  for (uint32_t r = 0; r < l->n_results; r++) lw_use(b, &l->results[r]);
  return AOT_OK;
}

/* ---- scan ---- */

static lw_tensor_t row_of(const lw_tensor_t *t) {
  AOT_ASSERT(t->rank >= 1);
  lw_tensor_t row = *t;
  row.rank--;
  memmove(row.sizes, row.sizes + 1, (size_t)row.rank * sizeof *row.sizes);
  memmove(row.strides, row.strides + 1, (size_t)row.rank * sizeof *row.strides);
  return row;
}

static aot_status_t lower_rows(lw_build_t *b, loop_t *l) {
  for (uint32_t i = l->n_carries; i < l->n_carries + l->n_xs; i++) {
    const lw_tensor_t *x = &l->operands[i].t, from = row_of(x);
    lw_tensor_t *row = &l->inputs[i].t;
    *row = from;
    lw_result_geometry(row);
    AOT_TRY(lw_new_tensor(b, row));
    AOT_TRY(lw_copy_moving(b, row, 0, &from, x->strides[0], l->rounds));
  }
  return AOT_OK;
}

static aot_status_t keep_ys(lw_build_t *b, const loop_t *l) {
  for (uint32_t r = l->n_carries; r < l->n_results; r++) {
    const lw_tensor_t *y = &l->outputs[r], row = row_of(&l->results[r]);
    if (y->dtype != row.dtype || !lw_same_sizes(y, &row) || (lw_numel(y) > 0 && y->storage == LW_NONE))
      return not_a_loop(b, "result", r);
    AOT_TRY(lw_copy_moving(b, &row, l->results[r].strides[0], y, 0, l->rounds));
  }
  return AOT_OK;
}

typedef struct begin_step {
  int64_t *rounds;
} begin_step_t;

static aot_status_t run_begin(const lw_frame_t *f, void *payload) {
  (void)f;
  *((begin_step_t *)payload)->rounds = 0;
  return AOT_OK;
}

static aot_status_t count_rounds(lw_build_t *b, loop_t *l) {
  begin_step_t *p;
  LW_STEP(b, run_begin, p);
  lw_depends_on_run(b);
  l->rounds = p->rounds = lw_pool_alloc(b->pool, sizeof *p->rounds);
  return p->rounds ? AOT_OK : lw_no_memory(b->error, "for a loop");
}

/* Every x and every y has a row for each step. */
static aot_status_t count_steps(lw_build_t *b, const loop_t *l, int64_t *out) {
  *out = 0;
  for (uint32_t i = l->n_carries; i < l->n_carries + l->n_xs; i++) {
    const lw_value_t *x = &l->operands[i];
    if (x->kind != AOT_TYPE_TENSOR || x->t.rank < 1 || (i > l->n_carries && x->t.sizes[0] != *out))
      return not_a_loop(b, "operand", i);
    *out = x->t.sizes[0];
  }
  for (uint32_t r = l->n_carries; r < l->n_results; r++)
    if (l->results[r].rank < 1 || l->results[r].sizes[0] != *out) return not_a_loop(b, "result", r);
  return AOT_OK;
}

/* scan(body, init, xs, more) */
static aot_status_t lower_scan(lw_build_t *b) {
  const aot_snap_arg_t *body = lw_arg(b, 0), *xs = lw_arg(b, 2);
  int64_t steps;
  lw_jump_t *back;
  loop_t l;
  if (body->kind != AOT_ARG_GRAPH) return not_a_loop(b, "argument", 0);
  AOT_TRY(open(b, 1, xs->kind == AOT_ARG_VALUES ? xs->n : 0, &l));
  AOT_TRY(count_steps(b, &l, &steps));
  if (steps == 0) return AOT_OK;
  AOT_TRY(count_rounds(b, &l));
  /* rows of earlier steps outlive a body's begin */
  for (uint32_t r = l.n_carries; r < l.n_results; r++) lw_use(b, &l.results[r]);
  const uint32_t begin = b->out->n_steps;
  AOT_TRY(lower_rows(b, &l));
  AOT_TRY(lw_lower_region(b, (uint32_t)body->i, l.inputs, l.n_operands, l.outputs, l.n_results));
  AOT_TRY(keep_ys(b, &l));
  AOT_TRY(carry(b, &l));
  AOT_TRY(jump_back(b, &l, begin, &back));
  back->rounds = l.rounds;
  back->most = steps;
  return AOT_OK;
}

/* ---- while_loop ---- */

/* while_loop(cond, body, carried, more) */
static aot_status_t lower_while(lw_build_t *b) {
  const aot_snap_arg_t *cond = lw_arg(b, 0), *body = lw_arg(b, 1);
  lw_tensor_t said;
  lw_jump_t *out, *back;
  loop_t l;
  if (cond->kind != AOT_ARG_GRAPH || body->kind != AOT_ARG_GRAPH) return not_a_loop(b, "argument", 0);
  AOT_TRY(open(b, 2, 0, &l));
  const uint32_t begin = b->out->n_steps;
  AOT_TRY(lw_lower_region(b, (uint32_t)cond->i, l.inputs, l.n_operands, &said, 1));
  if (!said.dtype || lw_numel(&said) != 1) return not_a_loop(b, "the condition, output", 0);
  AOT_TRY(lw_add_jump(b, &said, &out));
  AOT_TRY(lw_lower_region(b, (uint32_t)body->i, l.inputs, l.n_operands, l.outputs, l.n_results));
  AOT_TRY(carry(b, &l));
  AOT_TRY(jump_back(b, &l, begin, &back));
  out->target = b->out->n_steps;
  return AOT_OK;
}

static const lw_lowering_t rows[] = {{"higher_order.scan", lower_scan}, {"higher_order.while_loop", lower_while}};
const lw_lowering_table_t lw_lowerings_loops = LW_TABLE(rows);
