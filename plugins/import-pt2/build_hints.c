/* The value that a symbol has while the program is compiled: the traced one where the archive records it. A number that
 * only a run reports has none; where the archive asserts what a sum of such numbers is, they share it, so that rules
 * which compare sizes by these values (split_with_sizes) find what the assertion says:
 *
 *     _assert_scalar(Eq(u0 + u1 + u2, 24))        u0, u1, u2 = 8
 */
#include "builder.h"
#include "sympy_text.h"
#include <string.h>

#define MAX_TERMS 256

static aot_status_t note(p2_builder_t *b, aot_str_t name, int64_t value) {
  AOT_TRY(p2_grow(b->env, (void **)&b->hints, b->n_hints, &b->hint_capacity, sizeof *b->hints));
  const aot_status_t status = p2_names_add(b->env, &b->hint_index, name, b->n_hints, NULL);
  if (status == AOT_E_EXISTS) return AOT_OK;
  b->hints[b->n_hints++] = value;
  return status;
}

static aot_status_t note_traced(p2_builder_t *b, const p2_dim_t *d) {
  aot_str_t name;
  return d->text.size && d->has_hint && p2_expr_is_symbol(d->text, &name) ? note(b, name, d->value) : AOT_OK;
}

/* ---- what is asserted of a sum ---- */

/* The terms of a sum that have no value yet; the others are added up by the reader. */
typedef struct equation {
  const p2_builder_t *b;
  aot_str_t terms[MAX_TERMS];
  uint32_t n;
  int64_t constant; /* next to the terms, on their side */
  int64_t total;    /* the other side */
  int is_sum;       /* nothing else was met */
} equation_t;

static const int64_t unknown = AOT_DIM_SYM;

static aot_status_t term(void *self, aot_str_t name, int64_t *out) {
  equation_t *q = self;
  const uint32_t known = p2_names_find(&q->b->hint_index, name);
  *out = known == P2_NO_ENTRY ? unknown : q->b->hints[known];
  if (known != P2_NO_ENTRY) return AOT_OK;
  if (q->n == MAX_TERMS) q->is_sum = 0;
  else q->terms[q->n++] = name;
  return AOT_OK;
}

static aot_status_t combine(void *self, int32_t op, int64_t x, int64_t y, int64_t z, int64_t *out) {
  equation_t *q = self;
  const int open = AOT_DIM_IS_SYM(x) || AOT_DIM_IS_SYM(y);
  const int64_t known = AOT_DIM_IS_SYM(x) ? y : x;
  (void)z;
  *out = unknown;
  if (op == AOT_EXPR_ADD && !open) *out = x + y;
  else if (op == AOT_EXPR_MUL && !open) *out = x * y;
  else if (op == AOT_EXPR_ADD) q->constant += AOT_DIM_IS_SYM(known) ? 0 : known;
  else if (op == AOT_EXPR_EQ && open && !AOT_DIM_IS_SYM(known)) q->total = known;
  else q->is_sum = 0;
  return AOT_OK;
}

static aot_status_t note_equality(p2_builder_t *b, aot_str_t text) {
  equation_t q = {.b = b, .is_sum = 1};
  const p2_expr_sink_t sink = {&q, term, combine, NULL};
  int64_t truth;
  AOT_TRY(p2_expr_read(b->env, text, &sink, &truth));
  const int64_t rest = q.total - q.constant;
  for (uint32_t i = 0; q.is_sum && rest >= 0 && i < q.n; i++)
    AOT_TRY(note(b, q.terms[i], rest / q.n + (i < (uint64_t)(rest % q.n))));
  return AOT_OK;
}

static aot_status_t note_asserted(p2_builder_t *b, const p2_graph_t *graph, const p2_node_t *n) {
  if (!p2_str_is(n->target, "torch.ops.aten._assert_scalar.default") || !n->n_inputs) return AOT_OK;
  const p2_argument_t *a = &n->inputs[0].arg;
  const uint32_t at = a->kind == P2_ARG_SYM_BOOL ? p2_names_find(&graph->sym_bool_index, a->u.s) : P2_NO_ENTRY;
  if (at == P2_NO_ENTRY) return AOT_OK;
  const aot_str_t text = graph->sym_bools[at].text;
  return p2_str_starts(text, "Eq") ? note_equality(b, text) : AOT_OK; /* Eq(..), Equality(..) */
}

aot_status_t p2_hints_prepare(p2_builder_t *b) {
  for (uint32_t g = 0; g < b->program->n_graphs; g++) {
    const p2_graph_t *graph = &b->program->graphs[g];
    for (uint32_t i = 0; i < graph->n_metas; i++)
      for (uint32_t k = 0; k < graph->metas[i].rank; k++) AOT_TRY(note_traced(b, &graph->metas[i].sizes[k]));
    for (uint32_t i = 0; i < graph->n_sym_ints; i++) AOT_TRY(note_traced(b, &graph->sym_ints[i]));
  }
  for (uint32_t g = 0; g < b->program->n_graphs; g++) {
    const p2_graph_t *graph = &b->program->graphs[g];
    for (uint32_t i = 0; i < graph->n_nodes; i++) AOT_TRY(note_asserted(b, graph, &graph->nodes[i]));
  }
  return AOT_OK;
}
