#include "transaction.h"

#include <aot/assert.h>

#include "observed_values.h"

void lw_begin(lw_build_t *b, lw_transaction_t *out) {
  lw_schedule_t *s = b->out;
  *out = (lw_transaction_t){.schedule = *s, .build = *b, .log_size = s->undo.size};
  if (s->watch) {
    out->n_watched_before = s->watch->n_before;
    out->n_watched_after = s->watch->n_after;
  }
  s->undo.n_open++;
  s->undo.n_storages = s->n_storages;
  if (b->machine->target->self_nbytes) lw_save(b, b->machine->self, b->machine->target->self_nbytes);
}

static void drop(lw_build_t *b, const lw_transaction_t *t, int is_failure) {
  const lw_build_t failed = *b;
  lw_schedule_t *s = b->out;
  AOT_ASSERT(s->n_steps >= t->schedule.n_steps && s->n_used >= t->schedule.n_used); /* lowerings append */
  AOT_ASSERT(s->n_storages >= t->schedule.n_storages);
  lw_undo(s, t->log_size, t->build.depth);
  const lw_schedule_t grown = *s;
  *s = t->schedule;
  s->pool = grown.pool;
  s->steps = grown.steps;
  s->step_capacity = grown.step_capacity;
  s->used = grown.used;
  s->used_capacity = grown.used_capacity;
  s->storages = grown.storages;
  s->storage_capacity = grown.storage_capacity;
  s->undo = grown.undo;
  s->is_incomplete = grown.is_incomplete;
  s->watch = grown.watch;
  if (s->watch) {
    s->watch->n_before = t->n_watched_before;
    s->watch->n_after = t->n_watched_after;
  }
  *b = t->build;
  b->n_regions = failed.n_regions;
  if (is_failure) b->node = failed.node; /* which its message names */
}

aot_status_t lw_end(lw_build_t *b, const lw_transaction_t *t, aot_status_t status) {
  lw_schedule_t *s = b->out;
  AOT_ASSERT(s->undo.n_open == t->schedule.undo.n_open + 1); /* the innermost ends first */
  AOT_ASSERT(status != AOT_OK || (b->depth == t->build.depth && b->graph == t->build.graph));
  AOT_ASSERT(s->undo.size >= t->log_size);
  if (s->is_incomplete && (status == AOT_OK || status == LW_DECLINED || status == LW_SPLIT))
    status = lw_no_memory(b->error, "for the schedule");
  if (status != AOT_OK) drop(b, t, status != LW_DECLINED && status != LW_SPLIT);
  s->undo.n_open = t->schedule.undo.n_open;
  s->undo.n_storages = t->schedule.undo.n_storages;
  if (!s->undo.n_open) s->undo.size = 0;
  return status;
}

aot_status_t lw_attempt(lw_build_t *b, lw_lower_fn lower) {
  lw_transaction_t t;
  lw_begin(b, &t);
  return lw_end(b, &t, lower(b));
}
