/* rules.def as tables, resolved to a program's operator ids once per run. */
#include "rules.h"

#include "formula.h"
#include "outside.h"

static const ag_rule_t RULES[] = {
#define FORMULA(op, text) {op, text, NULL, NULL},
#define CODE(op, covers, fn) {op, NULL, covers, fn},
#define ONLY_IF(op, when)
#define FIRST_RESULT(op)
#define PREPARED(op, prepare)
#include "rules.def"
#undef FORMULA
#undef CODE
#undef ONLY_IF
#undef FIRST_RESULT
#undef PREPARED
};

static const struct {
  const char *op;
  ag_when_fn when; /* both NULL: a FIRST_RESULT row */
  ag_prepare_fn prepare;
} MARKS[] = {
#define FORMULA(op, text)
#define CODE(op, covers, fn)
#define ONLY_IF(op, when) {op, when, NULL},
#define FIRST_RESULT(op) {op, NULL, NULL},
#define PREPARED(op, prepare) {op, NULL, prepare},
#include "rules.def"
#undef FORMULA
#undef CODE
#undef ONLY_IF
#undef FIRST_RESULT
#undef PREPARED
};

static const struct {
  const char *op;
  int32_t way;
  const char *formula; /* NULL: that for real numbers */
} COMPLEX_RULES[] = {
#define AS_IT_STANDS(op) {op, AG_COMPLEX_AS_IT_STANDS, NULL},
#define CONJUGATED(op) {op, AG_COMPLEX_CONJUGATED, NULL},
#define CONJUGATED_AS(op, text) {op, AG_COMPLEX_CONJUGATED, text},
#define COMPLEX_AS(op, text) {op, AG_COMPLEX_AS_IT_STANDS, text},
#include "complex_rules.def"
#undef AS_IT_STANDS
#undef CONJUGATED
#undef CONJUGATED_AS
#undef COMPLEX_AS
};

uint32_t ag_n_rules(void) { return (uint32_t)(sizeof RULES / sizeof *RULES); }
const ag_rule_t *ag_rule_at(uint32_t i) { return &RULES[i]; }

/* Bits of the arguments that a list "input weight bias" names. */
static uint64_t covered_by(em_t *a, const char *names) {
  uint64_t bits = 0;
  while (*names) {
    size_t size = strcspn(names, " ");
    int variadic = size == 3 && memcmp(names, "...", 3) == 0;
    uint32_t i = variadic ? a->desc->n_args - 1 : ag_index(a, names, size);
    if (variadic) bits |= ~UINT64_C(0) << i;
    else if (i == AG_NO_ARG)
      em_fail(a, AOT_E_INVALID, "this is an error of the derivative rule", "%.*s has no argument '%.*s'",
              (int)a->desc->name.size, a->desc->name.data, (int)size, names);
    else bits |= UINT64_C(1) << i;
    names += size;
    names += *names == ' ';
  }
  return bits;
}

static void bind_complex(em_t *a, ag_bound_t *out) {
  uint32_t i;
  for (i = 0; i < sizeof COMPLEX_RULES / sizeof *COMPLEX_RULES; i++) {
    aot_op_t op = a->host->graph->op_find(a->prog, aot_str(COMPLEX_RULES[i].op));
    if (op.id == AOT_NO_ID || !out[op.id].rule) continue;
    out[op.id].complex_way = COMPLEX_RULES[i].way;
    out[op.id].complex_formula = COMPLEX_RULES[i].formula;
    out[op.id].complex_covered = out[op.id].covered;
    if (!COMPLEX_RULES[i].formula) continue;
    a->desc = a->host->graph->op_desc(a->prog, op);
    a->info.n_args = a->desc->n_args;
    ag_formula_check(a, COMPLEX_RULES[i].formula, &out[op.id].complex_covered);
  }
}

void ag_bind(em_t *a, ag_bound_t *out) {
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
    else if (MARKS[i].prepare) out[op.id].prepare = MARKS[i].prepare;
    else out[op.id].first_only = 1;
  }
  bind_complex(a, out);
  ag_bind_outside(a, out);
}

static void apply(em_t *a, const ag_bound_t *b, const char *formula) {
  if (b->outside) {
    ag_apply_outside(a, b->outside);
    return;
  }
  if (!formula) formula = b->rule->formula;
  if (formula) ag_formula_apply(a, formula);
  else b->rule->code(a);
}

void ag_apply(em_t *a, const ag_bound_t *b) {
  if (!em_touches_complex(a)) {
    apply(a, b, NULL);
    return;
  }
  if (b->complex_way == AG_COMPLEX_CONJUGATED) ag_conjugate_begin(a);
  apply(a, b, b->complex_formula);
  if (b->complex_way == AG_COMPLEX_CONJUGATED) ag_conjugate_end(a);
}
