/* Levels and passes of a loop with reductions, and what is stored between passes.
 *
 * An instruction belongs to the row when all it reads does: reductions, loads that do not move along the row, numbers.
 * Its pass is the number of reductions that follow from each other on the longest way to it. A pass computes what its
 * reductions and stores need, all of it again, but for values that were expensive: those an earlier pass has stored.
 *
 * Scans stay within a pass, whose elements then come one after another.
 *
 * A sum across rows belongs to the pass that computes its terms; the rows' accumulators are the store's memory.
 *
 * Columns: where one pass is enough and rows lie across memory (gradients of a bias), the dimension that memory goes
 * along is the inner one, in tiles, with an accumulator for each of its elements. */
#include "loop_print.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <string.h>

/* Against a store and a load of one element in the first cache. */
enum { COST_OF_KEEPING = 4, COST_OF_SCAN = 1000 /* none is done twice */ };

/* The least that an access steps along the row; 0: it does not move. */
static int64_t row_step(const lp_loop_t *l, const lp_access_t *x) {
  int64_t least = 0;
  for (int32_t d = lp_row(l); d < l->rank; d++)
    if (x->strides[d] && (!least || x->strides[d] < least)) least = x->strides[d];
  return least;
}

/* Does a load change along the row? Drawn numbers do, whatever their strides. */
static int moves(const lp_loop_t *l, uint32_t load) {
  const lp_access_t *x = &l->accesses[load];
  AOT_ASSERT(!x->bounded || x->outside.kind != LP_LOAD || x->outside.index < load); /* whose `moves` is known */
  for (uint32_t i = 0; i < x->n_indices; i++) {
    AOT_ASSERT(x->indices[i].load < load);
    if (l->accesses[x->indices[i].load].moves) return 1;
  }
  if (x->bounded && x->outside.kind == LP_LOAD && l->accesses[x->outside.index].moves) return 1;
  return x->draws || row_step(l, x) != 0 || (x->bounded >> (l->rank - 1) & 1u);
}

/* A load whose index moves reads here and there. */
static int is_scattered(const lp_loop_t *l, const lp_arg_t *a) {
  if (a->kind != LP_LOAD) return 0;
  const lp_access_t *x = &l->accesses[a->index];
  for (uint32_t i = 0; i < x->n_indices; i++)
    if (l->accesses[x->indices[i].load].moves) return 1;
  return 0;
}

/* Of an instruction alone: draws cost, too, and places here and there. */
static uint32_t cost_of(const lp_loop_t *l, const lp_inst_t *inst) {
  uint32_t cost = (inst->scan ? COST_OF_SCAN : 0) + lp_text_cost(inst->text);
  for (uint32_t k = 0; k < inst->n_args; k++)
    cost += inst->args[k].kind == LP_DRAWN ? 16 : is_scattered(l, &inst->args[k]) ? 8 : 0;
  return cost;
}

/* What it takes to compute instruction k again within its row. */
static uint32_t cost_of_way(const lp_loop_t *l, uint32_t k) {
  uint8_t on_way[LP_INSTS] = {0};
  uint32_t cost = 0;
  on_way[k] = 1;
  for (uint32_t i = k + 1; i-- > 0;) {
    const lp_inst_t *inst = &l->insts[i];
    if (!on_way[i] || inst->of_row) continue;
    cost += cost_of(l, inst);
    for (uint32_t a = 0; a < inst->n_args; a++)
      if (inst->args[a].kind == LP_INST && !l->insts[inst->args[a].index].keep) on_way[inst->args[a].index] = 1;
  }
  return cost;
}

int lp_reduces_row(const lp_inst_t *inst) { return inst->reduce != LP_EACH && inst->reduce != LP_ACROSS; }

/* Scans go through a row one by one, and what is in their pass with them: what is worth vectors is computed in a
 * pass before or after. after_scan: by instruction, those of a scan's pass that need it. */
static void place(lp_loop_t *l, uint32_t k, uint8_t *after_scan) {
  lp_inst_t *inst = &l->insts[k];
  const int is_worth_vectors = !inst->scan && cost_of(l, inst) > COST_OF_KEEPING;
  inst->of_row = !inst->scan && !lp_reads(inst->text, LP_TK_PLACE, 0);
  inst->pass = 0;
  inst->keep = 0;
  for (uint32_t a = 0; a < inst->n_args; a++) {
    const lp_arg_t *arg = &inst->args[a];
    if (arg->kind == LP_DRAWN || (arg->kind == LP_LOAD && l->accesses[arg->index].moves)) inst->of_row = 0;
    if (arg->kind != LP_INST) continue;
    AOT_ASSERT(arg->index < k); /* whose pass is known */
    const lp_inst_t *from = &l->insts[arg->index];
    const int is_apart = (is_worth_vectors && after_scan[arg->index]) ||
                         (inst->scan && !from->of_row && cost_of_way(l, arg->index) > COST_OF_KEEPING);
    const uint32_t pass = from->pass + (lp_reduces_row(from) || is_apart);
    if (!from->of_row) inst->of_row = 0;
    if (pass > inst->pass) inst->pass = pass;
  }
  if (lp_reduces_row(inst)) inst->of_row = 1;
  after_scan[k] = inst->scan != LP_EACH;
  for (uint32_t a = 0; a < inst->n_args; a++)
    if (inst->args[a].kind == LP_INST && l->insts[inst->args[a].index].pass == inst->pass)
      after_scan[k] |= after_scan[inst->args[a].index];
}

uint32_t lp_store_pass(const lp_loop_t *l, uint32_t store) {
  const lp_inst_t *inst = &l->insts[l->accesses[store].inst];
  return inst->pass + (uint32_t)lp_reduces_row(inst);
}

int32_t lp_value_dtype(int32_t dtype) { return dtype == AOT_F16 || dtype == AOT_BF16 ? AOT_F32 : dtype; }

void lp_pass_members(const lp_loop_t *l, uint32_t pass, uint8_t out[LP_INSTS]) {
  AOT_ASSERT(l->n_insts <= LP_INSTS && pass < l->n_passes);
  memset(out, 0, LP_INSTS);
  for (uint32_t k = 0; k < l->n_insts; k++)
    out[k] = (lp_reduces_row(&l->insts[k]) || l->insts[k].keep) && l->insts[k].pass == pass;
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    const lp_inst_t *inst = &l->insts[l->accesses[s].inst];
    if (!l->accesses[s].of_row && !inst->of_row && inst->pass == pass) out[l->accesses[s].inst] = 1;
  }
  for (uint32_t k = l->n_insts; k-- > 0;) {
    if (!out[k]) continue;
    AOT_ASSERT(l->insts[k].pass <= pass); /* what it reads is there by then */
    for (uint32_t a = 0; a < l->insts[k].n_args; a++) {
      const lp_arg_t *arg = &l->insts[k].args[a];
      if (arg->kind != LP_INST) continue;
      const lp_inst_t *from = &l->insts[arg->index];
      if (!from->of_row && !(from->keep && from->pass < pass)) out[arg->index] = 1;
    }
  }
}

int lp_is_needed_later(const lp_loop_t *l, uint32_t k) {
  uint8_t members[LP_INSTS];
  for (uint32_t pass = l->insts[k].pass + 1; pass < l->n_passes; pass++) {
    lp_pass_members(l, pass, members);
    if (members[k]) return 1;
  }
  return 0;
}

/* One pass over rows whose elements lie further apart than the rows do: as the first load has it that moves along both,
 * or along the row alone. */
static int are_columns(const lp_loop_t *l) {
  int found = 0, columns = 0;
  const int32_t beside = lp_row(l) - 1;
  if (!l->reduced || beside < 0 || l->n_passes > 1) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == LP_ACROSS) return 0;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const int64_t step = row_step(l, &l->accesses[k]), aside = l->accesses[k].strides[beside];
    const int moves = step == 0 ? 0 : aside == 0 ? 1 : 2;
    if (l->accesses[k].draws) return 0;
    if (moves <= found || l->accesses[k].counts) continue;
    found = moves;
    columns = l->sizes[beside] > 1 && aside < step;
  }
  return columns;
}

void lp_schedule(lp_loop_t *l) {
  uint8_t after_scan[LP_INSTS];
  AOT_ASSERT(l->n_insts <= LP_INSTS && l->rank >= 1);
  l->n_passes = 1;
  l->n_kept = 0;
  for (uint32_t k = 0; k < l->n_loads; k++) l->accesses[k].moves = moves(l, k);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    place(l, k, after_scan);
    const uint32_t passes = l->insts[k].pass + (lp_reduces_row(&l->insts[k]) || !l->insts[k].of_row);
    if (passes > l->n_passes) l->n_passes = passes;
  }
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    const uint32_t pass = lp_store_pass(l, s);
    const lp_inst_t *inst = &l->insts[l->accesses[s].inst];
    if (inst->reduce == LP_ACROSS && inst->of_row) continue; /* added to once a row */
    if (!l->accesses[s].of_row && pass >= l->n_passes) l->n_passes = pass + 1;
  }
  AOT_ASSERT(l->n_passes <= l->n_insts + 1);
  l->columns = are_columns(l);
  for (uint32_t k = l->n_insts; k-- > 0 && l->n_passes > 1;) { /* from what is needed to what that needs */
    lp_inst_t *inst = &l->insts[k];
    const int can_be = !inst->of_row && inst->pass + 1 < l->n_passes;
    if (can_be && cost_of_way(l, k) > COST_OF_KEEPING && lp_is_needed_later(l, k)) inst->keep = ++l->n_kept;
  }
}

uint64_t lp_keep_size(const lp_loop_t *l, uint32_t keep) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].keep == keep) return aot_dtype_size(lp_value_dtype(l->insts[k].dtype));
  return 0;
}
