/* Alias marks of a schema, evaluated for one node. */
#ifndef FZ_SCHEMA_MARKS_H
#define FZ_SCHEMA_MARKS_H

#include <aot/graph.h>
#include <aot/opset.h>

/* The operand that result i may share memory with, counted from 1; 0: none. */
uint32_t fz_aliased_operand(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t i);
int fz_writes_arg(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t arg); /* its condition included */

#endif
