/* Are the types that a stage set those that its operators give?
 *
 * The journal says what was set: nodes made with types of their own, values given another type, nodes with an argument
 * or an operand changed. Their opsets infer again, and results are compared by kind, dtype, rank and sizes, and by
 * the encoding where an opset infers one; not by strides and offset: a result with its own memory has the layout that
 * its creator chose, a view that of its operand at run time. O(edits + rows), and the inferences; what they bring into
 * the program is undone. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/dim_order.h>
#include <ir/verifier.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparison {
  aoth_verifier_t *v;
  const int64_t *others; /* by symbol: a value that it may have besides the one at tracing */
  uint32_t n_others;
  uint32_t node, next;
} comparison_t;

/* Sizes that depend on data agree unless their ranges say otherwise: the declared one is checked when the program runs.
 * Others agree if they are one expression, or have one value at tracing and one where the inputs have other sizes. */
static int dims_agree(const comparison_t *c, int64_t declared, int64_t inferred) {
  aot_prog_t *p = c->v->p;
  if (declared == inferred) return 1;
  const int32_t equal = aoth_dims_decide(p, AOT_EXPR_EQ, declared, inferred);
  if (equal != 1) return equal == AOT_DIMS_UNKNOWN;
  if (aoth_dim_is_unbacked(p, declared) || aoth_dim_is_unbacked(p, inferred)) return 1;
  return aoth_dim_eval(p, declared, c->others, c->n_others) == aoth_dim_eval(p, inferred, c->others, c->n_others);
}

static int shapes_agree(const comparison_t *c, const aot_type_t *declared, const aot_type_t *inferred) {
  if (declared->kind != inferred->kind) return 0;
  if (declared->kind != AOT_TYPE_TENSOR) return 1;
  if (declared->dtype != inferred->dtype || declared->rank != inferred->rank) return 0;
  if ((inferred->encoding.id != NONE || inferred->memory) && !aoth_same_encoding(declared, inferred)) return 0;
  for (int32_t i = 0; i < declared->rank; i++)
    if (!dims_agree(c, declared->sizes[i], inferred->sizes[i])) return 0;
  return 1;
}

static void put_shape(aot_prog_t *p, const aot_type_t *t, kit_text_t *out) {
  if (t->kind != AOT_TYPE_TENSOR) {
    kit_text_f(out, "kind %d", (int)t->kind);
    return;
  }
  kit_text_f(out, "%s[", aot_dtype_name(t->dtype));
  for (int32_t i = 0; i < t->rank; i++) {
    if (i) kit_text_z(out, ", ");
    aoth_dim_print(p, t->sizes[i], out);
  }
  kit_text_z(out, "]");
  if (t->memory) kit_text_f(out, " memory %u", t->memory);
  if (t->encoding.id != NONE) kit_text_f(out, " encoding %.*s", STR_ARGS(p->encodings.at[t->encoding.id].name));
}

static aot_status_t compare_next(const aot_type_sink_t *sink, const aot_type_t *inferred) {
  comparison_t *c = sink->head.self;
  aot_prog_t *p = c->v->p;
  const uint32_t i = c->next++;
  if (i >= p->nodes.at[c->node].n_results) return AOT_OK; /* the count is compared at the end */
  const aot_type_t declared = *value_type_of(p, p->nodes.at[c->node].first_result + i);
  if (shapes_agree(c, &declared, inferred)) return AOT_OK;
  kit_text_t a = {0}, b = {0};
  put_shape(p, &declared, &a);
  put_shape(p, inferred, &b);
  aoth_verify_report(c->v, c->node, "verify.types", "result %u is declared %s, its operator gives %s", i,
                     a.data ? a.data : "", b.data ? b.data : "");
  kit_text_deinit(&a);
  kit_text_deinit(&b);
  return AOT_OK;
}

static void check_node(aoth_verifier_t *v, const int64_t *others, uint32_t n_others, uint32_t node) {
  const aoth_node_row_t *n = &v->p->nodes.at[node];
  const aot_op_t op = {n->op};
  comparison_t c = {v, others, n_others, node, 0};
  const aot_type_sink_t sink = {.head = {.struct_size = (uint32_t)sizeof sink, .self = &c}, .put = compare_next};
  if (!n->n_results) return;
  touch(v->p, node);
  v->p->asked_about = node;
  const aot_status_t status = aoth_infer_complete(v->p, op, n->args, n->n_args, &sink);
  v->p->asked_about = NONE;
  if (status == AOT_E_UNIMPLEMENTED) return; /* declared types are all there is */
  if (status != AOT_OK) aoth_verify_report(v, node, "verify.types", "its operator gives no types for these arguments");
  else if (c.next != v->p->nodes.at[node].n_results)
    aoth_verify_report(v, node, "verify.types", "%u results are declared, its operator gives %u",
                       v->p->nodes.at[node].n_results, c.next);
}

/* ---- other sizes ---- */

/* Symbols that are sizes of leaves get multiples of their hints, so that what divides the one divides the other, each
 * another, within their range. The rest, which data or sums report, keep their hints. O(symbols + leaves) */
static void choose_others(const aot_prog_t *p, int64_t *out) {
  for (uint32_t i = 0; i < p->symbols.n; i++) out[i] = p->symbols.at[i].hint;
  for (uint32_t l = 1; l < p->leaves.n; l++) {
    const aot_type_t *t = &p->leaves.at[l].type;
    for (int32_t d = 0; d < t->rank; d++) {
      if (!AOT_DIM_IS_SYM(t->sizes[d])) continue;
      const aot_expr_info_t *e = &p->exprs.at[AOT_DIM_EXPR(t->sizes[d])].info;
      if (e->op != AOT_EXPR_SYMBOL) continue;
      const aot_symbol_info_t *symbol = &p->symbols.at[e->a];
      const int64_t factor = 2 + e->a % 5;
      if (symbol->hint > 0 && symbol->hint <= symbol->max / factor) out[e->a] = symbol->hint * factor;
    }
  }
}

/* ---- what the stage set ---- */

typedef struct touched {
  aot_prog_t *p;
  unsigned char *nodes, *values; /* values: put where one of another type was */
} touched_t;

static int other_type(const aot_prog_t *p, uint32_t a, uint32_t b) {
  return a == NONE || b == NONE || value_type_of(p, a) != value_type_of(p, b); /* interned */
}

static void note_edit(touched_t *t, const aoth_edit_row_t *e) {
  const aot_prog_t *p = t->p;
  const uint32_t id = e->u[0];
  switch (e->kind) {
    case EDIT_NODE_CREATE: t->nodes[id] |= e->u[1] != 0; break;
    case EDIT_ARG_SET: t->nodes[id] = 1; break;
    case EDIT_OPERAND_SET: t->nodes[id] = 1; break;
    case EDIT_USES_REPLACE: t->values[e->u[1]] |= other_type(p, id, e->u[1]); break;
    case EDIT_TYPE_SET:
      if (p->values.at[id].def != NONE) t->nodes[p->values.at[id].def] = 1;
      t->values[id] = 1;
      break;
    default: break;
  }
}

static void note_users(touched_t *t, uint32_t value) {
  const aot_prog_t *p = t->p;
  for (uint32_t slot = p->values.at[value].first_use; slot != NONE; slot = p->slots.at[slot].next)
    if (!(p->slots.at[slot].owner & SLOT_OUTPUT)) t->nodes[p->slots.at[slot].owner] = 1;
}

aot_status_t aoth_verify_types(aot_prog_t *p) {
  const uint32_t n_edits = p->edits.n, n_nodes = p->nodes.n, n_values = p->values.n, n_symbols = p->symbols.n;
  int64_t *others = calloc((size_t)n_symbols + 1, sizeof *others);
  touched_t t = {p, calloc((size_t)n_nodes + 1, 1), calloc((size_t)n_values + 1, 1)};
  aoth_verifier_t v = {.p = p};
  aot_status_t status =
      t.nodes && t.values && others ? AOT_OK : aoth_no_memory(p, "the check of types", (uint64_t)n_nodes + n_values);
  if (status == AOT_OK) {
    for (uint32_t i = n_edits - (uint32_t)aoth_journal_count(p); i < n_edits; i++) note_edit(&t, &p->edits.at[i]);
    status = aoth_journal_begin(p);
  }
  if (status == AOT_OK) {
    choose_others(p, others);
    for (uint32_t i = 0; i < n_values; i++)
      if (t.values[i] && value_is_alive(p, i)) note_users(&t, i);
    for (uint32_t i = 0; i < n_nodes && !aoth_verify_full(&v); i++)
      if (t.nodes[i] && node_is_alive(p, i)) check_node(&v, others, n_symbols, i);
    aoth_journal_undo(p);
    AOT_ASSERT(p->edits.n == n_edits && p->nodes.n == n_nodes && p->values.n == n_values && p->symbols.n == n_symbols);
    status = v.n_bad ? AOT_E_CONTRACT : AOT_OK;
  }
  free(others);
  free(t.nodes);
  free(t.values);
  return status;
}
