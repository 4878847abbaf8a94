/* Operators that own graphs, as the interpreter sees them: which graph runs, and with which operands. */
#ifndef REF_REGION_H
#define REF_REGION_H

#include <aot/snapshot.h>

#define RF_NO_REGION 0
#define RF_CALL 1  /* run the one graph */
#define RF_COND 2  /* run the first graph if the predicate (first argument) is true, else the second */
#define RF_SCAN 3  /* run the graph for each row of the second list; the first list is carried */
#define RF_WHILE 4 /* run the second graph as long as the first says so; the first list is carried */

int rf_region_kind(aot_str_t op_name);
uint32_t rf_n_regions(void); /* operators that own graphs and are run here */
const char *rf_region_name(uint32_t i);

/* The graph rows among the arguments: at most `capacity`, the count is returned. *out_after is the argument after
 * the last. */
uint32_t rf_region_graphs(const aot_snapshot_t *s, const aot_snap_node_t *n, uint32_t *out, uint32_t capacity,
                          uint32_t *out_after);

/* Operands of a region: the values and numbers among the arguments from `after` on. Returns how many; out may be NULL.
 * A value is its row, a number is AOT_NO_ID with its dimension in out_number. */
uint32_t rf_region_operands(const aot_snapshot_t *s, const aot_snap_node_t *n, uint32_t after, uint32_t *out,
                            int64_t *out_number);
uint32_t rf_region_length(const aot_snap_arg_t *a); /* how many of them an argument holds */

#endif
