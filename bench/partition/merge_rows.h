/* Common subexpressions of a dumped joint graph, merged as PyTorch does before it cuts: a mask or a cast that forward
 * and backward both compute is one value.
 *
 * Two rows are equal when operator, inputs (up to equality) and value are; the first stands for all. Never merged: what
 * draws random numbers, aten.empty, and what shares memory with an output. Rows hold no scalar arguments, so operators
 * that only these tell apart (two slices of one tensor) are not merged either.
 * Source: PyTorch's fx_graph_cse (torch/_functorch/compile_utils.py, 2.11). */
#ifndef BENCH_MERGE_ROWS_H
#define BENCH_MERGE_ROWS_H

#include "dump_row.h"

/* Rows that another stands for become JD_MERGED and read nothing; every other row reads what stands for its inputs,
 * each once, in its own inputs and in the JSON. 0, -2: no memory. O(text of the rows). */
int jd_merge_rows(json_t *rows, jd_row_t *row, uint32_t n_rows);

#endif
