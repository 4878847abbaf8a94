/* Instructions that compute the same, of several operators over the same rows: a loss and its derivative have one
 * maximum, one exponential and one sum. Local value numbering (Cocke, Schwartz 1970), by comparison: a loop has
 * LP_INSTS instructions at most. */
#include "loop.h"

#include <aot/assert.h>
#include <string.h>

static const lp_arg_t *arg_of(const lp_inst_t *inst, const lp_token_t *t) {
  AOT_ASSERT(t->kind == LP_TK_STEP ? t->index < LP_STEPS : t->kind == LP_TK_ARG && t->index < LP_ARGS);
  return &inst->args[t->index + (t->kind == LP_TK_STEP ? LP_ARGS : 0)];
}

static int same_arg(const lp_arg_t *a, const lp_arg_t *b) {
  if (a->kind != b->kind) return 0;
  if (a->kind == LP_FLOAT) return memcmp(&a->f, &b->f, sizeof a->f) == 0; /* 0 and -0 differ */
  return a->kind == LP_INT || a->kind == LP_BOOL ? a->i == b->i : a->index == b->index;
}

static int is_name(const lp_token_t *t) { return t->kind == LP_TK_ARG || t->kind == LP_TK_STEP; }

/* Templates that read the same, whatever they call it. */
static int same_text(const lp_inst_t *a, const lp_inst_t *b) {
  const char *at_a = a->text, *at_b = b->text;
  lp_token_t s, t;
  for (;;) {
    const int is_more = lp_token(&at_a, &s);
    if (lp_token(&at_b, &t) != is_more || is_name(&s) != is_name(&t)) return 0;
    if (!is_more) return 1;
    if (is_name(&s) ? !same_arg(arg_of(a, &s), arg_of(b, &t)) : s.size != t.size || memcmp(s.text, t.text, s.size) != 0)
      return 0;
  }
}

static int is_equal(const lp_inst_t *a, const lp_inst_t *b) {
  return a->compute == b->compute && a->dtype == b->dtype && a->reduce == b->reduce && a->scan == b->scan &&
         same_text(a, b);
}

void lp_join_equal(lp_loop_t *l) {
  uint32_t as[LP_INSTS], n = 0; /* by instruction: what it is now */
  AOT_ASSERT(l->n_insts <= LP_INSTS);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    lp_inst_t *inst = &l->insts[n];
    if (n != k) *inst = l->insts[k];
    for (uint32_t a = 0; a < inst->n_args; a++)
      if (inst->args[a].kind == LP_INST) inst->args[a].index = as[inst->args[a].index];
    as[k] = 0;
    while (as[k] < n && !is_equal(&l->insts[as[k]], inst)) as[k]++;
    n += as[k] == n;
    AOT_ASSERT(as[k] <= k && n <= k + 1);
  }
  l->n_insts = n;
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) l->accesses[s].inst = as[l->accesses[s].inst];
}
