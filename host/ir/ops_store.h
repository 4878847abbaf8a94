/* Which opset owns an operator; included by host/ir only. */
#ifndef AOTH_OPS_STORE_H
#define AOTH_OPS_STORE_H

#include <ir/program.h>

typedef struct aoth_opset_ref {
  const aot_opset_t *self; /* the plugin's own table: what its functions take as first argument */
  aot_opset_t table;       /* imported copy: the functions to call */
  const char *name;        /* unit's id, for messages; borrowed */
} aoth_opset_ref_t;

const aoth_opset_ref_t *aoth_ops_owner(const aoth_ops_t *ops, uint32_t op, uint32_t *out_local);

#endif
