/* The functional form of a writing operator: the opset's form, or the operator on copies.
 *
 *     mylib.add_one_out(x, out)   ->   new = aot.auto_functionalized(@mylib.add_one_out, x, out)
 *
 * Results of aot.auto_functionalized: the operator's own (without written arguments), then the new value of each
 * present written operand in argument order, list elements one by one. It changes nothing. A backend copies the written
 * operands and runs the kernel on the copies, or on the originals if that is unobservable. After PyTorch's
 * auto_functionalized. */
#ifndef FZ_AUTO_FUNCTIONAL_H
#define FZ_AUTO_FUNCTIONAL_H

#include "rewriting.h"

/* As aot_edit_api_t.functional_form, except that absent written operands (AOT_NO_ID) have no entry in out_written.
 * `original`: the node's operands before they were refreshed, for what they alias. *out_is_auto: it runs on copies. */
aot_status_t fz_functional_form(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const uint32_t *original,
                                aot_value_t *out_results, aot_value_t *out_written, int *out_is_auto);

#endif
