/* NaNs and infinities: whether a tensor holds any, and whether a node has made them (aot.check-nan/1). */
#ifndef NF_NOT_FINITE_H
#define NF_NOT_FINITE_H

#include "rk.h"
#include <aot/snapshot.h>

#define NF_NAN 1
#define NF_INFINITY 2
/* for an operator's size and name, and what it has made */
#define NF_MADE "%.*s has made %s, and nothing that it reads holds one"

/* Which of both are among its elements, complex ones' parts included; t->data is the host's. Integers hold none. */
int nf_look(const rk_tensor_t *t);
/* What the node, at a row of the snapshot, has made: "NaN", "an infinity"; NULL: nothing that its operands did not
 * hold. operands, results: NF_* of all of them. What fills a tensor (a mask's -inf) or leaves it as memory was makes
 * nothing. */
const char *nf_made(const aot_snapshot_t *s, uint32_t node, int operands, int results);

#endif
