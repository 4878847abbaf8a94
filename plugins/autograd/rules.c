/* rules.def as tables, resolved to a program's operator ids once a run. */
#include "rules.h"

#include "formula.h"
#include "outside.h"

static const ag_rule_t RULES[] = {
#define FORMULA(op, text) {op, text, NULL, NULL},
#define CODE(op, covers, fn) {op, NULL, covers, fn},
#define ONLY_IF(op, when)
#define FIRST_RESULT(op)
#include "rules.def"
#undef FORMULA
#undef CODE
#undef ONLY_IF
#undef FIRST_RESULT
};

static const struct {
  const char *op;
  ag_when_fn when;  /* NULL: a FIRST_RESULT row */
} MARKS[] = {
#define FORMULA(op, text)
#define CODE(op, covers, fn)
#define ONLY_IF(op, when) {op, when},
#define FIRST_RESULT(op) {op, NULL},
#include "rules.def"
#undef FORMULA
#undef CODE
#undef ONLY_IF
#undef FIRST_RESULT
};

uint32_t ag_n_rules(void) { return (uint32_t)(sizeof RULES / sizeof *RULES); }
const ag_rule_t *ag_rule_at(uint32_t i) { return &RULES[i]; }

/* Bits of the arguments that a list "input weight bias" names. */
static uint64_t covered_by(ag_t *a, const char *names) {
  uint64_t bits = 0;
  while (*names) {
    size_t size = strcspn(names, " ");
    int variadic = size == 3 && memcmp(names, "...", 3) == 0;
    uint32_t i = variadic ? a->desc->n_args - 1 : ag_index(a, names, size);
    if (variadic) bits |= ~UINT64_C(0) << i;
    else if (i == AG_NO_ARG)
      ag_fail(a, "this is an error of the derivative rule", "%.*s has no argument '%.*s'", (int)a->desc->name.size,
              a->desc->name.data, (int)size, names);
    else bits |= UINT64_C(1) << i;
    names += size;
    names += *names == ' ';
  }
  return bits;
}

void ag_bind(ag_t *a, ag_bound_t *out) {
  uint32_t i;
  for (i = 0; i < ag_n_rules(); i++) {
    aot_op_t op = a->host->graph->op_find(a->prog, aot_str(RULES[i].op));
    if (op.id == AOT_NO_ID) continue;
    a->desc = a->host->graph->op_desc(a->prog, op);
    a->info.n_args = a->desc->n_args;
    out[op.id].rule = &RULES[i];
    if (RULES[i].formula) ag_formula_check(a, RULES[i].formula, &out[op.id].covered);
    else out[op.id].covered = covered_by(a, RULES[i].covers);
  }
  for (i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
    aot_op_t op = a->host->graph->op_find(a->prog, aot_str(MARKS[i].op));
    if (op.id == AOT_NO_ID) continue;
    if (MARKS[i].when) out[op.id].when = MARKS[i].when;
    else out[op.id].first_only = 1;
  }
  ag_bind_outside(a, out);
}

void ag_apply(ag_t *a, const ag_bound_t *b) {
  if (b->outside) ag_apply_outside(a, b->outside);
  else if (b->rule->formula) ag_formula_apply(a, b->rule->formula);
  else b->rule->code(a);
}
