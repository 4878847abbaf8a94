/* snap_complex.c - see snap_complex.h. */
#include "snap_complex.h"
#include <aot/inline.h>

static int is_complex(const aot_snap_value_t *v) {
  return v->kind == AOT_TYPE_TENSOR && aot_dtype_is_complex(v->dtype);
}

int sn_node_is_complex(const aot_snapshot_t *s, const aot_snap_node_t *n) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  for (uint32_t r = 0; r < n->n_results; r++)
    if (is_complex(&values[n->result_begin + r])) return 1;
  for (uint32_t a = 0; a < n->n_args; a++) {
    if (args[a].kind == AOT_ARG_VALUE && is_complex(&values[args[a].i])) return 1;
    for (uint32_t k = 0; args[a].kind == AOT_ARG_VALUES && k < args[a].n; k++) {
      uint32_t v = operands[(uint64_t)args[a].i + k];
      if (v != AOT_NO_ID && is_complex(&values[v])) return 1;
    }
  }
  return 0;
}
