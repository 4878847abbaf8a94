/* build_origin.c - provenance: module, source line, and the node that a decomposed node was made from. */
#include "build_program.h"
#include <aot/inline.h>
#include <string.h>

static const char *find(const char *from, const char *end, const char *what) {
  size_t n = strlen(what);
  for (; (size_t)(end - from) >= n; from++)
    if (memcmp(from, what, n) == 0) return from;
  return NULL;
}

/* Entries "key,path,type" joined by ';', outermost first: the path of the innermost that has one. */
aot_str_t p2_module_path(aot_str_t stack) {
  aot_str_t path = {NULL, 0};
  const char *p = stack.data, *end = stack.data ? stack.data + stack.size : NULL;
  while (p && p < end) {
    const char *entry_end = memchr(p, ';', (size_t)(end - p)), *comma, *second;
    if (!entry_end) entry_end = end;
    comma = memchr(p, ',', (size_t)(entry_end - p));
    second = comma ? memchr(comma + 1, ',', (size_t)(entry_end - comma - 1)) : NULL;
    if (second && second > comma + 1) {
      path.data = comma + 1;
      path.size = (uint64_t)(second - comma - 1);
    }
    p = entry_end + 1;
  }
  return path;
}

/* The last frame of a Python traceback: `File "net.py", line 12, in forward`. */
void p2_source_line(aot_str_t trace, aot_str_t *out_file, uint32_t *out_line) {
  const char *p = trace.data, *end = p ? p + trace.size : NULL, *quote, *line;
  out_file->data = NULL;
  out_file->size = 0;
  *out_line = 0;
  while (p && (p = find(p, end, "File \""))) {
    p += 6;
    quote = memchr(p, '"', (size_t)(end - p));
    if (!quote) return;
    out_file->data = p;
    out_file->size = (uint64_t)(quote - p);
    *out_line = 0;
    line = quote + 1;
    if ((size_t)(end - line) > 7 && memcmp(line, ", line ", 7) == 0)
      for (line += 7; line < end && *line >= '0' && *line <= '9' && *out_line < 100000000; line++)
        *out_line = *out_line * 10 + (uint32_t)(*line - '0');
    p = quote;
  }
}

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
