#include "lazy_bits.h"

#include "whose_memory.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* The steps that change bits. Each bit of the result is the exclusive or of the named bits of the operand, and one more
 * if flipped. Steps that are not here hand both on. */
typedef struct step {
  const char *name;
  uint32_t conj_of, neg_of, flips;
} step_t;

static const step_t handing_on = {"", AT_BIT_CONJ, AT_BIT_NEG, 0};
static const step_t steps[] = {
    {"aten.conj.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_CONJ},
    {"aten._conj.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_CONJ},
    {"aten.mH.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_CONJ},
    {"aten.matrix_H.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_CONJ},
    {"aten.adjoint.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_CONJ},
    {"aten._neg_view.default", AT_BIT_CONJ, AT_BIT_NEG, AT_BIT_NEG},
    {"aten.resolve_conj.default", 0, AT_BIT_NEG, 0},
    {"aten.resolve_neg.default", AT_BIT_CONJ, 0, 0},
    {"aten.real.default", 0, AT_BIT_NEG, 0},
    {"aten.imag.default", 0, AT_BIT_CONJ | AT_BIT_NEG, 0}, /* of a conjugate: the imaginary part, negated */
};

static const step_t *find_step(aot_str_t name) {
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    if (aot_str_eq(name, aot_str(steps[i].name))) return &steps[i];
  return &handing_on;
}

/* The operand that the result of the node is, or is a view of; none if it has memory of its own. */
static aot_status_t memory_of(const aot_host_t *host, aot_prog_t *prog, const aot_node_info_t *n, uint32_t result,
                              aot_value_t *out) {
  uint32_t *memory = calloc((size_t)n->n_results + 1, sizeof *memory);
  const aot_status_t status = memory ? at_whose_memory(host, prog, n, memory) : AOT_E_EXHAUSTED;
  *out = aot_no_value();
  if (status == AOT_OK && memory[result]) out->id = n->operands[memory[result] - 1];
  free(memory);
  return status;
}

static int is_complex(const aot_host_t *host, aot_prog_t *prog, aot_value_t value) {
  aot_type_t t;
  return host->graph->value_type(prog, value, &t) == AOT_OK && aot_dtype_is_complex(t.dtype);
}

aot_status_t at_carries_bit(const aot_host_t *host, aot_prog_t *prog, aot_value_t value, uint32_t bit, int *out) {
  uint32_t of = bit; /* the answer is the exclusive or of these bits of the value, and *out */
  *out = 0;
  while (of != 0 && value.id != AOT_NO_ID) {
    aot_node_info_t n = {.struct_size = sizeof n};
    const aot_node_t node = host->graph->value_def(prog, value);
    if (!is_complex(host, prog, value)) of &= ~(uint32_t)AT_BIT_CONJ;
    if (node.id == AOT_NO_ID || of == 0) return AOT_OK;
    AOT_TRY(host->graph->node_info(prog, node, &n));
    const step_t *step = find_step(host->graph->op_desc(prog, n.op)->name);
    AOT_TRY(memory_of(host, prog, &n, host->graph->value_index(prog, value), &value));
    if (of & step->flips) *out ^= 1;
    of = ((of & AT_BIT_CONJ) ? step->conj_of : 0) ^ ((of & AT_BIT_NEG) ? step->neg_of : 0);
  }
  return AOT_OK;
}

int at_is_unresolved(const at_infer_t *c) {
  const uint32_t bit = strstr(c->row->name, "neg") ? AT_BIT_NEG : AT_BIT_CONJ;
  if (c->n_args == 0 || c->args[0].kind != AOT_ARG_VALUE) return 0;
  return c->env->carries_bit(c->env->self, (uint32_t)c->args[0].u.i, bit);
}
