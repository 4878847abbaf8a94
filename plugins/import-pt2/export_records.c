/* export_records.c - the small records of the archive's schema, which the others are made of, and what is said where
 * one cannot be written. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

json_t *p2_cannot(p2_writer_t *w, const char *code, const char *format, ...) {
  char text[600], label[300] = "";
  aot_node_info_t info;
  va_list list;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (w->node.id != AOT_NO_ID && w->host->graph->node_info(w->prog, w->node, &info) == AOT_OK) {
    const aot_op_desc_t *d = w->host->graph->op_desc(w->prog, info.op);
    const aot_str_t name = info.n_results ? w->host->graph->value_name(w->prog, info.first_result) : p2_str("");
    snprintf(label, sizeof label, " (%.*s%s%.*s)", P2_SHOW(d->name), name.size ? ", node " : "", P2_SHOW(name));
  }
  p2_fail(w->env, code, "%s%s", text, label);
  return NULL;
}

json_t *p2_text_json(aot_str_t s) { return json_stringn(s.data ? s.data : "", (size_t)s.size); /* NULL: not UTF-8 */ }

json_t *p2_tensor_argument(aot_str_t name) { return json_pack("{s:o}", "name", p2_text_json(name)); }

json_t *p2_as_tensor(aot_str_t name) { return json_pack("{s:o}", "as_tensor", p2_tensor_argument(name)); }

json_t *p2_named_json(aot_str_t name, json_t *argument, int keyword) {
  return json_pack("{s:o, s:o, s:i}", "name", p2_text_json(name), "arg", argument, "kind", keyword ? 2 : 1);
}

const char *p2_device_name(int32_t device) {
  static const char *const names[] = {NULL, "cpu", "cuda", "meta"};
  return device >= 0 && device <= AOT_DEVICE_META ? names[device] : NULL;
}

aot_status_t p2_add_node(p2_page_t *page, const char *target, json_t *inputs, json_t *outputs, json_t *metadata,
                         json_t *hop, aot_str_t name) {
  json_t *node = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "target", target, "inputs", inputs, "outputs", outputs,
                           "metadata", metadata, "is_hop_single_tensor_return", hop, "name", p2_text_json(name));
  return json_array_append_new(page->nodes, node) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
}
