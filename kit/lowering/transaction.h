/* What a lowering appends and changes, as one transaction: committed, or dropped as if the lowering had never run.
 *
 *     lw_begin(b, &t);
 *     status = lw_end(b, &t, lower(b));     LW_DECLINED, LW_SPLIT, failures: nothing of it remains
 *
 * Code that tries one lowering after another opens one around each that may decline. A transaction covers
 *
 *     lw_schedule_t        all of it: steps, what they use, storages, counters; a field added later is covered, too
 *     lw_build_t           all of it but n_regions, which bounds damaged programs; after a failure, and not the node at
 *     hand values               by lw_set_value, the one way to change one; storages: by what changes them (lower.c)
 *     lw_machine_t.self    the lw_target_t.self_nbytes that the target has it begin with
 *     all else             what lw_save was called for before it was changed
 *
 * Pool memory, and what lw_own was given, lives on with the schedule. Transactions nest. A write-ahead undo log, as
 * databases have it (Mohan et al.: ARIES, TODS 17(1), 1992): old bytes are appended before a change, and copied back in
 * reverse. It is empty again after the outermost transaction. */
#ifndef LW_TRANSACTION_H
#define LW_TRANSACTION_H

#include "lower.h"

typedef struct lw_transaction {
  lw_schedule_t schedule; /* as they were at the begin */
  lw_build_t build;
  uint64_t log_size;
  uint32_t n_watched_before, n_watched_after;
} lw_transaction_t;

void lw_begin(lw_build_t *b, lw_transaction_t *out);
/* Commits if status is AOT_OK, drops otherwise, and returns status; AOT_E_EXHAUSTED if memory for records ran out. */
aot_status_t lw_end(lw_build_t *b, const lw_transaction_t *t, aot_status_t status);
/* lower(b) in a transaction of its own. */
aot_status_t lw_attempt(lw_build_t *b, lw_lower_fn lower);

/* ---- the undo log (undo_log.c) ---- */
/* Copies back what was saved since the log had that size, of memory that lives as long as a graph of that depth: values
 * of a region are gone when the region is lowered. */
void lw_undo(lw_schedule_t *s, uint64_t until, uint32_t depth);
/* Before a write to memory that lives as long as the schedule. */
void lw_save(lw_build_t *b, void *at, uint64_t nbytes);
void lw_save_storage(lw_build_t *b, uint32_t storage);
/* The value's tensor becomes t. */
void lw_set_value(lw_build_t *b, lw_value_t *v, const lw_tensor_t *t);

#endif
