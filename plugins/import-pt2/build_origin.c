/* build_origin.c - provenance: module, source line, and the node that a decomposed node was made from. */
#include "builder.h"
#include <aot/inline.h>
#include <string.h>

/* from_node is JSON text: a list of {name, .., from_node: [..]}; the innermost name is the node before
 * decomposition. */
static aot_status_t innermost(p2_builder_t *b, aot_str_t text, aot_str_t *out) {
  json_t *root = json_loadb(text.data, (size_t)text.size, 0, NULL), *list = root;
  const char *name = NULL;
  char *copy;
  aot_status_t status = AOT_OK;
  out->size = 0;
  while (json_is_array(list) && json_array_size(list)) {
    json_t *entry = json_array_get(list, json_array_size(list) - 1);
    const char *inner = json_string_value(json_object_get(entry, "name"));
    if (inner) name = inner;
    list = json_object_get(entry, "from_node");
  }
  if (name) {
    status = p2_alloc(b->env, P2_SCRATCH, 1, strlen(name) + 1, 1, (void **)&copy);
    if (status == AOT_OK) {
      memcpy(copy, name, strlen(name));
      *out = p2_str(copy);
    }
  }
  if (root) json_decref(root);
  return status;
}

aot_status_t p2_origin(p2_builder_t *b, const p2_node_t *n, aot_origin_t *out) {
  aot_origin_info_t info;
  aot_str_t before = {NULL, 0};
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.module_path = p2_module_path(n->module_stack);
  info.parent = aot_no_origin();
  p2_source_line(n->stack_trace, &info.source_file, &info.line);
  if (n->from_node.size) AOT_TRY(innermost(b, n->from_node, &before));
  if (before.size && !aot_str_eq(before, n->name)) {
    info.node_name = before;
    AOT_TRY(b->host->edit->origin_create(b->prog, &info, &info.parent));
  }
  info.node_name = p2_node_label(n);
  return b->host->edit->origin_create(b->prog, &info, out);
}
