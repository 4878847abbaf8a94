/* Is a == b, a < b, a <= b? Yes, no, or unknown.
 *
 * The normal form and the ranges of symbols decide first (shapes.c). If they leave the answer open, it is what it was
 * at tracing, as PyTorch specialised the graph by it; but an unbacked symbol has no value at tracing, and its hint
 * decides nothing. Which expressions hold one is noted by row: from the leaves, whose symbols are backed, and upwards,
 * as children are older rows. O(rows + leaves) after leaves were made or removed, O(1) otherwise. */
#include <ir/dim_order.h>

#include <aot/assert.h>
#include <ir/program_store.h>
#include <kit/graph/snap_expr.h>
#include <stdlib.h>
#include <string.h>

static void reach(uint8_t *reached, int64_t dim) {
  if (AOT_DIM_IS_SYM(dim)) reached[AOT_DIM_EXPR(dim)] = 1;
}

static void reach_leaf(uint8_t *reached, const aot_type_t *t) {
  if (t->kind == AOT_TYPE_SYMINT || t->kind == AOT_TYPE_SYMBOOL) reach(reached, t->expr);
  if (t->kind != AOT_TYPE_TENSOR) return;
  for (int32_t d = 0; d < t->rank; d++) {
    reach(reached, t->sizes[d]);
    if (t->strides) reach(reached, t->strides[d]);
  }
  reach(reached, t->offset);
}

static int holds_unbacked(const aot_prog_t *p, int64_t dim) {
  AOT_ASSERT(!AOT_DIM_IS_SYM(dim) || AOT_DIM_EXPR(dim) < p->unbacked.n); /* noted: operands are older rows */
  return AOT_DIM_IS_SYM(dim) && p->unbacked.at[AOT_DIM_EXPR(dim)];
}

/* Notes the rows that are new. reached: the symbols of leaves, NULL: new symbols are of none. */
static void note_rows(aot_prog_t *p, const uint8_t *reached) {
  AOT_ASSERT(p->exprs.n <= p->unbacked.capacity);
  for (; p->unbacked.n < p->exprs.n; p->unbacked.n++) {
    const aot_expr_info_t *e = &p->exprs.at[p->unbacked.n].info;
    p->unbacked.at[p->unbacked.n] =
        (uint8_t)(e->op == AOT_EXPR_SYMBOL
                      ? !reached || !reached[p->unbacked.n]
                      : holds_unbacked(p, e->a) || holds_unbacked(p, e->b) || holds_unbacked(p, e->c));
  }
}

static int note_all(aot_prog_t *p) {
  uint8_t *reached = calloc((size_t)p->exprs.n + 1, 1);
  if (!reached) return aoth_no_memory(p, "marks of expressions", p->exprs.n), 0;
  for (uint32_t l = 1; l < p->leaves.n; l++) reach_leaf(reached, &p->leaves.at[l].type);
  for (uint32_t row = p->exprs.n; row-- > 0;) {
    const aot_expr_info_t *e = &p->exprs.at[row].info;
    if (!reached[row] || e->op == AOT_EXPR_SYMBOL) continue;
    reach(reached, e->a);
    reach(reached, e->b);
    reach(reached, e->c);
  }
  p->unbacked.n = 0;
  p->n_unbacked_leaves = p->leaves.n;
  note_rows(p, reached);
  free(reached);
  return 1;
}

int32_t aoth_dim_is_unbacked(aot_prog_t *p, int64_t dim) {
  if (!AOT_DIM_IS_SYM(dim) || !aoth_dim_is_valid(p, dim)) return 0;
  if (p->unbacked.n < p->exprs.n && !ROWS_ROOM(p->unbacked, p->exprs.n - p->unbacked.n))
    return aoth_no_memory(p, "marks of expressions", p->exprs.n), 0;
  if (p->n_unbacked_leaves == p->leaves.n) note_rows(p, NULL);
  else if (!note_all(p)) return 0;
  return holds_unbacked(p, dim);
}

int32_t aoth_dims_decide(aot_prog_t *p, int32_t op, int64_t a, int64_t b) {
  int64_t answer = 0;
  if (op != AOT_EXPR_EQ && op != AOT_EXPR_LT && op != AOT_EXPR_LE) return AOT_DIMS_UNKNOWN;
  if (!aoth_dim_is_valid(p, a) || !aoth_dim_is_valid(p, b)) return AOT_DIMS_UNKNOWN;
  if (a == b) return op != AOT_EXPR_LT;
  if (aoth_dim_find(p, op, a, b, 0, &answer) && !AOT_DIM_IS_SYM(answer)) return answer != 0;
  if (aoth_dim_is_unbacked(p, a) || aoth_dim_is_unbacked(p, b)) return AOT_DIMS_UNKNOWN;
  return sn_expr_apply(op, aoth_graph_dim_hint(p, a), aoth_graph_dim_hint(p, b), 0, &answer) && answer != 0;
}

uint64_t aoth_dim_text(aot_prog_t *p, int64_t dim, char *out, uint64_t capacity) {
  kit_text_t text = {0};
  if (aoth_dim_is_valid(p, dim)) aoth_dim_print(p, dim, &text);
  const uint64_t n = text.size, fits = !capacity ? 0 : n < capacity ? n : capacity - 1;
  if (fits) memcpy(out, text.data, fits);
  if (capacity) out[fits] = 0;
  kit_text_deinit(&text);
  return n;
}
