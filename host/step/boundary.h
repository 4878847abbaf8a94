/* The rules of a call (AOT_RULE_* of aot/graph.h), interpreted: what the run time does around a graph.
 *
 *     ENTRY_VIEW    leaf a looks into leaf b's storage, before the call and after it   (f(s[0:4], s[2:6]))
 *     ENTRY_SAME    leaf a is leaf b, also where the call reshapes it                  (f(x, x))
 *     COPY_BACK     leaf a <- its UPDATE output, element by element              (x.mul_(2))
 *     RESTRIDE      leaf a: same storage, new sizes, strides, offset            (x.t_())
 *     SAME_INPUT    output a is leaf b          VIEW_INPUT   output a looks into leaf b's storage
 *     SAME_OUTPUT   output a is output b        VIEW_OUTPUT  output a looks into output b's storage
 *     VIEW_BASE     output a looks into hidden base b
 *
 * In this order, so that an output that is a view of a mutated input shows the mutation, and the updated value
 * of a leaf has the leaf's own shape also where the call restrides it. An output rule may name an output that has a
 * rule itself; chains are followed. Linear in rules and elements. */
#ifndef AOTH_BOUNDARY_H
#define AOTH_BOUNDARY_H

#include <aot/graph.h>
#include <base/sink.h>
#include <step/tensor.h>

/* Rules here have numbers for dimensions: the caller has put in the symbols' values. */
typedef struct aoth_boundary {
  const aot_rule_t *rules;
  uint32_t n_rules;
  uint32_t n_leaves, n_outputs, n_bases;
  aoth_tensor_t *leaves;               /* by leaf id; RESTRIDE changes their geometry, COPY_BACK their elements */
  const aoth_tensor_t *const *updates; /* by leaf id: the UPDATE output; NULL: the graph has none */
  aoth_tensor_t *outputs;              /* by user output number; those with an output rule are filled in */
  const aoth_tensor_t *bases;          /* by number of the hidden base */
  aot_status_t (*copy)(void *self, const aoth_tensor_t *to, const aoth_tensor_t *from); /* wherever they lie */
  void *self;
  aoth_sink_t *sink;
} aoth_boundary_t;

/* Each complains about a rule that names what does not exist, or reaches outside a storage: AOT_E_CONTRACT. */
aot_status_t aoth_boundary_entry_views(const aoth_boundary_t *b); /* before restride */
aot_status_t aoth_boundary_entry_same(const aoth_boundary_t *b);  /* after it */
aot_status_t aoth_boundary_restride(const aoth_boundary_t *b);
aot_status_t aoth_boundary_copy_back(const aoth_boundary_t *b);
aot_status_t aoth_boundary_outputs(const aoth_boundary_t *b);

/* The rule's geometry over the storage of a tensor, which it need not stay inside of. */
aoth_tensor_t aoth_rule_view(const aot_rule_t *r, const aoth_tensor_t *storage);
int aoth_rule_makes_output(int32_t kind); /* SAME_*, VIEW_* */

#endif
