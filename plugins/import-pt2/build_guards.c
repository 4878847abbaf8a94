/* build_guards.c - guards: the conditions on sizes under which the traced program is valid.
 *
 * guards_code is Python over the inputs (L['x'].size()[0] % 2 == 0); a model exported with
 * prefer_deferred_runtime_asserts_over_guards has them as aten._assert_scalar of symbolic conditions instead. Both
 * become guards of the program (aot/ext/size_guards.h), which the host checks in each call; such an assertion leaves no
 * node. A condition that cannot be read is reported with its text, and is not checked. */
#include "builder.h"
#include "sympy_text.h"
#include <aot/ext/size_guards.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define ASSERTION "torch.ops.aten._assert_scalar.default"

/* Symbols as the inputs bring them in, whatever the guards name first. */
static aot_status_t symbols_of_inputs(p2_builder_t *b) {
  const p2_graph_t *top = &b->program->graphs[0];
  for (uint32_t i = 0; i < top->n_inputs; i++) {
    const uint32_t at =
        top->inputs[i].kind == P2_ARG_TENSOR ? p2_names_find(&top->meta_index, top->inputs[i].u.s) : P2_NO_ENTRY;
    for (uint32_t d = 0; at != P2_NO_ENTRY && d < 2 * top->metas[at].rank; d++) {
      const p2_dim_t *dim = d % 2 ? &top->metas[at].strides[d / 2] : &top->metas[at].sizes[d / 2];
      aot_str_t name;
      int64_t ignored;
      if (dim->text.size && p2_expr_is_symbol(dim->text, &name)) AOT_TRY(p2_dim(b, dim, &ignored));
    }
  }
  return AOT_OK;
}

static aot_status_t warn(p2_builder_t *b, aot_str_t text, const char *why) {
  char message[1800];
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  snprintf(message, sizeof message, "the guard '%.*s' of the archive is not checked: %s", P2_SHOW(text), why);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_WARNING;
  d.code = aot_str("import-pt2.guard");
  d.message = aot_str(message);
  d.hint = aot_str("sizes for which PyTorch refuses the model may run here, with the results of the traced branch");
  d.node = aot_no_node();
  d.value = aot_no_value();
  return b->host->diag(b->host, b->ctx, &d);
}

static aot_status_t add(p2_builder_t *b, const aot_ext_size_guards_t *guards, int64_t condition, aot_str_t text) {
  const aot_guard_info_t g = {.struct_size = sizeof g, .condition = condition, .text = text};
  if (AOT_DIM_IS_SYM(condition)) {
    const aot_status_t status = guards->add(guards, b->ctx, b->prog, &g);
    b->env->error.told |= status != AOT_OK; /* by the host */
    return status;
  }
  if (condition) return AOT_OK;
  p2_fail(b->env, "import-pt2.guard", "no sizes satisfy the guard '%.*s' of the archive", P2_SHOW(text));
  p2_hint(b->env, "the archive is damaged: its guards contradict the sizes of its inputs");
  return AOT_E_INVALID;
}

static aot_status_t guard_of_text(p2_builder_t *b, const aot_ext_size_guards_t *guards, aot_str_t text) {
  int64_t condition;
  const aot_status_t status = p2_dim_of_text(b, text, &condition);
  if (status == AOT_OK) return add(b, guards, condition, text);
  if (status != AOT_E_INVALID || b->env->error.told || !b->env->error.code) return status;
  const p2_error_t why = b->env->error;
  memset(&b->env->error, 0, sizeof b->env->error);
  return warn(b, text, why.message);
}

/* ---- assertions ---- */

/* The name of the condition that a node asserts; empty: it is no such node. */
static aot_str_t asserted(const p2_node_t *n) {
  const aot_str_t none = {NULL, 0};
  if (!p2_str_is(n->target, ASSERTION) || !n->n_inputs || n->inputs[0].arg.kind != P2_ARG_SYM_BOOL) return none;
  return n->inputs[0].arg.u.s;
}

/* Sizes that only a run reports are checked by the node, where the run knows them. */
static aot_status_t known_symbol(void *self, aot_str_t name, int64_t *out) {
  p2_builder_t *b = self;
  *out = AOT_DIM_SYM; /* no number: nothing is folded */
  return p2_names_find(&b->symbol_index, name) == P2_NO_ENTRY ? AOT_E_NOT_FOUND : AOT_OK;
}

static aot_status_t nothing(void *self, int32_t op, int64_t x, int64_t y, int64_t z, int64_t *out) {
  (void)self, (void)op, (void)x, (void)y, (void)z;
  *out = AOT_DIM_SYM; /* no number: nothing is folded */
  return AOT_OK;
}

static aot_status_t guard_of_assertion(p2_builder_t *b, const aot_ext_size_guards_t *guards, const p2_node_t *n) {
  const p2_graph_t *top = &b->program->graphs[0];
  const aot_str_t name = asserted(n);
  const uint32_t at = name.size ? p2_names_find(&top->sym_bool_index, name) : P2_NO_ENTRY;
  const p2_expr_sink_t look = {b, known_symbol, nothing, NULL};
  int64_t condition;
  if (at == P2_NO_ENTRY || !top->sym_bools[at].text.size) return AOT_OK;
  const aot_str_t text = top->sym_bools[at].text;
  const aot_str_t message = n->n_inputs > 1 && n->inputs[1].arg.kind == P2_ARG_STRING ? n->inputs[1].arg.u.s : text;
  const aot_status_t status = p2_expr_read(b->env, text, &look, &condition);
  if (status == AOT_E_NOT_FOUND) return AOT_OK;
  if (status == AOT_OK) AOT_TRY(p2_dim_of_text(b, text, &condition));
  else return status;
  AOT_TRY(add(b, guards, condition, message));
  const aot_status_t added = p2_names_add(b->env, &b->guarded, name, 0, NULL);
  return added == AOT_E_EXISTS ? AOT_OK : added;
}

int p2_is_guarded(const p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n) {
  const aot_str_t name = asserted(n);
  return name.size && s->graph == &b->program->graphs[0] && p2_names_find(&b->guarded, name) != P2_NO_ENTRY;
}

static int has_assertions(const p2_graph_t *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (asserted(&g->nodes[i]).size) return 1;
  return 0;
}

aot_status_t p2_build_guards(p2_builder_t *b) {
  const aot_ext_size_guards_t *guards = aot_ext(&b->host->head, AOT_EXT_SIZE_GUARDS);
  const p2_graph_t *top = &b->program->graphs[0];
  if (!b->program->n_guards && !has_assertions(top)) return AOT_OK;
  for (uint32_t i = 0; !guards && i < b->program->n_guards; i++)
    AOT_TRY(warn(b, b->program->guards[i], "this host has no guards"));
  if (!guards) return AOT_OK;
  AOT_TRY(symbols_of_inputs(b));
  for (uint32_t i = 0; i < b->program->n_guards; i++) AOT_TRY(guard_of_text(b, guards, b->program->guards[i]));
  for (uint32_t i = 0; i < top->n_nodes; i++) AOT_TRY(guard_of_assertion(b, guards, &top->nodes[i]));
  return AOT_OK;
}
