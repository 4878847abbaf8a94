/* Finds storage windows, redirects their reads and removes resizes and copies (storage_windows.h). */
#include "storage_windows.h"

#include "rewriting.h"
#include "schema_marks.h"
#include <aot/inline.h>
#include <stdio.h>

enum { OWN = 0, CLOSED, OPEN, FILLED }; /* OWN: an ordinary value; the others: of an input whose storage is resized */

typedef struct windows {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  /* by value */
  uint8_t *state;
  uint32_t *shows;  /* FILLED: the value that was copied there */
  uint32_t *root;   /* whose memory it may share: itself, or what it is a view of */
  uint32_t *shown;  /* of a root: how many windows show it */
  uint32_t *is_now; /* after set_: the value whose other name it is; AOT_NO_ID: itself */
  uint32_t *object; /* the first name of the tensor: writers return another one */
} windows_t;

static aot_status_t refuse(const windows_t *w, aot_node_t node, const char *code, const char *format, uint32_t value) {
  char text[400];
  const aot_str_t name = w->host->graph->value_name(w->prog, (aot_value_t){value});
  char shown[96];
  if (name.size) snprintf(shown, sizeof shown, "%%%.*s", (int)(name.size < 80 ? name.size : 80), name.data);
  else snprintf(shown, sizeof shown, "%%%u", value);
  snprintf(text, sizeof text, format, shown);
  return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, code, text, node);
}

static aot_status_t begin(windows_t *w) {
  const uint32_t n = w->host->graph->n_values(w->prog);
  uint32_t **const arrays[] = {&w->shows, &w->root, &w->shown, &w->is_now, &w->object};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    if (!(*arrays[i] = w->host->alloc(w->host, w->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n + 1) * 4)))
      return AOT_E_EXHAUSTED;
  if (!(w->state = w->host->alloc(w->host, w->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)n + 1))) return AOT_E_EXHAUSTED;
  for (uint32_t v = 0; v < n; v++) w->root[v] = w->object[v] = v;
  return AOT_OK;
}

static int is_resize(const aot_op_desc_t *d, const aot_node_info_t *n) {
  return (d->flags & AOT_OP_STORAGE) && n->n_args > 1 && n->args[1].kind == AOT_ARG_INT;
}
static int is_set(const aot_op_desc_t *d) { return (d->flags & AOT_OP_STORAGE) && (d->flags & AOT_OP_INPLACE_VIEW); }
static int is_fill(const aot_op_desc_t *d, const aot_node_info_t *n) {
  return (d->flags & AOT_OP_STORAGE) && !is_set(d) && n->n_args > 1 && n->args[1].kind == AOT_ARG_VALUE;
}

/* ---- one input's window ---- */

static aot_status_t nbytes_of(const windows_t *w, uint32_t value, int64_t *out) {
  aot_type_t t;
  AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){value}, &t));
  *out = (int64_t)aot_dtype_size(t.dtype);
  for (int32_t d = 0; d < t.rank; d++)
    AOT_TRY(w->host->edit->dim_make(w->prog, AOT_EXPR_MUL, *out, t.sizes[d], 0, out));
  return AOT_OK;
}

static void stop_showing(windows_t *w, uint32_t p) {
  if (w->state[p] == FILLED) w->shown[w->root[w->shows[p]]]--;
}

static aot_status_t resize(windows_t *w, aot_node_t node, const aot_node_info_t *n) {
  const uint32_t p = n->operands[0];
  int64_t full;
  AOT_TRY(nbytes_of(w, p, &full));
  if (n->args[1].u.i == 0) {
    if (w->state[p] == CLOSED)
      return refuse(w, node, "functionalize.window",
                    "the storage of %s is emptied, and is empty already: more resizes to 0 than to full size", p);
    stop_showing(w, p);
    w->state[p] = CLOSED;
  } else if (n->args[1].u.i == full) {
    if (w->state[p] != CLOSED)
      return refuse(w, node, "functionalize.window",
                    "the storage of %s is resized to full size twice, without being emptied between", p);
    w->state[p] = OPEN;
  } else {
    return refuse(w, node, "functionalize.window",
                  "the storage of %s is resized to a part of its size: only all of it and nothing are supported", p);
  }
  return w->host->edit->node_erase(w->prog, node);
}

static aot_status_t fill(windows_t *w, aot_node_t node, const aot_node_info_t *n) {
  const uint32_t p = n->operands[0], y = n->operands[1];
  aot_type_t to, from;
  AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){p}, &to));
  AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){y}, &from));
  int fits = to.dtype == from.dtype && to.rank == from.rank;
  for (int32_t d = 0; fits && d < to.rank; d++) fits = to.sizes[d] == from.sizes[d];
  if (!fits)
    return refuse(w, node, "functionalize.window",
                  "what is copied into the resized storage of %s has another shape or dtype", p);
  if (w->state[p] == CLOSED)
    return refuse(w, node, "functionalize.window", "%s is written while its storage is empty", p);
  stop_showing(w, p);
  w->state[p] = FILLED;
  w->shows[p] = y;
  w->shown[w->root[y]]++;
  return w->host->edit->node_erase(w->prog, node);
}

/* ---- the walk ---- */

/* Inputs that are resized somewhere have no memory at first. */
static aot_status_t find_windows(windows_t *w, uint32_t *out_n, int *out_any) {
  const aot_graph_api_t *g = w->host->graph;
  for (aot_node_t node = g->first(w->prog, w->graph); node.id != AOT_NO_ID; node = g->next(w->prog, node)) {
    aot_node_info_t n = {.struct_size = sizeof n};
    AOT_TRY(g->node_info(w->prog, node, &n));
    const aot_op_desc_t *d = g->op_desc(w->prog, n.op);
    if (!(d->flags & AOT_OP_STORAGE)) continue;
    if (!*out_any) AOT_TRY(begin(w));
    *out_any = 1;
    if (!is_resize(d, &n)) continue;
    const uint32_t p = n.operands[0];
    if (g->value_def(w->prog, (aot_value_t){p}).id != AOT_NO_ID)
      return refuse(w, node, "functionalize.window", "the storage of %s is resized, which is not an input of the graph",
                    p);
    *out_n += w->state[p] == OWN;
    w->state[p] = CLOSED;
  }
  return AOT_OK;
}

/* Every operand by its name of now, in the window by what it shows. */
static aot_status_t refresh(windows_t *w, aot_node_t node, aot_node_info_t *n) {
  for (uint32_t k = 0; k < n->n_operands; k++) {
    uint32_t v = n->operands[k];
    if (v == AOT_NO_ID) continue;
    if (w->is_now[w->object[v]] != AOT_NO_ID) v = w->is_now[w->object[v]];
    if (w->state[v] == CLOSED)
      return refuse(w, node, "functionalize.window", "%s is read while its storage is empty", v);
    if (w->state[v] == OPEN)
      return refuse(w, node, "functionalize.window", "%s is read before anything was copied into its resized storage",
                    v);
    if (w->state[v] == FILLED) v = w->shows[v];
    if (v == n->operands[k]) continue;
    AOT_TRY(w->host->edit->operand_set(w->prog, node, k, (aot_value_t){v}));
    AOT_TRY(w->host->graph->node_info(w->prog, node, n));
  }
  return AOT_OK;
}

/* Nothing but the copies writes what a window shows, by any name. */
static aot_status_t check_writes(const windows_t *w, aot_node_t node, const aot_op_desc_t *d, const aot_node_info_t *n,
                                 const uint32_t *before) {
  uint32_t operand = 0;
  for (uint32_t a = 0; (d->flags & AOT_OP_WRITES) && a < n->n_args; a++)
    for (uint32_t i = 0; i < aot_n_operands(&n->args[a]); i++, operand++) {
      const uint32_t v = n->operands[operand];
      if (v == AOT_NO_ID || !fz_writes_arg(d, n, a)) continue;
      if (before[operand] != v && w->state[before[operand]] == FILLED)
        return refuse(w, node, "functionalize.window",
                      "%s, whose storage is resized, is written by something else than a copy of all of it",
                      before[operand]);
      if (w->shown[w->root[v]])
        return refuse(w, node, "functionalize.window",
                      "%s is written while the resized storage of an input holds a copy of it", v);
    }
  return AOT_OK;
}

/* Is y the memory of x as it is laid out, by another name: what x.detach() gave before? */
static int is_same_view(const windows_t *w, uint32_t x, uint32_t y) {
  aot_type_t a, b;
  if (w->root[y] != w->root[x] || w->host->graph->value_type(w->prog, (aot_value_t){x}, &a) != AOT_OK ||
      w->host->graph->value_type(w->prog, (aot_value_t){y}, &b) != AOT_OK)
    return 0;
  if (a.dtype != b.dtype || a.rank != b.rank || a.offset != b.offset) return 0;
  for (int32_t d = 0; d < a.rank; d++)
    if (a.sizes[d] != b.sizes[d] || a.strides[d] != b.strides[d]) return 0;
  return 1;
}

/* x.set_(y): the tensor of all of x's names is y's from now on. An input must have its own storage again at the end. */
static aot_status_t set(windows_t *w, aot_node_t node, const aot_node_info_t *n, uint32_t x) {
  const uint32_t y = n->operands[1];
  w->is_now[x] = is_same_view(w, x, y) ? AOT_NO_ID : y;
  if (n->n_results) AOT_TRY(w->host->edit->uses_replace(w->prog, n->first_result, (aot_value_t){x}));
  return w->host->edit->node_erase(w->prog, node);
}

static void name_results(windows_t *w, const aot_op_desc_t *d, const aot_node_info_t *n) {
  for (uint32_t i = 0; i < n->n_results; i++) {
    const uint32_t k = fz_aliased_operand(d, n, i), v = n->first_result.id + i;
    if (!k || n->operands[k - 1] == AOT_NO_ID) continue;
    w->root[v] = w->root[n->operands[k - 1]];
    if (d->flags & AOT_OP_WRITES) w->object[v] = w->object[n->operands[k - 1]];
  }
}

static aot_status_t walk_node(windows_t *w, aot_node_t node) {
  const aot_graph_api_t *g = w->host->graph;
  aot_node_info_t n = {.struct_size = sizeof n};
  AOT_TRY(g->node_info(w->prog, node, &n));
  const aot_op_desc_t *d = g->op_desc(w->prog, n.op);
  const uint32_t p = n.n_operands ? n.operands[0] : AOT_NO_ID;
  if (is_resize(d, &n)) return resize(w, node, &n);
  if (is_fill(d, &n) && w->state[p] != OWN) return fill(w, node, &n);
  uint32_t *before = w->host->alloc(w->host, w->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n.n_operands + 1) * 4);
  if (!before) return AOT_E_EXHAUSTED;
  if (n.n_operands) memcpy(before, n.operands, (size_t)n.n_operands * 4);
  const uint32_t object = p == AOT_NO_ID ? p : w->object[p];
  AOT_TRY(refresh(w, node, &n));
  if (is_set(d)) return set(w, node, &n, object);
  AOT_TRY(check_writes(w, node, d, &n, before));
  name_results(w, d, &n);
  return AOT_OK;
}

static aot_status_t finish(windows_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  for (uint32_t i = 0; i < g->n_inputs(w->prog, w->graph); i++) {
    const uint32_t p = g->inputs(w->prog, w->graph)[i].value.id;
    if (w->state[p] != OWN && w->state[p] != CLOSED)
      return refuse(w, aot_no_node(), "functionalize.window",
                    "the resized storage of %s is not emptied again before the graph ends", p);
    if (w->is_now[p] != AOT_NO_ID)
      return refuse(
          w, aot_no_node(), "functionalize.set-of-input",
          "set_ gives %s, an input of the graph, another storage, and no later one its own again: the caller's "
          "tensor cannot take it; copy the values instead",
          p);
  }
  for (uint32_t i = 0; i < g->n_outputs(w->prog, w->graph); i++) {
    uint32_t v = g->outputs(w->prog, w->graph)[i].value.id;
    if (v == AOT_NO_ID) continue;
    if (w->state[w->root[v]] != OWN)
      return refuse(w, aot_no_node(), "functionalize.window",
                    "%s, whose storage is resized, is returned: it holds nothing then", v);
    if (w->is_now[w->object[v]] != AOT_NO_ID)
      AOT_TRY(w->host->edit->output_set(w->prog, w->graph, i, (aot_value_t){w->is_now[w->object[v]]}));
  }
  return AOT_OK;
}

aot_status_t fz_close_windows(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                              uint32_t *out_n) {
  windows_t w = {.host = host, .ctx = ctx, .prog = prog, .graph = graph};
  int any = 0;
  *out_n = 0;
  AOT_TRY(find_windows(&w, out_n, &any));
  for (aot_node_t n = host->graph->first(prog, graph), next; any && n.id != AOT_NO_ID; n = next) {
    next = host->graph->next(prog, n);
    AOT_TRY(walk_node(&w, n));
  }
  return any ? finish(&w) : AOT_OK;
}
