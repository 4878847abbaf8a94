/* build_node.c - a node as the archive records it: its name, its operator, its module and its line in the model's
 * source. */
#include "builder.h"
#include <string.h>

aot_str_t p2_node_label(const p2_node_t *n) { return n->name.size ? n->name : n->target; }

aot_str_t p2_op_name(const p2_node_t *n) {
  aot_str_t name = n->target;
  if (p2_str_starts(name, "torch.ops.")) {
    name.data += 10;
    name.size -= 10;
  }
  return name;
}

int p2_is_symbolic(const p2_node_t *n) {
  uint32_t i;
  for (i = 0; i < n->n_outputs; i++)
    if (n->outputs[i].kind != P2_ARG_SYM_INT && n->outputs[i].kind != P2_ARG_SYM_BOOL &&
        n->outputs[i].kind != P2_ARG_SYM_FLOAT)
      return 0;
  return n->n_outputs > 0;
}

int p2_is_inline(const p2_node_t *n) {
  return p2_str_is(n->target, P2_AUTOCAST) || p2_str_is(n->target, P2_CHECKPOINT);
}

int p2_is_assertion(const p2_node_t *n) {
  return n->n_outputs == 0 && p2_str_is(n->target, "torch.ops.aten._assert_tensor_metadata.default");
}

/* ---- provenance ---- */

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
