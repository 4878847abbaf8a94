#include <cli/base/node_names.h>

#include <aot/inline.h>
#include "kit/base/text.h"

/* Names come from model files: what is no UTF-8, or moves a terminal's cursor, becomes '?'. */
static void make_printable(kit_text_t *t) {
  for (size_t i = 0, n; i < t->size; i += n) {
    n = kit_utf8_length(t->data + i, t->size - i);
    if (n == 0 || (unsigned char)t->data[i] < 0x20 || t->data[i] == 0x7f) t->data[i] = '?', n = 1;
  }
}

const char *aoth_names_kept(aoth_names_t *m) {
  make_printable(&m->text);
  const char *copy = m->text.failed ? NULL : kit_arena_text(m->arena, m->text.data ? m->text.data : "", m->text.size);
  m->text.size = 0;
  return copy;
}

static const char *kept_text(aoth_names_t *m, aot_str_t s) {
  m->text.size = 0;
  kit_text_str(&m->text, s);
  return aoth_names_kept(m);
}

const char *aoth_names_type(aoth_names_t *m, aot_value_t v) {
  aot_type_t t;
  if (aoth_graph_value_type(m->p, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) return "";
  kit_text_f(&m->text, "%s[", aot_dtype_name(t.dtype));
  for (int32_t d = 0; d < t.rank; d++) {
    if (d) kit_text_z(&m->text, ", ");
    aoth_dim_print(m->p, t.sizes[d], &m->text);
  }
  kit_text_z(&m->text, "]");
  return aoth_names_kept(m);
}

const char *aoth_names_value(aoth_names_t *m, aot_value_t v) {
  const aot_str_t name = aoth_graph_value_name(m->p, v);
  kit_text_z(&m->text, "%");
  if (name.size) kit_text_str(&m->text, name);
  else kit_text_f(&m->text, "%u", v.id);
  return aoth_names_kept(m);
}

/* The nearest module path on the way back to where a node was made from. */
static const char *module_of(aoth_names_t *m, aot_origin_t origin) {
  aot_origin_info_t o = {.struct_size = sizeof o};
  for (int depth = 0; depth < 64 && origin.id != AOT_NO_ID && aoth_graph_origin_info(m->p, origin, &o) == AOT_OK;
       depth++) {
    if (o.module_path.size) return kept_text(m, o.module_path);
    origin = o.parent;
  }
  return "";
}

int aoth_names_node(aoth_names_t *m, aot_node_t n, const char **op, const char **module) {
  aot_node_info_t info = {.struct_size = sizeof info};
  *op = *module = "";
  if (n.id == AOT_NO_ID || n.id >= aoth_graph_n_nodes(m->p) || aoth_graph_node_info(m->p, n, &info) != AOT_OK) return 0;
  *op = kept_text(m, aoth_graph_op_desc(m->p, info.op)->name);
  *module = module_of(m, info.origin);
  return 1;
}
