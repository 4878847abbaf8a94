/* build_scope.c - the names of a graph and what they represent. Each name is made once; it must be made before it is
 * used. */
#include "builder.h"
#include <stdarg.h>
#include <stdio.h>

aot_status_t p2_node_bad(p2_builder_t *b, const p2_node_t *n, const char *code, const char *format, ...) {
  char text[700];
  aot_str_t path;
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (!n) return p2_fail(b->env, code, "%s", text);
  path = p2_module_path(n->module_stack);
  return p2_fail(b->env, code, "node '%.*s' (%.*s)%s%.*s: %s", P2_SHOW(p2_node_label(n)), P2_SHOW(p2_op_name(n)),
                 path.size ? " in module " : "", P2_SHOW(path), text);
}

aot_status_t p2_bind(p2_builder_t *b, p2_scope_t *s, aot_str_t name, p2_bound_t what) {
  aot_status_t status;
  AOT_TRY(p2_grow(b->env, (void **)&s->bound, s->n, &s->capacity, sizeof *s->bound));
  status = p2_names_add(b->env, &s->names, name, s->n, NULL);
  if (status == AOT_E_EXISTS)
    return p2_node_bad(b, b->node, "import-pt2.duplicate-name", "the name '%.*s' is made twice", P2_SHOW(name));
  AOT_TRY(status);
  s->bound[s->n++] = what;
  return AOT_OK;
}

aot_status_t p2_bind_value(p2_builder_t *b, p2_scope_t *s, aot_str_t name, aot_value_t v) {
  p2_bound_t what = {P2_BOUND_VALUE, 0, v.id, 0};
  return p2_bind(b, s, name, what);
}

static int is_made_later(const p2_graph_t *g, aot_str_t name) {
  return p2_names_find(&g->meta_index, name) != P2_NO_ENTRY || p2_names_find(&g->sym_int_index, name) != P2_NO_ENTRY ||
         p2_names_find(&g->sym_bool_index, name) != P2_NO_ENTRY ||
         p2_names_find(&g->sym_float_index, name) != P2_NO_ENTRY;
}

aot_status_t p2_lookup(p2_builder_t *b, const p2_scope_t *s, aot_str_t name, p2_bound_t *out) {
  uint32_t i = p2_names_find(&s->names, name);
  if (i != P2_NO_ENTRY) {
    *out = s->bound[i];
    return AOT_OK;
  }
  p2_node_bad(b, b->node, "import-pt2.unknown-value", "the value '%.*s' is used %s", P2_SHOW(name),
              is_made_later(s->graph, name) ? "before it is made" : "but never made");
  p2_hint(b->env, "nodes of an archive stand in the order of execution; this one was changed by hand or is damaged");
  return AOT_E_INVALID;
}
