/* An operator out of its schema text; nothing here knows a host. */
#ifndef SCHEMA_OP_H
#define SCHEMA_OP_H

#include "kit/schema/schema.h"
#include <aot/ext/declare.h>

/* "ns::name.overload(..) -> .." becomes the operator ns.name.overload, without overload ns.name.default. Its flags
 * follow from the alias marks; NO_GRAD is set, as PyTorch differentiates nothing that has no derivative registered.
 * Memory comes from `memory`. AOT_E_INVALID with *out_error; AOT_E_EXHAUSTED. O(text) */
aot_status_t dc_declare(aot_str_t schema, const sch_memory_t *memory, aot_op_desc_t *out,
                        aot_declare_error_t *out_error);

#endif
