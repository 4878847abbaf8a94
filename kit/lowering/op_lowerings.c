/* What a target has for an operator: a lowering of its own, a loop, a view, or its reference kernel alone. Looked up
 * once an operator of the program. */
#include "group_read.h"
#include "lower.h"

#include <aot/assert.h>

#include "kit/loops/loop.h"

lw_lower_fn lw_lowering_in(const lw_lowering_table_t *table, aot_str_t op) {
  if (table->has && table->has(op)) return table->lower;
  for (uint32_t r = 0; r < table->n_rows; r++)
    if (aot_str_eq(aot_str(table->rows[r].op), op)) return table->rows[r].lower;
  return NULL;
}

static void find_lowering(const lw_target_t *target, aot_str_t op, lw_op_t *out) {
  for (uint32_t t = 0; t < target->n_tables && !out->lower; t++) {
    out->lower = lw_lowering_in(target->tables[t], op);
    if (out->lower) out->goes_by_strides = target->tables[t]->goes_by_strides;
  }
}

int lw_has_lowering(const lw_target_t *target, aot_str_t op) {
  const lp_row_op_t *rows = lp_row_op_find(op);
  const rk_kernel_t *kernel = rk_find(op);
  lw_op_t own = {.lower = NULL};
  find_lowering(target, op, &own);
  return own.lower || lp_op_find(op) || (rows && (!rows->class_at || target->classes)) || lw_read_find(op) ||
         lw_write_find(op) || (kernel && rk_is_view(kernel));
}

aot_status_t lw_find_ops(lw_build_t *b) {
  const aot_snap_op_t *rows = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops);
  lw_op_t *ops = lw_pool_alloc(b->pool, ((uint64_t)b->s->ops.count + 1) * sizeof *ops);
  if (!ops) return lw_no_memory(b->error, "for the operators");
  for (uint32_t o = 1; o < b->s->ops.count; o++) {
    const aot_str_t name = aot_snap_text(b->s, rows[o].name);
    ops[o] = (lw_op_t){
        .kernel = rk_find(name),
        .loop = lp_op_find(name),
        .rows = lp_row_op_find(name),
        .read = lw_read_find(name),
        .write = lw_write_find(name),
    };
    find_lowering(b->machine->target, name, &ops[o]);
    AOT_ASSERT(!ops[o].read || !ops[o].write);
  }
  b->ops = ops;
  return AOT_OK;
}
