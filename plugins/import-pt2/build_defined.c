/* build_defined.c - symbols that a shape rule determines.
 *
 * PyTorch brings in a symbol where it does not want to decide a size: x[:u0] is recorded as [u1]. The shape rule has an
 * expression for it, min(max(u0, 0), n), and from then on the symbol is a name for that. So only what really depends
 * on data, nonzero or item, has a symbol of its own. */
#include "builder.h"
#include "sympy_text.h"
#include <aot/ext/trial.h>
#include <aot/inline.h>
#include <string.h>

static int is_new_symbol(p2_builder_t *b, const p2_dim_t *d, aot_str_t *out_name) {
  return d->text.size && p2_expr_is_symbol(d->text, out_name) &&
         p2_names_find(&b->symbol_index, *out_name) == P2_NO_ENTRY;
}

/* The recorded type of result i of the node, lists flattened; NULL: it is no tensor, or has none. */
static const p2_meta_t *recorded_result(const p2_scope_t *s, const p2_node_t *n, uint32_t i) {
  for (uint32_t k = 0; k < n->n_outputs; k++) {
    const p2_argument_t *a = &n->outputs[k];
    const uint32_t n_here = a->kind == P2_ARG_TENSORS ? a->n : 1;
    if (i >= n_here) {
      i -= n_here;
      continue;
    }
    if (a->kind != P2_ARG_TENSORS && a->kind != P2_ARG_TENSOR) return NULL;
    const uint32_t at = p2_names_find(&s->graph->meta_index, a->kind == P2_ARG_TENSOR ? a->u.s : a->u.names[i]);
    return at == P2_NO_ENTRY ? NULL : &s->graph->metas[at];
  }
  return NULL;
}

static uint32_t n_recorded(const p2_node_t *n) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < n->n_outputs; k++) count += n->outputs[k].kind == P2_ARG_TENSORS ? n->outputs[k].n : 1;
  return count;
}

static int has_new_symbols(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n) {
  aot_str_t name;
  for (uint32_t i = 0; i < n_recorded(n); i++) {
    const p2_meta_t *m = recorded_result(s, n, i);
    for (uint32_t d = 0; m && d < m->rank; d++)
      if (is_new_symbol(b, &m->sizes[d], &name) || is_new_symbol(b, &m->strides[d], &name)) return 1;
    if (m && is_new_symbol(b, &m->offset, &name)) return 1;
  }
  return 0;
}

static aot_status_t define(p2_builder_t *b, const p2_dim_t *recorded, int64_t inferred) {
  aot_str_t name;
  if (!is_new_symbol(b, recorded, &name)) return AOT_OK;
  AOT_TRY(p2_grow(b->env, (void **)&b->symbols, b->n_symbols, &b->symbol_capacity, sizeof *b->symbols));
  b->symbols[b->n_symbols].name = name;
  b->symbols[b->n_symbols].dim = inferred;
  return p2_names_add(b->env, &b->symbol_index, name, b->n_symbols++, NULL);
}

static aot_status_t define_of_result(p2_builder_t *b, const p2_meta_t *m, const aot_type_t *inferred) {
  if (inferred->kind != AOT_TYPE_TENSOR || (uint32_t)inferred->rank != m->rank) return AOT_OK;
  for (uint32_t d = 0; d < m->rank; d++) AOT_TRY(define(b, &m->sizes[d], inferred->sizes[d]));
  for (uint32_t d = 0; d < m->rank && inferred->strides; d++) AOT_TRY(define(b, &m->strides[d], inferred->strides[d]));
  return define(b, &m->offset, inferred->offset);
}

/* Does the shape rule bring in symbols of its own, as those of nonzero and of an index by a mask do? */
static aot_status_t rule_makes_symbols(p2_builder_t *b, aot_op_t op, const aot_arg_t *args, uint32_t n_args, int *out) {
  const aot_ext_trial_t *trial = aot_ext(&b->host->head, AOT_EXT_TRIAL);
  const uint32_t n_symbols = b->host->graph->n_symbols(b->prog);
  p2_types_t inferred;
  int known = 0;
  *out = 1;
  if (!trial) return AOT_OK;
  AOT_TRY(trial->begin(trial, b->ctx, b->prog));
  const aot_status_t status = p2_infer(b, op, args, n_args, &inferred, &known);
  *out = !known || b->host->graph->n_symbols(b->prog) != n_symbols;
  AOT_TRY(trial->undo(trial, b->ctx, b->prog));
  return status;
}

aot_status_t p2_define_symbols(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, aot_op_t op,
                               const aot_arg_t *args, uint32_t n_args) {
  p2_types_t inferred;
  int known = 0, makes_symbols = 0;
  if (!has_new_symbols(b, s, n)) return AOT_OK;
  AOT_TRY(rule_makes_symbols(b, op, args, n_args, &makes_symbols));
  if (makes_symbols) return AOT_OK;
  AOT_TRY(p2_infer(b, op, args, n_args, &inferred, &known));
  for (uint32_t i = 0; known && i < inferred.n; i++) {
    const p2_meta_t *m = recorded_result(s, n, i);
    if (m) AOT_TRY(define_of_result(b, m, &inferred.at[i]));
  }
  b->n_symbols_before = b->n_symbols;
  return AOT_OK;
}
