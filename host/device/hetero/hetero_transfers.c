#include <device/hetero/hetero_call.h>

#include <aot/assert.h>

/* To the host's memory, on the queue that it comes from. What is at the address of an input on the host may yet be read
 * by parts there. */
static aot_status_t fetch(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m, const aoth_bound_move_t *b) {
  const aoth_lane_t *from = &x->lanes->lane[m->from_lane], *to = &x->lanes->lane[m->to_lane];
  if (from->is_host) return AOT_OK;
  AOT_ASSERT(b->staging || to->is_host);
  if (to->is_host && m->is_home) AOT_TRY(aoth_lanes_cross(x->lanes, m->to_lane, m->from_lane));
  aoth_lanes_noted(x->lanes, m->from_lane);
  return from->queue->device->read(from->queue->device, ctx, from->queue->queue,
                                   b->staging ? b->staging : (void *)(uintptr_t)b->to.address, b->from);
}

/* From there, on the queue of where it goes. */
static aot_status_t store(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m, const aoth_bound_move_t *b) {
  const aoth_lane_t *from = &x->lanes->lane[m->from_lane], *to = &x->lanes->lane[m->to_lane];
  if (to->is_host) return AOT_OK;
  aoth_lanes_noted(x->lanes, m->to_lane);
  if (from->is_host) x->pulled[m->to_lane] = to->n_put;
  return to->queue->device->write(to->queue->device, ctx, to->queue->queue, b->to,
                                  b->staging ? b->staging : (const void *)(uintptr_t)b->from.address);
}

static void count_moved(const aoth_parts_exe_t *x, const aoth_bound_move_t *b) {
  x->lanes->lane[0].queue->n_moved += b->from.nbytes;
}

aot_status_t aoth_parts_move_one(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m,
                                 const aoth_bound_move_t *b) {
  AOT_TRY(fetch(x, ctx, m, b));
  AOT_TRY(aoth_lanes_cross(x->lanes, m->from_lane, m->to_lane));
  AOT_TRY(store(x, ctx, m, b));
  count_moved(x, b);
  return AOT_OK;
}

/* What goes to a leaf's copy goes there when the leaf is another. */
static int is_due(aoth_parts_exe_t *x, const aoth_part_move_t *m) {
  return m->leaf == AOT_NO_ID || aoth_parts_memory_is_due(&x->memory, m->leaf, m->to_lane);
}

/* What is fetched is fetched before the first crossing. */
aot_status_t aoth_parts_move(const aot_bound_t *c, aot_ctx_t *ctx, uint32_t begin, uint32_t end) {
  aoth_parts_exe_t *x = c->exe;
  const aoth_part_move_t *moves = c->graph->moves;
  for (uint32_t m = begin; m < end; m++) {
    c->moves[m].is_due = c->moves[m].from.nbytes && is_due(x, &moves[m]);
    if (c->moves[m].is_due) AOT_TRY(fetch(x, ctx, &moves[m], &c->moves[m]));
  }
  for (uint32_t m = begin; m < end; m++)
    if (c->moves[m].is_due) AOT_TRY(aoth_lanes_cross(x->lanes, moves[m].from_lane, moves[m].to_lane));
  for (uint32_t m = begin; m < end; m++) {
    if (!c->moves[m].is_due) continue;
    AOT_TRY(store(x, ctx, &moves[m], &c->moves[m]));
    count_moved(x, &c->moves[m]);
  }
  return AOT_OK;
}
